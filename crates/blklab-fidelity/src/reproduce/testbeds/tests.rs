// SPDX-License-Identifier: MIT OR Apache-2.0
//! Testbeds cover their space, runs are not lost, and what they say follows from them.

use super::super::study::Tolerance;
use super::super::{calibration, names, study};
use super::*;

const SPACE: &str = r#"
    [[unknown]]
    name = "memory"
    what = "memory of the machine"
    key = "memory"
    low = 1
    high = 8
    scale = "log"
    unit = "g"
    [[unknown]]
    name = "latency"
    what = "time of a read"
    key = "device.read_us"
    low = 100.0
    high = 300.0
    [[unknown]]
    name = "depth"
    what = "queue depth"
    choices = [
        { name = "deep", set = { queue_depth = 31 } },
        { name = "shallow", set = { queue_depth = 4 } },
    ]
"#;

fn quantum() -> Study {
    let mut quantum = study("cfq-quantum-2010").unwrap();
    quantum.space = Some(Space::parse("space", SPACE).unwrap());
    quantum
}

#[test]
fn testbeds_are_a_latin_hypercube() {
    let space = Space::parse("space", SPACE).unwrap();
    let beds = space.testbeds(20, 7);
    assert_eq!(beds, space.testbeds(20, 7));
    assert_ne!(beds, space.testbeds(20, 8));
    let mut latencies: Vec<f64> = beds
        .iter()
        .map(|b| b.drawn[1].value.parse().unwrap())
        .collect();
    latencies.sort_by(f64::total_cmp);
    for (i, latency) in latencies.iter().enumerate() {
        let part = 100.0 + 10.0 * i as f64..=110.0 + 10.0 * i as f64;
        assert!(part.contains(latency), "{latency} is not in {part:?}");
    }
    let deep = beds.iter().filter(|b| b.drawn[2].value == "deep").count();
    assert_eq!(deep, 10);
    // As many of 1, 2 and 3 g as of 3 to 8 g, by the logarithm of 1 to 9.
    let small = |b: &&Testbed| ["1g", "2g"].contains(&b.drawn[0].value.as_str());
    assert_eq!(beds.iter().filter(small).count(), 10);
    let settings: Vec<&(String, String)> = beds[0].settings("volume").collect();
    assert_eq!(settings.len(), 3);
    assert_eq!(settings[2].0, "queue_depth");
}

#[test]
fn a_space_says_what_is_wrong_with_it() {
    let with = |rest: &str| {
        Space::parse(
            "s.toml",
            &format!("[[unknown]]\nname = \"a\"\nwhat = \"w\"\n{rest}"),
        )
    };
    for (rest, expected) in [
        ("key = \"k\"", "either low and high"),
        ("key = \"k\"\nlow = 2\nhigh = 1", "no range: 2 to 1"),
        (
            "key = \"k\"\nlow = 0\nhigh = 1\nscale = \"log\"",
            "no range",
        ),
        ("low = 0\nhigh = 1", "a range needs a key"),
        ("key = \"k\"\nlow = \"x\"\nhigh = 1", "is not a number"),
        ("key = \"k\"\nchoices = [1]", "at least two"),
        ("choices = [1, 2]", "choices of values need a key"),
        ("key = \"k\"\nlow = 1\nhigh = 2\nchoices = [1, 2]", "either"),
        (
            "choices = [{ name = \"x\" }, { name = \"y\" }]",
            "a table 'set'",
        ),
        ("kind = 3", "unknown field"),
    ] {
        let error = with(rest).unwrap_err().to_string();
        assert!(
            error.starts_with("s.toml: ") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn every_space_is_possible_and_says_what_narrowed_it() {
    let fitted = calibration().unwrap();
    let mut spaces = 0;
    for name in names() {
        let study = study(name).unwrap();
        let Some(space) = &study.space else {
            continue;
        };
        spaces += 1;
        // Every choice and both ends of every range occur.
        let all = Testbeds::new(std::slice::from_ref(&study), 16, 1);
        assert!(
            all.as_ref().is_ok_and(|t| t.nr_runs() > 0),
            "{:?}",
            all.err()
        );
        for unknown in &space.unknowns {
            let keys: Vec<&str> = match &unknown.values {
                Values::Range { key, .. } => vec![key],
                Values::Choices(all) => all
                    .iter()
                    .flat_map(|c| &c.set)
                    .map(|(key, _)| key.as_str())
                    .collect(),
            };
            // What a published number was fitted with may vary, but that number is then
            // none that is predicted.
            let of_study = fitted
                .iter()
                .filter(|p| p.studies.iter().any(|s| s == name));
            for p in of_study {
                let (table, key) = p.key.split_once('.').unwrap();
                let is_it = |k: &&str| **k == p.key || table != "device" && **k == *key;
                if keys.iter().any(is_it) {
                    assert_eq!(unknown.narrowed_by.as_ref(), Some(&p.name), "{name}");
                }
            }
            if let Some(by) = &unknown.narrowed_by {
                assert!(fitted.iter().any(|p| p.name == *by), "{name}: {by}");
            }
        }
    }
    assert!(spaces > 0);
}

#[test]
fn only_studies_of_one_machine_run_together() {
    let none = [study("missed-merge-2008").unwrap()];
    let error = Testbeds::new(&none, 2, 1).err().unwrap().to_string();
    assert!(
        error.contains("not written down") && error.contains("ltt-2009-ssh"),
        "{error}"
    );
    let two = [quantum(), study("ltt-2009-ssh").unwrap()];
    let error = Testbeds::new(&two, 2, 1).err().unwrap().to_string();
    assert!(error.contains("different machines"), "{error}");
    let mut wrong = quantum();
    let text = SPACE.replace("device.read_us", "device.read_furlongs");
    wrong.space = Some(Space::parse("space", &text).unwrap());
    let error = Testbeds::new(std::slice::from_ref(&wrong), 2, 1)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("testbed 1: ") && error.contains("read_furlongs"),
        "{error}"
    );
}

/// What is about one part of a study leaves the other alone, and every study can be set up
/// on any of its testbeds.
#[test]
fn unknowns_of_a_part_are_set_there() {
    let pvfs2 = study("pvfs2-2006").unwrap();
    let space = pvfs2.space.as_ref().unwrap();
    let beds = space.testbeds(3, 1);
    let has = |part: &str, key: &str| beds[0].settings(part).any(|(k, _)| k == key);
    assert!(has("local", "device.write_cache") && !has("san", "device.write_cache"));
    assert!(has("san", "device.backend_mb_per_s") && !has("local", "device.backend_mb_per_s"));
    assert!(has("local", "memory") && has("san", "memory"));
    let all = super::super::names().into_iter().map(|n| study(n).unwrap());
    for study in all.filter(|s| s.space.is_some()) {
        let made = Testbeds::new(std::slice::from_ref(&study), 12, 1);
        assert!(made.is_ok(), "{}: {}", study.name, made.err().unwrap());
    }
}

#[test]
fn outcomes_follow_from_values() {
    let studies = [quantum()];
    let testbeds = Testbeds::new(&studies, 10, 1).unwrap();
    // As published on odd testbeds; the second has not run, the posted form is
    // half as fast on those that are shallow.
    let numbers = &studies[0].numbers;
    let mut values = vec![vec![vec![None; 10]; studies[0].measures.len()]];
    for n in numbers {
        for (bed, testbed) in testbeds.beds.iter().enumerate() {
            let slow = n.published == 102.0 && testbed.drawn[2].value == "shallow";
            let value = if slow { n.published / 2.0 } else { n.published };
            values[0][n.measure][bed] = (bed != 1).then_some(value);
        }
    }
    let mut missing = vec![false; 10];
    missing[1] = true;
    let outcome = TestbedOutcome::new(&testbeds, &values, &missing);
    let deep = |i: &usize| testbeds.beds[*i].drawn[2].value == "deep" && *i != 1;
    let nr_deep = (0..10).filter(deep).count();
    assert_eq!((outcome.testbeds, outcome.complete), (10, 9));
    let posted = outcome
        .numbers
        .iter()
        .find(|n| n.published == 102.0)
        .unwrap();
    assert_eq!((posted.testbeds, posted.within), (9, nr_deep));
    let spread = posted.measured.ours.unwrap();
    assert_eq!((spread.min, spread.max), (51.0, 102.0));
    assert_eq!(
        posted.explained.as_ref().map(|e| e.unknown.as_str()),
        Some("depth")
    );
    assert_eq!(outcome.orderings[0].holds, nr_deep);
    let together = &outcome.together[0];
    assert_eq!((together.numbers, together.testbeds), (2, 9));
    assert_eq!(together.satisfied_by.len(), nr_deep);
    assert_eq!(together.best.unwrap().1, 2);
    let calibrated = outcome
        .numbers
        .iter()
        .filter(|n| n.kind == super::super::Kind::Calibrated);
    assert_eq!(calibrated.count(), 2);
    let mut csv = Vec::new();
    outcome.write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 9 * 4);
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with("within,memory,latency,depth"),
        "{csv}"
    );
    assert!(Tolerance::Percent(15.0).allows(1.0));
}

#[test]
fn what_ran_does_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let mut study = quantum();
    study.parts[0].experiment.variants.truncate(1);
    study.measures.truncate(1);
    study.numbers.truncate(1);
    study.orderings.clear();
    let studies = [study];
    let testbeds = Testbeds::new(&studies, 2, 1).unwrap();
    let run = |stopped: bool| {
        let journal = Journal::open(&path).unwrap();
        let stop = Arc::new(AtomicBool::new(stopped));
        testbeds.run(1, &stop, &journal, || {}).unwrap()
    };
    assert_eq!(run(true).complete, 0);
    assert_eq!(run(false).complete, 2);
    let first = std::fs::read_to_string(&path).unwrap();
    assert_eq!(first.lines().count(), 2);
    // What is there is taken as it is: nothing runs if it is stopped at once.
    std::fs::write(&path, format!("{first}{{\"run\":\"cut o")).unwrap();
    let again = run(true);
    assert_eq!(again.complete, 2);
    assert!(again.numbers[0].measured.ours.is_some());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
}

/// What was saved has the bits that were measured: a sampling that goes on says the same.
#[test]
fn saved_values_are_read_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    // Two that a quick reader of numbers has one unit in the last place off, and more.
    let mut values = vec![116.438_245_958_165_42, 90.455_926_429_428_23, 5e-324, 1e300];
    let mut state = 1_u64;
    for _ in 0..1000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        values.push(state as f64 / 1e15);
        values.push(1e9 / (state >> 11) as f64);
    }
    let journal = Journal::open(&path).unwrap();
    let names: Vec<String> = (0..values.len()).map(|i| i.to_string()).collect();
    let named: BTreeMap<String, f64> = names.iter().cloned().zip(values.clone()).collect();
    journal.add("x", &named).unwrap();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let again = Journal::open(&path).unwrap();
    let read = again.values("x", &names).unwrap().unwrap();
    for (name, value) in named {
        assert_eq!(read[&name].to_bits(), value.to_bits(), "{value}");
    }
}

#[test]
fn saved_lines_that_say_something_else_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let error = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let told = Journal::open(&path).and_then(|j| j.values("a", &["p99"]).map(drop));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let told = told.unwrap_err().to_string();
        told.strip_prefix(&format!("{}:", path.display()))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        error("{\"run\":\"b\",\"values\":{}}\n{\"run\":\"a\",\"values\":{\"p98\":1.5}}\n"),
        "2: p98: this run is asked for: p99; remove the line and it runs again"
    );
    assert_eq!(
        error("{\"run\":\"a\",\"value\":{}}\n"),
        "1: not a run of a testbed: unknown field `value`, expected `run` or `values`"
    );
    assert!(error("something else\n").starts_with("1: not a run of a testbed: expected"));
    // What is no line that was cut off stays.
    assert_eq!(error("my notes"), "1: not a run of a testbed");
}
