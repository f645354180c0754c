// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios against what was published about them.

use super::*;

fn scenario(name: &str) -> Scenario {
    Scenario::named(name).unwrap()
}

#[test]
fn every_scenario_makes_a_job_file_and_its_defaults_fit() {
    for spec in ALL {
        let mut s = scenario(spec.name);
        for p in spec.parameters {
            s.set(p.name, p.default).unwrap();
        }
        let text = s.job_text();
        assert!(text.contains("rw="), "{text}");
        for (section, _) in s.programs() {
            assert!(text.contains(&format!("[{section}]")), "{text}");
        }
    }
}

#[test]
fn readers_start_as_in_the_job_file_of_2009() {
    let text = scenario("dd+ssh").job_text();
    let starts: Vec<u64> = text
        .lines()
        .filter_map(|l| l.strip_prefix("startdelay=")?.parse().ok())
        .collect();
    assert_eq!(starts.len(), 41);
    assert!((0..34).all(|i| starts[i] == 4 * i as u64));
    assert_eq!(starts[33..], [132, 134, 138, 142, 146, 150, 200, 260]);
}

#[test]
fn sizes_have_the_mean_and_median_asked_for() {
    let Some((_, Program::Cat(cat))) = scenario("dd+cat").programs().into_iter().next() else {
        panic!("no cat");
    };
    let mut sizes = etc_sizes(&cat, 1);
    assert_ne!(sizes, etc_sizes(&cat, 2), "the order is drawn");
    sizes.sort_unstable();
    assert_eq!(sizes.len(), 250);
    let median = (sizes[124] + sizes[125]) / 2;
    assert!((1500..1570).contains(&median), "{median}");
    let mean = sizes.iter().sum::<u64>() / 250;
    assert!((4200..4700).contains(&mean), "{mean}");
}

#[test]
fn values_are_checked() {
    let mut s = scenario("pvfs-bench");
    for (key, value, says) in [
        (
            "mode",
            "aio17",
            "mode=aio17: expected aio16, alt-aio, pwrite",
        ),
        ("ops", "0", "ops=0: expected 1 to"),
        ("ops", "1k", "ops=1k: expected 1 to"),
        (
            "nothing",
            "1",
            "pvfs-bench has no parameter 'nothing'; it has mode, ",
        ),
    ] {
        let error = s.set(key, value).unwrap_err();
        assert!(error.what.starts_with(says), "{error}");
    }
    assert_eq!(Scenario::named("dd+cats"), None);
}

#[test]
fn where_nothing_but_fio_runs_a_program_is_a_job_that_does_the_same_or_none() {
    let mut pvfs = Scenario::named("pvfs-bench").expect("it is there");
    let error = pvfs.job_text_without_programs().expect_err("it is glibc's");
    assert!(error.contains("mode=pwrite can be had"), "{error}");
    pvfs.set("mode", "pwrite").expect("a mode");
    pvfs.set("ops", "10").expect("a number");
    let text = pvfs.job_text_without_programs().expect("a job");
    assert!(
        text.contains("bs=131072\nsize=1310720\nioengine=psync"),
        "{text}"
    );
    pvfs.set("regions", "2").expect("a number");
    assert!(pvfs.job_text_without_programs().is_err());
    for spec in super::ALL {
        let scenario = Scenario::named(spec.name).expect("it is there");
        if scenario.programs().is_empty() {
            let text = scenario.job_text_without_programs();
            assert_eq!(text.as_deref(), Ok(scenario.job_text().as_str()));
        } else {
            assert!(
                scenario.job_text_without_programs().is_err(),
                "{}",
                spec.name
            );
        }
    }
}
