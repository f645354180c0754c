// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of CFQ with one service tree: their vectors, and every one at its
//! extremes under random loads with ends and changes of processes.

use crate::cfq_tree::{cfq, prio, said, table, ticks_of};
use crate::rig::{Rig, Setup};
use crate::timetable::{Arrival, Table, arrivals, series};
use blklab_block::CpuPolicy;
use blklab_block::sq::{Limits, Queue};
use blklab_engine::Stream;
use blklab_kernel::Tunables;
use blklab_types::{Bio, BioFlags, IoPrio, Op, PrioClass, Span, TaskId};

const KERNELS: [&str; 10] = [
    "2.6.22", "2.6.23", "2.6.24", "2.6.25", "2.6.26", "2.6.28", "2.6.29", "2.6.30", "2.6.31",
    "2.6.32",
];

type Written = &'static [(&'static str, i64)];

fn at_250_hz(kernel: &'static str, tunables: Written) -> Setup {
    Setup {
        hz: 250,
        ..cfq(kernel, tunables)
    }
}

/// Whether a request counts as old this many ticks after it was made.
fn is_old_after(ticks: u64, tunables: Written) -> bool {
    let a1 = format!("{} A a1 1000", 200 - ticks);
    let mut all = arrivals("0 B b1 5000");
    all.push(Arrival::new(&a1));
    let t = Table {
        setup: at_250_hz("2.6.28", tunables),
        // The driver asks again at 200.
        ..table(|n| if n == "b1" { 200 } else { 5 }, all)
    };
    !ticks_of(&said(t), "cfq101 fifo=ptr").is_empty()
}

#[test]
fn t1_fifo_expire_rounds_up_to_ticks() {
    // Without idling, so that the driver's question is answered at once.
    const T125: Written = &[("fifo_expire_sync", 125), ("slice_idle", 0)];
    const T0: Written = &[("fifo_expire_sync", 0), ("slice_idle", 0)];
    const DEFAULT: Written = &[("slice_idle", 0)];
    assert!(is_old_after(32, T125) && !is_old_after(31, T125));
    assert!(is_old_after(31, DEFAULT) && !is_old_after(30, DEFAULT));
    assert!(is_old_after(1, T0) && !is_old_after(0, T0));
}

#[test]
fn t2_slice_idle_rounds_up_to_ticks() {
    let idles = |tunables| {
        let t = Table {
            setup: at_250_hz("2.6.28", tunables),
            ..table(|_| 5, arrivals("0 A a1 1000"))
        };
        let said = said(t);
        said.into_iter()
            .find_map(|(_, m)| m.strip_prefix("cfq arm_idle: ").map(str::to_owned))
    };
    assert_eq!(idles(&[("slice_idle", 5)]).as_deref(), Some("2"));
    assert_eq!(idles(&[("slice_idle", 9)]).as_deref(), Some("3"));
    assert_eq!(idles(&[("slice_idle", 0)]), None);
}

#[test]
fn t3_values_below_the_range_become_its_lower_end() {
    let version = "2.6.28".parse().expect("a version");
    let sched = blklab_sched::find("cfq", version).expect("cfq");
    let mut t = Tunables::defaults(sched.tunables, version);
    assert_eq!(t.set("quantum", 0), Ok(1));
    assert_eq!(t.set("quantum", 6), Ok(6));
    assert_eq!(t.set("back_seek_max", 0), Ok(0));
    assert!(t.set("low_latency", 1).is_err());
    // Without reach, what lies behind waits for the sweep to come round.
    let all = "0 B b1 5000; 1 A a1 4992; 2 A a2 9000; 3 A a3 9500";
    let reach = |tunables| {
        let t = Table {
            setup: cfq("2.6.30", tunables),
            ..table(|_| 20, arrivals(all))
        };
        t.run()[1].clone()
    };
    assert_eq!(reach(&[("back_seek_max", 0)]), "a2@20");
    assert_eq!(reach(&[]), "a1@20");
}

fn by_level(process: &str, ioc: &mut blklab_block::IoContext) {
    let level = process[1..].parse().expect("a level");
    ioc.ioprio = prio(PrioClass::BestEffort, level);
}

/// Slices of levels 0 to 7.
fn slices(slice_sync: Written) -> Vec<String> {
    (0..8)
        .map(|level| {
            let t = Table {
                setup: cfq("2.6.28", slice_sync),
                processes: by_level,
                ..table(|_| 5, arrivals(&format!("0 P{level} a1 1000")))
            };
            let said = said(t);
            let length =
                |(_, m): &(u64, String)| m.split_once("set_slice=").map(|x| x.1.to_owned());
            said.iter().find_map(length).expect("a slice")
        })
        .collect()
}

#[test]
fn t4_t5_slices_by_level() {
    let expected = ["90", "80", "70", "60", "50", "40", "30", "20"];
    assert_eq!(slices(&[("slice_sync", 50)]), expected);
    assert_eq!(slices(&[("slice_sync", 3)]), ["3"; 8]);
    let expected = ["180", "160", "140", "120", "100", "80", "60", "40"];
    assert_eq!(slices(&[]), expected);
}

#[test]
fn t6_low_latency_is_a_switch() {
    let version = "2.6.32".parse().expect("a version");
    let sched = blklab_sched::find("cfq", version).expect("cfq");
    let mut t = Tunables::defaults(sched.tunables, version);
    assert_eq!(t.get("low_latency"), 1);
    assert_eq!(t.set("low_latency", 2), Ok(1));
    assert_eq!(t.set("low_latency", 0), Ok(0));
}

/// Requests of an async queue of a level in its first slice beside another
/// queue.
fn async_requests_per_slice(level: u8, tunables: Written) -> usize {
    let mut all = series(0, &format!("P{level}"), "w", 60, 100_000, 8, "w");
    // The other comes with the same level, but as a reader's queue would
    // hold it back, it is async too and of another class slot.
    let other = (level + 1) % 8;
    all.extend(series(0, &format!("P{other}"), "x", 60, 500_000, 8, "w"));
    let t = Table {
        setup: cfq("2.6.30", tunables),
        processes: by_level,
        depth: 200,
        ..table(|_| 1, all)
    };
    let said = said(t);
    let first = said
        .iter()
        .position(|(_, m)| m.ends_with("set_active"))
        .expect("a slice");
    let pid = said[first].1.split(' ').next().expect("a pid").to_owned();
    assert_eq!(pid, "cfq100");
    said[first..]
        .iter()
        .take_while(|(_, m)| !m.contains("slice expired"))
        .filter(|(_, m)| m.ends_with("dispatch_insert"))
        .count()
}

#[test]
fn t11_slice_async_rq() {
    const ONE: Written = &[("slice_async_rq", 1), ("quantum", 1000)];
    const TWO: Written = &[("slice_async_rq", 2), ("quantum", 1000)];
    let limits_of = |tunables| {
        (0..8)
            .map(|l| async_requests_per_slice(l, tunables))
            .collect::<Vec<_>>()
    };
    assert_eq!(limits_of(ONE), [16, 14, 12, 10, 8, 6, 4, 2]);
    assert_eq!(limits_of(TWO), [32, 28, 24, 20, 16, 12, 8, 4]);
}

/// Every tunable of a release at both ends.
fn extremes(kernel: &str) -> Vec<(&'static str, i64)> {
    let version = kernel.parse().expect("a version");
    let sched = blklab_sched::find("cfq", version).expect("cfq");
    let of_release = sched.tunables.iter().filter(|t| t.is_in(version));
    of_release
        .flat_map(|t| [(t.name, t.range.0), (t.name, t.range.1)])
        .collect()
}

fn small(l: &mut Limits) {
    l.queue_depth = 3;
    l.nr_requests = 16;
    l.queue.max_sectors = 512;
}

fn random_prio(s: &mut Stream) -> IoPrio {
    let class = match s.below(4) {
        0 => PrioClass::None,
        1 => PrioClass::RealTime,
        2 => PrioClass::BestEffort,
        _ => PrioClass::Idle,
    };
    prio(class, s.below(8) as u8)
}

fn random_flags(s: &mut Stream, op: Op) -> BioFlags {
    let mut flags = BioFlags::NONE;
    for flag in [
        BioFlags::SYNC,
        BioFlags::META,
        BioFlags::NOIDLE,
        BioFlags::UNPLUG,
    ] {
        if s.below(4) == 0 {
            flags |= flag;
        }
    }
    if op == Op::Write && s.below(30) == 0 {
        flags |= BioFlags::BARRIER;
    }
    flags
}

fn random_bio(s: &mut Stream, task: TaskId) -> Bio {
    let nr_sectors = (1 + s.below(16) as u32) * 8;
    let op = if s.below(2) == 0 { Op::Read } else { Op::Write };
    Bio {
        op,
        flags: random_flags(s, op),
        sector: s.below(300) * 8 * (1 + s.below(2) * 10_000),
        nr_sectors,
        segments: Bio::segments_of_pages(nr_sectors),
        task,
        ..Bio::default()
    }
}

/// A process changes or ends.
fn random_change(r: &mut Rig, s: &mut Stream, task: TaskId) {
    match s.below(5) {
        0 => r.io_context(task).ioprio = random_prio(s),
        1 => r.io_context(task).nice = s.below(40) as i8 - 20,
        2 => r.io_context(task).fs_exclusive = s.below(2) == 0,
        3 => {
            r.io_context(task).policy = match s.below(3) {
                0 => CpuPolicy::Idle,
                1 => CpuPolicy::RealTime,
                _ => CpuPolicy::Other,
            }
        }
        _ => r.enter_as(task, |q, cx| q.exit_task(cx, task)),
    }
}

fn wake(r: &mut Rig, asleep: &mut [bool], tasks: &[TaskId]) {
    r.settle();
    while !r.woken.is_empty() {
        let t = r.woken.remove(0);
        let i = tasks.iter().position(|&x| x == t).expect("one of ours");
        asleep[i] = !r.resume(t);
    }
}

/// A random load; at its end every process exits and everything drains.
fn stress(setup: Setup, seed: u64) {
    let what = format!(
        "{} {:?} {:?} seed {seed}",
        setup.kernel, setup.tunables, setup.patches
    );
    let mut s = Stream::named(seed, setup.kernel);
    let mut r = Setup {
        limits: small,
        ..setup
    }
    .rig();
    let tasks: Vec<TaskId> = (0..6).map(|_| r.task()).collect();
    let mut asleep = [false; 6];
    let mut submitted = 0;
    for _ in 0..300 {
        let i = s.below(6) as usize;
        match s.below(12) {
            0..6 if !asleep[i] => {
                let b = random_bio(&mut s, tasks[i]);
                submitted += 1;
                asleep[i] = !r.submit_bio(b);
            }
            6 => r.enter(Queue::unplug),
            7 => {
                let now = r.agenda.now();
                r.until(now + Span(s.below(9_000_000)));
            }
            8 if !asleep[i] && s.below(4) == 0 => random_change(&mut r, &mut s, tasks[i]),
            _ if !r.at_device.is_empty() => {
                let at = s.below(r.at_device.len() as u64) as usize;
                let rq = r.at_device.remove(at);
                r.enter(|q, cx| q.complete(cx, rq, 0));
            }
            _ => {}
        }
        wake(&mut r, &mut asleep, &tasks);
    }
    let mut rounds = 0;
    while !r.queue.is_idle() {
        rounds += 1;
        assert!(rounds < 5_000, "{what}: the queue does not drain");
        if r.at_device.is_empty() {
            r.enter(Queue::unplug);
            let now = r.agenda.now();
            r.until(now + Span::from_ms(20));
        } else {
            r.complete_first();
        }
        wake(&mut r, &mut asleep, &tasks);
        for (i, task) in tasks.iter().enumerate() {
            if !asleep[i] {
                r.enter_as(*task, |q, cx| q.exit_task(cx, *task));
            }
        }
    }
    assert_eq!(r.done.len(), submitted, "{what}: every bio once");
    assert_eq!(r.core().nr_sorted, 0, "{what}");
}

#[test]
fn random_loads_with_changing_processes_drain() {
    for kernel in KERNELS {
        for seed in 0..30 {
            stress(cfq(kernel, &[]), seed);
        }
    }
}

#[test]
fn random_loads_drain_with_every_tunable_at_its_extremes() {
    for kernel in KERNELS {
        for extreme in extremes(kernel) {
            let tunables: Written = Vec::leak(vec![extreme]);
            for (seed, hz) in [(1, 100), (2, 250), (3, 1000)] {
                let setup = Setup {
                    hz,
                    ..cfq(kernel, tunables)
                };
                stress(setup, seed);
            }
        }
    }
}

#[test]
fn random_loads_drain_with_patches() {
    let sets: [(&str, &[&str]); 8] = [
        ("2.6.28", &["preempt_pullback"]),
        ("2.6.28", &["preempt_pullback_minimal"]),
        ("2.6.28", &["single_dispatch", "preempt_pullback"]),
        ("2.6.28", &["drain_async", "async_ramp"]),
        ("2.6.28", &["single_dispatch", "async_ramp_delayed"]),
        ("2.6.29", &["preempt_pullback"]),
        ("2.6.30", &["preempt_pullback_minimal"]),
        ("2.6.31", &["preempt_pullback"]),
    ];
    for (kernel, patches) in sets {
        for seed in 0..30 {
            let setup = Setup {
                patches,
                ..cfq(kernel, &[])
            };
            stress(setup, seed);
        }
    }
}
