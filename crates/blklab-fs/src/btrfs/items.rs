// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys and sizes of the items that files are made of.
//!
//! A key is an object, a type and an offset, in this order of weight; those of
//! the trees by place are pages of the device. Sizes are those of 2008 (bytes,
//! the header of the item included); the item of an extent holds its reference
//! as well.

use super::tree::ITEM_BYTES;
use blklab_types::PAGE_BYTES;

/// The longest extent (128 MiB; `BTRFS_MAX_EXTENT_SIZE`).
pub(super) const MOST_EXTENT_PAGES: u64 = (128 << 20) / PAGE_BYTES;

/// Largest number of an object that a key can hold.
pub(super) const LAST_OBJECT: u32 = (1 << 24) - 1;

const INODE_ITEM: u64 = 1;
const INODE_REF: u64 = 12;
const DIR_ITEM: u64 = 84;
const DIR_INDEX: u64 = 96;
const EXTENT_DATA: u64 = 108;
const CHECKSUM: u64 = 120;

/// `btrfs_inode_item`.
pub(super) const INODE_BYTES: u32 = 160 + ITEM_BYTES;
/// `btrfs_file_extent_item`.
pub(super) const EXTENT_BYTES: u32 = 53 + ITEM_BYTES;
/// An item of the extent tree with its back reference.
pub(super) const REFERENCE_BYTES: u32 = 110 + ITEM_BYTES;
/// Bytes of a checksum of a page.
const CHECKSUM_BYTES: u32 = 4;

/// The trees of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The roots of the others.
    Roots,
    /// Extents and tree blocks by place.
    Extents,
    /// Files and directories.
    Files,
    /// Checksums by place.
    Checksums,
}

/// What happens to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It is there, with so many bytes.
    Put(u32),
    /// It goes.
    Remove,
    /// Something in it changes.
    Touch,
}

/// A change in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) of: Of,
    pub(super) key: u64,
    pub(super) what: What,
}

/// A change of a file's items.
pub(super) fn of_file(key: u64, what: What) -> Change {
    Change {
        of: Of::Files,
        key,
        what,
    }
}

fn key(object: u32, kind: u64, offset: u32) -> u64 {
    u64::from(object) << 40 | kind << 32 | u64::from(offset)
}

pub(super) fn inode(object: u32) -> u64 {
    key(object, INODE_ITEM, 0)
}

pub(super) fn inode_ref(object: u32, parent: u32) -> u64 {
    key(object, INODE_REF, parent)
}

pub(super) fn dir_item(directory: u32, hash: u32) -> u64 {
    key(directory, DIR_ITEM, hash)
}

pub(super) fn dir_index(directory: u32, index: u32) -> u64 {
    key(directory, DIR_INDEX, index)
}

pub(super) fn extent(object: u32, page: u64) -> u64 {
    key(object, EXTENT_DATA, u32::try_from(page).unwrap_or(u32::MAX))
}

pub(super) fn checksum(object: u32, page: u64) -> u64 {
    key(object, CHECKSUM, u32::try_from(page).unwrap_or(u32::MAX))
}

/// Bytes of an entry of a directory, in either of its two items.
pub(super) fn entry_bytes(name: u8) -> u32 {
    30 + u32::from(name) + ITEM_BYTES
}

pub(super) fn ref_bytes(name: u8) -> u32 {
    10 + u32::from(name) + ITEM_BYTES
}

/// Bytes of the item of a file that lies in it.
pub(super) fn inline_bytes(size: u64) -> u32 {
    21 + ITEM_BYTES + u32::try_from(size).unwrap_or(u32::MAX / 2)
}

/// Bytes of an item with the checksums of so many pages.
pub(super) fn checksum_bytes(pages: u64) -> u32 {
    ITEM_BYTES + CHECKSUM_BYTES * pages as u32
}

/// Pages whose checksums go into one item of a leaf of so many bytes.
pub(super) fn checksums_per_item(block_bytes: u32) -> u64 {
    u64::from((block_bytes - 101 - 2 * ITEM_BYTES) / CHECKSUM_BYTES - 1)
}

/// What the extent tree must be told, by place: a block that came and went is
/// not mentioned.
pub(super) fn changes_of(mut references: Vec<(u64, bool)>) -> Vec<Change> {
    references.sort_by_key(|r| r.0);
    let of_place = references.chunk_by(|a, b| a.0 == b.0);
    let change = |events: &[(u64, bool)]| {
        let (first, last) = (events.first()?, events.last()?);
        let what = match (first.1, last.1) {
            (true, true) => What::Put(REFERENCE_BYTES),
            (false, false) => What::Remove,
            (false, true) => What::Touch,
            (true, false) => return None,
        };
        Some(Change {
            of: Of::Extents,
            key: first.0,
            what,
        })
    };
    of_place.filter_map(change).collect()
}
