// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded traces, re-enacted: what each request of a real kernel waited for, as
//! the model of that kernel says.
//!
//! ```text
//! trace ─► Survey ─► Stack ──────────┐
//!   │     (can it be done? depth)    ▼
//!   └────► ReEnactment: sim::replay ─► dispatches ─┬─► Agreement
//!               (checked events)    └─► decisions ─┴─► Account: reasons
//! ```
//!
//! Recorded bios come at their recorded times and recorded commands end at theirs;
//! the modelled block layer and scheduler decide when each command goes to the
//! device. As far as they decide as the recorded kernel did ([`Agreement`]), their
//! own account of each decision ([`blklab_trace::WaitLabels`]) is the reason why the
//! recorded request waited. Where they decide otherwise nothing is said.
//!
//! A trace is read twice: a [`Survey`] finds out whether it can be re-enacted and
//! what nobody said about its machine, then a [`ReEnactment`] does it. Memory is
//! bound by what is in flight.

mod account;
mod again;
mod agree;
mod asking;
mod commands;
mod decisions;
mod open;
mod processes;
mod reason;
mod report;
mod stack;
mod survey;
mod vet;

pub use again::{Options, ReEnactment};
pub use agree::{Agreement, Difference};
pub use decisions::{Decision, Decisions};
pub use processes::Processes;
pub use reason::{Cause, Reason};
pub use report::{Explained, ReEnacted, Tried, Waiting};
pub use stack::{Stack, candidates};
pub use survey::{DiskSurvey, Survey};
