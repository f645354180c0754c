// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of `blklab run`, side by side.

use crate::args::{RunArgs, TableRows};
use crate::files::Files;
use crate::progress::{Progress, Watcher};
use anyhow::{Result, bail};
use blklab::matrix::Cell;
use blklab::repeat::Rounds;
use blklab::run::{Collect, RunOptions, RunOutput};
use blklab::side_by_side;
use blklab::targets::Plan;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the experiments, round after round; those that had not begun when a stop was asked
/// for, or that no round named, have no result.
pub(crate) fn execute(
    a: &RunArgs,
    cells: &[Cell],
    plans: &[Plan],
    files: &Files,
    rounds: &mut Rounds<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Option<RunOutput>>> {
    if let Some(plan) = plans.iter().find(|p| a.verify_digest && !p.repeats()) {
        let target = &plan.experiment().target;
        bail!("no two runs on the target {target} are the same: --verify-digest is for the others");
    }
    let threads = a.jobs.unwrap_or_else(blklab::parallel::cores);
    // The table says which experiments gave the same run.
    let compares = a.output_format == "table" && cells.len() > 1;
    let beside = side_by_side::is_wanted(cells);
    let progress = Progress::new(0);
    let mut runs: Vec<Option<RunOutput>> = cells.iter().map(|_| None).collect();
    loop {
        let places = rounds.next(&runs);
        if places.is_empty() {
            break;
        }
        progress.expect(places.len());
        let has_idle_core = threads >= 2 * places.len();
        let length = |&place: &usize| blklab::meter::length(&plans[place]);
        let round = blklab::parallel::map_longest_first(&places, threads, length, |&place| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let meter = progress.begin();
            let options = RunOptions {
                traces: files.traces(place),
                trace_rows: a.trace_rows.map(TableRows::rows),
                stop: Arc::clone(stop),
                meter: meter.clone(),
                fingerprint: compares,
                collect: if beside {
                    Collect::Statistics
                } else {
                    collected(a, &plans[place])
                },
                kept_events_max: if beside {
                    blklab::beside::EVENTS_MAX
                } else {
                    0
                },
                counters: a.out.is_some(),
                has_idle_core,
                ..RunOptions::default()
            };
            let result = files
                .make_folder(place)
                .and_then(|()| run_plan(a, &plans[place], &options));
            if result.is_err() {
                // Nobody waits for the others' results any more.
                stop.store(true, Ordering::Relaxed);
            }
            progress.end(meter.as_ref());
            result.map(Some)
        });
        let round: Result<Vec<_>> = round.into_iter().collect();
        let round = round.inspect_err(|_| files.remove_empty())?;
        for (place, run) in places.into_iter().zip(round) {
            runs[place] = run;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    side_by_side::compare(cells, &mut runs);
    if compares {
        learn_merged_queues(cells, plans, &mut runs, threads, stop)?;
    }
    progress.finish();
    Ok(runs)
}

/// Makes what the plans need and what takes long, such as a kernel.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn prepare<'p>(
    plans: impl IntoIterator<Item = &'p Plan>,
    stop: &AtomicBool,
) -> Result<()> {
    let words = Arc::new(Mutex::new("preparing".to_owned()));
    let _watcher = Watcher::preparing(Arc::clone(&words));
    let mut told = |text| *words.lock().unwrap_or_else(PoisonError::into_inner) = text;
    for plan in plans {
        let made = plan.prepare(stop, &mut told);
        made.map_err(|err| plan.experiment().locate(err))?;
    }
    Ok(())
}

/// What somebody will read: the statistics of the trace stand in JSON and in run
/// directories, and the table of explicit processes is made of them.
fn collected(a: &RunArgs, plan: &Plan) -> Collect {
    let mut formats = a.output_format.split(',').map(str::trim);
    let reads_all = formats.any(|f| !["table", "csv", "normal", "terse"].contains(&f));
    if reads_all || a.out.is_some() {
        Collect::Statistics
    } else {
        Collect::metrics(plan)
    }
}

fn run_plan(a: &RunArgs, plan: &Plan, options: &RunOptions) -> Result<RunOutput> {
    let e = plan.experiment();
    let run = |options: &RunOptions| blklab::run::run(plan, options).map_err(|err| e.locate(err));
    let mut first = run(options)?;
    if !a.verify_digest || first.interrupted {
        return Ok(first);
    }
    let second = run(&RunOptions {
        traces: Vec::new(),
        collect: Collect::Totals,
        kept_events_max: 0,
        ..options.clone()
    })?;
    if second.interrupted {
        return Ok(first);
    }
    if second.digest != first.digest {
        bail!(
            "{}: two runs differ, with digests {:016x} and {:016x}: a fault in blklab; please \
             report it",
            e.id,
            first.digest.value(),
            second.digest.value()
        );
    }
    first.verified = true;
    Ok(first)
}

/// Repeats the runs of which only the scheduler's messages tell why they are
/// the same as others.
fn learn_merged_queues(
    cells: &[Cell],
    plans: &[Plan],
    runs: &mut [Option<RunOutput>],
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<()> {
    let indexed = cells.iter().zip(&*runs).enumerate();
    let ran = indexed.filter_map(|(i, (cell, run))| Some((i, cell, run.as_ref()?)));
    let ran: Vec<(usize, &Cell, &RunOutput)> = ran.collect();
    let pairs: Vec<(&Cell, &RunOutput)> = ran.iter().map(|&(_, c, r)| (c, r)).collect();
    let again: Vec<usize> = blklab::same::unexplained(&pairs)
        .into_iter()
        .map(|i| ran[i].0)
        .collect();
    let learnt = blklab::parallel::map(&again, threads, |&i| {
        let options = RunOptions {
            stop: Arc::clone(stop),
            collect: Collect::Watches,
            merged_queues: true,
            ..RunOptions::default()
        };
        blklab::run::run(&plans[i], &options)
    });
    for (i, again) in again.into_iter().zip(learnt) {
        let merged = again?.merged_queues;
        if let Some(run) = &mut runs[i] {
            run.merged_queues = merged;
        }
    }
    Ok(())
}
