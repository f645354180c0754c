// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to set so that a job waits less: what experts would try is tried in the models, ranked
//! by the figure that counts, with the price that others pay, and said in the form in which
//! people write it.
//!
//! ```text
//! experiment ─► as it is ─► goal, bounds ─► single steps ─► pairs, triples ─► other seeds
//!                                                                                 │
//!     what to paste · what it costs · what cannot help ◄── parts of the best ◄────┘
//! ```
//!
//! Each round runs less: all single steps once, combinations of those that help, the most
//! promising of all with other random numbers once more, and the best few of these again, until
//! an interval parts them from no change at all. Of the best what adds nothing is left out.

mod answer;
mod bench;
mod candidates;
mod finals;
mod goal;
mod grid;
mod jobs;
mod judge;
mod prune;
mod search;
mod step;

pub use answer::{Confirmed, Grid, LeftOut, Price, Pruned, Recommendation, Tried};
pub use goal::{Goal, Keep};
pub use search::recommend;
pub use step::Paste;

use blklab::targets::Planner;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What is to become better; none: the 99.9th percentile of the job that is worst off, of
    /// its syncs where jobs sync.
    pub goal: Option<Goal>,
    /// What must not become worse; none: all others keep half of their bandwidth.
    pub keeps: Vec<Keep>,
    /// Runs at most, [`RUNS_MIN`] at least.
    pub runs_max: usize,
    /// With how many seeds the best are run, 2 or more.
    pub repetitions: u32,
    /// All combinations of up to so many things are run, too.
    pub exhaustive: Option<u8>,
    /// The target on which the answer is run, too.
    pub confirm: Option<String>,
}

/// Fewer runs find nothing.
pub const RUNS_MIN: usize = 20;

/// What it runs with.
pub struct How<'a> {
    /// Who plans runs.
    pub planner: &'a Planner,
    /// Runs side by side.
    pub threads: usize,
    /// Set from outside to end it early.
    pub stop: Arc<AtomicBool>,
    /// Gets the number of runs that have ended, and of those known to be wanted.
    pub told: &'a (dyn Fn(usize, usize) + Sync),
}
