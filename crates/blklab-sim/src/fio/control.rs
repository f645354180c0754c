// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's main loop: who starts when.

use super::files::{Plan, write_first};
use super::flow::Flows;
use super::job::{Settings, run_job};
use super::offload::Overlaps;
use super::recording::{Recording, Slot};
use super::steady::{Steady, SteadyWatch};
use crate::Machine;
use crate::told::FIO_PID;
use blklab_fio::settings::ExitWhat;
use blklab_pagecache::PageCache;
use blklab_types::{Span, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How far repetitions shift the start of a job: fio's main process looks every
/// 10 ms whether a job is due.
pub const START_JITTER_NS: u64 = 10_000_000;

/// What the controller knows of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// Which jobs run, shared between the controller and the jobs.
#[derive(Debug)]
struct Board {
    states: Vec<State>,
    /// Each job's is shared with it.
    terminate: Vec<Rc<Cell<bool>>>,
    groups: Vec<u32>,
}

impl Board {
    /// A job with `exitall` ended: those it takes along end at their next
    /// step, or are never started.
    fn exit_others(&mut self, ended: usize, what: ExitWhat) {
        for i in 0..self.states.len() {
            let taken_along = match what {
                ExitWhat::Group => self.groups[i] == self.groups[ended],
                ExitWhat::Stonewall => self.states[i] == State::Running,
                ExitWhat::All => true,
            };
            if taken_along {
                self.end(i);
            }
        }
    }

    /// Jobs end at their steady state.
    fn end_steady(&mut self, steady: Steady) {
        for i in 0..self.states.len() {
            if steady.takes(i, self.groups[i]) {
                self.end(i);
            }
        }
    }

    /// A job ends at its next step, or is never started.
    fn end(&mut self, i: usize) {
        self.terminate[i].set(true);
        if self.states[i] == State::Waiting {
            self.states[i] = State::Ended;
        }
    }
}

/// Starts the jobs in order, as delays, stonewalls and `wait_for` allow.
pub(crate) async fn control(
    m: Machine,
    cache: PageCache<Machine>,
    mut plans: Vec<Box<Plan>>,
    slots: Vec<Slot>,
    settings: Settings,
) {
    let me = m.current();
    write_first(&cache, &plans).await;
    let begin = m.now();
    let (flows, overlaps) = (Flows::default(), Overlaps::default());
    for plan in &mut plans {
        plan.share = flows.join(&plan.job);
        plan.overlaps = overlaps.clone();
    }
    let mut watch = SteadyWatch::new(&mut plans, begin);
    let rules: Vec<Rule> = plans.iter().map(|p| Rule::new(p, &plans)).collect();
    let mut plans: Vec<Option<Box<Plan>>> = plans.into_iter().map(Some).collect();
    let board = Rc::new(RefCell::new(Board {
        states: vec![State::Waiting; plans.len()],
        terminate: plans.iter().map(|_| Rc::default()).collect(),
        groups: rules.iter().map(|r| r.group).collect(),
    }));
    loop {
        if let Some(watch) = &mut watch {
            for steady in watch.look(m.now(), &slots) {
                board.borrow_mut().end_steady(steady);
                flows.wake(&m);
            }
        }
        let (mut start, next_delay) = startable(&board.borrow(), &rules, begin, m.now());
        if settings.looks.last_begins_first && !start.is_empty() {
            start.rotate_right(1);
        }
        let starts = !start.is_empty();
        for i in start {
            let Some(plan) = plans[i].take() else {
                continue;
            };
            board.borrow_mut().states[i] = State::Running;
            spawn(&m, &cache, plan, i, &slots[i], settings, &board, me, &flows);
        }
        if board.borrow().states.iter().all(|s| *s == State::Ended) {
            return;
        }
        let next_look = watch.as_ref().map(SteadyWatch::due);
        let next = next_delay.into_iter().chain(next_look).min();
        if settings.looks.each == Span::ZERO {
            match next {
                Some(time) => m.suspend_until(time).await,
                None => m.suspend().await,
            }
        } else if settings.looks.to_start > Span::ZERO
            && board.borrow().states.contains(&State::Waiting)
        {
            settings.looks.sleep_until_next_start(&m, starts).await;
        } else {
            settings.looks.sleep(&m, next).await;
        }
    }
}

/// What has to hold before a job starts.
struct Rule {
    delay: Span,
    stonewall: bool,
    group: u32,
    waits_for: Vec<usize>,
}

impl Rule {
    fn new(plan: &Plan, all: &[Box<Plan>]) -> Rule {
        let settings = &plan.job.settings;
        let waits_for = settings.wait_for.as_ref().map_or_else(Vec::new, |name| {
            let jobs = all.iter().map(|plan| &plan.job).enumerate();
            let named = jobs.filter(|(_, job)| job.section == *name || job.name == *name);
            named.map(|(i, _)| i).collect()
        });
        Rule {
            delay: Span::from_us(plan.job.start_delay_us),
            stonewall: settings.stonewall,
            group: plan.job.group,
            waits_for,
        }
    }
}

/// The jobs that may start now, in order, and the next delay that ends.
fn startable(board: &Board, rules: &[Rule], begin: Time, now: Time) -> (Vec<usize>, Option<Time>) {
    let mut start = Vec::new();
    let mut next_delay: Option<Time> = None;
    let mut running = board.states.contains(&State::Running);
    let mut left_behind = false;
    for (i, rule) in rules.iter().enumerate() {
        if board.states[i] != State::Waiting {
            continue;
        }
        if rule.stonewall && (running || left_behind) {
            break;
        }
        let due = begin + rule.delay;
        if due > now {
            next_delay = Some(next_delay.map_or(due, |t| t.min(due)));
            left_behind = true;
            continue;
        }
        if rule
            .waits_for
            .iter()
            .any(|&w| board.states[w] != State::Ended)
        {
            left_behind = true;
            continue;
        }
        start.push(i);
        running = true;
    }
    (start, next_delay)
}

#[expect(
    clippy::too_many_arguments,
    reason = "everything a job task is made of"
)]
fn spawn(
    m: &Machine,
    cache: &PageCache<Machine>,
    plan: Box<Plan>,
    i: usize,
    slot: &Slot,
    settings: Settings,
    board: &Rc<RefCell<Board>>,
    controller: blklab_types::TaskId,
    flows: &Flows,
) {
    let pid = FIO_PID + plan.job.thread;
    let (exitall, exitall_on_error) = {
        let s = &plan.job.settings;
        (s.exitall, s.exitall_on_error)
    };
    let exit_what = plan.job.settings.exit_what;
    let prio = plan.job.ioprio();
    let nice = plan.job.settings.nice;
    let cgroup = plan.cgroup;
    let affinity = plan.job.settings.affinity.clone();
    let thread = plan.job.thread;
    // Repetitions with other seeds differ in when the jobs come to run.
    let mut jitter = blklab_engine::Stream::named(settings.seed, &format!("start {i}"));
    let jitter_ns = if settings.seed == 0 {
        0
    } else {
        jitter.below(START_JITTER_NS)
    };
    let name: String = plan.job.name.chars().take(15).collect();
    let (machine, cache) = (m.clone(), cache.clone());
    let (board, slot, flows) = (Rc::clone(board), Rc::clone(slot), flows.clone());
    let body = async move {
        let terminate = Rc::clone(&board.borrow().terminate[i]);
        let stop = move || terminate.get();
        settings.job_start.spend(&machine, &plan).await;
        run_job(&machine, &cache, plan, &slot, settings, stop).await;
        let failed = |r: &Recording| r.outcome.error != 0;
        let failed = slot.borrow().as_ref().is_some_and(failed);
        let mut b = board.borrow_mut();
        b.states[i] = State::Ended;
        if exitall || (exitall_on_error && failed) {
            b.exit_others(i, exit_what);
        }
        drop(b);
        flows.wake(&machine);
        machine.wake(controller);
    };
    let begin = m.now() + Span(jitter_ns);
    let task = m.spawn_at(&name, pid, prio, true, begin, body);
    if let Some((first, all)) = affinity.cpus_of(thread) {
        m.bind(task, first, all);
    }
    m.set_group(task, cgroup);
    m.set_nice(task, nice.clamp(-20, 19) as i8);
    m.has_had(task, settings.job_setup);
}
