// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-back of the page cache.

/// What becomes of work for a flusher thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackStep {
    /// It is asked for.
    Queue,
    /// A round of it begins.
    Start,
    /// A round of it ends.
    Written,
    /// It waits for an inode that somebody else writes.
    Wait,
}

/// Why pages are written back (`enum wb_reason`, include/linux/backing-dev-defs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackReason {
    /// More than the background limit is dirty.
    Background,
    /// Memory is short.
    Vmscan,
    /// sync, fsync.
    Sync,
    /// Pages have been dirty for long.
    Periodic,
    /// Another, or not known.
    Other,
}

impl WritebackReason {
    /// As the kernel prints it.
    pub fn word(self) -> &'static str {
        match self {
            WritebackReason::Background => "background",
            WritebackReason::Vmscan => "vmscan",
            WritebackReason::Sync => "sync",
            WritebackReason::Periodic => "periodic",
            WritebackReason::Other => "other",
        }
    }
}
