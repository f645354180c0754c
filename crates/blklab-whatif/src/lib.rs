// SPDX-License-Identifier: MIT OR Apache-2.0
//! What would have been: the processes of a trace run again in the models, as they were
//! and with one thing changed.
//!
//! ```text
//! trace ─┬─► infer::Recorded: bios, loops, links ─┐
//!        ├─► Commands ─► Law: the device ─────────┼─► Stage ─► before ─┬─► Trial
//!        └─► findings ─► remedies ─► Change ──────┘      └──► after ───┘
//! ```
//!
//! The run without a change is compared with the recording first: a model that is far
//! from it says nothing about changes, and the report says so. Both loops are run: closed,
//! where a process submits when what it waits for has ended, for as long as it did in the
//! recording; open, where it submits at the recorded times.
//!
//! Where the trace is one of an experiment that is at hand, the experiment itself runs
//! again with each change ([`Rerun`]), and nothing has to be inferred.

mod change;
mod figures;
mod law;
mod programs;
mod remedy;
mod report;
mod rerun;
mod stage;

pub use change::{Change, changed, parse};
pub use figures::{COLUMNS, Column, Figures, figures};
pub use law::{Commands, Hints, Law};
pub use report::{Device, Row, Trial, Verdict, WhatIf, gain};
pub use rerun::{OwnRun, Rerun};
pub use stage::{Known, Stage};
