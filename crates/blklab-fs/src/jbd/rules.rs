// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the release and the mount options decide about a journal.

use blklab_types::BioFlags;

/// What the journal guarantees for file data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// Data reach the disk before the metadata that name them are committed.
    Ordered,
    /// Only metadata are journalled; data go their own way.
    Writeback,
    /// Data go through the journal as metadata do.
    Journal,
}

/// When commit writes its data and metadata as synchronous requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitSync {
    /// Never (up to 2.6.29).
    Never,
    /// If a handle of the transaction was synchronous (2.6.30 to 2.6.36).
    SyncHandle,
    /// If a task waits for the transaction (jbd, 3.5 and later).
    Waited,
    /// Always (jbd: 2.6.37 to 3.4).
    Always,
}

/// How commit blocks reach the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// As any other write.
    Off,
    /// As a barrier: the queue is drained around it (up to 2.6.36).
    Drain,
    /// Behind a cache flush, past the cache (2.6.37 and later).
    FlushFua,
}

impl Barrier {
    /// What a kernel makes of the mount option.
    pub fn new(on: bool, flush_fua: bool) -> Barrier {
        match (on, flush_fua) {
            (false, _) => Barrier::Off,
            (true, false) => Barrier::Drain,
            (true, true) => Barrier::FlushFua,
        }
    }

    /// Flags of a commit block; `sync`: those of a synchronous write, if it is one.
    pub(crate) fn commit_block_flags(self, sync: Option<BioFlags>) -> BioFlags {
        let sync = sync.map_or(BioFlags::NONE, |sync| sync | BioFlags::UNPLUG);
        match self {
            Barrier::Off => sync,
            Barrier::Drain => sync | BioFlags::BARRIER,
            Barrier::FlushFua => sync | BioFlags::FLUSH | BioFlags::FUA,
        }
    }
}

/// What a synchronous write of a journal (`WRITE_SYNC`) carries that says that no more
/// will follow (from 2.6.30 on, include/linux/fs.h).
pub(crate) const SYNC_NO_MORE: BioFlags = BioFlags(BioFlags::SYNC.0 | BioFlags::NOIDLE.0);

/// What a read of an inode or of a directory carries that goes first: that it is
/// metadata, which CFQ took as a request to do so, and from 3.1 on the flag of its own
/// for that ("block: separate priority boosting from REQ_META").
pub(crate) const READ_BEFORE_OTHERS: BioFlags = BioFlags(BioFlags::META.0 | BioFlags::PRIO.0);

/// What the release and the mount options decide about a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalRules {
    /// When commit writes its data and metadata as synchronous requests.
    pub(crate) commit_sync: CommitSync,
    /// What synchronous writes carry.
    pub(crate) sync: BioFlags,
    /// Flags of the commit block.
    pub(crate) commit_block: BioFlags,
    /// Flags that all writes of the journal carry besides: blocks of the log,
    /// its superblock, checkpoints.
    pub(crate) mark: BioFlags,
    /// Checkpoints write synchronously.
    pub(crate) sync_checkpoint: bool,
    /// Seconds between commits (`j_commit_interval`).
    pub(crate) commit_s: u32,
    /// Blocks handed to the block layer at a time: a descriptor and what it
    /// describes (`j_wbufsize`).
    pub(crate) batch: usize,
    /// Commit writes what is dirty of the files that a transaction names, and has
    /// a place; else it only waits for what is on its way (jbd2).
    pub(crate) writes_inodes: bool,
}

impl JournalRules {
    /// Buffers handed to the block layer at a time (block size over 8): a
    /// descriptor and what it describes.
    pub(crate) const BATCH: usize = 512;

    /// Flags of a commit's data and metadata.
    pub(super) fn commit_flags(&self, sync_handle: bool, waited: bool) -> BioFlags {
        let sync = match self.commit_sync {
            CommitSync::Never => false,
            CommitSync::SyncHandle => sync_handle,
            CommitSync::Waited => waited,
            CommitSync::Always => true,
        };
        if sync { self.sync } else { BioFlags::NONE }
    }
}
