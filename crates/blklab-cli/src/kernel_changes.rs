// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run --kernel A,B --changes`: which changes of the kernel make the difference.

use crate::args::RunArgs;
use crate::compare::{interval, ratio};
use crate::output::{hanging, paragraph, value};
use anyhow::{Result, bail};
use blklab::experiment::Experiment;
use blklab::kernel_changes::{Asked, Effect, FigureChange, Step, kernel_changes};
use blklab::matrix::Overrides;
use blklab::metric;
use blklab::run::RunOptions;
use blklab::statistics::Verdict;
use blklab::targets::{Plan, Planner};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Refuses what has no answer: formats for programs, one kernel, several experiments.
///
/// # Errors
/// Says what would be right.
pub(crate) fn check(a: &RunArgs, experiments: &[Experiment], overrides: &Overrides) -> Result<()> {
    if !a.changes {
        return Ok(());
    }
    if a.output_format != "table" {
        bail!(
            "--changes --output-format {}: only in the table (blklab.kernels of Python has the \
             numbers)",
            blklab::types::shown(&a.output_format)
        );
    }
    if overrides.kernels.len() < 2 || experiments.len() > 1 {
        bail!("--changes: one experiment on two kernels or more, as in --kernel 6.1,7.3 --changes");
    }
    Ok(())
}

/// Shows them.
///
/// # Errors
/// If a run fails, or something else than the kernel varies.
pub(crate) fn show(
    out: &mut impl Write,
    experiment: &Experiment,
    overrides: &Overrides,
    planner: &Planner,
    stop: &Arc<AtomicBool>,
) -> Result<()> {
    let asked = Asked {
        overrides: overrides.clone(),
        kernels: overrides.kernels.clone(),
        metrics: Vec::new(),
        threads: blklab::parallel::cores(),
    };
    let run = |plan: &Plan, options: &RunOptions| {
        blklab::run::run(plan, options).map_err(|e| plan.experiment().locate(e))
    };
    for step in kernel_changes(experiment, &asked, planner, &run, stop)? {
        writeln!(out)?;
        show_step(out, &step)?;
    }
    Ok(())
}

fn show_step(out: &mut impl Write, step: &Step) -> Result<()> {
    writeln!(out, "What changes from {} to {}", step.before, step.after)?;
    figures(out, &step.figures)?;
    for effect in &step.effects {
        show_effect(out, effect)?;
    }
    let (nothing, after, before) = (step.without_effect.len(), &step.after, &step.before);
    let rest = match (step.effects.is_empty(), step.is_all) {
        (true, true) => format!(
            "The models know {nothing} changes between the two, and none of them does anything here."
        ),
        (false, true) => format!(
            "That is all: without these, {after} runs event for event as {before}; {nothing} other \
             changes do nothing here."
        ),
        (_, false) => format!(
            "That is not all: without these and {nothing} that do nothing alone, {after} still runs \
             otherwise than {before} (defaults that no change is listed for)."
        ),
    };
    Ok(paragraph(out, &rest)?)
}

fn show_effect(out: &mut impl Write, effect: &Effect) -> Result<()> {
    hanging(out, "   ", 5, &format!("{}: {}", effect.name, effect.what))?;
    figures(out, &effect.figures)
}

/// Of one run nothing is known of the noise: smaller changes are not shown.
const SHOWN_OF_ONE_RUN: f64 = 1.01;

/// Whether a figure differs, by more than noise where there is more than one run.
fn differs(f: &FigureChange) -> bool {
    match f.verdict {
        Verdict::Same | Verdict::NoDifference => false,
        Verdict::OneRun => f.factor() >= SHOWN_OF_ONE_RUN,
        _ => true,
    }
}

/// The figures that differ.
fn figures(out: &mut impl Write, figures: &[FigureChange]) -> Result<()> {
    let mut shown = 0;
    for f in figures.iter().filter(|f| differs(f)) {
        let times = f.change.ratio.map_or(String::new(), ratio);
        let times = match f.change.interval {
            Some(_) => format!("{times} ({})", interval(&f.change)),
            None => times,
        };
        let key = metric::find(&f.metric).map_or("", |wanted| wanted.metric.key);
        let (was, is) = (
            value(&f.metric, f.change.before),
            value(&f.metric, f.change.after),
        );
        let text = format!(
            "{} {} {}: {was} -> {is}, {times}, {}",
            f.job,
            f.direction,
            key.replace('_', " "),
            f.verdict.text()
        );
        hanging(out, "     ", 7, &text)?;
        shown += 1;
    }
    if shown == 0 && !figures.is_empty() {
        let is_one_run = figures.iter().any(|f| f.verdict == Verdict::OneRun);
        let what = if is_one_run {
            "by 1 %"
        } else {
            "by more than these runs vary"
        };
        writeln!(out, "     no figure of the jobs changes {what}")?;
    }
    Ok(())
}
