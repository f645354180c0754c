// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded queue events, fed into a simulated block layer.
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

mod before;
mod feeder;
mod recording;
mod trials;

pub use before::Before;
pub use feeder::{HandedOver, Process, Replay, Slept, replay};
pub use recording::{Dispatched, PlugsShow, Recorder, Recording};

#[cfg(test)]
mod tests;
