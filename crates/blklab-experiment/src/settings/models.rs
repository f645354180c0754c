// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of what an experiment chooses by name: of schedulers, devices and
//! filesystems, made of the tables beside the models.

use super::{Home, Setting, all};
use crate::{Experiment, settings};
use blklab_device::{DeviceInfo, Kind as ParamKind};
use blklab_fs::{Kind, Values};
use blklab_sched::Scheduler;

/// The tunables of a scheduler.
pub fn scheduler_rows(scheduler: &Scheduler) -> Vec<Setting> {
    Setting::tunables(scheduler.name, scheduler.tunables)
}

/// The parameters of a device.
pub fn device_rows(device: &DeviceInfo) -> Vec<Setting> {
    let row = |p: &blklab_device::ParamInfo| {
        let default = device.default_of(p);
        let row = Setting::param(device.name, p.name, p.kind.to_string(), default, p.help);
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
        Values::Numbers(low, high) => {
            let range = (i64::from(low), i64::from(high));
            Setting::number(kind.name, o.key, range, o.default, o.help)
        }
    };
    kind.options.iter().map(row).collect()
}

impl Experiment {
    /// Everything that can be set of it: the table of settings.
    pub fn settings(&self) -> Vec<Setting> {
        let fixed = all().chain(settings::cgroup_files()).cloned();
        let homes = [Home::Scheduler, Home::Device, Home::Filesystem];
        let chosen = homes.into_iter().flat_map(|home| self.rows(home));
        fixed.chain(chosen).collect()
    }

    /// The rows of one home.
    pub(crate) fn rows(&self, home: Home) -> Vec<Setting> {
        match home {
            Home::Scheduler => {
                let found = self.schedulers.iter().find(|s| s.name == self.scheduler);
                found.map(scheduler_rows).unwrap_or_default()
            }
            Home::Device => {
                let found = blklab_device::find(&self.device.name);
                found.map(device_rows).unwrap_or_default()
            }
            Home::Filesystem => {
                let found = blklab_fs::find(&self.filesystem.name);
                found.map(filesystem_rows).unwrap_or_default()
            }
            Home::Cgroup => settings::cgroup_files().cloned().collect(),
            _ => home.settings().cloned().collect(),
        }
    }
}
