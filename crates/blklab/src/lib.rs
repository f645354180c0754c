// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab, a laboratory for Linux block-I/O latency.
//!
//! The facade: load an [`Experiment`], run it, compare it with a measurement.

pub mod conform;
pub mod list;
pub mod matrix;
pub mod parallel;
pub mod run;
pub mod summary;
mod surroundings;
pub mod trace_file;

pub use blklab_experiment::{Experiment, ExperimentError, load};
pub use surroundings::RealSurroundings;
