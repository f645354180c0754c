// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the request pools and of the batch time-out patch.

use crate::rig::{Rig, Setup};
use blklab_block::sq::Limits;
use blklab_kernel::{KernelVersion, Patches};
use blklab_types::{Hz, TaskId, Time};

/// The queue never dispatches by itself; each allocation is a write far from
/// all others.
struct Pool {
    rig: Rig,
    next_sector: u64,
    op: &'static str,
}

fn pool(kernel: &'static str, limits: fn(&mut Limits)) -> Pool {
    let mut rig = Setup {
        kernel,
        sched: "noop",
        limits,
        ..Setup::default()
    }
    .rig();
    let blocker = rig.task();
    rig.submit(blocker, "R 1+1");
    rig.enter(blklab_block::sq::Queue::unplug);
    Pool {
        rig,
        next_sector: 1000,
        op: if kernel < "2.6.3" { "W" } else { "WS" },
    }
}

impl Pool {
    /// Allocates until refused; how many were granted.
    fn fill(&mut self, t: TaskId) -> u32 {
        let mut granted = 0;
        while self.alloc(t) {
            granted += 1;
            assert!(granted < 10_000);
        }
        granted
    }

    fn alloc(&mut self, t: TaskId) -> bool {
        self.alloc_op(t, self.op)
    }

    fn alloc_op(&mut self, t: TaskId, op: &str) -> bool {
        self.next_sector += 1000;
        let text = format!("{op} {}+8", self.next_sector);
        self.rig.submit(t, &text)
    }

    /// The device finishes its oldest request.
    fn free(&mut self) {
        self.rig.complete_first();
    }

    fn at(&mut self, ms: u64) {
        self.rig.until(Time(ms * 1_000_000));
    }
}

fn small(l: &mut Limits) {
    l.queue_depth = 100;
    l.nr_requests = 4;
    l.unplug_thresh = 1000;
}

#[test]
fn bl7_full_pool_batch_and_cap() {
    let mut p = pool("2.6.24", small);
    let (a, b) = (p.rig.task(), p.rig.task());
    let mut lefts = Vec::new();
    for _ in 0..6 {
        assert!(p.alloc(a));
        lefts.push(p.rig.batch_left(a));
    }
    assert_eq!(lefts, [0, 0, 0, 31, 30, 29]);
    assert!(p.rig.queue.write_congested());
    assert!(!p.alloc(a), "the cap is 6");
    assert!(!p.alloc(b), "full, and no batcher");
    // a's sleep unplugged the queue: everything is at the device.
    p.at(50);
    p.free();
    p.rig.woken.clear();
    p.free();
    p.free();
    assert_eq!(p.rig.woken, [], "6 to 4 wakes nobody");
    p.free();
    assert_eq!(p.rig.woken, [a]);
    assert!(p.rig.resume(a));
    assert_eq!(p.rig.batch_left(a), 31, "a fresh batch of 32 after 50 ms");
    assert!(p.alloc(a) && p.alloc(a));
    assert!(!p.alloc(a));
    p.rig.woken.clear();
    p.rig.enter(blklab_block::sq::Queue::unplug);
    for _ in 0..2 {
        p.free();
    }
    assert_eq!(p.rig.woken, []);
    p.free();
    assert_eq!(p.rig.woken, [b]);
}

#[test]
fn bl8_charging_only_near_a_full_pool_until_3_3() {
    for (kernel, lefts) in [("3.2", [31, 30]), ("3.3", [30, 29])] {
        let mut p = pool(kernel, small);
        p.rig.complete_first();
        let a = p.rig.task();
        for _ in 0..4 {
            assert!(p.alloc(a));
        }
        assert_eq!(p.rig.batch_left(a), 31);
        p.free();
        p.free();
        p.at(5);
        let mut got = Vec::new();
        for _ in 0..2 {
            assert!(p.alloc(a));
            got.push(p.rig.batch_left(a));
        }
        assert_eq!(got, lefts, "kernel {kernel}");
    }
}

#[test]
fn bl9_wake_order() {
    let mut p = pool("2.6.24", |l| {
        l.queue_depth = 1000;
        l.unplug_thresh = 100_000;
    });
    let (w, r) = (p.rig.task(), p.rig.task());
    assert_eq!(p.fill(w), 159);
    assert!(!p.alloc(r));
    p.free();
    p.at(30);
    for _ in 0..31 {
        p.free();
    }
    assert_eq!(p.rig.woken, []);
    p.free();
    assert_eq!(p.rig.woken, [w], "the 32nd free wakes the writer");
    p.rig.woken.clear();
    assert!(p.rig.resume(w));
    assert_eq!(p.fill(w), 31, "32 at once, then it sleeps behind r");
    p.rig.enter(blklab_block::sq::Queue::unplug);
    for _ in 0..31 {
        p.free();
    }
    assert_eq!(p.rig.woken, []);
    p.free();
    assert_eq!(p.rig.woken, [r], "the 64th free wakes the reader");
}

fn batch_patch(l: &mut Limits) {
    let patches = Patches::new(["batch_patch"], KernelVersion::new(3, 7)).expect("it fits");
    l.patch(&patches, Hz(1000));
}

fn patched(l: &mut Limits) {
    l.queue_depth = 1000;
    batch_patch(l);
}

fn base(l: &mut Limits) {
    l.queue_depth = 1000;
}

#[test]
fn t1_fill() {
    for (limits, left, total) in [
        (base as fn(&mut Limits), 31, 159),
        (patched as fn(&mut Limits), 15, 143),
    ] {
        let mut p = pool("3.7", limits);
        p.rig.complete_first();
        let w = p.rig.task();
        for _ in 0..127 {
            assert!(p.alloc(w));
        }
        assert_eq!(p.rig.batch_left(w), 0);
        assert!(p.alloc(w));
        assert_eq!(p.rig.batch_left(w), left);
        assert_eq!(128 + p.fill(w), total);
    }
}

/// r was woken at 1000 ms and has allocated once; the pool stays full.
fn woken_reader(limits: fn(&mut Limits)) -> (Pool, TaskId) {
    let mut p = pool("3.7", limits);
    p.rig.complete_first();
    let (w, r) = (p.rig.task(), p.rig.task());
    p.fill(w);
    assert!(!p.alloc_op(r, "R"));
    p.at(1000);
    while p.rig.woken.is_empty() {
        p.free();
    }
    assert_eq!(p.rig.woken, [w]);
    p.rig.woken.clear();
    p.rig.resume(w);
    p.fill(w);
    while p.rig.woken.is_empty() {
        p.free();
    }
    assert_eq!(p.rig.woken, [r]);
    assert!(p.rig.resume(r));
    // Another writer fills what is left, so that only batchers get in.
    let other = p.rig.task();
    p.fill(other);
    (p, r)
}

#[test]
fn t2_validity() {
    let (mut p, r) = woken_reader(base);
    assert_eq!(p.rig.batch_left(r), 31);
    p.at(1019);
    assert!(p.alloc_op(r, "R"));
    p.at(1020);
    assert!(!p.alloc_op(r, "R"), "1020 is not before 1020");

    let (mut p, r) = woken_reader(patched);
    assert_eq!(p.rig.batch_left(r), 15);
    p.at(2999);
    assert!(p.alloc_op(r, "R"));
    p.at(3000);
    assert!(!p.alloc_op(r, "R"));
}

#[test]
fn t3_no_refresh() {
    let (mut p, r) = woken_reader(patched);
    for left in (0..15).rev() {
        assert!(p.alloc_op(r, "R"));
        assert_eq!(p.rig.batch_left(r), left);
    }
    p.at(1500);
    assert!(!p.alloc_op(r, "R"), "the batch is used up");
}

#[test]
fn t5_the_cap_holds_for_batchers_too() {
    let mut p = pool("3.7", |l| {
        l.queue_depth = 1000;
        l.nr_requests = 8;
        batch_patch(l);
    });
    p.rig.complete_first();
    let (w, r) = (p.rig.task(), p.rig.task());
    assert_eq!(p.fill(w), 12);
    assert_eq!(p.rig.batch_left(w), 11);
    assert!(!p.alloc_op(r, "R"));
    p.at(10);
    for _ in 0..5 {
        p.free();
    }
    assert_eq!(p.rig.woken, [w]);
    p.rig.woken.clear();
    assert!(p.rig.resume(w));
    assert_eq!(1 + p.fill(w), 5, "still the old batch");
    assert_eq!(p.rig.batch_left(w), 6);
    p.at(30);
    for _ in 0..5 {
        p.free();
    }
    assert_eq!(p.rig.woken, [r]);
    p.rig.woken.clear();
    assert!(p.rig.resume(r));
    assert_eq!(p.rig.batch_left(r), 15);
    p.at(100);
    p.free();
    assert_eq!(p.rig.woken, [w]);
    assert!(p.rig.resume(w));
    assert_eq!(1 + p.fill(w), 5, "the batch was void: a new one");
    assert!(!p.alloc_op(r, "R"), "batching, but the pool is at its cap");
}
