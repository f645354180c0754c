// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benchmark of PVFS2: sequential writes of one file, some outstanding,
//! each a list of regions.
//!
//! With one region per operation the file is written from beginning to end;
//! with more, gaps as large as the regions lie between them. An operation's
//! latency is the time from its submission until it is told.
//!
//! Source: March 2006, "write stalls"; Trove's limit of 16 operations.

use super::super::recorder::Recorder;
use crate::Machine;
use crate::aio::{AltAio, Execute, GlibcAio, Params, Reap};
use blklab_fio::run::Completion;
use blklab_fiostat::Ddir;
use blklab_pagecache::{Fd, FileId, FsError, PageCache, Sleeps};
use blklab_types::{Span, Time};
use blklab_workload::scenario::{PvfsBench, PvfsMode};
use std::cell::Cell;
use std::rc::Rc;

/// The benchmark and its file.
pub(crate) struct Bench {
    plan: PvfsBench,
    file: FileId,
    /// How long after the machine's periodic work it starts.
    late: Span,
}

/// Between two runs of the periodic work of pdflush and of the journal.
const PERIOD_NS: u64 = 5_000_000_000;

/// Offset and bytes of a region.
type Region = (u64, u64);

/// pwrite on the page cache, with one account of where all calls slept.
#[derive(Clone)]
struct Pwrite {
    m: Machine,
    cache: PageCache<Machine>,
    /// Processor time of the call itself.
    call: Span,
    slept: Rc<Cell<Sleeps>>,
}

impl Pwrite {
    fn new(m: &Machine, cache: &PageCache<Machine>, call: Span) -> Pwrite {
        Pwrite {
            m: m.clone(),
            cache: cache.clone(),
            call,
            slept: Rc::default(),
        }
    }
}

/// The operation that took longest.
#[derive(Default)]
struct Longest {
    took: Span,
    begin: Time,
    offset: u64,
    /// Where it slept, or the operations that it waited for.
    slept: Sleeps,
}

impl Longest {
    fn look(&mut self, begin: Time, now: Time, offset: u64, slept: impl FnOnce() -> Sleeps) {
        let took = now.since(begin);
        if took > self.took {
            *self = Longest {
                took,
                begin,
                offset,
                slept: slept(),
            };
        }
    }

    fn say(&self, r: &Recorder<'_>) {
        r.say(format!(
            "longest operation: {} s from {} s on, at offset {} MiB: {}",
            seconds(self.took.0),
            seconds(self.begin.0),
            self.offset >> 20,
            self.slept
        ));
    }
}

fn seconds(ns: u64) -> String {
    let ms = (ns + 500_000) / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

impl Execute for Pwrite {
    type Op = Region;

    async fn execute(&self, fd: Fd, (offset, bytes): Region) -> i32 {
        self.m.sleep_until(self.m.now() + self.call).await;
        let task = self.m.current();
        let before = self.cache.sleeps(task);
        let result = self.cache.write(fd, offset, bytes).await;
        let slept = self.cache.sleeps(task).since(&before);
        self.slept.set(self.slept.get().plus(&slept));
        match result {
            Ok(_) => 0,
            Err(FsError::NoSpace) => 28,
            Err(_) => 5,
        }
    }
}

/// What carries operations out.
enum Library {
    Glibc(GlibcAio<Pwrite>),
    Alt(AltAio<Pwrite>),
}

impl Library {
    fn new(plan: &PvfsBench, m: &Machine, pwrite: Pwrite) -> Option<Library> {
        let params = Params::glibc();
        match plan.mode {
            PvfsMode::Pwrite => None,
            PvfsMode::Glibc => {
                let params = Params {
                    threads_max: plan.threads_max,
                    notify: plan.notify,
                    ..params
                };
                let me = m.current();
                Some(Library::Glibc(GlibcAio::new(
                    m,
                    pwrite,
                    params,
                    Reap::ByTime,
                    me,
                )))
            }
            PvfsMode::Alt => {
                let params = Params {
                    threads_max: plan.limit,
                    ..params
                };
                Some(Library::Alt(AltAio::new(m, pwrite, params, m.current())))
            }
        }
    }

    async fn enqueue(&self, record: u32, fd: Fd, regions: &[Region]) {
        match self {
            Library::Glibc(aio) => aio.enqueue_list(record, fd, regions).await,
            Library::Alt(aio) => aio.enqueue_list(record, fd, regions).await,
        }
    }

    async fn reap(&self, out: &mut Vec<Completion>) {
        match self {
            Library::Glibc(aio) => aio.reap(1, usize::MAX, out).await,
            Library::Alt(aio) => aio.reap(1, usize::MAX, out).await,
        }
    }
}

impl Bench {
    /// Sets the file's space aside.
    ///
    /// With a seed other than 0 the benchmark starts at any time between two
    /// runs of the machine's periodic work, as on a machine that was booted
    /// some time ago.
    pub(crate) fn create(
        plan: PvfsBench,
        seed: u64,
        cache: &PageCache<Machine>,
    ) -> Result<Bench, FsError> {
        let spread = if plan.regions > 1 { 2 } else { 1 };
        let bytes = plan.ops.saturating_mul(plan.bytes).saturating_mul(spread);
        let file = cache.create_empty(Some(bytes))?;
        let late = match seed {
            0 => Span::ZERO,
            _ => Span(blklab_engine::Stream::named(seed, "pvfs-bench start").below(PERIOD_NS)),
        };
        Ok(Bench { plan, file, late })
    }

    /// Sleeps until the benchmark starts.
    pub(crate) async fn await_start(&self, m: &Machine) {
        m.sleep_until(m.now() + self.late).await;
    }

    /// The regions of an operation.
    fn regions(&self, op: u64, out: &mut Vec<Region>) {
        out.clear();
        let n = self.plan.regions;
        if n == 1 {
            out.push((op * self.plan.bytes, self.plan.bytes));
            return;
        }
        let bytes = self.plan.bytes / n;
        let first = op * self.plan.bytes * 2;
        out.extend((0..n).map(|i| (first + i * 2 * bytes, bytes)));
    }

    /// Writes the file.
    pub(crate) async fn write(self, m: &Machine, cache: &PageCache<Machine>, r: &Recorder<'_>) {
        let fd = cache.open(self.file, false);
        let fd = fd.expect("the program removes no file");
        let pwrite = Pwrite::new(m, cache, r.call());
        let longest = match Library::new(&self.plan, m, pwrite.clone()) {
            Some(library) => self.asynchronous(&library, &pwrite.slept, fd, m, r).await,
            None => self.one_by_one(&pwrite, fd, m, r).await,
        };
        longest.say(r);
    }

    async fn one_by_one(&self, pwrite: &Pwrite, fd: Fd, m: &Machine, r: &Recorder<'_>) -> Longest {
        let mut longest = Longest::default();
        let mut regions = Vec::new();
        for op in 0..self.plan.ops {
            self.regions(op, &mut regions);
            let begin = m.now();
            let before = pwrite.slept.get();
            let mut error = 0;
            for region in &regions {
                error = error.max(pwrite.execute(fd, *region).await);
            }
            let slept = || pwrite.slept.get().since(&before);
            longest.look(begin, m.now(), regions[0].0, slept);
            r.moved(Ddir::Write, regions[0].0, self.plan.bytes, begin, error);
        }
        longest
    }

    /// Submits while fewer than `depth` operations are outstanding.
    async fn asynchronous(
        &self,
        library: &Library,
        slept: &Cell<Sleeps>,
        fd: Fd,
        m: &Machine,
        r: &Recorder<'_>,
    ) -> Longest {
        let mut longest = Longest::default();
        // Glibc has no limit of its own on operations in progress.
        let depth = self.plan.depth.min(match library {
            Library::Glibc(_) => self.plan.limit,
            Library::Alt(_) => u32::MAX,
        });
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut begun = vec![(Time::ZERO, 0, Sleeps::default()); depth as usize];
        let mut regions = Vec::new();
        let mut done: Vec<Completion> = Vec::new();
        let mut next = 0;
        while next < self.plan.ops || free.len() < depth as usize {
            if next < self.plan.ops
                && let Some(record) = free.pop()
            {
                self.regions(next, &mut regions);
                begun[record as usize] = (m.now(), regions[0].0, slept.get());
                r.system_call().await;
                library.enqueue(record, fd, &regions).await;
                next += 1;
                continue;
            }
            done.clear();
            library.reap(&mut done).await;
            for c in &done {
                let (begin, offset, before) = begun[c.record as usize];
                longest.look(begin, m.now(), offset, || slept.get().since(&before));
                r.moved(Ddir::Write, offset, self.plan.bytes, begin, c.error);
                free.push(c.record);
            }
        }
        longest
    }
}
