// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels as a target of plans.

mod filesystem;
mod folders;
mod groups;
mod job_text;
mod parts;
mod place;
mod prepare;
mod refused;
mod results;
mod script;

use crate::build::{Built, Cache};
use crate::disk::{Disk, ENDLESS_SECTORS};
use crate::machine::{EPOCH_MS, Machine};
use crate::userland::Userland;
use blklab_device::{DeviceLimits, interrupted};
use blklab_experiment::{Catalogue, Experiment};
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_target::memory::Estimate;
use blklab_target::{Failed, Outcome, Plan, Sinks, Site, Target, Work};
use blklab_types::{Dev, Error, ErrorKind, SECTOR_BYTES};
use place::Place;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The disk, as it is told of: the number that virtio's disks have depends on what else a
/// kernel has.
const DISK: Dev = Dev {
    major: 254,
    minor: 0,
};
/// Its name.
const DISK_NAME: &str = "vda";
/// Programs of this machine that every machine has, and their packages in Debian.
const PROGRAMS: &[(&str, &str)] = &[
    ("fio", "fio"),
    ("blktrace", "blktrace"),
    ("addpart", "util-linux"),
];
/// What a machine takes of memory beside what its jobs touch.
const MACHINE_BYTES: u64 = 384 << 20;
/// A run ends with an error if it takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Real kernels in virtual time, one for each run, with the model of a device as their
/// disk.
pub struct Kernel {
    catalogue: Catalogue,
}

impl Kernel {
    /// Kernels for experiments that choose from this catalogue.
    pub fn with(catalogue: Catalogue) -> Kernel {
        Kernel { catalogue }
    }
}

/// The kernel of an experiment, which was built before.
fn kernel_of(e: &Experiment) -> Result<Built, Error> {
    Cache::of_user()?.find(&e.kernel.to_string())
}

/// Sectors of its disk.
fn disk_sectors(e: &Experiment) -> Result<u64, Error> {
    let capacity = blklab_sim::build_device(e)?.capacity_sectors();
    Ok(capacity.unwrap_or(ENDLESS_SECTORS))
}

impl Target for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn catalogue(&self) -> Catalogue {
        self.catalogue.clone()
    }

    fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        refused::check(e, &self.catalogue)?;
        let kernel = kernel_of(e)?;
        if let Some(volume) = filesystem::volume(e)? {
            volume.check_in(&kernel)?;
        }
        Ok(Site {
            disk_bytes: disk_sectors(e)?.saturating_mul(SECTOR_BYTES),
            devices: vec![(DISK, DISK_NAME.to_owned())],
            described_in: Vec::new(),
            nr_cpus: 1,
            epoch_ms: EPOCH_MS,
        })
    }

    fn check_jobs(&self, _: &Experiment, jobs: &JobFile) -> Result<(), Error> {
        refused::check_jobs(jobs)
    }

    fn memory(&self, e: &Experiment, _: Work<'_>, _: &Site) -> Estimate {
        let memory = e.vm.memory_bytes(e.kernel);
        let mut estimate = Estimate::default();
        estimate.add(
            "the machine of a kernel".to_owned(),
            memory.min(MACHINE_BYTES),
        );
        estimate
    }

    fn rehearse(&self, e: &Experiment, jobs: &JobFile) -> Result<Vec<Ranges>, Error> {
        Ok(Place::new(e, jobs, disk_sectors(e)?)?.into_ranges())
    }

    fn run(&self, plan: &Plan, sinks: Sinks, stop: Arc<AtomicBool>) -> Result<Outcome, Failed> {
        self.carry_out(plan, sinks, &stop)
            .or_else(|e| match e.kind {
                ErrorKind::Interrupted => Ok(Outcome {
                    interrupted: true,
                    ..Outcome::default()
                }),
                _ => Err(Failed(e.to_string())),
            })
    }
}

impl Kernel {
    fn carry_out(&self, plan: &Plan, sinks: Sinks, stop: &AtomicBool) -> Result<Outcome, Error> {
        let text = plan.jobs().expect("only jobs are accepted");
        let e = &plan.experiment().with_cgroups_of(&text.jobs.jobs)?;
        let kernel = kernel_of(e)?;
        let place = Place::new(e, &text.jobs, disk_sectors(e)?)?;
        let job = text.spell_out(&mut |_, _| Ok(None))?;
        let model = interrupted(blklab_sim::build_device(e)?, e.interrupt_latency());
        let limits = blklab_device::limits(&e.device.name, &e.device.params);
        let limits = DeviceLimits {
            max_segments: plan.facts().queue.map(|q| q.max_segments),
            ..limits.map_err(blklab_sim::device_refused)?
        };
        let mut disk = Disk::modelled(&e.device.name, model, &limits).prepared();
        let mut programs = PROGRAMS.to_vec();
        let any_contents = place.takes_any_contents();
        let mut files = vec![("job.fio".to_owned(), job_text::to_run(&job, any_contents))];
        let is_verified = text.jobs.jobs.iter().any(|job| job.settings.verify);
        match &place {
            Place::Parts(_) if !is_verified => {}
            Place::Parts(_) => disk = disk.keeping()?,
            Place::Volume(volume, _) => {
                disk = disk.keeping()?;
                programs.push(volume.program);
                let layout = job_text::to_lay_out(&job, any_contents);
                files.push((prepare::LAYOUT.to_owned(), layout));
            }
        }
        let bytes = |(name, text): (String, String)| (name, text.into_bytes());
        let machine = Machine {
            kernel: &kernel,
            memory_bytes: e.vm.memory_bytes(e.kernel),
            userland: Userland {
                programs,
                files: files.into_iter().map(bytes).collect(),
                script: script::script(e, &self.catalogue, &place)?,
            },
            arguments: script::arguments(e, plan.facts()),
            disks: vec![disk],
            time_limit: TIME_LIMIT,
        };
        let ended = machine.run(stop)?;
        let mut outcome = results::read(&ended, &text.jobs, e, &kernel, sinks)?;
        outcome.notes.push(format!(
            "Linux {} ({}) ran in virtual time, on one processor; its driver is virtio_blk",
            kernel.release, kernel.source
        ));
        let depth = plan.facts().queue_depth().unwrap_or(0);
        if depth > script::DEPTH_MAX {
            outcome.notes.push(format!(
                "the disk takes {} commands at once, not {depth}: virtio_uml has no more",
                script::DEPTH_MAX
            ));
        }
        outcome.notes.extend(place.notes());
        Ok(outcome)
    }
}
