// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of scenarios, as tasks on the page cache in place of fio jobs.

mod cat;
mod compile;
mod pvfs;

use super::recorder::Recorder;
use super::recording::Slot;
use crate::Machine;
use blklab_experiment::{Experiment, Workload};
use blklab_fio::job::Job;
use blklab_pagecache::PageCache;
use blklab_types::Error;
use blklab_types::Span;
use blklab_workload::scenario::Program;
use std::rc::Rc;

/// A program with its files on the disk.
pub(crate) enum Prepared {
    Cat(cat::Files),
    Pvfs(pvfs::Bench),
    Compile(compile::Trees),
}

/// Puts the files of the experiment's programs on the disk, before those of
/// its jobs. The names are those of the sections that they stand for.
pub(crate) fn prepare(
    e: &Experiment,
    cache: &PageCache<Machine>,
) -> Result<Vec<(&'static str, Prepared)>, Error> {
    let Workload::Scenario(s) = &e.workload else {
        return Ok(Vec::new());
    };
    let prepare = |program| match program {
        Program::Cat(c) => cat::Files::create(&c, e.seed, cache).map(Prepared::Cat),
        Program::PvfsBench(b) => pvfs::Bench::create(b, e.seed, cache).map(Prepared::Pvfs),
        Program::Compile(c) => compile::Trees::new(c, e).map(Prepared::Compile),
    };
    let all = s.programs().into_iter();
    all.map(|(section, program)| {
        let done = prepare(program)
            .map_err(|err| Error::new(format!("{section}: its files do not fit the disk: {err}")));
        Ok((section, done?))
    })
    .collect()
}

/// The body of a program's task.
pub(crate) async fn run(
    m: &Machine,
    cache: &PageCache<Machine>,
    program: Prepared,
    job: &Rc<Job>,
    slot: &Slot,
    call: Span,
) {
    if let Prepared::Pvfs(bench) = &program {
        bench.await_start(m).await;
    }
    let recorder = Recorder::start(m, slot, job, call);
    match program {
        Prepared::Cat(files) => files.read(m, cache, &recorder).await,
        Prepared::Pvfs(bench) => bench.write(m, cache, &recorder).await,
        Prepared::Compile(trees) => trees.run(m, cache, &recorder).await,
    }
    recorder.end();
}
