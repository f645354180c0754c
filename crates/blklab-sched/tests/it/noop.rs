// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the noop scheduler.

use crate::rig::{Rig, Setup};

fn rig(kernel: &'static str, depth: fn(&mut blklab_block::sq::Limits)) -> Rig {
    Setup {
        kernel,
        sched: "noop",
        limits: depth,
        ..Setup::default()
    }
    .rig()
}

/// A plugged queue: nothing is dispatched until asked.
fn waiting(kernel: &'static str) -> Rig {
    rig(kernel, |l| {
        l.queue_depth = 1;
        l.unplug_thresh = 1000;
    })
}

fn dispatch_all(r: &mut Rig) -> Vec<String> {
    r.enter(blklab_block::sq::Queue::unplug);
    while !r.at_device.is_empty() {
        r.complete_first();
    }
    r.only("D")
}

/// The forced order of a drain: a barrier is put behind everything. Its end
/// is the position from which the dispatch list is sorted.
fn drain(r: &mut Rig, end: u64) -> Vec<String> {
    let t = r.task();
    let barrier = if end == 0 {
        "WB 0+0".to_owned()
    } else {
        format!("WB {}+8", end - 8)
    };
    r.submit(t, &barrier);
    while !r.at_device.is_empty() {
        r.complete_first();
    }
    let mut d = r.only("D");
    let flush = d.iter().position(|e| e == "0+0");
    d.truncate(flush.unwrap_or(d.len()));
    d
}

#[test]
fn n1_fetched_one_by_one_order_is_order_of_arrival() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 300+8", "R 100+8", "R 200+8"] {
        r.submit(t, b);
    }
    assert_eq!(dispatch_all(&mut r), ["300+8", "100+8", "200+8"]);
}

#[test]
fn n2_a_drain_sorts() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 300+8", "R 100+8", "R 200+8"] {
        r.submit(t, b);
    }
    assert_eq!(drain(&mut r, 0), ["100+8", "200+8", "300+8"]);
}

#[test]
fn n3_a_drain_is_a_one_way_elevator_from_the_last_position() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 300+8", "R 100+8", "R 200+8"] {
        r.submit(t, b);
    }
    assert_eq!(drain(&mut r, 150), ["200+8", "300+8", "100+8"]);
}

#[test]
fn n4_directions_stay_apart_from_2_6_21() {
    for (kernel, expected) in [
        ("2.6.24", ["500+8", "100+8", "400+8"]),
        ("2.6.21", ["500+8", "100+8", "400+8"]),
        ("2.6.20", ["100+8", "400+8", "500+8"]),
    ] {
        let mut r = waiting(kernel);
        let t = r.task();
        for b in ["W 500+8", "R 100+8", "W 400+8"] {
            r.submit(t, b);
        }
        assert_eq!(drain(&mut r, 0), expected, "{kernel}");
    }
}

#[test]
fn n5_last_merge_and_the_core_hash_of_2_6_19() {
    for (kernel, merged) in [("2.6.19", "M 108+8"), ("2.6.18", "G 108+8")] {
        let mut r = waiting(kernel);
        let t = r.task();
        r.submit(t, "R 0+8");
        r.submit(t, "R 100+8");
        r.events();
        r.submit(t, "R 8+8");
        assert_eq!(r.events(), ["Q 8+8", "M 8+8"]);
        r.submit(t, "R 108+8");
        assert_eq!(r.events()[1], merged, "{kernel}");
        if kernel == "2.6.19" {
            r.submit(t, "R 92+8");
            assert_eq!(r.events(), ["Q 92+8", "F 92+8"]);
        }
    }
}

#[test]
fn n6_no_front_merge_but_into_last_merge() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 0+8", "R 100+8", "R 92+8"] {
        r.submit(t, b);
    }
    assert_eq!(dispatch_all(&mut r), ["0+8", "100+8", "92+8"]);
}

#[test]
fn n7_request_merges_are_with_fifo_neighbours() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 0+8", "R 16+8", "R 8+8"] {
        r.submit(t, b);
    }
    assert_eq!(dispatch_all(&mut r), ["0+24"]);

    let mut r = waiting("2.6.24");
    let t = r.task();
    for b in ["R 16+8", "R 0+8", "R 8+8"] {
        r.submit(t, b);
    }
    assert_eq!(dispatch_all(&mut r), ["8+16", "0+8"]);
}

#[test]
fn n8_equal_sectors_keep_their_order() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    r.submit(t, "R 100+8");
    r.submit(t, "R 100+16");
    assert_eq!(drain(&mut r, 0), ["100+8", "100+16"]);
}

#[test]
fn n9_nothing_is_sorted_in_front_of_a_started_request() {
    let mut r = waiting("2.6.24");
    let t = r.task();
    // One at the device, one started at the head of the list.
    r.submit(t, "R 4+2");
    r.submit(t, "R 500+8");
    r.enter(blklab_block::sq::Queue::unplug);
    r.submit(t, "R 100+8");
    r.submit(t, "R 600+8");
    assert_eq!(drain(&mut r, 0), ["4+2", "500+8", "100+8", "600+8"]);
}
