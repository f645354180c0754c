// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a trace's processes and no event shows: I/O priority, control group, and
//! that they end.

use crate::survey::{DiskSurvey, Survey};
use blklab_analysis::findings::Context;
use blklab_analysis::names::Names;
use blklab_experiment::Experiment;
use blklab_sim::cgroup_number;
use blklab_sim::replay::Process;
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;

/// What workers of io_uring are called before the number of the process that they work for.
const WORKER: &str = "iou-wrk-";

/// Says of each process what a context does.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    context: Context,
    names: Names,
    /// Processes that run the jobs of fio, and the names of these.
    jobs: BTreeMap<Pid, String>,
    /// The last bios of processes that end once they have what they asked for.
    last_bios: BTreeMap<Pid, Time>,
}

impl Processes {
    /// What a context and the survey of a trace say of the processes that submitted bios to a
    /// disk. `all_end`: they do nothing else, as fio's jobs. A real fio's processes all have
    /// its name: they are its jobs in order of their numbers, if there are as many.
    pub fn new(context: &Context, survey: &Survey, disk: &DiskSurvey, all_end: bool) -> Processes {
        let jobs: Vec<&str> = context.fio_jobs().collect();
        let is_job = |pid: &Pid| survey.names().get(*pid).is_none_or(|comm| comm == "fio");
        let pids = disk
            .submitters()
            .map(|(pid, _)| pid)
            .filter(|pid| *pid != 0);
        let pids: Vec<Pid> = pids.filter(is_job).collect();
        let jobs = if pids.len() == jobs.len() {
            let names = jobs.into_iter().map(str::to_owned);
            pids.into_iter().zip(names).collect()
        } else {
            BTreeMap::new()
        };
        let ends = |(pid, _): &(Pid, Time)| all_end || survey.ended().contains(pid);
        Processes {
            context: context.clone(),
            names: survey.names().clone(),
            jobs,
            last_bios: disk.submitters().filter(ends).collect(),
        }
    }

    /// When a process submits its last bio, if it ends then.
    pub(crate) fn last_bio(&self, pid: Pid) -> Option<Time> {
        self.last_bios.get(&pid).copied()
    }

    /// What is known of a process in the models of an experiment.
    pub(crate) fn process(&self, e: &Experiment, pid: Pid) -> Process {
        let comm = self.names.get(pid);
        let works_for = comm.and_then(|comm| comm.strip_prefix(WORKER)?.parse().ok());
        let pid = works_for.unwrap_or(pid);
        let comm = match self.jobs.get(&pid) {
            Some(job) => Some(job.as_str()),
            None => comm.filter(|_| works_for.is_none()),
        };
        let group = self.context.group_of(pid, comm).unwrap_or_default();
        Process {
            ioprio: self.context.ioprio_of(pid, comm).unwrap_or_default(),
            group: number_of(e, group),
            ..Process::default()
        }
    }
}

/// The number of a control group, or of the next one above it that is modelled.
fn number_of(e: &Experiment, group: &str) -> u16 {
    let ends = group.match_indices('/').map(|(end, _)| end);
    let mut ends: Vec<usize> = ends.chain([group.len()]).collect();
    ends.reverse();
    let mut numbers = ends.into_iter().map(|end| cgroup_number(e, &group[..end]));
    numbers.find(|number| *number != 0).unwrap_or(0)
}
