// SPDX-License-Identifier: MIT OR Apache-2.0
//! `KEY=VALUE`: who takes the key, and what is said where nobody does.

use crate::settings::{self, Setting};
use crate::{Experiment, ExperimentError, Workload};
use blklab_kernel::{Tunable, existence};
use blklab_types::{choices, nearest_name, shown};

/// A setting that the kernel does not have, as [`Experiment::absent`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Where experiment files have it: `queue`, `device` or `vm`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The releases that have it, in words.
    pub exists: String,
}

impl Experiment {
    /// Applies one `KEY=VALUE`: a parameter of the scenario, a row of the table of
    /// settings, a file of a control group, or a tunable of the scheduler.
    ///
    /// # Errors
    /// If nothing has that name, or the value is not possible.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ExperimentError> {
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.set_cgroup(rest, value);
        }
        if let Workload::Scenario(s) = &mut self.workload
            && s.has(key)
        {
            return s
                .set(key, value)
                .map_err(|what| ExperimentError::new(what).about(key));
        }
        if let Some(setting) = settings::find(key) {
            return setting.set(self, value);
        }
        let (scheduler, tunables) = self.scheduler()?;
        if !tunables.names().any(|name| name == key) {
            return Err(self.unknown_key(key, scheduler.tunables));
        }
        let number = value.parse().map_err(|_| {
            let value = shown(value);
            ExperimentError::new(format!("{key}={value}: the value is not a whole number"))
                .about(key)
        })?;
        self.tunables.retain(|(k, _)| k != key);
        self.tunables.push((key.to_owned(), number));
        Ok(())
    }

    /// Whether [`Experiment::set`] knows the key for this kernel and scheduler.
    pub fn can_set(&self, key: &str) -> bool {
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.can_set_cgroup(rest);
        }
        if self.has_parameter(key) {
            return true;
        }
        match settings::find(key) {
            Some(setting) => setting.row_in(self.kernel).is_some(),
            None => self
                .scheduler()
                .is_ok_and(|(_, t)| t.names().any(|name| name == key)),
        }
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

    fn unknown_key(&self, key: &str, sched: &[Tunable]) -> ExperimentError {
        let of = |table: &[Tunable]| {
            let there = table.iter().filter(|t| t.is_in(self.kernel));
            there.map(|t| t.name).collect::<Vec<_>>().join(", ")
        };
        let own = match of(sched) {
            names if names.is_empty() => "none".to_owned(),
            names => names,
        };
        let own_names = sched.iter().map(|t| t.name);
        let all = own_names.chain(settings::all().map(Setting::name));
        let owner = self
            .schedulers
            .iter()
            .find(|s| s.tunables.iter().any(|t| t.name == key));
        let hint = match (nearest_name(key, all), owner) {
            (_, Some(owner)) if owner.name == self.scheduler => {
                format!(
                    "{} of kernel {} does not have it; it exists {}; ",
                    owner.name,
                    self.kernel,
                    existence(owner.tunables, key).unwrap_or_default()
                )
            }
            (_, Some(owner)) => format!("{} has it, but {} runs; ", owner.name, self.scheduler),
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
        let there = settings::all().filter(|s| s.row_in(self.kernel).is_some());
        let others: Vec<&str> = there
            .map(Setting::name)
            .chain(["cgroup.NAME.FILE"])
            .collect();
        ExperimentError::new(format!(
            "nothing to set is called '{}'; {hint}{parameters}of {}: {own}; of the queue and the \
             machine: {}; blklab list tunables shows them",
            shown(key),
            self.scheduler,
            choices(key, &others)
        ))
        .about(key)
    }
}
