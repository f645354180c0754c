// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far transactions and writing out are.

use blklab_pagecache::FileId;
use blklab_types::{BioFlags, Jiffies, TaskId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The state of transactions (`btrfs_transaction`).
#[derive(Debug, Default)]
pub(super) struct Commit {
    /// When the running one was begun (`start_time`); None while nothing has
    /// changed.
    pub(super) since: Option<Jiffies>,
    /// Changes under way (`num_writers`).
    pub(super) changing: u32,
    /// New changes wait.
    pub(super) blocked: bool,
    /// Somebody commits (`in_commit`).
    pub(super) busy: bool,
    /// The last one on the disk (`last_trans_committed`).
    pub(super) committed: u32,
    pub(super) waiters: Vec<TaskId>,
}

impl Commit {
    /// Something changes.
    pub(super) fn begin(&mut self, now: Jiffies) {
        self.since = self.since.or(Some(now));
    }
}

/// A bio to be, with its copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// What its end brings about.
    pub(super) group: u64,
    pub(super) sector: u64,
    pub(super) copy: Option<u64>,
    pub(super) pages: u64,
    pub(super) flags: BioFlags,
}

/// Data that have a place but are not yet in the trees (`btrfs_ordered_extent`).
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    pub(super) file: FileId,
    pub(super) page: u64,
    /// Where they lie.
    pub(super) place: Range<u64>,
    /// Places that they had before.
    pub(super) gone: Vec<Range<u64>>,
    /// Pages that have not arrived.
    pub(super) left: u64,
}

/// What is on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct WriteOut {
    /// Jobs for the workers.
    pub(super) checks: VecDeque<Job>,
    /// Jobs for the submit thread.
    pub(super) submits: VecDeque<Job>,
    /// Jobs of both (`nr_async_submits`).
    pub(super) queued: u32,
    /// Tasks that sleep until there are fewer.
    pub(super) waiters: Vec<TaskId>,
    pub(super) idle_workers: Vec<TaskId>,
    pub(super) idle_submitter: Option<TaskId>,
    pub(super) idle_finisher: Option<TaskId>,
    /// By number, in the order in which they got their places.
    pub(super) ordered: BTreeMap<u64, Ordered>,
    pub(super) next_ordered: u64,
    /// Those whose data have arrived.
    pub(super) arrived: VecDeque<u64>,
    /// Tasks that sleep until data are in the trees.
    pub(super) ordered_waiters: Vec<TaskId>,
}
