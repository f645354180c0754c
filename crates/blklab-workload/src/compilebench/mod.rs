// SPDX-License-Identifier: MIT OR Apache-2.0
//! compilebench 0.6: work with kernel source trees as system calls.
//!
//! ```text
//! shape of the trees ─► Trees ─► Bench: which operation next ─► Call, Call, …
//! ```
//!
//! [`shape`] holds the recorded shape of the trees of Linux 2.6.20 and 2.6.21,
//! [`calls`] what an operation does to a tree, [`mod@bench`] the phases of a run
//! and its random choices, [`rates`] what it prints.
//!
//! Source: compilebench 0.6 (C. Mason) as described. Left out: names (only
//! their lengths are known): where a filesystem hashes them, it hashes a number
//! that stands for them. The random numbers are not Python's.

pub mod bench;
pub mod calls;
pub mod rates;
pub mod shape;

#[cfg(test)]
mod tests;
