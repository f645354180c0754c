// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of CFQ with groups: 2.6.33, 2.6.34, 3.7 and 4.19.

use crate::rig::{Rig, Setup, bio};
use crate::timetable::{Arrival, Table, arrivals, check, series};
use blklab_block::IoContext;
use blklab_block::sq::Limits;
use blklab_engine::Stream;
use blklab_types::{BioFlags, IoPrio, PrioClass, Span, TaskId};

/// A table on a kernel at 1000 ticks per second; 4.19 at 250, in ms.
fn table(kernel: &'static str, depth: u32, peek: bool) -> Table {
    let new = kernel.starts_with('4');
    Table {
        setup: Setup {
            kernel,
            sched: "cfq",
            hz: if new { 250 } else { 1000 },
            ..Setup::default()
        },
        tick_ns: 1_000_000,
        depth,
        peek,
        ..Table::default()
    }
}

/// The same outcome with both kinds of driver.
fn both(make: impl Fn(bool) -> Table, expected: &str) {
    for peek in [false, true] {
        check(&make(peek).run(), expected);
    }
}

fn writes_then_reads() -> Vec<Arrival> {
    let mut all = series(0, "F", "w", 8, 300_000, 8, "w");
    all.extend(series(5, "A", "a", 3, 1000, 8, ""));
    all
}

fn tens(t: Table) -> Table {
    Table {
        service: |_| 10,
        ..t
    }
}

#[test]
fn v33_1_preemption_without_effect() {
    both(
        |peek| Table {
            arrivals: writes_then_reads(),
            ..tens(table("2.6.33", 1, peek))
        },
        "w1@0 +10 w8@70 a1@80 a2@90 a3@100",
    );
}

#[test]
fn v37_1_preemption_ends_the_workload() {
    for kernel in ["3.7", "4.19"] {
        let run = |peek| {
            Table {
                arrivals: writes_then_reads(),
                ..tens(table(kernel, 1, peek))
            }
            .run()
        };
        check(&run(false), "w1@0 a1@10 a2@20 a3@30 w2@48 +10 w8@108");
        check(&run(true), "w1@0 w2@10 a1@20 a2@30 a3@40 w3@58 +10 w8@108");
    }
}

#[test]
fn v33_2_busy_wait() {
    both(
        |peek| Table {
            arrivals: series(0, "F", "w", 24, 300_000, 8, "w"),
            ..tens(table("2.6.33", 8, peek))
        },
        "w1-w8@0 w9@10 +10 w24@160",
    );
}

#[test]
fn v33_3_five_readers_share_the_target_latency() {
    let mut all = Vec::new();
    for (j, (process, name)) in [("A", "a"), ("B", "b"), ("C", "c"), ("D", "d"), ("E", "e")]
        .into_iter()
        .enumerate()
    {
        all.extend(series(
            0,
            process,
            name,
            59,
            1000 + 100_000 * j as u64,
            8,
            "",
        ));
    }
    let got = Table {
        arrivals: all,
        ..tens(table("2.6.33", 1, false))
    }
    .run();
    check(
        &got[..38],
        "a1@0 +10 a9@80 b1@90 +10 b7@150 c1@160 +10 c7@220 d1@230 +10 d7@290 e1@300 +10 e7@360 \
         a10@370",
    );
}

#[test]
fn v33_4_close_beside_a_seeking_queue() {
    let run = |peek| {
        Table {
            arrivals: arrivals(
                "0 A a1 1000000; 40 A a2 5000000; 80 A a3 2000000; 120 A a4 7000000;
                 160 A a5 3000000; 165 B b1 9000000; 175 B b2 4000000; 182 B b3 8000000;
                 190 B b4 1000",
            ),
            ..tens(table("2.6.33", 1, peek))
        }
        .run()
    };
    let a = "a1@0 a2@40 a3@80 a4@120 a5@160";
    check(&run(false), &format!("{a} b2@175 b3@185 b1@195 b4@205"));
    check(&run(true), &format!("{a} b2@175 b1@185 b3@195 b4@205"));
}

#[test]
fn v33_5_ramp_after_a_late_read() {
    both(
        |peek| {
            let mut all = arrivals("0 A a1 1000");
            all.extend((0..12).map(|i| Arrival::new(&format!("1 F w{i} {}w", 300_000 + 8 * i))));
            Table {
                arrivals: all,
                service: |name| if name == "a1" { 150 } else { 10 },
                ..table("2.6.33", 8, peek)
            }
        },
        "a1@0 w0@158 +10 w11@268",
    );
}

fn two_bursts() -> Vec<Arrival> {
    let mut all = series(0, "A", "a", 30, 1000, 8, "");
    all.extend(series(0, "B", "b", 30, 500_000, 8, ""));
    all
}

/// The bursts on a kernel, with patches and tunables.
fn bursts(
    kernel: &'static str,
    patches: &'static [&'static str],
    tunables: &'static [(&'static str, i64)],
    expected: &str,
) {
    both(
        |peek| {
            let mut t = Table {
                arrivals: two_bursts(),
                service: |_| 3,
                ..table(kernel, 32, peek)
            };
            t.setup.patches = patches;
            t.setup.tunables = tunables;
            t
        },
        expected,
    );
}

const HARD: &str = "a1-a4@0 a5@3 +3 a30@78 b1-b30@98";
const SOFT: &str = "a1-a4@0 a5-a9@3 a10@6 +3 a23@45 a24@51 a25@54 a26@60 a27@63 a28@69 a29@75 \
                    a30@78 b1-b30@98";

#[test]
fn v33_6_hard_quantum() {
    bursts("2.6.33", &[], &[], HARD);
}

#[test]
fn v34_6_soft_quantum() {
    bursts("2.6.34", &[], &[], SOFT);
}

#[test]
fn quantum_limits_by_kernel() {
    let one = "a1@0 +3 a30@87 b1-b30@98";
    bursts("2.6.33", &[], &[("quantum", 1)], one);
    bursts("2.6.34", &[], &[("quantum", 1)], one);
    let soft_16 = "a1-a16@0 a17@3 +3 a30@42 b1-b30@98";
    bursts("2.6.34", &[], &[("quantum", 32)], soft_16);
}

#[test]
fn pq_quantum_rules() {
    let linear = "a1-a4@0 a5-a14@3 a15@6 a16@12 a17@15 a18@21 a19@27 a20@30 a21@36 a22@39 a23@45 \
                  a24@51 a25@54 a26@60 a27@63 a28@69 a29@75 a30@78 b1-b30@98";
    let open = "a1-a4@0 a5-a30@3 b1-b30@98";
    bursts("2.6.33", &["quantum_hard"], &[], HARD);
    bursts("2.6.33", &["quantum_tweak1"], &[], open);
    bursts("2.6.33", &["quantum_log"], &[], open);
    bursts("2.6.33", &["quantum_sqrt"], &[], open);
    bursts("2.6.33", &["quantum_tweak"], &[], linear);
    bursts(
        "2.6.33",
        &["quantum_tweak1", "quantum_tweak2"],
        &[("low_latency", 0)],
        "a1-a30@0 b1-b30@98",
    );
    bursts("2.6.33", &["quantum_soft"], &[("quantum", 8)], SOFT);
    bursts("2.6.34", &["quantum_soft"], &[], SOFT);
    bursts("2.6.34", &["quantum_hard"], &[("quantum", 4)], HARD);
}

#[test]
fn v419_2_iops_mode() {
    both(
        |peek| {
            let mut all = series(0, "A", "a", 6, 1000, 1000, "");
            all.extend(series(0, "B", "b", 6, 500_000, 1000, ""));
            all.extend(series(0, "F", "w", 3, 900_000, 1000, "w"));
            let mut t = Table {
                arrivals: all,
                service: |_| 1,
                ..table("4.19", 32, peek)
            };
            t.setup.limits = |l| l.queue.rotational = false;
            t
        },
        "a1-a4@0 a5@1 a6@1 b1-b6@1 w1-w3@12",
    );
}

#[test]
fn v419_3_a_small_request_leaves_the_timer_armed() {
    both(
        |peek| Table {
            arrivals: arrivals("0 A a1 1000; 13 A a2 1008+4; 15 B b1 700000; 60 A a3 1012"),
            ..tens(table("4.19", 1, peek))
        },
        "a1@0 a2@13 b1@23 a3@60",
    );
}

/// A in the first group, B in the second.
fn one_each(process: &str, ioc: &mut IoContext) {
    ioc.group = match process {
        "A" => 1,
        "B" => 2,
        _ => 0,
    };
}

/// Worked by hand. Group 1 weighs twice as much as group 2. A turn is eleven
/// requests (100 ms from the first completion); it costs group 1 204800 and
/// group 2 409600 of virtual time, so group 1 has two turns to one. Group 2
/// starts 200 behind, which decides the tie at 409600 against 409800.
#[test]
fn groups_share_by_weight() {
    for kernel in ["2.6.33", "2.6.34", "3.7", "4.19"] {
        let mut all = series(0, "A", "a", 70, 1000, 8, "");
        all.extend(series(0, "B", "b", 70, 500_000, 8, ""));
        let got = Table {
            arrivals: all,
            groups: &[1000, 500],
            processes: one_each,
            ..tens(table(kernel, 1, false))
        }
        .run();
        check(
            &got[..77],
            "a1@0 +10 a11@100 b1@110 +10 b11@210 a12@220 +10 a33@430 b12@440 +10 b22@540 \
             a34@550 +10 a55@760",
        );
    }
}

/// The next request of a sequential reader, 1 ms after a completion.
fn goes_on(done: &str, tick: u64) -> Option<Arrival> {
    let (process, base) = match &done[..1] {
        "a" => ("A", 1000),
        _ => ("B", 500_000),
    };
    let n: u64 = done[1..].parse().expect("a number");
    let (at, name, sector) = (tick + 1, &done[..1], base + 8 * n);
    (n < 40).then(|| Arrival::new(&format!("{at} {process} {name}{} {sector}", n + 1)))
}

/// Worked by hand. No queue is idled for (`slice_idle` 0), but a group of one
/// queue is, for up to 8 ms. The slice of A runs from 10 to 110; at 109 one
/// tick is left, so it is prolonged; the request at 110 ends the turn. Groups
/// are charged by requests, ten each.
#[test]
fn a_group_is_idled_for() {
    let make = |groups: &'static [u32]| {
        let mut t = Table {
            arrivals: arrivals("0 A a1 1000; 0 B b1 500000"),
            groups,
            processes: one_each,
            next: goes_on,
            ..tens(table("3.7", 1, false))
        };
        t.setup.tunables = &[("slice_idle", 0)];
        t
    };
    check(
        &make(&[500, 500]).run()[..21],
        "a1@0 a2@11 +11 a10@99 b1@110 b2@121 +11 b10@209 a11@220",
    );
    // In one group nobody waits: the two alternate.
    let one = Table {
        processes: |_, _| {},
        ..make(&[])
    };
    check(&one.run()[..4], "a1@0 b1@10 a2@20 b2@30");
}

/// A child counts against its siblings, and against its parent's own tasks.
#[test]
fn groups_nest_in_4_19() {
    let mut r = rig("4.19", &[]);
    let parent = r.group(0, 500);
    let child = r.group(parent, 500);
    let other = r.group(0, 1000);
    let tasks = [parent, child, other].map(|group| {
        let t = r.task();
        r.io_context(t).group = group;
        t
    });
    let mut served = [0_u32; 3];
    for round in 0..4000_u64 {
        for (i, t) in tasks.into_iter().enumerate() {
            if round < 8 {
                let at = 1_000_000 * (i as u64 + 1) + round * 8;
                let b = bio(t, &format!("R {at}+8"));
                r.enter_as(t, |q, cx| q.insert_bare(cx, &b));
            }
        }
        r.enter(blklab_block::sq::Queue::run_work);
        let now = r.agenda.now();
        r.until(now + Span::from_ms(1));
        if let Some(&rq) = r.at_device.first() {
            let sector = r.core().rqs[rq].sector;
            let i = (sector / 1_000_000 - 1) as usize;
            served[i] += 1;
            r.complete_first();
            let b = bio(tasks[i], &format!("R {}+8", sector + 64));
            r.enter_as(tasks[i], |q, cx| q.insert_bare(cx, &b));
        }
    }
    // 1/6 and 1/6 below the first group, 2/3 for the other; short turns run
    // over by more than long ones.
    let share = |i: usize| f64::from(served[i]) / f64::from(served.iter().sum::<u32>());
    assert!((share(0) - 1.0 / 6.0).abs() < 0.05, "{served:?}");
    assert!((share(1) - 1.0 / 6.0).abs() < 0.05, "{served:?}");
    assert!((share(2) - 2.0 / 3.0).abs() < 0.05, "{served:?}");
}

/// Worked by hand: a best-effort reader preempts the idle class, and CFQ
/// idles for it before it goes back.
#[test]
fn idle_class_yields() {
    for kernel in ["2.6.33", "2.6.34", "3.7"] {
        both(
            |peek| Table {
                arrivals: arrivals(
                    "0 I i1 3000; 0 I i2 3008; 0 I i3 3016; 1 A a1 5000; 1 A a2 5008",
                ),
                processes: |process, ioc| {
                    if process == "I" {
                        ioc.ioprio.class = PrioClass::Idle;
                    }
                },
                ..tens(table(kernel, 1, peek))
            },
            "i1@0 a1@10 a2@20 i2@38 i3@48",
        );
    }
}

fn mention<'a>(all: &'a [String], part: &str) -> Vec<&'a str> {
    let said = all.iter().filter(|m| m.contains(part));
    said.map(String::as_str).collect()
}

/// A reader that ends takes the idle time it was given with it.
#[test]
fn exit_ends_the_turn() {
    let mut r = rig("2.6.33", &[]);
    let (a, b) = (r.task(), r.task());
    for t in [a, b] {
        r.submit(t, &format!("R {}+8", 100_000 * (t.0 + 1)));
        r.enter(blklab_block::sq::Queue::unplug);
    }
    r.complete(100_000);
    r.until_jiffy(1);
    let said = r.messages();
    assert_eq!(mention(&said, "arm_idle"), ["cfq100 arm_idle: 2"]);
    assert!(r.at_device.is_empty());
    r.enter_as(a, |q, cx| q.exit_task(cx, a));
    r.settle();
    assert_eq!(r.at_device.len(), 1, "the other reader is served at once");
    assert_eq!(mention(&r.messages(), "put_queue"), ["cfq100 put_queue"]);
}

/// A new priority holds from the next request on, and lengthens the slice
/// that begins then.
#[test]
fn priority_changes_with_the_next_request() {
    let mut r = rig("3.7", &[("low_latency", 0)]);
    let t = r.task();
    let mut slices = Vec::new();
    for (i, level) in [4, 4, 0, 7].into_iter().enumerate() {
        r.io_context(t).ioprio = IoPrio {
            class: PrioClass::BestEffort,
            level,
        };
        r.submit(t, &format!("R {}+8", 1000 + 8 * i));
        r.complete_first();
        // Long enough for the slice to end.
        let now = r.agenda.now();
        r.until(now + Span::from_s(1));
        let said = r.messages();
        slices.extend(mention(&said, "set_slice").into_iter().map(str::to_owned));
        let other = r.task();
        r.submit(other, "R 900000+8");
        r.complete_first();
        r.enter_as(other, |q, cx| q.exit_task(cx, other));
        r.settle();
        r.messages();
    }
    let expected = ["25", "25", "45", "10"].map(|s| format!("cfq100 set_slice={s}"));
    assert_eq!(slices, expected);
}

/// A barrier empties the scheduler.
#[test]
fn a_barrier_forces_everything_out() {
    for kernel in ["2.6.33", "2.6.34"] {
        let mut r = Setup {
            kernel,
            sched: "cfq",
            limits: |l: &mut Limits| l.unplug_thresh = 1000,
            ..Setup::default()
        }
        .rig();
        let tasks: Vec<TaskId> = (0..3).map(|_| r.task()).collect();
        r.io_context(tasks[2]).ioprio.class = PrioClass::RealTime;
        for (i, &t) in tasks.iter().enumerate() {
            let letters = ["R", "W", "R"][i];
            for n in 0..2 {
                r.submit(t, &format!("{letters} {}+8", 10_000 * (i + 1) + 16 * n));
            }
        }
        r.submit(tasks[0], "WB 50000+8");
        assert_eq!(mention(&r.messages(), "forced"), ["cfq forced_dispatch=6"]);
        assert_eq!(r.core().nr_sorted, 0);
        r.enter(blklab_block::sq::Queue::unplug);
        let mut order = Vec::new();
        while let Some(&rq) = r.at_device.first() {
            let rq = &r.core().rqs[rq];
            order.push((rq.sector, rq.nr_sectors));
            r.complete_first();
            r.settle();
        }
        // Async queues first; by sector inside a direction; the real-time
        // queue last, but it is sorted among the other reads.
        order.retain(|&(sector, len)| len > 0 && sector < 50_000);
        let sectors: Vec<u64> = order.iter().map(|&(sector, _)| sector).collect();
        assert_eq!(sectors, [20_000, 20_016, 10_000, 10_016, 30_000, 30_016]);
    }
}

/// Two processes that read alternate pieces come to share a queue, which is
/// broken up when they seek.
#[test]
fn cooperators_merge_and_split() {
    for kernel in ["2.6.33", "3.7", "4.19"] {
        let mut r = rig(kernel, &[]);
        let (a, b, c) = (r.task(), r.task(), r.task());
        let mut said = Vec::new();
        let go = |r: &mut Rig, t: TaskId, at: u64| {
            r.submit(t, &format!("R {at}+16"));
            r.enter(blklab_block::sq::Queue::unplug);
        };
        go(&mut r, a, 1000);
        go(&mut r, c, 5_000_000);
        // While A's piece is read, B's, right behind it, comes.
        go(&mut r, b, 1016);
        r.complete(1000);
        said.append(&mut r.messages());
        go(&mut r, a, 1032);
        said.append(&mut r.messages());
        assert_eq!(
            mention(&said, "merging with queue ptr").len(),
            1,
            "{kernel}: {said:#?}"
        );
        for n in 0..40 {
            let t = if n % 2 == 0 { a } else { b };
            go(&mut r, t, 100_000 * (n * 7 % 40 + 1));
            r.settle();
            while !r.at_device.is_empty() {
                r.complete_first();
                r.settle();
            }
            let now = r.agenda.now();
            r.until(now + Span::from_ms(40));
            said.append(&mut r.messages());
        }
        let split = mention(&said, "breaking apart cfqq");
        assert!(!split.is_empty(), "{kernel}: {said:#?}");
    }
}

/// Every era, and the releases between whose rules are mixed.
const KERNELS: [&str; 11] = [
    "2.6.33", "2.6.34", "2.6.36", "2.6.38", "2.6.39", "3.2", "3.7", "3.10", "4.4", "4.9", "4.19",
];

fn rig(kernel: &'static str, tunables: &'static [(&'static str, i64)]) -> Rig {
    Setup {
        kernel,
        sched: "cfq",
        hz: 250,
        tunables,
        limits: |l: &mut Limits| {
            l.queue_depth = 3;
            l.queue.max_sectors = 512;
        },
        ..Setup::default()
    }
    .rig()
}

/// Random requests of tasks that move between groups and priorities, and end.
fn churn(kernel: &'static str, tunables: &'static [(&'static str, i64)], seed: u64, groups: u64) {
    let mut r = rig(kernel, tunables);
    let mut s = Stream::named(seed, kernel);
    for parent in 0..groups {
        r.group(s.below(parent + 1) as u16, 10 + s.below(1000) as u32);
    }
    let mut tasks: Vec<TaskId> = (0..5).map(|_| r.task()).collect();
    let mut submitted = 0;
    for _ in 0..600 {
        let i = s.below(5) as usize;
        let t = tasks[i];
        match s.below(12) {
            0..6 if r.queue.pool_counts().iter().all(|&c| c < 100) => {
                let letters = ["R", "W", "WS"][s.below(3) as usize];
                let near = 4096 * s.below(3) + 8 * s.below(64);
                let at = if s.below(3) == 0 {
                    8 * s.below(1 << 20)
                } else {
                    near
                };
                let mut b = bio(t, &format!("{letters} {at}+{}", 8 + 8 * s.below(4)));
                if s.below(4) == 0 {
                    b.flags |=
                        [BioFlags::NOIDLE, BioFlags::META | BioFlags::PRIO][s.below(2) as usize];
                }
                submitted += 1;
                assert!(r.submit_bio(b));
            }
            6 => r.enter(blklab_block::sq::Queue::unplug),
            7 | 8 => {
                let now = r.agenda.now();
                r.until(now + Span(s.below(30_000_000)));
            }
            9 if s.below(4) == 0 => {
                r.enter_as(t, |q, cx| q.exit_task(cx, t));
                tasks[i] = r.task();
            }
            10 => {
                let class = [PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle]
                    [s.below(3) as usize];
                let level = s.below(8) as u8;
                let group = s.below(groups + 1) as u16;
                let ioc = r.io_context(t);
                ioc.ioprio = IoPrio { class, level };
                ioc.fs_exclusive = level.is_multiple_of(2);
                ioc.group = group;
            }
            _ if !r.at_device.is_empty() => r.complete_first(),
            _ => {}
        }
        r.settle();
    }
    for t in tasks {
        r.enter_as(t, |q, cx| q.exit_task(cx, t));
    }
    for _ in 0..20_000 {
        if r.at_device.is_empty() {
            r.enter(blklab_block::sq::Queue::unplug);
            let now = r.agenda.now();
            r.until(now + Span::from_ms(20));
        } else {
            r.complete_first();
        }
        r.settle();
        if r.queue.is_idle() {
            break;
        }
    }
    assert_eq!(r.done.len(), submitted, "{kernel} {tunables:?} seed {seed}");
}

#[test]
fn tasks_move_and_end() {
    for kernel in KERNELS {
        for seed in 0..12 {
            churn(kernel, &[], seed, 0);
            churn(kernel, &[], seed, 4);
        }
    }
    for seed in 0..12 {
        churn("2.6.33", &[("group_isolation", 1)], seed, 4);
        churn("3.7", &[("slice_idle", 0)], seed, 4);
        churn("4.19", &[("slice_idle", 0)], seed, 4);
    }
}

#[test]
fn tunables_at_their_extremes() {
    const MAX: i64 = u32::MAX as i64;
    let extremes: [&[(&str, i64)]; 14] = [
        &[("quantum", 1)],
        &[("quantum", MAX)],
        &[("fifo_expire_sync", 1), ("fifo_expire_async", 1)],
        &[("fifo_expire_sync", MAX), ("fifo_expire_async", MAX)],
        &[("back_seek_max", 0), ("back_seek_penalty", 1)],
        &[("back_seek_max", MAX), ("back_seek_penalty", MAX)],
        &[("slice_sync", 1), ("slice_async", 1)],
        &[("slice_sync", MAX), ("slice_async", MAX)],
        &[("slice_sync", 1), ("slice_async", MAX)],
        &[("slice_async_rq", 1)],
        &[("slice_async_rq", MAX)],
        &[("slice_idle", 0), ("low_latency", 0)],
        &[("slice_idle", 1)],
        &[("slice_idle", 60_000), ("slice_async_rq", 1)],
    ];
    for kernel in KERNELS {
        for (seed, tunables) in extremes.into_iter().enumerate() {
            let endless = tunables
                .iter()
                .any(|&(n, v)| n.starts_with("slice_") && v > 1000);
            if !endless {
                churn(kernel, tunables, seed as u64, 3);
            }
            // With slices that never end, time has to pass for the rest.
            short(kernel, tunables);
        }
    }
}

/// A few requests of three tasks, none lost.
fn short(kernel: &'static str, tunables: &'static [(&'static str, i64)]) {
    let mut r = rig(kernel, tunables);
    let tasks: Vec<TaskId> = (0..3).map(|_| r.task()).collect();
    for round in 0..20_u64 {
        for (i, &t) in tasks.iter().enumerate() {
            let letters = ["R", "W", "WS"][i];
            let at = 100_000 * i as u64 + 16 * round;
            r.submit(t, &format!("{letters} {at}+8"));
        }
        r.enter(blklab_block::sq::Queue::unplug);
        r.settle();
        if round % 2 == 0 && !r.at_device.is_empty() {
            r.complete_first();
        }
    }
    for t in tasks {
        r.enter_as(t, |q, cx| q.exit_task(cx, t));
    }
    for _ in 0..1000 {
        if !r.at_device.is_empty() {
            r.complete_first();
        } else {
            r.enter(blklab_block::sq::Queue::unplug);
            let now = r.agenda.now();
            r.until(now + Span::from_s(1));
        }
        r.settle();
    }
    let waiting = r.core().nr_sorted;
    let endless = tunables
        .iter()
        .any(|&(n, v)| n.starts_with("slice_") && v > 1000);
    assert!(
        endless || waiting == 0,
        "{kernel} {tunables:?}: {waiting} wait"
    );
}
