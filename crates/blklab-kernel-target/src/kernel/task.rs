// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine does: fio the jobs of a plan, and a program of ours its processes.

use super::filesystem::Volume;
use super::job_logs::{self, Logs};
use super::parts::Parts;
use super::place::Place;
use super::stack::Stack;
use super::{job_text, prepare, replayed};
use crate::build::{Cache, REPLAY, replay as replay_program};
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_target::{JobText, Plan};
use blklab_types::{Error, Pid};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The jobs as fio runs them.
pub(super) const JOBS: &str = "job.fio";

/// Processes as a program of ours runs them, and what it prints.
const PROCESSES: &str = "replayed-processes";
pub(super) const REPLAY_DONE: &str = "replay.done";

/// What is to be done.
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
    load: Load,
}

/// Who does it.
enum Load {
    /// fio, with a job file.
    Fio(String),
    /// Our program.
    Replay {
        /// The file that it reads.
        processes: Vec<u8>,
        /// Where it is on this machine.
        program: PathBuf,
    },
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

/// A job file whose random numbers follow the seed, unless it says `randrepeat` itself.
fn varied(job: String, vary_offsets: bool) -> String {
    if vary_offsets {
        format!("[global]\nrandrepeat=0\n{job}")
    } else {
        job
    }
}

impl Task {
    /// That of a plan, with the groups of its jobs in the experiment.
    ///
    /// # Errors
    /// If files do not fit, or fio cannot do it.
    pub(super) fn new(
        plan: &Plan,
        e: &Experiment,
        stack: &Stack,
        stop: &AtomicBool,
    ) -> Result<Task, Error> {
        if let Some(text) = plan.jobs() {
            return Task::of_jobs(text, e, stack);
        }
        let replayed = replayed::replayed(plan, e)?;
        Ok(Task {
            place: Place::Parts(Parts::default()),
            logs: Logs::default(),
            who: Who::Processes(replayed.processes),
            notes: replayed.notes,
            is_verified: false,
            load: Load::Replay {
                processes: replayed.file,
                program: replay_program(&Cache::of_user()?, stop)?,
            },
        })
    }

    fn of_jobs(text: &JobText, e: &Experiment, stack: &Stack) -> Result<Task, Error> {
        let jobs = &text.jobs.jobs;
        let mut logs = Logs::new(text, &stack.top_path())?;
        Ok(Task {
            place: Place::new(e, &text.jobs, stack.sectors())?,
            load: Load::Fio(varied(
                job_logs::spell_out(text, &mut logs)?,
                e.vary_offsets,
            )),
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

    /// Whether it is processes, in whose pauses the processor time is that programs take.
    pub(super) fn has_processes(&self) -> bool {
        matches!(self.load, Load::Replay { .. })
    }

    /// The command that does it on a device, for a shell.
    pub(super) fn command(&self, on: &str) -> String {
        match &self.load {
            Load::Fio(_) => {
                format!("fio --output-format=json+ --output=/work/fio.json /work/{JOBS}")
            }
            Load::Replay { .. } => format!("{REPLAY} /work/{PROCESSES} {on} > /work/{REPLAY_DONE}"),
        }
    }

    /// Programs of ours that it needs, under their names.
    pub(super) fn own_programs(&self) -> Vec<(&'static str, PathBuf)> {
        match &self.load {
            Load::Fio(_) => Vec::new(),
            Load::Replay { program, .. } => vec![(REPLAY, program.clone())],
        }
    }

    /// Files that go into the machine: names and contents.
    pub(super) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let job = match &self.load {
            Load::Fio(job) => job,
            Load::Replay { processes, .. } => {
                return vec![(PROCESSES.to_owned(), processes.clone())];
            }
        };
        let any_contents = self.place.takes_any_contents();
        let run = job_text::to_run(job, any_contents, &self.logs);
        let mut files = vec![(JOBS.to_owned(), run.into_bytes())];
        if let Place::Volume(_, found) = &self.place {
            let layout = job_text::to_lay_out(job, any_contents, &found.read);
            files.push((prepare::LAYOUT.to_owned(), layout.into_bytes()));
        }
        files.extend(self.logs.taken_along());
        files
    }
}
