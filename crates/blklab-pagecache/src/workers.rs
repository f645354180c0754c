// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's workers that end asynchronous I/Os: the sync behind a queued
//! direct write with `O_SYNC` (the work queue `dio` of a superblock, fs/direct-io.c
//! and fs/iomap/direct-io.c), and the syncs of io_uring (io_uring/io-wq.c).
//!
//! There are as many as there is work at a time, so that nothing waits for
//! something else; a worker without work stays.

use crate::aio::{AioEvent, SyncCall};
use crate::cache::{FsError, PageCache};
use crate::file::{Fd, FileId};
use crate::host::Host;
use blklab_types::{Span, TaskId};
use std::collections::VecDeque;
use std::ops::Range;

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

/// Work with the event that tells its end.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    pub(crate) context: usize,
    pub(crate) event: AioEvent,
    pub(crate) work: Work,
}

/// Work that nobody does yet, and workers without work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers {
    queue: VecDeque<Deferred>,
    idle: Vec<TaskId>,
    /// Workers that were woken or started and have not taken their work.
    coming: usize,
}

impl Workers {
    /// Adds work; [`PageCache::send_workers`] sends somebody.
    pub(crate) fn add(&mut self, deferred: Deferred) {
        self.queue.push_back(deferred);
    }
}

impl<H: Host> PageCache<H> {
    /// Sends a worker for each piece of work that nobody is coming for.
    pub(crate) fn send_workers(&self) {
        while let Some(idle) = self.with(|s| {
            let w = &mut s.workers;
            let needed = w.queue.len() > w.coming;
            needed.then(|| {
                w.coming += 1;
                w.idle.pop()
            })
        }) {
            match idle {
                Some(task) => self.host.wake(task),
                None => {
                    let cache = self.clone();
                    let body = async move { cache.work_for_ever().await };
                    self.host.spawn("kworker", Box::pin(body));
                }
            }
        }
    }

    /// The body of a worker.
    async fn work_for_ever(&self) {
        let me = self.host.current();
        loop {
            let taken = self.with(|s| {
                s.workers.coming -= 1;
                s.workers.queue.pop_front()
            });
            let Some(Deferred {
                context,
                mut event,
                work,
            }) = taken
            else {
                unreachable!("a worker comes for a piece of work");
            };
            if let Err(e) = self.work(work).await {
                event.result = Err(e);
            }
            self.waking(|s, wake| s.aio[context].post(event, wake));
            self.with(|s| s.workers.idle.push(me));
            while self.with(|s| s.workers.idle.contains(&me)) {
                self.host.suspend().await;
            }
        }
    }

    async fn work(&self, work: Work) -> Result<(), FsError> {
        match work {
            Work::SyncWritten {
                file,
                pages,
                data_only,
            } => self.sync_written(file, pages, data_only).await,
            Work::Call { fd, call, cost } => {
                self.spend(cost).await;
                match call {
                    SyncCall::File => self.fsync(fd).await,
                    SyncCall::Data => self.fdatasync(fd).await,
                    SyncCall::Range {
                        offset,
                        bytes,
                        steps,
                    } => self.sync_file_range(fd, offset, bytes, steps).await,
                }
            }
        }
    }
}
