// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels as targets of plans.

mod array;
mod dm;
mod drivers;
mod filesystem;
mod folders;
mod groups;
mod image;
mod job_logs;
mod job_text;
mod kind;
mod late;
mod layer;
mod load;
mod loops;
mod parts;
mod place;
mod prepare;
mod refused;
mod replayed;
mod results;
mod script;
mod source;
mod stack;
mod streams;
mod task;
mod told;

use crate::build::{Built, Engine};
use crate::host::Traffic;
use crate::machine::{Clock, EPOCH_MS, Machine};
use crate::qemu;
use crate::userland::Userland;
use blklab_experiment::{Catalogue, Experiment};
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_target::memory::Estimate;
use blklab_target::{Failed, Outcome, Plan, Sinks, Site, Target, Work};
use blklab_types::{Error, ErrorKind};
use drivers::Driver;
use kind::Kind;
use load::{Load, Loads};
use place::Place;
use source::Kernels;
use stack::Stack;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use task::Task;

/// Programs of this machine that every machine has, and their packages in Debian.
const PROGRAMS: &[(&str, &str)] = &[
    ("fio", "fio"),
    ("blktrace", "blktrace"),
    ("addpart", "util-linux"),
];
/// Processors of a machine in virtual time: User Mode Linux has no more there.
const CPUS: u32 = 1;
/// Schedulers that may be modules, and their names.
const SCHEDULERS: &[(&str, &str)] = &[
    ("mq-deadline", "mq-deadline"),
    ("kyber", "kyber-iosched"),
    ("bfq", "bfq"),
];
/// What a machine takes of memory beside what its jobs touch.
const MACHINE_BYTES: u64 = 384 << 20;
/// Data of disks that take so much memory are told of.
const KEPT_TOLD: u64 = 256 << 20;
/// A run ends with an error if it takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// What QEMU itself takes of memory.
const QEMU_BYTES: u64 = 384 << 20;

/// Real kernels, one for each run: with the model of a device as their disk, in virtual
/// time, or with a device of their own.
pub struct Kernel {
    kind: Kind,
    catalogue: Catalogue,
    kernels: Kernels,
}

impl Kernel {
    /// Kernels that were built, in virtual time, for experiments that choose from this
    /// catalogue.
    pub fn with(catalogue: Catalogue) -> Kernel {
        Kernel::of_kind(kind::UML, catalogue)
    }

    /// Images of kernels in QEMU, in virtual time.
    pub fn in_qemu(catalogue: Catalogue) -> Kernel {
        Kernel::of_kind(kind::QEMU, catalogue)
    }

    /// Images of kernels on the processors of this machine, by its clock.
    pub fn in_kvm(catalogue: Catalogue) -> Kernel {
        Kernel::of_kind(kind::KVM, catalogue)
    }

    fn of_kind(kind: Kind, catalogue: Catalogue) -> Kernel {
        Kernel {
            kind,
            catalogue,
            kernels: Kernels::default(),
        }
    }

    /// The kernel of an experiment, which is there already.
    fn kernel_for(&self, e: &Experiment) -> Result<Built, Error> {
        match self.kind.engine {
            Engine::Uml => self.kernels.get(e),
            Engine::Qemu => image::get(e),
        }
    }

    /// The block devices of an experiment.
    fn stack_for(&self, e: &Experiment) -> Result<Stack, Error> {
        Stack::new(e, self.driver_for(e))
    }

    /// Its device, if that is the kernel's own.
    fn driver_for(&self, e: &Experiment) -> Option<Driver> {
        let is_own = self.kind.engine == Engine::Qemu || e.queue.inside == Some(true);
        is_own.then(|| Driver::chosen(e)).flatten()
    }

    fn nr_cpus(&self, e: &Experiment) -> u32 {
        match self.kind.engine {
            Engine::Uml => CPUS,
            Engine::Qemu => e.nr_cpus(),
        }
    }

    /// What an image loads before it does anything.
    ///
    /// # Errors
    /// If it does not have what the experiment needs.
    fn loads_for(
        &self,
        e: &Experiment,
        kernel: &Built,
        depth: u32,
        stack: &Stack,
    ) -> Result<Loads, Error> {
        let Some(driver) = self.driver_for(e) else {
            return Ok(Loads::default());
        };
        let own = driver.loads(e, depth, self.nr_cpus(e), stack.wanted())?;
        if self.kind.engine == Engine::Uml {
            // Everything is built in.
            return Ok(Loads::built_in(&own));
        }
        let mut wanted = vec![Load::new("virtio_pci"), Load::new("virtio_console")];
        wanted.extend(own);
        let scheduler = SCHEDULERS.iter().find(|(name, _)| *name == e.scheduler);
        // One that the kernel has not is refused by the file it is written to.
        wanted.extend(scheduler.map(|(_, module)| Load::new(module).if_there()));
        wanted.extend(stack.modules().map(Load::new));
        let volume = filesystem::volume(e)?;
        let drivers: Vec<_> = volume.iter().chain(stack.filesystems()).collect();
        if !drivers.is_empty() {
            // Some ask for it by another name than its own.
            wanted.push(Load::new("crc32c_generic").if_there());
        }
        wanted.extend(drivers.iter().map(|volume| Load::new(volume.driver)));
        Loads::find(kernel, &wanted)
    }
}

impl Target for Kernel {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn repeats(&self) -> bool {
        self.kind.clock == Clock::Virtual
    }

    fn catalogue(&self) -> Catalogue {
        self.catalogue.clone()
    }

    fn cpus_max(&self) -> Option<u32> {
        (self.kind.engine == Engine::Uml).then_some(CPUS)
    }

    fn has_programs(&self) -> bool {
        false
    }

    fn notes(&self, e: &Experiment) -> Vec<String> {
        match self.kind.engine {
            Engine::Uml => source::note(e.kernel).into_iter().collect(),
            Engine::Qemu => Vec::new(),
        }
    }

    fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        refused::check(self.kind, e, &self.catalogue)?;
        let volume = filesystem::volume(e)?;
        if let Some(volume) = &volume {
            volume.check_program()?;
        }
        let mut stack = self.stack_for(e)?;
        if volume.is_some() {
            stack.keep_all();
        }
        e.check_processes(u32::MAX, Some(stack.sectors()))?;
        let depth = e.queue_depth(&self.catalogue)?;
        if let Some(driver) = self.driver_for(e) {
            driver.loads(e, depth, self.nr_cpus(e), stack.wanted())?;
        }
        if self.kind.engine == Engine::Qemu {
            qemu::check(self.kind.clock)?;
            // What is built first is not there yet.
            let is_ready = |image: &Built| !wants_simdisk(e) || image.has_simdisk();
            if let Some(image) = image::in_cache(e)?.filter(is_ready) {
                self.loads_for(e, &image, depth, &stack)?;
            }
        }
        let devices = stack.devices();
        Ok(Site {
            disk_bytes: stack.bytes(),
            devices: devices.map(|d| (d.dev, d.name.clone())).collect(),
            described_in: Vec::new(),
            nr_cpus: u16::try_from(self.nr_cpus(e)).unwrap_or(u16::MAX),
            epoch_ms: EPOCH_MS,
        })
    }

    fn check_jobs(&self, _: &Experiment, jobs: &JobFile) -> Result<(), Error> {
        refused::check_jobs(self.kind, jobs)
    }

    fn prepare(
        &self,
        e: &Experiment,
        stop: &AtomicBool,
        told: &mut dyn FnMut(String),
    ) -> Result<(), Error> {
        if self.kind.engine == Engine::Qemu {
            let image = image::prepare(e, stop, told)?;
            if wants_simdisk(e) {
                image::prepare_simdisk(&image, stop, told)?;
            }
            let depth = e.queue_depth(&self.catalogue)?;
            let stack = self.stack_for(e)?;
            return self.loads_for(e, &image, depth, &stack).map(|_| ());
        }
        self.kernels.prepare(e, stop, told)?;
        let kernel = self.kernels.get(e)?;
        let volume = filesystem::volume(e)?;
        let stack = self.stack_for(e)?;
        let mut filesystems = volume.iter().chain(stack.filesystems());
        filesystems.try_for_each(|volume| volume.check_in(&kernel))
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
        if self.kind.engine == Engine::Qemu {
            estimate.add("QEMU".to_owned(), QEMU_BYTES);
        }
        estimate
    }

    fn rehearse(&self, e: &Experiment, jobs: &JobFile) -> Result<Vec<Ranges>, Error> {
        Ok(Place::new(e, jobs, self.stack_for(e)?.sectors())?.into_ranges())
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
        let e = &match plan.jobs() {
            Some(text) => plan.experiment().with_cgroups_of(&text.jobs.jobs)?,
            None => plan.experiment().clone(),
        };
        let kernel = self.kernel_for(e)?;
        let mut stack = self.stack_for(e)?;
        let task = Task::new(plan, e, &stack, stop)?;
        let mut programs: Vec<_> = PROGRAMS.iter().copied().chain(stack.programs()).collect();
        programs.extend(task.volume().map(|volume| volume.program));
        if task.is_verified || task.volume().is_some() {
            stack.keep_all();
        }
        let depth = plan.facts().queue_depth().unwrap_or(1);
        let loads = self.loads_for(e, &kernel, depth, &stack)?;
        let driver = self.driver_for(e);
        let made = driver.map(|d| d.script(e, depth, stack.wanted()));
        let made = made.transpose()?;
        let made = made.map(|made| format!("{}{made}", loads.script));
        let made = made.unwrap_or_default();
        let mut arguments = loads.arguments;
        let mut disks = Vec::new();
        if self.kind.engine == Engine::Uml {
            arguments.extend(script::arguments(e, plan.facts(), task.has_processes()));
            disks = stack.modelled(&self.catalogue)?;
        }
        arguments.extend(groups::argument(e));
        arguments.extend(filesystem::argument(e).map(str::to_owned));
        let nr_cpus = self.nr_cpus(e);
        let machine = Machine {
            kernel: &kernel,
            memory_bytes: e.vm.memory_bytes(e.kernel),
            userland: Userland {
                programs,
                own: task.own_programs(),
                files: task.files(),
                modules: loads.files,
                script: script::script(e, &self.catalogue, &stack, &task, &made)?,
            },
            arguments,
            disks,
            processors: nr_cpus,
            clock: self.kind.clock,
            time_limit: TIME_LIMIT,
        };
        let ended = machine.run(stop)?;
        let mut outcome = results::read(&ended, &task, e, &stack, &kernel, sinks)?;
        outcome
            .notes
            .push(self.how_it_ran(&kernel, nr_cpus, driver));
        if driver.is_none() && depth > script::DEPTH_MAX {
            outcome.notes.push(format!(
                "the disk takes {} commands at once, not {depth}: virtio_uml has no more",
                script::DEPTH_MAX
            ));
        }
        outcome.notes.extend(messages(&ended.traffic));
        outcome.notes.extend(task.notes.iter().cloned());
        outcome.notes.extend(task.place.notes());
        if self.kind.engine == Engine::Qemu
            && (task.volume().is_some() || !stack.layers().is_empty())
        {
            let note =
                "what was prepared before the run, without a trace, took the device its time";
            outcome.notes.push(note.to_owned());
        }
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

    /// What a reader of the result should know of the machine.
    fn how_it_ran(&self, kernel: &Built, nr_cpus: u32, driver: Option<Driver>) -> String {
        let Kind { engine, clock, .. } = self.kind;
        let (release, source) = (&kernel.release, &kernel.source);
        let processors = match nr_cpus {
            1 => "one processor".to_owned(),
            n => format!("{n} processors"),
        };
        let how = match (engine, clock) {
            (Engine::Uml, _) => {
                let whose = match driver {
                    Some(_) => "its disk is its own",
                    None => "its driver is virtio_blk",
                };
                format!("ran in virtual time, on {processors}; {whose}")
            }
            (Engine::Qemu, Clock::Virtual) => format!(
                "ran in QEMU, on {processors}, in virtual time: an instruction of any processor \
                 takes 1 ns"
            ),
            (Engine::Qemu, Clock::Real) => format!(
                "ran in KVM, on {processors}, by the clock of this machine: it does not repeat"
            ),
        };
        format!("Linux {release} ({source}) {how}")
    }
}

/// Whether the device of an experiment is our own module.
fn wants_simdisk(e: &Experiment) -> bool {
    Driver::chosen(e) == Some(Driver::SimDisk)
}

/// How much kernel, clock and disks had to say to each other while the run lasted.
fn messages(traffic: &Traffic) -> Option<String> {
    let ios = traffic.requests;
    if ios == 0 {
        return None;
    }
    let per_io = |messages: u64| {
        let tenths = messages.saturating_mul(10) / ios;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    Some(format!(
        "{} messages between kernel and clock per I/O, and {} between kernel and disks",
        per_io(traffic.clock_messages),
        per_io(traffic.disk_messages)
    ))
}

#[cfg(test)]
mod tests {
    use super::messages;
    use crate::host::Traffic;

    #[test]
    fn messages_are_told_by_io() {
        let traffic = Traffic {
            clock_messages: 21,
            disk_messages: 40,
            requests: 10,
        };
        let told = messages(&traffic).expect("there were some");
        assert!(
            told.starts_with("2.1 messages between kernel and clock"),
            "{told}"
        );
        assert!(told.ends_with("4.0 between kernel and disks"), "{told}");
        assert_eq!(messages(&Traffic::default()), None);
    }
}
