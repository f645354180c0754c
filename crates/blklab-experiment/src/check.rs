// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused, and what a reader of a result is told.

use crate::settings;
use crate::{Absent, Catalogue, Experiment, Workload};
use blklab_kernel::{Evidence, KernelVersion, Tunables};
use blklab_types::Error;
use blklab_types::shown;
use blklab_workload::Process;

impl Experiment {
    /// What a reader of the result should know: how it was made, what the
    /// kernel makes of values out of range, and patches that are not certain.
    pub fn notes(&self, catalogue: &Catalogue) -> Vec<String> {
        let mut notes = self.remarks.clone();
        let idle = settings::all().filter(|s| !s.matters() && s.stored(self).is_some());
        notes.extend(idle.map(|s| {
            let (owner, name) = (s.home.owner(), s.name());
            format!("{owner}: {name} makes no difference in the model")
        }));
        if self.kernel.has_single_queue() && self.queue.wbt_lat_usec.is_some() {
            notes.push(
                "wbt_lat_usec makes no difference: write-back throttling is modelled from kernel \
                 5.0 on"
                    .to_owned(),
            );
        }
        if self.kernel.has_single_queue() && self.queue.rq_affinity.is_some() {
            notes.push(
                "rq_affinity makes no difference: processors that requests end on are modelled from \
                 kernel 5.0 on"
                    .to_owned(),
            );
        } else if self.device.name == "null_blk" && self.queue.rq_affinity.is_some() {
            notes.push(
                "rq_affinity makes no difference: null_blk ends requests itself, where its timers \
                 run out"
                    .to_owned(),
            );
        }
        if let Workload::Scenario(s) = &self.workload {
            let spec = s.spec();
            let mut left_out = vec![spec.left_out];
            if self.filesystem.name == "extents" {
                left_out.push(spec.left_out_on_extents);
            }
            let said = left_out.into_iter().filter(|text| !text.is_empty());
            notes.extend(said.map(str::to_owned));
        }
        if let Ok(scheduler) = catalogue.scheduler(&self.scheduler, self.kernel) {
            let mut written = Tunables::defaults(scheduler.tunables, self.kernel);
            for (name, value) in &self.tunables {
                if let Ok(stored) = written.set(name, *value)
                    && stored != *value
                {
                    notes.push(format!("{name}={value}: the kernel makes it {stored}"));
                }
            }
        }
        let patches = self.patches().unwrap_or_default();
        let unsure = patches
            .iter()
            .filter(|p| p.evidence == Evidence::Reconstructed);
        notes.extend(self.distribution_notes(catalogue));
        notes.extend(self.md_notes());
        notes.extend(self.cgroup_notes());
        notes.extend(unsure.map(|p| {
            format!(
                "patch {} is a reconstruction: the mail that carried it was not available",
                p.name
            )
        }));
        notes
    }

    /// Refuses a state of the machine at the start for loads that have no files: they
    /// begin when they say.
    fn check_start(&self) -> Result<(), Error> {
        if !matches!(self.workload, Workload::Processes(_) | Workload::Trace(_)) {
            return Ok(());
        }
        for (key, set) in [
            ("uptime_ms", self.vm.uptime_ms),
            ("uptime_ns", self.vm.uptime_ns),
            ("dirty_at_start_mb", self.vm.dirty_at_start_mb),
        ] {
            if set.is_some_and(|value| value > 0) {
                let what = format!("{key} is for jobs and scenarios; this load has no files");
                return Err(Error::new(what).about(key));
            }
        }
        Ok(())
    }

    /// Refuses a device that is a kernel's own.
    fn check_inside(&self) -> Result<(), Error> {
        match self.queue.inside {
            Some(true) => Err(Error::not_modelled(
                "inside=1 asks for the kernel's own device, which the target kernel has",
            )
            .about("device")),
            _ => Ok(()),
        }
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, catalogue: &Catalogue) -> Result<(), Error> {
        self.check_on(catalogue, || catalogue.disk_sectors(self))
    }

    /// The same, on a disk whose size somebody else knows: it is asked when all
    /// else is known to be right.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_on(
        &self,
        catalogue: &Catalogue,
        capacity_sectors: impl FnOnce() -> Result<Option<u64>, Error>,
    ) -> Result<(), Error> {
        for (key, text) in [("id", &self.id), ("title", &self.title)] {
            if text.chars().any(char::is_control) {
                let what = format!("{key} has a control character; it is one line of text");
                return Err(Error::new(what).about(key));
            }
        }
        if self.seed > settings::SEED_MAX {
            let (seed, max) = (self.seed, settings::SEED_MAX);
            let what = format!("seed={seed}: expected a number from 0 to {max}");
            return Err(Error::new(what).about("seed"));
        }
        if !self.kernel.is_modelled() {
            return Err(Error::not_modelled(format!(
                "kernel {} is not modelled; 2.6.16 to {} are",
                self.kernel,
                KernelVersion::NEWEST
            ))
            .about("kernel"));
        }
        if let Some(Absent {
            table,
            name,
            exists,
        }) = self.absent().into_iter().next()
        {
            let what = format!(
                "{table}: {name}: kernel {} does not have it; it exists {exists}",
                self.kernel
            );
            return Err(Error::new(what).about(format!("{table}.{name}")));
        }
        self.filesystem.check_modelled()?;
        let settings = self.settings(catalogue);
        settings.iter().try_for_each(|s| s.check(self))?;
        self.scheduler(catalogue)?;
        let facts = self.queue_facts(catalogue)?;
        self.patches()?;
        let disk = capacity_sectors()?;
        self.check_partition(disk)?;
        self.check_md(disk)?;
        self.check_dm()?;
        self.check_inside()?;
        self.check_cgroups()?;
        self.check_start()?;
        let max_sectors = if self.kernel.has_single_queue() {
            facts.bio_max_sectors
        } else {
            u32::MAX
        };
        self.check_processes(max_sectors, self.capacity_sectors(disk))
    }

    /// Refuses explicit processes with bios that are larger than a request may be or lie
    /// beyond the end of a device of so many sectors, or that are wrong in themselves.
    ///
    /// # Errors
    /// The first of them.
    pub fn check_processes(&self, max_sectors: u32, capacity: Option<u64>) -> Result<(), Error> {
        let Workload::Processes(processes) = &self.workload else {
            return Ok(());
        };
        let mut all = processes.iter();
        all.try_for_each(|p| check_process(p, max_sectors, capacity))
    }
}

fn check_process(p: &Process, max_sectors: u32, capacity: Option<u64>) -> Result<(), Error> {
    let fail = |what: String| {
        Err(Error::new(format!("process '{}': {what}", shown(&p.name)))
            .about(format!("processes.\"{}\"", p.name)))
    };
    if p.name.chars().any(char::is_control) {
        return fail("its name has a control character".into());
    }
    if p.depth == 0 {
        return fail("depth is 0; it is the number of bios outstanding, at least 1".into());
    }
    if p.ioprio_level > 7 {
        return fail(format!(
            "ioprio_level {} is out of range 0..7",
            p.ioprio_level
        ));
    }
    let largest = p.io.largest_nr_sectors();
    if largest > max_sectors {
        return fail(format!(
            "a bio of {largest} sectors is larger than a request may be ({max_sectors} sectors)",
        ));
    }
    match (p.io.end_sector(), capacity) {
        (None, _) => fail("sectors run past 2^64".into()),
        (Some(end), Some(capacity)) if end > capacity => fail(format!(
            "I/O up to sector {end} lies beyond the device, which has {capacity} sectors"
        )),
        _ => Ok(()),
    }
}
