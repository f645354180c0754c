// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel has the control groups of an experiment.

use crate::settings::cgroup::{FIRST, PROMOTES};
use crate::settings::cgroup_files;
use crate::{Cgroup, Experiment, Workload};
use blklab_kernel::KernelVersion;
use blklab_types::{Error, PrioPolicy, no_such, shown};
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
        if self.prio == Some(PrioPolicy::PromoteToRt) && !kernel.is_from(PROMOTES) {
            let what = format!(
                "cgroup {name}: io.prio.class = promote-to-rt: kernel {kernel} does not have it; it \
                 exists from {PROMOTES} on"
            );
            return Err(Error::new(what).about(format!("cgroup.{name}.io.prio.class")));
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
    /// Refuses groups of both versions: a controller is in one of the two hierarchies.
    ///
    /// # Errors
    /// If some have files of the first version, and others of the second.
    pub fn check_versions(groups: &[Cgroup]) -> Result<(), Error> {
        if !groups.iter().any(Cgroup::is_of_v1) {
            return Ok(());
        }
        for group in groups {
            let mut files = group.files().into_iter().map(|(file, _)| file);
            let Some(file) = files.find(|file| !Cgroup::is_file_of_v1(file)) else {
                continue;
            };
            let name = &group.name;
            return Err(Error::new(format!(
                "cgroup {name}: {file} is of the unified hierarchy, and blkio files of other groups \
                 are not: a controller is in one of the two"
            ))
            .about(format!("cgroup.{name}.{file}")));
        }
        Ok(())
    }
}

impl Cgroup {
    /// Refuses files that no model looks at.
    fn check_modelled(&self, kernel: KernelVersion) -> Result<(), Error> {
        let from_5_0 = |file: &&str| matches!(*file, "blkio.bfq.weight" | "io.latency");
        let mut files = self.files().into_iter().map(|(file, _)| file);
        let unmodelled = self.unmodelled.first().map(|(file, _)| *file);
        let early = || files.find(|file| kernel.has_single_queue() && from_5_0(file));
        let Some(file) = unmodelled.or_else(early) else {
            return Ok(());
        };
        let name = &self.name;
        let when = if unmodelled.is_some() {
            ""
        } else {
            " before 5.0"
        };
        Err(Error::not_modelled(format!(
            "cgroup {name}: {file} is not modelled{when}; the target kernel has it, and modelled are \
             the other files of io and blkio from 5.0 on, blkio.throttle from 2.6.37 on, and blkio.weight \
             under cfq before"
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
            group.check_modelled(self.kernel)?;
            self.check_weight(group)?;
        }
        Cgroup::check_versions(&self.cgroups)?;
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

    /// BFQ takes smaller weights than io.cost.
    fn check_weight(&self, group: &Cgroup) -> Result<(), Error> {
        let weight = group.weight_of_bfq().unwrap_or_default();
        if self.scheduler != "bfq" || weight <= 1000 {
            return Ok(());
        }
        let name = &group.name;
        Err(Error::new(format!(
            "cgroup {name}: io.weight = {weight}: bfq takes weights from 1 to 1000; give it one of its \
             own, io.bfq.weight"
        ))
        .about(format!("cgroup.{name}.io.weight")))
    }

    /// Whether the groups are in the first version of control groups.
    pub fn has_groups_of_v1(&self) -> bool {
        self.kernel.has_single_queue() || self.cgroups.iter().any(Cgroup::is_of_v1)
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
        if self.has_groups_of_v1() {
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
