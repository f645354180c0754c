// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs on a machine: files, start order, one task per job.
//!
//! ```text
//! job file ─► files on the disk ─► controller ─► job tasks ─► engine
//!                                  (stonewall, wait_for,       │ page cache,
//!                                   startdelay)                ▼ direct I/O
//! ```
//!
//! Left out: under fio 3.33's rules laying files out takes no time and leaves
//! nothing in the cache, as if it had been done long before.

mod affinity;
mod call;
mod control;
mod dirt;
mod engine;
mod files;
mod first;
mod flow;
mod job;
mod looks;
mod offload;
mod program;
mod recorder;
mod recording;
mod refused;
pub(crate) mod request_prio;
mod start;
mod steady;
mod trims;
pub(crate) mod uring;

pub use control::START_JITTER_NS;

use crate::build::{Parts, machine_with};
use crate::device::build_device;
use crate::told::FIO_PID;
use crate::{Machine, cgroup_uses, check_progress};
use blklab_experiment::Experiment;
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_fs::Filesystem;
use blklab_kernel::Part;
use blklab_pagecache::{Config, Features, PageCache};
use blklab_sched::Schedulers;
use blklab_target::{Failed, JobResult, Outcome, Sinks};
use blklab_types::Error;
use blklab_types::{IoPrio, PAGE_SECTORS, Span, Time};
pub(crate) use refused::check_jobs;

use call::CallCost;
use control::control;
use first::FirstCost;
use looks::Looks;
use start::StartCost;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether files are block devices, as on the target kernel without a filesystem.
fn files_are_parts(e: &Experiment) -> bool {
    e.filesystem.option(blklab_fs::PARTS) == Some("1")
}

/// The rules of the page cache for a kernel.
fn cache_features(e: &Experiment) -> Result<Features, Error> {
    Features::modelled(e.kernel.in_part(Part::PageCache)).map_err(|err| Error::new(err.to_string()))
}

/// Settings of the page cache for an experiment on disks of `capacity` sectors, and
/// of what is under it.
///
/// # Errors
/// If they cannot work, or the filesystem does not fit the disk.
pub fn cache_config(
    e: &Experiment,
    features: Features,
    capacity: Option<u64>,
) -> Result<(Config, Filesystem), Error> {
    let limits = crate::limits::queue_limits(e)?;
    let facts = crate::limits::queue_facts(e)?;
    let (vm, v) = (&e.vm, e.kernel);
    let mut c = Config::new(features, vm.memory_bytes(v));
    c.dirty_ratio = vm.dirty_ratio(v);
    c.dirty_background_ratio = vm.dirty_background_ratio(v);
    c.dirty_bytes = vm.dirty_bytes;
    c.dirty_background_bytes = vm.dirty_background_bytes;
    c.dirty_writeback_centisecs = u64::from(vm.dirty_writeback_centisecs(v));
    c.dirty_expire_centisecs = u64::from(vm.dirty_expire_centisecs(v));
    c.page_cost = e.page_cost();
    c.further_page_cost = Some(e.further_page_cost());
    c.writeout_cost = e.writeout_cost();
    c.adjacent_pages_percent = vm.adjacent_pages_percent(v);
    c.cgroup_writeback = crate::cgroups::charges_write_back(e);
    c.copy_bytes_per_s = e.copy_bytes_per_s();
    c.op_costs = c.op_costs.map(|cost| e.cpu_time(cost));
    c.read_ahead_bytes = facts.read_ahead_bytes;
    let segments = u16::try_from(limits.max_segments).unwrap_or(u16::MAX);
    c.request_pages = u64::from(limits.max_sectors) / PAGE_SECTORS;
    c.bio_pages = Config::bio_pages_of_queue(&features, facts.bio_max_sectors, segments);
    if let Some(end_sector) = e.capacity_sectors(capacity) {
        c.layout.end_sector = end_sector;
    } else if e.filesystem.name != "extents" {
        c.layout.end_sector = ENDLESS_VOLUME_SECTORS;
    }
    if let (Some(start), None) = (limits.partition_start, &e.md) {
        c.layout.start_sector = c.layout.start_sector.max(start);
    }
    // A volume fills its partition, or the bare disk.
    let start_sector = limits.partition_start.unwrap_or(0);
    let sectors = c.layout.end_sector.saturating_sub(start_sector);
    crate::check_filesystem(e)?;
    let filesystem = crate::filesystem_of(e, sectors, FIO_PID);
    if filesystem != Filesystem::Extents(()) {
        c.layout.start_sector = start_sector;
    }
    c.fua = limits.has_flush && limits.has_fua;
    // An array's members are behind it: the model of it takes no discards.
    c.discard = limits.discard.filter(|_| e.md.is_none());
    c.validate().map_err(|err| Error::new(err.to_string()))?;
    Ok((c, filesystem))
}

/// Bytes of the disk as jobs see it: to the end of its partition, or of the
/// array.
///
/// # Errors
/// If the experiment is impossible.
pub(crate) fn disk_bytes(e: &Experiment, capacity: Option<u64>) -> Result<u64, Error> {
    let (config, _) = cache_config(e, cache_features(e)?, capacity)?;
    Ok(files::disk_bytes(config.layout.end_sector))
}

/// Size of a filesystem on a device without an end: 1 TiB.
const ENDLESS_VOLUME_SECTORS: u64 = 1 << 31;

/// Runs parsed fio jobs in an experiment's block stack.
///
/// # Errors
/// If the experiment is impossible, or a job does not fit the disk.
pub fn run_fio(
    e: &Experiment,
    jobs: JobFile,
    sinks: Sinks,
    stop: Arc<AtomicBool>,
) -> Result<Outcome, Error> {
    let device = build_device(e)?;
    let parts = Parts {
        device: &*device,
        schedulers: Schedulers::default(),
    };
    let ready = Ready::new(e, jobs, parts, sinks, stop)?;
    Ok(ready.run()?)
}

/// A machine on which the files of all jobs are in their places.
pub(crate) struct Ready {
    experiment: Experiment,
    machine: Machine,
    cache: PageCache<Machine>,
    plans: Vec<Box<files::Plan>>,
    dirt: Option<dirt::Dirt>,
    notes: Vec<String>,
    stop: Arc<AtomicBool>,
}

impl Ready {
    /// Sets everything up. What can be wrong with it does not depend on `sinks`:
    /// if this succeeds once, it always does.
    pub(crate) fn new(
        e: &Experiment,
        jobs: JobFile,
        parts: Parts<'_>,
        sinks: Sinks,
        stop: Arc<AtomicBool>,
    ) -> Result<Ready, Error> {
        let e = e.with_cgroups_of(&jobs.jobs)?;
        let (config, filesystem) =
            cache_config(&e, cache_features(&e)?, parts.device.capacity_sectors())?;
        let machine = machine_with(&e, parts, sinks, Arc::clone(&stop))?;
        let cache = PageCache::new(machine.clone(), config, filesystem)
            .map_err(|err| Error::new(err.to_string()))?;
        let mut notes: Vec<String> = jobs.notes.iter().map(ToString::to_string).collect();
        notes.extend(affinity::note(&e, &jobs.jobs));
        notes.extend(request_prio::note(&e, &jobs.jobs));
        notes.extend(trims::notes(&e, &jobs.jobs, cache.config()));
        notes.extend(crate::filesystem::filesystem_notes(&e));
        notes.extend(crate::cgroups::write_back_note(&e));
        let mut programs = program::prepare(&e, &cache)?;
        let dirt = dirt::Dirt::create(&e, &cache)?;
        let mut plans = files::set_up(
            &cache,
            jobs.jobs,
            config_capacity(&cache),
            files_are_parts(&e),
            &mut notes,
        )?;
        for plan in &mut plans {
            let own = programs.iter().position(|(s, _)| *s == plan.job.section);
            let cgroup = plan.job.settings.cgroup.as_deref();
            plan.cgroup = cgroup.map_or(0, |name| crate::cgroups::number_of(&e, name));
            plan.program = own.map(|i| programs.swap_remove(i).1);
        }
        Ok(Ready {
            experiment: e,
            machine,
            cache,
            plans,
            dirt,
            notes,
            stop,
        })
    }

    /// Which part of its files each job works on.
    pub(crate) fn ranges(self) -> Vec<Ranges> {
        self.plans.into_iter().map(|plan| plan.ranges).collect()
    }

    /// Runs the jobs to their ends.
    pub(crate) fn run(self) -> Result<Outcome, Failed> {
        let (e, m, cache, mut notes) = (self.experiment, self.machine, self.cache, self.notes);
        let completions = cache.clone();
        m.on_bio_done(move |bio, error| {
            completions
                .end_bio(bio, error != 0)
                .expect("only the page cache's own bios come back");
        });
        let counted = cache.clone();
        m.on_counters(Some(Rc::new(move || counted.usage())));
        cache.start();
        if let Some(dirt) = self.dirt {
            dirt.start(&m, cache.clone());
        }
        let nr_jobs = self.plans.len();
        let results: Vec<_> = (0..nr_jobs).map(|_| Rc::new(RefCell::new(None))).collect();
        let settings = job::Settings {
            io_cost: e.io_cost(),
            call_cost: CallCost {
                each: e.call_cost(),
                page: e.direct_page_cost(),
            },
            reap_cost: e.reap_cost(),
            job_start: StartCost {
                each: e.job_start(),
                io_u: e.io_u_setup(),
                page: e.buffer_page(),
            },
            first_times: FirstCost {
                page: e.buffer_page(),
                path: e.first_call(),
            },
            job_setup: e.job_setup(),
            looks: Looks {
                each: e.look_cost(),
                to_start: e.start_look_cost(),
                last_begins_first: e.one_cpu()
                    && e.start_look_cost() > Span::ZERO
                    && e.job_setup() == Span::ZERO
                    && crate::cpu::goes_by_deadlines(e.kernel),
            },
            request_prio: request_prio::Features::of(e.kernel).request_prio,
            uring: uring::Features::of(e.kernel),
            seed: e.seed,
        };
        let body = control(m.clone(), cache, self.plans, results.clone(), settings);
        let begin = Time::ZERO + e.uptime();
        m.spawn_at("fio", FIO_PID, IoPrio::default(), true, begin, body);
        m.begin_with_first_processor();
        m.run(Time::MAX);
        // The machine holds the cache for its completions, and the cache the machine.
        m.on_bio_done(|_, _| {});
        m.on_counters(None);
        m.forget_pools();
        let stopped = self.stop.load(Ordering::Relaxed);
        let end = m.now();
        let jobs: Vec<JobResult> = results
            .iter()
            .filter_map(|slot| slot.borrow_mut().take())
            .map(|mut recording: recording::Recording| {
                notes.append(&mut recording.notes);
                recording.finish(end)
            })
            .collect();
        check_progress(&m)?;
        let all_ended = jobs.iter().all(|j| j.ended.is_some());
        if !stopped && !all_ended {
            return Err(Failed(format!(
                "the simulation came to a halt at {end} s with jobs that wait for ever: a fault \
                 in blklab; please report the job file"
            )));
        }
        Ok(Outcome {
            interrupted: stopped && !(all_ended && jobs.len() == nr_jobs),
            jobs,
            sysfs: crate::told::sysfs(&m),
            cgroups: cgroup_uses(&m, &e),
            pressure: m.pressure(0),
            end,
            notes,
        })
    }
}

fn config_capacity(cache: &PageCache<Machine>) -> u64 {
    cache.config().layout.end_sector
}
