// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel has the control groups of an experiment.

use crate::settings::cgroup::FIRST;
use crate::settings::cgroup_files;
use crate::{Cgroup, Experiment, ExperimentError, Workload, no_such};
use blklab_types::shown;

impl Experiment {
    /// Refuses groups and files that the kernel does not have, and processes in
    /// groups that there are not.
    pub(crate) fn check_cgroups(&self) -> Result<(), ExperimentError> {
        if let Some(g) = self.cgroups.first()
            && self.kernel < FIRST
        {
            return Err(ExperimentError::new(format!(
                "cgroup {}: kernel {} has no control groups for I/O: they came with 2.6.33",
                g.name, self.kernel
            ))
            .about(format!("cgroup.{}", g.name)));
        }
        for g in &self.cgroups {
            for file in cgroup_files() {
                file.check_in(g, self.kernel).map_err(|what| {
                    ExperimentError::new(format!("cgroup {}: {what}", g.name)).about(format!(
                        "cgroup.{}.{}",
                        g.name,
                        file.name()
                    ))
                })?;
            }
        }
        self.check_processes()
    }

    fn check_processes(&self) -> Result<(), ExperimentError> {
        let Workload::Processes(processes) = &self.workload else {
            return Ok(());
        };
        let names: Vec<&str> = self.cgroups.iter().map(|g| g.name.as_str()).collect();
        let grouped = || {
            processes
                .iter()
                .filter_map(|p| Some((p, p.cgroup.as_deref()?)))
        };
        let lost = |(_, name): &(_, &str)| !names.contains(&name.trim_matches('/'));
        if let Some((p, name)) = grouped().find(lost) {
            let what = format!(
                "process '{}': {}",
                shown(&p.name),
                no_such("cgroup", name, &names)
            );
            return Err(ExperimentError::new(what).about(format!("processes.\"{name}\"")));
        }
        self.check_members(grouped().map(|(p, name)| (format!("process '{}'", p.name), name)))
    }

    /// Groups of the unified hierarchy have processes or groups below them, not
    /// both ("no internal process").
    pub(super) fn check_members<'a>(
        &self,
        mut members: impl Iterator<Item = (String, &'a str)>,
    ) -> Result<(), ExperimentError> {
        if self.kernel.has_single_queue() {
            return Ok(());
        }
        let below = |name: &str| {
            let is_below = |g: &&Cgroup| g.parent() == Some(name.trim_matches('/'));
            self.cgroups.iter().find(is_below)
        };
        let wrong = members.find_map(|(who, name)| Some((who, name, below(name)?)));
        let Some((who, name, child)) = wrong else {
            return Ok(());
        };
        Err(ExperimentError::new(format!(
            "{who}: cgroup {name} has {} below it; the kernel lets groups without children alone \
             hold processes",
            child.name
        )))
    }
}
