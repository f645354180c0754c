// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment as a plain value: workload, block stack, device.
//!
//! [`load()`] reads an experiment file (TOML, or JSON with the same keys) or a
//! fio job file; [`Experiment::set`] applies one `KEY=VALUE`;
//! [`Experiment::check`] refuses what cannot be run. After that a run cannot
//! fail for a reason that lies in its input.

mod cgroup;
mod error;
mod experiment;
mod filesystem;
mod input;
mod load;
mod md;
mod raw;
mod save;
mod set;
pub mod settings;
mod trace;

pub use cgroup::Cgroup;
pub use error::{ExperimentError, no_such};
pub use experiment::{Described, DeviceSpec, Experiment, Published, Variant, Workload};
pub use filesystem::FilesystemSpec;
pub use input::{NAMED_BYTES_MAX, ReadFile, read_named};
pub use load::{FORMAT, Source, load, parse};
pub use md::MdSpec;
pub use settings::{Absent, QueueSettings, Setting, Vm, parse_size};
pub use trace::{Placement, Timing, TraceSpec};

#[cfg(test)]
mod tests;
