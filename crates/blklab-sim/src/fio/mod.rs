// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs on a machine: files, start order, one task per job.
//!
//! ```text
//! job file ─► files on the disk ─► controller ─► job tasks ─► engine
//!                                  (stonewall, wait_for,       │ page cache,
//!                                   startdelay)                ▼ direct I/O
//! ```
//!
//! Left out: laying files out takes no time and leaves nothing in the cache,
//! as if it had been done long before; trims of files complete at once;
//! posixaio's thread creation is free.

mod control;
mod engine;
mod files;
mod job;
mod posix;
mod report;

pub use job::JobResult;
pub use report::job_info;

use crate::machine::Sinks;
use crate::{Machine, build_machine};
use blklab_experiment::{Experiment, ExperimentError};
use blklab_fio::parse::JobFile;
use blklab_fs::{Config, Features, PageCache};
use blklab_types::{IoPrio, Time};
use control::control;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pid of the fio process itself; its jobs follow.
pub const FIO_PID: u32 = 1000;

/// What came out of a run of fio jobs.
#[derive(Debug)]
pub struct FioOutcome {
    /// The jobs in thread order.
    pub jobs: Vec<JobResult>,
    /// Read-only files of the scheduler in sysfs at the end.
    pub sysfs: Vec<(&'static str, String)>,
    /// When the run ended.
    pub end: Time,
    /// Whether it was ended from outside.
    pub interrupted: bool,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// The rules of the page cache for a kernel, and a note if another release
/// stands in.
fn cache_features(e: &Experiment) -> (Features, Option<String>) {
    let [major, minor, patch] = e.kernel.numbers();
    let release = [major, minor, patch, 0];
    match Features::of_release(release) {
        Ok(features) => (features, None),
        Err(_) => (
            Features::stand_in(release),
            Some(format!(
                "the page cache of kernel {} is not modelled yet: 2.6.31's rules stand in \
                 (buffered I/O; direct I/O is not concerned)",
                e.kernel
            )),
        ),
    }
}

/// Settings of the page cache for an experiment.
fn cache_config(e: &Experiment, features: Features) -> Result<Config, ExperimentError> {
    let limits = e.limits()?;
    let capacity = e.build_device()?.capacity_sectors();
    let mut c = Config::new(features, e.vm.memory_bytes.unwrap_or(8 << 30));
    c.dirty_ratio = e.vm.dirty_ratio.unwrap_or(c.dirty_ratio);
    c.dirty_background_ratio =
        e.vm.dirty_background_ratio
            .unwrap_or(c.dirty_background_ratio);
    if let Some(cs) = e.vm.dirty_writeback_centisecs {
        c.dirty_writeback_centisecs = u64::from(cs);
    }
    if let Some(cs) = e.vm.dirty_expire_centisecs {
        c.dirty_expire_centisecs = u64::from(cs);
    }
    if let Some(kb) = e.queue.read_ahead_kb {
        c.read_ahead_bytes = u64::from(kb) << 10;
    }
    let segments = u16::try_from(limits.max_segments).unwrap_or(u16::MAX);
    c.bio_pages = Config::bio_pages_of_queue(limits.max_sectors, segments);
    if let Some(end_sector) = capacity {
        c.layout.end_sector = end_sector;
    }
    if let Some(start) = limits.partition_start {
        c.layout.start_sector = c.layout.start_sector.max(start);
    }
    c.validate()
        .map_err(|err| ExperimentError::new(err.to_string()))?;
    Ok(c)
}

/// Runs parsed fio jobs in an experiment's block stack.
///
/// # Errors
/// If the experiment is impossible, or a job does not fit the disk.
pub fn run_fio(
    e: &Experiment,
    jobs: JobFile,
    sinks: Sinks,
    stop: Arc<AtomicBool>,
) -> Result<FioOutcome, ExperimentError> {
    let (features, note) = cache_features(e);
    let config = cache_config(e, features)?;
    let m: Machine = build_machine(e, sinks, Arc::clone(&stop))?;
    let cache =
        PageCache::new(m.clone(), config).map_err(|err| ExperimentError::new(err.to_string()))?;
    let completions = cache.clone();
    m.on_bio_done(move |cookie, error| {
        completions
            .end_bio(cookie, error != 0)
            .expect("only the page cache's own cookies come back");
    });
    let buffered = |j: &blklab_fio::job::Job| !j.settings.direct && !j.is_diskless();
    let note = note.filter(|_| jobs.jobs.iter().any(buffered));
    let mut notes: Vec<String> = note.into_iter().collect();
    notes.extend(jobs.notes.iter().map(ToString::to_string));
    let plans = files::set_up(&cache, jobs.jobs, config_capacity(&cache), &mut notes)?;
    cache.start();
    let results: Vec<_> = plans.iter().map(|_| Rc::new(RefCell::new(None))).collect();
    let settings = job::Settings {
        io_cost: e.io_cost(),
        seed: e.seed,
    };
    let body = control(m.clone(), cache, plans, results.clone(), settings);
    m.spawn_at("fio", FIO_PID, IoPrio::default(), true, Time::ZERO, body);
    m.run(Time::MAX);
    let interrupted = stop.load(Ordering::Relaxed);
    let end = m.now();
    let jobs: Vec<JobResult> = results
        .iter()
        .filter_map(|slot| slot.borrow_mut().take())
        .map(|recording: job::Recording| recording.finish(end))
        .collect();
    if !interrupted && jobs.iter().any(|j| j.ended.is_none()) {
        return Err(ExperimentError::new(format!(
            "the simulation came to a halt at {end} s with jobs that wait for ever: a fault in \
             blklab; please report the job file"
        )));
    }
    Ok(FioOutcome {
        jobs,
        sysfs: m.queue_state(|q| q.elevator().shows()),
        end,
        interrupted,
        notes,
    })
}

fn config_capacity(cache: &PageCache<Machine>) -> u64 {
    cache.config().layout.end_sector
}
