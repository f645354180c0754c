// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O that is under way for somebody: direct I/O, contexts that collect its ends,
//! and what is left to workers.

use crate::error::FsError;
use crate::file::{Fd, FileId};
use blklab_types::{Span, TaskId};
use std::collections::VecDeque;
use std::ops::Range;

/// An asynchronous context, an index in order of creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AioId(pub u32);

/// One direct I/O to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectRequest {
    /// The open file.
    pub fd: Fd,
    /// A write; else a read.
    pub write: bool,
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
    /// The submitter's own mark, handed back in the event.
    pub user_data: u64,
    /// The submitter does not sleep for a request of the queue (`IOCB_NOWAIT`).
    pub nowait: bool,
}

/// Who is told about the end of a direct I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    /// A task that sleeps until then.
    Task(TaskId),
    /// An asynchronous context, with the submitter's mark.
    Context { context: usize, user_data: u64 },
}

/// A direct I/O in progress (`struct dio`).
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    /// Bios in flight, and one for the submitter while it submits.
    pub(crate) pending: u32,
    pub(crate) failed: bool,
    pub(crate) bytes: u64,
    pub(crate) waits: Waits,
    /// What a worker writes out before the end is told.
    pub(crate) sync: Option<Work>,
}

impl Direct {
    /// A direct I/O of one bio: that and the submitter are pending.
    pub(crate) fn of_one_bio(bytes: u64, waits: Waits) -> Direct {
        Direct {
            pending: 2,
            failed: false,
            bytes,
            waits,
            sync: None,
        }
    }
}

/// The end of an asynchronous I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioEvent {
    /// The submitter's mark.
    pub user_data: u64,
    /// Bytes transferred.
    pub result: Result<u64, FsError>,
}

/// Events that wait to be fetched, and tasks that wait for events.
#[derive(Clone, Debug, Default)]
pub(crate) struct AioContext {
    pub(crate) events: VecDeque<AioEvent>,
    pub(crate) waiters: VecDeque<TaskId>,
}

impl AioContext {
    /// An event for whoever waits (`aio_complete`).
    pub(crate) fn post(&mut self, event: AioEvent, wake: &mut Vec<TaskId>) {
        self.events.push_back(event);
        while let Some(waiter) = self.waiters.pop_front() {
            wake.push(waiter);
        }
    }
}

/// Steps of `sync_file_range`, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRange {
    /// Wait for writes that are in flight already.
    pub wait_before: bool,
    /// Start writing dirty pages that are not in flight.
    pub write: bool,
    /// Wait for all writes.
    pub wait_after: bool,
}

/// A call that a worker makes in place of the submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCall {
    /// `fsync`.
    File,
    /// `fdatasync`.
    Data,
    /// `sync_file_range`.
    Range {
        /// First byte.
        offset: u64,
        /// Length; 0: up to the end of the file.
        bytes: u64,
        /// What it does.
        steps: SyncRange,
    },
}

/// What a worker does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// The last part of a write with `O_SYNC`.
    SyncWritten {
        file: FileId,
        pages: Range<u64>,
        data_only: bool,
    },
    /// A system call, for so much processor time beside its waits.
    Call { fd: Fd, call: SyncCall, cost: Span },
}

/// What is left to a worker.
#[derive(Clone, Debug)]
pub(crate) enum Deferred {
    /// Work of an asynchronous context, with the event that tells its end.
    Aio {
        context: usize,
        event: AioEvent,
        work: Work,
    },
    /// Work of the filesystem, by its number there.
    Filesystem(u64),
}

/// Work that nobody does yet, and workers without work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers {
    pub(crate) queue: VecDeque<Deferred>,
    pub(crate) idle: Vec<TaskId>,
    /// Workers that were woken or started and have not taken their work.
    pub(crate) coming: usize,
}

impl Workers {
    /// Adds work; [`PageCache::send_workers`](crate::PageCache) sends somebody.
    pub(crate) fn add(&mut self, deferred: Deferred) {
        self.queue.push_back(deferred);
    }
}
