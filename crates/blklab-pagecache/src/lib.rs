// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page cache, write-back, read-ahead and direct I/O.
//!
//! What happens between a system call and the moment bios enter the block
//! layer, for Linux 2.6.16 to 7.3 ([`Features`]). Code is written the way
//! the kernel's is: as tasks that block. A task is an `async fn` that the
//! simulation polls; it suspends only through [`Runtime`], exactly where the
//! kernel's task would sleep, and never holds a borrow of shared state while
//! it does.
//!
//! ```text
//! write ─► dirty pages ─► throttle ─┐
//! fsync, O_SYNC ────────────────────┼─► page walk ─► bios ─► Runtime::submit_bio
//! pdflush, flusher ─────────────────┘                              │
//! read, fault ─► read-ahead ─► bios ───────────────────────────────┤
//! O_DIRECT ─► bios ────────────────────────────────────────────────┘
//!                           PageCache::end_bio(key) ◄──── completion
//! ```
//!
//! What the files lie on is a filesystem, a value that implements [`Ops`]: the page
//! cache is given its type by [`Runtime::Filesystem`], holds the one that is mounted, and
//! knows none by name. What filesystems work with is re-exported below.
//!
//! Left out: cutting files to other sizes than 0, swapping, several devices or superblocks. A page is
//! 4096 bytes.

mod advice;
mod aio;
mod aligned;
mod atime;
mod balance;
mod bandwidth;
mod bios;
mod bits;
mod buffers;
mod cache;
mod config;
mod control;
mod direct;
mod discard;
mod ends;
mod error;
mod features;
mod file;
mod files;
mod flush;
mod flusher;
mod folio;
mod fs_traits;
mod group;
mod host;
mod inode_lists;
mod layout;
mod limits;
mod lru;
mod memory;
mod namespace;
mod one_bio;
mod ops;
mod pdflush;
mod position;
mod proportion;
mod range;
mod read;
mod readahead;
mod slab;
mod sleeps;
mod state;
mod stats;
mod sync;
mod throttle;
mod volume;
mod workers;
mod write;
mod writeback;

pub use advice::Fault;
pub use aio::{Begun, SyncRequest};
pub use atime::Atime;
pub use cache::PageCache;
pub use config::{Config, ConfigError, OpCosts};
pub use ends::UnknownBio;
pub use error::FsError;
pub use features::{
    Ageing, BioBound, CHANGES, DeviceFlush, DevicePlug, DiscardCall, FadviseRandom, FaultReadahead,
    Features, Flusher, InodeLists, LimitBase, OverLimit, QueuedSync, Readahead, TaskShare,
    Throttle, UnsupportedRelease, Walk, WindowCap, WriteChunk,
};
pub use file::{Advice, Fd, FileId, Name, OSync};
pub use fs_traits::{DirectIo, FsTraits};
pub use host::{Runtime, TaskBody};
pub use layout::{Extent, Layout};
pub use limits::{Limits, Memory};
pub use one_bio::OneBio;
pub use ops::{FreeSpace, Host, Mountable, Ops};
pub use state::aio::{AioEvent, AioId, DirectRequest, SyncCall, SyncRange};
pub use state::sleeps::{Sleep, Sleeps};
pub use stats::{Stats, Throttled, Usage};

// What filesystems work with.
pub use atime::DAY_S;
pub use bios::Bios;
pub use bits::{PageBits, Words};
pub use buffers::{Place, Taken, WaitOrder};
pub use control::WriteControl;
pub use file::{Buffers, Directory, File, Mutex, OpenFile};
pub use inode_lists::{DirtyInodes, End, List};
pub use layout::{Extents, PageRun};
pub use lru::Lru;
pub use readahead::{Cached, RaState, Window};
pub use slab::Slab;
pub use state::{BioWork, Group, GroupEnd, State};
