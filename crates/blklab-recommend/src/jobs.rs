// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is to know of jobs for whom something may be set.

use blklab::figure::{Calling as _, Calls, Figure};
use blklab::fio::Job;
use blklab::job_rows::JobRow;
use blklab::metric;

/// Those with a smaller part of all bytes and of all calls hold up nobody.
const SHARE_MIN: f64 = 0.02;

/// The jobs of a name.
#[derive(Clone, Debug)]
pub(crate) struct JobFacts {
    pub(crate) name: String,
    /// The control group that the job file puts it into.
    pub(crate) group: Option<String>,
    /// Whether its writes go through the page cache, and are written back by others.
    pub(crate) writes_through_cache: bool,
    /// Whether it reads files through the page cache, one piece after the other.
    pub(crate) reads_ahead: bool,
    /// I/Os that it keeps under way itself; 1 for engines that wait.
    pub(crate) depth: u32,
    /// Bytes per second that it reads and writes without a change.
    pub(crate) reads_per_s: f64,
    pub(crate) writes_per_s: f64,
    /// Whether it does so much that others may wait for it.
    pub(crate) is_busy: bool,
}

/// Engines that wait for each I/O.
const WAITING: [&str; 7] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice",
];

impl JobFacts {
    /// Of all jobs of a run, in the order of the job file.
    pub(crate) fn all(jobs: &[Job], rows: &[JobRow]) -> Vec<JobFacts> {
        let own = || rows.iter().filter(|row| row.level != "group");
        let all_bytes: f64 = own().map(bytes).sum();
        let all_ios: u64 = own().map(JobRow::ios).sum();
        let mut names: Vec<&Job> = Vec::new();
        for job in jobs {
            if !names.iter().any(|j| j.name == job.name) {
                names.push(job);
            }
        }
        let facts = names.into_iter().map(|job| {
            let rows_of = || own().filter(|row| row.job.as_deref() == Some(&job.name));
            let rate = |direction| {
                let figure = Figure::of_job("bandwidth", Calls::Only(direction), &job.name);
                figure.value(rows).unwrap_or(0.0)
            };
            let moved: f64 = rows_of().map(bytes).sum();
            let calls: u64 = rows_of().map(JobRow::ios).sum();
            let s = &job.settings;
            let is_cached = !s.direct && s.ioengine != "null";
            let (reads_per_s, writes_per_s) = (rate("read"), rate("write"));
            JobFacts {
                name: job.name.clone(),
                group: s.cgroup.clone(),
                writes_through_cache: is_cached && writes_per_s > 0.0,
                reads_ahead: is_cached && reads_per_s > 0.0 && !s.rw.random,
                depth: if WAITING.contains(&s.ioengine.as_str()) {
                    1
                } else {
                    s.iodepth.max(1)
                },
                reads_per_s,
                writes_per_s,
                is_busy: moved >= SHARE_MIN * all_bytes
                    || calls as f64 >= SHARE_MIN * all_ios as f64,
            }
        });
        facts.collect()
    }

    /// The group that it is in, or would be put into, and what puts it there.
    pub(crate) fn group_name(&self) -> String {
        self.group.clone().unwrap_or_else(|| {
            let plain = |c: char| {
                if c.is_ascii_alphanumeric() || "-_".contains(c) {
                    c
                } else {
                    '-'
                }
            };
            self.name.chars().map(plain).collect()
        })
    }
}

/// Bytes that a row moved.
pub(crate) fn bytes(row: &JobRow) -> f64 {
    let bytes = metric::named("bytes").and_then(|m| row.value(m));
    bytes.unwrap_or(0.0)
}
