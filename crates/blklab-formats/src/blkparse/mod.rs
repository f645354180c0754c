// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that blkparse (blktrace tools 1.2.0) prints by default, byte for
//! byte, and reading it back.
//!
//! Each line begins with device, CPU, sequence, time, process, action and
//! flags, in fixed widths; what follows depends on the action:
//!
//! ```text
//!   8,0    1       34     0.004803090  4175  Q   W 18540712 + 8 [pdflush]
//! ```
//!
//! After the events comes a summary per CPU, their total, and the throughput.
//! Not written: forms of the user's own (`-f`), `-t` and `-s`.

pub(crate) mod columns;
mod line;
mod parse;
pub(crate) mod read;
mod summary;
mod ties;
mod write;

pub use columns::ColumnsReader;
pub use line::line_of;
pub(crate) use parse::{Details, details};
pub use read::BlkparseReader;
pub use write::{BlkparseOptions, BlkparseWriter};
