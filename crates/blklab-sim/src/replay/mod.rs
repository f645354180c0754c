// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded queue events, fed into a simulated multi-queue block layer.
//!
//! ```text
//! trace ─► Recorder ─► Recording ─┬─ bios, plugs, sleeps ─► queue ◄─► scheduler
//!                                 │                          │  ▲
//!                                 └─ completions ────────────┼──┘
//!                                             dispatches ◄───┘
//! ```
//!
//! Tasks and device are the recorded ones: bios come at their recorded times,
//! and commands complete at theirs. So whatever the order of the dispatches
//! differs in, was decided by the block layer or the scheduler.

mod feeder;
mod recording;

pub use feeder::{Process, replay};
pub use recording::{Dispatched, Recorder, Recording};
