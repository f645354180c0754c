// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that operations put into the log, and reserve there.
//!
//! The bytes are estimates from the sizes of log items (12 per region and the
//! region: 156 for an inode, 128 per changed piece of a buffer and 24 for its
//! description), for names of common length. Reservations are of the size that
//! blocks of 4 KiB give (fs/xfs/xfs_trans.h, 2.6.26), of which the kernel takes
//! twice, or eight times, the worst case.

/// A file's or a directory's creation.
pub(super) const CREATE: u64 = 1500;
pub(super) const MKDIR: u64 = 2000;
/// A chunk of inodes: 160 for each.
pub(super) const CHUNK: u64 = 64 * 160;
/// Giving an extent its place; also a block for a directory.
pub(super) const ALLOCATE: u64 = 1300;
/// Giving back what is behind a file's end.
pub(super) const TRIM: u64 = 400;
/// A removal: the entry, the blocks, the inode.
pub(super) const REMOVE: u64 = 1200;
pub(super) const TRUNCATE: u64 = 1500;
pub(super) const FREE_INODE: u64 = 900;
/// An inode alone.
pub(super) const INODE: u64 = 200;
/// The piece of the superblock with the counters.
pub(super) const SUPERBLOCK_BYTES: u64 = 12 + 24 + 12 + 128;

/// Reservations.
pub(super) const RESERVE_NAMES: u64 = 256 << 10;
pub(super) const RESERVE_WRITE: u64 = 128 << 10;
pub(super) const RESERVE_INODE: u64 = 2 << 10;
