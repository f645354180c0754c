// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the flusher of the device is to do.

use blklab_types::{Jiffies, TaskId};
use std::collections::VecDeque;

/// Something that the flusher was asked to write (`wb_writeback_work`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Pages to write at most.
    pub(crate) pages: i64,
    /// Everything that is dirty now, and wait for it (`WB_SYNC_ALL`).
    pub(crate) integrity: bool,
    /// Who sleeps until it is done.
    pub(crate) waiter: Option<TaskId>,
}

/// The flusher's state.
#[derive(Debug, Default)]
pub(crate) struct DeviceFlusher {
    pub(crate) task: Option<TaskId>,
    pub(crate) works: VecDeque<Work>,
    /// Background writing was asked for.
    pub(crate) background: bool,
    /// It writes.
    pub(crate) running: bool,
    /// It sleeps until it is woken or its timer ends.
    pub(crate) idle: bool,
    /// It sleeps without a timer.
    pub(crate) untimed: bool,
    pub(crate) last_periodic: Jiffies,
    /// When its timed sleep ends.
    pub(crate) due: Option<Jiffies>,
    pub(crate) timer: Option<TaskId>,
    /// The timer waits for something to be due.
    pub(crate) timer_idle: bool,
    /// Waiters whose work is done.
    pub(crate) finished: Vec<TaskId>,
}

impl DeviceFlusher {
    /// Whether it writes or is about to (`writeback_in_progress`).
    pub(crate) fn in_progress(&self) -> bool {
        self.running || self.background || !self.works.is_empty()
    }
}
