// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the block I/O of this machine.
//!
//! ```text
//! tracefs: instances/blklab-N ─► pages of each CPU ─► trace.dat
//! sysfs, proc ─► settings of queues, kernel, mounts ─► lines of key=value
//! ```
//!
//! Recording happens in an instance of its own, so that nobody else's tracing is touched
//! and nobody else's touches it. The kernel's binary pages are copied as they are; no
//! event is decoded meanwhile. An instance is locked while its recorder lives: what a
//! recorder that was killed leaves behind is found by that and removed at the next
//! start ([`clean`]).
//!
//! This is the only crate that needs rights and a kernel. Where its files are is data
//! ([`Roots`]), for tests.

mod context;
mod disks;
mod error;
mod groups;
mod head;
mod instance;
mod kept;
mod members;
mod mounts;
mod priorities;
mod recorder;
mod roots;
mod stacked;
mod stacks;
mod sysfs;
mod writers;

pub use context::context_of;
pub use disks::{Disk, all_disks, find_disk};
pub use error::RecordError;
pub use groups::{GROUPS, Group};
pub use instance::clean;
pub use members::Members;
pub use priorities::priorities;
pub use recorder::{Options, Recorded, Recorder};
pub use roots::Roots;
pub use writers::Writers;
