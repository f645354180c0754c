// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's workers that end I/Os: the sync behind a queued direct write with
//! `O_SYNC` (the work queue `dio` of a superblock, fs/direct-io.c and
//! fs/iomap/direct-io.c), the syncs of io_uring (io_uring/io-wq.c), and what a
//! filesystem changes when data are on the disk.
//!
//! There are as many as there is work at a time, so that nothing waits for
//! something else; a worker without work stays.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::ops::{Host, Ops};
use crate::state::aio::{Deferred, SyncCall, Work};

impl<H: Host> PageCache<H> {
    /// Sends a worker for each piece of work that nobody is coming for.
    pub fn send_workers(&self) {
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

    /// The body of a worker; for direct I/O, `dio_aio_complete_work`.
    async fn work_for_ever(&self) {
        let me = self.host.current();
        loop {
            let taken = self.with(|s| {
                s.workers.coming -= 1;
                s.workers.queue.pop_front()
            });
            match taken.expect("a worker comes for a piece of work") {
                Deferred::Aio {
                    context,
                    mut event,
                    work,
                } => {
                    if let Err(e) = self.work(work).await {
                        event.result = Err(e);
                    }
                    self.waking(|s, wake| s.aio[context].post(event, wake));
                }
                Deferred::Filesystem(work) => self.filesystem.work(self, work).await,
            }
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
