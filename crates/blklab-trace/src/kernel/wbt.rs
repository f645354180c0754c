// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-back throttling.

/// What came of a window of wbt (block/blk-wbt.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtStatus {
    /// Reads were fast enough.
    Ok,
    /// Too little was going on.
    Unknown,
    /// Only writes were going on.
    UnknownWrites,
    /// Reads took too long.
    Exceeded,
}

impl WbtStatus {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            WbtStatus::Ok => "latency ok",
            WbtStatus::Unknown => "latency unknown",
            WbtStatus::UnknownWrites => "latency unknown, writes only",
            WbtStatus::Exceeded => "latency exceeded",
        }
    }
}
