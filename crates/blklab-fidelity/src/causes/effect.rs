// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes felt of a run: how long their I/O took, as they saw it where they are
//! fio jobs, else from Q to C; what the device got of them; when they were done.

use blklab::analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab::targets::JobResult;
use blklab_trace::{Event, TraceSink as _};
use blklab_types::{Pid, SECTOR_BYTES};
use std::collections::BTreeMap;

/// What some processes felt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Felt {
    /// I/Os that ended, and syncs.
    pub(super) ios: u64,
    /// What they took together, ns.
    pub(super) total_ns: f64,
    /// The longest, ns.
    pub(super) worst_ns: u64,
    /// What they moved.
    pub(super) bytes: u64,
    /// Commands that the device got.
    pub(super) commands: u64,
    /// Their sectors.
    pub(super) sectors: u64,
    /// When the last ended, ns.
    pub(super) end_ns: u64,
}

impl Felt {
    /// What an I/O took on average, ns.
    pub(super) fn mean_ns(&self) -> f64 {
        self.total_ns / self.ios.max(1) as f64
    }

    fn add(&mut self, other: &Felt) {
        self.ios += other.ios;
        self.total_ns += other.total_ns;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
        self.bytes += other.bytes;
        self.commands += other.commands;
        self.sectors += other.sectors;
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}

/// By name of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects(BTreeMap<String, Felt>);

impl Effects {
    /// What the events of a run and the results of its jobs say. What jobs measured counts
    /// where there are any: it has what passes in the page cache and before Q.
    pub(super) fn new(
        events: &[Event],
        names: &BTreeMap<Pid, String>,
        jobs: &[JobResult],
    ) -> Effects {
        let mut lives = Lifecycles::new(ByPid::default());
        for event in events {
            lives.event(event);
        }
        let (by_pid, _) = lives.finish();
        let mut all: BTreeMap<String, Felt> = BTreeMap::new();
        for (pid, felt) in &by_pid.0 {
            let name = names.get(pid).cloned().unwrap_or_default();
            all.entry(name).or_default().add(felt);
        }
        let mut measured: BTreeMap<String, Felt> = BTreeMap::new();
        for job in jobs {
            measured
                .entry(job.job.name.clone())
                .or_default()
                .add(&of_job(job));
        }
        for (name, felt) in measured {
            let of_events = all.entry(name).or_default();
            *of_events = Felt {
                commands: of_events.commands,
                sectors: of_events.sectors,
                end_ns: of_events.end_ns,
                ..felt
            };
        }
        Effects(all)
    }

    /// What those with one of these names felt together; all, if none is named.
    pub(super) fn on(&self, names: &[&str]) -> Felt {
        let mut sum = Felt::default();
        for (name, felt) in &self.0 {
            if names.is_empty() || names.contains(&name.as_str()) {
                sum.add(felt);
            }
        }
        sum
    }
}

fn of_job(job: &JobResult) -> Felt {
    let mut felt = Felt::default();
    for dir in &job.stat.dirs {
        felt.ios += dir.lat.stat.samples;
        felt.total_ns += dir.lat.stat.mean * dir.lat.stat.samples as f64;
        felt.worst_ns = felt.worst_ns.max(dir.lat.stat.max);
        felt.bytes += dir.io_bytes;
    }
    let sync = &job.stat.sync.stat;
    felt.ios += sync.samples;
    felt.total_ns += sync.mean * sync.samples as f64;
    felt.worst_ns = felt.worst_ns.max(sync.max);
    felt
}

#[derive(Debug, Default)]
struct ByPid(BTreeMap<Pid, Felt>);

impl LifeSink for ByPid {
    fn bio(&mut self, bio: &BioLife) {
        let Some(end) = bio.complete else { return };
        let took = end.since(bio.queue).0;
        let felt = self.0.entry(bio.pid).or_default();
        felt.ios += 1;
        felt.total_ns += took as f64;
        felt.worst_ns = felt.worst_ns.max(took);
        felt.bytes += u64::from(bio.bytes);
        felt.end_ns = felt.end_ns.max(end.0);
    }

    fn request(&mut self, request: &RequestLife) {
        if request.issue.is_some() && request.bytes > 0 {
            let felt = self.0.entry(request.pid).or_default();
            felt.commands += 1;
            felt.sectors += request.bytes / SECTOR_BYTES;
        }
    }
}
