// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/Os that wait for others of the job (`serialize_overlap`), and I/Os that
//! workers submit (`io_submit_mode=offload`).
//!
//! Behaviour of fio 3.33 (backend.c, rate-submit.c): an I/O that overlaps one in
//! flight is taken for refused, so that the job reaps and tries again. Offsets
//! are compared without regard to files. With workers the job only builds and
//! counts I/Os: it waits for none of them until all records are used, and
//! neither a rate nor a pause does.
//!
//! One thing is not as in fio, which issues syncs for ever when a job with
//! workers has come to its first `fsync`: here the next I/O follows it.

use super::records::Record;
use super::{Answer, At, JobRun, Phase, Step};

impl JobRun {
    /// Whether workers submit what comes next: not what verifies or syncs at the
    /// end.
    pub fn offloads(&self) -> bool {
        self.job.settings.offload && self.phase == Phase::Run
    }

    /// Whether an I/O has to wait for one in flight. Workers look by
    /// themselves, at those of other jobs too.
    pub(super) fn must_wait(&self, record: u32) -> bool {
        let checks = self.job.settings.serialize_overlap && !self.offloads();
        let final_sync = matches!(self.phase, Phase::FinalSync { .. });
        if !checks || final_sync || self.records.depth <= 1 {
            return false;
        }
        let Record { offset, length, .. } = *self.records.peek(record);
        let end = offset.saturating_add(length);
        self.records
            .in_flight()
            .any(|other| offset < other.offset.saturating_add(other.length) && other.offset < end)
    }

    /// As if the engine had refused it.
    pub(super) fn hold_back(&mut self, record: u32, now_ns: u64) -> Option<Step> {
        let dir = self.records.get(record).op.dir();
        if let (Some(dir), Phase::Run) = (dir, self.phase) {
            self.find_next_time(dir);
        }
        self.records.get(record).start_ns = now_ns;
        self.records.put_refused(record);
        self.commit();
        self.go(At::Reaping {
            busy: true,
            data: dir,
            again: false,
            full: false,
        })
    }

    /// A worker has the I/O, or has done it already.
    pub(super) fn offloaded(&mut self, record: u32, slot: Record, answer: Answer, now_ns: u64) {
        self.last_was_sync = slot.op.dir().is_none();
        self.at = At::Think { dir: slot.op.dir() };
        match answer {
            Answer::Completed { error } => self.complete(record, slot, error, now_ns),
            Answer::Queued => self.records.get(record).in_flight = true,
            Answer::Busy => {
                self.records.put_refused(record);
                self.at = At::LoopTop;
            }
        }
        if self.errors.fatal != 0 {
            self.at = At::LoopEnd;
        }
    }
}
