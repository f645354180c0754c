// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's I/O engines as system calls of a task.

use super::uring::{self, UringWorkers, Work};
use crate::Machine;
use crate::aio::{Execute, GlibcAio, Params, Reap};
use blklab_block::Queue;
use blklab_fio::job::io_prio;
use blklab_fio::option::engine;
use blklab_fio::run::{Answer, Completion, Io, IoOp};
use blklab_fio::settings::Settings as JobSettings;
use blklab_pagecache::{
    AioId, Begun, DirectRequest, Fd, FsError, OneBio, PageCache, Runtime, SyncCall, SyncRange,
    SyncRequest,
};
use blklab_types::{PAGE_BYTES, Span};
use std::collections::VecDeque;

/// How an engine turns requests into system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One call per request, done when it returns (sync, psync, pvsync …).
    Sync,
    /// A memory mapping: page faults do the reads.
    Mmap,
    /// Adjacent requests become one readv or writev.
    Vsync,
    /// io_submit and io_getevents; buffered I/O is done inside io_submit, and
    /// syncs in a call of their own.
    Aio,
    /// io_uring with direct I/O: submitted like libaio's; workers of the kernel
    /// do the syncs.
    Uring,
    /// io_uring with buffered I/O: the kernel's workers do it, one at a time
    /// per file.
    UringBuffered,
    /// glibc's POSIX AIO: threads execute the requests of a file in order.
    Posix,
    /// Nothing is done.
    Null,
}

/// One request that the engine holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    io: Io,
    fd: Option<Fd>,
}

/// What a job and the machine say about system calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSettings {
    /// Steps of `sync_file_range`.
    pub(crate) steps: SyncRange,
    /// Processor time of a sync call that somebody else than the job makes.
    pub(crate) sync_cost: Span,
    /// The job has memory for data: it reads or writes.
    pub(crate) has_buffers: bool,
    /// What the kernel's io_uring does.
    pub(crate) uring: uring::Features,
}

impl CallSettings {
    /// Those of a job.
    pub(crate) fn new(
        settings: &JobSettings,
        sync_cost: Span,
        uring: uring::Features,
    ) -> CallSettings {
        // The flags of sync_file_range(2).
        let has = |bit: u32| settings.sync_file_range_flags & bit != 0;
        CallSettings {
            steps: SyncRange {
                wait_before: has(1),
                write: has(2),
                wait_after: has(4),
            },
            sync_cost,
            has_buffers: settings.rw.reads || settings.rw.writes,
            uring,
        }
    }
}

/// The engine of one job.
pub(crate) struct Engine {
    kind: Kind,
    direct: bool,
    depth: u32,
    calls: CallSettings,
    /// Requests of one submission are collected in a plug if there are more.
    plugs_above: usize,
    /// A submission unplugs the queue, even one of no requests.
    unplugs: bool,
    /// Whether requests carry priorities of their own to the block layer.
    pub(crate) sets_prio: bool,
    m: Machine,
    cache: PageCache<Machine>,
    aio: AioId,
    held: Vec<Held>,
    /// Completed inside a call and not reaped.
    done: VecDeque<Completion>,
    /// Submitted to the kernel and not completed.
    in_flight: u32,
    /// Threads of glibc or of io_uring.
    threads: Option<GlibcAio<Calls>>,
    /// The kernel's workers, to which io_uring leaves what would sleep.
    workers: Option<UringWorkers>,
    /// Who waits for completions is in iowait.
    waits_in_iowait: bool,
    /// Records that the last commit submitted.
    pub(crate) submitted: Vec<u32>,
}

const EFAULT: i32 = 14;
const EINVAL: i32 = 22;

fn errno(e: FsError) -> i32 {
    match e {
        FsError::Io => 5,
        FsError::NoSuchRequest => 25,
        FsError::NoSpace => 28,
        FsError::NotSupported => 95,
        _ => EINVAL,
    }
}

/// What an engine of that name does; one that is not simulated has been refused before.
fn kind_of(name: &str, direct: bool) -> Kind {
    match engine(name).map_or(name, |e| e.name) {
        "sync" | "psync" | "pvsync" | "pvsync2" | "splice" => Kind::Sync,
        "mmap" => Kind::Mmap,
        "vsync" => Kind::Vsync,
        "libaio" => Kind::Aio,
        "io_uring" if direct => Kind::Uring,
        "io_uring" => Kind::UringBuffered,
        "posixaio" => Kind::Posix,
        "null" => Kind::Null,
        other => unreachable!("{other} is no engine that is simulated"),
    }
}

impl Engine {
    /// The engine that a job names; engines that are not simulated have been
    /// refused before.
    pub(crate) fn new(
        name: &str,
        direct: bool,
        depth: u32,
        calls: CallSettings,
        m: &Machine,
        cache: &PageCache<Machine>,
    ) -> Engine {
        let kind = kind_of(name, direct);
        let threads = threads_of(kind).map(|(params, reap)| {
            let execute = Calls {
                m: m.clone(),
                cache: cache.clone(),
                direct,
                calls,
            };
            GlibcAio::new(m, execute, params, reap, m.current())
        });
        let aio = cache.aio_setup();
        let has_workers = kind == Kind::Uring && calls.uring.submits_without_sleep;
        let workers = has_workers
            .then(|| UringWorkers::new(m, cache, aio, depth, calls.sync_cost, calls.uring));
        Engine {
            kind,
            workers,
            waits_in_iowait: kind == Kind::Uring && calls.uring.waits_in_iowait,
            direct: direct && kind != Kind::Mmap,
            depth,
            calls,
            plugs_above: m.queue_state(Queue::io_submit_plugs_above),
            unplugs: matches!(kind, Kind::Aio | Kind::Uring)
                && m.queue_state(Queue::io_submit_unplugs),
            sets_prio: false,
            m: m.clone(),
            cache: cache.clone(),
            aio,
            held: Vec::with_capacity(depth as usize),
            done: VecDeque::with_capacity(depth as usize),
            in_flight: 0,
            threads,
            submitted: Vec::with_capacity(depth as usize),
        }
    }

    /// Whether every request is done when its call returns.
    pub(crate) fn is_synchronous(&self) -> bool {
        match self.kind {
            Kind::Sync | Kind::Mmap => true,
            Kind::Null => self.depth == 1,
            _ => false,
        }
    }

    /// Whether a commit would do anything: on some kernels even one of no
    /// requests unplugs the queue.
    pub(crate) fn commits(&self) -> bool {
        !self.held.is_empty() || self.unplugs
    }

    /// Requests that the next commit submits.
    pub(crate) fn nr_held(&self) -> usize {
        self.held.len()
    }

    /// Their bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.io.length).sum()
    }

    /// Whether a request is only held until the next commit ([`Engine::hold`]).
    #[inline]
    pub(crate) fn only_holds(&self, io: &Io) -> bool {
        let is_data = matches!(io.op, IoOp::Read | IoOp::Write);
        is_data && matches!(self.kind, Kind::Aio | Kind::Uring)
    }

    /// Whether a request is a trim that the engine makes in the caller, before it
    /// returns: all do, the asynchronous ones while they hold nothing, posixaio while
    /// nothing is in flight. vsync does not know trims and writes, and the null engine
    /// calls nobody.
    pub(crate) fn trims_now(&self, io: &Io) -> bool {
        io.op == IoOp::Trim
            && match self.kind {
                Kind::Sync | Kind::Mmap => true,
                Kind::Aio | Kind::Uring | Kind::UringBuffered => self.held.is_empty(),
                Kind::Posix => self.in_flight == 0,
                Kind::Vsync | Kind::Null => false,
            }
    }

    /// Takes a request.
    pub(crate) async fn queue(&mut self, io: &Io, fd: Option<Fd>) -> Answer {
        if self.trims_now(io) {
            return Answer::Completed {
                error: self.perform(io, fd).await,
            };
        }
        // To vsync a trim is a write.
        let is_data = matches!(io.op, IoOp::Read | IoOp::Write)
            || (io.op == IoOp::Trim && self.kind == Kind::Vsync);
        match self.kind {
            Kind::Sync | Kind::Mmap => Answer::Completed {
                error: self.perform(io, fd).await,
            },
            Kind::Null if self.depth == 1 => Answer::Completed { error: 0 },
            Kind::Null if !self.done.is_empty() => Answer::Busy,
            Kind::Null => self.hold(io, fd),
            Kind::Aio | Kind::Uring | Kind::UringBuffered | Kind::Posix if io.op == IoOp::Trim => {
                Answer::Busy
            }
            Kind::Aio | Kind::Vsync if !is_data && !self.held.is_empty() => Answer::Busy,
            Kind::Aio | Kind::Vsync if !is_data => Answer::Completed {
                error: self.perform(io, fd).await,
            },
            Kind::Vsync if self.held.last().is_some_and(|last| !follows(last, io)) => Answer::Busy,
            Kind::Aio | Kind::Uring | Kind::UringBuffered | Kind::Vsync => self.hold(io, fd),
            Kind::Posix => {
                self.enqueue(io, fd).await;
                Answer::Queued
            }
        }
    }

    /// Hands a request to the thread of its file.
    async fn enqueue(&mut self, io: &Io, fd: Option<Fd>) {
        if let (Some(fd), Some(threads)) = (fd, &self.threads) {
            // io_uring's workers do not serialise syncs with the writes of a file.
            match self.kind {
                Kind::UringBuffered if io.op.dir().is_none() => {
                    threads.enqueue_alone(io.record, fd, *io).await;
                }
                _ => threads.enqueue(io.record, fd, *io).await,
            }
            self.in_flight += 1;
        }
    }

    /// Holds a request until the next commit.
    #[inline]
    pub(crate) fn hold(&mut self, io: &Io, fd: Option<Fd>) -> Answer {
        if self.held.len() >= self.depth as usize {
            return Answer::Busy;
        }
        self.held.push(Held { io: *io, fd });
        Answer::Queued
    }

    /// Submits what is held.
    pub(crate) async fn commit(&mut self) {
        if let Some(rest) = self.begin_commit() {
            self.finish_commit(rest).await;
        }
        self.m.return_to_program().await;
    }

    /// Submits what is held as far as that needs no sleep: what is left of it.
    /// [`Engine::submitted`] then names the records.
    #[inline]
    pub(crate) fn begin_commit(&mut self) -> Option<Uncommitted> {
        self.submitted.clear();
        self.submitted.extend(self.held.iter().map(|h| h.io.record));
        match self.kind {
            Kind::Uring => {}
            Kind::Aio if self.direct => {}
            _ => return Some(Uncommitted::Elsewhere),
        }
        let plugs = self.start_submission();
        let mut at = 0;
        if let Some(sleeps) = self.submit_from(&mut at) {
            return Some(Uncommitted::From { at, sleeps, plugs });
        }
        self.end_submission(plugs);
        None
    }

    /// Submits the rest.
    pub(crate) async fn finish_commit(&mut self, rest: Uncommitted) {
        match rest {
            Uncommitted::From { at, sleeps, plugs } => {
                self.io_submit(at, sleeps).await;
                self.end_submission(plugs);
            }
            Uncommitted::Elsewhere => {
                let held = std::mem::take(&mut self.held);
                self.commit_elsewhere(&held).await;
                self.held = held;
                self.held.clear();
            }
        }
    }

    /// Engines that do not submit to the kernel's asynchronous contexts.
    async fn commit_elsewhere(&mut self, held: &[Held]) {
        match self.kind {
            Kind::UringBuffered => {
                for h in held {
                    self.enqueue(&h.io, h.fd).await;
                }
            }
            Kind::Aio => {
                for h in held {
                    let error = self.perform(&h.io, h.fd).await;
                    self.done.push_back(Completion {
                        record: h.io.record,
                        error,
                    });
                }
            }
            Kind::Vsync => self.vectored(held).await,
            _ => {
                let all = held.iter().map(|h| Completion {
                    record: h.io.record,
                    error: 0,
                });
                self.done.extend(all);
            }
        }
    }

    /// Submits the request before `at`, which sleeps, and those from there on.
    async fn io_submit(&mut self, mut at: usize, sleeps: Sleeps) {
        let mut next = Some(sleeps);
        while let Some(sleeps) = next {
            match sleeps {
                Sleeps::ForRequest(io) => {
                    if !self.cache.aio_finish(io).await {
                        self.leave_to_worker(at - 1);
                    }
                    self.submitted_one(at - 1, Ok(()));
                }
                Sleeps::InSteps(fd) => {
                    let submitted = self.submit_in_steps(at - 1, fd).await;
                    self.submitted_one(at - 1, submitted);
                }
            }
            next = self.submit_from(&mut at);
        }
    }

    /// Whether the requests are submitted under a plug, which this opens.
    fn start_submission(&self) -> bool {
        let plugs = self.held.len() > self.plugs_above;
        match self.kind {
            _ if !plugs => {}
            // io_submit does not say how many come (fs/aio.c, io_uring/io_uring.c).
            Kind::Uring => self.m.start_plug_for(self.held.len() as u32),
            _ => self.m.start_plug(),
        }
        plugs
    }

    fn end_submission(&mut self, plugs: bool) {
        if self.unplugs {
            self.m.unplug();
        }
        if plugs {
            self.m.finish_plug();
        }
        self.held.clear();
    }

    /// Submits from the request at `at` on, which moves on, up to one that may have to
    /// sleep.
    #[inline]
    fn submit_from(&mut self, at: &mut usize) -> Option<Sleeps> {
        loop {
            let h = self.held.get(*at)?;
            *at += 1;
            let Some(fd) = h.fd else { continue };
            if self.sets_prio
                && let Some((class, level)) = h.io.priority
            {
                self.m.set_request_prio(Some(io_prio(class, level)));
            }
            let is_data = matches!(h.io.op, IoOp::Read | IoOp::Write);
            if !is_data {
                return Some(Sleeps::InSteps(fd));
            }
            let request = DirectRequest {
                nowait: self.workers.is_some(),
                ..direct_request(&h.io, fd)
            };
            match self.cache.aio_begin(self.aio, &request) {
                Begun::Submitted => self.submitted_one(*at - 1, Ok(())),
                Begun::Refused => {
                    self.leave_to_worker(*at - 1);
                    self.submitted_one(*at - 1, Ok(()));
                }
                Begun::Sleeps(io) => return Some(Sleeps::ForRequest(io)),
                Begun::Not => return Some(Sleeps::InSteps(fd)),
            }
        }
    }

    /// One of those held would have to sleep for a request: a worker submits it.
    fn leave_to_worker(&self, at: usize) {
        let h = &self.held[at];
        if let (Some(workers), Some(fd)) = (&self.workers, h.fd) {
            let own = h.io.priority.filter(|_| self.sets_prio);
            workers.bring(Work {
                request: direct_request(&h.io, fd),
                prio: own.map(|(class, level)| io_prio(class, level)),
            });
        }
    }

    /// One of those held was submitted, or refused.
    #[inline]
    fn submitted_one(&mut self, at: usize, submitted: Result<(), FsError>) {
        let io = &self.held[at].io;
        if self.sets_prio && io.priority.is_some() {
            self.m.set_request_prio(None);
        }
        match submitted {
            Ok(()) => self.in_flight += 1,
            Err(e) => {
                let (record, error) = (io.record, errno(e));
                self.done.push_back(Completion { record, error });
            }
        }
    }

    /// Submits one of those held, with all steps at which that may sleep.
    async fn submit_in_steps(&self, at: usize, fd: Fd) -> Result<(), FsError> {
        let io = &self.held[at].io;
        if let Some(call) = sync_call(io, self.calls.steps) {
            let request = SyncRequest {
                fd,
                call,
                cost: self.calls.sync_cost,
                user_data: u64::from(io.record),
            };
            return self.cache.aio_sync(self.aio, request);
        }
        let request = direct_request(io, fd);
        self.cache.aio_submit_in_steps(self.aio, request).await
    }

    /// One readv or writev for all that is held: they are adjacent.
    async fn vectored(&mut self, held: &[Held]) {
        let Some(first) = held.first() else { return };
        let mut whole = Io {
            length: held.iter().map(|h| h.io.length).sum(),
            ..first.io
        };
        let is_trim = whole.op == IoOp::Trim;
        if is_trim {
            whole.op = IoOp::Write;
        }
        let error = if is_trim && !self.calls.has_buffers {
            EFAULT
        } else {
            self.perform(&whole, first.fd).await
        };
        let all = held.iter().map(|h| Completion {
            record: h.io.record,
            error,
        });
        self.done.extend(all);
    }

    /// Waits for at least `min` completions and takes up to `max`.
    #[inline(always)]
    pub(crate) async fn reap(&mut self, min: u32, max: u32, out: &mut Vec<Completion>) {
        let (missing, room) = self.reap_done(min, max, out);
        if room == 0 {
            return;
        }
        let min = missing.min(self.in_flight as usize);
        match self.kind {
            Kind::Aio | Kind::Uring if self.direct => {
                let iowait = self.waits_in_iowait;
                let mut got = 0;
                while !self.take_events(min, room, &mut got, out) {
                    match &self.workers {
                        Some(workers) => self.m.suspend_owner(workers.pool, iowait).await,
                        None if iowait => self.m.suspend_for_io().await,
                        None => self.m.suspend().await,
                    }
                }
                self.in_flight -= got as u32;
            }
            Kind::Posix | Kind::UringBuffered => {
                let before = out.len();
                if let Some(threads) = &self.threads {
                    threads.reap(min, room, out).await;
                }
                self.in_flight -= (out.len() - before) as u32;
            }
            _ => {}
        }
    }

    /// Takes what was completed inside a call; how many are missing, and how many more
    /// there is room for.
    #[inline(always)]
    fn reap_done(&mut self, min: u32, max: u32, out: &mut Vec<Completion>) -> (usize, usize) {
        out.clear();
        // vsync and null give all they have, whatever is asked for.
        let max = match self.kind {
            Kind::Vsync | Kind::Null => usize::MAX,
            _ => max.max(min) as usize,
        };
        while out.len() < max
            && let Some(c) = self.done.pop_front()
        {
            out.push(c);
        }
        ((min as usize).saturating_sub(out.len()), max - out.len())
    }

    /// Takes what the context has; whether that is enough.
    #[inline(always)]
    fn take_events(
        &self,
        min: usize,
        max: usize,
        got: &mut usize,
        out: &mut Vec<Completion>,
    ) -> bool {
        let taken = self.cache.aio_take(self.aio, min, max, got, |e| {
            out.push(Completion {
                record: e.user_data as u32,
                error: e.result.map_or_else(errno, |_| 0),
            });
        });
        taken.expect("the context was made with the engine")
    }

    /// One request as a system call; returns its error number.
    async fn perform(&self, io: &Io, fd: Option<Fd>) -> i32 {
        let Some(fd) = fd else { return 0 };
        let result = match self.kind {
            Kind::Mmap => self.mapped(io, fd).await,
            _ => perform(&self.cache, io, fd, self.direct, self.calls.steps).await,
        };
        self.m.return_to_program().await;
        result.map_or_else(errno, |()| 0)
    }

    /// Copies between memory and the mapping: page faults do the I/O.
    async fn mapped(&self, io: &Io, fd: Fd) -> Result<(), FsError> {
        if !matches!(io.op, IoOp::Read | IoOp::Write) {
            return perform(&self.cache, io, fd, false, self.calls.steps).await;
        }
        let pages = io.offset / PAGE_BYTES..(io.offset + io.length).div_ceil(PAGE_BYTES);
        for page in pages {
            self.cache.fault(fd, page, io.op == IoOp::Write).await?;
        }
        Ok(())
    }
}

/// The threads behind an engine, and how their results are collected.
fn threads_of(kind: Kind) -> Option<(Params, Reap)> {
    match kind {
        Kind::Posix => Some((Params::glibc(), Reap::ByIndex)),
        Kind::UringBuffered => Some((Params::kernel_workers(), Reap::ByTime)),
        _ => None,
    }
}

/// Executes requests of an engine's threads.
struct Calls {
    m: Machine,
    cache: PageCache<Machine>,
    direct: bool,
    calls: CallSettings,
}

impl Execute for Calls {
    type Op = Io;

    async fn execute(&self, fd: Fd, io: Io) -> i32 {
        if io.op.dir().is_none() {
            self.m.compute(self.calls.sync_cost).await;
        }
        let result = perform(&self.cache, &io, fd, self.direct, self.calls.steps).await;
        self.m.return_to_program().await;
        result.map_or_else(errno, |()| 0)
    }
}

/// What is left of a commit.
pub(crate) enum Uncommitted {
    /// The request before `at` sleeps; those from there on have not begun.
    From {
        at: usize,
        sleeps: Sleeps,
        plugs: bool,
    },
    /// All: it is not for the kernel's asynchronous contexts.
    Elsewhere,
}

/// What a submission may have to sleep for.
pub(crate) enum Sleeps {
    /// A request of the queue.
    ForRequest(OneBio<<Machine as Runtime>::Pending>),
    /// Other things.
    InSteps(Fd),
}

fn direct_request(io: &Io, fd: Fd) -> DirectRequest {
    DirectRequest {
        fd,
        write: io.op == IoOp::Write,
        offset: io.offset,
        bytes: io.length,
        user_data: u64::from(io.record),
        nowait: false,
    }
}

fn follows(last: &Held, io: &Io) -> bool {
    last.io.op == io.op && last.io.file == io.file && last.io.offset + last.io.length == io.offset
}

/// One request as read, write, discard, fsync … on an open file.
pub(crate) async fn perform(
    cache: &PageCache<Machine>,
    io: &Io,
    fd: Fd,
    direct: bool,
    steps: SyncRange,
) -> Result<(), FsError> {
    match (io.op, direct) {
        (IoOp::Read, false) => cache.read(fd, io.offset, io.length).await.map(drop),
        (IoOp::Read, true) => cache.direct_read(fd, io.offset, io.length).await.map(drop),
        (IoOp::Write, false) => cache.write(fd, io.offset, io.length).await.map(drop),
        (IoOp::Write, true) => cache.direct_write(fd, io.offset, io.length).await.map(drop),
        (IoOp::Trim, _) => cache.discard(fd, io.offset, io.length).await,
        (IoOp::Sync, _) => cache.fsync(fd).await,
        (IoOp::Datasync, _) => cache.fdatasync(fd).await,
        (IoOp::SyncFileRange, _) => cache.sync_file_range(fd, io.offset, io.length, steps).await,
    }
}

/// The system call that a sync stands for.
fn sync_call(io: &Io, steps: SyncRange) -> Option<SyncCall> {
    match io.op {
        IoOp::Read | IoOp::Write | IoOp::Trim => None,
        IoOp::Sync => Some(SyncCall::File),
        IoOp::Datasync => Some(SyncCall::Data),
        IoOp::SyncFileRange => Some(SyncCall::Range {
            offset: io.offset,
            bytes: io.length,
            steps,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_fio::option::ENGINES;

    #[test]
    fn every_engine_that_is_simulated_has_its_kind() {
        for spec in ENGINES.iter().filter(|e| e.is_simulated()) {
            for direct in [false, true] {
                let kind = kind_of(spec.name, direct);
                let is_sync = matches!(kind, Kind::Sync | Kind::Mmap);
                let calls = spec.queueing == blklab_fio::option::Queueing::Synchronous;
                assert_eq!(is_sync, calls, "{}", spec.name);
            }
        }
    }
}
