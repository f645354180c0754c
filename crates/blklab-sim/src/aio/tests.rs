// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of POSIX AIO: threads against a known service time.

use super::*;
use crate::{Machine, Sinks, build_machine};
use blklab_experiment::{Experiment, Workload};
use blklab_fio::run::Completion;
use blklab_trace::{Event, TraceSink};
use blklab_types::{IoPrio, Time};
use std::cell::RefCell;
use std::rc::Rc;

struct Nowhere;

impl TraceSink for Nowhere {
    fn event(&mut self, _: &Event) {}
}

/// A call that sleeps, one at a time per machine if `serial` is set.
struct Sleep {
    m: Machine,
    finished: Rc<RefCell<Vec<(u32, u64)>>>,
}

impl Execute for Sleep {
    /// A number, and how long it takes.
    type Op = (u32, Span);

    async fn execute(&self, _: Fd, (number, span): (u32, Span)) -> i32 {
        self.m.sleep_until(self.m.now() + span).await;
        let us = self.m.now().0 / 1000;
        self.finished.borrow_mut().push((number, us));
        0
    }
}

fn no_cost(threads_max: u32) -> Params {
    Params {
        threads_max,
        idle: Some(Span::from_ms(1000)),
        ..Params::kernel_workers()
    }
}

/// Runs `body` with an AIO library; returns when each call finished, in us.
fn with_aio<F, B>(params: Params, body: F) -> Vec<(u32, u64)>
where
    F: FnOnce(Machine, GlibcAio<Sleep>) -> B,
    B: Future<Output = ()> + 'static,
{
    let none = Workload::Processes(Vec::new());
    let mut e = Experiment::new("test", none);
    e.choose_kernel("2.6.28".parse().unwrap(), &crate::catalogue());
    let sinks = Sinks::of_events(Box::new(Nowhere));
    let m = build_machine(&e, sinks, std::sync::Arc::default()).unwrap();
    let finished = Rc::default();
    let execute = Sleep {
        m: m.clone(),
        finished: Rc::clone(&finished),
    };
    let owner = blklab_types::TaskId::default();
    let aio = GlibcAio::new(&m, execute, params, Reap::ByIndex, owner);
    let task = m.spawn_at(
        "test",
        1,
        IoPrio::default(),
        true,
        Time::ZERO,
        body(m.clone(), aio),
    );
    assert_eq!(task, owner, "the first task");
    m.run(Time::MAX);
    finished.take()
}

const MS: Span = Span::from_ms(1);

#[test]
fn two_threads_change_between_three_descriptors() {
    let finished = with_aio(no_cost(2), |_, aio| async move {
        let (a, b, c) = (Fd(0), Fd(1), Fd(2));
        for (number, fd) in [a, b, c, a, b, c].into_iter().enumerate() {
            aio.enqueue(number as u32, fd, (number as u32, MS)).await;
        }
        let mut out = Vec::new();
        aio.reap(6, 6, &mut out).await;
        assert_eq!(aio.threads_created(), 2);
    });
    // A1 and B1, then C1 and A2, then B2 and C2.
    let expected = [
        (0, 1000),
        (1, 1000),
        (2, 2000),
        (3, 2000),
        (4, 3000),
        (5, 3000),
    ];
    let mut finished = finished;
    finished.sort_unstable_by_key(|&(number, us)| (us, number));
    assert_eq!(finished, expected);
}

#[test]
fn one_descriptor_at_depth_16_waits_for_15_others() {
    const NUMBER: u32 = 2000;
    let service = Span(3_711_000);
    let mean = Rc::new(RefCell::new(0.0));
    let result = Rc::clone(&mean);
    let finished = with_aio(Params::glibc(), |m, aio| async move {
        let mut started = vec![Time::ZERO; NUMBER as usize];
        let (mut next, mut pending, mut total) = (0, 0, 0_u64);
        let mut out: Vec<Completion> = Vec::new();
        while next < NUMBER || pending > 0 {
            if next < NUMBER && pending < 16 {
                started[next as usize] = m.now();
                aio.enqueue(next, Fd(0), (next, service)).await;
                (next, pending) = (next + 1, pending + 1);
                continue;
            }
            out.clear();
            aio.reap(1, 1, &mut out).await;
            pending -= 1;
            total += m.now().since(started[out[0].record as usize]).0;
        }
        assert_eq!(aio.threads_created(), 1, "one descriptor, one thread");
        *result.borrow_mut() = total as f64 / f64::from(NUMBER) / 1e6;
    });
    let order: Vec<u32> = finished.iter().map(|f| f.0).collect();
    assert!(order.is_sorted(), "in order");
    // 16 times the service: 59.4 ms without the library's own time; 61.5
    // were published.
    assert!((59.0..61.6).contains(&*mean.borrow()), "{}", mean.borrow());
    let total_s = finished.last().unwrap().1 as f64 / 1e6;
    let expected_s = f64::from(NUMBER) * 3.711e-3;
    assert!((1.0..1.02).contains(&(total_s / expected_s)), "{total_s}");
}

#[test]
fn a_thread_without_work_stays_for_a_second() {
    for (pause_ms, threads) in [(500, 1), (1500, 2)] {
        with_aio(Params::glibc(), |m, aio| async move {
            let mut out = Vec::new();
            for number in 0..2 {
                let begin = m.now();
                aio.enqueue(number, Fd(0), (number, MS)).await;
                let spent = m.now().since(begin);
                let creates = number == 0 || threads == 2;
                assert_eq!(spent.0, if creates { 28_000 } else { 3_000 });
                aio.reap(1, 1, &mut out).await;
                m.sleep_until(m.now() + Span::from_ms(pause_ms)).await;
            }
            assert_eq!(aio.threads_created(), threads);
        });
    }
}

#[test]
fn no_more_threads_than_allowed() {
    with_aio(Params::glibc(), |_, aio| async move {
        let mut out = Vec::new();
        for number in 0..50 {
            aio.enqueue(number, Fd(number), (number, MS)).await;
        }
        aio.reap(50, 50, &mut out).await;
        assert_eq!(aio.threads_created(), 20);
        assert!(out.is_sorted_by_key(|c| c.record), "asked by index");
    });
}

/// Many small regions of a cached file: a list of n entries against n plain
/// calls.
#[test]
fn small_regions_cost_ten_times_as_much_as_plain_calls() {
    // A cached region of 1 KiB: system call, page, copy.
    let plain = Span(1000 + 1000 + 683);
    let time_of = |params: Params, list: bool, regions: u32| {
        let finished = with_aio(params, |_, aio| async move {
            let ops: Vec<_> = (0..regions).map(|n| (n, plain)).collect();
            let mut out = Vec::new();
            if list {
                aio.enqueue_list(0, Fd(0), &ops).await;
                aio.reap(1, 1, &mut out).await;
            } else {
                for op in ops {
                    aio.enqueue(op.0, Fd(0), op).await;
                }
                aio.reap(regions as usize, regions as usize, &mut out).await;
            }
        });
        finished.last().unwrap().1 as f64 / (f64::from(regions) * plain.0 as f64 / 1000.0)
    };
    let by_thread = Params {
        notify: Notification::Thread,
        ..Params::glibc()
    };
    for regions in [64, 256, 1024] {
        let list = time_of(Params::glibc(), true, regions);
        let each = time_of(by_thread, false, regions);
        assert!(list >= 10.0, "{regions} regions in a list: {list}");
        assert!(each > list, "{regions} regions with a thread each: {each}");
    }
    let signals = Params {
        notify: Notification::Signal,
        ..Params::glibc()
    };
    assert!(time_of(signals, false, 64) < time_of(by_thread, false, 64));
}

#[test]
fn the_replacement_runs_lists_side_by_side_up_to_a_limit() {
    let none = Workload::Processes(Vec::new());
    let e = Experiment::new("test", none);
    let sinks = Sinks::of_events(Box::new(Nowhere));
    let m = build_machine(&e, sinks, std::sync::Arc::default()).unwrap();
    let finished: Rc<RefCell<Vec<(u32, u64)>>> = Rc::default();
    let execute = Sleep {
        m: m.clone(),
        finished: Rc::clone(&finished),
    };
    let owner = blklab_types::TaskId::default();
    let aio = AltAio::new(&m, execute, no_cost(16), owner);
    m.spawn_at("test", 1, IoPrio::default(), true, Time::ZERO, async move {
        for list in 0..20 {
            let ops = [(2 * list, MS), (2 * list + 1, MS)];
            aio.enqueue_list(list, Fd(0), &ops).await;
        }
        let mut out = Vec::new();
        aio.reap(20, 20, &mut out).await;
    });
    m.run(Time::MAX);
    let finished = finished.take();
    let at = |number: u32| finished.iter().find(|f| f.0 == number).unwrap().1;
    assert_eq!((at(0), at(1)), (1000, 2000), "entries in order");
    assert_eq!((at(30), at(31)), (1000, 2000), "the 16th beside the first");
    assert_eq!((at(32), at(33)), (3000, 4000), "the 17th waits");
}
