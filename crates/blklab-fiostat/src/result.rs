// SPDX-License-Identifier: MIT OR Apache-2.0
//! From finished threads to the entries and groups of a result.
//!
//! Source: fio 3.33, measured, and `stat.c`. Kept quirks: a merged entry has the
//! name, description and unit options of its first member, but the job options,
//! percentile options and latency target of its last; a member without
//! `group_reporting` is merged with those right behind it that have it and are
//! in its group. Not kept: the empty entry without name that fio adds in that
//! last case.

use crate::thread_stat::per_second;
use crate::{DiskUtil, JobInfo, ThreadStat, UnifiedRw, Units};

/// A finished thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRecord {
    /// About the job.
    pub info: JobInfo,
    /// What was measured.
    pub stat: ThreadStat,
}

/// A finished run: all its threads in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioRun {
    /// Version text, such as `fio-3.33`.
    pub version: String,
    /// When the result is printed, ms since 1970.
    pub timestamp_ms: u64,
    /// Since the start of the run, s, rounded up.
    pub elapsed_s: u64,
    /// Options of the global sections as written, in order.
    pub global_options: Vec<(String, String)>,
    /// The threads.
    pub jobs: Vec<JobRecord>,
    /// Disks used.
    pub disk_util: Vec<DiskUtil>,
    /// Appended to JSON as `blklab`.
    pub blklab: Option<serde_json::Value>,
}

impl FioRun {
    /// Merges what is reported together.
    pub fn result(self) -> FioResult {
        let entries = merge_jobs(self.jobs);
        FioResult {
            version: self.version,
            timestamp_ms: self.timestamp_ms,
            elapsed_s: self.elapsed_s,
            eta_s: 0,
            global_options: self.global_options,
            groups: group_stats(&entries),
            entries,
            disk_util: self.disk_util,
            blklab: self.blklab,
        }
    }
}

/// One entry of a result: a thread or several merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// About the job.
    pub info: JobInfo,
    /// Number of threads merged.
    pub members: u32,
    /// What was measured. With [`UnifiedRw::Mixed`] all is in the first direction.
    pub stat: ThreadStat,
}

/// Rates of a group in each direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Group number.
    pub id: u32,
    /// Whether one of its entries reports all directions as one.
    pub mixed: bool,
    /// Whether one of its entries reports directions apart and as one.
    pub both: bool,
    /// Units of its last entry.
    pub units: Units,
    /// By direction; `None` where nothing ran.
    pub dirs: [Option<GroupDir>; 3],
}

/// Rates of a group in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDir {
    /// Bytes transferred.
    pub io_bytes: u64,
    /// Shortest run time of an entry, ms (mint).
    pub min_run_ms: u64,
    /// Longest run time of an entry, ms (maxt).
    pub max_run_ms: u64,
    /// Smallest bandwidth of an entry, B/s (minb).
    pub min_bw: u64,
    /// Largest bandwidth of an entry, B/s (maxb).
    pub max_bw: u64,
    /// All bytes over the longest run time, B/s.
    pub agg: u64,
}

impl GroupDir {
    /// Takes in the same group's rates in another direction.
    pub(crate) fn mix(self, other: GroupDir) -> GroupDir {
        GroupDir {
            io_bytes: self.io_bytes.saturating_add(other.io_bytes),
            agg: self.agg.saturating_add(other.agg),
            ..self.span(other)
        }
    }

    /// The extremes of two.
    fn span(self, other: GroupDir) -> GroupDir {
        GroupDir {
            min_run_ms: self.min_run_ms.min(other.min_run_ms),
            max_run_ms: self.max_run_ms.max(other.max_run_ms),
            min_bw: self.min_bw.min(other.min_bw),
            max_bw: self.max_bw.max(other.max_bw),
            ..self
        }
    }
}

/// A result, ready to be printed. Build it with [`FioRun::result`], or entry by
/// entry with [`FioResult::from_entries`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioResult {
    /// Version text, such as `fio-3.33`.
    pub version: String,
    /// When the result is printed, ms since 1970.
    pub timestamp_ms: u64,
    /// Since the start of the run, s, rounded up.
    pub elapsed_s: u64,
    /// Remaining time, s; 0 for a run that ended.
    pub eta_s: u64,
    /// Options of the global sections as written, in order.
    pub global_options: Vec<(String, String)>,
    /// Threads, merged where asked for.
    pub entries: Vec<Entry>,
    /// Groups with entries, in the order of their first ones.
    pub groups: Vec<GroupStats>,
    /// Disks used.
    pub disk_util: Vec<DiskUtil>,
    /// Appended to JSON as `blklab`.
    pub blklab: Option<serde_json::Value>,
}

impl FioResult {
    /// A result of given entries, everything else empty.
    pub fn from_entries(entries: Vec<Entry>) -> FioResult {
        FioResult {
            groups: group_stats(&entries),
            entries,
            ..FioResult::default()
        }
    }

    /// The group of an entry.
    pub(crate) fn group_of(&self, entry: &Entry) -> GroupStats {
        let mut groups = self.groups.iter();
        let group = groups.find(|group| group.id == entry.info.group_id);
        group.cloned().unwrap_or_default()
    }
}

fn merge_jobs(jobs: Vec<JobRecord>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for JobRecord { info, stat } in jobs {
        let open = entries
            .last_mut()
            .filter(|last| info.group_reporting && last.info.group_id == info.group_id);
        match open {
            Some(entry) => entry.add_member(info, &stat),
            None => entries.push(Entry::new(info, &stat)),
        }
    }
    entries
}

impl Entry {
    /// An entry of one thread.
    pub fn new(info: JobInfo, stat: &ThreadStat) -> Entry {
        let mut entry = Entry {
            info,
            members: 1,
            stat: ThreadStat::default(),
        };
        entry.merge_stat(stat);
        entry
    }

    fn add_member(&mut self, info: JobInfo, stat: &ThreadStat) {
        self.merge_stat(stat);
        self.members += 1;
        let mine = &mut self.info;
        mine.options = info.options;
        mine.percentiles = info.percentiles;
        mine.latency = info.latency;
        mine.continue_on_error = info.continue_on_error;
        mine.errors = mine.errors.saturating_add(info.errors);
        mine.first_error = info.first_error;
        mine.first_error_text = info.first_error_text;
        if mine.error == 0 {
            mine.error = info.error;
            mine.error_text = info.error_text;
        }
    }

    fn merge_stat(&mut self, stat: &ThreadStat) {
        self.stat.merge(stat, self.info.unified == UnifiedRw::Mixed);
    }
}

fn group_stats(entries: &[Entry]) -> Vec<GroupStats> {
    let mut groups: Vec<GroupStats> = Vec::new();
    for entry in entries {
        let id = entry.info.group_id;
        match groups.iter_mut().find(|group| group.id == id) {
            Some(group) => group.add(entry),
            None => {
                let mut group = GroupStats {
                    id,
                    ..GroupStats::default()
                };
                group.add(entry);
                groups.push(group);
            }
        }
    }
    groups
}

impl GroupStats {
    fn add(&mut self, entry: &Entry) {
        self.units = entry.info.units;
        self.mixed |= entry.info.unified == UnifiedRw::Mixed;
        self.both |= entry.info.unified == UnifiedRw::Both;
        for (sum, dir) in self.dirs.iter_mut().zip(&entry.stat.dirs) {
            if dir.runtime_ms == 0 {
                continue;
            }
            let own = GroupDir {
                io_bytes: dir.io_bytes,
                min_run_ms: dir.runtime_ms,
                max_run_ms: dir.runtime_ms,
                min_bw: dir.bw_bytes(),
                max_bw: dir.bw_bytes(),
                agg: dir.bw_bytes(),
            };
            let mut all = sum.map_or(own, |sum| sum.mix(own));
            all.agg = per_second(all.io_bytes, all.max_run_ms);
            *sum = Some(all);
        }
    }
}
