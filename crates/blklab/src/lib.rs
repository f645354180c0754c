// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab, a laboratory for Linux block-I/O latency, as a library.
//!
//! An [`Experiment`] is a workload, a kernel's block stack and a device, named in plain
//! data. A [`Planner`] has the [`Catalogue`] of models that it chooses from, checks it once
//! and makes a [`Plan`] of it for a [`Target`], of which [`Sim`] is the first.
//! [`run::run`] runs a plan, event by event and the same each time, and gives a
//! [`run::RunOutput`]: fio's results of each job, statistics of the trace, counters of the
//! disks. [`metric`] names every number that is made of it.
//!
//! ```
//! use blklab::experiment::{Experiment, Workload};
//! use blklab::fio::Ddir;
//! use blklab::metric::{self, Numbers};
//! use blklab::run::{RunOptions, run};
//! use blklab::targets::{Planner, Sim};
//!
//! # fn main() -> Result<(), blklab::types::Error> {
//! let job = "[readers]\nrw=randread\ndirect=1\nsize=64m\nio_size=64k\nnumjobs=2\n";
//! let workload = Workload::Fio { name: "readers.fio".to_owned(), text: job.to_owned() };
//! let planner = Planner::new(Sim::default());
//! let mut experiment = Experiment::new("readers", workload);
//! experiment.choose_kernel("2.6.28".parse()?, planner.catalogue());
//! experiment.choose_scheduler("cfq", planner.catalogue())?;
//!
//! let plan = planner.plan(&experiment)?;
//! let output = run(&plan, &RunOptions::default())?;
//! let reads = Numbers::new(&output.jobs, Some(Ddir::Read));
//! assert_eq!(reads.jobs, 2);
//! let p99_ns = metric::named("clat_p99").and_then(|m| m.of_jobs(&reads)).expect("there are reads");
//! assert!(p99_ns > 1e6, "a disk takes milliseconds: {p99_ns}");
//!
//! // A run repeats, bit for bit.
//! let again = run(&plan, &RunOptions::default())?;
//! assert_eq!(again.digest, output.digest);
//! # Ok(())
//! # }
//! ```
//!
//! [`prelude`] has the names that most programs need; everything else is reached by its
//! module.
//!
//! | to | see |
//! |---|---|
//! | read an experiment, job file or scenario | [`experiment`] |
//! | change a kernel, scheduler, device or setting | [`Experiment::choose_kernel`], [`Experiment::choose_scheduler`], [`Experiment::choose_device`], [`Experiment::set`] |
//! | know what there is to choose from | [`list`] |
//! | plan it and know what it needs; choose a target | [`targets`] |
//! | run it; write a trace; stop early | [`run`] |
//! | run every combination of some settings, on all cores | [`matrix`], [`parallel`] |
//! | read single numbers; get all of them as CSV or fio's JSON | [`metric`], [`csv_table`], [`report`] |
//! | read a trace, of a kernel too | [`trace`], [`analysis`] |
//! | have its events or I/Os as columns (feature `arrow`) | `tables` |
//! | ask what went wrong in it | [`why`], [`findings`] |
//! | divide what fio was told by it | [`told`] |
//! | know what each request of a trace waited for | [`explain`] |
//! | ask what a change would have made of it | [`whatif`] |
//! | repeat runs until a metric is known well enough | [`repeat`] |
//! | compare runs, with intervals and verdicts | [`compare`] |
//! | know which change of the kernel made a difference | [`kernel_changes`] |
//! | make a fio job of a trace | [`to_fio`] |
//! | write a scheduler | [`scheduler`] |
//! | keep all that belongs to a run | [`run_directory`] |
//!
//! Four programs in `examples/` show the first steps: `run_job_file`,
//! `matrix_percentiles`, `metrics_alone`, `write_scheduler`. Errors are one line each: what is wrong,
//! where, and what would be right.
//!
//! [`Experiment`]: experiment::Experiment
//! [`Experiment::choose_kernel`]: experiment::Experiment::choose_kernel
//! [`Experiment::choose_scheduler`]: experiment::Experiment::choose_scheduler
//! [`Experiment::choose_device`]: experiment::Experiment::choose_device
//! [`Experiment::set`]: experiment::Experiment::set
//! [`Catalogue`]: experiment::Catalogue
//! [`Planner`]: targets::Planner
//! [`Plan`]: targets::Plan
//! [`Target`]: targets::Target
//! [`Sim`]: targets::Sim

pub mod beside;
pub mod claims;
pub mod compare;
pub mod counters;
pub mod csv_table;
pub mod disk_stats;
pub mod explain;
pub mod failures;
pub mod figure;
pub mod fingerprint;
pub mod job_rows;
pub mod kernel_changes;
pub mod life_totals;
pub mod list;
pub mod matrix;
pub mod meter;
pub mod metric;
pub mod outputs;
pub mod parallel;
pub mod prelude;
pub mod record;
mod relay;
pub mod repeat;
mod replay_logs;
pub mod report;
pub mod run;
pub mod run_directory;
pub mod same;
pub mod scheduler;
pub mod side_by_side;
pub mod statistics;
pub mod summary;
#[cfg(feature = "arrow")]
pub mod tables;
pub mod targets;
pub mod to_fio;
pub mod told;
mod trace_copy;
pub mod trace_file;
pub mod trial;
pub mod verdict;
pub mod whatif;
pub mod why;
pub mod workload;

pub use blklab_analysis::findings;

/// Statistics of traces.
pub mod analysis {
    pub use blklab_analysis::collect::StatsCollector;
    pub use blklab_analysis::spread::{Spread, middle};
    pub use blklab_analysis::stats::{Phases, ProcessStats, TraceStats};
    pub use blklab_analysis::text::{TextOptions, render};
    pub use blklab_analysis::{breakdown, common, divergence, lifecycle, names, scope, watch};
}

/// Experiments: plain data, the files that hold them, and what they choose from.
pub mod experiment {
    pub use blklab_experiment::{
        Catalogue, DM_KINDS, DeviceSpec, DmKind, DmLayer, DmParam, DmSpec, DmTakes, Experiment,
        Facts, FilesystemSpec, MdLevel, MdOptions, MdSpec, Models, Placement, Published,
        QueueFacts, SchedulerChoice, Setting, Source, Timing, TraceSpec, Variant, Workload,
        can_be_without, change_name, load, load_device, parse,
    };
}

/// fio's jobs and their results.
pub mod fio {
    pub use blklab_fio::job::Job;
    pub use blklab_fio::parse::JobFile;
    pub use blklab_fio::range::Ranges;
    pub use blklab_fio::run::Failure;
    pub use blklab_fiostat::{Ddir, FioResult, JobLogs, ThreadStat};
}

/// Releases of the kernel.
pub mod kernel {
    pub use blklab_kernel::KernelVersion;
}

/// Tables of sums in place of a trace, and what they show.
pub mod sums {
    pub use blklab_sums::{Reading, Shown, Subject, Sums, SumsKind, reading};
}

/// Trace events: what they are, where they come from and where they go.
pub mod trace {
    pub use crate::relay::send_all;
    pub use blklab_formats::{FormatError, ReadCounts, TraceFile};
    pub use blklab_trace::{
        Action, Actions, Digest, Event, NullSink, Rwbs, TraceHeader, TraceSink, TraceSource,
    };
}

/// Units, numbers and errors that everything shares.
pub mod types {
    pub use blklab_types::{
        Dev, Error, ErrorKind, Hz, Op, Pid, Place, Span, Time, no_such, one_line, shown, visible,
    };
}
