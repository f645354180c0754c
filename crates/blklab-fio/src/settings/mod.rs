// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of one job as typed values.
//!
//! A [`Settings`] starts with fio 3.33's built-in defaults; sections change
//! it line by line, and the fix-ups that follow parsing replace the values
//! that depend on others (so in a finished job `min_bs` holds the smallest
//! length even if only `bs` was given).
//!
//! Units: bytes, microseconds unless the name says otherwise. Triples are
//! indexed by [`Dir`].

use crate::affinity::Affinity;

mod choice;
mod replay;
mod steady;

pub use choice::*;
pub use replay::{ReplayOptions, Skip};
use std::collections::{BTreeMap, BTreeSet};
pub use steady::{SteadyMeasure, SteadyOptions};

/// Everything that shapes a job's I/O.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names of the options given, by this section or its template.
    pub given: BTreeSet<&'static str>,
    /// Options that change only what is reported, as written (`1` for a flag
    /// without value).
    pub reporting: BTreeMap<&'static str, String>,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// Displayed name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Section whose jobs must end first.
    pub wait_for: Option<String>,
    /// Files named by `filename`, with their directory.
    pub file_names: Vec<String>,
    /// Directories, separated by colons.
    pub directory: Option<String>,
    /// How files are named otherwise.
    pub filename_format: String,
    /// Number of files.
    pub nrfiles: u32,
    /// How many may be open at once.
    pub openfiles: u32,
    /// How the next file is chosen.
    pub file_service: FileService,
    /// How many I/Os a chosen file gets.
    pub file_service_count: u32,
    /// Smallest and largest file size; 0 for none.
    pub filesize: (u64, u64),
    /// Start behind the end of existing files.
    pub file_append: bool,
    /// How space is allocated in advance.
    pub fallocate: Fallocate,
    /// All files are laid out before any job starts.
    pub create_serialize: bool,
    /// fsync after laying out.
    pub create_fsync: bool,
    /// Files are created when they are opened.
    pub create_on_open: bool,
    /// End after laying out.
    pub create_only: bool,
    /// Read files before the run.
    pub pre_read: bool,
    /// Remove files at the end.
    pub unlink: bool,

    /// What the job does.
    pub rw: Pattern,
    /// N of `randX:N`.
    pub sequencer_count: u32,
    /// Added to each sequential offset: SIZE of `rw=X:SIZE`.
    pub stride: i64,
    /// What happens between steps.
    pub sequencer: Sequencer,
    /// Percentage of reads and of writes in a mixture.
    pub rwmix: [u32; 2],
    /// Percentage of random offsets in a random job.
    pub percentage_random: PerDir<u32>,

    /// Length, if neither range nor mixture is given.
    pub bs: PerDir<u64>,
    /// Smallest length; 0 until resolved.
    pub min_bs: PerDir<u64>,
    /// Largest length; 0 until resolved.
    pub max_bs: PerDir<u64>,
    /// Alignment of random offsets; 0 until resolved.
    pub ba: PerDir<u64>,
    /// Mixtures of lengths, by share ascending.
    pub bssplit: PerDir<Vec<SizeSplit>>,
    /// Lengths need not be multiples of the smallest.
    pub bs_unaligned: bool,
    /// Block sizes are for sequential and random instead of read and write.
    pub bs_is_seq_rand: bool,

    /// Bytes over all files; 0 for what the files hold.
    pub size: u64,
    /// Percentage of the files; 0 or 100 for all.
    pub size_percent: u32,
    /// Bytes to transfer; 0 for `size`.
    pub io_size: u64,
    /// The same in percent of the files.
    pub io_size_percent: u32,
    /// First byte.
    pub offset: u64,
    /// The same in percent of the file.
    pub offset_percent: u32,
    /// Alignment of an offset in percent.
    pub offset_align: u32,
    /// Added per clone.
    pub offset_increment: u64,
    /// The same in percent of the file.
    pub offset_increment_percent: u32,
    /// End after so many I/Os; 0 for no limit.
    pub number_ios: u64,
    /// Passes.
    pub loops: u32,
    /// Write until the device is full.
    pub fill_device: bool,

    /// Each run draws the same numbers.
    pub randrepeat: bool,
    /// Seed.
    pub randseed: u64,
    /// Every generator is seeded by thread number alone.
    pub allrandrepeat: bool,
    /// No record of which blocks were touched.
    pub norandommap: bool,
    /// Do without such a record if it would be too large.
    pub softrandommap: bool,
    /// Source of random blocks.
    pub random_generator: Generator,
    /// How blocks are chosen.
    pub distribution: Distribution,

    /// Engine name.
    pub ioengine: String,
    /// Requests in flight.
    pub iodepth: u32,
    /// Requests per submission.
    pub iodepth_batch: u32,
    /// Completions to wait for.
    pub iodepth_batch_complete_min: u32,
    /// Completions to take at most.
    pub iodepth_batch_complete_max: u32,
    /// Depth to which a full queue drains.
    pub iodepth_low: u32,

    /// O_DIRECT.
    pub direct: bool,
    /// Atomic writes.
    pub atomic: bool,
    /// O_SYNC or O_DSYNC.
    pub sync: SyncWrites,
    /// Writers lay files out first.
    pub overwrite: bool,
    /// Drop cached pages when a file is opened.
    pub invalidate: bool,
    /// Advice given when a file is opened.
    pub fadvise_hint: FadviseHint,
    /// fsync after so many writes.
    pub fsync: u32,
    /// fdatasync after so many writes.
    pub fdatasync: u32,
    /// sync_file_range after so many writes.
    pub sync_file_range: u32,
    /// Flags of that call: 1 wait before, 2 write, 4 wait after.
    pub sync_file_range_flags: u32,
    /// fsync at the end.
    pub end_fsync: bool,
    /// fsync when a file is closed.
    pub fsync_on_close: bool,

    /// Clones, the first included.
    pub numjobs: u32,
    /// Earliest and latest start.
    pub startdelay_us: (u64, u64),
    /// Longest run; 0 for no limit.
    pub runtime_us: u64,
    /// Repeat until `runtime_us`.
    pub time_based: bool,
    /// Time before anything counts.
    pub ramp_time_us: u64,
    /// Wait for all earlier jobs.
    pub stonewall: bool,
    /// Start a new group.
    pub new_group: bool,
    /// A thread instead of a process.
    pub thread: bool,
    /// End others when this job ends.
    pub exitall: bool,
    /// Which others.
    pub exit_what: ExitWhat,
    /// End others when this job fails.
    pub exitall_on_error: bool,
    /// Report the group as one.
    pub group_reporting: bool,

    /// Pause.
    pub thinktime_us: u32,
    /// Part of it spent spinning.
    pub thinktime_spin_us: u32,
    /// I/Os between pauses.
    pub thinktime_blocks: u32,
    /// What counts as an I/O there.
    pub thinktime_count: ThinkCount,
    /// Time between pauses; 0 for none.
    pub thinktime_iotime_us: u32,
    /// Bytes per second; 0 for no limit.
    pub rate: PerDir<u64>,
    /// Lowest rate the job survives.
    pub rate_min: PerDir<u64>,
    /// I/Os per second; 0 for no limit.
    pub rate_iops: PerDir<u32>,
    /// Lowest number the job survives.
    pub rate_iops_min: PerDir<u32>,
    /// How the rate is spread.
    pub rate_process: RateProcess,
    /// Interval of checks of the lowest rates, milliseconds.
    pub rate_cycle_ms: u32,
    /// Catch up after pauses.
    pub rate_ignore_thinktime: bool,
    /// The job fails beyond this latency; 0 for none.
    pub max_latency_us: PerDir<u64>,
    /// Find the depth that keeps this latency; 0 for none.
    pub latency_target_us: u64,
    /// Time over which it is judged.
    pub latency_window_us: u64,
    /// Share of I/Os that must keep it.
    pub latency_percentile: f64,
    /// Go on adjusting.
    pub latency_run: bool,
    /// Errors the job survives.
    pub continue_on_error: ContinueOnError,
    /// Error numbers that it survives in place of those it survives by default:
    /// of reads, of writes, of verification.
    pub ignore_error: PerDir<Vec<i32>>,
    /// Tell of errors that the job survives.
    pub error_dump: bool,

    /// Contents are verified.
    pub verify: bool,
    /// Blocks are read back after writing.
    pub do_verify: bool,
    /// Read back after so many writes; 0 for at the end.
    pub verify_backlog: u64,
    /// How many then; 0 for `verify_backlog`.
    pub verify_backlog_batch: u32,

    /// Zones.
    pub zonemode: ZoneMode,
    /// Bytes transferred per zone.
    pub zonesize: u64,
    /// Size of a zone.
    pub zonerange: u64,
    /// Bytes between zones.
    pub zoneskip: u64,

    /// I/O priority level, if given.
    pub prio: Option<u32>,
    /// I/O priority class, if given: 0 none, 1 real time, 2 best effort, 3 idle.
    pub prioclass: Option<u32>,
    /// CPU nice value.
    pub nice: i32,
    /// Processors it may run on.
    pub affinity: Affinity,
    /// Control group.
    pub cgroup: Option<String>,
    /// Weight that is written to it.
    pub cgroup_weight: Option<u32>,
    /// Priorities of single requests.
    pub cmdprio: CmdPrio,
    /// Scheduler to select before the job starts.
    pub ioscheduler: Option<String>,
    /// Polled completions.
    pub hipri: bool,
    /// Submission by a kernel thread.
    pub sqthread_poll: bool,
    /// Every so many requests go to a worker at once.
    pub force_async: u32,
    /// RWF_NOWAIT.
    pub nowait: bool,
    /// File of the log of I/Os to write.
    pub write_iolog: Option<String>,
    /// Submission by worker threads, one I/O each (`io_submit_mode=offload`).
    pub offload: bool,
    /// I/Os that overlap one in flight wait.
    pub serialize_overlap: bool,
    /// Weight in its flow; 0 for none.
    pub flow: u32,
    /// Which flow.
    pub flow_id: u32,
    /// Sleep of a job that is ahead of its share.
    pub flow_sleep_us: u32,
    /// Recorded I/O to replay instead of any of its own.
    pub replay: ReplayOptions,
    /// The steady state at which the job ends.
    pub steady: SteadyOptions,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            given: BTreeSet::new(),
            reporting: BTreeMap::new(),
            kb_base: 1024,
            name: None,
            description: None,
            wait_for: None,
            file_names: Vec::new(),
            directory: None,
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            nrfiles: 1,
            openfiles: 0,
            file_service: FileService::RoundRobin,
            file_service_count: 1,
            filesize: (0, 0),
            file_append: false,
            fallocate: Fallocate::Native,
            create_serialize: true,
            create_fsync: true,
            create_on_open: false,
            create_only: false,
            pre_read: false,
            unlink: false,
            rw: Pattern {
                reads: true,
                ..Pattern::default()
            },
            sequencer_count: 1,
            stride: 0,
            sequencer: Sequencer::Sequential,
            rwmix: [50, 50],
            percentage_random: [100; 3],
            bs: [4096; 3],
            min_bs: [0; 3],
            max_bs: [0; 3],
            ba: [0; 3],
            bssplit: [Vec::new(), Vec::new(), Vec::new()],
            bs_unaligned: false,
            bs_is_seq_rand: false,
            size: 0,
            size_percent: 0,
            io_size: 0,
            io_size_percent: 0,
            offset: 0,
            offset_percent: 0,
            offset_align: 0,
            offset_increment: 0,
            offset_increment_percent: 0,
            number_ios: 0,
            loops: 1,
            fill_device: false,
            randrepeat: true,
            randseed: 0x89,
            allrandrepeat: false,
            norandommap: false,
            softrandommap: false,
            random_generator: Generator::Tausworthe,
            distribution: Distribution::Random,
            ioengine: "psync".to_owned(),
            iodepth: 1,
            iodepth_batch: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: 0,
            iodepth_low: 0,
            direct: false,
            atomic: false,
            sync: SyncWrites::None,
            overwrite: false,
            invalidate: true,
            fadvise_hint: FadviseHint::ByPattern,
            fsync: 0,
            fdatasync: 0,
            sync_file_range: 0,
            sync_file_range_flags: 0,
            end_fsync: false,
            fsync_on_close: false,
            numjobs: 1,
            startdelay_us: (0, 0),
            runtime_us: 0,
            time_based: false,
            ramp_time_us: 0,
            stonewall: false,
            new_group: false,
            thread: false,
            exitall: false,
            exit_what: ExitWhat::Group,
            exitall_on_error: false,
            group_reporting: false,
            thinktime_us: 0,
            thinktime_spin_us: 0,
            thinktime_blocks: 1,
            thinktime_count: ThinkCount::Complete,
            thinktime_iotime_us: 0,
            rate: [0; 3],
            rate_min: [0; 3],
            rate_iops: [0; 3],
            rate_iops_min: [0; 3],
            rate_process: RateProcess::Linear,
            rate_cycle_ms: 1000,
            rate_ignore_thinktime: false,
            max_latency_us: [0; 3],
            latency_target_us: 0,
            latency_window_us: 0,
            latency_percentile: 100.0,
            latency_run: false,
            continue_on_error: ContinueOnError::default(),
            ignore_error: [Vec::new(), Vec::new(), Vec::new()],
            error_dump: false,
            verify: false,
            do_verify: true,
            verify_backlog: 0,
            verify_backlog_batch: 0,
            zonemode: ZoneMode::None,
            zonesize: 0,
            zonerange: 0,
            zoneskip: 0,
            prio: None,
            prioclass: None,
            nice: 0,
            affinity: Affinity::default(),
            cgroup: None,
            cgroup_weight: None,
            cmdprio: CmdPrio::default(),
            ioscheduler: None,
            hipri: false,
            sqthread_poll: false,
            force_async: 0,
            nowait: false,
            write_iolog: None,
            offload: false,
            serialize_overlap: false,
            flow: 0,
            flow_id: 0,
            flow_sleep_us: 0,
            replay: ReplayOptions::default(),
            steady: SteadyOptions::default(),
        }
    }
}

impl Settings {
    /// Whether an option was given, by its first name.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    /// Smallest length of any direction (fio's `td_min_bs` and `rw_min_bs`).
    pub fn smallest_bs(&self) -> u64 {
        self.min_bs.into_iter().min().unwrap_or(0)
    }

    /// Largest length of any direction.
    pub fn largest_bs(&self) -> u64 {
        self.max_bs.into_iter().max().unwrap_or(0)
    }

    /// Whether any direction has a rate to keep or to reach.
    pub fn is_rated(&self) -> bool {
        let bytes = self
            .rate
            .iter()
            .chain(&self.rate_min)
            .any(|&rate| rate != 0);
        bytes
            || self
                .rate_iops
                .iter()
                .chain(&self.rate_iops_min)
                .any(|&rate| rate != 0)
    }
}
