// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of a recorded trace as tasks of a machine, one for each, so that
//! schedulers see the same ones.

use crate::Machine;
use crate::limits::{queue_facts, queue_limits, sq_limits};
use blklab_block::sq::{Features, Ordered};
use blklab_experiment::{Experiment, Timing};
use blklab_infer::{Bio as Recorded, Marks, Process, Waiting};
use blklab_pagecache::Features as Cache;
use blklab_target::Replay;
use blklab_types::Error;
use blklab_types::{Bio, BioFlags, Completion, DiscardLimits, Op, TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// What becomes of recorded bios in a kernel.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// Ordered writes are barriers, as up to 2.6.36.
    barriers: bool,
    /// Whether the device can order writes; else filesystems did without.
    orders_writes: bool,
    /// What the device discards; none: there are no discards.
    discards: Option<DiscardLimits>,
    /// Whether writes say that they are direct or in the background.
    hints: bool,
    /// Largest bio: up to 4.20 who makes them asks for it.
    max_sectors: Option<u32>,
}

impl Fit {
    fn new(e: &Experiment) -> Result<Fit, Error> {
        let v = e.kernel;
        let single_queue = v.has_single_queue();
        let barriers = single_queue && Features::of(v).ordered == Ordered::Barrier;
        Ok(Fit {
            barriers,
            orders_writes: !barriers || sq_limits(e)?.ordered_writes,
            discards: queue_limits(e)?.discard,
            hints: Cache::of(v).background_flags.has(BioFlags::BACKGROUND),
            max_sectors: if single_queue {
                Some(queue_facts(e)?.bio_max_sectors.max(1))
            } else {
                None
            },
        })
    }

    /// Sectors of the first part of a bio, where the kernel has none as large.
    fn part(&self, rest: &Bio) -> u32 {
        let whole = rest.nr_sectors;
        match (self.max_sectors, rest.op, self.discards) {
            (None, _, _) => whole,
            (Some(_), Op::Discard, Some(limits)) => limits
                .front_sectors(rest.sector, u64::from(whole))
                .unwrap_or(whole),
            (Some(max), _, _) => whole.min(max),
        }
    }

    /// Direction and flags of a bio in this kernel; none if it has no such bios.
    fn bio(&self, b: &Recorded, is_kernel_thread: bool) -> Option<(Op, BioFlags)> {
        let op = match b.op {
            Op::Flush => Op::Write,
            Op::Discard if self.discards.is_none() => return None,
            op => op,
        };
        let mut flags = b.flags;
        let ordered = BioFlags::FLUSH | BioFlags::FUA | BioFlags::BARRIER;
        if flags.any(ordered) || b.op == Op::Flush {
            flags = match (self.barriers, b.op) {
                (true, _) if self.orders_writes => flags.without(ordered) | BioFlags::BARRIER,
                (true, Op::Flush) => return None,
                (true, _) => flags.without(ordered),
                (false, Op::Flush) => flags.without(ordered) | BioFlags::FLUSH | BioFlags::SYNC,
                (false, _) if flags.has(BioFlags::BARRIER) => {
                    flags.without(ordered) | BioFlags::FLUSH | BioFlags::FUA
                }
                (false, _) => flags,
            };
        }
        // No letter of a trace says so; write-back throttling wants to know.
        if self.hints && op == Op::Write && !flags.any(ordered | BioFlags::META) {
            if !is_kernel_thread && flags.has(BioFlags::SYNC) {
                flags |= BioFlags::IDLE;
            } else if is_kernel_thread && !flags.has(BioFlags::SYNC) {
                flags |= BioFlags::BACKGROUND;
            }
        }
        Some((op, flags))
    }
}

/// Adds the processes of a trace to a machine.
///
/// # Errors
/// If the experiment has no such device.
pub(crate) fn spawn_recorded(m: &Machine, e: &Experiment, replay: &Replay) -> Result<(), Error> {
    let fit = Fit::new(e)?;
    let replay = Rc::new(replay.clone());
    let linked = Rc::new(Linked::new(&replay));
    for (i, p) in replay.recorded.processes.iter().enumerate() {
        let start = Time(p.bios.first().map_or(0, |b| b.at.ns()));
        let body = run(m.clone(), Rc::clone(&replay), Rc::clone(&linked), i, fit);
        let unnamed = || format!("pid{}", p.pid);
        let name = p.name.clone().unwrap_or_else(unnamed);
        let task = m.spawn_at(&name, p.pid, p.prio, true, start, body);
        m.set_group(task, crate::cgroups::number_of(e, &p.group));
    }
    Ok(())
}

/// How far processes have come that others wait for.
struct Linked {
    processes: Vec<RefCell<Progress>>,
}

#[derive(Default)]
struct Progress {
    /// The bios that others wait for, in order.
    awaited: Vec<usize>,
    /// Pass and bio of those that ended last.
    done: Option<(u64, usize)>,
    /// It submits no more.
    over: bool,
    /// Who waits.
    waiters: Vec<TaskId>,
}

impl Linked {
    fn new(replay: &Replay) -> Linked {
        let all = &replay.recorded.processes;
        let mut processes: Vec<Progress> = all.iter().map(|_| Progress::default()).collect();
        for link in all.iter().flat_map(|p| &p.links) {
            processes[link.process].awaited.push(link.of);
        }
        for p in &mut processes {
            p.awaited.sort_unstable();
        }
        Linked {
            processes: processes.into_iter().map(RefCell::new).collect(),
        }
    }

    fn is_awaited(&self, process: usize, bio: usize) -> bool {
        let p = self.processes[process].borrow();
        p.awaited.binary_search(&bio).is_ok()
    }

    /// Lets a process go on from there.
    fn reached(&self, m: &Machine, process: usize, done: Option<(u64, usize)>) {
        let mut p = self.processes[process].borrow_mut();
        match done {
            Some(done) => p.done = Some(done),
            None => p.over = true,
        }
        p.waiters.drain(..).for_each(|task| m.wake(task));
    }

    /// Sleeps until a process is there, or has ended.
    async fn wait(&self, m: &Machine, process: usize, place: (u64, usize)) {
        loop {
            {
                let mut p = self.processes[process].borrow_mut();
                if p.over || p.done >= Some(place) {
                    return;
                }
                p.waiters.push(m.current());
            }
            m.suspend().await;
        }
    }
}

/// Bios that the kernel of an experiment does not have: notes for readers of the result.
pub(crate) fn left_out(e: &Experiment, replay: &Replay) -> Result<Vec<String>, Error> {
    let fit = Fit::new(e)?;
    let bios = replay.recorded.processes.iter().flat_map(|p| &p.bios);
    let mut gone = [0_u64; 2];
    for b in bios.filter(|b| fit.bio(b, false).is_none()) {
        gone[usize::from(b.op == Op::Flush)] += 1;
    }
    let words = [
        "discards are left out: the device has none on this kernel",
        "empty flushes are left out: the device cannot order writes for this kernel",
    ];
    let notes = gone.iter().zip(words).filter(|(n, _)| **n > 0);
    Ok(notes.map(|(n, what)| format!("{n} {what}")).collect())
}

/// Bios that a process has in a trace before it is taken for one that does the same again
/// and again.
const REPEATS_MIN: usize = 16;

/// Whether a process would go on as it did if it had more time: it waits for its bios, or
/// for requests.
fn goes_on(p: &Process) -> bool {
    let slept = p.bios.iter().filter(|b| b.marks.has(Marks::SLEPT)).count();
    let waits = p.waiting != Waiting::Free || slept * 2 > p.bios.len();
    waits && p.bios.len() >= REPEATS_MIN
}

/// The body of a recorded process.
async fn run(m: Machine, replay: Rc<Replay>, linked: Rc<Linked>, process: usize, fit: Fit) {
    let p = &replay.recorded.processes[process];
    let closed = replay.timing == Timing::Closed;
    let end = p.bios.last().map(|b| Time(b.at.ns()));
    let end = end.filter(|_| closed && replay.for_recorded_time && goes_on(p));
    let mut pass = 0;
    loop {
        run_once(&m, &replay, &linked, (process, pass), fit, end).await;
        pass += 1;
        if end.is_none_or(|end| m.now() >= end) {
            break;
        }
        m.tick().await;
    }
    m.outstanding_below(1).await;
    linked.reached(&m, process, None);
}

/// One pass through the bios of a process, no longer than to `end`.
async fn run_once(
    m: &Machine,
    replay: &Replay,
    linked: &Linked,
    (process, pass): (usize, u64),
    fit: Fit,
    end: Option<Time>,
) {
    let p = &replay.recorded.processes[process];
    let closed = replay.timing == Timing::Closed;
    let task = m.current();
    let kernel_thread = p.is_kernel_thread();
    let mut links = p.links.iter().peekable();
    let mut plugged = false;
    let mut woke_at = m.now();
    for (i, b) in p.bios.iter().enumerate() {
        let link = links.next_if(|l| l.bio == i).filter(|_| closed);
        let due = match replay.timing {
            Timing::Open => Time(b.at.ns()),
            Timing::Closed if i == 0 && pass == 0 => m.now(),
            Timing::Closed => {
                if b.room > 0 && m.outstanding(task) >= b.room {
                    if std::mem::take(&mut plugged) {
                        m.finish_plug();
                    }
                    m.outstanding_below(b.room).await;
                }
                if let Some(link) = link {
                    linked.wait(m, link.process, (pass, link.of)).await;
                }
                let paced = p.waiting == Waiting::Paced && b.marks.has(Marks::WOKE);
                let from = if paced { woke_at } else { m.now() };
                from + link.map_or(b.think, |l| l.think)
            }
        };
        if due > m.now() {
            m.sleep_until(due).await;
        }
        if end.is_some_and(|end| m.now() > end) {
            break;
        }
        if b.marks.has(Marks::WOKE) {
            woke_at = m.now();
        }
        let Some((op, flags)) = fit.bio(b, kernel_thread) else {
            continue;
        };
        if !plugged && b.marks.has(Marks::PLUGGED) {
            m.start_plug();
            plugged = true;
        }
        let bio = Bio {
            op,
            flags,
            sector: replay.sector(b),
            nr_sectors: b.nr_sectors,
            task,
            ..Bio::default()
        };
        submit(m, bio, &fit, b.marks.has(Marks::AWAITED)).await;
        if b.marks.has(Marks::ENDS_PLUG) && std::mem::take(&mut plugged) {
            m.finish_plug();
        }
        if b.marks.has(Marks::UNPLUGS) {
            m.unplug();
        }
        if closed && linked.is_awaited(process, i) {
            if std::mem::take(&mut plugged) {
                m.finish_plug();
            }
            m.outstanding_below(1).await;
            linked.reached(m, process, Some((pass, i)));
        }
    }
    if plugged {
        m.finish_plug();
    }
}

/// Submits a bio, in parts where the kernel has none as large.
async fn submit(m: &Machine, whole: Bio, fit: &Fit, awaited: bool) {
    let task: TaskId = whole.task;
    let mut rest = whole;
    loop {
        let part = fit.part(&rest);
        let segments = match rest.op {
            Op::Discard => 1,
            _ => Bio::segments_of_pages(part),
        };
        let mut bio = Bio {
            nr_sectors: part,
            segments,
            ..rest
        };
        if awaited {
            m.count_submission(task);
            bio.completion = Completion::Task(task);
        }
        m.submit_bio(bio).await;
        rest.sector += u64::from(part);
        rest.nr_sectors -= part;
        if rest.nr_sectors == 0 {
            return;
        }
    }
}
