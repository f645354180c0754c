// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one pass over the events of a trace, or of a run while it goes on: what was found in
//! them, and what whoever asks further needs of them.

use crate::again::Known;
use crate::args::WhyArgs;
use crate::asked::{Answers, Questions};
use crate::execute::prepare;
use crate::interrupt::Interrupt;
use crate::progress::Watcher;
use crate::stack::{Chosen, Stack};
use anyhow::{Result, bail};
use blklab::experiment::Experiment;
use blklab::explain::Survey;
use blklab::findings::{Report, Search};
use blklab::matrix::{self, Cell};
use blklab::run_directory::{RunDir, is_run};
use blklab::scheduler::Schedulers;
use blklab::targets::{self, Planner};
use blklab::trace::Actions;
use blklab::verdict::Measured;
use blklab::whatif::Recording;
use std::path::Path;
use std::slice::from_ref;

/// What the pass has found.
pub(crate) struct Examined {
    pub(crate) report: Report,
    /// What was asked beside that.
    pub(crate) answers: Answers,
    pub(crate) survey: Survey,
    /// What jobs got, of a run of jobs.
    pub(crate) measured: Option<Measured>,
    /// Processes and commands, if what-if is asked.
    pub(crate) recording: Option<Recording>,
    /// The kinds of events that were recorded.
    pub(crate) kinds: Actions,
    /// Times of its lines are those that the file prints.
    pub(crate) times_as_given: bool,
}

/// Reads a trace.
pub(crate) fn trace(a: &WhyArgs, known: &Known) -> Result<Examined> {
    if let Some(option) = a.of_experiments() {
        bail!("{option}: only for an experiment that runs, not for a trace that is there");
    }
    let measured = if is_run(&a.file) {
        let run = RunDir::open(&a.file, &targets::catalogue_with(known.schedulers()))?;
        Some(Measured::new(&run.record.metrics))
    } else {
        None
    };
    let mut input = crate::source::open(&a.file, a.stack.read.columns())?;
    let shown = Watcher::reading(input.progress());
    let times_as_given = input.format().has_printed_times;
    let questions = Questions::new(a, times_as_given)?;
    let recording = recording(a);
    // Who re-enacts nothing needs to know nothing about how.
    let is_asked = known.says_how() || recording.is_some();
    let also = (is_asked.then(Survey::default), recording);
    let mut also = (also, questions.application_io());
    let search = questions.added_to(Search::all(known.context().clone()));
    let report = blklab::why::search_and(&mut input, search, &mut also)?;
    drop(shown);
    crate::source::report_damage(&a.file, input.counts());
    let ((survey, recording), seen) = also;
    Ok(Examined {
        answers: questions.answers(&a.file, &report, seen)?,
        report,
        measured,
        survey: survey.unwrap_or_default(),
        recording,
        kinds: input.header().map_or(Actions::ALL, |h| h.recorded),
        times_as_given,
    })
}

/// Runs an experiment.
pub(crate) fn run(a: &WhyArgs, known: &Known, interrupt: &Interrupt) -> Result<Examined> {
    if !a.fio.is_empty() {
        bail!("--fio: an experiment that runs has its own figures; --fio is for a trace");
    }
    let e = known.run().expect("it is an experiment");
    let plan = known.planner().plan(e)?;
    prepare([&plan], &interrupt.stop)?;
    let questions = Questions::new(a, false)?;
    let also = (Survey::default(), recording(a));
    let search = questions.added_to(Search::all(known.context().clone()));
    let shown = Watcher::running();
    let ran = blklab::why::why_of_run(&plan, search, also, interrupt.stop.clone())?;
    drop(shown);
    let (report, (survey, recording), outcome) = ran;
    Ok(Examined {
        answers: questions.answers(&a.file, &report, None)?,
        report,
        measured: Some(Measured::of_jobs(&outcome.jobs)),
        survey,
        recording,
        kinds: Actions::ALL,
        times_as_given: false,
    })
}

fn recording(a: &WhyArgs) -> Option<Recording> {
    (!a.what_if.is_empty()).then(Recording::default)
}

/// The experiment of a file, with what the options say on top of it.
pub(crate) fn experiment(a: &WhyArgs, schedulers: Schedulers) -> Result<Experiment> {
    if !a.stack.context.is_empty() {
        bail!("--context: an experiment says itself what its machine is");
    }
    if a.stack.sched.as_deref() == Some("try") {
        bail!("--sched try: is for traces; an experiment runs under the scheduler that it names");
    }
    let planner = targets::planner(schedulers);
    let stack = Stack {
        kernel: a.stack.kernel.as_slice(),
        sched: a.stack.sched.as_slice(),
        device: a.device.as_slice(),
        target: a.target.as_slice(),
        kernel_source: a.kernel_source.as_slice(),
        set: &a.stack.set,
        fs: a.fs.as_slice(),
        memory: a.memory.as_ref(),
        sections: &a.section,
        repeat: 1,
        ..Stack::default()
    };
    let file = blklab::experiment::load(&a.file, planner.catalogue())?;
    let chosen = stack.chosen()?;
    one_experiment(&a.file, &file, &chosen, a.variant.as_deref(), &planner)
}

/// The one experiment that options make of a file's; of several, the variant of that name.
pub(crate) fn one_experiment(
    path: &Path,
    file: &Experiment,
    chosen: &Chosen,
    variant: Option<&str>,
    planner: &Planner,
) -> Result<Experiment> {
    let cells = matrix::expand(from_ref(file), &chosen.overrides, planner);
    let mut cells = cells.map_err(|err| chosen.told(err))?;
    let names: Vec<String> = cells.iter().map(Cell::name_in_file).collect();
    let Some(wanted) = variant else {
        if cells.len() > 1 {
            bail!(
                "{}: {} experiments ({}); one is examined: choose it with --variant NAME, or keep \
                 all with blklab run --out DIR and examine their directories",
                path.display(),
                names.len(),
                names.join(", ")
            );
        }
        return Ok(cells.remove(0).experiment);
    };
    match names.iter().position(|name| name == wanted) {
        Some(place) => Ok(cells.remove(place).experiment),
        None => {
            let valid: Vec<&str> = names.iter().map(String::as_str).collect();
            bail!(
                "--variant: {}",
                blklab::types::no_such("variant", wanted, &valid)
            )
        }
    }
}
