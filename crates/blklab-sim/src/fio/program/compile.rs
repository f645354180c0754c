// SPDX-License-Identifier: MIT OR Apache-2.0
//! compilebench as a program: its operations on trees, call by call.
//!
//! Source: compilebench 0.6, as described with the generator. Listings come in
//! the filesystem's order, so the order in which files are created, read and
//! removed is the filesystem's.

use super::super::recorder::Recorder;
use crate::Machine;
use blklab_engine::Stream;
use blklab_experiment::Experiment;
use blklab_fiostat::Ddir;
use blklab_pagecache::{Fd, FileId, FsError, Name, PageCache};
use blklab_target::Figure;
use blklab_types::{Span, Time};
use blklab_workload::compilebench::bench::{Bench, ORDERING_TREE, Operation, Step};
use blklab_workload::compilebench::calls::{
    Call, Contents, Entry, clean, delete_tree, read_tree, stat_tree, walk_files, write_set,
};
use blklab_workload::compilebench::rates::Rates;
use blklab_workload::compilebench::shape::{Set, Shape};
use blklab_workload::scenario::Compile;

/// One tree on the disk.
struct Tree {
    number: u64,
    contents: Contents,
    files: Vec<Option<FileId>>,
    directories: Vec<Option<FileId>>,
}

/// The trees of a run.
pub(crate) struct Trees {
    plan: Compile,
    shape: Shape,
    /// Files of each set with their sizes, in the order in which they are
    /// written.
    orders: [Vec<(u32, u64)>; 4],
    trees: Vec<Tree>,
    rates: Vec<Summary>,
}

/// The rates of one kind of operation.
struct Summary {
    name: String,
    moves_data: bool,
    rates: Rates,
}

/// State of the program between calls.
struct Process<'a> {
    m: &'a Machine,
    cache: &'a PageCache<Machine>,
    recorder: &'a Recorder<'a>,
    file_cost: Span,
    fd: Option<Fd>,
    position: u64,
    failed: Option<FsError>,
}

const SETS: [Set; 4] = [
    Set::Unpatched,
    Set::Patch,
    Set::CompileUnpatched,
    Set::CompilePatched,
];

impl Trees {
    /// Nothing is on the disk yet.
    pub(crate) fn new(mut plan: Compile, e: &Experiment) -> Result<Trees, FsError> {
        plan.file_cost_ns = e.cpu_time(Span(plan.file_cost_ns)).ns();
        let shape = Shape::recorded();
        let mut orders = SETS.map(|set| shape.files_of(set));
        if plan.plan.ordering {
            shuffle(&mut orders[Set::CompileUnpatched as usize], plan.plan.seed);
        }
        Ok(Trees {
            plan,
            shape,
            orders,
            trees: Vec::new(),
            rates: Vec::new(),
        })
    }

    /// The whole run.
    pub(crate) async fn run(mut self, m: &Machine, cache: &PageCache<Machine>, r: &Recorder<'_>) {
        let mut process = Process {
            m,
            cache,
            recorder: r,
            file_cost: Span(self.plan.file_cost_ns),
            fd: None,
            position: 0,
            failed: None,
        };
        self.phases(&mut process).await;
        if let Some(error) = process.failed {
            r.say(format!("compilebench: ended early: {error}"));
        }
        for s in self.rates {
            s.say(r);
        }
    }

    async fn phases(&mut self, process: &mut Process<'_>) {
        let mut bench = Bench::new(self.plan.plan);
        for _ in 0..bench.nr_first_steps() {
            if let (None, Some(step)) = (process.failed, bench.next_step()) {
                self.step(process, step).await;
            }
        }
        if self.plan.plan.sync {
            process.cache.sync().await;
        }
        self.looks(process).await;
        while let (None, Some(step)) = (process.failed, bench.next_step()) {
            self.step(process, step).await;
        }
    }

    /// The reads and looks that the scenario adds behind the initial trees.
    async fn looks(&mut self, process: &mut Process<'_>) {
        let reads = (0..self.plan.reads).map(|tree| ("read", tree, Operation::Read));
        let stats = (0..self.plan.stats).map(|tree| ("stat", tree, Operation::Stat));
        for (name, tree, operation) in reads.chain(stats) {
            if process.failed.is_none() {
                let step = Step {
                    name,
                    tree,
                    compiled: false,
                    operation,
                    drop_caches: true,
                    sync: self.plan.plan.sync,
                };
                self.step(process, step).await;
            }
        }
    }

    /// One operation, with its time.
    async fn step(&mut self, process: &mut Process<'_>, step: Step) {
        if step.drop_caches {
            process.cache.drop_caches();
        }
        let at = self.tree(step.tree);
        let calls = self.calls(process.cache, at, step.operation);
        let before = self.trees[at].contents.bytes();
        let begin = process.m.now();
        self.perform(process, at, &calls).await;
        if step.sync {
            process.cache.sync().await;
        }
        let elapsed = process.m.now().since(begin);
        let after = self.trees[at].contents.bytes();
        if step.tree == ORDERING_TREE {
            self.order(process, at, step.operation).await;
            return;
        }
        let bytes = match step.operation {
            Operation::Write(set, _) => self.orders[set as usize].iter().map(|f| f.1).sum(),
            Operation::Read => after,
            _ => before - after,
        };
        let moves_data = !matches!(step.operation, Operation::Delete | Operation::Stat);
        let kind = if step.compiled { " compiled" } else { "" };
        let name = format!("{}{kind}", step.name);
        let known = self.rates.iter().position(|s| s.name == name);
        let i = known.unwrap_or_else(|| {
            self.rates.push(Summary {
                name,
                moves_data,
                rates: Rates::default(),
            });
            self.rates.len() - 1
        });
        self.rates[i].rates.add(bytes, elapsed.0);
        if step.operation == Operation::Delete {
            self.trees.remove(at);
        }
    }

    /// After a step of the ordering phase: a set that was written comes in the
    /// order of the walk from now on; a tree that was emptied goes.
    async fn order(&mut self, process: &mut Process<'_>, at: usize, operation: Operation) {
        let tree = &self.trees[at];
        if let Operation::Write(set, _) = operation {
            let order = |entry| tree.listing_place(process.cache, entry);
            let walked = walk_files(&self.shape, &tree.contents, &order);
            let sized = |file: u32| {
                let size = self.shape.files[file as usize].size_in(set);
                (file, size.unwrap_or_default())
            };
            self.orders[set as usize] = walked.into_iter().map(sized).collect();
            return;
        }
        if let Some(root) = tree.directories[0] {
            process.recorder.system_call().await;
            let gone = process.cache.unlink(root).await;
            process.note(gone);
        }
        self.trees.remove(at);
    }

    /// The index of a tree, which may be new.
    fn tree(&mut self, number: u64) -> usize {
        let found = self.trees.iter().position(|t| t.number == number);
        found.unwrap_or_else(|| {
            self.trees.push(Tree {
                number,
                contents: Contents::empty(&self.shape),
                files: vec![None; self.shape.files.len()],
                directories: vec![None; self.shape.directories.len()],
            });
            self.trees.len() - 1
        })
    }

    /// What an operation does, call by call.
    fn calls(&self, cache: &PageCache<Machine>, at: usize, operation: Operation) -> Vec<Call> {
        let (shape, tree) = (&self.shape, &self.trees[at]);
        let order = |entry| tree.listing_place(cache, entry);
        let mut calls = Vec::new();
        let push = |call| calls.push(call);
        let buffer = self.plan.buffer_bytes;
        match operation {
            Operation::Write(set, mode) => {
                write_set(shape, &self.orders[set as usize], mode, buffer, push);
            }
            Operation::Clean(set) => clean(shape, set, push),
            Operation::Delete => delete_tree(shape, &tree.contents, &order, push),
            Operation::Read => read_tree(shape, &tree.contents, &order, buffer, push),
            Operation::Stat => stat_tree(shape, &tree.contents, &order, push),
        }
        calls
    }

    /// Carries calls out on a tree, up to the first that fails.
    async fn perform(&mut self, process: &mut Process<'_>, at: usize, calls: &[Call]) {
        let mut open = None;
        for call in calls {
            process.recorder.system_call().await;
            let done = self.call(process, at, *call).await;
            process.note(done);
            if process.failed.is_some() {
                return;
            }
            self.trees[at].contents.apply(*call, &mut open);
        }
    }

    async fn call(
        &mut self,
        process: &mut Process<'_>,
        at: usize,
        call: Call,
    ) -> Result<(), FsError> {
        let (shape, tree, cache) = (&self.shape, &mut self.trees[at], process.cache);
        match call {
            Call::StatDirectory(d) => match tree.directories[d as usize] {
                Some(id) => cache.stat(id).await,
                None => cache.stat_missing(tree.parent(shape, d, cache)).await,
            },
            Call::MakeDirectory(d) => {
                if let Some(id) = tree.directories[d as usize] {
                    return cache.stat(id).await;
                }
                let parent = tree.parent(shape, d, cache);
                let made = cache.mkdir(parent, tree.name(shape, Entry::Directory(d)));
                tree.directories[d as usize] = Some(made.await?);
                Ok(())
            }
            Call::RemoveDirectory(d) => match tree.directories[d as usize].take() {
                Some(id) => cache.unlink(id).await,
                None => Ok(()),
            },
            Call::List(d) => match tree.directories[d as usize] {
                Some(id) => cache.list(id).await.map(|_| ()),
                None => Ok(()),
            },
            Call::Stat(f) => match tree.files[f as usize] {
                Some(id) => cache.stat(id).await,
                None => cache.stat_missing(tree.directory_of(shape, f, cache)).await,
            },
            Call::OpenAppend(f) => {
                process.interpret().await;
                if tree.files[f as usize].is_none() {
                    let directory = tree.directory_of(shape, f, cache);
                    let made = cache.create(directory, tree.name(shape, Entry::File(f)));
                    tree.files[f as usize] = Some(made.await?);
                }
                process.open(tree.files[f as usize]).await
            }
            Call::OpenRead(f) => {
                process.interpret().await;
                process.open(tree.files[f as usize]).await
            }
            Call::Unlink(f) => match tree.files[f as usize].take() {
                Some(id) => cache.unlink(id).await,
                None => cache.stat_missing(tree.directory_of(shape, f, cache)).await,
            },
            Call::ReadAll(bytes) => process.read_all(bytes).await,
            Call::Truncate => {
                process.position = 0;
                match process.fd {
                    Some(fd) => cache.truncate(fd).await,
                    None => Ok(()),
                }
            }
            Call::Write(bytes) => process.write(bytes).await,
            Call::Close => match process.fd.take() {
                Some(fd) => cache.close(fd).await,
                None => Ok(()),
            },
            // What is appended goes to the end wherever the position is.
            Call::Fstat | Call::Rewind => Ok(()),
        }
    }
}

impl Tree {
    /// The directory that a directory is in.
    fn parent(&self, shape: &Shape, directory: u32, cache: &PageCache<Machine>) -> FileId {
        let parent = shape.directories[directory as usize].parent;
        let id = parent.and_then(|p| self.directories[p as usize]);
        id.unwrap_or_else(|| cache.root())
    }

    /// The directory that a file is in.
    fn directory_of(&self, shape: &Shape, file: u32, cache: &PageCache<Machine>) -> FileId {
        let directory = shape.files[file as usize].directory;
        self.directories[directory as usize].unwrap_or_else(|| cache.root())
    }

    /// A name of the recorded length; the number of the entry, and for the root
    /// that of the tree, stand for its letters.
    fn name(&self, shape: &Shape, entry: Entry) -> Name {
        let (length, number) = match entry {
            Entry::Directory(0) => (9, self.number),
            Entry::Directory(d) => (shape.directories[d as usize].name_length, u64::from(d)),
            Entry::File(f) => (shape.files[f as usize].name_length, u64::from(f) | 1 << 32),
        };
        let hash = Stream::named(number, "name").below(1 << 32);
        Name {
            bytes: u8::try_from(length).unwrap_or(u8::MAX),
            hash: u32::try_from(hash).unwrap_or_default(),
        }
    }

    /// Where an entry stands in its directory's listing.
    fn listing_place(&self, cache: &PageCache<Machine>, entry: Entry) -> (u64, u64) {
        let id = match entry {
            Entry::File(f) => self.files[f as usize],
            Entry::Directory(d) => self.directories[d as usize],
        };
        id.map_or((u64::MAX, 0), |id| cache.listing_place(id))
    }
}

impl Process<'_> {
    /// Processor time of the interpreter for one file.
    async fn interpret(&self) {
        self.m.sleep_until(self.m.now() + self.file_cost).await;
    }

    /// Keeps the first failure.
    fn note(&mut self, result: Result<(), FsError>) {
        self.failed = self.failed.or(result.err());
    }

    async fn open(&mut self, file: Option<FileId>) -> Result<(), FsError> {
        let file = file.ok_or(FsError::BadHandle)?;
        self.fd = Some(self.cache.open_file(file).await?);
        self.position = self.cache.size_bytes(file);
        Ok(())
    }

    async fn write(&mut self, bytes: u64) -> Result<(), FsError> {
        let fd = self.fd.ok_or(FsError::BadHandle)?;
        let begin = self.m.now();
        let result = self.cache.write(fd, self.position, bytes).await;
        self.account(Ddir::Write, result, bytes, begin);
        self.position += bytes;
        result.map(|_| ())
    }

    async fn read_all(&mut self, piece: u64) -> Result<(), FsError> {
        let fd = self.fd.ok_or(FsError::BadHandle)?;
        let mut at = 0;
        loop {
            let begin = self.m.now();
            let bytes = self.cache.read(fd, at, piece).await?;
            if bytes == 0 {
                return Ok(());
            }
            self.account(Ddir::Read, Ok(bytes), bytes, begin);
            at += bytes;
            self.recorder.system_call().await;
        }
    }

    fn account(&self, dir: Ddir, result: Result<u64, FsError>, bytes: u64, begin: Time) {
        let error = i32::from(result.is_err()) * 5;
        self.recorder.moved(dir, self.position, bytes, begin, error);
    }
}

/// Fisher and Yates' shuffle.
fn shuffle(files: &mut [(u32, u64)], seed: u64) {
    let mut draw = Stream::named(seed, "compilebench order");
    for i in (1..files.len()).rev() {
        files.swap(i, draw.below(i as u64 + 1) as usize);
    }
}

impl Summary {
    /// One line of compilebench's summary.
    fn say(self, r: &Recorder<'_>) {
        let (name, count) = (&self.name, self.rates.count());
        let (unit, value) = if self.moves_data {
            ("MiB/s", self.rates.mean_mib_s())
        } else {
            ("s", self.rates.mean_s())
        };
        r.say(if self.moves_data {
            format!(
                "compilebench: {name}, {count} runs, mean of the rates {value:.2} MB/s (MB of 2^20 bytes)"
            )
        } else {
            format!("compilebench: {name}, {count} runs, mean {value:.2} seconds")
        });
        r.measured(Figure {
            name: self.name,
            unit: unit.to_owned(),
            count,
            value,
        });
    }
}
