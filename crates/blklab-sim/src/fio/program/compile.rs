// SPDX-License-Identifier: MIT OR Apache-2.0
//! compilebench on the extent layout: trees created, read and looked at.
//!
//! Each file gets its place when it is created, as large as it will be, behind
//! the file before it. Directories and inodes are not on the disk: calls that
//! only touch them take processor time. What the layout cannot do (unlink, rmdir,
//! truncate) is refused before the run.
//!
//! Source: compilebench 0.6, as described with the generator.

use super::super::recorder::Recorder;
use crate::Machine;
use blklab_fiostat::Ddir;
use blklab_fs::{Fd, FileId, FsError, PageCache};
use blklab_types::{PAGE_BYTES, Span, Time};
use blklab_workload::compilebench::calls::{Call, Contents, Mode, read_tree, stat_tree, write_set};
use blklab_workload::compilebench::rates::Rates;
use blklab_workload::compilebench::shape::{Set, Shape};
use blklab_workload::scenario::Compile;

/// The trees of a run.
pub(crate) struct Trees {
    plan: Compile,
    shape: Shape,
    /// Files of the clean tree and their sizes, in order of creation.
    files: Vec<(u32, u64)>,
    /// Files of each tree, by their number.
    made: Vec<Vec<Option<FileId>>>,
}

/// State of the program between calls.
struct Process<'a> {
    m: &'a Machine,
    cache: &'a PageCache<Machine>,
    recorder: &'a Recorder<'a>,
    file_cost: Span,
    fd: Option<Fd>,
    position: u64,
}

impl Trees {
    /// Nothing is on the disk yet; refuses what will not fit.
    pub(crate) fn create(plan: Compile, cache: &PageCache<Machine>) -> Result<Trees, FsError> {
        let shape = Shape::recorded();
        let files = shape.files_of(Set::Unpatched);
        let pages: u64 = files.iter().map(|f| f.1.div_ceil(PAGE_BYTES)).sum();
        let layout = cache.config().layout;
        let sectors = layout.end_sector.saturating_sub(layout.start_sector);
        if pages * plan.initial * PAGE_BYTES / 512 > sectors {
            return Err(FsError::NoSpace);
        }
        Ok(Trees {
            plan,
            shape,
            files,
            made: Vec::new(),
        })
    }

    /// Creates the trees, then reads and looks at some.
    pub(crate) async fn run(mut self, m: &Machine, cache: &PageCache<Machine>, r: &Recorder<'_>) {
        let mut process = Process {
            m,
            cache,
            recorder: r,
            file_cost: Span(self.plan.file_cost_ns),
            fd: None,
            position: 0,
        };
        let mut calls = Vec::new();
        write_set(
            &self.shape,
            &self.files,
            Mode::Create,
            self.plan.buffer_bytes,
            |call| calls.push(call),
        );
        let (mut creates, mut reads, mut stats) =
            (Rates::default(), Rates::default(), Rates::default());
        let bytes: u64 = self.files.iter().map(|f| f.1).sum();
        for _ in 0..self.plan.initial {
            self.made.push(vec![None; self.shape.files.len()]);
            let begin = m.now();
            self.perform(&mut process, &calls).await;
            creates.add(bytes, m.now().since(begin).0);
        }
        if self.plan.sync {
            cache.sync().await;
        }
        let contents = self.contents(&calls);
        let buffer = self.plan.buffer_bytes;
        let (mut reading, mut looking) = (Vec::new(), Vec::new());
        read_tree(&self.shape, &contents, buffer, |call| reading.push(call));
        stat_tree(&self.shape, &contents, |call| looking.push(call));
        let trees = std::mem::take(&mut self.made);
        for tree in trees.iter().take(self.plan.reads as usize) {
            let elapsed = self.look(&mut process, tree, &reading).await;
            reads.add(bytes, elapsed.0);
        }
        for tree in trees.iter().take(self.plan.stats as usize) {
            let elapsed = self.look(&mut process, tree, &looking).await;
            stats.add(0, elapsed.0);
        }
        say(r, "create", &creates, true);
        say(r, "read", &reads, true);
        say(r, "stat", &stats, false);
    }

    /// What a tree holds after these calls.
    fn contents(&self, calls: &[Call]) -> Contents {
        let mut contents = Contents::empty(&self.shape);
        let mut open = None;
        calls.iter().for_each(|c| contents.apply(*c, &mut open));
        contents
    }

    /// Reads or looks at a tree on cold caches; the time includes the sync.
    async fn look(
        &mut self,
        process: &mut Process<'_>,
        tree: &[Option<FileId>],
        calls: &[Call],
    ) -> Span {
        process.cache.drop_caches();
        self.made.push(tree.to_vec());
        let begin = process.m.now();
        self.perform(process, calls).await;
        if self.plan.sync {
            process.cache.sync().await;
        }
        self.made.clear();
        process.m.now().since(begin)
    }

    /// Carries calls out on the last tree.
    async fn perform(&mut self, process: &mut Process<'_>, calls: &[Call]) {
        let Some(tree) = self.made.last_mut() else {
            return;
        };
        for call in calls {
            process.recorder.system_call().await;
            match *call {
                Call::OpenAppend(file) => {
                    process.interpret().await;
                    let size = self.shape.files[file as usize].size_in(Set::Unpatched);
                    let id = process.cache.create_empty(size.filter(|s| *s > 0)).ok();
                    tree[file as usize] = id;
                    process.open(id);
                }
                Call::OpenRead(file) => {
                    process.interpret().await;
                    process.open(tree[file as usize]);
                }
                Call::ReadAll(bytes) => process.read_all(bytes).await,
                Call::Write(bytes) => process.write(bytes).await,
                Call::Close => process.fd = None,
                // Directories and inodes are in memory; the rest never comes.
                Call::StatDirectory(_)
                | Call::MakeDirectory(_)
                | Call::RemoveDirectory(_)
                | Call::List(_)
                | Call::Stat(_)
                | Call::Fstat
                | Call::Rewind
                | Call::Truncate
                | Call::Unlink(_) => {}
            }
        }
    }
}

impl Process<'_> {
    /// Processor time of the interpreter for one file.
    async fn interpret(&self) {
        self.m.sleep_until(self.m.now() + self.file_cost).await;
    }

    fn open(&mut self, file: Option<FileId>) {
        self.fd = file.and_then(|id| self.cache.open(id, false).ok());
        self.position = 0;
    }

    async fn write(&mut self, bytes: u64) {
        let Some(fd) = self.fd else { return };
        let begin = self.m.now();
        let result = self.cache.write(fd, self.position, bytes).await;
        self.account(Ddir::Write, result, bytes, begin);
        self.position += bytes;
    }

    async fn read_all(&mut self, piece: u64) {
        let Some(fd) = self.fd else { return };
        loop {
            let begin = self.m.now();
            let result = self.cache.read(fd, self.position, piece).await;
            let bytes = *result.as_ref().unwrap_or(&0);
            if bytes == 0 {
                return;
            }
            self.account(Ddir::Read, result, bytes, begin);
            self.position += bytes;
            self.recorder.system_call().await;
        }
    }

    fn account(&self, dir: Ddir, result: Result<u64, FsError>, bytes: u64, begin: Time) {
        let error = i32::from(result.is_err()) * 5;
        self.recorder.moved(dir, self.position, bytes, begin, error);
    }
}

/// One line of compilebench's summary.
fn say(r: &Recorder<'_>, name: &str, rates: &Rates, moves_data: bool) {
    match (rates.count(), moves_data) {
        (0, _) => {}
        (n, true) => r.say(format!(
            "compilebench: {name}, {n} runs, mean of the rates {:.2} MB/s (MB of 2^20 bytes)",
            rates.mean_mib_s()
        )),
        (n, false) => r.say(format!(
            "compilebench: {name}, {n} runs, mean {:.2} seconds",
            rates.mean_s()
        )),
    }
}
