// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawn experiments are experiments.

use super::given::given;
use super::*;
use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};

fn wanted() -> Wanted {
    Wanted {
        kernel: "6.12".to_owned(),
        schedulers: ["none", "mq-deadline", "kyber", "bfq"]
            .map(str::to_owned)
            .to_vec(),
    }
}

#[test]
fn a_seed_and_a_number_draw_the_same_and_most_can_be_run() {
    assert_eq!(draw(&wanted(), 1, 7), draw(&wanted(), 1, 7));
    assert_ne!(draw(&wanted(), 1, 7), draw(&wanted(), 1, 8));
    let planner = Planner::new(Sim::default());
    let all: Vec<Case> = (0..100).map(|n| draw(&wanted(), 3, n)).collect();
    let planned = all.iter().filter(|case| {
        let e = case.experiment(planner.catalogue()).expect("an experiment");
        planner.plan(&e).is_ok()
    });
    let planned = planned.count();
    assert!(planned >= 90, "{planned} of 100");
}

#[test]
fn a_case_is_the_same_in_one_file_and_in_two() {
    let case = draw(&wanted(), 1, 1);
    assert!(case.text(None).contains(&case.job_text()));
    assert!(case.text(Some("a.fio")).contains("job_file = \"a.fio\""));
}

#[test]
fn a_run_of_the_models_is_what_they_make_of_its_bios() {
    let planner = Planner::new(Sim::default());
    let cases = (0..40).map(|n| draw(&wanted(), 5, n));
    let mut same = 0;
    for case in cases {
        let e = case.experiment(planner.catalogue()).expect("an experiment");
        let Ok(plan) = planner.plan(&e) else {
            continue;
        };
        let options = RunOptions {
            kept_events_max: usize::MAX,
            ..RunOptions::default()
        };
        let output = run(&plan, &options).expect("it runs");
        let given = given(&output, &e);
        let Given::Agreed(agreement) = &given else {
            panic!("{}: {}", case.id, given.words());
        };
        assert!(agreement.order_share() > 0.0, "{}", case.id);
        same += usize::from(given.is_same() == Some(true));
        assert_eq!(
            given.is_same() == Some(true),
            given.words().ends_with("the same order")
        );
    }
    assert!(same >= 30, "{same} of 40");
}
