// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a trace to the processes that made it, so that they can be run again.
//!
//! ```text
//! events ─► Collector ─► bios of each process ─► Recorded
//!              │              │                     ├─ at:    the recorded times (open loop)
//!          lifecycles     plugs, loops              └─ room, think: what each bio waited for
//!                                                                 (closed loop)
//! ```
//!
//! A trace says when a bio was queued (Q), not why then. Two answers:
//!
//! - *Open loop*: at the recorded time, whatever the device does.
//! - *Closed loop*: a process submits a bio when fewer than [`Bio::room`] of its bios
//!   are under way, [`Bio::think`] after that. Which of its bios a process waits for,
//!   and how many it keeps under way, shows in the trace: see [`Waiting`].
//!
//! Whether bios were submitted under one plug is read from P, U and D events, and where a
//! trace has none of them inferred from bios that were queued at once.
//!
//! What the device does is inferred, too: [`Recorded::device`].

mod alter;
mod batch;
mod collect;
mod depth;
pub mod device;
pub mod job;
mod link;
mod loops;
mod recorded;
mod seen;
#[cfg(test)]
mod tests;

pub use collect::Collector;
pub use depth::most_under_way;
pub use link::link;
pub use recorded::{BIOS_MAX, Bio, CannotRepeat, Link, Marks, Process, Recorded, Waiting};
