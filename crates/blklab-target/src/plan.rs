// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments ready to run, and what runs them.

use crate::jobs::{JobKey, JobLog, JobText};
use crate::memory::{self, Estimate};
use crate::outcome::Outcome;
use crate::replay::{Replay, TraceKey, TraceText};
use crate::site::{Failed, Sinks, Site};
use blklab_experiment::{Catalogue, Experiment, Facts, Workload};
use blklab_fio::job::Job;
use blklab_fio::parse::JobFile;
use blklab_fio::range::Ranges;
use blklab_types::{Error, ErrorKind, no_such};
use std::borrow::Borrow;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that runs experiments: a simulation, or a machine with a kernel.
pub trait Target: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether a plan gives the same events each time that it is run.
    fn repeats(&self) -> bool {
        true
    }

    /// What experiments for it choose from.
    fn catalogue(&self) -> Catalogue;

    /// Refuses an experiment that it cannot run, and says what its jobs find.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn survey(&self, e: &Experiment) -> Result<Site, Error>;

    /// The most processors that its machine has; none: any number.
    fn cpus_max(&self) -> Option<u32> {
        None
    }

    /// Whether it runs the programs of scenarios that are no fio jobs.
    fn has_programs(&self) -> bool {
        true
    }

    /// Refuses jobs of kinds that it does not run, before anything is made of them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn check_jobs(&self, _: &Experiment, _: &JobFile) -> Result<(), Error> {
        Ok(())
    }

    /// The memory that it takes to run an experiment, at most.
    fn memory(&self, e: &Experiment, work: Work<'_>, site: &Site) -> Estimate;

    /// Refuses jobs that cannot be set up, such as files that do not fit the
    /// disk, and says for each which part of its files it works on. What it
    /// accepts, [`Target::run`] can set up.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn rehearse(&self, e: &Experiment, jobs: &JobFile) -> Result<Vec<Ranges>, Error>;

    /// What a reader of its results should know of an experiment that it runs.
    fn notes(&self, _: &Experiment) -> Vec<String> {
        Vec::new()
    }

    /// Makes what an experiment needs, takes long and is kept for all that follow, such
    /// as a kernel. `told` gets in words how far it is; setting `stop` ends it early.
    ///
    /// # Errors
    /// If it cannot be made.
    fn prepare(
        &self,
        _: &Experiment,
        _stop: &AtomicBool,
        _told: &mut dyn FnMut(String),
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Runs a plan. Setting `stop` from outside ends the run early.
    ///
    /// # Errors
    /// If the target fails; the plan is not the reason.
    fn run(&self, plan: &Plan, sinks: Sinks, stop: Arc<AtomicBool>) -> Result<Outcome, Failed>;
}

/// What an experiment has its machine do, once read.
#[derive(Clone, Copy)]
pub enum Work<'a> {
    /// The processes that it spells out.
    Processes,
    /// Jobs of fio.
    Jobs(&'a JobFile),
    /// What a trace has recorded.
    Trace(&'a Replay),
}

/// Makes plans for targets. Experiments of a matrix whose jobs are the same
/// share them.
pub struct Planner {
    /// An experiment that names none runs on the first.
    targets: Vec<Arc<dyn Target>>,
    /// What experiments choose from.
    catalogue: Catalogue,
    /// Job files parsed so far, and what they depend on.
    parsed: Mutex<Vec<(JobKey, Arc<JobText>)>>,
    /// Traces read so far, and what they were read as.
    traces: Mutex<Vec<(TraceKey, Arc<TraceText>)>>,
}

/// What a run needs and makes beside its results.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Files that the experiment is read from.
    pub read: Vec<PathBuf>,
    /// Logs that its jobs write.
    pub logs: Vec<JobLog>,
    /// The memory that it takes.
    pub memory: Estimate,
}

/// An experiment whose job file is parsed, whose disk is known, and which was
/// checked.
pub struct Plan {
    target: Arc<dyn Target>,
    experiment: Experiment,
    facts: Facts,
    catalogue: Catalogue,
    jobs: Option<Arc<JobText>>,
    ranges: Vec<Ranges>,
    replay: Option<Replay>,
    site: Site,
    needs: Needs,
    notes: Vec<String>,
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.targets.iter().map(|t| t.name());
        f.debug_list().entries(names).finish()
    }
}

impl Planner {
    /// A planner for a target.
    pub fn new(target: impl Target + 'static) -> Planner {
        Planner::for_targets(vec![Arc::new(target)])
    }

    /// A planner for several targets. An experiment that names none runs on the first.
    ///
    /// # Panics
    /// If there is none.
    pub fn for_targets(targets: Vec<Arc<dyn Target>>) -> Planner {
        assert!(!targets.is_empty(), "a planner has a target");
        Planner {
            catalogue: targets[0].catalogue(),
            targets,
            parsed: Mutex::default(),
            traces: Mutex::default(),
        }
    }

    /// What experiments choose from: the catalogue of the first target.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The target of an experiment.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn target(&self, e: &Experiment) -> Result<&Arc<dyn Target>, Error> {
        if e.target.is_empty() {
            return Ok(&self.targets[0]);
        }
        let found = self.targets.iter().find(|t| t.name() == e.target);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.targets.iter().map(|t| t.name()).collect();
            Error::new(no_such("target", &e.target, &names))
                .of_kind(ErrorKind::UnknownName)
                .about("target")
        })
    }

    /// The jobs of an experiment, parsed once; none if it has no fio jobs.
    ///
    /// # Errors
    /// What is wrong with the first bad section.
    pub fn jobs(&self, e: &Experiment) -> Result<Option<Arc<JobText>>, Error> {
        let has_programs = self.target(e)?.has_programs();
        let Some(key) = JobKey::for_experiment(e, has_programs) else {
            return Ok(None);
        };
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = parsed.iter().find(|(k, _)| *k == key) {
            return Ok(Some(Arc::clone(text)));
        }
        let text = Arc::new(key.parse()?);
        parsed.push((key, Arc::clone(&text)));
        Ok(Some(text))
    }

    /// The trace that an experiment repeats, read once; none if it repeats none.
    ///
    /// # Errors
    /// If it cannot be read, or has nothing to repeat.
    fn trace(&self, e: &Experiment) -> Result<Option<Arc<TraceText>>, Error> {
        let Some(key) = TraceKey::for_experiment(e) else {
            return Ok(None);
        };
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = traces.iter().find(|(k, _)| *k == key) {
            return Ok(Some(Arc::clone(text)));
        }
        let text = Arc::new(key.read()?);
        traces.push((key, Arc::clone(&text)));
        Ok(Some(text))
    }

    /// What the jobs of an experiment find.
    ///
    /// # Errors
    /// If the target cannot run it.
    pub fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        self.target(e)?.survey(e)
    }

    /// The memory that it takes to run an experiment, at most.
    ///
    /// # Errors
    /// If there is no such target.
    pub fn memory(&self, e: &Experiment, work: Work<'_>, site: &Site) -> Result<Estimate, Error> {
        Ok(self.target(e)?.memory(e, work, site))
    }

    /// Checks everything about an experiment that can be wrong before it runs.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn plan(&self, e: &Experiment) -> Result<Plan, Error> {
        let site = self.survey(e).map_err(|err| e.locate(err))?;
        self.plan_at(e, site)
    }

    /// Checks an experiment on whose stack recorded processes run, which need not be those
    /// of a file; its own workload is left out.
    ///
    /// # Errors
    /// If the target cannot run it.
    pub fn plan_recorded(&self, e: &Experiment, replay: Replay) -> Result<Plan, Error> {
        let mut plan = self.empty_plan(e, self.survey(e)?)?;
        plan.replay = Some(replay);
        Ok(plan)
    }

    /// A plan that does nothing yet.
    fn empty_plan(&self, e: &Experiment, site: Site) -> Result<Plan, Error> {
        Ok(Plan {
            target: Arc::clone(self.target(e)?),
            experiment: e.clone(),
            facts: e.facts(&self.catalogue),
            catalogue: self.catalogue.clone(),
            jobs: None,
            ranges: Vec::new(),
            replay: None,
            needs: Needs::default(),
            notes: Vec::new(),
            site,
        })
    }

    /// Checks an experiment that was surveyed.
    ///
    /// # Errors
    /// The first thing that is wrong with its jobs.
    pub fn plan_at(&self, e: &Experiment, site: Site) -> Result<Plan, Error> {
        let mut plan = self.empty_plan(e, site)?;
        plan.needs.read.push(PathBuf::from(&e.file));
        let described_in = plan.site.described_in.iter();
        let described_in = described_in.map(|(name, _)| PathBuf::from(name));
        plan.needs.read.extend(described_in);
        if let (Some(text), Workload::Trace(spec)) = (self.trace(e)?, &e.workload) {
            plan.needs.read.extend(text.files.iter().cloned());
            let replay = Replay::new(&text, spec, plan.site.disk_bytes)?;
            plan.take_memory(e, Work::Trace(&replay))
                .map_err(|err| e.locate(err))?;
            plan.notes = replay.notes();
            plan.replay = Some(replay);
            plan.notes.extend(plan.target.notes(e));
            plan.notes.extend(plan.experiment.notes(&self.catalogue));
            return Ok(plan);
        }
        match self.jobs(e)? {
            None => plan
                .take_memory(e, Work::Processes)
                .map_err(|err| e.locate(err))?,
            Some(text) => {
                plan.add_jobs(&text).map_err(|err| {
                    let mut err = err.in_file(&text.name);
                    if matches!(e.workload, Workload::Scenario(_)) {
                        // Nobody has its text to look a line up.
                        err.line = None;
                    }
                    err
                })?;
                plan.jobs = Some(text);
            }
        }
        plan.notes.extend(plan.target.notes(e));
        plan.notes.extend(plan.experiment.notes(&self.catalogue));
        Ok(plan)
    }
}

impl Plan {
    fn add_jobs(&mut self, text: &JobText) -> Result<(), Error> {
        self.needs.read.extend(text.read.iter().cloned());
        self.target.check_jobs(&self.experiment, &text.jobs)?;
        self.needs.logs = text.logs();
        let e = self.experiment.with_cgroups_of(&text.jobs.jobs)?;
        self.take_memory(&e, Work::Jobs(&text.jobs))?;
        self.ranges = self.target.rehearse(&self.experiment, &text.jobs)?;
        self.notes = text.notes(&e, &self.site, self.ranges.iter().map(Some))?;
        Ok(())
    }

    /// Refuses what takes too much memory.
    fn take_memory(&mut self, e: &Experiment, work: Work<'_>) -> Result<(), Error> {
        self.needs.memory = self.target.memory(e, work, &self.site);
        memory::check(std::slice::from_ref(&self.needs.memory), 1)
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Whether it gives the same events each time that it is run.
    pub fn repeats(&self) -> bool {
        self.target.repeats()
    }

    /// What the experiment comes to with its models.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the experiment chose from.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The recorded bios that it repeats; none if it has another workload.
    pub fn replay(&self) -> Option<&Replay> {
        self.replay.as_ref()
    }

    /// Its jobs; none if it has explicit processes or repeats a trace.
    pub fn jobs(&self) -> Option<&JobText> {
        self.jobs.as_deref()
    }

    /// Which part of its files each job works on, in the order of the jobs.
    pub fn ranges(&self) -> &[Ranges] {
        &self.ranges
    }

    /// What its jobs find.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// What a run needs and makes beside its results.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// What a reader of its result should know, as far as it is known before.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes what it needs, takes long and is kept ([`Target::prepare`]). A run of a plan
    /// that was not prepared fails if that is missing.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn prepare(&self, stop: &AtomicBool, told: &mut dyn FnMut(String)) -> Result<(), Error> {
        self.target.prepare(&self.experiment, stop, told)
    }

    /// Runs it. Setting `stop` from outside ends the run early.
    ///
    /// # Errors
    /// If the target fails; the plan is not the reason.
    pub fn run(&self, sinks: Sinks, stop: Arc<AtomicBool>) -> Result<Outcome, Failed> {
        let mut outcome = self.target.run(self, sinks, stop)?;
        outcome.notes.extend(self.notes.iter().cloned());
        Ok(outcome)
    }
}

impl JobText {
    /// What a reader of the result should know about the jobs: each thing once, however
    /// many processes it is about. `ranges` are those of the jobs in their order, none for
    /// one that cannot be set up, which says so when it is.
    ///
    /// # Errors
    /// If a job reads or writes only beyond the end of the disk.
    pub fn notes<R: Borrow<Ranges>>(
        &self,
        e: &Experiment,
        site: &Site,
        ranges: impl Iterator<Item = Option<R>>,
    ) -> Result<Vec<String>, Error> {
        let mut notes: Vec<String> = Vec::new();
        let mut add = |note: String| {
            if !notes.contains(&note) {
                notes.push(note);
            }
        };
        for (job, ranges) in self.jobs.jobs.iter().zip(ranges) {
            if let Some(wanted) = &job.settings.ioscheduler
                && *wanted != e.scheduler
            {
                add(format!(
                    "the job file asks for ioscheduler={wanted}; {} ran, which was chosen for the \
                     experiment",
                    e.scheduler
                ));
            }
            if let Some(ranges) = ranges
                && let Some(note) = cut_by_disk(job, ranges.borrow(), site)?
            {
                add(note);
            }
        }
        Ok(notes)
    }
}

/// Says where a job on the disk itself reaches beyond its end and is cut.
///
/// # Errors
/// If it begins there.
fn cut_by_disk(job: &Job, ranges: &Ranges, site: &Site) -> Result<Option<String>, Error> {
    if job.is_diskless() {
        return Ok(None);
    }
    let disk_bytes = site.disk_bytes;
    let files = job.files.iter().zip(&ranges.files);
    for (name, range) in files.filter(|(name, _)| name.starts_with("/dev/")) {
        if range.first >= disk_bytes {
            let what = format!(
                "job '{}': offset {} lies beyond the end of {name}, which has {disk_bytes} bytes",
                job.name, range.first
            );
            let place = job.place_of(&["offset", "offset_increment"]);
            return Err(Error::new(what).at(place));
        }
        if range.length > disk_bytes - range.first {
            return Ok(Some(format!(
                "job '{}' reaches beyond the end of {name} ({disk_bytes} bytes) and is cut \
                 there, as in fio",
                job.name
            )));
        }
    }
    Ok(None)
}
