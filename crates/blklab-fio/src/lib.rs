// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio job files: parsed, expanded, and turned into the I/Os that fio 3.33 issues.
//!
//! ```text
//! text ─► parse ─► Job ─► range ─► JobRun ─► Step, Step, … ─► whoever has an engine and a clock
//!          │                          └──► workload: the same on an engine that takes no time
//!          └ option: the one table of all options
//! ```
//!
//! The sequence of I/Os (operation, offset, length, file, order of submission)
//! is fio's, bit by bit, for every job that does not depend on time; what does
//! depend on time follows the caller's clock. Source: fio 3.33 on x86-64 Linux
//! as its manual page describes it and as it behaves; the random generators,
//! distributions and the shift register cite their papers.
//!
//! Where fio 1.24 of 2009 differs and was measured, [`release`] says so.
//!
//! Left out: zoned devices, buffer contents, trims between verified
//! writes. Options for these are read, checked and noted.
//!
//! Nothing here reads a clock, a file, the environment or a global.

pub mod affinity;
pub mod dist;
pub mod engine;
pub mod errno;
pub mod error;
pub mod iolog;
pub mod job;
pub mod lfsr;
pub mod option;
pub mod parse;
pub mod randmap;
pub mod range;
pub mod release;
pub mod replay;
pub mod rng;
pub mod rng48;
pub mod run;
pub mod seeds;
pub mod settings;
pub mod workload;

mod apply;
mod assign;
mod expand;
mod io_op;
mod lists;
mod pattern;
mod suggest;
mod surroundings;
mod text;
mod value;
