// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random experiments on the models and on a real kernel: do both do the same?
//!
//! ```text
//! seed ── draw ─► Case ─┬─► sim ────► events, figures ─┐
//!                       └─► kernel ─► events, figures ─┴─► Compared ─► Totals
//!                                                           │
//!                                       differs ── shrink ──┴─► Case, kept as a file
//! ```
//!
//! A [`Case`] is an experiment in rows, so that one of them can be left out: what differs
//! is made smaller as long as it differs in the same way. Both targets have the same device
//! model, one processor and the same prices of its time; what they do not share is the
//! block layer, its scheduler and how fio is run. Jobs begin on the models when they did on
//! the kernel (`starts`).

mod case;
mod draw;
mod given;
mod keep;
mod pair;
mod shrink;
mod starts;
mod totals;

#[cfg(test)]
mod tests;

pub use case::{Case, Row};
pub use draw::{Wanted, draw};
pub use given::Given;
pub use keep::{Kept, keep};
pub use pair::{Compared, FigurePair, Pair, Verdict};
pub use shrink::{RUNS_MAX, shrink};
pub use totals::{KindCount, Totals, totals};
