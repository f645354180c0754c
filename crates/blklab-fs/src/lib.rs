// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page cache, write-back and the extent layout under it.
//!
//! Code here is written the way the kernel's is: as tasks that block. A task
//! is an `async fn` that the simulation polls; it suspends only through
//! [`Host`] and never holds a borrow of shared state while it does.

mod bits;
mod features;
mod host;
mod layout;
mod limits;
mod proportion;
mod readahead;

pub use host::Host;
