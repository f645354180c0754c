// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab recommend`: what to set.

mod paste;
mod show;

use crate::Outcome;
use crate::args::{PlainFormat, RecommendArgs};
use crate::examine::one_experiment;
use crate::interrupt::Interrupt;
use crate::progress::Watcher;
use crate::stack::Stack;
use anyhow::{Result, bail};
use blklab::experiment::{Experiment, TraceSpec, Workload};
use blklab::run_directory::RunDir;
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab::types::Error;
use blklab_recommend::{Ask, Goal, How, Keep, RUNS_MIN};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn recommend(a: &RecommendArgs, schedulers: Schedulers) -> Result<Outcome> {
    let ask = asked(a)?;
    let planner = targets::planner(schedulers);
    let experiment = experiment(a, &planner)?;
    if let Some(target) = &ask.confirm {
        let mut there = experiment.clone();
        there
            .set("target", target, planner.catalogue())
            .and_then(|()| planner.target(&there).map(drop))
            .map_err(|err| err.in_file("--confirm"))?;
    }
    let interrupt = Interrupt::watch();
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let shown = Watcher::runs(Arc::clone(&counts));
    let told = |done: usize, wanted: usize| {
        counts[0].store(done, Ordering::Relaxed);
        counts[1].store(wanted, Ordering::Relaxed);
    };
    let how = How {
        planner: &planner,
        threads: a.jobs.unwrap_or_else(blklab::parallel::cores),
        stop: Arc::clone(&interrupt.stop),
        told: &told,
    };
    let answer = blklab_recommend::recommend(&experiment, &ask, &how);
    drop(shown);
    let answer = match answer {
        Ok(answer) => answer,
        Err(_) if interrupt.happened() => return Ok(Outcome::Interrupted),
        Err(err) => return Err(by_option(err).into()),
    };
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => show::show(&mut out, &answer, a.verbose)?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// What the options ask.
fn asked(a: &RecommendArgs) -> Result<Ask> {
    if a.jobs == Some(0) {
        bail!("--jobs 0: at least 1 run at a time");
    }
    if a.max_runs < RUNS_MIN {
        bail!(
            "--max-runs {}: {RUNS_MIN} at least, as fewer find nothing",
            a.max_runs
        );
    }
    let goal = a.goal.as_deref().map(Goal::parse).transpose();
    let keeps: Result<Vec<Keep>, Error> = a.keep.iter().map(|text| Keep::parse(text)).collect();
    Ok(Ask {
        goal: goal.map_err(|err| err.in_file("--for"))?,
        keeps: keeps.map_err(|err| err.in_file("--keep"))?,
        runs_max: a.max_runs,
        repetitions: a.repeat,
        exhaustive: a.exhaustive,
        confirm: a.confirm.clone(),
    })
}

/// What is wrong with an option's text is known once the experiment has run.
fn by_option(err: Error) -> Error {
    match &*err.key {
        "goal" => err.in_file("--for"),
        "keep" => err.in_file("--keep"),
        _ => err,
    }
}

/// The processes of a trace, which submit when what they waited for has ended.
fn of_trace(a: &RecommendArgs) -> Result<Experiment> {
    if a.device.is_none() {
        bail!(
            "{}: on which device? name one (--device), or fit one to the trace (blklab fit-device)",
            a.file.display()
        );
    }
    let mut spec = TraceSpec::new(&a.file.display().to_string());
    for (key, value) in [("loop", "closed"), ("sectors", "wrap")] {
        spec.set(key, value)?;
    }
    Ok(Experiment::new("trace", Workload::Trace(spec)))
}

/// The experiment of the file, with what the options say on top of it.
fn experiment(a: &RecommendArgs, planner: &targets::Planner) -> Result<Experiment> {
    let file = if a.file.is_dir() {
        RunDir::open(&a.file, planner.catalogue())?.experiment
    } else if crate::source::is_experiment(&a.file) {
        blklab::experiment::load(&a.file, planner.catalogue())?
    } else {
        of_trace(a)?
    };
    let stack = Stack {
        kernel: a.kernel.as_slice(),
        sched: a.sched.as_slice(),
        device: a.device.as_slice(),
        md: a.md.as_slice(),
        fs: a.fs.as_slice(),
        set: &a.set,
        memory: a.memory.as_ref(),
        seed: a.seed,
        repeat: 1,
        sections: &a.section,
        ..Stack::default()
    };
    one_experiment(
        &a.file,
        &file,
        &stack.chosen()?,
        a.variant.as_deref(),
        planner,
    )
}
