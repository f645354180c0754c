// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dies and channels.
//!
//! ```text
//! read     cells ─► register, then the channel          the die is taken for all of it
//! program  the channel ─► registers, then ─► cells      the same
//! ```
//!
//! A die does one thing at a time. When it is free it takes, in this order: a
//! read (at most `read_burst` of them in a row while something else waits), what
//! was suspended, the second half of a move, an erase or a move that is due, a
//! program of the host. With `reads_first=off` a program that was asked for before
//! a read goes before it; with `gc_suspend=off` a move, once begun, is finished
//! before anything else. A channel carries one transfer at a time, in the order
//! in which they were asked for.
//!
//! A read that finds a program or an erase running stops it, if it would run for
//! longer than stopping takes, and it has not been stopped `suspend_max` times.
//! What was left of it runs afterwards.

use super::collect::Collect;
use super::gc::{Cost, Debt};
use super::params::{Spec, Timing};
use super::queue::{Queue, Store};
use super::slc::Slc;
use crate::device::DeviceCx;
use blklab_types::{Span, Time};

/// Part of a page that a command reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    /// The command.
    pub(super) cmd: u32,
    pub(super) bytes: u32,
    /// The command is larger than 4 KiB.
    pub(super) large: bool,
    /// When the die was asked for it.
    pub(super) since: Time,
    /// Which kind of page.
    pub(super) kind: u8,
}

/// A program of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitWrite {
    /// Its place in the buffer.
    pub(super) unit: u32,
    pub(super) bytes: u32,
    /// When the die was asked for it.
    pub(super) since: Time,
    /// With one bit per cell, to be folded later.
    pub(super) slc: bool,
    pub(super) cost: Cost,
}

/// What a die has done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// A part of a page has come over the channel.
    Read(PageRead),
    /// A unit of the buffer is in the cells.
    Programmed(u32),
    /// A unit that had one bit per cell has all of them.
    Folded,
}

/// What takes long and can be suspended.
#[derive(Clone, Copy, Debug)]
enum Long {
    Program(UnitWrite),
    /// Second half of a move.
    MoveIn,
    /// Second half of a fold.
    FoldIn,
    Erase,
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Idle,
    Read(PageRead),
    ReadOut(PageRead),
    /// Data on their way into the registers.
    Fill(Long),
    /// Until then, stopped so many times.
    Long(Long, u32),
    /// A program or erase is about to stop.
    Stopping,
    MoveRead(Long),
    MoveOut(Long),
}

/// What was stopped, what is left of it, how many times it was.
#[derive(Clone, Copy, Debug)]
struct Suspended {
    long: Long,
    left: Span,
    times: u32,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    job: Job,
    ends: Time,
    /// Counts jobs; a wake-up for an earlier one is stale.
    job_no: u32,
    suspended: Option<Suspended>,
    reads: Queue,
    units: Queue,
    reads_in_row: u32,
    /// What has been read to be moved or folded, and not yet programmed.
    moving: Option<Long>,
    /// It counts among the dies that move data.
    collects: bool,
    debt: Debt,
}

impl Die {
    const IDLE: Die = Die {
        job: Job::Idle,
        ends: Time::ZERO,
        job_no: 0,
        suspended: None,
        reads: Queue::EMPTY,
        units: Queue::EMPTY,
        reads_in_row: 0,
        moving: None,
        collects: false,
        debt: Debt::NONE,
    };

    /// A die as a run begins: with its share of a full SLC cache; of a drive that was written,
    /// somewhere in its block.
    fn at_the_begin(spec: &Spec, die: usize) -> Die {
        let (die, dies) = (die as u64, spec.dies as u64);
        let units = Slc::filled_units(&spec.slc);
        let share = units / dies + u64::from(die < units % dies);
        let mut debt = match spec.credit_slots {
            0 => Debt::amid_writing(die, dies, spec.timing.units_per_block),
            _ => Debt::NONE,
        };
        debt.fold_later(share, spec.moves);
        Die { debt, ..Die::IDLE }
    }

    /// Something other than reads waits and could begin.
    fn has_other_work(&self, timing: &Timing, collect: &Collect) -> bool {
        self.suspended.is_some()
            || self.moving.is_some()
            || self.debt.erase_due(timing.units_per_block)
            || (self.debt.move_due() && collect.admits(self.collects))
            || (self.debt.fold_due() && collect.folds())
            || (!self.units.is_empty() && !collect.holds_host())
    }
}

/// All dies and channels of a drive.
#[derive(Clone, Debug)]
pub(super) struct Nand {
    timing: Timing,
    dies: Vec<Die>,
    channel_free: Vec<Time>,
    collect: Collect,
    reads: Store<PageRead>,
    units: Store<UnitWrite>,
}

impl Nand {
    pub(super) fn new(spec: &Spec, depth: usize) -> Nand {
        let units = (spec.buffer_slots / spec.unit_slots) as usize;
        Nand {
            timing: spec.timing,
            dies: (0..spec.dies)
                .map(|die| Die::at_the_begin(spec, die))
                .collect(),
            channel_free: vec![Time::ZERO; spec.channels],
            collect: spec.collect,
            reads: Store::with_capacity(depth),
            units: Store::with_capacity(units),
        }
    }

    pub(super) fn nr_dies(&self) -> usize {
        self.dies.len()
    }

    /// Asks a die for part of a page.
    pub(super) fn read(&mut self, cx: &mut DeviceCx<'_>, die: usize, read: PageRead) {
        self.reads.push(&mut self.dies[die].reads, read);
        match self.dies[die].job {
            Job::Idle => self.start_next(cx, die),
            Job::Long(long, times) => self.suspend(cx, die, long, times),
            _ => {}
        }
    }

    /// Asks a die to program a unit.
    pub(super) fn program(&mut self, cx: &mut DeviceCx<'_>, die: usize, write: UnitWrite) {
        self.units.push(&mut self.dies[die].units, write);
        if matches!(self.dies[die].job, Job::Idle) {
            self.start_next(cx, die);
        }
    }

    /// A wake-up with [`die_token`] is due.
    pub(super) fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) -> Option<Outcome> {
        let die = (token & 0xffff_ffff) as usize;
        let d = &mut self.dies[die];
        if die_token(die, d.job_no) != token {
            return None;
        }
        let t = &self.timing;
        let mut outcome = None;
        match d.job {
            Job::Read(read) => {
                self.transfer(cx, die, u64::from(read.bytes), Job::ReadOut(read));
                return None;
            }
            Job::MoveRead(how) => {
                self.transfer(cx, die, t.unit_bytes, Job::MoveOut(how));
                return None;
            }
            Job::Fill(long) => {
                let time = match long {
                    Long::Program(write) if write.slc => t.slc_program,
                    _ => t.program,
                };
                self.begin(cx, die, Job::Long(long, 0), time);
                if !self.dies[die].reads.is_empty() {
                    self.suspend(cx, die, long, 0);
                }
                return None;
            }
            Job::ReadOut(read) => outcome = Some(Outcome::Read(read)),
            Job::MoveOut(how) => d.moving = Some(how),
            Job::Long(Long::Program(write), _) => {
                if write.slc {
                    d.debt.add_fold(write.cost);
                } else {
                    self.collect.owe(d.debt.add(write.cost));
                }
                outcome = Some(Outcome::Programmed(write.unit));
            }
            Job::Long(Long::MoveIn, _) => {
                d.debt.moved();
                self.moved(cx, die);
            }
            Job::Long(Long::FoldIn, _) => {
                self.collect.owe(d.debt.folded());
                outcome = Some(Outcome::Folded);
            }
            Job::Long(Long::Erase, _) => d.debt.erased(t.units_per_block),
            Job::Stopping | Job::Idle => {}
        }
        if self.collect.begins() {
            self.wake_idle(cx);
        }
        if !matches!(self.dies[die].job, Job::Idle) {
            self.start_next(cx, die);
        }
        outcome
    }

    /// A die has moved a unit. If it was its last, another die may collect; if
    /// it was the last of all, programs of the host go on.
    fn moved(&mut self, cx: &mut DeviceCx<'_>, die: usize) {
        let ends = self.collect.moved();
        if !self.dies[die].debt.move_due() {
            self.dies[die].collects = false;
            self.collect.leave();
            // Its own next job is found by whoever asked.
            if ends || self.collect.is_limited() {
                self.wake_idle(cx);
            }
        }
    }

    /// Lets dies fold what they have, or not any more.
    pub(super) fn fold(&mut self, cx: &mut DeviceCx<'_>, folds: bool) {
        if self.collect.set_folds(folds) && folds {
            self.wake_idle(cx);
        }
    }

    /// Lets idle dies look for work that they were not allowed to begin before.
    fn wake_idle(&mut self, cx: &mut DeviceCx<'_>) {
        for die in 0..self.dies.len() {
            if matches!(self.dies[die].job, Job::Idle) {
                self.start_next(cx, die);
            }
        }
    }

    /// Stops what a die does for the reads that wait there, if that is worth it.
    fn suspend(&mut self, cx: &mut DeviceCx<'_>, die: usize, long: Long, times: u32) {
        let cost = match long {
            Long::MoveIn | Long::FoldIn if !self.timing.gc_suspend => None,
            Long::Program(_) | Long::MoveIn | Long::FoldIn => self.timing.suspend_program,
            Long::Erase => self.timing.suspend_erase,
        };
        let left = self.dies[die].ends - cx.now;
        let Some(cost) = cost.filter(|c| left > *c && times < self.timing.suspend_max) else {
            return;
        };
        self.dies[die].suspended = Some(Suspended {
            long,
            left,
            times: times + 1,
        });
        self.begin(cx, die, Job::Stopping, cost);
    }

    fn start_next(&mut self, cx: &mut DeviceCx<'_>, die: usize) {
        let (d, t) = (&mut self.dies[die], self.timing);
        let since = |q: &Queue| self.units.front(q).map(|unit| unit.since);
        let overtaken = !t.reads_first
            && !self.collect.holds_host()
            && since(&d.units).is_some_and(|unit| {
                let read = self.reads.front(&d.reads);
                read.is_some_and(|read| unit < read.since)
            });
        if !t.gc_suspend
            && let Some(how) = d.moving.take()
        {
            self.transfer(cx, die, t.unit_bytes, Job::Fill(how));
            return;
        }
        let others = d.has_other_work(&t, &self.collect);
        if !others || (d.reads_in_row < t.read_burst && !overtaken) {
            d.reads_in_row += u32::from(others);
            if let Some(read) = self.reads.pop(&mut d.reads) {
                let more = if read.large { t.read_large } else { Span(0) };
                let time = t.read[usize::from(read.kind)] + more;
                self.begin(cx, die, Job::Read(read), time);
                return;
            }
        }
        d.reads_in_row = 0;
        if let Some(s) = d.suspended.take() {
            self.begin(cx, die, Job::Long(s.long, s.times), s.left);
        } else if let Some(how) = d.moving.take() {
            self.transfer(cx, die, t.unit_bytes, Job::Fill(how));
        } else if d.debt.erase_due(t.units_per_block) {
            self.begin(cx, die, Job::Long(Long::Erase, 0), t.erase);
        } else if d.debt.move_due() && self.collect.admits(d.collects) {
            if !std::mem::replace(&mut d.collects, true) {
                self.collect.enter();
            }
            self.begin(cx, die, Job::MoveRead(Long::MoveIn), t.move_read);
        } else if d.debt.fold_due() && self.collect.folds() {
            self.begin(cx, die, Job::MoveRead(Long::FoldIn), t.move_read);
        } else if self.collect.holds_host() {
            d.job = Job::Idle;
        } else if let Some(write) = self.units.pop(&mut d.units) {
            let fill = Job::Fill(Long::Program(write));
            self.transfer(cx, die, u64::from(write.bytes), fill);
        } else {
            d.job = Job::Idle;
        }
    }

    /// Lets a die do `job` for `time` from now on.
    fn begin(&mut self, cx: &mut DeviceCx<'_>, die: usize, job: Job, time: Span) {
        self.begin_until(cx, die, job, cx.now + time);
    }

    /// Lets a die wait for its channel and transfer so many bytes.
    fn transfer(&mut self, cx: &mut DeviceCx<'_>, die: usize, bytes: u64, job: Job) {
        let channel = die % self.channel_free.len();
        let free = &mut self.channel_free[channel];
        *free = cx.now.max(*free) + self.timing.channel.time(bytes);
        let end = *free;
        self.begin_until(cx, die, job, end);
    }

    fn begin_until(&mut self, cx: &mut DeviceCx<'_>, die: usize, job: Job, ends: Time) {
        let d = &mut self.dies[die];
        d.job = job;
        d.ends = ends;
        d.job_no = (d.job_no + 1) & JOB_NO_MASK;
        cx.wake_at(ends, die_token(die, d.job_no));
    }
}

/// Job numbers have this many bits in a token.
const JOB_NO_MASK: u32 = 0xff_ffff;
/// Marks the tokens of dies.
const DIE: u64 = 1 << 63;

fn die_token(die: usize, job_no: u32) -> u64 {
    DIE | u64::from(job_no) << 32 | die as u64
}

/// Whether a token is one of a die.
pub(super) fn is_die_token(token: u64) -> bool {
    token & DIE != 0
}
