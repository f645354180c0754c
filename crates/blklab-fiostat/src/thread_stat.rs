// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statistics of one fio thread, or of several merged into one entry.
//!
//! Source: fio 3.33, `struct thread_stat` and what `group_reporting` does to it.
//! Left out: cache hits, block error information. Units: ns, ms, bytes.

use crate::{DepthMap, IoStat, LatDist, LatencyHist, SteadyState};

/// Direction of a data transfer, with fio's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ddir {
    /// 0
    Read,
    /// 1
    Write,
    /// 2
    Trim,
}

impl Ddir {
    /// All directions in fio's order.
    pub const ALL: [Ddir; 3] = [Ddir::Read, Ddir::Write, Ddir::Trim];

    /// fio's number of the direction.
    pub fn idx(self) -> usize {
        self as usize
    }

    /// Name as in results.
    pub fn name(self) -> &'static str {
        ["read", "write", "trim"][self.idx()]
    }
}

/// Summary and histogram of one kind of latency, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Count, extremes, mean, deviation.
    pub stat: IoStat,
    /// Counts by bucket; empty where its percentiles are switched off.
    pub hist: LatencyHist,
}

impl Latency {
    #[inline]
    pub(crate) fn add(&mut self, value_ns: u64, with_hist: bool) {
        self.stat.add(value_ns);
        if with_hist {
            self.hist.add(value_ns);
        }
    }

    fn merge(&mut self, other: &Latency) {
        self.stat.merge(&other.stat);
        self.hist.merge(&other.hist);
    }

    fn clear(&mut self) {
        self.stat = IoStat::default();
        self.hist.clear();
    }
}

/// Latency of the I/Os of one priority; total latency where `lat_percentiles`
/// is set, completion latency elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct PrioStat {
    /// Class in the top three bits, level in the others.
    pub ioprio: u16,
    /// The latencies.
    pub latency: Latency,
}

impl PrioStat {
    pub(crate) fn new(ioprio: u16) -> PrioStat {
        PrioStat {
            ioprio,
            latency: Latency::default(),
        }
    }

    /// Class: 1 real-time, 2 best effort, 3 idle, 0 none.
    pub fn class(&self) -> u16 {
        self.ioprio >> 13
    }

    /// Level within the class, 0 the highest.
    pub fn level(&self) -> u16 {
        self.ioprio & 7
    }
}

/// What a thread did in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirStat {
    /// Submission latency.
    pub slat: Latency,
    /// Completion latency.
    pub clat: Latency,
    /// Total latency.
    pub lat: Latency,
    /// Latency by priority, where a thread uses several.
    pub prios: Vec<PrioStat>,
    /// Bandwidth samples, KiB/s.
    pub bw: IoStat,
    /// IOPS samples, 1/s.
    pub iops: IoStat,
    /// Bytes transferred.
    pub io_bytes: u64,
    /// Time the direction was active, ms.
    pub runtime_ms: u64,
    /// I/Os issued.
    pub total_ios: u64,
    /// I/Os that transferred less than asked.
    pub short_ios: u64,
    /// I/Os that were not issued after all.
    pub drop_ios: u64,
}

impl DirStat {
    fn merge(&mut self, other: &DirStat) {
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        for prio in &other.prios {
            match self.prios.iter_mut().find(|p| p.ioprio == prio.ioprio) {
                Some(mine) => mine.latency.merge(&prio.latency),
                None => self.prios.push(prio.clone()),
            }
        }
        self.bw.merge_concurrent(&other.bw);
        self.iops.merge_concurrent(&other.iops);
        self.io_bytes = self.io_bytes.saturating_add(other.io_bytes);
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        self.total_ios = self.total_ios.saturating_add(other.total_ios);
        self.short_ios = self.short_ios.saturating_add(other.short_ios);
        self.drop_ios = self.drop_ios.saturating_add(other.drop_ios);
    }

    fn clear_latencies(&mut self) {
        self.slat.clear();
        self.clat.clear();
        self.lat.clear();
        self.prios.iter_mut().for_each(|p| p.latency.clear());
        self.bw = IoStat::default();
        self.iops = IoStat::default();
    }

    fn clear(&mut self) {
        self.clear_latencies();
        self.io_bytes = 0;
        self.runtime_ms = 0;
        self.total_ios = 0;
        self.short_ios = 0;
        self.drop_ios = 0;
    }

    /// Bytes per second over the run time; 0 without run time.
    pub fn bw_bytes(&self) -> u64 {
        per_second(self.io_bytes, self.runtime_ms)
    }

    /// Priorities that have samples; results show them if there are several.
    pub(crate) fn prios_in_use(&self) -> Vec<&PrioStat> {
        let used = self.prios.iter().filter(|p| p.latency.stat.samples > 0);
        used.collect()
    }

    /// I/Os per second over the run time, cut to an integer.
    pub fn iops_whole(&self) -> u64 {
        per_second(self.total_ios, self.runtime_ms)
    }
}

/// `n` events in `ms` milliseconds as a rate per second, cut; 0 if `ms` is 0.
pub(crate) fn per_second(n: u64, ms: u64) -> u64 {
    let rate = (u128::from(n) * 1000).checked_div(u128::from(ms));
    u64::try_from(rate.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// Everything counted about one thread (fio's `struct thread_stat`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadStat {
    /// By direction; see [`Ddir::idx`].
    pub dirs: [DirStat; 3],
    /// Latency of fsync, fdatasync and sync_file_range.
    pub sync: Latency,
    /// Syncs issued.
    pub sync_ios: u64,
    /// Completion latencies of all directions.
    pub lat_dist: LatDist,
    /// Queue depth at submission.
    pub depth: DepthMap,
    /// Sizes of submission batches.
    pub submit: DepthMap,
    /// Submission calls.
    pub total_submit: u64,
    /// Sizes of completion batches.
    pub complete: DepthMap,
    /// Completion calls.
    pub total_complete: u64,
    /// Life of the thread, ms; summed when merging.
    pub job_runtime_ms: u64,
    /// User CPU time, ms.
    pub usr_ms: u64,
    /// System CPU time, ms.
    pub sys_ms: u64,
    /// Context switches.
    pub ctx: u64,
    /// Major page faults.
    pub majf: u64,
    /// Minor page faults.
    pub minf: u64,
    /// Zone resets.
    pub zone_resets: u64,
    /// The judgement on its steady state, if it looked for one. In a group that
    /// is reported as one, the last thread has it.
    pub steady: Option<SteadyState>,
}

impl ThreadStat {
    /// The counters of one direction.
    pub fn dir(&self, dir: Ddir) -> &DirStat {
        &self.dirs[dir.idx()]
    }

    /// I/Os of all directions, syncs not included.
    pub fn total_ios(&self) -> u64 {
        self.dirs.iter().map(|d| d.total_ios).sum()
    }

    /// Bytes of all directions.
    pub fn io_bytes(&self) -> u64 {
        self.dirs.iter().map(|d| d.io_bytes).sum()
    }

    /// User and system CPU time in percent of the life of the threads.
    pub fn cpu_percent(&self) -> (f64, f64) {
        let share = |ms: u64| match self.job_runtime_ms {
            0 => 0.0,
            total => ms as f64 * 100.0 / total as f64,
        };
        (share(self.usr_ms), share(self.sys_ms))
    }

    /// Adds another thread's statistics. With `mixed`, all its directions go to
    /// the first one here (`unified_rw_reporting=mixed`).
    pub fn merge(&mut self, other: &ThreadStat, mixed: bool) {
        for (i, dir) in other.dirs.iter().enumerate() {
            self.dirs[if mixed { 0 } else { i }].merge(dir);
        }
        self.sync.merge(&other.sync);
        self.sync_ios = self.sync_ios.saturating_add(other.sync_ios);
        self.lat_dist.merge(&other.lat_dist);
        self.depth.merge(&other.depth);
        self.submit.merge(&other.submit);
        self.complete.merge(&other.complete);
        self.total_submit = self.total_submit.saturating_add(other.total_submit);
        self.total_complete = self.total_complete.saturating_add(other.total_complete);
        self.job_runtime_ms = self.job_runtime_ms.saturating_add(other.job_runtime_ms);
        self.usr_ms = self.usr_ms.saturating_add(other.usr_ms);
        self.sys_ms = self.sys_ms.saturating_add(other.sys_ms);
        self.ctx = self.ctx.saturating_add(other.ctx);
        self.majf = self.majf.saturating_add(other.majf);
        self.minf = self.minf.saturating_add(other.minf);
        self.zone_resets = self.zone_resets.saturating_add(other.zone_resets);
        self.steady.clone_from(&other.steady);
    }

    /// All directions as one, for `unified_rw_reporting=both`.
    pub fn mixed(&self) -> ThreadStat {
        let mut mixed = ThreadStat::default();
        mixed.merge(self, true);
        mixed
    }

    /// Forgets latencies and rates; what was issued and moved stays.
    pub(crate) fn drop_latencies(&mut self) {
        self.dirs.iter_mut().for_each(DirStat::clear_latencies);
        self.sync.clear();
        self.lat_dist = LatDist::default();
    }

    /// Forgets what the ramp time brought, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.dirs.iter_mut().for_each(DirStat::clear);
        self.sync.clear();
        self.sync_ios = 0;
        self.lat_dist = LatDist::default();
        self.depth = DepthMap::default();
        self.submit = DepthMap::default();
        self.complete = DepthMap::default();
        self.total_submit = 0;
        self.total_complete = 0;
        self.zone_resets = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_adds_all_directions() {
        let mut stat = ThreadStat::default();
        for (i, dir) in stat.dirs.iter_mut().enumerate() {
            dir.io_bytes = 100 << i;
            dir.total_ios = 1 << i;
            dir.runtime_ms = 10 + i as u64;
            dir.clat.add(1_000 << i, true);
        }
        let mixed = stat.mixed();
        let all = mixed.dir(Ddir::Read);
        assert_eq!((all.io_bytes, all.total_ios, all.runtime_ms), (700, 7, 12));
        assert_eq!((all.clat.stat.samples, all.clat.stat.max), (3, 4_000));
        assert_eq!(mixed.dir(Ddir::Write), &DirStat::default());
    }

    #[test]
    fn rates_need_a_run_time() {
        assert_eq!(per_second(7, 0), 0);
        assert_eq!(per_second(2_031_616, 30), 67_720_533);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
    }
}
