// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of the Model Context Protocol over standard input and output: what assistants may ask
//! of blklab.
//!
//! ```text
//! assistant ─► tools/call ─► Call ─► the command, as a process ─► its JSON ─► structured content
//! ```
//!
//! It analyses nothing itself. Each call runs the command, so that an answer is the JSON that the
//! command gives to programs, and an error has the command's words. What arguments a [`Call`]
//! makes is said by whoever knows the command's options ([`Program`]).

mod calls;
mod server;

pub use calls::{Call, RunCall, SlowCall, StatsCall, WhatIfCall, WhyCall};
pub use server::{Program, serve};
