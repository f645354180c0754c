// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted by life, of devices and processes.

use crate::distribution::Distribution;
use crate::index::Index;
use crate::lifecycle::{BioLife, DEVICES_MAX, LifeSink, RequestLife};
use crate::stats::{
    Activity, DeviceStats, Directions, Overflows, PROCESSES_MAX, Phases, ProcessStats,
};
use crate::tally::{Pairs, ProcessPlace, Tally};
use crate::timeline::Timeline;
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// Names kept of processes that have queued nothing yet.
const NAMES_MAX: usize = 1 << 16;

/// Bytes of a name that are kept; the kernel's have 15.
const NAME_BYTES_MAX: usize = 64;

/// What is counted by life.
#[derive(Debug)]
pub(crate) struct Lives {
    /// In the order of the first life.
    devices: Vec<DeviceLives>,
    /// The one that was asked for last.
    device: usize,
    device_places: Index<Dev>,
    processes: Vec<ProcessLives>,
    process_places: Index<Pid>,
    /// Those beyond the limit.
    others: Option<Box<ProcessLives>>,
    pairs: Pairs,
    /// Names of processes that have no place yet.
    names: BTreeMap<Pid, Box<str>>,
    pub(crate) overflows: Overflows,
}

impl Default for Lives {
    fn default() -> Lives {
        Lives {
            devices: Vec::new(),
            device: 0,
            device_places: Index::new(DEVICES_MAX),
            processes: Vec::new(),
            process_places: Index::new(PROCESSES_MAX),
            others: None,
            pairs: Pairs::default(),
            names: BTreeMap::new(),
            overflows: Overflows::default(),
        }
    }
}

#[derive(Debug)]
struct DeviceLives {
    dev: Dev,
    stats: DeviceStats,
    /// Its bios; until the end only those of no pair.
    tally: Tally,
    depth: Timeline,
    device_depth: Timeline,
    nr_issued: u32,
    active_since: Time,
    active_until: Option<Time>,
}

#[derive(Debug, Default)]
pub(crate) struct ProcessLives {
    pid: Pid,
    comm: Option<Box<str>>,
    pub(crate) queued: Directions,
    pub(crate) q2q: Distribution,
    pub(crate) last_queue: Option<Time>,
    /// Its bios; until the end only those of no pair.
    tally: Option<Box<Tally>>,
}

impl ProcessLives {
    fn stats(self) -> ProcessStats {
        let tally = self.tally.map(|tally| *tally).unwrap_or_default();
        ProcessStats {
            pid: self.pid,
            comm: self.comm.map(String::from),
            phases: Phases {
                q2q: self.q2q,
                ..tally.phases
            },
            queued: self.queued,
            completed: tally.completed,
            nr_merges: tally.nr_back_merges + tally.nr_front_merges,
        }
    }
}

impl Lives {
    #[inline(always)]
    fn device(&mut self, dev: Dev) -> &mut DeviceLives {
        if self.devices.get(self.device).is_none_or(|d| d.dev != dev) {
            self.device = self.find_device(dev);
        }
        &mut self.devices[self.device]
    }

    fn find_device(&mut self, dev: Dev) -> usize {
        let place = self.device_places.place(dev);
        let place = place.expect("no more devices are followed than have places");
        if place == self.devices.len() {
            self.devices.push(DeviceLives {
                dev,
                stats: DeviceStats {
                    dev,
                    ..DeviceStats::default()
                },
                tally: Tally::default(),
                depth: Timeline::default(),
                device_depth: Timeline::default(),
                nr_issued: 0,
                active_since: Time::ZERO,
                active_until: None,
            });
        }
        place
    }

    /// The place of a process, if it has one of its own.
    #[inline]
    pub(crate) fn place(&mut self, pid: Pid) -> ProcessPlace {
        let place = self.process_places.place(pid)?;
        if place == self.processes.len() {
            self.processes.push(ProcessLives {
                pid,
                comm: self.names.remove(&pid),
                ..ProcessLives::default()
            });
        }
        Some(place)
    }

    /// The process at a place, or all the others.
    #[inline]
    pub(crate) fn process(&mut self, place: ProcessPlace) -> &mut ProcessLives {
        match place {
            Some(place) => &mut self.processes[place],
            None => self.others.get_or_insert_default(),
        }
    }

    /// Adds what pairs have to their devices and processes.
    pub(crate) fn sum_up(&mut self) {
        for (dev, process, tally) in std::mem::take(&mut self.pairs).into_all() {
            self.device(dev).tally.merge(&tally);
            let own = &mut self.process(process).tally;
            match own {
                Some(own) => own.merge(&tally),
                None => *own = Some(Box::new(tally)),
            }
        }
    }

    /// The processes that queued something, by id, and all others as one.
    pub(crate) fn into_processes(self) -> (Vec<ProcessStats>, Option<Box<ProcessStats>>) {
        let queued = |p: &ProcessLives| p.queued.total().count > 0;
        let processes = self.processes.into_iter().filter(queued);
        let mut processes: Vec<ProcessStats> = processes.map(ProcessLives::stats).collect();
        processes.sort_by_key(|p| p.pid);
        (processes, self.others.map(|p| Box::new(p.stats())))
    }

    /// The statistics of a device that come from lives: depths, activity,
    /// phases.
    pub(crate) fn take_device(&mut self, dev: Dev, start: Time) -> DeviceStats {
        let device = self.device(dev);
        let stats = std::mem::take(&mut device.stats);
        let activity = Activity {
            until_ns: device
                .active_until
                .map_or(0, |until| until.since(start).ns()),
            ..stats.activity
        };
        let tally = std::mem::take(&mut device.tally);
        DeviceStats {
            phases: tally.phases,
            completed: tally.completed,
            nr_errors: tally.nr_errors,
            nr_back_merges: tally.nr_back_merges,
            nr_front_merges: tally.nr_front_merges,
            activity,
            depth: device.depth.profile(),
            device_depth: device.device_depth.profile(),
            ..stats
        }
    }

    /// What lies between two recordings is no time between two events.
    pub(crate) fn new_recording(&mut self) {
        for process in self.processes.iter_mut().chain(self.others.as_deref_mut()) {
            process.last_queue = None;
        }
    }

    pub(crate) fn name(&mut self, pid: Pid, comm: &str) {
        let mut end = comm.len().min(NAME_BYTES_MAX);
        while !comm.is_char_boundary(end) {
            end -= 1;
        }
        let comm = &comm[..end];
        if let Some(place) = self.process_places.known(pid) {
            self.processes[place].comm = Some(comm.into());
        } else if self.names.len() < NAMES_MAX || self.names.contains_key(&pid) {
            self.names.insert(pid, comm.into());
        }
    }
}

impl LifeSink for Lives {
    fn bio(&mut self, bio: &BioLife) {
        let process = self.place(bio.pid);
        if let Some(tally) = self.pairs.tally(bio.dev, process) {
            return tally.bio(bio);
        }
        self.device(bio.dev).tally.bio(bio);
        let own = &mut self.process(process).tally;
        own.get_or_insert_default().bio(bio);
    }

    fn request(&mut self, request: &RequestLife) {
        let device = &mut self.device(request.dev).stats;
        device.nr_request_merges += u64::from(request.nr_absorbed);
        device.nr_silent_merges += u64::from(request.nr_silent_merges);
        if let (Some(issue), Some(complete)) = (request.issue, request.complete) {
            let ns = complete.since(issue).ns();
            device.service.add(ns);
            device.service_of.add(request.rwbs, request.bytes, ns);
        }
    }

    #[inline]
    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let mut overflows = self.overflows;
        let device = self.device(dev);
        device.depth.set(time, nr_bios);
        device.device_depth.set(time, nr_issued);
        let before = std::mem::replace(&mut device.nr_issued, nr_issued);
        let activity = &mut device.stats.activity;
        if before == 0 && nr_issued > 0 {
            device.active_since = time;
            // A period that begins when the last one ended goes on.
            activity.nr_periods += u64::from(device.active_until != Some(time));
        } else if before > 0 && nr_issued == 0 {
            let active_ns = time.since(device.active_since).ns();
            overflows.add(&mut activity.active_ns, active_ns);
            device.active_until = Some(time);
            self.overflows = overflows;
        }
    }

    #[inline]
    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, overtaken: bool) {
        let scheduler = &mut self.device(dev).stats.scheduler;
        scheduler.max_waiting = scheduler.max_waiting.max(nr_waiting);
        scheduler.nr_overtaken += u64::from(overtaken);
    }
}
