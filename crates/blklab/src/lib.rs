// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab, a laboratory for Linux block-I/O latency.
//!
//! The facade: load an [`Experiment`], run it, report what came of it.

pub mod csv_table;
pub mod disk_stats;
pub mod failures;
pub mod list;
pub mod matrix;
pub mod meter;
pub mod outputs;
pub mod parallel;
pub mod record;
mod replay_logs;
pub mod report;
pub mod run;
pub mod run_directory;
pub mod same;
pub mod scheduler;
pub mod summary;
pub mod trace_file;
pub mod watch;
pub mod workload;

pub use blklab_analysis::collect::StatsCollector;
pub use blklab_analysis::stats::TraceStats;
pub use blklab_analysis::text::{TextOptions, render as render_stats};
pub use blklab_experiment::{
    DeviceSpec, Experiment, ExperimentError, MdSpec, Published, Source, load, no_such, parse,
};
pub use blklab_formats::ReadCounts;
pub use blklab_sim::Sim;
pub use blklab_target::{
    Failed, JobLog, JobResult, JobText, Needs, Outcome, Plan, Planner, RealSurroundings, Site,
    Target, memory,
};
pub use blklab_trace::{Action, Event, Rwbs, TraceSource};
pub use blklab_types::{one_line, shown};
