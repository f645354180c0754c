// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of every scheduler on every kernel under random loads: nothing
//! is lost, doubled or invented, limits hold, everything drains.

use crate::rig::{Rig, Setup};
use blklab_block::Limits;
use blklab_engine::Stream;
use blklab_types::{Bio, BioFlags, IoPrio, Op, TaskId};

const KERNELS: [&str; 12] = [
    "2.6.16", "2.6.18", "2.6.24", "2.6.26", "2.6.28", "2.6.30", "2.6.33", "2.6.37", "3.0", "3.7",
    "3.10", "4.19",
];

/// Whether the kernel has the scheduler.
fn exists(sched: &str, kernel: &str) -> bool {
    let version = kernel.parse().expect("a kernel version");
    blklab_sched::find(sched, version).is_ok()
}

fn random_bio(s: &mut Stream, task: TaskId, ordered: bool) -> Bio {
    let nr_sectors = (1 + s.below(32) as u32) * 8;
    let write = s.below(2) == 1;
    let mut flags = if s.below(4) == 0 {
        BioFlags::SYNC
    } else {
        BioFlags::NONE
    };
    if write && ordered && s.below(16) == 0 {
        flags |= if s.below(2) == 0 {
            BioFlags::BARRIER | BioFlags::FLUSH
        } else {
            BioFlags::BARRIER | BioFlags::FUA
        };
    }
    Bio {
        op: if write { Op::Write } else { Op::Read },
        flags,
        sector: s.below(400) * 8,
        nr_sectors,
        segments: Bio::segments_of_pages(nr_sectors),
        task,
        ioprio: IoPrio::default(),
        cookie: 0,
    }
}

fn small_limits(l: &mut Limits) {
    l.queue_depth = 3;
    l.nr_requests = 16;
    l.max_sectors = 512;
}

/// Random submissions, unplugs, completions and waits by several tasks.
fn run(kernel: &'static str, sched: &'static str, seed: u64, ordered: bool) {
    let mut r: Rig = Setup {
        kernel,
        sched,
        hz: 250,
        limits: small_limits,
        ..Setup::default()
    }
    .rig();
    let mut s = Stream::named(seed, kernel);
    let tasks: Vec<TaskId> = (0..6).map(|_| r.task()).collect();
    let mut asleep = [false; 6];
    let mut submitted = 0;
    for _ in 0..400 {
        match s.below(10) {
            0..6 => {
                let i = s.below(6) as usize;
                if !asleep[i] {
                    let b = random_bio(&mut s, tasks[i], ordered);
                    submitted += 1;
                    asleep[i] = !r.submit_bio(b);
                }
            }
            6 => r.enter(blklab_block::sq::Queue::unplug),
            7 => {
                let now = r.agenda.now();
                r.until(now + blklab_types::Span(s.below(5_000_000)));
            }
            _ if !r.at_device.is_empty() => {
                let at = s.below(r.at_device.len() as u64) as usize;
                let rq = r.at_device.remove(at);
                r.enter(|q, cx| q.complete(cx, rq, 0));
            }
            _ => {}
        }
        settle(&mut r, &tasks, &mut asleep);
        assert!(r.at_device.len() <= 3, "queue depth");
        assert!(r.queue.pool_counts().iter().all(|&c| c <= 24), "pool cap");
        let core = r.core();
        assert!(core.in_flight as usize <= r.at_device.len());
    }
    let mut rounds = 0;
    while !r.queue.is_idle() {
        rounds += 1;
        assert!(
            rounds < 10_000,
            "{kernel} {sched} seed {seed}: the queue does not drain"
        );
        if r.at_device.is_empty() {
            r.enter(blklab_block::sq::Queue::unplug);
            let now = r.agenda.now();
            r.until(now + blklab_types::Span::from_ms(20));
        } else {
            r.complete_first();
        }
        settle(&mut r, &tasks, &mut asleep);
    }
    assert_eq!(
        r.done.len(),
        submitted,
        "{kernel} {sched} seed {seed}: every bio once"
    );
    assert_eq!(r.queue.pool_counts(), [0, 0]);
    assert_eq!(r.core().in_flight, 0);
    assert_eq!(r.core().nr_sorted, 0);
}

fn settle(r: &mut Rig, tasks: &[TaskId], asleep: &mut [bool; 6]) {
    r.settle();
    while !r.woken.is_empty() {
        let t = r.woken.remove(0);
        let i = tasks.iter().position(|&x| x == t).expect("one of ours");
        asleep[i] = !r.resume(t);
    }
}

#[test]
fn every_bio_completes_exactly_once() {
    for sched in blklab_sched::ALL.iter().map(|s| s.name) {
        for kernel in KERNELS.into_iter().filter(|k| exists(sched, k)) {
            for seed in 0..20 {
                run(kernel, sched, seed, false);
            }
        }
    }
}

#[test]
fn ordered_writes_complete_too() {
    for sched in blklab_sched::ALL.iter().map(|s| s.name) {
        for kernel in KERNELS.into_iter().filter(|k| exists(sched, k)) {
            for seed in 100..120 {
                run(kernel, sched, seed, true);
            }
        }
    }
}

#[test]
fn deadline_survives_tunables_at_their_extremes() {
    let extremes: [&[(&str, i64)]; 6] = [
        &[("fifo_batch", 0)],
        &[("fifo_batch", i32::MAX as i64)],
        &[("writes_starved", i32::MIN as i64)],
        &[("writes_starved", i32::MAX as i64)],
        &[("read_expire", 0), ("write_expire", 0)],
        &[
            ("read_expire", i32::MAX as i64),
            ("write_expire", i32::MAX as i64),
        ],
    ];
    for kernel in KERNELS {
        for tunables in extremes {
            let limits = small_limits;
            let mut r = Setup {
                kernel,
                sched: "deadline",
                hz: 250,
                tunables,
                limits,
                ..Setup::default()
            }
            .rig();
            let mut s = Stream::named(7, kernel);
            let t = r.task();
            let mut submitted = 0;
            for _ in 0..200 {
                if r.queue.pool_counts().iter().all(|&c| c < 12) {
                    let b = random_bio(&mut s, t, false);
                    assert!(r.submit_bio(b));
                    submitted += 1;
                }
                if !r.at_device.is_empty() && s.below(2) == 0 {
                    r.complete_first();
                }
                if s.below(3) == 0 {
                    r.enter(blklab_block::sq::Queue::unplug);
                }
                r.settle();
            }
            for _ in 0..1000 {
                if r.at_device.is_empty() {
                    r.enter(blklab_block::sq::Queue::unplug);
                } else {
                    r.complete_first();
                }
            }
            assert_eq!(r.done.len(), submitted, "{kernel} {tunables:?}");
        }
    }
}
