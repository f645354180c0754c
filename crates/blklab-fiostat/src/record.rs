// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording side: one [`JobStats`] per fio thread.
//!
//! Whoever runs the job calls it at each step of an I/O, in the order of time:
//!
//! ```text
//! on_issue ─ on_submit(n, depth) ─ … ─ on_complete ─ … ─ on_complete_batch(n)
//! ```
//!
//! and, once per pass over the job's data (`loops`, `time_based`), `end_pass`.
//! Source: fio 3.33, `stat.c`, `io_u.c`, `ioengines.c`. Left out: the lag of
//! fio's sampling thread; samples here are exactly on time. Nothing is allocated
//! per I/O, except for logs that were asked for.
//!
//! ```
//! use blklab_fiostat::{Completion, Ddir, JobStats, StatOptions};
//!
//! let mut stats = JobStats::new(StatOptions::default(), 0);
//! stats.on_issue(Ddir::Read);
//! stats.on_submit(1, 1);
//! let done = Completion { clat_ns: 80_000, lat_ns: 81_000, now_ns: 81_000,
//!                         ..Completion::new(Ddir::Read, 4096) };
//! stats.on_complete(&done);
//! stats.on_complete_batch(1);
//! stats.end_pass(81_000);
//! let (stat, _logs) = stats.finish(81_000);
//! assert_eq!(stat.dir(Ddir::Read).runtime_ms, 1);
//! ```

use crate::job_logs::{ms_between, row};
use crate::sampler::{RateSampler, Rates};
use crate::thread_stat::{DirStat, PrioStat};
use crate::{Completion, Ddir, IoLog, JobLogs, LogRow, StatOptions, ThreadStat};

/// Records one thread.
#[derive(Clone, Debug)]
pub struct JobStats {
    options: StatOptions,
    stat: ThreadStat,
    logs: JobLogs,
    start_ns: u64,
    bw_sampler: RateSampler,
    iops_sampler: RateSampler,
    completed_ios: [u64; 3],
    pass_bytes: [u64; 3],
    active_us: [u64; 3],
    errors: u64,
    first_error: i32,
}

impl JobStats {
    /// Starts recording; `start_ns` is when the job starts its first I/O.
    pub fn new(options: StatOptions, start_ns: u64) -> JobStats {
        let logs = JobLogs::new(&options);
        let bw_sampler = RateSampler::new(options.bw_interval_ms(), start_ns);
        let iops_sampler = RateSampler::new(options.iops_interval_ms(), start_ns);
        let mut stat = ThreadStat::default();
        for dir in &mut stat.dirs {
            let prios = options.ioprios.iter();
            dir.prios = prios.map(|&ioprio| PrioStat::new(ioprio)).collect();
        }
        JobStats {
            options,
            stat,
            logs,
            start_ns,
            bw_sampler,
            iops_sampler,
            completed_ios: [0; 3],
            pass_bytes: [0; 3],
            active_us: [0; 3],
            errors: 0,
            first_error: 0,
        }
    }

    /// A transfer was handed to the engine.
    pub fn on_issue(&mut self, dir: Ddir) {
        self.stat.dirs[dir.idx()].total_ios += 1;
    }

    /// An fsync, fdatasync or sync_file_range was handed to the engine.
    pub fn on_sync_issue(&mut self) {
        self.stat.sync_ios += 1;
    }

    /// One submission call took `n` I/Os; `depth` are in flight with them. A
    /// synchronous engine submits 1 at depth 1.
    pub fn on_submit(&mut self, n: u32, depth: u32) {
        self.stat.depth.add_depth(depth, u64::from(n));
        self.stat.submit.add_batch(n);
        self.stat.total_submit += 1;
    }

    /// One completion call brought `n` I/Os.
    pub fn on_complete_batch(&mut self, n: u32) {
        self.stat.complete.add_batch(n);
        self.stat.total_complete += 1;
    }

    /// The submission latency of an I/O, reported when it was submitted, so that
    /// rows of the log are in the order of submission as in fio. `now_ns` is the
    /// time of submission; `done` supplies direction, size, offset and priority.
    pub fn on_slat(&mut self, done: &Completion, slat_ns: u64, now_ns: u64) {
        if self.options.disable_slat {
            return;
        }
        let with_hist = self.options.slat_percentiles;
        self.stat.dirs[done.dir.idx()].slat.add(slat_ns, with_hist);
        if let Some(log) = &mut self.logs.slat {
            log.add(row(done, slat_ns, now_ns, self.start_ns));
        }
    }

    /// A transfer was reaped.
    pub fn on_complete(&mut self, done: &Completion) {
        self.sample_rates(done.now_ns);
        let dir = done.dir.idx();
        if let Some(slat_ns) = done.slat_ns {
            self.on_slat(done, slat_ns, done.now_ns.saturating_sub(done.clat_ns));
        }
        self.add_lat(done);
        self.add_clat(done);
        self.add_single_rates(done);
        self.stat.dirs[dir].io_bytes += done.bytes;
        self.completed_ios[dir] += 1;
        self.pass_bytes[dir] += done.bytes;
    }

    /// A sync was reaped, `latency_ns` after it was submitted.
    pub fn on_sync_complete(&mut self, latency_ns: u64) {
        if !self.options.disable_clat {
            self.stat.sync.add(latency_ns, true);
        }
    }

    /// A transfer moved less than asked.
    pub fn on_short(&mut self, dir: Ddir) {
        self.stat.dirs[dir.idx()].short_ios += 1;
    }

    /// A transfer was given up before it was issued.
    pub fn on_drop(&mut self, dir: Ddir) {
        self.stat.dirs[dir.idx()].drop_ios += 1;
    }

    /// A transfer failed with an error number and the job went on.
    pub fn on_error(&mut self, errno: i32) {
        if self.errors == 0 {
            self.first_error = errno;
        }
        self.errors += 1;
    }

    /// How many errors, and the number of the first (0: none).
    pub fn errors(&self) -> (u64, i32) {
        (self.errors, self.first_error)
    }

    /// I/Os completed and bytes moved in all directions, since the start or the
    /// end of the ramp time.
    pub fn moved(&self) -> (u64, u64) {
        (self.completed_ios.iter().sum(), self.stat.io_bytes())
    }

    /// A zone was reset.
    pub fn on_zone_reset(&mut self) {
        self.stat.zone_resets += 1;
    }

    /// Adds resource usage: user and system time in ms, context switches, major
    /// and minor page faults.
    pub fn add_usage(&mut self, usr_ms: u64, sys_ms: u64, ctx: u64, majf: u64, minf: u64) {
        self.stat.usr_ms += usr_ms;
        self.stat.sys_ms += sys_ms;
        self.stat.ctx += ctx;
        self.stat.majf += majf;
        self.stat.minf += minf;
    }

    /// The ramp time is over: what was counted so far is forgotten. Logs and the
    /// start of the job stay.
    pub fn end_ramp(&mut self, now_ns: u64) {
        self.stat.clear();
        self.completed_ios = [0; 3];
        self.pass_bytes = [0; 3];
        self.active_us = [0; 3];
        self.bw_sampler.restart(now_ns);
        self.iops_sampler.restart(now_ns);
    }

    /// The thread ended before its ramp time was over: bytes and I/Os count,
    /// latencies and samples of rates do not (fio 3.33).
    pub fn drop_latencies(&mut self) {
        self.stat.drop_latencies();
        self.bw_sampler = RateSampler::new(0, self.start_ns);
        self.iops_sampler = RateSampler::new(0, self.start_ns);
    }

    /// One pass over the data ended, `elapsed_ns` after its first I/O (or after
    /// the ramp time), its last completion and `end_fsync` included. Counts as
    /// run time of the directions that moved bytes in it; returns which did.
    pub fn end_pass(&mut self, elapsed_ns: u64) -> [bool; 3] {
        let moved = std::mem::take(&mut self.pass_bytes).map(|bytes| bytes > 0);
        // fio counts whole microseconds of each pass.
        for (active_us, moved) in self.active_us.iter_mut().zip(moved) {
            if moved {
                *active_us += elapsed_ns / 1000;
            }
        }
        moved
    }

    /// The thread ended. Returns its statistics and logs.
    pub fn finish(mut self, now_ns: u64) -> (ThreadStat, JobLogs) {
        self.sample_rates(now_ns);
        let time_ms = ms_between(self.start_ns, now_ns);
        self.logs.finish(time_ms);
        self.stat.job_runtime_ms = time_ms;
        for (dir, active_us) in self.stat.dirs.iter_mut().zip(self.active_us) {
            dir.runtime_ms = active_us.div_ceil(1000);
        }
        (self.stat, self.logs)
    }

    fn add_lat(&mut self, done: &Completion) {
        if self.options.disable_lat {
            return;
        }
        let with_hist = self.options.lat_percentiles;
        let dir = &mut self.stat.dirs[done.dir.idx()];
        dir.lat.add(done.lat_ns, with_hist);
        if with_hist {
            add_to_prio(dir, done.ioprio, done.lat_ns, true);
        }
        if let Some(log) = &mut self.logs.lat {
            log.add(row(done, done.lat_ns, done.now_ns, self.start_ns));
        }
    }

    fn add_clat(&mut self, done: &Completion) {
        if self.options.disable_clat {
            return;
        }
        self.stat.lat_dist.add(done.clat_ns);
        let with_hist = self.options.clat_percentiles;
        let dir = &mut self.stat.dirs[done.dir.idx()];
        dir.clat.add(done.clat_ns, with_hist);
        if !self.options.lat_percentiles {
            add_to_prio(dir, done.ioprio, done.clat_ns, with_hist);
        }
        if let Some(log) = &mut self.logs.clat_hist {
            let time_ms = ms_between(self.start_ns, done.now_ns);
            log.on_io(time_ms, done.dir, done.bytes, &dir.clat.hist);
        }
        if let Some(log) = &mut self.logs.clat {
            log.add(row(done, done.clat_ns, done.now_ns, self.start_ns));
        }
    }

    /// With a log of every I/O, fio samples the rate of every I/O, in units of
    /// 1000 B/s, instead of one per interval.
    fn add_single_rates(&mut self, done: &Completion) {
        let dir = &mut self.stat.dirs[done.dir.idx()];
        if let Some(log) = per_io(&mut self.logs.bw).filter(|_| !self.options.disable_bw) {
            let scaled = done.bytes.saturating_mul(1_000_000);
            let rate = scaled.checked_div(done.clat_ns).unwrap_or(0);
            dir.bw.add(rate);
            log.add(row(done, rate, done.now_ns, self.start_ns));
        }
        if let Some(log) = per_io(&mut self.logs.iops) {
            dir.iops.add(1);
            log.add(row(done, 1, done.now_ns, self.start_ns));
        }
    }

    fn sample_rates(&mut self, now_ns: u64) {
        if self.bw_sampler.is_due(now_ns) {
            let bytes = std::array::from_fn(|dir| self.stat.dirs[dir].io_bytes);
            if let Some((end_ns, rates)) = self.bw_sampler.close(now_ns, bytes) {
                let kib = rates.map(|rate| rate.map(|bytes| bytes / 1024));
                let time_ms = ms_between(self.start_ns, end_ns);
                let series = |dir: &mut DirStat, rate| dir.bw.add(rate);
                add_rates(&mut self.stat, series, &mut self.logs.bw, time_ms, kib);
            }
        }
        if self.iops_sampler.is_due(now_ns)
            && let Some((end_ns, rates)) = self.iops_sampler.close(now_ns, self.completed_ios)
        {
            let time_ms = ms_between(self.start_ns, end_ns);
            let series = |dir: &mut DirStat, rate| dir.iops.add(rate);
            add_rates(&mut self.stat, series, &mut self.logs.iops, time_ms, rates);
        }
    }
}

/// The log, if every I/O has a row in it.
fn per_io(log: &mut Option<IoLog>) -> Option<&mut IoLog> {
    log.as_mut().filter(|log| log.is_per_io())
}

/// Adds the samples of one interval to statistics and log.
fn add_rates(
    stat: &mut ThreadStat,
    add: fn(&mut DirStat, u64),
    log: &mut Option<IoLog>,
    time_ms: u64,
    rates: Rates,
) {
    for (dir, rate) in Ddir::ALL.into_iter().zip(rates) {
        let Some(rate) = rate else { continue };
        add(&mut stat.dirs[dir.idx()], rate);
        if let Some(log) = log {
            log.add(LogRow::of_window(time_ms, rate, dir));
        }
    }
}

fn add_to_prio(dir: &mut DirStat, ioprio: u16, latency_ns: u64, with_hist: bool) {
    if let Some(prio) = dir.prios.iter_mut().find(|p| p.ioprio == ioprio) {
        prio.latency.add(latency_ns, with_hist);
    }
}
