// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is recorded of an I/O that is done.

use crate::Ddir;

/// One completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Direction.
    pub dir: Ddir,
    /// Bytes transferred.
    pub bytes: u64,
    /// Offset in the file, for logs.
    pub offset: u64,
    /// Priority, for logs and latency by priority.
    pub ioprio: u16,
    /// From built to submitted, ns; `None` with synchronous engines, and if it
    /// was reported at submission by [`JobStats::on_slat`](crate::JobStats::on_slat).
    pub slat_ns: Option<u64>,
    /// From submitted to reaped, ns.
    pub clat_ns: u64,
    /// From built to reaped, ns.
    pub lat_ns: u64,
    /// When it was reaped.
    pub now_ns: u64,
}

impl Completion {
    /// A completion with everything else at zero.
    pub fn new(dir: Ddir, bytes: u64) -> Completion {
        Completion {
            dir,
            bytes,
            offset: 0,
            ioprio: 0,
            slat_ns: None,
            clat_ns: 0,
            lat_ns: 0,
            now_ns: 0,
        }
    }
}
