// SPDX-License-Identifier: MIT OR Apache-2.0
//! What most programs need: an experiment, its run, its numbers, a trace and what is
//! wrong with it. Everything else stands in the modules.
//!
//! ```
//! use blklab::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! let kernel: KernelVersion = "6.1".parse()?;
//! assert!(!kernel.has_single_queue());
//! # Ok(())
//! # }
//! ```

pub use crate::findings::Report;
pub use crate::matrix::{Cell, Overrides};
pub use crate::metric::{self, Metric, Numbers};
pub use crate::repeat::Repeat;
pub use crate::run::{RunOptions, RunOutput};
pub use crate::run_directory::RunDir;
pub use crate::scheduler::Schedulers;
pub use crate::{
    Action, Actions, Ddir, Dev, DeviceSpec, Error, ErrorKind, Event, Experiment, KernelVersion,
    Plan, Planner, Sim, Source, Span, StatsCollector, Target, ThreadStat, Time, TraceFile,
    TraceSink, TraceSource, TraceStats, Workload,
};
