// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment chooses from: names, what can be set of them, and what
//! follows from a choice. An experiment names models; who has them says what they are.

use crate::settings::Setting;
use crate::{Catalogue, DeviceSpec, Experiment, QueueFacts};
use blklab_kernel::{Change, KernelVersion, Tunable, existence};
use blklab_types::{Error, no_such};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A scheduler that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerChoice {
    /// Name in sysfs.
    pub name: &'static str,
    /// First release that has it.
    pub since: KernelVersion,
    /// First release without it.
    pub until: KernelVersion,
    /// Tunables by their sysfs names.
    pub tunables: &'static [Tunable],
    /// Processor time of a request that it adds, in ns.
    pub cost_ns: u32,
}

impl SchedulerChoice {
    /// The releases that have it, from the side of a kernel that does not: `from 5.0`.
    fn exists_beside(&self, kernel: KernelVersion) -> String {
        if kernel.is_from(self.since) {
            format!("before {}", self.until)
        } else {
            format!("from {}", self.since)
        }
    }

    /// The same of a tunable of it.
    pub(crate) fn tunable_exists_beside(&self, tunable: &str, kernel: KernelVersion) -> String {
        let of_scheduler = self.exists_beside(kernel);
        match existence(self.tunables, tunable) {
            Some(releases) if !kernel.is_from(self.since) => releases,
            _ => of_scheduler,
        }
    }
}

/// Schedulers, devices and filesystems that there are models of.
pub trait Models: Send + Sync {
    /// The schedulers, in the order of lists.
    fn schedulers(&self) -> Vec<SchedulerChoice>;

    /// What can be set of a device; none if there is none of that name.
    fn device_rows(&self, name: &str) -> Option<Vec<Setting>>;

    /// The filesystems by name, in the order of lists.
    fn filesystems(&self) -> Vec<&'static str>;

    /// The options of a filesystem; none if there is none of that name.
    fn filesystem_rows(&self, name: &str) -> Option<Vec<Setting>>;

    /// What releases change in each model, with the model's name: the block layer, schedulers,
    /// the page cache, filesystems, drivers, the processor.
    fn changes(&self) -> Vec<(&'static str, &'static Change)>;

    /// Hardware queues of a device; 1 if it is impossible.
    fn hw_queues(&self, device: &DeviceSpec) -> u32;

    /// Whether a device seeks; not if it is impossible.
    fn seeks(&self, device: &DeviceSpec) -> bool;

    /// What the queue comes to.
    ///
    /// # Errors
    /// If there is no such device, or it cannot have its parameters.
    fn queue_facts(&self, e: &Experiment) -> Result<QueueFacts, Error>;

    /// Sectors of the disk; none if it has no end.
    ///
    /// # Errors
    /// If the device is impossible, or a file that describes it cannot be used.
    fn disk_sectors(&self, e: &Experiment) -> Result<Option<u64>, Error>;
}

impl Catalogue {
    /// A catalogue of models.
    pub fn new(models: impl Models + 'static) -> Catalogue {
        Catalogue(Arc::new(models))
    }

    /// A scheduler of a kernel release by name.
    ///
    /// # Errors
    /// If there is none of that name, or not in that release.
    pub fn scheduler(&self, name: &str, kernel: KernelVersion) -> Result<SchedulerChoice, Error> {
        let all = self.schedulers();
        let is_in = |s: &&SchedulerChoice| kernel.is_within(s.since, s.until);
        let named = all.iter().find(|s| s.name == name);
        if let Some(found) = named.filter(is_in) {
            return Ok(*found);
        }
        let valid: Vec<&str> = all.iter().filter(is_in).map(|s| s.name).collect();
        let what = match named {
            None => no_such("scheduler", name, &valid),
            Some(s) => format!(
                "kernel {kernel} has no scheduler '{name}'; valid: {} ({name}: {})",
                valid.join(", "),
                s.exists_beside(kernel)
            ),
        };
        Err(Error::new(what).about("scheduler"))
    }
}

impl Deref for Catalogue {
    type Target = dyn Models;

    fn deref(&self) -> &(dyn Models + 'static) {
        &*self.0
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedulers = self.schedulers();
        let names = schedulers.iter().map(|s| s.name);
        f.debug_list().entries(names).finish()
    }
}
