// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk against formulas, and against what must hold for any load.

mod disksim;
mod formulas;
mod measured;
mod parts;
mod semantics;
mod shingled;

use crate::host::{Finished, Host};
use blklab_types::{BioFlags, Op, SplitMix64, Time};

const C: &str = "sata-7200-2008";

fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let ratio = got / expected;
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{what}: {got:.3}, expected {expected:.3} ± {tolerance}"
    );
}

/// Keeps `depth` commands in flight until `count` are done; returns them.
fn closed_loop(
    host: &mut Host,
    depth: usize,
    count: usize,
    mut next: impl FnMut() -> (Op, u64, u32),
) -> Vec<Finished> {
    let (mut all, mut submitted) = (Vec::new(), 0);
    while all.len() < count {
        while host.nr_in_flight() < depth && submitted < count {
            let (op, sector, n) = next();
            all.extend(host.submit(op, BioFlags::NONE, sector, n));
            submitted += 1;
        }
        if all.len() < count {
            all.extend(host.step().expect("the device goes on"));
        }
    }
    all
}

fn ms(f: &Finished) -> f64 {
    (f.ended - f.submitted).ns() as f64 / 1e6
}

fn rate_mb_s(since: Time, until: Time, bytes: u64) -> f64 {
    bytes as f64 * 1e3 / (until - since).ns() as f64
}
