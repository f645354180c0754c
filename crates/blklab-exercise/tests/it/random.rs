// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random small experiments, where the models check themselves.

use blklab_exercise::run_twice;
use blklab_types::SplitMix64;

/// Random experiments; `BLKLAB_RANDOM_RUNS` asks for another number. Half of them, or
/// more, must be possible, and have so many events on the mean.
const RANDOM_RUNS: u64 = 400;
const EVENTS_MIN: u64 = 200;

#[test]
fn random_experiments_keep_the_models_assertions() {
    let events = |seed: u64| {
        let mut random = SplitMix64(seed << 32);
        let bytes: Vec<u8> = (0..32)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        run_twice(&bytes).map(|ran| ran.events)
    };
    let asked = std::env::var("BLKLAB_RANDOM_RUNS");
    let nr = asked.map_or(RANDOM_RUNS, |n| n.parse().expect("a number of runs"));
    let events: Vec<u64> = (0..nr).filter_map(events).collect();
    let nr_run = events.len() as u64;
    let total: u64 = events.iter().sum();
    println!("{nr_run} of {nr} experiments run, with {total} events");
    assert!(nr_run * 2 >= nr && total >= nr_run * EVENTS_MIN);
}
