// SPDX-License-Identifier: MIT OR Apache-2.0
//! What targets start from: nothing of it is wrong, and enough of it is read.

use blklab_exercise::{TARGETS, Target, every_format, seeds};

/// Feeds all seeds: how many are read.
fn feed(target: &Target) -> usize {
    let all = seeds(target);
    let seen: Vec<Option<u64>> = all.iter().map(|seed| (target.feed)(&seed.bytes)).collect();
    seen.into_iter().flatten().count()
}

#[test]
fn every_target_reads_its_seeds() {
    for target in &TARGETS {
        let read = feed(target);
        println!(
            "{}: {read} of {} seeds are read",
            target.name,
            seeds(target).len()
        );
        assert!(read > 0, "{} reads none of its seeds", target.name);
    }
}

#[test]
fn samples_of_all_formats_as_every_format() {
    for path in blklab_testkit::samples() {
        every_format(&std::fs::read(path).unwrap());
    }
}
