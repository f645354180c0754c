// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is true of a mounted filesystem from its mount to its end.

/// What a filesystem is, as far as the page cache and the machine act on it: each a fact
/// of its code in the kernel, chosen by its options and the release, and the same for all
/// of its files. What depends on a file or a moment is asked of it instead
/// ([`Ops`](crate::Ops)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsTraits {
    /// What `O_DIRECT` does: whether reads and writes go past the page cache.
    pub direct_io: DirectIo,
    /// Direct reads hold the inode's mutex while they submit, and direct writes until
    /// they return (`DIO_LOCKING`, fs/direct-io.c): one writer of a file waits for the
    /// other. Else nobody holds it.
    pub locks_direct_io: bool,
    /// Direct I/O to blocks that are there needs no step of the filesystem: no handle, no
    /// change of times. It can be submitted at once.
    pub plain_direct_io: bool,
    /// A direct write to blocks that are there changes no metadata, so that FUA alone
    /// makes it durable (`iomap_dio_bio_iter`): no flush follows it.
    pub overwrites_with_fua: bool,
    /// fsync has no step of the filesystem's own and flushes the disk's cache
    /// (`generic_file_fsync`). A filesystem with a journal flushes with its commit.
    pub flushes_on_fsync: bool,
    /// A walk over dirty pages sleeps for one of them, or for a place, only when its bio
    /// is on its way: a commit waits for the pages in it (`mpage_prepare_extent_to_map`).
    pub submits_before_sleep: bool,
    /// Bios of background writing carry the mark of it (`REQ_BACKGROUND`), in releases
    /// that have one: write-back throttling tells them from others by it.
    pub marks_background: bool,
    /// Dirty pages that follow each other share a bio (`mpage_writepages` and what
    /// replaced it); else each is a bio of its own, merged by the block layer.
    pub large_bios: bool,
    /// Files may be cached in large folios (`mapping_set_large_folios`), in releases whose
    /// read-ahead makes some.
    pub large_folios: bool,
    /// Write-back is charged to the control group of the writer (`SB_I_CGROUPWB`); else
    /// to the root group.
    pub cgroup_writeback: bool,
    /// Files that will grow can have their space set aside before they are written:
    /// `extents` alone, which has no allocator of its own.
    pub sets_space_aside: bool,
}

/// What direct I/O a filesystem has (`direct_IO` of its address space).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// None: opening with `O_DIRECT` fails.
    Refused,
    /// Reads. Writes go through the page cache, and are written out and waited for then.
    Reads,
    /// Reads and writes.
    Both,
}

impl FsTraits {
    /// What is true where a filesystem has nothing of its own.
    pub const GENERIC: FsTraits = FsTraits {
        direct_io: DirectIo::Both,
        locks_direct_io: true,
        plain_direct_io: false,
        overwrites_with_fua: false,
        flushes_on_fsync: false,
        submits_before_sleep: false,
        marks_background: true,
        large_bios: true,
        large_folios: false,
        cgroup_writeback: false,
        sets_space_aside: false,
    };

    /// Those of a block device that is opened as a file (block/fops.c): it has no inode
    /// lock to hold and no metadata to change.
    pub(crate) const BLOCK_DEVICE: FsTraits = FsTraits {
        locks_direct_io: false,
        overwrites_with_fua: true,
        large_folios: true,
        ..FsTraits::GENERIC
    };
}
