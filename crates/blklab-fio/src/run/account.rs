// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the engine's answers and completions change.

use super::records::Record;
use super::{Answer, At, Cause, Completion, FailedIo, Failure, JobRun, Phase, Step, to_us};
use crate::settings::Dir;

impl JobRun {
    /// The engine's answer to the last [`Step::Issue`]. Without one it is
    /// ignored.
    pub fn answer(&mut self, answer: Answer, now_ns: u64) {
        let At::Answer { record } = self.at else {
            return;
        };
        let slot = *self.records.get(record);
        let dir = slot.op.dir();
        if let Some(dir) = dir {
            self.count_issued(dir, &slot, answer != Answer::Busy);
        }
        if let Some(playback) = &mut self.playback {
            playback.last_issue_ns = match answer {
                // Its issue was before the call.
                Answer::Completed { .. } => Some(slot.start_ns),
                Answer::Queued => Some(now_ns),
                Answer::Busy => playback.last_issue_ns,
            };
        }
        if self.offloads() {
            return self.offloaded(record, slot, answer, now_ns);
        }
        match answer {
            Answer::Completed { error } => self.complete(record, slot, error, now_ns),
            Answer::Queued => {
                self.records.get(record).in_flight = true;
                self.queued += 1;
                if self.phase == Phase::Run {
                    self.count.queued_bytes = self.count.queued_bytes.wrapping_add(slot.length);
                }
                if self.queued >= self.job.settings.iodepth_batch
                    || self.phase != Phase::Run && self.is_final_sync()
                {
                    self.commit();
                }
            }
            Answer::Busy => {
                if let (Some(id), Some(file)) = (slot.history, slot.file) {
                    self.history.remove(id, file, slot.offset);
                }
                self.records.put_refused(record);
                self.commit();
            }
        }
        self.at = match self.phase {
            Phase::FinalSync { file } if answer == Answer::Busy => At::FinalSync { file },
            Phase::FinalSync { file } => At::FinalSyncReap { file },
            _ if self.errors.fatal != 0 => At::LoopEnd,
            _ => At::Reaping {
                busy: answer == Answer::Busy,
                data: dir,
                again: false,
                full: false,
            },
        };
    }

    fn is_final_sync(&self) -> bool {
        matches!(self.phase, Phase::FinalSync { .. })
    }

    /// Counts an I/O as issued and finds when the next one in its direction may
    /// go. A refused one is taken back; so is, as in fio, a refused read of the
    /// verification, which was not counted but will be when it comes again.
    #[inline(always)]
    fn count_issued(&mut self, dir: Dir, slot: &Record, taken: bool) {
        let at = dir as usize;
        let (issued, bytes) = (&mut self.count.issued[at], &mut self.count.issued_bytes[at]);
        if taken {
            if !slot.verify {
                *issued = issued.wrapping_add(1);
                *bytes = bytes.wrapping_add(slot.length);
            }
            self.rate.issued_bytes[at] = self.rate.issued_bytes[at].wrapping_add(slot.length);
        } else if slot.verify {
            *issued = issued.wrapping_sub(1);
            *bytes = bytes.wrapping_sub(slot.length);
        }
        if self.phase == Phase::Run {
            self.find_next_time(dir);
        }
    }

    /// Requests that the last [`Step::Reap`] took, in the engine's order.
    pub fn reaped(&mut self, completions: &[Completion], now_ns: u64) {
        for completion in completions {
            if let Some(slot) = self.records.used(completion.record) {
                if !self.offloads() {
                    self.in_flight -= 1;
                }
                self.complete(completion.record, slot, completion.error, now_ns);
            }
        }
        // Who reaps before a pause goes on to the next I/O, which then is the
        // last: it holds a record that must not be lost.
        let running = !matches!(
            self.at,
            At::LoopEnd | At::FinalSyncReap { .. } | At::Quiesce
        );
        // Workers finish at any time: the loop looks by itself.
        if self.errors.fatal != 0 && running && !self.offloads() {
            self.at = At::LoopEnd;
        }
    }

    /// Accounts one request and frees its record.
    #[inline(always)]
    pub(super) fn complete(&mut self, record: u32, slot: Record, error: i32, now_ns: u64) {
        let file = slot.file.unwrap_or(0);
        if !self.offloads() {
            self.last_was_sync = slot.op.dir().is_none();
        }
        match slot.op.dir() {
            None => self.files.all[file as usize].dirty = None,
            Some(dir) => {
                self.last_dir = dir;
                if error == 0 {
                    self.count_completed(dir, &slot, file, now_ns);
                }
            }
        }
        if let Some(id) = slot.history {
            if error == 0 {
                self.history.completed(id, file, slot.offset);
            } else {
                self.history.remove(id, file, slot.offset);
            }
        }
        if error != 0 {
            let cause = Cause::Io(FailedIo::from_record(&slot));
            self.failed(
                slot.op,
                Failure {
                    error,
                    at_ns: now_ns,
                    cause,
                },
            );
        }
        let done = self.records.get(record);
        done.map_ignored = false;
        done.in_flight = false;
        let fsync = self.fsync_on_close();
        self.files.release(file, fsync, &mut self.out);
        self.records.put(record);
    }

    #[inline(always)]
    fn count_completed(&mut self, dir: Dir, slot: &Record, file: u32, now_ns: u64) {
        let at = dir as usize;
        self.count.blocks[at] = self.count.blocks[at].wrapping_add(1);
        self.count.bytes[at] = self.count.bytes[at].wrapping_add(slot.length);
        if !slot.verify {
            self.min_rate.bytes[at] = self.min_rate.bytes[at].wrapping_add(slot.length);
            self.min_rate.blocks[at] = self.min_rate.blocks[at].wrapping_add(1);
        }
        if dir == Dir::Write {
            let end = slot.offset.wrapping_add(slot.length);
            let dirty = &mut self.files.all[file as usize].dirty;
            *dirty = Some(dirty.map_or((slot.offset, end), |(a, b)| {
                (a.min(slot.offset), b.max(end))
            }));
        }
        if !self.ramp_over && self.now_us(now_ns) >= self.job.settings.ramp_time_us {
            self.end_ramp(now_ns);
        }
        if self.ramp_over {
            self.judge_latency(dir, slot, now_ns);
        }
    }

    /// The time that does not count is over: everything starts anew except the
    /// bytes that bound the job.
    fn end_ramp(&mut self, now_ns: u64) {
        self.ramp_over = true;
        self.epoch_us = to_us(now_ns);
        self.min_rate.pass_start_us = self.epoch_us;
        self.reset_stats(now_ns);
        self.restart_latency_target(now_ns);
    }

    /// Forgets counts and statistics.
    pub(super) fn reset_stats(&mut self, now_ns: u64) {
        self.count.issued = [0; 3];
        self.count.blocks = [0; 3];
        self.count.bytes = [0; 3];
        // Whatever this pass moves from here on counts as progress.
        self.count.bytes_before = u64::MAX;
        self.rate.clear();
        self.min_rate.clear(to_us(now_ns));
        self.zone_bytes = 0;
        self.last_was_sync = false;
        self.mix_quota = 0;
        let settings = &self.job.settings;
        if settings.time_based || settings.loops > 1 || settings.do_verify {
            self.files.clear_done_count();
        }
        self.out.push_back(Step::ResetStats);
    }
}
