// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory experiments take at most, known before they run. What would
//! take more than [`BYTES_MAX`] is refused with the reason, instead of ending
//! in the middle when the memory of the machine does. The limit is the same
//! everywhere, so that what runs on one machine runs on another.
//!
//! The sizes were measured on 64-bit Linux and are rounded up. What grows with
//! the time that a run takes is not in it: logs of jobs without `log_avg_msec`
//! take 40 bytes a line.

use blklab_experiment::{Experiment, ExperimentError, Workload};
use blklab_fio::parse::JobFile;
use blklab_fio::range::{FileState, find_ranges};
use blklab_fio::run::random_map_bytes;

/// Memory that all experiments of a command may take together.
pub const BYTES_MAX: u64 = 4 << 30;

/// A fio job: its histograms and series.
const JOB_BYTES: u64 = 160 << 10;
/// An I/O that is in flight: its records in fio, engine, queue and device.
const SLOT_BYTES: u64 = 1 << 10;
/// A file.
const FILE_BYTES: u64 = 1500;
/// An explicit process: its task and its part of the statistics.
const PROCESS_BYTES: u64 = 48 << 10;
/// A bio of a trace that is repeated.
const BIO_BYTES: u64 = 64;
/// A page in the page cache.
const PAGE_BYTES: u64 = 24;
/// A machine, its queue, scheduler and statistics.
const RUN_BYTES: u64 = 2 << 20;
/// What is kept of a run until all are done, beside its jobs.
const RESULT_BYTES: u64 = 32 << 10;

/// What one experiment takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What takes memory while it runs: words for people, and bytes.
    running: Vec<(String, u64)>,
    /// What stays of it until the end of the command.
    kept_bytes: u64,
}

impl Estimate {
    /// Of an experiment with these jobs.
    pub fn new(e: &Experiment, jobs: Option<&JobFile>, disk_bytes: u64) -> Estimate {
        let mut estimate = Estimate::default();
        let nr_processes = match &e.workload {
            Workload::Processes(p) => p.len() as u64,
            _ => 0,
        };
        let processes = nr_processes.saturating_mul(PROCESS_BYTES);
        estimate.add(format!("{nr_processes} processes"), processes);
        estimate.kept_bytes = RESULT_BYTES + processes;
        if let Some(jobs) = jobs {
            estimate.add_jobs(e, jobs, disk_bytes);
        }
        estimate.add("the machine".to_owned(), RUN_BYTES);
        estimate
    }

    /// Of an experiment that repeats a trace of so many processes and bios.
    pub(crate) fn of_trace(e: &Experiment, nr_processes: u64, nr_bios: u64) -> Estimate {
        let mut estimate = Estimate::new(e, None, 0);
        let processes = nr_processes.saturating_mul(PROCESS_BYTES);
        estimate.add(format!("{nr_processes} processes"), processes);
        // Experiments of a matrix share it.
        estimate.add(format!("{nr_bios} recorded bios"), nr_bios * BIO_BYTES);
        estimate.kept_bytes += processes;
        estimate
    }

    fn add(&mut self, what: String, bytes: u64) {
        self.running.push((what, bytes));
    }

    fn add_jobs(&mut self, e: &Experiment, jobs: &JobFile, disk_bytes: u64) {
        let nr_jobs = jobs.jobs.len() as u64;
        let mut slots = 0_u64;
        let mut nr_files = 0_u64;
        let mut maps = 0_u64;
        let mut cached = 0_u64;
        for job in &jobs.jobs {
            slots = slots.saturating_add(u64::from(job.settings.iodepth));
            nr_files += job.files.len() as u64;
            let state = |name: &str| {
                if name.starts_with("/dev/") {
                    FileState::Device(disk_bytes)
                } else {
                    FileState::Missing
                }
            };
            let Ok(ranges) = find_ranges(job, state) else {
                continue;
            };
            for range in &ranges.files {
                maps = maps.saturating_add(random_map_bytes(job, range));
                cached = cached.saturating_add(range.length.min(range.real_size));
            }
        }
        let memory = e.vm.memory_bytes(e.kernel);
        let pages = cached.min(memory) >> 12;
        let jobs_bytes = nr_jobs.saturating_mul(JOB_BYTES);
        self.kept_bytes += jobs_bytes;
        self.add(format!("{nr_jobs} jobs"), jobs_bytes);
        self.add(
            format!("iodepth, {slots} over all jobs"),
            slots.saturating_mul(SLOT_BYTES),
        );
        self.add(
            format!("{nr_files} files"),
            nr_files.saturating_mul(FILE_BYTES),
        );
        self.add(
            "the maps of blocks that random jobs have touched (norandommap=1 or \
             random_generator=lfsr do without)"
                .to_owned(),
            maps,
        );
        self.add(format!("{pages} cached pages"), pages * PAGE_BYTES);
    }

    fn running_bytes(&self) -> u64 {
        let bytes = self.running.iter().map(|(_, bytes)| *bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// What takes most.
    fn largest(&self) -> (&str, u64) {
        let largest = self.running.iter().max_by_key(|(_, bytes)| *bytes);
        largest.map_or(("", 0), |(what, bytes)| (what, *bytes))
    }
}

/// Refuses experiments of which `parallel` at a time take more memory than
/// [`BYTES_MAX`].
///
/// # Errors
/// Says what takes most; about `jobs` if fewer at a time would do.
pub fn check(all: &[Estimate], parallel: usize) -> Result<(), ExperimentError> {
    let fail = |what: String| {
        Err(ExperimentError::new(format!(
            "{what}; at most {}",
            gib(BYTES_MAX)
        )))
    };
    let mut running: Vec<&Estimate> = all.iter().collect();
    running.sort_by_key(|e| std::cmp::Reverse(e.running_bytes()));
    running.truncate(parallel.max(1));
    let Some(largest) = running.first() else {
        return Ok(());
    };
    let (what, bytes) = largest.largest();
    if largest.running_bytes() > BYTES_MAX {
        return fail(format!(
            "the run would take about {} of memory, {} of it for {what}",
            gib(largest.running_bytes()),
            gib(bytes)
        ));
    }
    let at_once = running.iter().map(|e| e.running_bytes());
    let at_once = at_once.fold(0, u64::saturating_add);
    let kept = all.iter().map(|e| e.kept_bytes);
    let kept = kept.fold(0, u64::saturating_add);
    let total = at_once.saturating_add(kept);
    if total > BYTES_MAX {
        let hint = if at_once > kept {
            format!("{} of them run at a time", running.len())
        } else {
            "results are kept to the end: give several commands".to_owned()
        };
        let failed: Result<(), ExperimentError> = fail(format!(
            "{} experiments would take about {} of memory ({hint})",
            all.len(),
            gib(total)
        ));
        return failed.map_err(|e| if at_once > kept { e.about("jobs") } else { e });
    }
    Ok(())
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
