// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab, a laboratory for Linux block-I/O latency.
//!
//! The facade: load an [`Experiment`], run it, report what came of it.

pub mod csv_table;
pub mod disk_stats;
pub mod failures;
pub mod job;
pub mod list;
pub mod matrix;
pub mod memory;
pub mod meter;
pub mod outputs;
pub mod parallel;
mod recording;
mod replay_logs;
pub mod report;
pub mod run;
pub mod run_directory;
pub mod same;
pub mod scheduler;
pub mod summary;
mod surroundings;
pub mod trace_file;
pub mod watch;
pub mod workload;

pub use blklab_analysis::collect::StatsCollector;
pub use blklab_analysis::stats::TraceStats;
pub use blklab_analysis::text::{TextOptions, render as render_stats};
pub use blklab_experiment::{Experiment, ExperimentError, Published, Source, load, no_such, parse};
pub use blklab_formats::ReadCounts;
pub use blklab_trace::{Action, Event, Rwbs, TraceSource};
pub use blklab_types::{one_line, shown};
pub use surroundings::RealSurroundings;
