// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel has the control groups of an experiment.

use super::Cgroup;
use super::file::{FILES, LEAF_WEIGHTS, MULTI_QUEUE};
use crate::{Experiment, ExperimentError, Workload, no_such};
use blklab_kernel::KernelVersion;
use blklab_types::shown;

/// The first release with control groups for I/O.
const FIRST: KernelVersion = KernelVersion::v2_6(33);

/// The first release with weights below 100.
const SMALL_WEIGHTS: KernelVersion = KernelVersion::new(3, 0);

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
            check_files(g, self.kernel).map_err(|(file, what)| {
                ExperimentError::new(format!("cgroup {}: {what}", g.name))
                    .about(format!("cgroup.{}.{file}", g.name))
            })?;
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
        if self.kernel < MULTI_QUEUE {
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

/// Refuses what was written to files that a release does not have, or does not
/// take: the file, and why.
fn check_files(g: &Cgroup, v: KernelVersion) -> Result<(), (&'static str, String)> {
    let is_missing = |name: &str| FILES.iter().any(|(n, file)| *n == name && !file.is_in(v));
    let mut written = g.files().into_iter().map(|(name, _)| name);
    if let Some(file) = written.find(|name| is_missing(name)) {
        let what = match file {
            "io.max" => format!(
                "io.max is modelled from 5.0 on; the limits of kernel {v}, blkio.throttle, are \
                 not modelled"
            ),
            "io.bfq.weight" => {
                format!("{file} is BFQ's, from 5.0 on; weights of kernel {v} are blkio.weight")
            }
            "blkio.leaf_weight" if v < LEAF_WEIGHTS => {
                format!("{file} came with 3.9, the kernel is {v}")
            }
            _ => format!("{file} is CFQ's, to 4.20; weights of kernel {v} are io.bfq.weight"),
        };
        return Err((file, what));
    }
    match g.blkio_weight {
        Some(n) if n < 100 && v < SMALL_WEIGHTS => Err((
            "blkio.weight",
            format!("blkio.weight = {n}: expected a number from 100 to 1000 in kernel {v}"),
        )),
        _ => Ok(()),
    }
}
