// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of XFS.

/// How far a buffer of XFS's log is (`xlog_iclog_*`, fs/xfs/xfs_log.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IclogStep {
    /// `xlog_iclog_wait_on`: a task waits for it.
    WaitOn,
    /// The same of a task that need not wait: it is still filled, or done with.
    Idle,
    /// `xlog_iclog_write`: it is submitted.
    Write,
    /// `xlog_iclog_sync_done`: it is on the device.
    SyncDone,
    /// `xlog_iclog_clean`: who waited for it goes on.
    Clean,
}
