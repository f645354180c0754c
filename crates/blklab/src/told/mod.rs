// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an application was told that its I/O takes, divided by a trace of the same time: in the
//! queue, at the device, and outside of the block layer.
//!
//! fio counts from the call to the moment at which it learns of the end. The block layer has an
//! I/O from Q to C. What lies between the two is before Q (the file system, the page cache, a
//! lock, a CPU) or behind C (the task does not run yet).

mod divided;
mod fio;
mod seen;

pub use divided::{Divided, LeftOut, Part, Shown, divide};
pub use fio::{Told, ToldKind, read};
pub use seen::{ApplicationIo, IoSums, Seen};
