// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment run again with something changed. Nothing is inferred: its processes, its
//! page cache and its device are at hand.

use crate::change::{Change, apply_all};
use crate::figures::{Figures, figures};
use crate::programs::OfExperiment;
use crate::remedy;
use crate::report::{Device, Trial, WhatIf};
use crate::stage::{TRUSTED, off, rows};
use blklab_analysis::findings::{Context, Report};
use blklab_experiment::{Experiment, Workload};
use blklab_infer::{Collector, Recorded};
use blklab_target::{JobResult, Plan, Planner, Sinks};
use blklab_trace::Actions;
use blklab_types::{Dev, Error};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run whose experiment is at hand, and what was found in its trace.
#[derive(Clone, Copy, Debug)]
pub struct OwnRun<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What it says of its machine.
    pub context: &'a Context,
    /// What was found.
    pub report: &'a Report,
    /// Who plans runs of it.
    pub planner: &'a Planner,
    /// Whether it is a run of this process: another one would do the same to the event. That of
    /// a run directory may be of another version.
    pub is_new: bool,
}

/// An experiment that ran, and can run again with changes.
pub struct Rerun<'a> {
    known: OwnRun<'a>,
    recorded: Recorded,
    before: Vec<Figures>,
    /// How far a run without a change is from the recording: 1 if it is the same.
    off: f64,
    stop: Arc<AtomicBool>,
}

impl<'a> Rerun<'a> {
    /// Runs the experiment again as it was, unless that has just been done. Setting `stop` ends
    /// runs early.
    ///
    /// # Errors
    /// If it has no I/O to compare, or cannot run: in a clause.
    pub fn new(
        collector: Collector,
        known: OwnRun<'a>,
        stop: Arc<AtomicBool>,
    ) -> Result<Rerun<'a>, Error> {
        let dev = device(known.planner, known.experiment)?;
        let recorded = collector.finish(Actions::ALL, Some(dev));
        let recorded = recorded.map_err(|e| Error::new(e.to_string()))?;
        let mut rerun = Rerun {
            known,
            recorded,
            before: Vec::new(),
            off: 1.0,
            stop,
        };
        let before = figures(&rerun.recorded);
        if !known.is_new {
            rerun.before = rerun.run(&known.planner.plan(known.experiment)?)?.0;
            rerun.off = off(&before, &rerun.before);
        } else if rerun.stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        } else {
            rerun.before = before;
        }
        Ok(rerun)
    }

    /// What processes get, and what fio's jobs came to.
    fn run(&self, plan: &Plan) -> Result<(Vec<Figures>, Vec<JobResult>), Error> {
        let collector = Rc::new(RefCell::new(Collector::default()));
        let sinks = Sinks::of_events(Box::new(Rc::clone(&collector)));
        let outcome = plan.run(sinks, Arc::clone(&self.stop))?;
        if outcome.interrupted {
            return Err(Error::interrupted());
        }
        // Tasks that still sleep hold the machine, and with it the sink.
        let ran = std::mem::take(&mut *collector.borrow_mut());
        let ran = ran.finish(Actions::ALL, Some(self.recorded.dev));
        let figures = figures(&ran.map_err(|e| Error::new(e.to_string()))?);
        Ok((figures, outcome.jobs))
    }

    /// What comes of changes.
    ///
    /// # Errors
    /// If they are not possible: one line.
    pub fn what_if(&self, changes: &[Change]) -> Result<Trial, Error> {
        remedy::asked(changes, |changes, trial| self.compare(changes, trial))
    }

    fn compare(&self, changes: &[Change], trial: &mut Trial) -> Result<(), Error> {
        let mut e = self.known.experiment.clone();
        let catalogue = self.known.planner.catalogue();
        let mut programs = OfExperiment {
            recorded: Some(&self.recorded),
            catalogue,
        };
        apply_all(changes, &mut e, &mut programs, catalogue)?;
        // Errors are about the change, not about a line of the file.
        e.file.clear();
        let plan = self.known.planner.plan(&e)?;
        trial.warnings = empty_groups(changes, &plan);
        let (after, jobs) = self.run(&plan)?;
        trial.jobs = Arc::new(jobs);
        trial.closed_loop = rows(None, &self.before, &after);
        Ok(())
    }

    /// What comes of each finding's remedies.
    pub fn remedies(&self) -> Vec<Trial> {
        let facts = remedy::Facts {
            context: self.known.context,
            recorded: &self.recorded,
            experiment: self.known.experiment,
            catalogue: self.known.planner.catalogue(),
            is_rerun: true,
        };
        let findings = self.known.report.findings.iter();
        remedy::trials(findings, &facts, |changes, trial| {
            self.compare(changes, trial)
        })
    }

    /// All that is to be said, with these trials.
    pub fn report(&self, trials: Vec<Trial>) -> WhatIf {
        let e = self.known.experiment;
        WhatIf {
            dev: self.recorded.dev,
            kernel: e.kernel.to_string(),
            scheduler: e.scheduler.clone(),
            device: Device {
                words: format!("that of the experiment: {}", e.device).replace(',', ", "),
                unexplained: None,
            },
            assumed: Vec::new(),
            is_closed: true,
            closed_loop_off: self.off,
            open_loop_off: self.off,
            is_trusted: self.off <= TRUSTED,
            is_rerun: true,
            trials,
        }
    }
}

/// Groups that are changed although nobody is in them, in clauses.
fn empty_groups(changes: &[Change], plan: &Plan) -> Vec<String> {
    let of_jobs = plan.jobs().into_iter().flat_map(|text| &text.jobs.jobs);
    let of_jobs = of_jobs.filter_map(|job| job.settings.cgroup.as_deref());
    let processes = match &plan.experiment().workload {
        Workload::Processes(all) => all.as_slice(),
        _ => &[],
    };
    let own = processes.iter().filter_map(|p| p.cgroup.as_deref());
    let members: Vec<&str> = of_jobs.chain(own).collect();
    let changed = changes.iter().filter_map(|change| match change {
        Change::Set { key, .. } => key.strip_prefix("cgroup."),
        _ => None,
    });
    // Names have no dots of their own but those of files: `web.slice.io.max` is of `web.slice`.
    let name = |rest: &str| {
        let files = [".io.", ".blkio.", ".memory."];
        let at = files.iter().filter_map(|mark| rest.find(mark)).min()?;
        Some(rest[..at].to_owned())
    };
    let mut names: Vec<String> = changed.filter_map(name).collect();
    names.dedup();
    let is_in = |group: &str, member: &str| {
        let rest = member.strip_prefix(group);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_empty = |name: &String| name != "/" && !members.iter().any(|m| is_in(name, m));
    let told = |name: String| format!("nobody is in control group {name}: it changes nothing");
    names.into_iter().filter(is_empty).map(told).collect()
}

/// The device that processes use: the array, if there is one.
fn device(planner: &Planner, e: &Experiment) -> Result<Dev, Error> {
    let site = planner.survey(e)?;
    let used = site.devices.first();
    used.map(|(dev, _)| *dev)
        .ok_or_else(|| Error::new("it has no device"))
}
