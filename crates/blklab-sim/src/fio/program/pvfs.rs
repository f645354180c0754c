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
use blklab_fs::{Fd, FileId, FsError, PageCache};
use blklab_types::Time;
use blklab_workload::scenario::{PvfsBench, PvfsMode};

/// The benchmark and its file.
pub(crate) struct Bench {
    plan: PvfsBench,
    file: FileId,
}

/// Offset and bytes of a region.
type Region = (u64, u64);

/// pwrite on the page cache.
struct Pwrite(PageCache<Machine>);

impl Execute for Pwrite {
    type Op = Region;

    async fn execute(&self, fd: Fd, (offset, bytes): Region) -> i32 {
        match self.0.write(fd, offset, bytes).await {
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
    fn new(plan: &PvfsBench, m: &Machine, cache: &PageCache<Machine>) -> Option<Library> {
        let pwrite = Pwrite(cache.clone());
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
    pub(crate) fn create(plan: PvfsBench, cache: &PageCache<Machine>) -> Result<Bench, FsError> {
        let spread = if plan.regions > 1 { 2 } else { 1 };
        let bytes = plan.ops.saturating_mul(plan.bytes).saturating_mul(spread);
        let file = cache.create_empty(Some(bytes))?;
        Ok(Bench { plan, file })
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
        let Ok(fd) = cache.open(self.file, false) else {
            return;
        };
        match Library::new(&self.plan, m, cache) {
            Some(library) => self.asynchronous(&library, m, fd, r).await,
            None => self.one_by_one(m, cache, fd, r).await,
        }
    }

    async fn one_by_one(&self, m: &Machine, cache: &PageCache<Machine>, fd: Fd, r: &Recorder<'_>) {
        let pwrite = Pwrite(cache.clone());
        let mut regions = Vec::new();
        for op in 0..self.plan.ops {
            self.regions(op, &mut regions);
            let begin = m.now();
            let mut error = 0;
            for region in &regions {
                r.system_call().await;
                error = error.max(pwrite.execute(fd, *region).await);
            }
            r.moved(Ddir::Write, regions[0].0, self.plan.bytes, begin, error);
        }
    }

    /// Submits while fewer than `depth` operations are outstanding.
    async fn asynchronous(&self, library: &Library, m: &Machine, fd: Fd, r: &Recorder<'_>) {
        // Glibc has no limit of its own on operations in progress.
        let depth = self.plan.depth.min(match library {
            Library::Glibc(_) => self.plan.limit,
            Library::Alt(_) => u32::MAX,
        });
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut begun = vec![(Time::ZERO, 0); depth as usize];
        let mut regions = Vec::new();
        let mut done: Vec<Completion> = Vec::new();
        let mut next = 0;
        while next < self.plan.ops || free.len() < depth as usize {
            if next < self.plan.ops
                && let Some(record) = free.pop()
            {
                self.regions(next, &mut regions);
                begun[record as usize] = (m.now(), regions[0].0);
                r.system_call().await;
                library.enqueue(record, fd, &regions).await;
                next += 1;
                continue;
            }
            done.clear();
            library.reap(&mut done).await;
            for c in &done {
                let (begin, offset) = begun[c.record as usize];
                r.moved(Ddir::Write, offset, self.plan.bytes, begin, c.error);
                free.push(c.record);
            }
        }
    }
}
