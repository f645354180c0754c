// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of CFQ with round-robin lists (2.6.16 to 2.6.21), worked by hand.
//!
//! Unless said: one device that takes one request at a time, 10 ticks each,
//! 1000 ticks per second, best effort by nice 0 (level 4), slices of 100 and
//! 40 ticks, and the rules are those of 2.6.18.

use crate::rig::{Rig, Setup};
use crate::timetable::{Arrival, Table, arrivals, check, series};
use blklab_block::IoContext;
use blklab_block::sq::Queue;
use blklab_types::{IoPrio, PrioClass};

const BOTH: [bool; 2] = [false, true];

fn table(kernel: &'static str, peek: bool, what: Vec<Arrival>) -> Table {
    Table {
        setup: Setup {
            kernel,
            sched: "cfq",
            ..Setup::default()
        },
        service: |_| 10,
        peek,
        arrivals: what,
        ..Table::default()
    }
}

/// Runs a timetable on both kinds of driver.
fn both(kernel: &'static str, what: &str, expected: &str) {
    for peek in BOTH {
        check(&table(kernel, peek, arrivals(what)).run(), expected);
    }
}

/// One request per round, and every slice is over when it completes: the
/// order of queues becomes visible request by request.
const ROUNDS_OF_ONE: &[(&str, i64)] = &[("quantum", 1), ("slice_sync", 1)];

fn with(t: Table, tunables: &'static [(&'static str, i64)]) -> Table {
    Table {
        setup: Setup {
            tunables,
            ..t.setup
        },
        ..t
    }
}

fn prio(class: PrioClass, level: u8) -> IoPrio {
    IoPrio { class, level }
}

/// Processes I are idle class; digits in names are best-effort levels.
fn classes(name: &str, ioc: &mut IoContext) {
    let level = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if name.starts_with('I') {
        ioc.ioprio = prio(PrioClass::Idle, 7);
    } else if let Ok(level) = level.parse() {
        ioc.ioprio = prio(PrioClass::BestEffort, level);
    }
}

#[test]
fn v18_1_writes_are_not_preempted() {
    for peek in BOTH {
        let mut what = series(0, "F", "w", 20, 200_000, 1024, "+1024w");
        what.extend(arrivals("15 A r1 1000; 60 A r2 1008"));
        let got = table("2.6.18", peek, what).run();
        check(&got, "w1@0 +10 w8@70 r1@80 r2@90 w9@100 +10 w20@210");
    }
}

#[test]
fn v18_2_two_readers() {
    for peek in BOTH {
        let mut what = series(0, "A", "a", 6, 1000, 8, "");
        what.extend(series(1, "B", "b", 6, 90_000, 8, ""));
        let got = table("2.6.18", peek, what).run();
        check(&got, "a1@0 +10 a6@50 b1@60 +10 b6@110");
    }
}

/// Levels are visited 0; 0 1; 0 1 2; 0 1 2 3; ...: the cursor stands at
/// (0..0), finds A at 0: (0..1), A at 0: (1..1), B at 1: (0..2), A, B, C:
/// (0..3), A (its last), B, C, nothing at 3: (0..4), B (its last), C, nothing
/// at 3 and 4, C.
#[test]
fn the_cursor_comes_to_better_levels_more_often() {
    for kernel in ["2.6.18", "2.6.20"] {
        for peek in BOTH {
            let mut what = series(0, "C2", "c", 4, 9000, 8, "");
            what.extend(series(0, "B1", "b", 4, 5000, 8, ""));
            what.extend(series(0, "A0", "a", 4, 1000, 8, ""));
            let mut t = with(table(kernel, peek, what), ROUNDS_OF_ONE);
            t.processes = classes;
            check(
                &t.run(),
                "a1@0 a2@10 b1@20 a3@30 b2@40 c1@50 a4@60 b3@70 c2@80 b4@90 c3@100 c4@110",
            );
        }
    }
}

/// 2.6.18: A served at 0, B at 10. N comes at 15 and goes before A (served
/// until 10) as it never was. B follows at 20 behind A: N A B.
/// 2.6.20: both are new at 0; a new one goes before the last of the new ones,
/// so B A. B is filed at 10 as served. N is new, but a served one leads the
/// list: to the tail. A follows: B N A.
#[test]
fn filing_by_service_and_by_novelty() {
    let what = "0 A a1 1000; 0 A a2 1008; 0 A a3 1016; 0 B b1 5000; 0 B b2 5008; 0 B b3 5016; \
                15 N n1 9000";
    let run = |kernel| with(table(kernel, false, arrivals(what)), ROUNDS_OF_ONE).run();
    check(&run("2.6.18"), "a1@0 b1@10 n1@20 a2@30 b2@40 a3@50 b3@60");
    check(&run("2.6.20"), "b1@0 a1@10 b2@20 n1@30 a2@40 b3@50 a3@60");
}

/// The idle class is served one request per round; nothing completed yet, so
/// there is no grace. A preempts it at 5. A is waited for from 20 to 28; then
/// the disk has to be quiet until 20 + 100. With a driver that fetches first,
/// i2 has left the scheduler at 0 and everything is one request later.
#[test]
fn the_idle_class_is_preempted_and_waits_for_a_quiet_disk() {
    for (peek, expected) in [
        (false, "i1@0 a1@10 i2@120 i3@130"),
        (true, "i1@0 i2@10 a1@20 i3@130"),
    ] {
        for kernel in ["2.6.18", "2.6.20"] {
            let mut what = series(0, "I", "i", 3, 3000, 8, "");
            what.extend(arrivals("5 A a1 1000"));
            let mut t = table(kernel, peek, what);
            t.processes = classes;
            check(&t.run(), expected);
        }
    }
}

/// The grace of i1 runs from 10 to 110; a2 stops its timer, and the grace
/// begins anew at 70.
#[test]
fn the_grace_of_the_idle_class_begins_anew() {
    for peek in BOTH {
        let what = arrivals("0 A a1 1000; 1 I i1 3000; 60 A a2 1008");
        let mut t = table("2.6.18", peek, what);
        t.processes = classes;
        check(&t.run(), "a1@0 a2@60 i1@170");
    }
}

/// 2.6.16: P's first request is an async write, so its read goes to the same
/// queue, is served in the same slice (end 40) and is not waited for; Q
/// follows at once. 2.6.18: the read has a queue of its own, which is waited
/// for from 30 to 38.
#[test]
fn one_queue_per_process_in_2_6_16() {
    let what = "0 P w1 5000w; 0 P w2 5100w; 1 P r1 1000; 2 Q q1 9000; 12 Q q2 9008";
    let run = |kernel| table(kernel, false, arrivals(what)).run();
    check(&run("2.6.16"), "w1@0 w2@10 r1@20 q1@30 q2@40");
    check(&run("2.6.18"), "w1@0 w2@10 r1@20 q1@38 q2@48");
}

/// Without idling, 2.6.16: a1 starts in its own insertion as no queue is
/// active, then a round of four as one request is less than `max_depth`. Five
/// at the device are too many for a6, until four completed (three, where
/// `max_depth` is 3). 2.6.18 has no such limit.
#[test]
fn max_depth_holds_back_queues_without_idling() {
    for peek in BOTH {
        let run = |kernel, tunables| {
            let what = series(0, "A", "a", 6, 1000, 8, "");
            let mut t = with(table(kernel, peek, what), tunables);
            t.depth = 8;
            t.run()
        };
        let off: &[_] = &[("slice_idle", 0)];
        check(&run("2.6.16", off), "a1-a5@0 a6@40");
        check(&run("2.6.18", off), "a1-a6@0");
        let deeper: &[_] = &[("slice_idle", 0), ("max_depth", 3)];
        check(&run("2.6.16", deeper), "a1-a5@0 a6@30");
        let idling: &[_] = &[];
        check(&run("2.6.16", idling), "a1-a6@0");
    }
}

/// B runs until 140. a1 (from 1) is older than 125 then and is picked first,
/// but sorting puts it behind a2 and a3, as the head is at 5008. In rounds of
/// one the pick stands.
#[test]
fn the_oldest_goes_first_once() {
    let service = |name: &str| if name == "b1" { 140 } else { 5 };
    let what = "0 B b1 5000; 1 A a1 1000; 2 A a2 6000; 3 A a3 7000";
    let run = |tunables| {
        let mut t = with(table("2.6.18", false, arrivals(what)), tunables);
        t.service = service;
        t.run()
    };
    check(&run(&[]), "b1@0 a2@140 a3@145 a1@150");
    check(&run(&[("quantum", 1)]), "b1@0 a1@140 a2@145 a3@150");
}

/// At 140 a1 is exactly 125 old, which is not enough: a2, the nearest to
/// 5008, goes. The look did not count, so at 145 a1 goes before a3.
#[test]
fn expiry_is_strict_and_a_fruitless_look_does_not_count() {
    let mut t = with(
        table(
            "2.6.18",
            false,
            arrivals("0 B b1 5000; 15 A a1 9000; 15 A a2 6000; 16 A a3 6100"),
        ),
        &[("quantum", 1)],
    );
    t.service = |name| if name == "b1" { 140 } else { 5 };
    check(&t.run(), "b1@0 a2@140 a1@145 a3@150");
}

/// Two async queues, by explicit priorities. F (level 4) is found first and
/// keeps the disk until its last write completes at 12. L (level 7) may move
/// 2 x 2 x 1 = 4 requests per slice, expires, and is next again at once.
#[test]
fn async_queues_by_priority() {
    for peek in BOTH {
        let mut what = series(0, "L7", "l", 6, 500_000, 8, "w");
        what.extend(series(0, "F4", "f", 6, 700_000, 8, "w"));
        let mut t = table("2.6.18", peek, what);
        t.processes = classes;
        t.depth = 32;
        t.service = |_| 2;
        check(&t.run(), "f1-f6@0 l1-l6@12");
    }
}

/// 2.6.17: processes without a priority share the async queue, and all their
/// writes are sorted. 2.6.16: each has its own, and V's come after U's.
#[test]
fn async_queues_are_shared_from_2_6_17() {
    let run = |kernel| {
        let mut what = series(0, "U", "u", 5, 1000, 8, "w");
        what.extend(series(0, "V", "v", 5, 500, 8, "w"));
        let mut t = with(table(kernel, false, what), &[("quantum", 100)]);
        t.depth = 32;
        t.run()
    };
    check(&run("2.6.17"), "v1-v5@0 u1-u5@0");
    check(&run("2.6.16"), "u1-u5@0 v1-v5@0");
}

/// A gets real time at 15 and its queue moves to the current list with its
/// next request; then it is always first. Within A, with the head at 5008
/// (end of b1): a4 at 1024 is nearer than a2 at 1008, and then a3 than a2.
#[test]
fn a_change_of_priority_takes_effect_at_the_next_request() {
    let mut what = series(0, "A", "a", 3, 1000, 8, "");
    what.extend(series(0, "B", "b", 3, 5000, 8, ""));
    what.extend(arrivals("15 A ioprio rt4; 15 A a4 1024"));
    let t = with(table("2.6.18", false, what), ROUNDS_OF_ONE);
    check(&t.run(), "a1@0 b1@10 a4@20 a3@30 a2@40 b2@50 b3@60");
}

/// A's exit at 12 ends the wait that would last until 18.
#[test]
fn an_exit_ends_the_wait() {
    both("2.6.18", "0 A a1 1000; 1 B b1 5000", "a1@0 b1@18");
    both(
        "2.6.18",
        "0 A a1 1000; 1 B b1 5000; 12 A exit -",
        "a1@0 b1@12",
    );
    // With a2 left behind, which is served in its turn: the slice goes at 5,
    // and B, which is new, comes first. A driver that fetches first has a2.
    let what = "0 A a1 1000; 1 A a2 1008; 1 B b1 5000; 5 A exit -";
    for (peek, expected) in [(false, "a1@0 b1@10 a2@28"), (true, "a1@0 a2@10 b1@20")] {
        check(&table("2.6.20", peek, arrivals(what)).run(), expected);
    }
}

/// 2.6.18: A's write shows that A does not come back soon; the wait (10 to
/// 18) ends and B, which came first, is next, then waited for until 30.
/// 2.6.16: the write goes to A's own queue, which is active and is waited for
/// once more, 22 to 32.
#[test]
fn an_async_write_of_the_process_that_is_waited_for() {
    let what = "0 A a1 1000; 1 B b1 5000; 12 A w1 90000w";
    both("2.6.18", what, "a1@0 b1@12 w1@30");
    both("2.6.16", what, "a1@0 w1@12 b1@32");
}

/// The wait begins when somebody else asks: 8 ms after 25, or 10.
#[test]
fn a_lone_queue_keeps_its_slice() {
    let what = "0 A a1 1000; 25 B b1 5000";
    both("2.6.18", what, "a1@0 b1@33");
    both("2.6.17", what, "a1@0 b1@39");
    both("2.6.16", what, "a1@0 b1@35");
}

/// 2.6.18 takes the request nearest to the head (end of what was dispatched
/// last: 5008); to 2.6.17 the head is at 0, so the lowest sector is next, and
/// after it, of successor and predecessor, the lower one.
#[test]
fn the_head_is_always_at_0_in_2_6_17() {
    let what = "0 A x 5000; 1 A p 5200; 1 A q 3000; 1 A r 5100";
    let run = |kernel| with(table(kernel, false, arrivals(what)), &[("quantum", 1)]).run();
    check(&run("2.6.18"), "x@0 r@10 p@20 q@30");
    check(&run("2.6.17"), "x@0 q@10 r@20 p@30");
}

/// Sync writes: to the async queue in 2.6.18, whose requests nobody waits for;
/// to the process's own in 2.6.20, which is waited for until 28.
#[test]
fn sync_writes_belong_to_the_process_from_2_6_20() {
    let what = "0 A s1 1000s; 1 B b1 5000; 12 A s2 1008s";
    both("2.6.18", what, "s1@0 b1@10 s2@28");
    both("2.6.20", what, "s1@0 s2@12 b1@30");
}

/// Metadata goes first within a queue from 2.6.19.
#[test]
fn metadata_goes_first() {
    let what = "0 A x 1000; 1 A p 1008; 1 A m 90000m";
    let run = |kernel| with(table(kernel, false, arrivals(what)), &[("quantum", 1)]).run();
    check(&run("2.6.18"), "x@0 p@10 m@20");
    check(&run("2.6.20"), "x@0 m@10 p@20");
}

fn rig(kernel: &'static str) -> Rig {
    Setup {
        kernel,
        sched: "cfq",
        ..Setup::default()
    }
    .rig()
}

/// To 2.6.17 a read that finds no active queue takes the disk at once, plug or
/// no plug.
#[test]
fn the_first_read_does_not_wait_for_the_plug() {
    for (kernel, at_once) in [("2.6.16", true), ("2.6.17", true), ("2.6.18", false)] {
        let mut r = rig(kernel);
        let t = r.task();
        r.submit(t, "R 1000+8");
        assert_eq!(!r.at_device.is_empty(), at_once, "{kernel}");
    }
}

#[test]
fn merging_by_process_from_2_6_20() {
    let requests = |kernel, bios: [(usize, &str); 2]| {
        let mut r = rig(kernel);
        let tasks = [r.task(), r.task()];
        for t in tasks {
            // Both have a context and queues on the device.
            for far in ["W 800000+8", "WS 900000+8"] {
                r.submit(t, far);
            }
        }
        while !r.queue.is_idle() {
            if r.at_device.is_empty() {
                r.enter(Queue::unplug);
                let now = r.agenda.now();
                r.until(now + blklab_types::Span::from_ms(20));
            } else {
                r.complete_first();
            }
        }
        r.events();
        for (task, bio) in bios {
            r.submit(tasks[task], bio);
        }
        r.only("I").len()
    };
    for kernel in ["2.6.18", "2.6.20"] {
        assert_eq!(requests(kernel, [(0, "W 8+8"), (1, "W 16+8")]), 1, "shared");
        assert_eq!(requests(kernel, [(0, "R 8+8"), (0, "R 16+8")]), 1, "own");
        assert_eq!(requests(kernel, [(0, "R 16+8"), (0, "R 8+8")]), 1, "front");
    }
    for (kernel, nr) in [("2.6.18", 1), ("2.6.20", 2)] {
        let (first, second) = ((0, "W 8+8"), (1, "WS 16+8"));
        assert_eq!(requests(kernel, [first, second]), nr, "sync into async");
        let (first, second) = ((0, "R 8+8"), (1, "R 16+8"));
        assert_eq!(requests(kernel, [first, second]), nr, "two readers");
    }
}

/// Batches of the default of `queued` in 2.6.16 and 2.6.17.
#[test]
fn batches_are_as_long_as_queued() {
    for (kernel, length) in [("2.6.16", 8), ("2.6.17", 8), ("2.6.18", 32)] {
        assert_eq!(rig(kernel).core().limits.batch_requests, length, "{kernel}");
    }
    let changed = Setup {
        kernel: "2.6.16",
        sched: "cfq",
        tunables: &[("queued", 100)],
        ..Setup::default()
    };
    assert_eq!(changed.rig().core().limits.batch_requests, 8, "the default");
}

/// A pool of 4 holds up to 6 requests, all of w. From the third that is freed
/// the count is below 4 and wakes one sleeper each time. In 2.6.16 one more
/// wakes when w's queue holds one request (4 / 4) or less.
#[test]
fn freed_requests_wake_sleepers_early() {
    for (kernel, woken) in [("2.6.16", [0, 0, 1, 2, 4]), ("2.6.18", [0, 0, 1, 2, 3])] {
        let mut r = Setup {
            kernel,
            sched: "cfq",
            limits: |l| {
                l.queue_depth = 1;
                l.nr_requests = 4;
            },
            ..Setup::default()
        }
        .rig();
        let w = r.task();
        let sleepers: Vec<_> = (0..6).map(|_| r.task()).collect();
        let mut granted = 0;
        while r.submit(w, &format!("W {}+8", 1000 * granted)) {
            granted += 1;
        }
        assert_eq!(granted, 6, "{kernel}");
        for (i, t) in sleepers.iter().enumerate() {
            assert!(!r.submit(*t, &format!("W {}+8", 100_000 * (i + 1))));
        }
        for nr in woken {
            r.complete_first();
            assert_eq!(r.woken.len(), nr, "{kernel}");
        }
        r.complete_first();
        // The last of w's six: its queue holds none any more.
        assert_eq!(r.woken.len(), if kernel == "2.6.16" { 6 } else { 4 });
    }
}

/// A task with a file system's lock gets level 4 at its next allocation.
#[test]
fn a_boosted_queue_is_filed_anew() {
    let run = |boosted| {
        let mut r = Setup {
            kernel: "2.6.18",
            sched: "cfq",
            tunables: &[("quantum", 1), ("slice_sync", 1)],
            limits: |l| l.fetch = blklab_block::sq::Fetch::CheckThenPeek,
            ..Setup::default()
        }
        .rig_with(|l| l.queue_depth = 1);
        let (a, b, c) = (r.task(), r.task(), r.task());
        r.io_context(b).ioprio = prio(PrioClass::BestEffort, 5);
        r.io_context(c).ioprio = prio(PrioClass::BestEffort, 7);
        r.submit(a, "R 1000+8");
        r.submit(c, "R 9000+8");
        r.submit(b, "R 5000+8");
        r.io_context(c).fs_exclusive = boosted;
        r.submit(c, "R 9100+8");
        r.enter(Queue::unplug);
        let mut order = Vec::new();
        for i in 0..4 {
            r.until_jiffy(10 * (i + 1));
            r.settle();
            let rq = r.at_device[0];
            order.push(r.core().rqs[rq].sector);
            r.complete_first();
        }
        order
    };
    assert_eq!(run(false), [1000, 5000, 9000, 9100]);
    assert_eq!(run(true), [1000, 9000, 9100, 5000]);
}
