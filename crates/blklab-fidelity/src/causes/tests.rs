// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario of each class: what is planted is found, and where nothing is wrong little is
//! said.

use super::*;
use std::sync::Arc;

fn bench() -> Bench {
    let planner = blklab::targets::planner(blklab::scheduler::Schedulers::default());
    Bench::new(planner, "sim", Arc::default())
}

fn wanted(count: u64, seed: u64) -> Wanted {
    Wanted {
        seed,
        count,
        classes: Vec::new(),
        kernel: None,
        target: "sim",
    }
}

fn all(wanted: &Wanted) -> Vec<Scenario> {
    scenarios(wanted).unwrap_or_else(|e| panic!("{e}")).0
}

#[test]
fn what_is_planted_is_found_and_little_else_is_said() {
    let rows = CLASSES.len() + layers::PAIRS.len() + clean::SORTS.len();
    // `blklab conform --causes` runs them all, and more of each.
    let all: Vec<Scenario> = all(&wanted(rows as u64, 7))
        .into_iter()
        .step_by(3)
        .collect();
    let bench = bench();
    let results = blklab::parallel::map(&all, blklab::parallel::cores(), |s| examine(&bench, s));
    let examined: Vec<Examined> = results
        .into_iter()
        .map(|r| {
            r.unwrap_or_else(|e| panic!("{e}"))
                .expect("nobody stops it")
        })
        .collect();
    for one in &examined {
        println!("{} {:?} {:?}", one.id, one.judged, one.said);
    }
    let score = Score::new(&examined);
    let full = score.forms[&Form::Full];
    assert!(full.recall() >= Some(0.9), "{full:?}");
    assert!(full.precision() >= Some(0.9), "{full:?}");
    assert!(score.all.recall() >= Some(0.8), "{:?}", score.all);
    assert!(
        score.all.nothing_wrong_share() <= Some(0.02),
        "{:?}",
        score.all
    );
}

#[test]
fn the_same_seed_draws_the_same_scenario() {
    let (bench, all) = (bench(), all(&wanted(1, 3)));
    let shown = |s: &Scenario| {
        let one = examine(&bench, s).unwrap_or_else(|e| panic!("{e}"));
        one.map(|e| (e.experiment, e.said))
    };
    assert_eq!(shown(&all[0]), shown(&all[0]));
    let other = &scenarios(&wanted(1, 4)).unwrap_or_else(|e| panic!("{e}")).0[0];
    assert_ne!(shown(&all[0]), shown(other));
}

#[test]
fn what_a_kernel_has_not_is_listed_with_the_reason() {
    let wanted = Wanted {
        kernel: Some("7.3".to_owned()),
        ..wanted(200, 1)
    };
    let (all, not_drawn) = scenarios(&wanted).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        not_drawn.iter().any(|u| u.class == "plug-timer"),
        "{not_drawn:?}"
    );
    assert!(all.iter().all(|s| !s.id.starts_with("plug-timer")));
    for s in &all {
        let drawn = s.draw(0);
        assert!(
            drawn.causes.iter().all(|(_, p)| p.setup.kernel == "7.3"),
            "{}",
            s.id
        );
    }
    let no = Wanted {
        classes: vec!["idlign".to_owned()],
        ..wanted
    };
    let why = scenarios(&no).expect_err("there is none").to_string();
    assert!(why.contains("did you mean 'idling'"), "{why}");
}
