// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants of the seeds, the same ones every time. `BLKLAB_FUZZ_RUNS` asks for another
//! number of each target, `BLKLAB_FUZZ_TARGET` for one target alone, `BLKLAB_FUZZ_STREAM` for
//! others.

use blklab_exercise::{Mutants, TARGETS, search};
use std::env::var;
use std::path::Path;

const RUNS: u64 = 50;

#[test]
fn mutants_of_every_target() {
    let number = |name| var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let runs = number("BLKLAB_FUZZ_RUNS").unwrap_or(RUNS);
    let stream = number("BLKLAB_FUZZ_STREAM").unwrap_or(1);
    let only = var("BLKLAB_FUZZ_TARGET").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let mut wrong = Vec::new();
    for target in TARGETS.iter().filter(|t| wanted(t.name)) {
        let mut mutants = Mutants::new(target, stream);
        let mut read = 0;
        for run in 1..=runs {
            let bytes = mutants.draw();
            let fault = search::fault(|| read += u64::from((target.feed)(&bytes).is_some()));
            if let Some(fault) = fault {
                let name = format!("{}-{stream}-{run}", target.name);
                let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
                std::fs::write(&path, &bytes).unwrap();
                wrong.push(format!("{}: {fault}", path.display()));
            }
        }
        println!("{}: {read} of {runs} are read", target.name);
    }
    assert!(
        wrong.is_empty(),
        "{} inputs:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
