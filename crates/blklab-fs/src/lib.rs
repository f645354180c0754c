// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page cache, write-back, and the extent layout under it.
//!
//! What happens between a system call and the moment bios enter the block
//! layer, for Linux 2.6.16 to 6.18 ([`Features`]). Code is written the way
//! the kernel's is: as tasks that block. A task is an `async fn` that the
//! simulation polls; it suspends only through [`Host`], exactly where the
//! kernel's task would sleep, and never holds a borrow of shared state while
//! it does.
//!
//! ```text
//! write ─► dirty pages ─► throttle ─┐
//! fsync, O_SYNC ────────────────────┼─► page walk ─► bios ─► Host::submit_bio
//! pdflush, flusher ─────────────────┘                              │
//! read, fault ─► read-ahead ─► bios ───────────────────────────────┤
//! O_DIRECT ─► bios ────────────────────────────────────────────────┘
//!                           PageCache::end_bio(cookie) ◄─ completion
//! ```
//!
//! What the files lie on is a [`Filesystem`]: `extents` ([`Layout`]), which has
//! no metadata, or one with its own. Each is a value that owns its volume and
//! implements [`Ops`]; the page cache holds the one that is mounted.
//!
//! Left out: cutting files to other sizes than 0, swapping, several devices or superblocks. A page is
//! 4096 bytes.

#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the path that it proposes has one lifetime where a view needs any"
)]

mod advice;
mod aio;
mod atime;
mod balance;
mod bandwidth;
mod bits;
mod btrfs;
mod buffers;
mod cache;
mod config;
mod direct;
mod ext3;
mod ext4;
mod features;
mod file;
mod flush;
mod flusher;
mod folio;
mod group;
mod host;
mod inode_lists;
mod jbd;
mod layout;
mod limits;
mod lru;
mod memory;
mod mount;
mod namespace;
mod nilfs2;
mod ntfs3g;
mod ops;
mod pdflush;
mod position;
mod proportion;
mod read;
mod readahead;
mod registry;
mod reiserfs;
mod simple;
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
mod xfs;

pub use advice::{Advice, Fault};
pub use aio::{AioEvent, AioId, DirectRequest, SyncCall, SyncRequest};
pub use atime::Atime;
pub use btrfs::BtrfsOptions;
pub use cache::{FsError, PageCache, UnknownCookie};
pub use config::{Config, ConfigError, OpCosts};
pub use ext3::{ExtFeatures, ExtOptions, default_journal_blocks};
pub use ext4::{Ext4Features, Ext4Options, default_ext4_journal_blocks};
pub use features::{
    Ageing, BioBound, DeviceFlush, DevicePlug, FadviseRandom, FaultReadahead, Features, Flusher,
    InodeLists, LargeFolios, LimitBase, OverLimit, QueuedSync, Readahead, TaskShare, Throttle,
    UnsupportedRelease, Walk, WindowCap, WriteChunk,
};
pub use file::{Fd, FileId, OSync};
pub use host::{Host, TaskBody};
pub use jbd::{Barrier, CommitSync, DataMode};
pub use layout::{Extent, Layout};
pub use limits::{Limits, Memory};
pub use namespace::Name;
pub use nilfs2::NilfsOptions;
pub use ntfs3g::{NtfsCosts, NtfsOptions};
pub use ops::{FreeSpace, Ops};
pub use registry::{Filesystem, Mounted};
pub use reiserfs::{ReiserOptions, Tails};
pub use sleeps::{Sleep, Sleeps};
pub use stats::{Stats, Throttled, Usage};
pub use sync::SyncRange;
pub use xfs::{XfsFeatures, XfsOptions, default_log_blocks};
