// SPDX-License-Identifier: MIT OR Apache-2.0
//! FLUSH and FUA from 2.6.37 on.

use crate::rig::{Setup, check};

#[test]
fn a_flush_with_data_is_flush_then_write() {
    let mut r = Setup {
        kernel: "3.7",
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "WFS 100+8");
    check(&mut r, "Q 100+8, G 100+8, I 100+8, D 0+0");
    r.complete_first();
    r.settle();
    check(&mut r, "C 0+0, D 100+8");
    r.complete(100);
    check(&mut r, "C 100+8, C 100+8");
    assert!(r.queue.is_idle());
}

#[test]
fn fua_without_device_support_is_write_then_flush() {
    let mut r = Setup {
        kernel: "3.7",
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "WAS 100+8");
    check(&mut r, "Q 100+8, G 100+8, I 100+8, D 100+8");
    r.complete(100);
    r.settle();
    check(&mut r, "C 100+8, D 0+0");
    r.complete_first();
    check(&mut r, "C 0+0, C 100+8");
    assert!(r.queue.is_idle());
}

#[test]
fn requests_that_wait_at_the_same_time_share_a_flush() {
    let mut r = Setup {
        kernel: "3.7",
        limits: |l| l.queue_depth = 4,
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    for b in ["WFS 0+0", "WFS 0+0", "WFS 0+0"] {
        r.submit(t, b);
    }
    // The first flush runs alone; the other two wait for the second.
    r.events();
    assert_eq!(r.at_device.len(), 1);
    r.complete_first();
    r.settle();
    check(&mut r, "C 0+0, C 0+0, D 0+0");
    r.complete_first();
    check(&mut r, "C 0+0, C 0+0, C 0+0");
    assert!(r.queue.is_idle());
}

#[test]
fn without_a_cache_flags_vanish_and_empty_flushes_finish_at_once() {
    let mut r = Setup {
        kernel: "3.7",
        limits: |l| l.queue.has_flush = false,
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "WFS 0+0");
    assert_eq!(r.events(), Vec::<String>::new());
    assert_eq!(r.done.len(), 1);
    r.submit(t, "WFAS 100+8");
    check(&mut r, "Q 100+8, G 100+8, I 100+8, D 100+8");
}

#[test]
fn a_running_flush_holds_the_scheduler_of_a_device_that_cannot_queue_it() {
    for (kernel, queueable, dispatched) in [("3.7", false, 0), ("3.7", true, 1), ("3.0", false, 1)]
    {
        let limits = if queueable {
            |l: &mut blklab_block::sq::Limits| {
                l.queue_depth = 4;
                l.flush_queueable = true;
            }
        } else {
            |l: &mut blklab_block::sq::Limits| l.queue_depth = 4
        };
        let mut r = Setup {
            kernel,
            limits,
            ..Setup::default()
        }
        .rig();
        let t = r.task();
        r.submit(t, "WFS 0+0");
        r.events();
        r.submit(t, "R 100+8");
        assert_eq!(r.only("D").len(), dispatched, "{kernel} {queueable}");
        while !r.at_device.is_empty() {
            r.complete_first();
            r.settle();
        }
        assert!(r.queue.is_idle());
    }
}

#[test]
fn one_sequence_at_a_time_in_2_6_37() {
    let mut r = Setup {
        kernel: "2.6.37",
        limits: |l| l.queue_depth = 4,
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "WFS 100+8");
    r.submit(t, "WFS 200+8");
    r.enter(blklab_block::sq::Queue::unplug);
    let mut d = r.only("D");
    while !r.at_device.is_empty() {
        assert_eq!(r.at_device.len(), 1, "steps of two sequences at once");
        r.complete_first();
        r.settle();
        d.extend(r.only("D"));
    }
    let mut order = d.clone();
    order.sort();
    assert_eq!(order, ["0+0", "0+0", "100+8", "200+8"]);
    assert_eq!(d[0], "0+0");
    assert_eq!(d[2], "0+0");
    assert!(r.queue.is_idle());
}
