// SPDX-License-Identifier: MIT OR Apache-2.0
//! What write-back is asked for.

use std::ops::Range;

/// Pages looked up at a time (`PAGEVEC_SIZE`).
pub(crate) const BATCH: u64 = 14;

/// What a run of write-back is asked for, and what it met: the kernel's
/// `writeback_control`.
#[derive(Clone, Debug, Default)]
pub struct WriteControl {
    /// Every page dirty at the start must be written, and be waited for if it
    /// is on its way already (`WB_SYNC_ALL`).
    pub integrity: bool,
    /// It is written because it is old or because there is much of it
    /// (`for_kupdate`, `for_background`).
    pub(crate) background: bool,
    /// Pages left to write; may become negative.
    pub nr_to_write: i64,
    /// Stop when the device is congested.
    pub nonblocking: bool,
    /// Pages to write; `None` for a cyclic walk from the inode's cursor.
    pub range: Option<Range<u64>>,
    /// Periodic work: only inodes that became dirty no later (jiffies, perhaps
    /// before the start).
    pub older_than: Option<i64>,
    /// Met: pages that could not be written now and were put back.
    pub(crate) pages_skipped: u64,
    /// Met: congestion.
    pub congested: bool,
    /// Met: inodes that need another turn.
    pub(crate) more_io: bool,
}

impl WriteControl {
    /// A cyclic walk over whatever inodes are dirty, up to so many pages.
    pub(crate) fn background(pages: u64) -> WriteControl {
        WriteControl {
            nr_to_write: pages as i64,
            ..WriteControl::default()
        }
    }

    /// Pages written of a budget.
    pub(crate) fn written(&self, budget: u64) -> u64 {
        (budget as i64).saturating_sub(self.nr_to_write).max(0) as u64
    }

    pub(crate) fn periodic(&self) -> bool {
        self.older_than.is_some()
    }
}
