// SPDX-License-Identifier: MIT OR Apache-2.0
//! One turn of the loop: build a request, hand it over, reap what must be
//! reaped.

use super::files::NoFile;
use super::{At, Io, IoOp, JobRun, Phase, STUCK_MAX, Step, pace};
use crate::settings::Dir;

impl JobRun {
    /// Top of the loop: whether to build another I/O. Apart from [`JobRun::step`], whose
    /// other ways are short.
    #[inline(never)]
    pub(super) fn loop_top(&mut self, now_ns: u64) -> Option<Step> {
        let time_based = self.job.settings.time_based;
        let bounded = !time_based && self.playback.is_none();
        let failed = self.offloads() && self.errors.fatal != 0;
        if failed || self.terminated || self.done || (bounded && self.limit_reached()) {
            return self.go(At::LoopEnd);
        }
        if self.runtime_over(now_ns) {
            self.terminated = true;
            return self.go(At::LoopEnd);
        }
        if self.must_ask() {
            return self.go(At::Flow);
        }
        if self.offloads() && self.records.depth > 0 && self.records.none_free() {
            return Some(Step::Reap {
                min: 1,
                max: self.records.depth,
            });
        }
        if self.playback.is_some() {
            return self.next_recorded();
        }
        let unbounded = time_based && !self.job.settings.verify;
        if !unbounded && self.count.queued_bytes >= self.pass_limit() {
            return self.go(At::LoopEnd);
        }
        let Some(record) = self.records.take(self.is_full()) else {
            return self.nothing_to_issue();
        };
        if self.take_backlog(record) || self.records.get(record).file.is_some() {
            return self.ready(record, now_ns);
        }
        self.choose(record, now_ns)
    }

    /// A job that replays a log ends with it, however much was transferred.
    fn next_recorded(&mut self) -> Option<Step> {
        let Some(record) = self.records.take(self.is_full()) else {
            return self.nothing_to_issue();
        };
        if self.take_backlog(record) || self.records.get(record).file.is_some() {
            return self.go(At::Ready { record });
        }
        self.go(At::Replay { record })
    }

    /// No I/O can be built: with a latency target the loop first reaps.
    pub(super) fn nothing_to_issue(&mut self) -> Option<Step> {
        if self.target.is_on() && self.records.depth > 0 {
            return self.go(At::Reaping {
                busy: false,
                data: None,
                again: false,
                full: false,
            });
        }
        self.go(At::LoopEnd)
    }

    /// Chooses a file and a direction, and places the I/O unless it must wait
    /// for its rate.
    #[inline(always)]
    pub(super) fn choose(&mut self, record: u32, now_ns: u64) -> Option<Step> {
        loop {
            let seed = self.offset_seed;
            let next = self.files.next(
                &self.job,
                seed,
                &mut self.generators.next_file,
                &mut self.out,
            );
            let file = match next {
                Ok(file) => file,
                Err(why) => return self.no_file(record, why),
            };
            self.files.hold(file);
            let op = self.choose_op();
            let Some(dir) = op.dir() else {
                return self.ready_or_trimwrite(record, file, op);
            };
            match self.rate_choice(dir, now_ns) {
                pace::Choice::Go(dir) => {
                    if self.place_in(record, file, dir) {
                        return self.ready(record, now_ns);
                    }
                }
                pace::Choice::Wait { dir, us } => {
                    self.at = At::RateWait {
                        record,
                        file,
                        dir,
                        wait_us: us,
                    };
                    if self.offloads() {
                        return None;
                    }
                    self.resume = self.at;
                    return self.start_quiesce();
                }
            }
            if self.stuck > STUCK_MAX {
                self.records.put(record);
                return self.go(At::LoopEnd);
            }
        }
    }

    /// A sync needs no place, but a trimming job turns it into something else.
    pub(super) fn ready_or_trimwrite(&mut self, record: u32, file: u32, op: IoOp) -> Option<Step> {
        if let Some(dir) = self.trim_or_write(op, file).dir() {
            return if self.place_in(record, file, dir) {
                self.go(At::Ready { record })
            } else {
                self.go(At::Choose { record })
            };
        }
        let slot = self.records.get(record);
        slot.op = op;
        slot.file = Some(file);
        self.go(At::Ready { record })
    }

    /// Places an I/O in a file; a file without room is finished.
    #[inline(always)]
    pub(super) fn place_in(&mut self, record: u32, file: u32, dir: Dir) -> bool {
        if self.job.settings.rw.is_mixed() {
            self.mix_dir = dir;
        }
        let op = self.trim_or_write(dir.into(), file);
        let dir = op.dir().unwrap_or(dir);
        if self.place(record, dir, file).is_ok() {
            let slot = self.records.get(record);
            slot.op = op;
            slot.file = Some(file);
            self.stuck = 0;
            return true;
        }
        self.stuck += 1;
        let fsync = self.fsync_on_close();
        self.files.release(file, fsync, &mut self.out);
        self.files.close_file(file, fsync, &mut self.out);
        if self.job.settings.file_service.is_non_uniform() {
            self.files.all[file as usize].reset(self.offset_seed);
        } else {
            self.files.finish(file);
        }
        false
    }

    pub(super) fn no_file(&mut self, record: u32, why: NoFile) -> Option<Step> {
        self.records.put(record);
        match why {
            NoFile::Done => self.nothing_to_issue(),
            NoFile::Busy => {
                self.stuck += 1;
                if self.stuck > STUCK_MAX {
                    return self.go(At::LoopEnd);
                }
                self.go(At::Reaping {
                    busy: true,
                    data: None,
                    again: false,
                    full: false,
                })
            }
        }
    }

    /// A request is ready: hands it over, after what its file still needs.
    #[inline(always)]
    pub(super) fn ready(&mut self, record: u32, now_ns: u64) -> Option<Step> {
        if !self.out.is_empty() {
            return self.go(At::Ready { record });
        }
        if self.must_wait(record) {
            return self.hold_back(record, now_ns);
        }
        Some(self.issue(record, now_ns))
    }

    /// Hands over a request that is ready.
    #[inline(always)]
    fn issue(&mut self, record: u32, now_ns: u64) -> Step {
        let settings = &self.job.settings;
        let logs_writes = self.phase == Phase::Run && settings.verify && settings.do_verify;
        let in_order = self.job.uses_random_map();
        let slot = self.records.get(record);
        slot.start_ns = now_ns;
        if let (true, IoOp::Write, Some(file)) = (logs_writes, slot.op, slot.file) {
            slot.history = Some(self.history.add(file, slot.offset, slot.length, in_order));
        }
        self.at = At::Answer { record };
        Step::Issue(self.io(record))
    }

    #[inline(always)]
    pub(super) fn io(&mut self, record: u32) -> Io {
        let slot = *self.records.get(record);
        let file = slot.file.unwrap_or(0);
        let (offset, length) = match slot.op {
            IoOp::Sync | IoOp::Datasync => (0, 0),
            IoOp::SyncFileRange => self.files.all[file as usize]
                .dirty
                .map_or((0, 0), |(a, b)| (a, b - a)),
            IoOp::Read | IoOp::Write | IoOp::Trim => (slot.offset, slot.length),
        };
        Io {
            record,
            op: slot.op,
            file,
            offset,
            length,
            logged_offset: slot.offset,
            verify: slot.verify,
            priority: self.drawn_priority(slot.op, slot.length),
        }
    }

    /// Whether no further request may be built.
    pub(super) fn is_full(&self) -> bool {
        self.records.none_free() || (self.target.is_on() && self.records.depth >= self.target.depth)
    }

    pub(super) fn fsync_on_close(&self) -> bool {
        self.job.settings.fsync_on_close && self.should_fsync()
    }

    pub(super) fn should_fsync(&self) -> bool {
        self.job.settings.rw.writes && !self.last_was_sync
    }

    /// Reaps if it must, as often as it must.
    #[inline(always)]
    pub(super) fn reap(
        &mut self,
        busy: bool,
        data: Option<Dir>,
        again: bool,
        full: bool,
        now_ns: u64,
    ) -> Option<Step> {
        let settings = &self.job.settings;
        let wanted = settings.iodepth_batch_complete_min;
        let depth = self.records.depth;
        let full = if again { full } else { self.is_full() };
        let polling = wanted == 0 && settings.iodepth_batch_complete_max == 0;
        let reap = if again {
            full && depth > settings.iodepth_low
        } else {
            full || (busy && depth > 0) || polling
        };
        if !reap || depth == 0 || self.errors.fatal != 0 {
            return self.think(data, now_ns);
        }
        self.at = At::Reaping {
            busy,
            data,
            again: true,
            full,
        };
        let min = wanted.min(depth).max(1);
        Some(self.reap_step(min))
    }

    pub(super) fn reap_step(&self, min: u32) -> Step {
        let max = self
            .job
            .settings
            .iodepth_batch_complete_max
            .min(self.records.depth);
        Step::Reap {
            min,
            max: max.max(min),
        }
    }

    /// Begins to submit and reap everything, then goes on at `resume`.
    pub(super) fn start_quiesce(&mut self) -> Option<Step> {
        self.at = At::Quiesce;
        self.commit();
        None
    }

    pub(super) fn quiesce(&mut self, now_ns: u64) -> Option<Step> {
        if self.in_flight > 0 && self.records.depth > 0 && self.errors.fatal == 0 {
            return Some(self.reap_step(1));
        }
        if std::mem::take(&mut self.target.cycle_due) {
            self.new_latency_cycle(now_ns);
        }
        self.at = self.resume;
        None
    }

    /// Tells the engine to submit what it holds.
    pub(super) fn commit(&mut self) {
        if self.records.depth > 0 && self.queued > 0 {
            self.in_flight += i64::from(self.queued);
            self.queued = 0;
            self.out.push_back(Step::Commit);
        }
    }
}
