// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel has the control groups of an experiment.

use crate::settings::cgroup::FIRST;
use crate::settings::cgroup_files;
use crate::{Cgroup, Experiment, Workload};
use blklab_kernel::KernelVersion;
use blklab_types::shown;
use blklab_types::{Error, no_such};
use blklab_workload::Process;

impl Cgroup {
    /// Refuses a group, and files of it, that a kernel does not have.
    pub(super) fn check(&self, kernel: KernelVersion) -> Result<(), Error> {
        let name = &self.name;
        if !kernel.is_from(FIRST) {
            return Err(Error::new(format!(
                "cgroup {name}: kernel {kernel} has no control groups for I/O: they came with 2.6.33"
            ))
            .about(format!("cgroup.{name}")));
        }
        if self.is_root() && self.files().iter().any(|(file, _)| !is_of_root(file)) {
            let what = format!(
                "cgroup {name}: the root has no limits; it has io.cost.qos and io.cost.model"
            );
            return Err(Error::new(what).about(format!("cgroup.{name}")));
        }
        if let Some((file, _)) = self.files().iter().find(|(file, _)| is_of_root(file))
            && !self.is_root()
        {
            let what =
                format!("cgroup {name}: {file} is a file of the root group, which is called /");
            return Err(Error::new(what).about(format!("cgroup.{name}.{file}")));
        }
        for file in cgroup_files() {
            file.check_in(self, kernel).map_err(|what| {
                Error::new(format!("cgroup {name}: {what}"))
                    .about(format!("cgroup.{name}.{}", file.name()))
            })?;
        }
        Ok(())
    }
}

/// Whether the root group has a file, and it alone.
fn is_of_root(file: &str) -> bool {
    file.starts_with("io.cost.")
}

impl Cgroup {
    /// Refuses files that no model looks at.
    fn check_modelled(&self) -> Result<(), Error> {
        let Some((file, _)) = self.unmodelled.first() else {
            return Ok(());
        };
        let name = &self.name;
        Err(Error::not_modelled(format!(
            "cgroup {name}: {file} is not modelled; the target kernel has it, and modelled are io.max \
             and io.bfq.weight from 5.0 on, and blkio.weight under cfq before"
        ))
        .about(format!("cgroup.{name}.{file}")))
    }
}

impl Experiment {
    /// Refuses groups and files that the kernel does not have, and processes in
    /// groups that there are not.
    pub(crate) fn check_cgroups(&self) -> Result<(), Error> {
        for group in &self.cgroups {
            group.check(self.kernel)?;
            group.check_modelled()?;
        }
        let Workload::Processes(processes) = &self.workload else {
            return Ok(());
        };
        processes.iter().try_for_each(|p| self.check_process(p))
    }

    /// Refuses groups and files that the kernel does not have, where a real one has what
    /// no model looks at.
    ///
    /// # Errors
    /// The first of them.
    pub fn check_groups_of_kernel(&self) -> Result<(), Error> {
        self.cgroups
            .iter()
            .try_for_each(|group| group.check(self.kernel))
    }

    /// A process is in a group that there is, and that may have it.
    fn check_process(&self, p: &Process) -> Result<(), Error> {
        let Some(name) = &p.cgroup else {
            return Ok(());
        };
        let who = format!("process '{}'", shown(&p.name));
        let path = name.trim_matches('/');
        let checked = if self.cgroups.iter().any(|g| g.name == path) {
            self.check_member(&who, name)
        } else {
            let names: Vec<&str> = self.cgroups.iter().map(|g| g.name.as_str()).collect();
            let what = format!("{who}: {}", no_such("cgroup", name, &names));
            Err(Error::new(what))
        };
        checked.map_err(|err| err.about(format!("processes.\"{}\".cgroup", p.name)))
    }

    /// Groups of the unified hierarchy have processes or groups below them, not
    /// both ("no internal process").
    pub(super) fn check_member(&self, who: &str, name: &str) -> Result<(), Error> {
        if self.kernel.has_single_queue() {
            return Ok(());
        }
        let is_below = |g: &&Cgroup| g.parent() == Some(name.trim_matches('/'));
        match self.cgroups.iter().find(is_below) {
            None => Ok(()),
            Some(child) => Err(Error::new(format!(
                "{who}: cgroup {name} has {} below it; the kernel lets groups without children \
                 alone hold processes",
                child.name
            ))),
        }
    }
}
