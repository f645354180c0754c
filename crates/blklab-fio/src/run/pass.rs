// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes over the files: when one begins, what is reset, what ends it, and
//! reading back what it wrote.

use super::{At, IoOp, JobRun, Phase, Step, to_us};
use crate::release::Features;
use crate::settings::Dir;

impl JobRun {
    pub(super) fn start(&mut self, now_ns: u64) -> Option<Step> {
        self.epoch_us = to_us(now_ns);
        if self.job.settings.create_only {
            return self.go(At::Finished);
        }
        self.go(At::NextPass)
    }

    pub(super) fn next_pass(&mut self, now_ns: u64) -> Option<Step> {
        if !self.keep_running() {
            self.close_all();
            return self.go(At::Finished);
        }
        if self.passes > 0 {
            self.reset_for_pass();
        }
        self.passes += 1;
        self.history.clear();
        self.verify_left = 0;
        self.phase = Phase::Run;
        self.count.queued_bytes = 0;
        self.count.bytes_before = self
            .count
            .bytes
            .iter()
            .fold(0, |sum, bytes| sum.wrapping_add(*bytes));
        self.start_latency_target(now_ns);
        self.min_rate.pass_start_us = to_us(now_ns);
        if self.job.settings.rw.is_trimwrite() {
            self.number_ios = self.number_ios.wrapping_mul(2);
        }
        self.at = At::LoopTop;
        if Features::of(self.job.release).opens_before_run_time {
            self.open_all();
            self.out.push_back(Step::PassStart);
            return None;
        }
        Some(Step::PassStart)
    }

    /// Whether another pass follows.
    fn keep_running(&mut self) -> bool {
        if self.done || self.terminated || self.errors.fatal != 0 {
            return false;
        }
        if self.job.settings.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return true;
        }
        if self.enough_ios() {
            return false;
        }
        let limit = self.limit();
        let bytes = self
            .count
            .bytes
            .iter()
            .fold(0u64, |sum, bytes| sum.wrapping_add(*bytes));
        if limit == u64::MAX || bytes >= limit || limit - bytes < self.job.settings.largest_bs() {
            return false;
        }
        self.job.settings.io_size != 0 || !self.files.all_done()
    }

    /// State between passes, and between a pass and its verification.
    fn reset_for_pass(&mut self) {
        let settings = &self.job.settings;
        self.zone_bytes = 0;
        self.last_was_sync = false;
        self.mix_quota = 0;
        let recount = settings.time_based || settings.loops > 1 || settings.do_verify;
        let randrepeat = settings.randrepeat;
        self.close_all();
        self.files.clear_done(recount);
        if randrepeat {
            self.reseed();
        }
    }

    /// Opens as many files as may be open at a time.
    fn open_all(&mut self) {
        let count = self.files.all.len() as u32;
        for file in 0..count.min(self.job.settings.openfiles) {
            self.files.open_file(file, self.offset_seed, &mut self.out);
        }
    }

    fn close_all(&mut self) {
        let fsync = self.fsync_on_close();
        for file in 0..self.files.all.len() as u32 {
            self.files.close_file(file, fsync, &mut self.out);
        }
    }

    fn limit(&self) -> u64 {
        match self.job.settings.io_size {
            0 => self.size,
            io_size => io_size,
        }
    }

    /// Bytes that an asynchronous engine may take in one pass.
    pub(super) fn pass_limit(&self) -> u64 {
        let settings = &self.job.settings;
        let mut total = self.size;
        if settings.rw.writes && settings.rw.random && settings.norandommap {
            total = total.max(settings.io_size);
        }
        if settings.rw.writes && settings.verify && settings.verify_backlog != 0 {
            total = total.wrapping_add(self.size);
        }
        if settings.rw.is_trimwrite() {
            total = total.wrapping_add(self.limit().wrapping_mul(u64::from(settings.loops)));
        }
        total
    }

    fn enough_ios(&self) -> bool {
        let blocks = self
            .count
            .blocks
            .iter()
            .fold(0u64, |sum, blocks| sum.wrapping_add(*blocks));
        let pending = i64::from(self.queued) + self.in_flight;
        let limit = self
            .number_ios
            .wrapping_mul(u64::from(self.job.settings.loops));
        self.number_ios != 0 && blocks.wrapping_add_signed(pending) >= limit
    }

    /// Whether the job has issued all it should.
    pub(super) fn limit_reached(&self) -> bool {
        let pattern = self.job.settings.rw;
        let issued = |dir: Dir| self.count.issued_bytes[dir as usize];
        let bytes = if pattern.is_mixed() {
            issued(Dir::Read).wrapping_add(issued(Dir::Write))
        } else if pattern.writes {
            issued(Dir::Write)
        } else if pattern.reads {
            issued(Dir::Read)
        } else {
            issued(Dir::Trim)
        };
        bytes
            >= self
                .limit()
                .wrapping_mul(u64::from(self.job.settings.loops))
            || self.enough_ios()
    }

    /// Reaps what is in flight, then syncs the files if asked to.
    pub(super) fn loop_end(&mut self) -> Option<Step> {
        let depth = self.records.depth;
        if depth > 0 {
            return Some(Step::Reap {
                min: depth,
                max: depth,
            });
        }
        if self.phase == Phase::Verify {
            self.phase = Phase::Run;
            self.at = At::NextPass;
            return Some(Step::VerifyEnd);
        }
        let settings = &self.job.settings;
        let sync = settings.end_fsync || settings.fsync_on_close;
        if sync && self.errors.fatal == 0 && self.should_fsync() {
            return self.go(At::FinalSync { file: 0 });
        }
        self.go(At::PassEnd)
    }

    /// Issues a sync of one file, opening it if necessary.
    pub(super) fn final_sync(&mut self, file: u32) -> Option<Step> {
        if file as usize >= self.files.all.len() || self.errors.fatal != 0 {
            return self.go(At::PassEnd);
        }
        let Some(record) = self.records.take(false) else {
            return self.go(At::PassEnd);
        };
        self.phase = Phase::FinalSync { file };
        self.files.open_file(file, self.offset_seed, &mut self.out);
        self.files.hold(file);
        let slot = self.records.get(record);
        slot.op = IoOp::Sync;
        slot.file = Some(file);
        self.go(At::Ready { record })
    }

    /// Waits for the sync if the engine queued it.
    pub(super) fn final_sync_reap(&mut self, file: u32) -> Option<Step> {
        if self.records.depth > 0 {
            return Some(Step::Reap { min: 1, max: 1 });
        }
        self.go(At::FinalSync { file: file + 1 })
    }

    pub(super) fn pass_end(&mut self) -> Option<Step> {
        self.phase = Phase::Run;
        let bytes = self
            .count
            .bytes
            .iter()
            .fold(0u64, |sum, bytes| sum.wrapping_add(*bytes));
        if bytes == self.count.bytes_before {
            self.terminated = true;
        }
        let settings = &self.job.settings;
        // A job that only reads, to verify, does so once.
        self.terminated |= settings.verify && settings.rw.reads && !settings.rw.writes;
        let verifies = settings.verify && settings.do_verify;
        self.at = At::NextPass;
        if verifies && !self.terminated && self.errors.fatal == 0 {
            self.reset_for_pass();
            self.phase = Phase::Verify;
            self.at = At::VerifyTop;
            self.out.push_front(Step::VerifyStart);
        }
        Some(Step::PassEnd)
    }

    /// Takes the next block to read back.
    pub(super) fn verify_top(&mut self, now_ns: u64) -> Option<Step> {
        if self.runtime_over(now_ns) {
            self.terminated = true;
        }
        if self.terminated {
            return self.go(At::LoopEnd);
        }
        if self.must_ask() {
            return self.go(At::Flow);
        }
        let Some(record) = self.records.take(self.is_full()) else {
            return self.go(At::LoopEnd);
        };
        if self.records.get(record).file.is_some() || self.fill_verify(record) {
            return self.go(At::Ready { record });
        }
        self.records.put(record);
        self.go(At::LoopEnd)
    }

    /// Turns a record into the read of the next block to verify.
    fn fill_verify(&mut self, record: u32) -> bool {
        let Some(written) = self.history.take_next() else {
            return false;
        };
        self.files
            .open_file(written.file, self.offset_seed, &mut self.out);
        self.files.hold(written.file);
        let slot = self.records.get(record);
        slot.op = IoOp::Read;
        slot.file = Some(written.file);
        slot.offset = written.offset;
        slot.length = written.length;
        slot.verify = true;
        true
    }

    /// Whether the backlog of writes supplies the next I/O. A request that was
    /// refused counts as supplied.
    #[inline(always)]
    pub(super) fn take_backlog(&mut self, record: u32) -> bool {
        let settings = &self.job.settings;
        let records = self.history.len() as u64;
        if settings.verify_backlog == 0 || !settings.verify || !settings.rw.writes || records == 0 {
            return false;
        }
        if self.verify_left == 0 {
            if !records.is_multiple_of(settings.verify_backlog) || self.last_dir == Dir::Read {
                return false;
            }
            self.verify_left = match settings.verify_backlog_batch {
                0 => settings.verify_backlog,
                batch => u64::from(batch),
            };
        }
        let supplied = self.records.get(record).file.is_some() || self.fill_verify(record);
        if supplied {
            self.verify_left -= 1;
        }
        supplied
    }
}
