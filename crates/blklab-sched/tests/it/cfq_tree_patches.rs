// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ's patches on 2.6.28: taking back, and what later releases did instead.

use crate::cfq_tree::{TWO_READS, both, cfq, each, said, table, writes_and_reads};
use crate::rig::Setup;
use crate::timetable::{Table, arrivals, series};
use blklab_block::sq::Fetch;
use blklab_block::sq::Queue;

const FULL: &[&str] = &["preempt_pullback"];
const MINIMAL: &[&str] = &["preempt_pullback_minimal"];

fn patched(patches: &'static [&'static str], t: Table) -> Table {
    Table {
        setup: Setup { patches, ..t.setup },
        ..t
    }
}

const PJ_1: [&str; 2] = [
    "w1@0 w2@10 r1@20 w3@38 w4@48 w5@58 r2@68 w6@86 +10 w30@326",
    "w1@0 w2@10 w3@20 r1@30 w4@48 w5@58 w6@68 r2@78 w7@96 +10 w30@326",
];

#[test]
fn pj_1_what_the_driver_has_not_seen_is_taken_back() {
    for patches in [FULL, MINIMAL] {
        each(
            || patched(patches, table(|_| 10, writes_and_reads(TWO_READS))),
            PJ_1,
        );
    }
}

#[test]
fn pj_1_on_the_releases_that_the_patch_fits() {
    let t = |kernel| Table {
        setup: Setup {
            patches: FULL,
            ..cfq(kernel, &[])
        },
        ..table(|_| 10, writes_and_reads(TWO_READS))
    };
    for kernel in ["2.6.30", "2.6.31"] {
        each(|| t(kernel), PJ_1);
    }
    // 2.6.29 moves all of a lone queue at once. It is empty then and its slice
    // over: nothing is preempted, so nothing is taken back.
    both(|| t("2.6.29"), "w1@0 +10 w30@290 r1@300 r2@310");
}

#[test]
fn pj_2_with_the_settings_of_the_thread() {
    for patches in [FULL, MINIMAL] {
        let t = || Table {
            setup: cfq("2.6.28", &[("quantum", 1), ("slice_async_rq", 1)]),
            ..table(|_| 10, writes_and_reads(TWO_READS))
        };
        each(|| patched(patches, t()), PJ_1);
    }
}

#[test]
fn pj_3_a_slice_that_has_not_started_leaves_nothing() {
    for patches in [FULL, MINIMAL] {
        let t = || patched(patches, table(|_| 10, writes_and_reads("5 A r1 1000")));
        each(
            t,
            [
                "w1@0 r1@10 w2@28 +10 w30@308",
                "w1@0 w2@10 r1@20 w3@38 +10 w30@308",
            ],
        );
        let said = said(t());
        let at_5 = said.iter().filter(|(tick, _)| *tick == 5);
        assert!(at_5.clone().any(|(_, m)| m == "cfq101 preempt"));
        assert!(at_5.clone().all(|(_, m)| !m.starts_with("cfq100 resid")));
    }
}

/// With full accounting what was taken back is merged into again; with the
/// minimal one it is not found any more.
#[test]
fn merging_into_what_was_taken_back() {
    for (patches, merged) in [(FULL, true), (MINIMAL, false)] {
        let mut r = Setup {
            patches,
            limits: |l| {
                l.queue_depth = 1;
                l.unplug_thresh = 1000;
                l.fetch = Fetch::CheckThenPeek;
            },
            ..cfq("2.6.28", &[])
        }
        .rig();
        let (f, a) = (r.task(), r.task());
        for i in 1..=20 {
            r.submit(f, &format!("W {}+8", 100_000 * i));
        }
        r.enter(Queue::unplug);
        assert_eq!(r.only("D"), ["100000+8"]);
        assert_eq!(r.core().queue_head.len(), 15);
        // The read preempts; behind it the writes wait in their queue again.
        r.submit(a, "R 1000+8");
        assert_eq!((r.core().queue_head.len(), r.core().nr_sorted), (0, 20));
        r.events();
        r.submit(f, "W 200008+8");
        let events = r.events();
        let has_merged = events.contains(&"M 200008+8".to_owned());
        assert_eq!(has_merged, merged, "{events:?}");
        while !r.queue.is_idle() {
            if !r.at_device.is_empty() {
                r.complete_first();
            }
            r.until_jiffy(r.agenda.timers.jiffies().0 + 20);
        }
        assert_eq!(r.core().nr_sorted, 0);
    }
}

/// Requests of others, and what a barrier fixed, stay where they are.
#[test]
fn only_the_preempted_queue_takes_back() {
    let t = || {
        let mut all = arrivals("0 C c1 9000000; 0 D d1 8000000");
        all.extend(series(0, "F", "w", 3, 200_000, 8, "w"));
        all.extend(arrivals("70 A r1 1000"));
        patched(
            FULL,
            table(|n| if n.starts_with('w') { 10 } else { 30 }, all),
        )
    };
    // c1 and d1 lose their idle windows and share a batch; the writes follow
    // when both are done.
    both_contain(t, "w1@60", "r1@");
}

fn both_contain(t: impl Fn() -> Table, first: &str, second: &str) {
    for peek in [false, true] {
        let got = Table { peek, ..t() }.run();
        let at = |p: &str| got.iter().position(|g| g.starts_with(p));
        assert!(at(first) < at(second) && at(first).is_some(), "{got:?}");
        assert_eq!(got.len(), 6, "{got:?}");
    }
}

#[test]
fn single_dispatch_leaves_nothing_to_take_back() {
    each(
        || {
            patched(
                &["single_dispatch"],
                table(|_| 10, writes_and_reads(TWO_READS)),
            )
        },
        PJ_1,
    );
    // With both patches: the same.
    each(
        || {
            patched(
                &["single_dispatch", "preempt_pullback"],
                table(|_| 10, writes_and_reads(TWO_READS)),
            )
        },
        PJ_1,
    );
}

#[test]
fn single_dispatch_tests_the_limits_each_time() {
    let t = || Table {
        depth: 32,
        ..patched(
            &["single_dispatch"],
            table(|_| 10, series(0, "F", "w", 20, 200_000, 8, "w")),
        )
    };
    // Alone, four quanta, and one more for each that completes.
    both(t, "w1-w16@0 w17@10 w18@20 w19@30 w20@40");
    let without = || Table {
        depth: 32,
        ..table(|_| 10, series(0, "F", "w", 20, 200_000, 8, "w"))
    };
    both(without, "w1-w16@0 w17-w20@10");
}

fn writes_then_read() -> Table {
    let mut all = series(0, "F", "w", 4, 300_000, 8, "w");
    all.extend(arrivals("1 A a1 1000"));
    Table {
        depth: 8,
        ..table(|_| 10, all)
    }
}

#[test]
fn drain_async_holds_idling_queues_until_async_is_done() {
    both(writes_then_read, "w1-w4@0 a1@1");
    both(
        || patched(&["drain_async"], writes_then_read()),
        "w1-w4@0 a1@40",
    );
}

fn read_then_writes(count: u64) -> Table {
    let mut all = arrivals("0 A a1 1000");
    all.extend(series(1, "F", "w", count, 300_000, 8, "w"));
    Table {
        depth: 8,
        ..table(|n| if n == "a1" { 150 } else { 10 }, all)
    }
}

#[test]
fn async_ramp_counts_from_the_last_sync_completion() {
    // 150: the read is done; 158: idling ends. One at a time until 350.
    both(
        || patched(&["async_ramp"], read_then_writes(30)),
        "a1@0 w1@158 +10 w20@348 w21@358 w22@358 w23@368 +10 w30@438",
    );
}

#[test]
fn async_ramp_delayed_counts_from_the_last_late_sync_request() {
    // Vector 33-5: the read took 150 ms, more than 125.
    both(
        || patched(&["async_ramp_delayed"], read_then_writes(12)),
        "a1@0 w1@158 +10 w12@268",
    );
    // A read in time leaves the depth of ten with which the device started.
    let t = || {
        let mut all = arrivals("0 A a1 1000");
        all.extend(series(1, "F", "w", 12, 300_000, 8, "w"));
        Table {
            depth: 32,
            ..patched(&["async_ramp_delayed"], table(|_| 10, all))
        }
    };
    both(t, "a1@0 w1-w10@18 w11@28 w12@38");
    let ramp = |t: Table| patched(&["async_ramp"], t);
    let only_last_sync = || Table { ..ramp(t()) };
    both(only_last_sync, "a1@0 w1@18 +10 w10@108 w11@118 w12@128");
}

#[test]
fn patches_keep_every_request() {
    let all: &[&[&str]] = &[
        FULL,
        MINIMAL,
        &["single_dispatch", "drain_async", "async_ramp"],
        &["preempt_pullback", "drain_async", "async_ramp_delayed"],
    ];
    for patches in all {
        let t = || Table {
            depth: 4,
            ..patched(patches, table(|_| 3, writes_and_reads(TWO_READS)))
        };
        for peek in [false, true] {
            assert_eq!(Table { peek, ..t() }.run().len(), 32, "{patches:?}");
        }
    }
}
