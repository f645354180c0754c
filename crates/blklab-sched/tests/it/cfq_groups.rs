// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of CFQ with groups: 2.6.33, 2.6.34, 3.7 and 4.19.

use crate::rig::Setup;
use crate::timetable::{Arrival, Table, arrivals, check, series};

/// A table on a kernel at 1000 ticks per second; 4.19 at 250, in ms.
fn table(kernel: &'static str, depth: u32, peek: bool) -> Table {
    let new = kernel.starts_with('4');
    Table {
        setup: Setup {
            kernel,
            sched: "cfq",
            hz: if new { 250 } else { 1000 },
            ..Setup::default()
        },
        tick_ns: 1_000_000,
        depth,
        peek,
        ..Table::default()
    }
}

/// The same outcome with both kinds of driver.
fn both(make: impl Fn(bool) -> Table, expected: &str) {
    for peek in [false, true] {
        check(&make(peek).run(), expected);
    }
}

fn writes_then_reads() -> Vec<Arrival> {
    let mut all = series(0, "F", "w", 8, 300_000, 8, "w");
    all.extend(series(5, "A", "a", 3, 1000, 8, ""));
    all
}

fn tens(t: Table) -> Table {
    Table {
        service: |_| 10,
        ..t
    }
}

#[test]
fn v33_1_preemption_without_effect() {
    both(
        |peek| Table {
            arrivals: writes_then_reads(),
            ..tens(table("2.6.33", 1, peek))
        },
        "w1@0 +10 w8@70 a1@80 a2@90 a3@100",
    );
}

#[test]
fn v37_1_preemption_ends_the_workload() {
    for kernel in ["3.7", "4.19"] {
        let run = |peek| {
            Table {
                arrivals: writes_then_reads(),
                ..tens(table(kernel, 1, peek))
            }
            .run()
        };
        check(&run(false), "w1@0 a1@10 a2@20 a3@30 w2@48 +10 w8@108");
        check(&run(true), "w1@0 w2@10 a1@20 a2@30 a3@40 w3@58 +10 w8@108");
    }
}

#[test]
fn v33_2_busy_wait() {
    both(
        |peek| Table {
            arrivals: series(0, "F", "w", 24, 300_000, 8, "w"),
            ..tens(table("2.6.33", 8, peek))
        },
        "w1-w8@0 w9@10 +10 w24@160",
    );
}

#[test]
fn v33_3_five_readers_share_the_target_latency() {
    let mut all = Vec::new();
    for (j, (process, name)) in [("A", "a"), ("B", "b"), ("C", "c"), ("D", "d"), ("E", "e")]
        .into_iter()
        .enumerate()
    {
        all.extend(series(
            0,
            process,
            name,
            59,
            1000 + 100_000 * j as u64,
            8,
            "",
        ));
    }
    let got = Table {
        arrivals: all,
        ..tens(table("2.6.33", 1, false))
    }
    .run();
    check(
        &got[..38],
        "a1@0 +10 a9@80 b1@90 +10 b7@150 c1@160 +10 c7@220 d1@230 +10 d7@290 e1@300 +10 e7@360 \
         a10@370",
    );
}

#[test]
fn v33_4_close_beside_a_seeking_queue() {
    let run = |peek| {
        Table {
            arrivals: arrivals(
                "0 A a1 1000000; 40 A a2 5000000; 80 A a3 2000000; 120 A a4 7000000;
                 160 A a5 3000000; 165 B b1 9000000; 175 B b2 4000000; 182 B b3 8000000;
                 190 B b4 1000",
            ),
            ..tens(table("2.6.33", 1, peek))
        }
        .run()
    };
    let a = "a1@0 a2@40 a3@80 a4@120 a5@160";
    check(&run(false), &format!("{a} b2@175 b3@185 b1@195 b4@205"));
    check(&run(true), &format!("{a} b2@175 b1@185 b3@195 b4@205"));
}

#[test]
fn v33_5_ramp_after_a_late_read() {
    both(
        |peek| {
            let mut all = arrivals("0 A a1 1000");
            all.extend((0..12).map(|i| Arrival::new(&format!("1 F w{i} {}w", 300_000 + 8 * i))));
            Table {
                arrivals: all,
                service: |name| if name == "a1" { 150 } else { 10 },
                ..table("2.6.33", 8, peek)
            }
        },
        "a1@0 w0@158 +10 w11@268",
    );
}

fn two_bursts() -> Vec<Arrival> {
    let mut all = series(0, "A", "a", 30, 1000, 8, "");
    all.extend(series(0, "B", "b", 30, 500_000, 8, ""));
    all
}

/// The bursts on a kernel, with patches and tunables.
fn bursts(
    kernel: &'static str,
    patches: &'static [&'static str],
    tunables: &'static [(&'static str, i64)],
    expected: &str,
) {
    both(
        |peek| {
            let mut t = Table {
                arrivals: two_bursts(),
                service: |_| 3,
                ..table(kernel, 32, peek)
            };
            t.setup.patches = patches;
            t.setup.tunables = tunables;
            t
        },
        expected,
    );
}

const HARD: &str = "a1-a4@0 a5@3 +3 a30@78 b1-b30@98";
const SOFT: &str = "a1-a4@0 a5-a9@3 a10@6 +3 a23@45 a24@51 a25@54 a26@60 a27@63 a28@69 a29@75 \
                    a30@78 b1-b30@98";

#[test]
fn v33_6_hard_quantum() {
    bursts("2.6.33", &[], &[], HARD);
}

#[test]
fn v34_6_soft_quantum() {
    bursts("2.6.34", &[], &[], SOFT);
}

#[test]
fn pq_quantum_rules() {
    let linear = "a1-a4@0 a5-a14@3 a15@6 a16@12 a17@15 a18@21 a19@27 a20@30 a21@36 a22@39 a23@45 \
                  a24@51 a25@54 a26@60 a27@63 a28@69 a29@75 a30@78 b1-b30@98";
    let open = "a1-a4@0 a5-a30@3 b1-b30@98";
    bursts("2.6.33", &["quantum_hard"], &[], HARD);
    bursts("2.6.33", &["quantum_tweak1"], &[], open);
    bursts("2.6.33", &["quantum_log"], &[], open);
    bursts("2.6.33", &["quantum_sqrt"], &[], open);
    bursts("2.6.33", &["quantum_tweak"], &[], linear);
    bursts(
        "2.6.33",
        &["quantum_tweak1", "quantum_tweak2"],
        &[("low_latency", 0)],
        "a1-a30@0 b1-b30@98",
    );
    bursts("2.6.33", &["quantum_soft"], &[("quantum", 8)], SOFT);
    bursts("2.6.34", &["quantum_soft"], &[], SOFT);
    bursts("2.6.34", &["quantum_hard"], &[("quantum", 4)], HARD);
}

#[test]
fn v419_2_iops_mode() {
    both(
        |peek| {
            let mut all = series(0, "A", "a", 6, 1000, 1000, "");
            all.extend(series(0, "B", "b", 6, 500_000, 1000, ""));
            all.extend(series(0, "F", "w", 3, 900_000, 1000, "w"));
            let mut t = Table {
                arrivals: all,
                service: |_| 1,
                ..table("4.19", 32, peek)
            };
            t.setup.limits = |l| l.rotational = false;
            t
        },
        "a1-a4@0 a5@1 a6@1 b1-b6@1 w1-w3@12",
    );
}

#[test]
fn v419_3_a_small_request_leaves_the_timer_armed() {
    both(
        |peek| Table {
            arrivals: arrivals("0 A a1 1000; 13 A a2 1008+4; 15 B b1 700000; 60 A a3 1012"),
            ..tens(table("4.19", 1, peek))
        },
        "a1@0 a2@13 b1@23 a3@60",
    );
}
