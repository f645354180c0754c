// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of CFQ with one service tree, on 2.6.28.

use crate::rig::Setup;
use crate::timetable::{Arrival, Table, arrivals, check, series};
use blklab_block::IoContext;
use blklab_types::{IoPrio, PrioClass};

pub(crate) fn prio(class: PrioClass, level: u8) -> IoPrio {
    IoPrio { class, level }
}

/// Letters of processes with a priority of their own.
fn classes(process: &str, ioc: &mut IoContext) {
    match process {
        "T" => ioc.ioprio = prio(PrioClass::RealTime, 0),
        "I" => ioc.ioprio = prio(PrioClass::Idle, 7),
        "L" => ioc.ioprio = prio(PrioClass::BestEffort, 7),
        _ => {}
    }
}

pub(crate) fn cfq(kernel: &'static str, tunables: &'static [(&'static str, i64)]) -> Setup {
    Setup {
        kernel,
        sched: "cfq",
        tunables,
        ..Setup::default()
    }
}

pub(crate) fn table(service: fn(&str) -> u64, arrivals: Vec<Arrival>) -> Table {
    Table {
        setup: cfq("2.6.28", &[]),
        processes: classes,
        service,
        arrivals,
        ..Table::default()
    }
}

/// The same outcome for drivers that look before they check for a free slot
/// and for those that do not.
pub(crate) fn both(table: impl Fn() -> Table, expected: &str) {
    for peek in [false, true] {
        check(&Table { peek, ..table() }.run(), expected);
    }
}

/// One outcome without a look ahead, another with it.
pub(crate) fn each(table: impl Fn() -> Table, expected: [&str; 2]) {
    for (peek, expected) in [(false, expected[0]), (true, expected[1])] {
        check(&Table { peek, ..table() }.run(), expected);
    }
}

/// Messages by tick.
pub(crate) fn said(table: Table) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    table.run_with(|tick, r| all.extend(r.messages().into_iter().map(|m| (tick, m))));
    all
}

pub(crate) fn ticks_of(said: &[(u64, String)], message: &str) -> Vec<u64> {
    let fits = |(t, m): &(u64, String)| (m == message).then_some(*t);
    said.iter().filter_map(fits).collect()
}

#[test]
fn v28_1_idle_timer() {
    let t = || table(|_| 5, arrivals("0 A a1 1000; 7 A a2 1008; 30 A a3 1016"));
    both(t, "a1@0 a2@7 a3@30");
    let said = said(t());
    assert_eq!(ticks_of(&said, "cfq arm_idle: 8"), [5, 12, 35]);
    // The one armed at 5 is cancelled; the others fire while nobody waits.
    assert_eq!(ticks_of(&said, "cfq idle timer fired"), [20]);
    assert_eq!(ticks_of(&said, "cfq100 set_slice=100"), [5]);
    assert!(said.iter().all(|(_, m)| !m.contains("expired")));
}

#[test]
fn v28_2_two_sequential_readers() {
    fn next(done: &str, tick: u64) -> Option<Arrival> {
        let (name, n) = done.split_at(1);
        let n: u64 = n.parse().expect("a number");
        let (process, base) = if name == "a" {
            ("A", 1000)
        } else {
            ("B", 5000)
        };
        let (at, sector) = (tick + 1, base + 8 * n);
        let line = format!("{at} {process} {name}{} {sector}", n + 1);
        (n < 14).then(|| Arrival::new(&line))
    }
    let t = || Table {
        next,
        ..table(|_| 10, arrivals("0 A a1 1000; 0 B b1 5000"))
    };
    both(
        t,
        "a1@0 +11 a10@99 b1@110 +11 b10@209 a11@220 a12@231 a13@242 a14@253 b11@271 b12@282 \
         b13@293 b14@304",
    );
}

/// Thirty large writes at once, and two reads in between.
pub(crate) fn writes_and_reads(reads: &str) -> Vec<Arrival> {
    let mut all = series(0, "F", "w", 30, 201_024, 1024, "+1024w");
    all.extend(arrivals(reads));
    all
}

pub(crate) const TWO_READS: &str = "15 A r1 1000; 60 A r2 1008";
pub(crate) const QUANTUM_1: &[(&str, i64)] = &[("quantum", 1)];

#[test]
fn v28_3_a_batch_is_not_revocable() {
    each(
        || table(|_| 10, writes_and_reads(TWO_READS)),
        [
            "w1@0 +10 w16@150 r1@160 r2@170 w17@180 +10 w30@310",
            "w1@0 +10 w16@150 r1@160 r2@170 w17@188 +10 w30@318",
        ],
    );
}

#[test]
fn v28_3q_a_batch_of_one() {
    let t = || Table {
        setup: cfq("2.6.28", QUANTUM_1),
        ..table(|_| 10, writes_and_reads(TWO_READS))
    };
    both(
        t,
        "w1@0 w2@10 w3@20 w4@30 r1@40 w5@58 w6@68 w7@78 w8@88 r2@98 w9@116 +10 w30@326",
    );
}

#[test]
fn v28_4_async_levels() {
    let t = || {
        let mut all = series(0, "L", "l", 10, 500_008, 8, "w");
        all.extend(series(0, "F", "f", 10, 700_008, 8, "w"));
        Table {
            depth: 32,
            ..table(|_| 2, all)
        }
    };
    both(t, "l1-l4@0 f1-f4@0 f5-f8@10 f9@18 f10@18 l5-l10@18");
}

#[test]
fn v28_5_choice() {
    both(
        || {
            table(
                |_| 30,
                arrivals("0 B b1 5000; 1 A a1 6000; 2 A a2 1000; 3 A a3 7000"),
            )
        },
        "b1@0 a1@38 a3@68 a2@98",
    );
}

fn long_b(name: &str) -> u64 {
    if name == "b1" { 140 } else { 5 }
}

#[test]
fn v28_6_the_choice_by_age_is_sorted_away() {
    both(
        || {
            table(
                long_b,
                arrivals("0 B b1 5000; 1 A a1 1000; 2 A a2 6000; 3 A a3 7000"),
            )
        },
        "b1@0 a2@148 a3@153 a1@158",
    );
}

#[test]
fn v28_6c_the_choice_by_age_with_a_quantum_of_one() {
    let t = || {
        let all = "0 B b1 5000; 1 A a1 1000; 2 A a2 6000; 3 A a3 7000; 4 F w1 300000w";
        Table {
            setup: cfq("2.6.28", QUANTUM_1),
            ..table(long_b, arrivals(all))
        }
    };
    both(t, "b1@0 a1@148 a2@153 a3@158 w1@171");
}

#[test]
fn v28_7_boundary() {
    let all = "0 A x 5000; 1 A p 5200; 1 A q 3000; 1 A r 5100; 1 A u 4000; 1 A v 9000";
    both(
        || table(|_| 5, arrivals(all)),
        "x@0 r@5 p@10 v@15 q@20 u@25",
    );
}

pub(crate) fn rt_beside_a_reader(kernel: &'static str) -> Table {
    let mut all = series(0, "A", "a", 13, 1000, 8, "");
    all.extend(arrivals("15 T t1 3000"));
    Table {
        setup: cfq(kernel, QUANTUM_1),
        ..table(|_| 10, all)
    }
}

#[test]
fn v28_8_no_preemption_by_real_time() {
    both(
        || rt_beside_a_reader("2.6.28"),
        "a1@0 +10 a11@100 t1@110 a12@128 a13@138",
    );
}

#[test]
fn v28_9_idle_class() {
    let t = || {
        let mut all = series(0, "I", "i", 3, 3000, 8, "");
        all.extend(arrivals("1 A a1 1000; 2 A a2 1008"));
        table(|_| 10, all)
    };
    both(t, "i1@0 i2@10 i3@20 a1@30 a2@40");
}

#[test]
fn v28_10_metadata_preempts_and_what_is_left_counts_backward() {
    let t = || {
        let mut all = series(0, "A", "a", 12, 1000, 8, "");
        all.extend(arrivals("1 B b1 5000; 45 M m1 3000m"));
        Table {
            setup: cfq("2.6.28", QUANTUM_1),
            ..table(|_| 10, all)
        }
    };
    both(
        t,
        "a1@0 a2@10 a3@20 a4@30 a5@40 m1@50 b1@68 a6@86 +10 a12@146",
    );
    assert_eq!(ticks_of(&said(t()), "cfq100 resid=65"), [45]);
}

#[test]
fn v28_11_a_close_request_preempts() {
    let all = "0 A a1 1000; 6 A a2 1008; 12 A a3 1016; 18 B b1 1100; 20 A a4 1024";
    let t = || table(|_| 5, arrivals(all));
    both(t, "a1@0 a2@6 a3@12 b1@18 a4@31");
    assert_eq!(ticks_of(&said(t()), "cfq100 resid=87"), [18]);
}

#[test]
fn v28_12_think_time() {
    let t = || {
        let mut all: Vec<Arrival> = (0..5)
            .map(|k| Arrival::new(&format!("{} A a{} {}", 20 * k, k + 1, 1000 + 8 * k)))
            .collect();
        all.extend(arrivals("82 B b1 5000"));
        table(|_| 5, all)
    };
    both(t, "a1@0 a2@20 a3@40 a4@60 a5@80 b1@85");
    assert_eq!(ticks_of(&said(t()), "cfq100 idle=0"), [40]);
}

#[test]
fn v28_13_coarse_ticks() {
    let t = || Table {
        setup: Setup {
            hz: 250,
            ..cfq("2.6.28", &[])
        },
        ..table(|_| 2, arrivals("0 A a1 1000; 0 B b1 5000; 3 A a2 1008"))
    };
    both(t, "a1@0 a2@3 b1@7");
    let said = said(t());
    assert_eq!(ticks_of(&said, "cfq100 set_slice=25"), [2]);
    assert_eq!(ticks_of(&said, "cfq101 set_slice=25"), [9]);
    assert_eq!(ticks_of(&said, "cfq arm_idle: 2"), [2, 5, 9]);
}

/// A seeking process loses its idle window at once where the device is known
/// to queue: B comes before the 51st completion, C with it.
#[test]
fn v28_14_whether_the_device_queues() {
    for (depth, losers) in [
        (1, &["cfq101 idle=0"][..]),
        (8, &["cfq101 idle=0", "cfq102 idle=0"]),
    ] {
        let mut all = series(0, "A", "a", 100, 1000, 8, "");
        all.extend(arrivals("50 B b1 90000; 51 C c1 900000"));
        let t = Table {
            depth,
            ..table(|_| 1, all)
        };
        let said = said(t);
        let lost: Vec<&str> = said
            .iter()
            .map(|(_, m)| m.as_str())
            .filter(|m| m.ends_with("idle=0"))
            .collect();
        assert_eq!(lost, losers, "depth {depth}");
    }
}

#[test]
fn v28_15_seekers_share_a_batch() {
    let all = "0 A a1 9000000; 0 B b1 3000000; 0 C c1 6000000; 0 F w1 100000w; 0 F w2 100008w";
    both(
        || table(|_| 6, arrivals(all)),
        "b1@0 c1@6 a1@12 w1@18 w2@24",
    );
}

#[test]
fn v28_16_async_waits_for_sync() {
    let t = || {
        let mut all = series(0, "A", "a", 6, 1008, 8, "");
        all.extend(series(0, "B", "b", 3, 5008, 8, ""));
        all.extend(arrivals("1 F w1 300000w"));
        Table {
            depth: 4,
            ..table(|_| 4, all)
        }
    };
    both(t, "a1-a4@0 a5@4 a6@8 b1-b3@32 w1@52");
}

#[test]
fn v28_17_idling_beside_requests_the_driver_has_not_seen() {
    let t = || {
        let all = "0 A a0 1000; 0 A a1 1008; 0 A a2 1016; 1 B b0 6000; 1 B b1 6008; 1 B b2 6016";
        table(|_| 10, arrivals(all))
    };
    each(
        t,
        [
            "a0@0 a1@10 a2@20 b0@30 b1@40 b2@50",
            "a0@0 a1@10 a2@20 b0@38 b1@48 b2@58",
        ],
    );
}
