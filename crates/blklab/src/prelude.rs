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

pub use crate::analysis::{StatsCollector, TraceStats};
pub use crate::experiment::{DeviceSpec, Experiment, Source, Workload};
pub use crate::findings::Report;
pub use crate::fio::{Ddir, ThreadStat};
pub use crate::kernel::KernelVersion;
pub use crate::matrix::{Cell, Overrides};
pub use crate::metric::{self, Metric, Numbers};
pub use crate::repeat::Repeat;
pub use crate::run::{RunOptions, RunOutput};
pub use crate::run_directory::RunDir;
pub use crate::scheduler::Schedulers;
pub use crate::targets::{Plan, Planner, Sim, Target};
pub use crate::trace::{Action, Actions, Event, TraceFile, TraceSink, TraceSource};
pub use crate::types::{Dev, Error, ErrorKind, Span, Time};
