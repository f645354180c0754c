// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk against formulas, and against what must hold for any load.

mod disksim;
mod formulas;
mod parts;
mod semantics;

use crate::host::{Finished, Host};
use blklab_types::{BioFlags, Op, Time};

const C: &str = "sata-7200-2008";

/// A small generator for test loads (Steele, Lea and Flood's SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

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

fn rate_mb_s(since: Time, until: Time, bytes: u64) -> f64 {
    bytes as f64 * 1e3 / (until - since).ns() as f64
}
