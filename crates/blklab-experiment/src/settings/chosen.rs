// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of what an experiment chooses by name, as a catalogue has them.

use super::{Home, Setting, all, cgroup_files};
use crate::{Catalogue, Experiment};

impl Experiment {
    /// Everything that can be set of it: the table of settings.
    pub fn settings(&self, catalogue: &Catalogue) -> Vec<Setting> {
        let fixed = all().chain(cgroup_files()).cloned();
        let homes = [Home::Scheduler, Home::Device, Home::Filesystem];
        let chosen = homes
            .into_iter()
            .flat_map(|home| self.rows(home, catalogue));
        fixed.chain(chosen).collect()
    }

    /// The rows of one home.
    pub(crate) fn rows(&self, home: Home, catalogue: &Catalogue) -> Vec<Setting> {
        let rows = match home {
            Home::Scheduler => {
                let all = catalogue.schedulers();
                let found = all.into_iter().find(|s| s.name == self.scheduler);
                found.map(|s| Setting::tunables(s.name, s.tunables))
            }
            Home::Device => catalogue.device_rows(&self.device.name),
            Home::Filesystem => catalogue.mount_rows(&self.filesystem.name),
            Home::Cgroup => Some(cgroup_files().cloned().collect()),
            _ => Some(home.settings().cloned().collect()),
        };
        rows.unwrap_or_default()
    }
}
