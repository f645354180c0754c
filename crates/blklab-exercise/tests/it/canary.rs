// SPDX-License-Identifier: MIT OR Apache-2.0
//! A canary proves that each target finds a planted fault.

use blklab_exercise::TARGETS;
use blklab_exercise::canary::Canary;
use std::panic;

/// Mutants until it is found, at most.
const RUNS_MAX: u64 = 1000;

#[test]
fn every_target_finds_a_planted_fault() {
    // Only what is thrown counts, not that it is printed.
    panic::set_hook(Box::new(|_| {}));
    let missed: Vec<&str> = TARGETS
        .into_iter()
        .filter(|target| match Canary::armed(*target).find(RUNS_MAX) {
            Some(runs) => {
                println!("{}: found by mutant {runs}", target.name);
                false
            }
            None => true,
        })
        .map(|target| target.name)
        .collect();
    let _ = panic::take_hook();
    assert!(missed.is_empty(), "targets that miss it: {missed:?}");
}
