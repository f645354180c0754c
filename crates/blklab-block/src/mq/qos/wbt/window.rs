// SPDX-License-Identifier: MIT OR Apache-2.0
//! What write-back throttling measures during a window and how it judges it.

use blklab_types::{Op, Span};

/// Write samples that make a window count (`RWB_MIN_WRITE_SAMPLES`).
const MIN_WRITES: u64 = 3;

/// What a window showed (`latency_exceeded` of block/blk-wbt.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtStatus {
    /// Reads were slow (`LAT_EXCEEDED`).
    Exceeded,
    /// Too few samples, but something is written (`LAT_UNKNOWN_WRITES`).
    UnknownWrites,
    /// Too few samples (`LAT_UNKNOWN`).
    Unknown,
    /// Reads were fast beside writes (`LAT_OK`).
    Ok,
}

/// Times from issue to completion of a window's requests (`blk_rq_stat`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    reads: u64,
    /// The shortest read.
    min_read: Span,
    writes: u64,
}

impl Samples {
    pub(super) fn add(&mut self, op: Op, latency: Span) {
        match op {
            Op::Read => {
                self.min_read = match self.reads {
                    0 => latency,
                    _ => self.min_read.min(latency),
                };
                self.reads += 1;
            }
            Op::Write | Op::Discard => self.writes += 1,
            Op::Flush => {}
        }
    }

    /// Judges a window (`latency_exceeded`). `read_age`: how long the watched read
    /// is with the device (`rwb_sync_issue_lat`). `writing`: writes are on their
    /// way, or somebody waited for dirty pages.
    pub(super) fn judge(
        &self,
        min_latency: Span,
        window: Span,
        read_age: Span,
        writing: bool,
    ) -> WbtStatus {
        if read_age > window || (read_age > min_latency && self.reads == 0) {
            WbtStatus::Exceeded
        } else if self.reads == 0 || self.writes < MIN_WRITES {
            if self.writes > 0 || writing {
                WbtStatus::UnknownWrites
            } else {
                WbtStatus::Unknown
            }
        } else if self.min_read > min_latency {
            WbtStatus::Exceeded
        } else {
            WbtStatus::Ok
        }
    }
}
