// SPDX-License-Identifier: MIT OR Apache-2.0
//! `KEY=VALUE`: who takes the key, and what is said where nobody does.

use crate::settings::{self, Home, Setting};
use crate::{Absent, Catalogue, Experiment, SchedulerChoice, Workload};
use blklab_kernel::existence;
use blklab_types::{Error, ErrorKind, choices, nearest_name, no_such, shown};

impl Experiment {
    /// Applies one `KEY=VALUE`: a parameter of the scenario, or a row of the table of
    /// settings: those of the device, the filesystem and control groups are called
    /// `device.PARAMETER`, `filesystem.OPTION` and `cgroup.NAME.FILE`.
    ///
    /// # Errors
    /// If nothing has that name, or the value is not possible.
    pub fn set(&mut self, key: &str, value: &str, catalogue: &Catalogue) -> Result<(), Error> {
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.set_cgroup(rest, value);
        }
        if let Workload::Scenario(s) = &mut self.workload
            && s.has(key)
        {
            return s.set(key, value).map_err(|e| e.about(key));
        }
        match self.setting(key, catalogue)? {
            Some(row) => row.set(self, value, catalogue),
            None => Err(self.unknown_key(key, catalogue)),
        }
    }

    /// The row that `KEY=VALUE` means: of the queue, the machine or the experiment,
    /// a tunable of the scheduler, `device.PARAMETER`, `filesystem.OPTION`.
    ///
    /// # Errors
    /// If the kernel has no such scheduler, or there is no such parameter or option.
    fn setting(&self, key: &str, catalogue: &Catalogue) -> Result<Option<Setting>, Error> {
        if let Some(row) = settings::find(key) {
            return Ok(Some(row.clone()));
        }
        for (home, what, owner) in [
            (Home::Device, "parameter", &self.device.name),
            (Home::Filesystem, "option", &self.filesystem.name),
        ] {
            let prefix = home.table();
            let Some(name) = key.strip_prefix(prefix).and_then(|k| k.strip_prefix('.')) else {
                continue;
            };
            let mut rows = self.rows(home, catalogue);
            if home == Home::Device {
                rows.extend(Home::Driver.settings().cloned());
            }
            let valid: Vec<&str> = rows.iter().map(Setting::name).collect();
            let refused = no_such(&format!("{what} of {owner}"), name, &valid);
            let found = rows.into_iter().find(|row| row.is_called(name));
            let found = found.ok_or_else(|| Error::new(refused).about(key))?;
            return Ok(Some(found));
        }
        catalogue.scheduler(&self.scheduler, self.kernel)?;
        let tunables = self.rows(Home::Scheduler, catalogue).into_iter();
        let is_it = |row: &Setting| row.is_called(key) && row.row_in(self.kernel).is_some();
        Ok(tunables.into_iter().find(is_it))
    }

    /// Whether [`Experiment::set`] knows the key for this kernel and scheduler.
    pub fn can_set(&self, key: &str, catalogue: &Catalogue) -> bool {
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.can_set_cgroup(rest);
        }
        if self.has_parameter(key) {
            return true;
        }
        let row = self.setting(key, catalogue).ok().flatten();
        row.is_some_and(|row| row.row_in(self.kernel).is_some())
    }

    /// Why [`Experiment::set`] refuses a key that it knows: the kernel or the
    /// scheduler does not have it. A remark for those who run without it.
    pub fn runs_without(&self, key: &str) -> String {
        match settings::find(key) {
            Some(setting) => format!(
                "kernel {} ran without {key}, which exists {}",
                self.kernel,
                setting.exists()
            ),
            None => format!(
                "{} ran without {key}, which it does not have",
                self.scheduler
            ),
        }
    }

    /// The settings that the kernel does not have, and that would make a
    /// difference if it had.
    pub fn absent(&self) -> Vec<Absent> {
        let absent = settings::all().filter(|s| s.is_absent(self));
        let told = |s: &Setting| Absent {
            table: s.home.table(),
            name: s.name(),
            exists: s.exists(),
        };
        absent.map(told).collect()
    }

    /// Forgets the settings that the kernel does not have; a remark says so.
    pub fn drop_absent(&mut self) {
        for setting in settings::all() {
            if setting.is_absent(self) {
                self.remarks.push(self.runs_without(setting.name()));
                setting.clear(self);
            }
        }
    }

    fn has_parameter(&self, key: &str) -> bool {
        matches!(&self.workload, Workload::Scenario(s) if s.has(key))
    }

    /// Which schedulers have a tunable, and in which releases: its own in others, or those of
    /// the kernel, or those of other kernels.
    fn who_has(&self, key: &str, catalogue: &Catalogue) -> Option<String> {
        let mut owners = catalogue.schedulers();
        owners.retain(|s| s.tunables.iter().any(|t| t.name == key));
        if let Some(own) = owners.iter().find(|s| s.name == self.scheduler) {
            return Some(format!(
                "{} of kernel {} does not have it; it exists {}",
                own.name,
                self.kernel,
                existence(own.tunables, key).unwrap_or_default()
            ));
        }
        let is_there = |s: &&SchedulerChoice| catalogue.scheduler(s.name, self.kernel).is_ok();
        let there: Vec<&str> = owners.iter().filter(is_there).map(|s| s.name).collect();
        match (there.is_empty(), owners.first()) {
            (false, _) => {
                let has = if there.len() == 1 { "has" } else { "have" };
                let names = there.join(" and ");
                Some(format!("{names} {has} it, but {} runs", self.scheduler))
            }
            (true, Some(owner)) => Some(format!(
                "{} has it, which kernel {} does not have; it exists {}",
                owner.name,
                self.kernel,
                owner.tunable_exists_beside(key, self.kernel)
            )),
            (true, None) => None,
        }
    }

    fn unknown_key(&self, key: &str, catalogue: &Catalogue) -> Error {
        let tunables = self.rows(Home::Scheduler, catalogue);
        let in_kernel = |row: &&Setting| row.row_in(self.kernel).is_some();
        let own: Vec<&str> = tunables
            .iter()
            .filter(in_kernel)
            .map(Setting::name)
            .collect();
        let own = if own.is_empty() {
            "none".to_owned()
        } else {
            own.join(", ")
        };
        let own_names = tunables.iter().map(Setting::name);
        let all = own_names.chain(settings::all().map(Setting::name));
        let hint = match (nearest_name(key, all), self.who_has(key, catalogue)) {
            (_, Some(owners)) => owners + "; ",
            (Some(near), None) => format!("did you mean '{near}'? "),
            (None, None) => String::new(),
        };
        let parameters = match &self.workload {
            Workload::Scenario(s) => {
                let names: Vec<&str> = s.values().map(|(name, _)| name).collect();
                format!("of {}: {}; ", s.spec().name, names.join(", "))
            }
            _ => String::new(),
        };
        let others: Vec<&str> = settings::all()
            .filter(in_kernel)
            .map(Setting::name)
            .chain(["cgroup.NAME.FILE", "device.PARAMETER", "filesystem.OPTION"])
            .collect();
        Error::new(format!(
            "nothing to set is called '{}'; {hint}{parameters}of {}: {own}; of the queue and the \
             machine: {}",
            shown(key),
            self.scheduler,
            choices(key, &others)
        ))
        .of_kind(ErrorKind::UnknownName)
        .about(key)
    }
}
