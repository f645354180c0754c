// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads that are no job files: explicit processes, and built-in scenarios.
//!
//! Processes are closed loops and timetables of bios, without files.
//!
//! They submit block I/O directly, as the measured cases do. A process is
//! data ([`Process`]); [`Cursor`] yields its bios one by one.

pub mod compilebench;
mod cursor;
mod process;
pub mod scenario;

pub use cursor::{Cursor, NextBio};
pub use process::{Class, Flag, Io, MixedOp, Process, Refill, Rw, ScriptOp, UnplugWhen};
