// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a simulated experiment takes at most, known before it runs.
//!
//! The sizes were measured on 64-bit Linux and are rounded up. What grows with
//! the time that a run takes is not in it: logs of jobs without `log_avg_msec`
//! take 40 bytes a line.

use blklab_experiment::{Experiment, Workload};
use blklab_fio::job::Job;
use blklab_fio::parse::JobFile;
use blklab_fio::range::{FileRange, find_ranges};
use blklab_fio::run::random_map_bytes;
use blklab_target::memory::Estimate;
use blklab_target::{Replay, Site, Work};

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

/// Of an experiment with this work.
pub(crate) fn estimate(e: &Experiment, work: Work<'_>, site: &Site) -> Estimate {
    let mut estimate = Estimate::default();
    estimate.keep(RESULT_BYTES);
    match work {
        Work::Processes => add_explicit(&mut estimate, e),
        Work::Jobs(jobs) => add_jobs(&mut estimate, e, jobs, site),
        Work::Trace(replay) => add_trace(&mut estimate, replay),
    }
    estimate.add("the machine".to_owned(), RUN_BYTES);
    estimate
}

fn add_explicit(estimate: &mut Estimate, e: &Experiment) {
    if let Workload::Processes(processes) = &e.workload {
        add_processes(estimate, processes.len() as u64);
    }
}

fn add_trace(estimate: &mut Estimate, replay: &Replay) {
    add_processes(estimate, replay.recorded.processes.len() as u64);
    // Experiments of a matrix share it.
    let nr_bios = replay.recorded.nr_bios();
    estimate.add(format!("{nr_bios} recorded bios"), nr_bios * BIO_BYTES);
}

fn add_processes(estimate: &mut Estimate, nr_processes: u64) {
    let bytes = nr_processes.saturating_mul(PROCESS_BYTES);
    estimate.add(format!("{nr_processes} processes"), bytes);
    estimate.keep(bytes);
}

fn add_jobs(estimate: &mut Estimate, e: &Experiment, jobs: &JobFile, site: &Site) {
    let mut records = Sum::default();
    let mut slots = Sum::default();
    let mut files = Sum::default();
    let mut maps = Sum::default();
    let mut cached = Sum::default();
    for job in &jobs.jobs {
        records.add(job, JOB_BYTES);
        let depth = u64::from(job.settings.iodepth);
        slots.add(job, depth.saturating_mul(SLOT_BYTES));
        files.add(job, (job.files.len() as u64).saturating_mul(FILE_BYTES));
        let Ok(ranges) = find_ranges(job, |name| site.file_state(name)) else {
            continue;
        };
        let sum = |bytes: &dyn Fn(&FileRange) -> u64| {
            let all = ranges.files.iter().map(bytes);
            all.fold(0, u64::saturating_add)
        };
        maps.add(job, sum(&|range| random_map_bytes(job, range)));
        cached.add(job, sum(&|range| range.length.min(range.real_size)));
    }
    estimate.keep(records.bytes);
    let nr_jobs = jobs.jobs.len();
    records.tell(estimate, format!("{nr_jobs} jobs"), &["numjobs"]);
    let nr_slots = slots.bytes / SLOT_BYTES;
    let what = format!("iodepth, {nr_slots} over all jobs");
    slots.tell(estimate, what, &["iodepth"]);
    let nr_files = files.bytes / FILE_BYTES;
    let what = format!("{nr_files} files");
    files.tell(estimate, what, &["nrfiles", "filename"]);
    let what = "the maps of blocks that random jobs have touched (norandommap=1 or \
                random_generator=lfsr do without)";
    maps.tell(estimate, what.to_owned(), &["size", "filesize"]);
    let memory = e.vm.memory_bytes(e.kernel);
    let pages = cached.bytes.min(memory) >> 12;
    cached.bytes = pages * PAGE_BYTES;
    let what = format!("{pages} cached pages");
    cached.tell(estimate, what, &["size", "filesize"]);
}

/// What all jobs take of one thing.
#[derive(Default)]
struct Sum<'a> {
    bytes: u64,
    /// The job that takes most, and how much.
    most: Option<(&'a Job, u64)>,
}

impl<'a> Sum<'a> {
    fn add(&mut self, job: &'a Job, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.most.is_none_or(|(_, most)| bytes > most) {
            self.most = Some((job, bytes));
        }
    }

    /// Adds it to an estimate, at the option that decides.
    fn tell(&self, estimate: &mut Estimate, what: String, options: &[&str]) {
        if let Some((job, _)) = self.most {
            estimate.add_at(job.place_of(options), what, self.bytes);
        }
    }
}
