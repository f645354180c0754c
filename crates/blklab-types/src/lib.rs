// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain values of the block layer: virtual time, sectors, operations, bios, ids.
//!
//! Nothing here has behaviour beyond arithmetic and formatting. Every quantity
//! carries its unit in its type or in the last word of its name.

mod array;
mod bio;
mod completion;
mod error;
mod io_cost;
mod message;
mod names;
mod prio;
mod queue;
mod random;
mod table;
mod time;
pub mod treap;
mod unit;

pub use array::{Level, MEMBERS_MAX, Stripes};
pub use bio::{Bio, BioFlags, Dev, Op};
pub use completion::{BioKey, Completion};
pub use error::{Error, ErrorKind, Place};
pub use io_cost::{IoCostModel, IoCostQos, IoCostRates, IoCostTarget};
pub use message::{one_line, push_visibly, shown, visible};
pub use names::{choices, edit_distance, nearest_name, no_such};
pub use prio::{IoPrio, NoIoPrio, PrioClass, PrioPolicy};
pub use queue::{DiscardLimits, Fetch, IoMax};
pub use random::{SplitMix64, split_mix64};
pub use table::{Id, IdVec, Slab};
pub use time::{Hz, Jiffies, Span, Time};
pub use unit::Unit;

/// Bytes in one sector, the unit of every disk address in Linux.
pub const SECTOR_BYTES: u64 = 512;

/// Bytes in one page of the page cache (x86).
pub const PAGE_BYTES: u64 = 4096;
/// Speed of copying between the memory of a process and the page cache, in bytes per second,
/// on a machine of 2.4 GHz of 2008.
pub const COPY_BYTES_PER_S: u64 = 1_500_000_000;

/// Sectors in one page.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// A simulated task (process or kernel thread) and, with it, its io context.
///
/// An index given out by the simulation in order of creation; the pid that a
/// trace shows is a property of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl_id!(TaskId(u32));

impl TaskId {
    /// The index as a `usize`.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A process id as a trace shows it. 0 is the idle task, in whose name
/// interrupts appear.
pub type Pid = u32;
