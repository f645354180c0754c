// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulation as a target of plans.

use crate::build::{Parts, machine_with};
use crate::catalogue::catalogue_with;
use crate::device::build_device_with_files;
use crate::fio::{self, Ready};
use crate::limits::queue_depth;
use crate::recorded::{left_out, spawn_recorded};
use crate::{Machine, cgroup_uses, check_progress, devices, spawn_processes};
use blklab_device::Device;
use blklab_experiment::{Catalogue, DeviceSpec, Experiment, Workload};
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_kernel::Knowledge;
use blklab_sched::Schedulers;
use blklab_target::memory::Estimate;
use blklab_target::{Failed, Outcome, Plan, Sinks, Site, Target, Work};
use blklab_trace::NullSink;
use blklab_types::Error;
use blklab_types::{SECTOR_BYTES, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The deterministic simulation in virtual time.
///
/// It makes each device once: experiments with the same one run on copies, which
/// share tables such as seek times.
#[derive(Default)]
pub struct Sim {
    schedulers: Schedulers,
    made: Mutex<Vec<(DeviceKey, Arc<Made>)>>,
}

/// What a device is made of.
#[derive(Clone, PartialEq, Eq)]
struct DeviceKey {
    spec: DeviceSpec,
    queue_depth: u32,
}

/// A device as it leaves the factory.
struct Made {
    device: Box<dyn Device>,
    /// The files that describe it: names and texts.
    described_in: Vec<(String, String)>,
}

impl Sim {
    /// A simulation with these schedulers; [`Sim::default`] has those of this
    /// repository.
    pub fn with(schedulers: Schedulers) -> Sim {
        Sim {
            schedulers,
            made: Mutex::default(),
        }
    }

    fn parts<'a>(&self, made: &'a Made) -> Parts<'a> {
        Parts {
            device: &*made.device,
            schedulers: self.schedulers,
        }
    }

    /// The device of an experiment.
    fn made(&self, e: &Experiment) -> Result<Arc<Made>, Error> {
        let key = DeviceKey {
            spec: e.device.clone(),
            queue_depth: queue_depth(e)?,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = made.iter().find(|(k, _)| *k == key) {
            return Ok(Arc::clone(known));
        }
        let (device, described_in) = build_device_with_files(e)?;
        let new = Arc::new(Made {
            device,
            described_in,
        });
        made.push((key, Arc::clone(&new)));
        Ok(new)
    }

    /// The device of an experiment that was surveyed.
    fn known(&self, e: &Experiment) -> Arc<Made> {
        self.made(e).expect("the survey made it")
    }
}

impl Target for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn catalogue(&self) -> Catalogue {
        catalogue_with(self.schedulers)
    }

    fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        let mut made = None;
        e.check_on(&self.catalogue(), || {
            let known = made.insert(self.made(e)?);
            Ok(known.device.capacity_sectors())
        })?;
        let made = made.expect("the check asks for the disk");
        let capacity = made.device.capacity_sectors();
        let disk_bytes = match &e.workload {
            Workload::Processes(_) | Workload::Trace(_) => {
                let end = e.capacity_sectors(capacity).unwrap_or(u64::MAX);
                end.saturating_mul(SECTOR_BYTES)
            }
            _ => fio::disk_bytes(e, capacity)?,
        };
        Ok(Site {
            disk_bytes,
            devices: devices(e),
            described_in: made.described_in.clone(),
            nr_cpus: 1,
            epoch_ms: crate::told::EPOCH_MS,
        })
    }

    fn notes(&self, e: &Experiment) -> Vec<String> {
        let tree = Some(&e.kernel_source).filter(|tree| !tree.is_empty());
        let of_tree = tree.map(|tree| {
            let release = e.kernel.release();
            format!("the model is that of mainline {release}: it knows nothing of the tree {tree}")
        });
        let caution = Knowledge::of_release(e.kernel).caution(e.kernel);
        let notes = e.kernel.note().into_iter().chain(of_tree);
        notes.chain(caution).chain(e.left_out()).collect()
    }

    fn check_jobs(&self, _: &Experiment, jobs: &JobFile) -> Result<(), Error> {
        fio::check_jobs(&jobs.jobs)
    }

    fn memory(&self, e: &Experiment, work: Work<'_>, site: &Site) -> Estimate {
        crate::memory::estimate(e, work, site)
    }

    fn rehearse(&self, e: &Experiment, jobs: &JobFile) -> Result<Vec<Ranges>, Error> {
        let sinks = Sinks::of_events(Box::new(NullSink));
        let made = self.known(e);
        let ready = Ready::new(e, jobs.clone(), self.parts(&made), sinks, Arc::default())?;
        Ok(ready.ranges())
    }

    fn run(&self, plan: &Plan, sinks: Sinks, stop: Arc<AtomicBool>) -> Result<Outcome, Failed> {
        let e = plan.experiment();
        let made = self.known(e);
        if let Some(text) = plan.jobs() {
            let ready = Ready::new(e, text.jobs.clone(), self.parts(&made), sinks, stop);
            return ready.expect("the same was rehearsed").run();
        }
        let machine = machine_with(e, self.parts(&made), sinks, Arc::clone(&stop));
        let machine = machine.expect("the experiment was surveyed");
        let mut notes = Vec::new();
        if let Some(replay) = plan.replay() {
            spawn_recorded(&machine, e, replay).expect("the experiment was surveyed");
            notes = left_out(e, replay).expect("the experiment was surveyed");
        } else if let Workload::Processes(processes) = &e.workload {
            spawn_processes(&machine, e, processes);
        }
        machine.run(Time::MAX);
        outcome(&machine, e, &stop, notes)
    }
}

/// What came out of a machine that has run.
fn outcome(
    machine: &Machine,
    e: &Experiment,
    stop: &AtomicBool,
    notes: Vec<String>,
) -> Result<Outcome, Failed> {
    check_progress(machine)?;
    Ok(Outcome {
        sysfs: crate::told::sysfs(machine),
        cgroups: cgroup_uses(machine, e),
        pressure: machine.pressure(0),
        end: machine.now(),
        interrupted: stop.load(Ordering::Relaxed),
        notes,
        ..Outcome::default()
    })
}
