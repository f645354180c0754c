// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choices: kernel, scheduler, device, and what follows from them.

use crate::settings::Home;
use crate::{
    Catalogue, DeviceSpec, DmSpec, Experiment, Facts, FilesystemSpec, QueueFacts, QueueSettings,
    SchedulerChoice, Variant, Vm, Workload,
};
use blklab_fio::release::Release;
use blklab_kernel::{KernelVersion, Patches, Tunables, default_scheduler};
use blklab_types::{Error, no_such};
use blklab_workload::scenario::{self, Scenario};
use std::path::Path;

/// The newest release whose behaviour was measured.
pub(crate) const DEFAULT_KERNEL: KernelVersion = KernelVersion::new(7, 3);

/// The kernel of measured cases (files with `seconds` or `trace`) that name
/// none: Linux 6.1 of Debian 12.
pub(crate) const MEASURED_KERNEL: KernelVersion = KernelVersion::new(6, 1);

impl Experiment {
    /// An experiment with defaults for everything but the workload: the newest
    /// measured kernel with its default scheduler, a 7200 rpm SATA disk.
    pub fn new(id: &str, workload: Workload) -> Experiment {
        Experiment {
            file: String::new(),
            id: id.to_owned(),
            title: String::new(),
            target: String::new(),
            kernel: DEFAULT_KERNEL,
            kernel_source: String::new(),
            hz: DEFAULT_KERNEL.hz(),
            hz_chosen: false,
            scheduler: default_scheduler(DEFAULT_KERNEL, 1).to_owned(),
            scheduler_chosen: false,
            tunables: Vec::new(),
            patches: Vec::new(),
            queue: QueueSettings::default(),
            device: DeviceSpec {
                name: "sata-7200-2008".to_owned(),
                params: Vec::new(),
            },
            md: None,
            dm: DmSpec::default(),
            filesystem: FilesystemSpec::default(),
            vm: Vm::default(),
            fio: Release::default(),
            seed: 0,
            vary_offsets: false,
            without: Vec::new(),
            workload,
            sections: Vec::new(),
            cgroups: Vec::new(),
            published: Vec::new(),
            variants: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// A built-in scenario on the kernel that it ran on.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn of_scenario(name: &str, catalogue: &Catalogue) -> Result<Experiment, Error> {
        let Some(scenario) = Scenario::named(name) else {
            let names: Vec<&str> = scenario::ALL.iter().map(|s| s.name).collect();
            return Err(Error::new(no_such("scenario", name, &names)).about("scenario.name"));
        };
        let spec = scenario.spec();
        let mut e = Experiment::new(name, Workload::Scenario(scenario));
        spec.summary.clone_into(&mut e.title);
        e.choose_kernel(spec.kernel.parse()?, catalogue);
        e.set("fio", spec.fio, catalogue)?;
        Ok(e)
    }

    /// The experiment in one of its configurations.
    ///
    /// # Errors
    /// If a setting of it is not possible.
    pub fn with_variant(&self, v: &Variant, catalogue: &Catalogue) -> Result<Experiment, Error> {
        let mut e = self.clone();
        e.variants.clear();
        if let Some(kernel) = v.kernel {
            e.choose_kernel(kernel, catalogue);
        }
        if let Some(scheduler) = &v.scheduler {
            e.choose_scheduler(scheduler, catalogue)?;
        }
        e.patches.extend(v.patches.iter().cloned());
        for (key, value) in &v.settings {
            e.set(key, value, catalogue)?;
        }
        Ok(e)
    }

    /// Another kernel, and its default scheduler and ticks unless they were chosen.
    pub fn choose_kernel(&mut self, v: KernelVersion, catalogue: &Catalogue) {
        self.kernel = v;
        self.keep_leaving_out(catalogue);
        if !self.hz_chosen {
            self.hz = v.hz();
        }
        self.default_scheduler(catalogue);
    }

    /// The kernel of a tree: its release, too.
    ///
    /// # Errors
    /// If it is no kernel's tree.
    pub fn choose_kernel_source(&mut self, tree: &str, catalogue: &Catalogue) -> Result<(), Error> {
        if !tree.is_empty() {
            self.choose_kernel(crate::tree::release(Path::new(tree))?, catalogue);
        }
        tree.clone_into(&mut self.kernel_source);
        Ok(())
    }

    /// Another device; on some the kernel uses another default scheduler.
    ///
    /// What is not a parameter of the device but a setting of its driver
    /// ([`Home::Driver`]) stays as it is where it is not given.
    ///
    /// # Errors
    /// If one of those has a value that it does not take.
    pub fn choose_device(
        &mut self,
        device: DeviceSpec,
        catalogue: &Catalogue,
    ) -> Result<(), Error> {
        let mut params = device.params;
        for setting in Home::Driver.settings() {
            let is_it = |(key, _): &(String, String)| key == setting.name();
            if let Some((_, value)) = params.iter().find(|p| is_it(p)) {
                setting.set_in_file(self, value, catalogue)?;
                params.retain(|p| !is_it(p));
            }
        }
        self.device = DeviceSpec {
            name: device.name,
            params,
        };
        self.default_scheduler(catalogue);
        Ok(())
    }

    pub(crate) fn default_scheduler(&mut self, catalogue: &Catalogue) {
        if !self.scheduler_chosen {
            let name = self.scheduler_by_default(catalogue);
            name.clone_into(&mut self.scheduler);
        }
    }

    /// The scheduler that the disk gets unless one is chosen: that of the distribution, where
    /// it has a say, else the kernel's.
    fn scheduler_by_default(&self, catalogue: &Catalogue) -> &'static str {
        let of_distribution = self.kernel.distribution().map(|d| d.schedulers.value);
        let by_rule = of_distribution.and_then(|rules| rules.seeks);
        match by_rule.filter(|_| catalogue.seeks(&self.device)) {
            Some(name) => name,
            None => default_scheduler(self.kernel, catalogue.hw_queues(&self.device)),
        }
    }

    /// What the distribution of its kernel sets, and what it would have.
    pub(crate) fn distribution_notes(&self, catalogue: &Catalogue) -> Vec<String> {
        let Some(d) = self.kernel.distribution() else {
            return Vec::new();
        };
        let name = d.name;
        let own = [
            ("hz", d.hz.value.to_string(), self.hz.0.to_string()),
            (
                "scheduler",
                self.scheduler_by_default(catalogue).to_owned(),
                self.scheduler.clone(),
            ),
        ];
        let (kept, others): (Vec<_>, Vec<_>) = own.iter().partition(|(_, its, here)| its == here);
        let mut notes = Vec::new();
        if !kept.is_empty() {
            let kept: Vec<String> = kept
                .iter()
                .map(|(k, its, _)| format!("{k}={its}"))
                .collect();
            notes.push(format!("{name} sets {}", kept.join(", ")));
        }
        notes.extend(
            others.iter().map(|(key, its, here)| {
                format!("{name} has {key}={its}: the experiment says {here}")
            }),
        );
        if self.filesystem.name == "extents" && matches!(self.workload, Workload::Fio { .. }) {
            notes.push(format!(
                "{name}'s installer makes {fs}; here the files lie on blklab's extents unless \
                 filesystem={fs} is set",
                fs = d.filesystem.value
            ));
        }
        notes
    }

    /// Another scheduler; what was set for the old one and is unknown to the
    /// new one goes.
    ///
    /// # Errors
    /// If the kernel does not have it.
    pub fn choose_scheduler(&mut self, name: &str, catalogue: &Catalogue) -> Result<(), Error> {
        let scheduler = catalogue.scheduler(name, self.kernel)?;
        name.clone_into(&mut self.scheduler);
        self.scheduler_chosen = true;
        let known = Tunables::defaults(scheduler.tunables, self.kernel);
        self.tunables
            .retain(|(k, _)| known.names().any(|name| name == k));
        Ok(())
    }

    /// The scheduler and the values of its tunables.
    ///
    /// # Errors
    /// If the kernel has no such scheduler, or it no such tunable.
    pub fn scheduler(&self, catalogue: &Catalogue) -> Result<(SchedulerChoice, Tunables), Error> {
        let scheduler = catalogue.scheduler(&self.scheduler, self.kernel)?;
        let mut tunables = Tunables::defaults(scheduler.tunables, self.kernel);
        for (name, value) in &self.tunables {
            tunables.set(name, *value)?;
        }
        Ok((scheduler, tunables))
    }

    /// The patches that are switched on.
    ///
    /// # Errors
    /// If one is unknown or does not fit the kernel, the scheduler or another.
    pub fn patches(&self) -> Result<Patches, Error> {
        let patches = Patches::new(&self.patches, self.kernel)?;
        let of_another = |s: &str| s != self.scheduler;
        if let Some(p) = patches.iter().find(|p| p.scheduler.is_some_and(of_another)) {
            return Err(Error::new(format!(
                "patch '{}' is one of the scheduler {}, not of {}",
                p.name,
                p.scheduler.unwrap_or_default(),
                self.scheduler
            ))
            .about("patches"));
        }
        Ok(patches)
    }

    /// Commands the driver hands to the device at most.
    ///
    /// # Errors
    /// If there is no such device, or it cannot have these parameters.
    pub fn queue_depth(&self, catalogue: &Catalogue) -> Result<u32, Error> {
        match self.queue.queue_depth {
            Some(depth) => Ok(depth),
            None => Ok(self.queue_facts(catalogue)?.queue_depth),
        }
    }

    /// What its queue shows in sysfs.
    ///
    /// # Errors
    /// If there is no such device, or it cannot have these parameters.
    pub fn queue_facts(&self, catalogue: &Catalogue) -> Result<QueueFacts, Error> {
        catalogue.queue_facts(self)
    }

    /// What a reader of its result asks of the models that it chose.
    pub fn facts(&self, catalogue: &Catalogue) -> Facts {
        let known = catalogue.scheduler(&self.scheduler, self.kernel);
        Facts {
            queue: self.queue_facts(catalogue).ok(),
            sched_cost: self.sched_cost(known.map_or(0, |s| s.cost_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::{Knowledge, PRESETS};

    #[test]
    fn the_default_kernel_is_the_newest_that_was_measured() {
        assert!(matches!(
            Knowledge::of_release(DEFAULT_KERNEL),
            Knowledge::Measured(_)
        ));
        let newest = PRESETS.iter().map(|p| p.version).max();
        assert_eq!(newest, Some(DEFAULT_KERNEL));
    }
}
