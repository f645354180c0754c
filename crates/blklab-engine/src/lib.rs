// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time: the agenda of what is due, jiffy timers, random streams.
//!
//! The engine knows four kinds of things that can be due, in the order in
//! which they run when they are due at the same instant:
//!
//! 1. timers (the tick interrupt comes before everything else),
//! 2. device wake-ups (completion interrupts),
//! 3. ready work: deferred work of the block layer and runnable tasks, in the
//!    order in which they became ready; a task whose sleep ends becomes ready
//!    when the clock reaches that instant.
//!
//! Inside one kind, order of time, then order of request. So a run is a
//! function of the experiment alone.

mod agenda;
mod random;
mod timers;

pub use agenda::{Agenda, DeviceId, Due, WorkId};
pub use random::Stream;
pub use timers::{TimerId, Timers};

#[cfg(test)]
mod tests;
