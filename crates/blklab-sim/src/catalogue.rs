// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the models offer to experiments: names and rows of settings, read off the
//! tables beside the models.

use crate::device::build_device;
use crate::limits;
use blklab_block::{mq, sq};
use blklab_device::{DeviceInfo, Kind as ParamKind};
use blklab_experiment::{
    Catalogue, DeviceSpec, Experiment, Models, QueueFacts, SchedulerChoice, Setting,
};
use blklab_fs::{Kind, Values};
use blklab_kernel::{Change, DEFAULT_SCHEDULER_CHANGES};
use blklab_sched::{Scheduler, Schedulers};
use blklab_types::Error;

/// All models of this repository.
pub fn catalogue() -> Catalogue {
    catalogue_with(Schedulers::default())
}

/// The same, with these schedulers.
pub fn catalogue_with(schedulers: Schedulers) -> Catalogue {
    Catalogue::new(SimModels(schedulers))
}

/// The tunables of a scheduler.
pub fn scheduler_rows(scheduler: &Scheduler) -> Vec<Setting> {
    Setting::tunables(scheduler.name, scheduler.tunables)
}

/// The parameters of a device.
pub fn device_rows(device: &DeviceInfo) -> Vec<Setting> {
    let row = |p: &blklab_device::ParamInfo| {
        let default = device.default_of(p);
        let row = Setting::param(device.name, p.name, p.unit, p.takes(), default, p.help);
        if matches!(p.kind, ParamKind::Path) {
            row.of_a_file()
        } else {
            row
        }
    };
    device.params.iter().map(row).collect()
}

/// The options of a filesystem.
pub fn filesystem_rows<O>(kind: &Kind<O>) -> Vec<Setting> {
    let row = |o: &blklab_fs::MountOption| match o.values {
        Values::Words(words) => Setting::choice(kind.name, o.key, words, o.default, o.help),
        Values::Numbers(low, high, unit) => {
            let range = (i64::from(low), i64::from(high));
            Setting::number(kind.name, o.key, unit, range, o.default, o.help)
        }
    };
    kind.options.iter().map(row).collect()
}

struct SimModels(Schedulers);

impl Models for SimModels {
    fn schedulers(&self) -> Vec<SchedulerChoice> {
        let choice = |s: &Scheduler| SchedulerChoice {
            name: s.name,
            since: s.since,
            until: s.until,
            tunables: s.tunables,
            cost_ns: s.processor_time.request_ns,
        };
        self.0.iter().map(choice).collect()
    }

    fn changes(&self) -> Vec<(&'static str, &'static Change)> {
        let queues = [
            ("block layer", sq::CHANGES),
            ("block layer", mq::CHANGES),
            ("block layer", DEFAULT_SCHEDULER_CHANGES),
        ];
        let tables = |s: &'static Scheduler| s.changes.iter().map(|c| (s.name, *c));
        let cache = ("page cache", blklab_pagecache::CHANGES);
        let of_filesystems = blklab_fs::ALL.iter().map(|f| (f.name, f.changes));
        let owners = queues.into_iter().chain(self.0.iter().flat_map(tables));
        let owners = owners.chain([cache]).chain(of_filesystems);
        let owners = owners.chain(crate::CHANGES);
        let rows = owners.flat_map(|(owner, rows)| rows.iter().map(move |row| (owner, row)));
        rows.collect()
    }

    fn device_rows(&self, name: &str) -> Option<Vec<Setting>> {
        blklab_device::find(name).ok().map(device_rows)
    }

    fn filesystems(&self) -> Vec<&'static str> {
        blklab_fs::ALL.iter().map(|kind| kind.name).collect()
    }

    fn filesystem_rows(&self, name: &str) -> Option<Vec<Setting>> {
        blklab_fs::find(name).map(filesystem_rows)
    }

    fn hw_queues(&self, device: &DeviceSpec) -> u32 {
        blklab_device::limits(&device.name, &device.params).map_or(1, |l| l.hw_queues)
    }

    fn seeks(&self, device: &DeviceSpec) -> bool {
        let limits = blklab_device::limits(&device.name, &device.params);
        limits.is_ok_and(|l| l.rotational.unwrap_or(true))
    }

    fn queue_facts(&self, e: &Experiment) -> Result<QueueFacts, Error> {
        limits::queue_facts(e)
    }

    fn disk_sectors(&self, e: &Experiment) -> Result<Option<u64>, Error> {
        Ok(build_device(e)?.capacity_sectors())
    }
}
