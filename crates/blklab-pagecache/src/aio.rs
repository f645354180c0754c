// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asynchronous contexts: `io_setup`, `io_submit`, `io_getevents` (fs/aio.c).
//!
//! Only direct I/O is asynchronous. A context collects the ends of I/Os in the
//! order in which they happen. io_uring's rings are served by the same calls, and
//! have syncs too.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::file::Fd;
use crate::one_bio::OneBio;
use crate::ops::Host;
use crate::state::aio::{
    AioContext, AioEvent, AioId, Deferred, DirectRequest, SyncCall, Waits, Work,
};
use blklab_types::Span;

/// How far a direct I/O came without a sleep.
#[derive(Debug)]
pub enum Begun<P> {
    /// It is submitted.
    Submitted,
    /// It sleeps for a request: [`PageCache::aio_finish`].
    Sleeps(OneBio<P>),
    /// It would have to sleep for a request, and is not to: nothing has happened.
    Refused,
    /// It may have to wait for other things, and nothing has happened:
    /// [`PageCache::aio_submit_in_steps`].
    Not,
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
    /// several calls, between [`start_plug`](crate::Runtime::start_plug) and
    /// [`finish_plug`](crate::Runtime::finish_plug)).
    /// Returns when everything is submitted; its end becomes an event of the
    /// context. It may sleep on the way: for the file's mutex, for dirty pages
    /// of the range, for requests, and for a write that extends the file to
    /// its end.
    ///
    /// # Errors
    /// What is wrong with the request; there is no event then.
    pub async fn aio_submit(&self, context: AioId, request: DirectRequest) -> Result<(), FsError> {
        match self.aio_begin(context, &request) {
            Begun::Submitted => Ok(()),
            Begun::Sleeps(io) => {
                let submitted = self.aio_finish(io).await;
                submitted.then_some(()).ok_or(FsError::WouldBlock)
            }
            Begun::Refused => Err(FsError::WouldBlock),
            Begun::Not => self.aio_submit_in_steps(context, request).await,
        }
    }

    /// Submits one direct I/O as far as that needs no sleep.
    #[inline(always)]
    pub fn aio_begin(&self, context: AioId, request: &DirectRequest) -> Begun<H::Pending> {
        match self.begin_one_bio(context, request) {
            None => Begun::Not,
            Some(io) if io.pending.as_ref().is_some_and(H::is_refused) => {
                self.refuse_one_bio(&io);
                Begun::Refused
            }
            Some(io) if io.pending.is_some() => Begun::Sleeps(io),
            Some(io) => {
                self.end_one_bio(&io);
                Begun::Submitted
            }
        }
    }

    /// Submits the rest of a direct I/O that sleeps for a request; false if it was refused,
    /// and nothing has happened.
    pub async fn aio_finish(&self, mut io: OneBio<H::Pending>) -> bool {
        if let Some(pending) = io.pending.take()
            && let Some(rest) = self.host.settle(pending).await
        {
            if H::is_refused(&rest) {
                self.refuse_one_bio(&io);
                return false;
            }
            self.sleep_for_request(rest).await;
        }
        self.end_one_bio(&io);
        true
    }

    /// Submits a direct I/O of which nothing has begun, with all the steps at which it
    /// may sleep.
    ///
    /// # Errors
    /// As [`PageCache::aio_submit`].
    pub async fn aio_submit_in_steps(
        &self,
        context: AioId,
        request: DirectRequest,
    ) -> Result<(), FsError> {
        let DirectRequest {
            fd,
            write,
            offset,
            bytes,
            user_data,
            nowait: _,
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
            s.workers.add(Deferred::Aio {
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
        let mut got = 0;
        while !self.aio_take(context, min, max, &mut got, |event| events.push(event))? {
            self.host.suspend().await;
        }
        Ok(got)
    }

    /// Hands events to `take` while there are some, until it `got` `max`; whether these
    /// are `min` at least. If not, the caller sleeps and is woken when there are more.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    #[inline(always)]
    pub fn aio_take(
        &self,
        context: AioId,
        min: usize,
        max: usize,
        got: &mut usize,
        mut take: impl FnMut(AioEvent),
    ) -> Result<bool, FsError> {
        self.with(|s| {
            let aio = s.aio.get_mut(context.0 as usize);
            let aio = aio.ok_or(FsError::BadHandle)?;
            while *got < max
                && let Some(event) = aio.events.pop_front()
            {
                take(event);
                *got += 1;
            }
            let enough = *got >= min.min(max);
            if !enough {
                aio.waiters.push_back(self.host.current());
            }
            Ok(enough)
        })
    }
}
