// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels as a target of plans.

mod array;
mod dm;
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
mod source;
mod stack;
mod streams;

use crate::machine::{EPOCH_MS, Machine};
use crate::userland::Userland;
use blklab_experiment::{Catalogue, Experiment};
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_target::memory::Estimate;
use blklab_target::{Failed, Outcome, Plan, Sinks, Site, Target, Work};
use blklab_types::{Error, ErrorKind};
use place::Place;
use source::Kernels;
use stack::Stack;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Programs of this machine that every machine has, and their packages in Debian.
const PROGRAMS: &[(&str, &str)] = &[
    ("fio", "fio"),
    ("blktrace", "blktrace"),
    ("addpart", "util-linux"),
];
/// Processors of a machine in virtual time: User Mode Linux has no more there.
const CPUS: u32 = 1;
/// What a machine takes of memory beside what its jobs touch.
const MACHINE_BYTES: u64 = 384 << 20;
/// Data of disks that take so much memory are told of.
const KEPT_TOLD: u64 = 256 << 20;
/// A run ends with an error if it takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Real kernels in virtual time, one for each run, with the model of a device as their
/// disk.
pub struct Kernel {
    catalogue: Catalogue,
    kernels: Kernels,
}

impl Kernel {
    /// Kernels for experiments that choose from this catalogue.
    pub fn with(catalogue: Catalogue) -> Kernel {
        Kernel {
            catalogue,
            kernels: Kernels::default(),
        }
    }
}

impl Target for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn catalogue(&self) -> Catalogue {
        self.catalogue.clone()
    }

    fn cpus_max(&self) -> Option<u32> {
        Some(CPUS)
    }

    fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        refused::check(e, &self.catalogue)?;
        if let Some(volume) = filesystem::volume(e)? {
            volume.check_program()?;
        }
        source::wanted(e)?;
        let stack = Stack::new(e)?;
        let devices = stack.devices();
        Ok(Site {
            disk_bytes: stack.bytes(),
            devices: devices.map(|d| (d.dev, d.name.clone())).collect(),
            described_in: Vec::new(),
            nr_cpus: CPUS as u16,
            epoch_ms: EPOCH_MS,
        })
    }

    fn check_jobs(&self, _: &Experiment, jobs: &JobFile) -> Result<(), Error> {
        refused::check_jobs(jobs)
    }

    fn prepare(
        &self,
        e: &Experiment,
        stop: &AtomicBool,
        told: &mut dyn FnMut(String),
    ) -> Result<(), Error> {
        self.kernels.prepare(e, stop, told)?;
        match filesystem::volume(e)? {
            Some(volume) => volume.check_in(&self.kernels.get(e)?),
            None => Ok(()),
        }
    }

    fn memory(&self, e: &Experiment, work: Work<'_>, site: &Site) -> Estimate {
        let memory = e.vm.memory_bytes(e.kernel);
        let cached = match work {
            Work::Jobs(jobs) => place::cached_bytes(jobs, site.disk_bytes),
            Work::Processes | Work::Trace(_) => 0,
        };
        let bytes = memory.min(MACHINE_BYTES.saturating_add(cached));
        let mut estimate = Estimate::default();
        let what =
            "the machine of a kernel, whose jobs fill its page cache (memory= says how large)";
        estimate.add(what.to_owned(), bytes);
        estimate
    }

    fn rehearse(&self, e: &Experiment, jobs: &JobFile) -> Result<Vec<Ranges>, Error> {
        Ok(Place::new(e, jobs, Stack::new(e)?.sectors())?.into_ranges())
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
        let kernel = self.kernels.get(e)?;
        let mut stack = Stack::new(e)?;
        let place = Place::new(e, &text.jobs, stack.sectors())?;
        let job = text.spell_out(&mut |_, _| Ok(None))?;
        let mut programs: Vec<_> = PROGRAMS.iter().copied().chain(stack.programs()).collect();
        let any_contents = place.takes_any_contents();
        let mut files = vec![("job.fio".to_owned(), job_text::to_run(&job, any_contents))];
        let is_verified = text.jobs.jobs.iter().any(|job| job.settings.verify);
        match &place {
            Place::Parts(_) if !is_verified => {}
            Place::Parts(_) => stack.keep_all(),
            Place::Volume(volume, _) => {
                stack.keep_all();
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
                script: script::script(e, &self.catalogue, &stack, &place)?,
            },
            arguments: script::arguments(e, plan.facts()),
            disks: stack.modelled(&self.catalogue)?,
            time_limit: TIME_LIMIT,
        };
        let ended = machine.run(stop)?;
        let mut outcome = results::read(&ended, &text.jobs, e, &stack, &kernel, sinks)?;
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
        outcome.notes.extend(groups::notes(&outcome.cgroups));
        let kept: u64 = ended.kept_bytes.iter().sum();
        if kept >= KEPT_TOLD {
            let mib = kept >> 20;
            outcome
                .notes
                .push(format!("the data on the disk took {mib} MiB of memory"));
        }
        Ok(outcome)
    }
}
