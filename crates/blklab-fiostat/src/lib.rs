// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio 3.33 measures about its jobs, and how it prints it.
//!
//! Three steps, each usable alone:
//!
//! 1. [`JobStats`] is the statistics side of one fio thread. Whoever runs the
//!    job (here: a simulation) tells it about every submission and completion.
//! 2. [`FioRun`] holds the finished threads of one run. [`FioRun::result`]
//!    merges them the way fio's `group_reporting` and `unified_rw_reporting` do.
//! 3. [`FioResult`] is the plain outcome, and [`FioResult::render`] prints it as
//!    `normal`, `json`, `json+`, `terse` or `csv` text.
//!
//! Source: behaviour of the fio 3.33 binary, its manual page, and `stat.c`,
//! `stat.h`, `iolog.c` of axboe/fio for facts a black box does not show.
//! Where fio prints `-nan` (terse, an entry without I/O; a slope of one
//! measurement) this prints 0. Left out: `block_error_percentiles`, cache-hit counts,
//! compressed logs, and client/server mode.
//!
//! Units: latencies in nanoseconds, run times in milliseconds, amounts in
//! bytes. Times handed in are nanoseconds of one clock that never goes back.

mod completion;
mod disk_util;
mod dist;
mod hist;
mod hist_log;
mod io_stat;
mod job_info;
mod job_logs;
mod json;
mod json_read;
mod json_report;
mod log;
mod normal;
mod normal_group;
mod preamble;
mod rank;
mod record;
mod render;
mod result;
mod sampler;
mod scaled;
mod stat_options;
mod steady;
mod terse;
mod thread_stat;
mod utc;

pub use completion::Completion;
pub use disk_util::{DiskCounters, DiskUtil};
pub use dist::{DepthMap, LatDist};
pub use hist::{BUCKETS, LatencyHist};
pub use hist_log::{HistLog, HistRow};
pub use io_stat::IoStat;
pub use job_info::{JobInfo, LatencyTarget, PercentileOptions, UnifiedRw, Units};
pub use job_logs::JobLogs;
pub use json_read::{Printed, PrintedDir, ReadResult};
pub use log::{IoLog, LogKind, LogOptions, LogRow, LogWindow, log_file_name};
pub use preamble::{JobHeader, preamble};
pub use record::JobStats;
pub use render::{Format, ParseFormatError};
pub use result::{Entry, FioResult, FioRun, GroupDir, GroupStats, JobRecord};
pub use stat_options::StatOptions;
pub use steady::{SteadyCriterion, SteadyRate, SteadySample, SteadyState};
pub use terse::TerseVersion;
pub use thread_stat::{Ddir, DirStat, Latency, PrioStat, ThreadStat};
