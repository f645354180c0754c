// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the anticipatory scheduler knows about a process, and what it expects
//! of one that it does not know yet.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32. Only sync requests are
//! looked at. Fixed point, 256 = 1.0.

use crate::history::{SeekDistance, ThinkTime, decay};
use blklab_types::{IdVec, TaskId};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

/// The records of all processes. The schedulers of all disks of a machine have the
/// same: the kernel keeps one record in the io context of a process
/// (`io_context.aic`, include/linux/iocontext.h), whichever disk it uses.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes(Rc<RefCell<IdVec<TaskId, Process>>>);

impl Processes {
    /// Looks at the record of a process, or changes it.
    pub(super) fn with<R>(&self, task: TaskId, f: impl FnOnce(&mut Process) -> R) -> R {
        f(self.0.borrow_mut().entry(task))
    }
}

/// One process (`struct as_io_context`); its record comes into being with its
/// first request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// It has ended.
    pub(super) exited: bool,
    /// It has submitted a sync request.
    has_started: bool,
    /// One of its sync requests has completed.
    has_completed: bool,
    /// Its requests in the scheduler, sync and async.
    pub(super) nr_queued: u32,
    /// Its requests in the dispatch list that the driver has not seen.
    pub(super) nr_dispatched: u32,
    /// Jiffy of its last sync completion.
    last_end_jiffy: u64,
    /// Where its last sync request ended.
    last_sector: u64,
    pub(super) think: ThinkTime,
    pub(super) seek: SeekDistance,
}

impl Process {
    /// A sync request of the process is over.
    pub(super) fn completed(&mut self, now: u64) {
        self.has_completed = true;
        self.last_end_jiffy = now;
    }

    /// Jiffies since its last completion, if it has nothing else to wait for.
    fn think_time(&self, now: u64, max_think: u64) -> u64 {
        if self.has_completed && self.nr_queued == 0 && self.nr_dispatched == 0 {
            now.saturating_sub(self.last_end_jiffy).min(max_think)
        } else {
            0
        }
    }

    /// A sync request from `start` to `end` arrives (`as_update_iohist`).
    pub(super) fn arrived(
        &mut self,
        all: &mut Estimates,
        (start, end): (u64, u64),
        now: u64,
        max_think: u64,
    ) {
        if self.has_started || self.has_completed {
            let think = self.think_time(now, max_think);
            if self.think.samples == 0 {
                all.first_think_time(think);
            }
            self.think.add(think);
            let distance = start.abs_diff(self.last_sector);
            if self.seek.samples == 0 {
                all.first_seek(distance);
            }
            self.seek.add(distance);
        }
        self.last_sector = end;
        self.has_started = true;
    }
}

/// What is expected of new processes, from those before them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimates {
    /// Probability that a process ends after its first request.
    exit: u64,
    /// Probability that nobody submits a close request in its place.
    exit_no_coop: u64,
    think_total: u64,
    /// Mean of first think times, in jiffies.
    pub(super) think_mean: u64,
    seek_total: u64,
    /// Mean of first seek distances, in sectors.
    pub(super) seek_mean: u64,
}

/// One half, as a probability.
const HALF: u64 = 128;

impl Estimates {
    /// `as_update_thinktime`.
    fn first_think_time(&mut self, think: u64) {
        self.think_total = decay(self.think_total, think);
        self.think_mean = self.think_total / 256;
        self.exit = decay(self.exit, 0);
    }

    /// `as_update_seekdist`.
    fn first_seek(&mut self, sectors: u64) {
        self.seek_total = decay(self.seek_total, sectors);
        self.seek_mean = self.seek_total / 256;
    }

    /// A process that was waited for has shown nothing but one request.
    pub(super) fn exited_early(&mut self) {
        self.exit = decay(self.exit, 1);
    }

    /// A process that ended was waited for, and a close request came
    /// (`as_can_break_anticipation`).
    pub(super) fn cooperated(&mut self) {
        self.exit_no_coop = decay(self.exit_no_coop, 0);
    }

    /// A process that ended was waited for in vain.
    pub(super) fn nobody_cooperated(&mut self) {
        self.exit_no_coop = decay(self.exit_no_coop, 1);
    }

    /// Whether to wait after the end of a process is rather in vain.
    pub(super) fn exits_alone(&self) -> bool {
        self.exit_no_coop > HALF
    }

    /// Whether to wait for a new process is rather in vain.
    pub(super) fn new_process_exits_alone(&self) -> bool {
        self.exit * self.exit_no_coop > HALF * 256
    }

    /// The text of `est_time` in sysfs. What it calls ms are jiffies
    /// (`est_time_show`).
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{} % exit probability\n\
             {} % probability of exiting without a cooperating process submitting IO\n\
             {} ms new thinktime\n\
             {} sectors new seek distance\n",
            100 * self.exit / 256,
            100 * self.exit_no_coop / 256,
            self.think_mean,
            self.seek_mean
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_of_a_process_also_counts_for_new_ones() {
        let (mut p, mut all) = (Process::default(), Estimates::default());
        all.exited_early();
        p.arrived(&mut all, (1000, 1008), 0, 19);
        assert_eq!(p.think.samples, 0, "no sample yet");
        p.completed(5);
        p.arrived(&mut all, (2008, 2016), 20, 19);
        assert_eq!(
            (p.think.samples, p.think.total, p.think.mean),
            (32, 480, 19)
        );
        assert_eq!((all.think_total, all.think_mean, all.exit), (480, 1, 28));
        assert_eq!((p.seek.mean, all.seek_mean), (1000, 125));
        p.completed(30);
        p.arrived(&mut all, (2016, 2024), 500, 19);
        assert_eq!(p.think.total, (7 * 480 + 256 * 19) / 8, "the sample is cut");
        assert_eq!(all.think_total, 480, "only the first counts");
    }

    #[test]
    fn a_process_has_one_record_for_all_disks() {
        let shared = Processes::default();
        let (sda, sdb) = (shared.clone(), shared.clone());
        let task = TaskId(3);
        sda.with(task, |p| p.nr_queued += 1);
        sdb.with(task, |p| p.completed(7));
        // It has a request at one disk: the other has no reason to wait for it.
        assert_eq!(sdb.with(task, |p| p.nr_queued), 1);
        assert_eq!(sda.with(task, |p| p.last_end_jiffy), 7);
    }

    #[test]
    fn requests_that_wait_hide_the_think_time() {
        let (mut p, mut all) = (Process::default(), Estimates::default());
        p.arrived(&mut all, (0, 8), 0, 19);
        p.completed(1);
        p.nr_queued = 1;
        p.arrived(&mut all, (8, 16), 10, 19);
        assert_eq!(p.think.total, 0);
        p.nr_queued = 0;
        p.nr_dispatched = 1;
        p.arrived(&mut all, (16, 24), 10, 19);
        assert_eq!(p.think.total, 0);
    }

    #[test]
    fn est_time_reads_like_the_file() {
        let mut all = Estimates::default();
        for _ in 0..3 {
            all.exited_early();
            all.nobody_cooperated();
        }
        all.first_seek(1 << 20);
        assert_eq!(
            all.text(),
            "32 % exit probability\n\
             32 % probability of exiting without a cooperating process submitting IO\n\
             0 ms new thinktime\n\
             131072 sectors new seek distance\n"
        );
    }
}
