// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool of pdflush threads, and their jobs.

use blklab_types::{Jiffies, TaskId};
use std::collections::VecDeque;

/// Work for a pdflush thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Write until no more than the background limit is dirty, and so many
    /// pages in any case.
    Background { min_pages: i64 },
    /// Write what has been dirty for long (`wb_kupdate`).
    Periodic,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) task: TaskId,
    pub(crate) job: Option<Job>,
    pub(crate) idle_since: Jiffies,
}

/// The threads, and the timer of the periodic job.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) threads: Vec<Thread>,
    /// Threads that wait for a job, the most recent first.
    pub(crate) idle: VecDeque<usize>,
    pub(crate) running: u32,
    /// When the last idle thread got a job.
    pub(crate) last_empty: Jiffies,
    pub(crate) timer: Option<TaskId>,
    /// When the periodic job is due.
    pub(crate) due: Option<Jiffies>,
}

impl Pool {
    /// Threads that exist.
    pub(crate) fn threads(&self) -> u32 {
        self.running
    }

    /// Gives a job to an idle thread.
    pub(crate) fn assign(&mut self, job: Job, now: Jiffies) -> Option<TaskId> {
        let thread = self.idle.pop_front()?;
        if self.idle.is_empty() {
            self.last_empty = now;
        }
        self.threads[thread].job = Some(job);
        Some(self.threads[thread].task)
    }
}
