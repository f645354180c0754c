// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between the releases of CFQ with one service tree, and what
//! happens to queues when processes end, change or hold resources.

use crate::cfq_tree::{
    QUANTUM_1, both, cfq, each, prio, rt_beside_a_reader, said, table, ticks_of,
};
use crate::rig::{Rig, Setup, bio};
use crate::timetable::{Table, arrivals, check, series};
use blklab_block::CpuPolicy;
use blklab_block::sq::{Fetch, Queue};
use blklab_engine::TimerId;
use blklab_types::{BioFlags, PrioClass, Time};

/// The idle timer: the first that the scheduler registers.
const IDLE_TIMER: TimerId = TimerId(0);

/// The table on another kernel, all else as it is.
fn on(kernel: &'static str, t: Table) -> Table {
    Table {
        setup: Setup { kernel, ..t.setup },
        ..t
    }
}

fn at_ms(r: &mut Rig, ms: u64) {
    r.until(Time(ms * 1_000_000));
}

/// The stall of BL15: writes of p and y while the slice of x waits for a slow
/// request. Returns the queue and the tasks of p and y.
fn stalled(meta: bool) -> (Rig, [String; 3]) {
    let mut r = Setup {
        hz: 250,
        limits: |l| {
            l.queue_depth = 31;
            l.fetch = Fetch::CheckThenPeek;
        },
        ..cfq("2.6.26", &[])
    }
    .rig();
    let (x, p, y) = (r.task(), r.task(), r.task());
    for sector in [1000, 1008] {
        r.submit(x, &format!("R {sector}+8"));
        r.enter(Queue::unplug);
    }
    at_ms(&mut r, 100);
    r.complete(1000);
    r.events();
    let flags = if meta { BioFlags::META } else { BioFlags::NONE };
    let mut shown = Vec::new();
    for (task, ms, sector) in [(p, 108, 500_000), (y, 121, 900_000), (y, 132, 910_000)] {
        at_ms(&mut r, ms);
        let mut b = bio(task, &format!("WS {sector}+8"));
        b.flags |= flags;
        r.submit_bio(b);
        shown.push(r.events().join(", "));
    }
    for (i, ms) in [144, 158, 171, 184, 194].into_iter().enumerate() {
        at_ms(&mut r, ms);
        let mut b = bio(y, &format!("WS {}+8", 920_000 + 10_000 * i));
        b.flags |= flags;
        r.submit_bio(b);
    }
    let shown = [shown.remove(0), shown.remove(0), shown.remove(0)];
    (r, shown)
}

#[test]
fn bl15_stall() {
    let (mut r, shown) = stalled(false);
    assert_eq!(shown[0], "Q 500000+8, G 500000+8, P, I 500000+8");
    assert_eq!(shown[1], "Q 900000+8, G 900000+8, I 900000+8");
    assert_eq!(shown[2], "Q 910000+8, G 910000+8, I 910000+8");
    assert!(r.only("D").is_empty());
    at_ms(&mut r, 700);
    assert!(r.only("D").is_empty());
    // The slice of x is over: p is served in the completion.
    r.complete(1008);
    assert_eq!(r.only("D"), ["500000+8"]);
    at_ms(&mut r, 705);
    r.complete(500_000);
    assert!(r.only("D").is_empty());
    at_ms(&mut r, 711);
    assert!(r.only("D").is_empty(), "idling for p");
    // Two jiffies after jiffy 176; all seven at once.
    at_ms(&mut r, 712);
    assert_eq!(r.only("D").len(), 7);
}

#[test]
fn bl15_metadata_does_not_wait() {
    let (_, shown) = stalled(true);
    assert_eq!(
        shown[0],
        "Q 500000+8, G 500000+8, P, I 500000+8, D 500000+8"
    );
    assert_eq!(
        shown[1],
        "Q 900000+8, G 900000+8, P, I 900000+8, D 900000+8"
    );
}

#[test]
fn the_idle_class_waits_for_a_quiet_disk_up_to_2_6_24() {
    let alone = || table(|_| 5, arrivals("0 I i1 3000"));
    both(|| on("2.6.24", alone()), "i1@100");
    both(|| on("2.6.26", alone()), "i1@0");
    // The grace counts from the last completion of another class.
    let t = || table(|_| 5, arrivals("0 I i1 3000; 10 A a1 1000"));
    both(|| on("2.6.24", t()), "a1@10 i1@115");
    both(|| on("2.6.26", t()), "i1@0 a1@10");
}

#[test]
fn idling_beside_requests_at_the_device_up_to_2_6_26() {
    let t = || Table {
        depth: 2,
        ..table(
            |n| if n == "a2" { 50 } else { 5 },
            arrivals("0 A a1 1000; 0 A a2 1008; 1 B b1 5000"),
        )
    };
    // Armed beside the second request, it fires and expires A at 13.
    both(|| on("2.6.26", t()), "a1@0 a2@0 b1@13");
    both(|| on("2.6.27", t()), "a1@0 a2@0 b1@63");
    both(t, "a1@0 a2@0 b1@63");
}

#[test]
fn no_idling_on_devices_that_do_not_seek_from_2_6_28() {
    let t = |kernel| Table {
        setup: Setup {
            limits: |l| l.queue.rotational = false,
            ..cfq(kernel, &[])
        },
        ..table(|_| 5, arrivals("0 A a1 1000; 1 B b1 5000"))
    };
    both(|| t("2.6.27"), "a1@0 b1@13");
    both(|| t("2.6.28"), "a1@0 b1@5");
}

#[test]
fn five_requests_at_once_prove_queueing_up_to_2_6_27() {
    for (at_once, lost) in [(4, 0), (5, 1)] {
        let mut all = series(0, "A", "a", at_once, 1000, 8, "");
        all.extend(arrivals("1 B b1 90000"));
        let t = Table {
            depth: 8,
            ..table(|_| 5, all)
        };
        let said = said(on("2.6.27", t));
        assert_eq!(ticks_of(&said, "cfq101 idle=0").len(), lost, "{at_once}");
    }
}

#[test]
fn a_lone_queue_has_four_quanta_but_in_2_6_29() {
    let t = |kernel| Table {
        depth: 32,
        ..on(kernel, table(|_| 10, series(0, "A", "a", 20, 1000, 8, "")))
    };
    for kernel in ["2.6.22", "2.6.24", "2.6.28"] {
        both(|| t(kernel), "a1-a16@0 a17-a20@10");
    }
    both(|| t("2.6.29"), "a1-a20@0");
    for kernel in ["2.6.30", "2.6.31", "2.6.32"] {
        both(|| t(kernel), "a1-a16@0 a17@10 a18@20 a19@30 a20@40");
    }
}

#[test]
fn real_time_preempts_from_2_6_29() {
    // In 2.6.29 all of A has left for the dispatch list by then.
    let said = said(rt_beside_a_reader("2.6.29"));
    assert_eq!(ticks_of(&said, "cfq101 preempt"), [15]);
    for kernel in ["2.6.30", "2.6.32"] {
        each(
            || rt_beside_a_reader(kernel),
            [
                "a1@0 a2@10 t1@20 a3@38 +10 a13@138",
                "a1@0 a2@10 a3@20 t1@30 a4@48 +10 a13@138",
            ],
        );
    }
}

#[test]
fn requests_can_decline_idling_from_2_6_30() {
    let t = |kernel| {
        on(
            kernel,
            table(|_| 5, arrivals("0 A a1 1000ns; 1 B b1 500000")),
        )
    };
    both(|| t("2.6.29"), "a1@0 b1@13");
    both(|| t("2.6.30"), "a1@0 b1@5");
}

#[test]
fn cooperators_go_on_close_to_the_head_from_2_6_30() {
    let t = |kernel| {
        on(
            kernel,
            table(|_| 5, arrivals("0 A a1 1000; 1 C c1 700000; 2 B b1 1100")),
        )
    };
    both(|| t("2.6.29"), "a1@0 b1@13 c1@18");
    for kernel in ["2.6.30", "2.6.31", "2.6.32"] {
        both(|| t(kernel), "a1@0 b1@5 c1@18");
    }
    // Not those of another level.
    let other = |kernel| Table {
        processes: |p, ioc| {
            if p == "B" {
                ioc.ioprio = prio(PrioClass::BestEffort, 6);
            }
        },
        ..t(kernel)
    };
    both(|| other("2.6.30"), "a1@0 c1@13 b1@18");
}

/// A process idled for at the end of `first`; then it sends `second`.
fn idled_for(kernel: &'static str, second: &str) -> Rig {
    let mut r = Setup {
        limits: |l| l.fetch = Fetch::CheckThenPeek,
        ..cfq(kernel, &[])
    }
    .rig();
    let a = r.task();
    r.submit(a, "R 1000+8");
    r.enter(Queue::unplug);
    r.until_jiffy(5);
    r.complete(1000);
    r.settle();
    assert!(r.agenda.timers.is_pending(IDLE_TIMER));
    r.events();
    r.submit(a, second);
    r
}

#[test]
fn small_requests_do_not_end_idling_from_2_6_30() {
    for (kernel, second, goes) in [
        ("2.6.29", "R 1008+8", true),
        ("2.6.30", "R 1008+8", false),
        ("2.6.32", "R 1008+8", false),
        ("2.6.30", "R 1008+16", true),
        ("2.6.32", "R 1008+16", true),
    ] {
        let mut r = idled_for(kernel, second);
        assert_eq!(r.only("D").len(), usize::from(goes), "{kernel} {second}");
        assert_eq!(r.agenda.timers.is_pending(IDLE_TIMER), !goes);
        // Otherwise the plug's end sends it, and the timer leaves it alone.
        r.until_jiffy(9);
        assert_eq!(r.at_device.len(), 1);
        r.messages();
        r.until_jiffy(20);
        let said = r.messages().join("; ");
        assert!(!said.contains("expired"), "{said}");
    }
}

#[test]
fn small_requests_beside_others_end_idling() {
    let mut r = idled_for("2.6.30", "R 900000+8");
    let b = r.task();
    r.submit(b, "R 500000+8");
    r.enter(Queue::unplug);
    r.complete(900_000);
    r.settle();
    assert!(!r.at_device.is_empty() || r.agenda.timers.is_pending(IDLE_TIMER));
}

/// The pool of reads is full; the process idled for may allocate all the
/// same, where allocation looks at the right queue.
#[test]
fn allocation_beyond_the_limit_for_who_is_idled_for() {
    for (kernel, text, granted) in [
        ("2.6.28", "R 1008+8", false),
        ("2.6.30", "R 1008+8", true),
        ("2.6.32", "R 1008+8", true),
    ] {
        let mut r = Setup {
            limits: |l| {
                l.nr_requests = 8;
                l.batch_requests = 1;
                l.fetch = Fetch::CheckThenPeek;
            },
            ..cfq(kernel, &[])
        }
        .rig();
        let (a, b) = (r.task(), r.task());
        r.submit(a, "R 1000+8");
        r.enter(Queue::unplug);
        r.until_jiffy(5);
        r.complete(1000);
        r.settle();
        let mut sector = 1_000_000;
        while r.submit(b, &format!("R {sector}+8")) {
            sector += 100_000;
        }
        assert!(r.at_device.is_empty(), "{kernel}: idling for A");
        assert_eq!(r.submit(a, text), granted, "{kernel}");
    }
}

/// A is preempted with 65 of 100 ms left. B is less important and filed
/// between the two places that A can get.
#[test]
fn what_is_left_of_a_slice_counts_forward_from_2_6_32() {
    let t = |kernel| {
        let mut all = series(0, "A", "a", 7, 1000, 8, "");
        all.extend(arrivals("1 L b1 5000; 45 M m1 3000m"));
        Table {
            setup: cfq(kernel, QUANTUM_1),
            // Three levels, so there are no cooperators.
            processes: |p, ioc| {
                let level = match p {
                    "L" => 7,
                    "M" => 5,
                    _ => 4,
                };
                ioc.ioprio = prio(PrioClass::BestEffort, level);
            },
            ..table(|_| 10, all)
        }
    };
    let first = "a1@0 a2@10 a3@20 a4@30 a5@40 m1@50 ";
    both(|| t("2.6.28"), &format!("{first} b1@68 a6@86 a7@96"));
    both(|| t("2.6.31"), &format!("{first} b1@68 a6@86 a7@96"));
    both(|| t("2.6.32"), &format!("{first} a6@68 a7@78 b1@96"));
}

#[test]
fn the_first_seek_is_free_from_2_6_32() {
    for (kernel, lost) in [("2.6.28", 1), ("2.6.31", 1), ("2.6.32", 0)] {
        let said = said(on(kernel, table(|_| 5, arrivals("0 A a1 9000000"))));
        assert_eq!(ticks_of(&said, "cfq100 idle=0").len(), lost, "{kernel}");
    }
}

#[test]
fn seeking_ends_idling_in_2_6_32_only_without_low_latency() {
    for (tunables, lost) in [(&[][..], 0), (&[("low_latency", 0)][..], 1)] {
        let t = Table {
            setup: cfq("2.6.32", tunables),
            ..table(|_| 5, arrivals("0 A a1 1000; 6 A a2 900000"))
        };
        assert_eq!(ticks_of(&said(t), "cfq100 idle=0").len(), lost);
    }
}

#[test]
fn no_idling_into_the_end_of_a_slice_from_2_6_32() {
    // Think time 7 ms; at 17 the slice has 4 ms left.
    for (kernel, armed) in [("2.6.31", &[1, 9, 17][..]), ("2.6.32", &[1, 9])] {
        let t = Table {
            setup: cfq(kernel, &[("slice_sync", 20)]),
            ..table(|_| 1, arrivals("0 A a1 1000; 8 A a2 1008; 16 A a3 1016"))
        };
        assert_eq!(ticks_of(&said(t), "cfq arm_idle: 8"), armed, "{kernel}");
    }
}

#[test]
fn low_latency_holds_async_depth_down_in_2_6_32() {
    let t = |tunables| {
        let mut all = series(0, "F", "w", 4, 300_000, 8, "w");
        all.extend(arrivals("1 A a1 1000"));
        Table {
            setup: cfq("2.6.32", tunables),
            depth: 8,
            ..table(|_| 10, all)
        }
    };
    // One at a time, and the read waits for it.
    both(|| t(&[]), "w1@0 a1@10 w2@28 w3@38 w4@48");
    // Without: four, and the read waits until all are done.
    both(|| t(&[("low_latency", 0)]), "w1-w4@0 a1@40");
}

/// a1 is taken for its age. Then comes the preferred request of before, or
/// (2.6.32) the better neighbour of a1.
#[test]
fn the_next_request_follows_the_one_taken_for_its_age_from_2_6_32() {
    for (kernel, third) in [("2.6.31", "a2@145"), ("2.6.32", "a4@145")] {
        let all = "0 B b1 5000; 1 A a1 100000; 2 A a2 5100; 3 A a3 100100; 4 A a4 99000";
        let t = Table {
            setup: cfq(kernel, QUANTUM_1),
            ..table(|n| if n == "b1" { 140 } else { 5 }, arrivals(all))
        };
        assert_eq!(t.run()[..3], ["b1@0", "a1@140", third], "{kernel}");
    }
}

/// The FIFO place of a request that absorbs an older one changes in 2.6.32.
#[test]
fn merging_hands_on_the_age_from_2_6_32() {
    for (kernel, first) in [("2.6.31", "500+8"), ("2.6.32", "92+24")] {
        let mut r = Setup {
            limits: |l| {
                l.queue_depth = 1;
                l.unplug_thresh = 1000;
                l.fetch = Fetch::CheckThenPeek;
            },
            ..cfq(kernel, &[("slice_idle", 0)])
        }
        .rig();
        let (a, b) = (r.task(), r.task());
        r.submit(b, "R 480+8");
        r.enter(Queue::unplug);
        for (jiffy, text) in [(5, "R 108+8"), (6, "R 500+8"), (10, "R 92+8")] {
            r.until_jiffy(jiffy);
            r.submit(a, text);
        }
        r.events();
        r.submit(a, "R 100+8");
        assert_eq!(r.events(), ["Q 100+8", "F 100+8", "MM 92+24"], "{kernel}");
        // Old enough since 130 (or 131): the oldest goes first.
        r.until_jiffy(140);
        r.events();
        r.complete_first();
        assert_eq!(r.only("D"), [first], "{kernel}");
    }
}

#[test]
fn a_process_that_ends_is_not_idled_for() {
    for kernel in ["2.6.24", "2.6.28", "2.6.30", "2.6.32"] {
        let t = || {
            on(
                kernel,
                table(|_| 5, arrivals("0 A a1 1000; 1 B b1 500000; 7 A exit -")),
            )
        };
        both(t, "a1@0 b1@7");
    }
    // With its request still at the device: nobody to idle for.
    both(
        || table(|_| 5, arrivals("0 A a1 1000; 1 B b1 500000; 2 A exit -")),
        "a1@0 b1@5",
    );
}

#[test]
fn a_writer_that_ends_ends_the_shared_slice() {
    let mut all = series(0, "F", "w", 40, 200_000, 8, "w");
    all.extend(arrivals("3 F exit -"));
    let said = said(table(|_| 5, all));
    assert_eq!(ticks_of(&said, "cfq100 slice expired t=0")[0], 3);
    // The shared queue outlives its first user.
    assert!(said.iter().all(|(_, m)| !m.contains("put_queue")));
    let dispatched = said.iter().filter(|(_, m)| m.ends_with("dispatch_insert"));
    assert_eq!(dispatched.count(), 40);
}

#[test]
fn a_queue_lives_until_its_last_request() {
    for kernel in ["2.6.24", "2.6.28", "2.6.30", "2.6.32"] {
        let mut all = series(0, "A", "a", 3, 1000, 8, "");
        all.extend(arrivals("1 A exit -"));
        let said = said(on(kernel, table(|_| 5, all)));
        assert_eq!(ticks_of(&said, "cfq100 put_queue"), [15], "{kernel}");
    }
}

/// Changes a process between two requests and returns what was said after.
fn changed(kernel: &'static str, change: impl Fn(&mut blklab_block::IoContext)) -> Vec<String> {
    let mut r = cfq(kernel, &[]).rig();
    let a = r.task();
    let go = |r: &mut Rig, text: &str| {
        r.submit(a, text);
        r.enter(Queue::unplug);
        let next = r.agenda.timers.jiffies().0 + 5;
        r.until_jiffy(next);
        r.complete_first();
        r.settle();
    };
    go(&mut r, "R 1000+8");
    r.messages();
    change(r.io_context(a));
    r.until_jiffy(300);
    go(&mut r, "R 1008+8");
    r.until_jiffy(600);
    go(&mut r, "R 1016+8");
    r.messages()
}

#[test]
fn a_new_priority_counts_from_the_next_request() {
    let said = changed("2.6.28", |ioc| ioc.ioprio = prio(PrioClass::BestEffort, 0));
    assert!(
        said.contains(&"cfq100 set_slice=180".to_owned()),
        "{said:?}"
    );
    // Nice alone does not.
    let said = changed("2.6.28", |ioc| ioc.nice = -20);
    assert!(
        said.contains(&"cfq100 set_slice=100".to_owned()),
        "{said:?}"
    );
    // In the idle class there is no idling.
    let said = changed("2.6.28", |ioc| ioc.ioprio = prio(PrioClass::Idle, 7));
    assert!(!said.iter().any(|m| m.contains("arm_idle")), "{said:?}");
}

#[test]
fn a_new_priority_changes_the_shared_queue() {
    let mut r = cfq("2.6.28", &[]).rig();
    let (f, g) = (r.task(), r.task());
    r.io_context(g).ioprio = prio(PrioClass::BestEffort, 0);
    r.submit(g, "W 100000+8");
    r.submit(f, "W 200000+8");
    // F's next request goes to the queue of its new priority, which G made.
    r.io_context(f).ioprio = prio(PrioClass::BestEffort, 0);
    r.messages();
    r.submit(f, "W 900000+8");
    assert_eq!(r.messages()[0], "cfq101 insert_request");
    // Back again: the first one is still there.
    r.io_context(f).ioprio = prio(PrioClass::BestEffort, 4);
    r.submit(f, "W 500000+8");
    assert_eq!(r.messages()[0], "cfq100 insert_request");
}

/// Nobody has made the shared queue of the new priority: the old one takes
/// its place, for everybody.
#[test]
fn a_new_priority_of_ones_own_keeps_the_shared_queue() {
    let mut r = cfq("2.6.28", &[]).rig();
    let (f, g) = (r.task(), r.task());
    r.submit(f, "W 100000+8");
    r.io_context(f).ioprio = prio(PrioClass::BestEffort, 0);
    r.io_context(g).ioprio = prio(PrioClass::BestEffort, 0);
    r.messages();
    for task in [f, g] {
        r.submit(
            task,
            if task == f {
                "W 900000+8"
            } else {
                "W 500000+8"
            },
        );
        assert_eq!(r.messages(), ["cfq100 insert_request"]);
    }
}

/// The second request of I finds its queue and boosts it: the queue is not
/// expired for its class when that request completes, but idled for no more
/// than before.
#[test]
fn who_holds_a_file_system_is_not_left_in_the_idle_class() {
    for (exclusive, expired) in [(false, true), (true, false)] {
        let mut r = cfq("2.6.30", &[]).rig();
        let i = r.task();
        r.io_context(i).ioprio = prio(PrioClass::Idle, 7);
        r.submit(i, "R 1000+8");
        r.io_context(i).fs_exclusive = exclusive;
        // One at the device, one that was looked at, one that waits: the
        // queue stays active.
        for sector in [2000, 3000, 4000] {
            r.submit(i, &format!("R {sector}+8"));
        }
        r.enter(Queue::unplug);
        r.messages();
        r.complete_first();
        let said = r.messages();
        let timed_out = said.contains(&"cfq100 slice expired t=1".to_owned());
        assert_eq!(timed_out, expired, "{said:?}");
    }
}

#[test]
fn unset_priorities_follow_nice_and_policy() {
    let slice = |kernel, set: fn(&str, &mut blklab_block::IoContext)| {
        let t = Table {
            processes: set,
            ..on(kernel, table(|_| 5, arrivals("0 A a1 1000")))
        };
        let said = said(t);
        let length = said
            .iter()
            .find_map(|(_, m)| m.strip_prefix("cfq100 set_slice="));
        length.expect("a slice").to_owned()
    };
    assert_eq!(slice("2.6.28", |_, ioc| ioc.nice = -20), "180");
    assert_eq!(slice("2.6.28", |_, ioc| ioc.nice = 19), "40");
    let idles = |kernel| {
        let t = Table {
            processes: |_, ioc| ioc.policy = CpuPolicy::Idle,
            ..on(kernel, table(|_| 5, arrivals("0 A a1 1000")))
        };
        said(t).iter().any(|(_, m)| m.starts_with("cfq arm_idle"))
    };
    assert!(idles("2.6.24"), "best effort before the policy counted");
    assert!(!idles("2.6.28"));
}

#[test]
fn a_barrier_takes_everything_along() {
    for kernel in ["2.6.22", "2.6.24", "2.6.28", "2.6.30", "2.6.32"] {
        let mut r = Setup {
            limits: |l| {
                l.queue_depth = 1;
                l.unplug_thresh = 1000;
                l.queue.has_flush = true;
            },
            ..cfq(kernel, &[])
        }
        .rig();
        let (a, b, f) = (r.task(), r.task(), r.task());
        for text in ["R 9000+8", "R 1000+8", "R 5000+8"] {
            r.submit(a, text);
        }
        r.submit(b, "R 700000+8");
        for text in ["W 200000+8", "W 100000+8"] {
            r.submit(f, text);
        }
        r.submit(f, "WB 800000+8");
        assert_eq!(r.core().nr_sorted, 0, "{kernel}");
        let said = r.messages();
        assert!(
            said.contains(&"cfq forced_dispatch=6".to_owned()),
            "{kernel}: {said:?}"
        );
        r.submit(a, "R 2000+8");
        let mut rounds = 0;
        while !r.queue.is_idle() {
            rounds += 1;
            assert!(rounds < 100, "{kernel}: the queue drains");
            if r.at_device.is_empty() {
                r.enter(Queue::unplug);
                let next = r.agenda.timers.jiffies().0 + 10;
                r.until_jiffy(next);
            } else {
                r.complete_first();
            }
        }
    }
}

#[test]
fn equal_start_sectors_push_the_older_one_out() {
    for kernel in ["2.6.24", "2.6.28", "2.6.32"] {
        let mut r = Setup {
            limits: |l| {
                l.unplug_thresh = 1000;
                l.fetch = Fetch::CheckThenPeek;
            },
            ..cfq(kernel, &[])
        }
        .rig();
        let a = r.task();
        for text in ["R 100+8", "R 100+16", "R 50+8"] {
            r.submit(a, text);
        }
        assert_eq!((r.core().queue_head.len(), r.core().nr_sorted), (1, 2));
        r.enter(Queue::unplug);
        let mut got = r.only("D");
        for _ in 0..2 {
            r.complete_first();
            got.extend(r.only("D"));
        }
        assert_eq!(got[0], "100+8", "{kernel}");
        assert_eq!(got.len(), 3);
    }
}

/// Readers of one file, alternating: from 2.6.32 one that preempted for its
/// closeness keeps the mark, and is not chosen as a cooperator again.
#[test]
fn close_requests_preempt_and_mark_in_2_6_32() {
    let all = "0 A a1 1000; 6 A a2 1008; 12 A a3 1016; 18 B b1 1024; 26 A a4 1032";
    for kernel in ["2.6.30", "2.6.31", "2.6.32"] {
        let t = || on(kernel, table(|_| 5, arrivals(all)));
        let said = said(t());
        assert_eq!(ticks_of(&said, "cfq101 preempt"), [18], "{kernel}");
        check(&t().run()[..4], "a1@0 a2@6 a3@12 b1@18");
    }
}

#[test]
fn a_requeued_request_is_counted_anew() {
    let mut r = cfq("2.6.28", &[]).rig();
    let a = r.task();
    r.submit(a, "R 1000+8");
    r.enter(Queue::unplug);
    let rq = r.at_device.remove(0);
    r.messages();
    r.enter(|q, cx| q.requeue(cx, rq));
    assert_eq!(r.messages(), ["cfq100 deactivate rq, drv=0"]);
    r.enter(Queue::run_work);
    assert_eq!(r.messages(), ["cfq100 activate rq, drv=1"]);
    r.complete(1000);
    assert!(r.queue.is_idle());
}

/// Merging stays inside the queue of the submitter.
#[test]
fn merging_follows_queues() {
    for kernel in ["2.6.24", "2.6.28", "2.6.32"] {
        let mut r = Setup {
            limits: |l| l.unplug_thresh = 1000,
            ..cfq(kernel, &[])
        }
        .rig();
        let (a, b) = (r.task(), r.task());
        let mut did = |task, text: &str| {
            r.submit(task, text);
            r.events()[1].clone()
        };
        assert_eq!(did(a, "W 100+8"), "G 100+8");
        // Another process without requests here: none of its queues.
        assert_eq!(did(b, "W 108+8"), "G 108+8");
        // Now both use the shared queue.
        assert_eq!(did(b, "W 116+8"), "M 116+8");
        assert_eq!(did(a, "W 124+8"), "M 124+8");
        // A sync bio joins no async request; a read of another no read.
        let r1 = did(a, "R 5000+8");
        assert_eq!(r1, "G 5000+8");
        assert_eq!(did(b, "R 5008+8"), "G 5008+8");
        assert_eq!(did(a, "R 4992+8"), "F 4992+8");
    }
}
