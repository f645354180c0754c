// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems under the page cache.
//!
//! Each is a folder with one value that owns its volume and its inodes
//! (`mount::Shared`) and implements [`blklab_pagecache::Mountable`] and
//! [`blklab_pagecache::Ops`], and one row of the registry. Which there are, and since
//! when, says the registry.

#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the path that it proposes has one lifetime where a view needs any"
)]

mod btrfs;
mod ext3;
mod ext4;
mod extents;
mod jbd;
mod kind;
mod mount;
mod nilfs2;
mod ntfs3g;
mod registry;
mod reiserfs;
mod vfs;
mod xfs;

pub use btrfs::BtrfsOptions;
pub use ext3::{ExtFeatures, ExtOptions, JournalPlace, default_journal_blocks};
pub use ext4::{Ext4Features, Ext4Options, default_ext4_journal_blocks};
pub use extents::PARTS;
pub use jbd::{Barrier, CommitSync, DataMode};
pub use kind::{Kind, MountOption, Mounting, Values};
pub use nilfs2::NilfsOptions;
pub use ntfs3g::{NtfsCosts, NtfsOptions};
pub use registry::{ALL, Filesystem, Mounted, find};
pub use reiserfs::{ReiserOptions, Tails};
pub use vfs::VfsFeatures;
pub use xfs::{XfsFeatures, XfsOptions, default_log_blocks};
