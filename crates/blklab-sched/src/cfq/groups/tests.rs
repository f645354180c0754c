// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables as they are kept, and limits derived from them.

use super::group::GroupId;
use super::queue::Queue;
use super::{Cfq, Features};
use crate::Build;
use crate::cfq::SCHEDULER;
use crate::cfq::{ASYNC, SYNC};
use blklab_engine::Timers;
use blklab_kernel::{Patches, Tunables};
use blklab_types::Hz;

fn cfq(kernel: &str, hz: u32, rotational: bool, written: &[(&str, i64)]) -> Cfq {
    let version = kernel.parse().expect("a kernel");
    let mut tunables = Tunables::defaults(SCHEDULER.tunables, version);
    for (name, value) in written {
        tunables.set(name, *value).expect("a tunable");
    }
    Cfq::new(&mut Build {
        version,
        hz: Hz(hz),
        tunables: &tunables,
        patches: &Patches::default(),
        rotational,
        timers: &mut Timers::new(Hz(hz)),
        shared: &crate::Shared::default(),
    })
}

#[test]
fn defaults_by_tick_rate() {
    // fifo sync and async, slice sync and async, slice_idle, target latency.
    let defaults = |kernel, hz| {
        let s = cfq(kernel, hz, true, &[]).set;
        let [fifo, slice] = [s.fifo_expire, s.slice];
        [
            fifo[SYNC],
            fifo[ASYNC],
            slice[SYNC],
            slice[ASYNC],
            s.slice_idle,
            s.target_latency,
        ]
    };
    assert_eq!(defaults("2.6.33", 1000), [125, 250, 100, 40, 8, 300]);
    assert_eq!(defaults("2.6.34", 250), [31, 62, 25, 10, 2, 75]);
    assert_eq!(defaults("3.7", 100), [12, 25, 10, 4, 1, 30]);
    let ms = [125, 250, 100, 40, 8, 300].map(|ms| ms * 1_000_000);
    assert_eq!(defaults("4.19", 250), ms);
    assert_eq!(defaults("4.19", 100), ms);
}

#[test]
fn written_times_are_converted() {
    let ticks = cfq("3.7", 250, true, &[("target_latency", 10)]).set;
    assert_eq!(ticks.target_latency, 3);
    let us = cfq("4.19", 250, true, &[("slice_idle_us", 1500)]).set;
    assert_eq!(us.slice_idle, 1_500_000);
    let zero = cfq("4.19", 250, true, &[("slice_sync_us", 0)]).set;
    assert_eq!(zero.slice[SYNC], 1_000);
    let last = [("slice_idle", 3), ("slice_idle_us", 7), ("slice_idle", 2)];
    assert_eq!(cfq("4.19", 250, true, &last).set.slice_idle, 2_000_000);
    assert!(
        cfq("2.6.33", 250, true, &[("low_latency", 2)])
            .set
            .low_latency
    );
}

#[test]
fn devices_that_do_not_seek_are_not_idled_for() {
    assert_eq!(cfq("4.19", 250, false, &[]).set.slice_idle, 0);
    assert_eq!(cfq("3.7", 1000, false, &[]).set.slice_idle, 8);
    let written = [("slice_idle", 8)];
    assert_eq!(cfq("4.19", 250, false, &written).set.slice_idle, 8_000_000);
}

#[test]
fn requests_per_async_slice_by_level() {
    let limits = |rq: i64| {
        let mut c = cfq("2.6.33", 1000, true, &[("slice_async_rq", rq)]);
        let id = c.queues.insert(Queue::new(1, false, GroupId::ROOT));
        let mut limit = |level: u8| {
            c.queues[id].prio.now.level = level;
            c.prio_to_maxrq(id)
        };
        [0, 1, 2, 3, 4, 5, 6, 7].map(&mut limit)
    };
    assert_eq!(limits(1), [16, 14, 12, 10, 8, 6, 4, 2]);
    assert_eq!(limits(2), [32, 28, 24, 20, 16, 12, 8, 4]);
}

#[test]
fn slices_by_level() {
    let slices = |written: &[(&str, i64)]| {
        let c = cfq("2.6.33", 1000, true, written);
        [0, 1, 2, 3, 4, 5, 6, 7].map(|level| c.prio_slice(true, level))
    };
    assert_eq!(slices(&[]), [180, 160, 140, 120, 100, 80, 60, 40]);
    let half = [("slice_sync", 50)];
    assert_eq!(slices(&half), [90, 80, 70, 60, 50, 40, 30, 20]);
    assert_eq!(slices(&[("slice_sync", 3)]), [3; 8]);
}

#[test]
fn group_idle_needs_groups_by_default() {
    let set = |kernel, written: &[(&str, i64)]| cfq(kernel, 1000, true, written).set;
    let default = set("3.7", &[]);
    assert_eq!(
        (default.group_idle(false), default.group_idle(true)),
        (0, 8)
    );
    assert_eq!(set("3.7", &[("group_idle", 5)]).group_idle(false), 5);
    assert_eq!(set("2.6.34", &[]).group_idle(true), 0);
}

#[test]
fn features_only_ever_accumulate_between_presets() {
    let features = |kernel| {
        let c = cfq(kernel, 1000, true, &[]);
        let f: Features = c.feat;
        [
            f.seek_history,
            f.group_idle,
            f.noidle_in_window,
            f.preempts_unidled,
            f.tree_think_time,
            f.hierarchical,
            f.async_per_group,
            f.ns,
            f.noidle_needs_sync_write,
            f.group_idle_on_nonrot,
        ]
    };
    let count = |kernel| features(kernel).iter().filter(|&&on| on).count();
    let counts = [
        "2.6.33", "2.6.34", "2.6.36", "2.6.37", "2.6.39", "3.1", "3.9", "4.3", "4.8", "4.10",
        "4.19",
    ]
    .map(count);
    assert_eq!(counts, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}
