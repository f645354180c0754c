// SPDX-License-Identifier: MIT OR Apache-2.0
//! A few scenarios of each cause: what is planted is found, and where nothing is wrong
//! little is said.

use super::*;

fn examined(each: u64) -> Vec<Examined> {
    let all = scenarios(each, 7);
    let results = blklab::parallel::map(&all, blklab::parallel::cores(), examine);
    let results: Result<Vec<_>, _> = results.into_iter().collect();
    results.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn what_is_planted_is_found_and_little_else_is_said() {
    let all = examined(CAUSES.len() as u64);
    for one in &all {
        println!("{} {:?}", one.id, one.said);
    }
    let score = Score::new(&all);
    let (recall, precision) = (score.all.recall(), score.all.precision());
    assert!(recall >= Some(0.9), "recall {recall:?}");
    assert!(precision >= Some(0.9), "precision {precision:?}");
}

#[test]
fn the_same_seed_draws_the_same_scenario() {
    let all = scenarios(CAUSES.len() as u64, 3);
    let shown = |s: &Scenario| examine(s).map(|e| (e.experiment, e.said)).expect("it runs");
    assert_eq!(shown(&all[0]), shown(&all[0]));
    assert_ne!(shown(&all[0]).0, shown(&scenarios(1, 4)[0]).0);
}
