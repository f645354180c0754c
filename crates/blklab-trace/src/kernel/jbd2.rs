// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commits of the journal of ext4.

/// How far a commit of jbd2 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitStep {
    /// `jbd2_start_commit`.
    Start,
    /// `jbd2_commit_locking`: no handle begins any more; those that are open are waited for.
    Locking,
    /// `jbd2_commit_flushing`: ordered data are submitted.
    Flushing,
    /// `jbd2_commit_logging`: the journal's blocks are submitted; then data and journal are
    /// waited for, and the commit record is written.
    Logging,
    /// `jbd2_end_commit`.
    End,
}
