// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal of ext3 and ext4 (fs/jbd, 2.6.16 to 3.7; fs/jbd2, 2.6.28 to
//! 6.18).
//!
//! ```text
//! handle ─► running transaction: metadata, ordered data, freed blocks
//!                     │ 5 s, fsync, log space
//!                     ▼
//! kjournald: lock ─► data ─► metadata to the log ─► commit block
//!                                     │
//!          dirty blocks of the device ◄┘─► write-back, checkpoint
//! ```
//!
//! Data that must be on the disk before a commit are pages (jbd, [`commit`]) or
//! files (jbd2, [`inodes`]); a filesystem uses one of the two.
//!
//! The names of functions and fields are those of jbd; in jbd2 most functions have
//! `jbd2_` in front.

mod checkpoint;
mod commit;
mod inodes;
mod journal;
mod rules;

pub(crate) use journal::{Handle, Journal};
pub use rules::{Barrier, CommitSync, DataMode};
pub(crate) use rules::{JournalRules, READ_BEFORE_OTHERS, SYNC_NO_MORE};

use crate::mount::View;
use std::ops::Range;

/// A volume with a journal.
pub(crate) trait Journalled: 'static {
    /// What its thread is called.
    const THREAD: &'static str;

    /// The journal.
    fn journal(&mut self) -> &mut Journal;

    /// Blocks that a committed transaction freed may be used again.
    fn release(&mut self, run: Range<u64>);

    /// Checks that no block of the volume is lost or there twice: between two
    /// transactions, in debug builds.
    fn check_space(&self);
}

impl<V: Journalled> View<'_, V> {
    /// The volume's journal.
    pub(crate) fn journal(&mut self) -> &mut Journal {
        self.volume.journal()
    }
}
