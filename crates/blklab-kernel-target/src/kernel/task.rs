// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio does in a machine: the jobs of a plan, or its processes as logs.

use super::filesystem::Volume;
use super::job_logs::{self, Logs};
use super::parts::Parts;
use super::place::Place;
use super::stack::Stack;
use super::{job_text, prepare, replayed};
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_target::{JobText, Plan};
use blklab_types::{Error, Pid};

/// The jobs as fio runs them.
pub(super) const JOBS: &str = "job.fio";

/// What fio does.
pub(super) struct Task {
    /// Where it does it.
    pub(super) place: Place,
    /// Logs that it reads and writes.
    pub(super) logs: Logs,
    pub(super) who: Who,
    /// What a reader of the result should know.
    pub(super) notes: Vec<String>,
    /// Whether jobs read again what they have written.
    pub(super) is_verified: bool,
    /// The job file.
    spelled_out: String,
}

/// Whose I/O it is.
pub(super) enum Who {
    /// That of jobs.
    Jobs(Vec<Job>),
    /// That of processes, whose pids and names these are.
    Processes(Vec<(Pid, String)>),
}

impl Who {
    /// How many jobs fio has.
    pub(super) fn nr_jobs(&self) -> usize {
        match self {
            Who::Jobs(jobs) => jobs.len(),
            Who::Processes(processes) => processes.len(),
        }
    }
}

impl Task {
    /// That of a plan, with the groups of its jobs in the experiment.
    ///
    /// # Errors
    /// If files do not fit, or fio cannot do it.
    pub(super) fn new(plan: &Plan, e: &Experiment, stack: &Stack) -> Result<Task, Error> {
        if let Some(text) = plan.jobs() {
            return Task::of_jobs(text, e, stack);
        }
        let replayed = replayed::replayed(plan, e, &stack.top_path())?;
        Ok(Task {
            place: Place::Parts(Parts::default()),
            logs: replayed.logs,
            who: Who::Processes(replayed.processes),
            notes: replayed.notes,
            is_verified: false,
            spelled_out: replayed.job,
        })
    }

    fn of_jobs(text: &JobText, e: &Experiment, stack: &Stack) -> Result<Task, Error> {
        let jobs = &text.jobs.jobs;
        let mut logs = Logs::new(text, &stack.top_path())?;
        Ok(Task {
            place: Place::new(e, &text.jobs, stack.sectors())?,
            spelled_out: job_logs::spell_out(text, &mut logs)?,
            logs,
            who: Who::Jobs(jobs.clone()),
            notes: Vec::new(),
            is_verified: jobs.iter().any(|job| job.settings.verify),
        })
    }

    /// The filesystem that it needs.
    pub(super) fn volume(&self) -> Option<&Volume> {
        match &self.place {
            Place::Parts(_) => None,
            Place::Volume(volume, _) => Some(volume),
        }
    }

    /// Files that go into the machine: names and contents.
    pub(super) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let any_contents = self.place.takes_any_contents();
        let run = job_text::to_run(&self.spelled_out, any_contents, &self.logs);
        let mut files = vec![(JOBS.to_owned(), run.into_bytes())];
        if let Place::Volume(_, found) = &self.place {
            let layout = job_text::to_lay_out(&self.spelled_out, any_contents, &found.read);
            files.push((prepare::LAYOUT.to_owned(), layout.into_bytes()));
        }
        files.extend(self.logs.taken_along());
        files
    }
}
