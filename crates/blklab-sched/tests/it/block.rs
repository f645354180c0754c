// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the block layer itself: merging, plugging, driver, barriers.

use crate::rig::{Setup, check};
use blklab_types::Time;

#[test]
fn bl1_merges() {
    let mut r = Setup::default().rig();
    let t = r.task();
    for b in [
        "R 100+8", "R 108+8", "R 92+8", "R 200+8", "R 208+8", "R 116+84",
    ] {
        r.submit(t, b);
    }
    check(
        &mut r,
        "Q 100+8, G 100+8, P, I 100+8, Q 108+8, M 108+8, Q 92+8, F 92+8, Q 200+8, G 200+8, \
         I 200+8, Q 208+8, M 208+8, Q 116+84, F 116+84, MM 92+124",
    );
    assert_eq!(r.queue.pool_counts(), [1, 0]);
    r.enter(blklab_block::sq::Queue::unplug);
    assert_eq!(r.only("D"), ["92+124"]);
}

#[test]
fn bl2_a_refused_request_takes_no_more() {
    let mut r = Setup {
        limits: |l| {
            l.queue_depth = 1;
            l.queue.max_segments = 256;
        },
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    for b in ["R 8+1000", "R 1008+32", "R 0+8", "R 1040+8"] {
        r.submit(t, b);
    }
    check(
        &mut r,
        "Q 8+1000, G 8+1000, P, I 8+1000, Q 1008+32, G 1008+32, I 1008+32, Q 0+8, G 0+8, I 0+8, \
         Q 1040+8, M 1040+8",
    );
}

#[test]
fn chains_of_the_merge_hash_stay_whole_when_a_gap_closes() {
    // Requests that end at 16 and 7912 share a chain of the hash, 24 and 12800
    // another one. 8+8 grows to 24, which closes its gap to 24+8.
    let mut r = Setup {
        limits: |l| l.unplug_thresh = 100,
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    let first = ["R 7904+8", "R 12792+8", "R 8+8", "R 24+8"];
    for b in first.iter().chain(&["R 16+8"]) {
        r.submit(t, b);
    }
    check(
        &mut r,
        "Q 7904+8, G 7904+8, P, I 7904+8, Q 12792+8, G 12792+8, I 12792+8, Q 8+8, G 8+8, I 8+8, \
         Q 24+8, G 24+8, I 24+8, Q 16+8, M 16+8, MM 8+24",
    );
    // Each is found by its end, and a search for an end that nobody has stops.
    for b in ["R 12800+8", "R 32+8", "R 7912+8", "R 12808+8", "R 24+4"] {
        r.submit(t, b);
    }
    check(
        &mut r,
        "Q 12800+8, M 12800+8, Q 32+8, M 32+8, Q 7912+8, M 7912+8, Q 12808+8, M 12808+8, \
         Q 24+4, G 24+4, I 24+4",
    );
}

#[test]
fn bl3_segments_of_the_missed_merge() {
    let mut r = Setup {
        sched: "noop",
        limits: |l| {
            l.queue_depth = 1;
            l.queue.max_segments = 31;
        },
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    let bios = [
        ("W 0+8", 1),
        ("W 8+40", 4),
        ("W 48+48", 5),
        ("W 96+56", 6),
        ("W 152+48", 5),
        ("W 200+56", 5),
        ("W 256+40", 2),
        ("W 296+80", 2),
        ("W 376+48", 6),
        ("W 424+24", 3),
        ("W 448+176", 22),
    ];
    for (b, segments) in bios {
        r.segments = Some(segments);
        r.submit(t, b);
    }
    let g: Vec<_> = r
        .events()
        .into_iter()
        .filter(|e| e.starts_with('G'))
        .collect();
    assert_eq!(g, ["G 0+8", "G 376+48"]);
    r.enter(blklab_block::sq::Queue::unplug);
    assert_eq!(r.only("D"), ["0+376", "376+248"]);
}

#[test]
fn bl4_threshold() {
    for kernel in ["2.6.24", "2.6.37"] {
        let mut r = Setup {
            kernel,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        for b in ["W 1000+8", "W 2000+8", "W 3000+8", "W 4000+8"] {
            r.submit(t, b);
        }
        check(
            &mut r,
            "Q 1000+8, G 1000+8, P, I 1000+8, Q 2000+8, G 2000+8, I 2000+8, Q 3000+8, G 3000+8, \
             I 3000+8, Q 4000+8, G 4000+8, I 4000+8, D 1000+8, D 2000+8",
        );
    }
}

#[test]
fn bl5_plug_timer() {
    for (kernel, hz, jiffy) in [
        ("2.6.24", 1000, 13),
        ("2.6.24", 250, 11),
        ("2.6.33", 250, 11),
    ] {
        let mut r = Setup {
            kernel,
            hz,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        let tick = 1_000_000_000 / u64::from(hz);
        r.until(Time(10 * tick + tick / 2));
        r.submit(t, "W 8+8");
        r.events();
        r.until(Time(jiffy * tick - 1));
        assert_eq!(r.events(), Vec::<String>::new(), "{kernel} HZ {hz}");
        r.until(Time(jiffy * tick));
        check(&mut r, "UT 1, U 1, D 8+8");
    }
}

#[test]
fn bl6_limit_plus_one() {
    let mut r = Setup {
        sched: "noop",
        limits: |l| {
            l.queue_depth = 2;
            l.unplug_thresh = 100;
        },
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    for b in ["R 100+8", "R 300+8", "R 500+8", "R 700+8"] {
        r.submit(t, b);
    }
    r.events();
    r.enter(blklab_block::sq::Queue::unplug);
    check(&mut r, "U 4, D 100+8, D 300+8, D 500+8");
    assert_eq!(r.at_device.len(), 2);
    // What was shown to the driver takes no more bios.
    r.submit(t, "R 508+8");
    check(&mut r, "Q 508+8, G 508+8, I 508+8");
    r.complete(100);
    check(&mut r, "C 100+8, D 700+8");
    assert_eq!(r.at_device.len(), 2);
}

#[test]
fn bl10_barrier_with_flushes() {
    let mut r = Setup {
        limits: |l| {
            l.queue_depth = 2;
            l.queue.has_flush = true;
        },
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "W 100+8");
    r.enter(blklab_block::sq::Queue::unplug);
    r.submit(t, "W 200+8");
    r.events();
    r.submit(t, "WB 300+8");
    check(
        &mut r,
        "Q 300+8, G 300+8, I 300+8, D 200+8, I 0+0, I 300+8, I 0+0",
    );
    r.submit(t, "W 400+8");
    check(&mut r, "Q 400+8, G 400+8, I 400+8");
    r.complete(100);
    check(&mut r, "C 100+8");
    r.complete(200);
    check(&mut r, "C 200+8, D 0+0");
    r.complete_first();
    check(&mut r, "C 0+0, D 300+8");
    r.complete(300);
    check(&mut r, "C 300+8, D 0+0");
    r.complete_first();
    check(&mut r, "C 0+0, C 300+8, D 400+8");
    r.complete(400);
    assert!(r.queue.is_idle());
}

#[test]
fn barriers_without_a_cache_or_with_fua_need_fewer_steps() {
    type Set = fn(&mut blklab_block::sq::Limits);
    let no_cache: Set = |l| l.queue.has_flush = false;
    let with_fua: Set = |l| l.queue.has_fua = true;
    for (limits, expected) in [
        (no_cache, "Q 300+8, G 300+8, P, I 300+8, I 300+8, D 300+8"),
        (
            with_fua,
            "Q 300+8, G 300+8, P, I 300+8, I 300+8, I 0+0, D 0+0",
        ),
    ] {
        let mut r = Setup {
            limits,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        r.submit(t, "WB 300+8");
        check(&mut r, expected);
        while !r.at_device.is_empty() {
            r.complete_first();
        }
        assert!(r.queue.is_idle());
    }
}

#[test]
fn an_empty_barrier_is_a_cache_flush() {
    for (kernel, steps) in [
        ("2.6.24", "I 0+0, I 0+0, D 0+0"),
        ("2.6.33", "I 0+0, D 0+0"),
    ] {
        let mut r = Setup {
            kernel,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        r.submit(t, "WB 0+0");
        check(&mut r, &format!("Q 0+0, G 0+0, P, I 0+0, {steps}"));
        r.complete_first();
        check(&mut r, "C 0+0, C 0+0");
        assert!(r.queue.is_idle(), "{kernel}");
    }
}

#[test]
fn bl11_task_plug() {
    let mut r = Setup {
        kernel: "3.7",
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.enter(|q, _| q.start_plug(t));
    for b in ["W 100+8", "W 108+8", "W 92+8", "W 300+8"] {
        r.submit(t, b);
    }
    r.enter(|q, cx| q.finish_plug(cx, t));
    check(
        &mut r,
        "Q 100+8, G 100+8, P, Q 108+8, M 108+8, Q 92+8, F 92+8, Q 300+8, G 300+8, I 92+24, \
         I 300+8, U 2, D 92+24, D 300+8",
    );
}

#[test]
fn bl11_the_17th_request_flushes_the_plug() {
    let mut r = Setup {
        kernel: "3.7",
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.enter(|q, _| q.start_plug(t));
    for i in 0..17 {
        r.submit(t, &format!("W {}+8", 1000 * (i + 1)));
    }
    r.enter(|q, cx| q.finish_plug(cx, t));
    let kinds: Vec<String> = r
        .events()
        .into_iter()
        .filter(|e| ["P", "U"].contains(&e.split(' ').next().unwrap_or("")))
        .collect();
    assert_eq!(kinds, ["P", "U 16", "P", "U 1"]);
}

#[test]
fn bl12_insertion_merge() {
    let mut r = Setup {
        kernel: "3.7",
        ..Setup::default()
    }
    .rig();
    let [busy, x, y, z] = [(); 4].map(|()| r.task());
    // One at the device, one started at the head of the list.
    r.submit(busy, "R 5000+8");
    r.submit(busy, "R 9000+8");
    for (t, b) in [(x, "W 8+8"), (y, "W 16+8")] {
        r.enter(|q, _| q.start_plug(t));
        r.submit(t, b);
    }
    r.submit(z, "W 0+8");
    r.events();
    r.enter(|q, cx| q.finish_plug(cx, x));
    check(&mut r, "I 8+8, MM 0+16, U 1");
    r.enter(|q, cx| q.finish_plug(cx, y));
    check(&mut r, "I 16+8, MM 0+24, U 1");
    assert_eq!(r.queue.pool_counts(), [1, 2]);
    r.complete(5000);
    r.complete(9000);
    assert_eq!(r.only("D"), ["0+24"]);
}

#[test]
fn bl13_hash_shadowing() {
    let mut r = Setup {
        limits: |l| {
            l.queue_depth = 1;
            l.unplug_thresh = 100;
        },
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "W 500+8");
    r.submit(t, "W 0+16");
    r.submit(t, "R 8+8");
    r.events();
    r.submit(t, "W 16+8");
    check(&mut r, "Q 16+8, G 16+8, I 16+8");
}

#[test]
fn nomerges_leaves_last_merge_and_then_nothing() {
    type Set = fn(&mut blklab_block::sq::Limits);
    let one: Set = |l| (l.queue.nomerges, l.unplug_thresh) = (1, 100);
    let two: Set = |l| (l.queue.nomerges, l.unplug_thresh) = (2, 100);
    for (kernel, limits, near, far) in [
        ("2.6.28", one, "M 8+8", "G 108+8"),
        ("2.6.37", two, "G 8+8", "G 108+8"),
    ] {
        let mut r = Setup {
            kernel,
            sched: "noop",
            limits,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        r.submit(t, "R 0+8");
        r.submit(t, "R 100+8");
        r.events();
        r.submit(t, "R 8+8");
        assert_eq!(r.events()[1], near, "{kernel}");
        r.submit(t, "R 108+8");
        assert_eq!(r.events()[1], far, "{kernel}");
    }
}

#[test]
fn a_requeued_request_is_shown_again_first() {
    let mut r = Setup::default().rig();
    let t = r.task();
    r.submit(t, "R 100+8");
    r.submit(t, "R 300+8");
    r.enter(blklab_block::sq::Queue::unplug);
    r.events();
    let rq = r.at_device.remove(0);
    r.enter(|q, cx| q.requeue(cx, rq));
    check(&mut r, "I 100+8");
    r.enter(blklab_block::sq::Queue::run_work);
    check(&mut r, "D 100+8");
}

#[test]
fn async_tags_leave_room_for_sync_requests() {
    // Depth 8: 2.6.28 keeps the first quarter for sync, 2.6.31 the last two.
    for (kernel, async_tags) in [("2.6.26", 8), ("2.6.28", 6), ("2.6.33", 6)] {
        let mut r = Setup {
            kernel,
            sched: "noop",
            limits: |l| {
                l.queue_depth = 8;
                l.tagged = true;
            },
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        for i in 0..20 {
            r.submit(t, &format!("W {}+8", 1000 * (i + 1)));
        }
        r.enter(blklab_block::sq::Queue::unplug);
        assert_eq!(r.at_device.len(), async_tags, "{kernel}");
    }
}
