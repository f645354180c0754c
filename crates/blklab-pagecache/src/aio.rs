// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asynchronous contexts: `io_setup`, `io_submit`, `io_getevents` (fs/aio.c).
//!
//! Only direct I/O is asynchronous. A context collects the ends of I/Os in the
//! order in which they happen. io_uring's rings are served by the same calls, and
//! have syncs too.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::file::Fd;
use crate::host::Host;
use crate::state::aio::{AioContext, AioEvent, Deferred, SyncCall, Waits, Work};
use blklab_types::Span;

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
}

/// One sync to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The open file.
    pub fd: Fd,
    /// Which call.
    pub call: SyncCall,
    /// Processor time of the worker.
    pub cost: Span,
    /// The submitter's own mark, handed back in the event.
    pub user_data: u64,
}

impl<H: Host> PageCache<H> {
    /// A new context (`io_setup`).
    pub fn aio_setup(&self) -> AioId {
        self.with(|s| {
            s.aio.push(AioContext::default());
            AioId(s.aio.len() as u32 - 1)
        })
    }

    /// Submits one direct I/O (`io_submit` with one entry; several entries are
    /// several calls, between [`Host::start_plug`] and [`Host::finish_plug`]).
    /// Returns when everything is submitted; its end becomes an event of the
    /// context. It may sleep on the way: for the file's mutex, for dirty pages
    /// of the range, for requests, and for a write that extends the file to
    /// its end.
    ///
    /// # Errors
    /// What is wrong with the request; there is no event then.
    pub async fn aio_submit(&self, context: AioId, request: DirectRequest) -> Result<(), FsError> {
        if let Some(mut io) = self.begin_one_bio(context, &request) {
            if io.pending.is_some() {
                self.sleep_for_one_bio(&mut io).await;
            }
            self.end_one_bio(&io);
            return Ok(());
        }
        let DirectRequest {
            fd,
            write,
            offset,
            bytes,
            user_data,
        } = request;
        let context = context.0 as usize;
        if self.with(|s| s.aio.len() <= context) {
            return Err(FsError::BadHandle);
        }
        let waits = Some(Waits::Context { context, user_data });
        let result = if write {
            self.write_direct(fd, offset, bytes, waits).await
        } else {
            self.read_direct(fd, offset, bytes, waits).await
        };
        let result = match result {
            Ok(None) => return Ok(()),
            Ok(Some(bytes)) => Ok(bytes),
            Err(FsError::Io) => Err(FsError::Io),
            Err(refused) => return Err(refused),
        };
        self.waking(|s, wake| s.aio[context].post(AioEvent { user_data, result }, wake));
        Ok(())
    }

    /// Submits one sync: a worker makes the call, and its end becomes an event of
    /// the context (io_uring/sync.c: neither fsync nor sync_file_range is tried in
    /// the submitter's context).
    ///
    /// # Errors
    /// [`FsError::BadHandle`]; there is no event then.
    pub fn aio_sync(&self, context: AioId, request: SyncRequest) -> Result<(), FsError> {
        let SyncRequest {
            fd,
            call,
            cost,
            user_data,
        } = request;
        let context = context.0 as usize;
        self.opened(fd)?;
        self.with(|s| {
            s.aio.get(context).ok_or(FsError::BadHandle)?;
            let event = AioEvent {
                user_data,
                result: Ok(0),
            };
            s.workers.add(Deferred {
                context,
                event,
                work: Work::Call { fd, call, cost },
            });
            Ok(())
        })?;
        self.send_workers();
        Ok(())
    }

    /// Appends between `min` and `max` events to `events`; sleeps until `min`
    /// are there (`io_getevents`). Returns how many. Nobody unplugs the queue
    /// for a sleep here.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    pub async fn aio_getevents(
        &self,
        context: AioId,
        min: usize,
        max: usize,
        events: &mut Vec<AioEvent>,
    ) -> Result<usize, FsError> {
        let context = context.0 as usize;
        let me = self.host.current();
        let mut got = 0;
        loop {
            let enough = self.with(|s| {
                let aio = s.aio.get_mut(context).ok_or(FsError::BadHandle)?;
                while got < max
                    && let Some(event) = aio.events.pop_front()
                {
                    events.push(event);
                    got += 1;
                }
                let enough = got >= min.min(max);
                if !enough {
                    aio.waiters.push_back(me);
                }
                Ok(enough)
            })?;
            if enough {
                return Ok(got);
            }
            self.host.suspend().await;
        }
    }
}
