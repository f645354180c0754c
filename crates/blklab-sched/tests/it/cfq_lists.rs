// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of CFQ with round-robin lists (2.6.16 to 2.6.21).

use crate::rig::Setup;
use crate::timetable::{Arrival, Table, arrivals, check, series};

fn table(kernel: &'static str, peek: bool) -> Table {
    Table {
        setup: Setup {
            kernel,
            sched: "cfq",
            ..Setup::default()
        },
        service: |_| 10,
        peek,
        ..Table::default()
    }
}

#[test]
fn v18_1_writes_are_not_preempted() {
    for peek in [false, true] {
        let mut t = table("2.6.18", peek);
        t.arrivals = series(0, "F", "w", 20, 200_000, 1024, "+1024w");
        t.arrivals.extend(arrivals("15 A r1 1000; 60 A r2 1008"));
        check(&t.run(), "w1@0 +10 w8@70 r1@80 r2@90 w9@100 +10 w20@210");
    }
}

#[test]
fn v18_2_two_readers() {
    for peek in [false, true] {
        let mut t = table("2.6.18", peek);
        t.arrivals = series(0, "A", "a", 6, 1000, 8, "");
        t.arrivals.extend(series(1, "B", "b", 6, 90_000, 8, ""));
        check(&t.run(), "a1@0 +10 a6@50 b1@60 +10 b6@110");
    }
}
