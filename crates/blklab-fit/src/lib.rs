// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of a device model from measurements of a drive.
//!
//! ```text
//! fio's results ─► cells ─► least squares over logarithms of percentiles ─► parameters
//!                    └────► cells held out ─► the error of what is predicted
//! ```
//!
//! A [`Cell`] is a load with what was measured of it: commands per second and percentiles of
//! completion latency. The [`fit`](fit()) runs the loads straight against a flash drive, moves the
//! parameters until what comes out is as near as it gets, and says which of them the
//! measurements do not tell. It is deterministic: the same measurements give the same
//! parameters, however many threads there are.

mod bench;
mod cell;
mod certainty;
mod counts;
mod descent;
mod device_file;
mod drive;
mod facts;
mod fio;
mod fit;
mod iocost;
mod jobs;
mod levenberg;
mod load;
mod matrix;
mod options;
mod params;
mod plan;
mod recording;
mod search;
mod squares;

#[cfg(test)]
mod tests;

pub use bench::Figure;
pub use cell::{Cell, HostTimes, Seen, State, Stream};
pub use device_file::{Line, device_file};
pub use drive::Drive;
pub use facts::parse as parse_facts;
pub use fio::{Measured, WAKE_NS, parse as parse_fio};
pub use fit::{Fit, FitOptions, Fitted, Judged, fit, judge};
pub use iocost::{is_iocost, parse_iocost};
pub use jobs::{JobOptions, JobText, jobs};
pub use recording::{Kind, RecordedFit, fit_recording};
