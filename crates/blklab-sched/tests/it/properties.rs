// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of every scheduler on a kernel of every era, under random
//! queues, tunables, patches, priorities and loads: nothing is lost, doubled
//! or invented, limits hold, and everything drains.

use crate::load::{Config, Load, Values, pairs};
use blklab_engine::Stream;
use blklab_trace::truth::{Kind, Truth, TruthSink};
use blklab_trace::{WaitLabels, Waited};
use blklab_types::Op;

const STEPS: u32 = 300;

/// Limits that hold at any time.
fn check_limits(load: &Load) {
    let (r, c) = (&load.rig, &load.config);
    assert!(r.at_device.len() <= c.depth as usize, "depth: {c:?}");
    for (i, rq) in r.at_device.iter().enumerate() {
        assert!(!r.at_device[..i].contains(rq), "handed over twice: {c:?}");
    }
    let cap = c.nr_requests + c.nr_requests / 2;
    let counts = r.queue.pool_counts();
    assert!(counts.iter().all(|&n| n <= cap), "pools {counts:?}: {c:?}");
    assert!(
        r.core().in_flight as usize <= r.at_device.len(),
        "in flight: {c:?}"
    );
}

/// What holds when everything is done.
fn check_end(load: &mut Load) {
    let c = &load.config;
    assert_eq!(load.rig.queue.pool_counts(), [0, 0], "{c:?}");
    let core = load.rig.core();
    assert_eq!((core.in_flight, core.nr_sorted), (0, 0), "{c:?}");
    let mut done = load.rig.done.clone();
    done.sort_unstable();
    let all: Vec<u64> = (0..load.submitted).collect();
    assert_eq!(done, all, "every bio once: {c:?}");
    let records = load.rig.truths();
    check_waits(&records, load.config.ordered);
    if !load.config.ordered {
        let handed_over = sectors_handed_over(&records);
        let c = &load.config;
        assert_eq!(handed_over, load.sectors, "every sector once: {c:?}");
    }
}

fn sectors_handed_over(records: &[Truth]) -> [u64; 2] {
    let mut sum = [0; 2];
    for r in records {
        if r.kind == Kind::HandOver && r.op != Op::Flush {
            sum[r.op.data_dir()] += u64::from(r.nr_sectors);
        }
    }
    sum
}

/// Every hand-over has a wait, and its reasons fill it. Flush commands may go
/// to the device without having been inserted.
fn check_waits(records: &[Truth], ordered: bool) {
    let mut nr_reported = 0;
    let mut labels = WaitLabels::new(|w: &Waited<'_>| {
        nr_reported += 1;
        let sum: u64 = w.labels.iter().map(|l| l.span.0).sum();
        assert_eq!(sum, w.request.time.since(w.inserted).0);
    });
    for r in records {
        labels.truth(r, "");
    }
    let nr_handed_over = records.iter().filter(|r| r.kind == Kind::HandOver).count();
    assert!(ordered || nr_reported == nr_handed_over);
}

fn run(config: Config, s: Stream) {
    let mut load = Load::new(config, s);
    for _ in 0..STEPS {
        load.step();
        check_limits(&load);
    }
    assert!(load.drain(), "does not drain: {:?}", load.config);
    check_end(&mut load);
}

fn run_all(values: Values, seeds: std::ops::Range<u64>) {
    for (sched, kernel) in pairs() {
        for seed in seeds.clone() {
            let mut s = Stream::named(seed, &format!("{} {kernel}", sched.name));
            let config = Config::random(&mut s, sched, kernel, values);
            run(config, s);
        }
    }
}

#[test]
fn with_default_tunables() {
    run_all(Values::Default, 0..60);
}

#[test]
fn with_random_tunables() {
    run_all(Values::Random, 100..180);
}

#[test]
fn with_tunables_at_their_smallest() {
    run_all(Values::Smallest, 200..220);
}

#[test]
fn with_tunables_at_their_largest() {
    run_all(Values::Largest, 300..320);
}
