// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates, pauses and latency targets: what makes a job wait.
//!
//! Behaviour of fio 3.33 and its manual page. Times in microseconds since the
//! job's start.

use super::records::Record;
use super::{At, Cause, FailedIo, Failure, JobRun, Step, to_us};
use crate::errno::{EIO, ETIMEDOUT};
use crate::settings::{Dir, PerDir, RateProcess, Settings};

/// Time before lowest rates are looked at.
const SETTLE_US: u64 = 2_000_000;

/// When each direction may go on.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// Bytes that count against the rate.
    pub(super) issued_bytes: PerDir<u64>,
    next_us: PerDir<u64>,
    poisson_us: PerDir<u64>,
}

impl Rate {
    pub(super) fn clear(&mut self) {
        *self = Rate::default();
    }
}

/// What a rate says about the next I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Go(Dir),
    Wait { dir: Dir, us: u64 },
}

/// Pauses between I/Os.
#[derive(Clone, Debug, Default)]
pub(super) struct Think {
    blocks_before: u64,
    blocks_now: u64,
    last_us: u64,
    began_us: u64,
}

/// Lowest rates.
#[derive(Clone, Debug, Default)]
pub(super) struct MinRate {
    pub(super) pass_start_us: u64,
    pub(super) bytes: PerDir<u64>,
    pub(super) blocks: PerDir<u64>,
    checked_us: PerDir<u64>,
    checked_bytes: PerDir<u64>,
    checked_blocks: PerDir<u64>,
}

impl MinRate {
    pub(super) fn clear(&mut self, now_us: u64) {
        *self = MinRate {
            pass_start_us: now_us,
            ..MinRate::default()
        };
    }
}

/// Search for the depth that keeps a latency.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyTarget {
    target_us: u64,
    /// Depth in use.
    pub(super) depth: u32,
    high: u32,
    low: u32,
    stable: u32,
    failed: u64,
    ios_before: u64,
    since_us: u64,
    last_cycle: bool,
    /// Everything in flight must be reaped before the job goes on.
    pub(super) quiesce_due: bool,
    /// A new cycle starts after that.
    pub(super) cycle_due: bool,
}

impl LatencyTarget {
    pub(super) fn new(settings: &Settings) -> LatencyTarget {
        let depth = settings.iodepth;
        LatencyTarget {
            target_us: settings.latency_target_us,
            depth,
            high: depth,
            low: 1,
            ..Default::default()
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.target_us != 0
    }
}

impl JobRun {
    /// Whether a direction may go now, or the other one instead, or when.
    pub(super) fn rate_choice(&self, dir: Dir, now_ns: u64) -> Choice {
        let now = self.now_us(now_ns);
        let next = |dir: Dir| self.rate.next_us[dir as usize];
        if next(dir) <= now {
            return Choice::Go(dir);
        }
        let other = if dir == Dir::Read {
            Dir::Write
        } else {
            Dir::Read
        };
        if self.job.settings.rw.is_mixed() && self.job.settings.rwmix[other as usize] != 0 {
            if next(other) <= now {
                return Choice::Go(other);
            }
            if next(other) < next(dir) {
                return Choice::Wait {
                    dir: other,
                    us: next(other) - now,
                };
            }
        }
        Choice::Wait {
            dir,
            us: next(dir) - now,
        }
    }

    /// Everything in flight has been reaped: sleep for the rate.
    pub(super) fn rate_wait(
        &mut self,
        record: u32,
        file: u32,
        dir: Dir,
        wait_us: u64,
        now_ns: u64,
    ) -> Option<Step> {
        let mut until_ns = now_ns.saturating_add(wait_us.saturating_mul(1000));
        let runtime = self.job.settings.runtime_us;
        if runtime != 0 {
            let end_ns = self.epoch_us.saturating_add(runtime).saturating_mul(1000);
            until_ns = until_ns.min(end_ns.max(now_ns));
        }
        self.at = At::RateDone { record, file, dir };
        (until_ns > now_ns).then_some(Step::Wait {
            until_ns,
            spin: false,
        })
    }

    pub(super) fn rate_done(
        &mut self,
        record: u32,
        file: u32,
        dir: Dir,
        now_ns: u64,
    ) -> Option<Step> {
        let runtime = self.job.settings.runtime_us;
        if self.terminated || (runtime != 0 && self.now_us(now_ns) >= runtime) {
            let fsync = self.fsync_on_close();
            self.files.release(file, fsync, &mut self.out);
            self.records.put(record);
            if self.ramp_over {
                self.terminated = true;
                return self.go(At::LoopTop);
            }
            // The run time bounds waits for a rate even before the ramp is
            // over, when it bounds nothing else yet: the pass ends, and the job
            // unless it is bound by time. Such a job comes back here at once if
            // the next pass has to wait, and ends because it moved nothing.
            self.files.finish_all();
            return self.go(At::LoopEnd);
        }
        if self.place_in(record, file, dir) {
            self.go(At::Ready { record })
        } else {
            self.go(At::Choose { record })
        }
    }

    /// When the next I/O in a direction may go.
    pub(super) fn find_next_time(&mut self, dir: Dir) {
        let at = dir as usize;
        let bps = self.job.rate_bps[at];
        if bps == 0 {
            return;
        }
        self.rate.next_us[at] = match self.job.settings.rate_process {
            RateProcess::Linear => {
                let bytes = self.rate.issued_bytes[at];
                let part = u128::from(bytes % bps) * 1_000_000 / u128::from(bps);
                (part as u64).saturating_add((bytes / bps).saturating_mul(1_000_000))
            }
            RateProcess::Poisson => {
                let ios = (bps / self.job.settings.min_bs[at].max(1)).max(1);
                let unit = (self.poisson(dir).draw() as f64 + 1.0) / 4_294_967_296.0;
                let gap = (1_000_000 / ios) as f32 * -(unit as f32).ln();
                self.rate.poisson_us[at] = self.rate.poisson_us[at].saturating_add(gap as u64);
                self.rate.poisson_us[at]
            }
        };
    }

    /// Pauses after an I/O, if that is due.
    #[inline(always)]
    pub(super) fn think(&mut self, dir: Option<Dir>, now_ns: u64) -> Option<Step> {
        if let Some(dir) = dir
            && self.thinks()
            && self.is_pause_due(now_ns)
        {
            self.resume = At::ThinkSpin { dir };
            return self.start_quiesce();
        }
        self.loop_bottom(now_ns)
    }

    fn is_pause_due(&mut self, now_ns: u64) -> bool {
        let settings = &self.job.settings;
        let mut due = false;
        if settings.thinktime_iotime_us != 0 {
            let gap = u64::from(settings.thinktime_iotime_us) + u64::from(settings.thinktime_us);
            due = self.now_us(now_ns).saturating_sub(self.think.last_us) >= gap;
            if !due && !settings.is_given("thinktime_blocks") {
                return false;
            }
        }
        self.think.blocks_now = self.think_count();
        due || self.think.blocks_now
            >= self
                .think
                .blocks_before
                .saturating_add(u64::from(settings.thinktime_blocks))
    }

    fn thinks(&self) -> bool {
        self.job.settings.thinktime_us != 0 && self.phase == super::Phase::Run
    }

    pub(super) fn think_spin(&mut self, dir: Dir, now_ns: u64) -> Option<Step> {
        self.think.began_us = self.now_us(now_ns);
        let spin = u64::from(self.job.settings.thinktime_spin_us);
        self.at = At::ThinkSleep { dir };
        self.pause(spin, true, now_ns)
    }

    pub(super) fn think_sleep(&mut self, dir: Dir, now_ns: u64) -> Option<Step> {
        let spun = self.now_us(now_ns).saturating_sub(self.think.began_us);
        let left = u64::from(self.job.settings.thinktime_us).saturating_sub(spun);
        self.at = At::ThinkEnd { dir };
        self.pause(left, false, now_ns)
    }

    /// Waits, but not past the run time.
    fn pause(&self, us: u64, spin: bool, now_ns: u64) -> Option<Step> {
        let runtime = self.job.settings.runtime_us;
        let left = if runtime == 0 {
            us
        } else {
            us.min(runtime.saturating_sub(self.now_us(now_ns)))
        };
        (left > 0).then(|| Step::Wait {
            until_ns: now_ns.saturating_add(left.saturating_mul(1000)),
            spin,
        })
    }

    pub(super) fn think_end(&mut self, dir: Dir, now_ns: u64) -> Option<Step> {
        let now = self.now_us(now_ns);
        let total = now.saturating_sub(self.think.began_us);
        let bps = self.job.rate_bps[dir as usize];
        if total > 0 && bps != 0 && self.job.settings.rate_ignore_thinktime {
            let missed = (u128::from(bps) * u128::from(total) / 1_000_000) as u64;
            let block = self.job.settings.min_bs[dir as usize];
            let per_op_us = (u128::from(block) * 1_000_000 / u128::from(bps)) as u64;
            let over = if per_op_us <= total { block } else { 0 };
            let issued = &mut self.rate.issued_bytes[dir as usize];
            *issued = issued.wrapping_add(missed.saturating_sub(over));
            let poisson = &mut self.rate.poisson_us[dir as usize];
            *poisson = poisson.saturating_add(total);
        }
        self.think.blocks_before = self.think.blocks_now;
        self.think.last_us = now;
        self.loop_bottom(now_ns)
    }

    /// End of one turn of the loop: lowest rates and the latency target.
    #[inline(always)]
    fn loop_bottom(&mut self, now_ns: u64) -> Option<Step> {
        if self.phase == super::Phase::Verify {
            return self.go(At::VerifyTop);
        }
        self.at = At::LoopTop;
        if self.ramp_over
            && self.job.settings.is_rated()
            && let Some(cause) = self.too_slow(now_ns)
        {
            self.fail(Failure {
                error: EIO,
                at_ns: now_ns,
                cause,
            });
            return self.go(At::LoopEnd);
        }
        if self.target.is_on() && self.ramp_over {
            self.check_latency_target(now_ns);
        }
        None
    }

    /// Which direction is below its lowest rate since the last check.
    fn too_slow(&mut self, now_ns: u64) -> Option<Cause> {
        let now = to_us(now_ns);
        let settings = &self.job.settings;
        let state = &mut self.min_rate;
        if now.saturating_sub(state.pass_start_us) < SETTLE_US {
            return None;
        }
        for dir in 0..3 {
            let (bytes_min, ios_min) = (
                settings.rate_min[dir],
                u64::from(settings.rate_iops_min[dir]),
            );
            if (bytes_min == 0 && ios_min == 0) || state.bytes[dir] == 0 {
                continue;
            }
            if state.checked_bytes[dir] != 0 || state.checked_blocks[dir] != 0 {
                let spent_ms = now.saturating_sub(state.checked_us[dir]) / 1000;
                if spent_ms == 0 || spent_ms < u64::from(settings.rate_cycle_ms) {
                    continue;
                }
                let per_s = |moved: u64| moved.saturating_mul(1000) / spent_ms;
                let bytes = per_s(state.bytes[dir].wrapping_sub(state.checked_bytes[dir]));
                let ios = per_s(state.blocks[dir].wrapping_sub(state.checked_blocks[dir]));
                if bytes < bytes_min {
                    let (wanted, got) = (bytes_min, bytes);
                    return Some(Cause::RateMin { wanted, got });
                }
                if bytes_min == 0 && ios < ios_min {
                    let (wanted, got) = (ios_min, ios);
                    return Some(Cause::IopsMin { wanted, got });
                }
            }
            state.checked_us[dir] = now;
            state.checked_bytes[dir] = state.bytes[dir];
            state.checked_blocks[dir] = state.blocks[dir];
        }
        None
    }

    /// Judges the latency of a completed I/O.
    #[inline]
    pub(super) fn judge_latency(&mut self, dir: Dir, slot: &Record, now_ns: u64) {
        let limits = self.job.settings.max_latency_us[dir as usize] | self.target.target_us;
        if limits != 0 {
            self.judge_by_limits(dir, slot, now_ns);
        }
    }

    fn judge_by_limits(&mut self, dir: Dir, slot: &Record, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(slot.start_ns);
        let too_long = |limit_us: u64| {
            let limit_ns = limit_us.saturating_mul(1000);
            (limit_us != 0 && latency_ns > limit_ns).then(|| Failure {
                error: ETIMEDOUT,
                at_ns: now_ns,
                cause: Cause::Latency {
                    io: FailedIo::from_record(slot),
                    latency_ns,
                    limit_ns,
                },
            })
        };
        if let Some(failure) = too_long(self.job.settings.max_latency_us[dir as usize]) {
            self.failed(dir.into(), failure);
        }
        let Some(failure) = too_long(self.target.target_us) else {
            return;
        };
        if self.job.settings.latency_percentile < 100.0 {
            self.target.failed += 1;
        } else if self.lower_depth() {
            self.failed(dir.into(), failure);
        }
    }

    /// The depth is too high: halves the search. Returns whether there is no
    /// lower one.
    fn lower_depth(&mut self) -> bool {
        let target = &mut self.target;
        if target.depth == 1 {
            return true;
        }
        target.high = target.depth;
        if target.depth == target.low {
            target.low = target.low.saturating_sub(1);
        }
        target.depth = (target.depth + target.low) / 2;
        target.stable = 0;
        target.quiesce_due = true;
        false
    }

    /// Reaps everything after the depth went down, wherever the loop is.
    pub(super) fn quiesce_for_target(&mut self, now_ns: u64) {
        self.target.quiesce_due = false;
        match self.at {
            At::Quiesce
            | At::LoopEnd
            | At::Finished
            | At::FinalSyncReap { .. }
            | At::Answer { .. } => {
                self.new_latency_cycle(now_ns);
            }
            at => {
                self.resume = at;
                self.target.cycle_due = true;
                self.start_quiesce();
            }
        }
    }

    /// Sets up the search at the start of a pass.
    pub(super) fn start_latency_target(&mut self, now_ns: u64) {
        self.target.last_cycle = false;
        self.restart_latency_target(now_ns);
    }

    /// Begins the search again, unless it has found its depth.
    pub(super) fn restart_latency_target(&mut self, now_ns: u64) {
        if !self.target.is_on() || self.target.last_cycle {
            return;
        }
        self.target.depth = 1;
        self.target.high = self.job.settings.iodepth;
        self.target.low = 1;
        self.target.since_us = to_us(now_ns);
        self.target.ios_before = self.count.blocks.iter().sum();
    }

    pub(super) fn new_latency_cycle(&mut self, now_ns: u64) {
        self.target.since_us = to_us(now_ns);
        self.target.ios_before = self.count.blocks.iter().sum();
        self.target.failed = 0;
    }

    /// At the end of a window: up with the depth, or down.
    fn check_latency_target(&mut self, now_ns: u64) {
        if to_us(now_ns).saturating_sub(self.target.since_us) < self.job.settings.latency_window_us
        {
            return;
        }
        let ios = self
            .count
            .blocks
            .iter()
            .sum::<u64>()
            .wrapping_sub(self.target.ios_before);
        let good = ios.saturating_sub(self.target.failed) as f64 / ios as f64 * 100.0;
        if good >= self.job.settings.latency_percentile {
            self.raise_depth(now_ns);
        } else {
            self.lower_depth();
        }
    }

    fn raise_depth(&mut self, now_ns: u64) {
        let iodepth = self.job.settings.iodepth;
        let target = &mut self.target;
        let before = target.depth;
        target.low = before;
        if before + 1 == target.high {
            // Stable below the limit: three good windows move the limit.
            target.stable += 1;
            if target.stable >= 3 {
                target.high += 1;
                target.stable = 0;
            }
        }
        target.depth = if target.high == iodepth {
            before.saturating_mul(2)
        } else {
            (before.saturating_add(target.high)) / 2
        };
        target.depth = target.depth.min(iodepth);
        if !self.job.settings.latency_run && target.depth == before {
            if target.last_cycle {
                self.done = true;
            } else {
                target.last_cycle = true;
                self.epoch_us = to_us(now_ns);
                self.reset_stats(now_ns);
            }
        }
        self.new_latency_cycle(now_ns);
    }
}
