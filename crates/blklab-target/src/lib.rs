// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment to what came of it, wherever it runs.
//!
//! ```text
//! Experiment ── Planner::plan ──► Plan ── Plan::run ──► Outcome
//!                   │                        │
//!                   └──── Target: survey, memory, rehearse, run
//! ```
//!
//! A [`Plan`] is an experiment whose job file is parsed and whose device, files
//! and settings were checked, once. Running takes a plan and nothing else, and
//! cannot fail for a reason that lies in its input. A [`Target`] says what jobs
//! find where it runs them, tries a plan out, and runs it; the results it gives
//! are types of this crate, and none of them belongs to it.

pub mod files;
mod jobs;
pub mod memory;
mod outcome;
mod plan;
mod recording;
mod replay;
mod report;
mod site;
mod surroundings;

pub use jobs::{JobLog, JobText, job_file_of, log_name, logs_of};
pub use outcome::{CgroupUse, Figure, Held, JobResult, Moved, Outcome, Pressure, Stall};
pub use plan::{Needs, Plan, Planner, Target, Work};
pub use replay::Replay;
pub use report::{job_info, stat_options};
pub use site::{Failed, Sinks, Site};
pub use surroundings::RealSurroundings;
