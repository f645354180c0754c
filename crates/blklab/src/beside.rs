// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run compares with that of the same experiment on another target.

use blklab_analysis::divergence::{Comparison, PhaseError};
use serde::Serialize;

/// Events of a run that are kept for this, at most: 256 MB.
pub const EVENTS_MAX: usize = 4_000_000;

/// A run beside that of the same experiment on the first target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The two targets: the first, and its own.
    pub targets: [String; 2],
    /// Dispatches, device by device.
    pub orders: Vec<Comparison>,
    /// Mean times of the phases that both have.
    pub phases: Vec<PhaseError>,
    /// Whether events were left out: there were more than [`EVENTS_MAX`].
    pub cut: bool,
}
