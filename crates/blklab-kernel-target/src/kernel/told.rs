// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a machine as those of a run: in its times, and of processes that are
//! called as their jobs.

use super::stack::Stack;
use crate::build::REPLAY;
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// How the programs are called that processes of a load begin as.
const LOADS: [&str; 2] = ["fio", REPLAY];

/// When a process used the disk, on the machine's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) first: Time,
    pub(super) last: Time,
}

/// Sees which of fio's processes use the top of a stack, and when.
pub(super) struct Census {
    top: Dev,
    /// Whether a process is fio's.
    names: BTreeMap<Pid, bool>,
    processes: BTreeMap<Pid, Used>,
}

impl Census {
    /// Nothing was seen yet.
    pub(super) fn new(stack: &Stack) -> Census {
        Census {
            top: stack.devices().next().map(|d| d.dev).unwrap_or_default(),
            names: BTreeMap::new(),
            processes: BTreeMap::new(),
        }
    }

    /// A process for each job, without fio's main one: fio starts them in their order, so
    /// that their numbers rise. None if others used the disk, too, or not all did.
    pub(super) fn of_jobs(&self, fio: Option<Pid>, nr_jobs: usize) -> Option<Vec<(Pid, Used)>> {
        let all = self.processes.iter().filter(|(pid, _)| Some(**pid) != fio);
        let all: Vec<(Pid, Used)> = all.map(|(pid, used)| (*pid, *used)).collect();
        (all.len() == nr_jobs).then_some(all)
    }
}

impl TraceSink for Census {
    fn event(&mut self, event: &Event) {
        let time = event.time;
        let is_used = event.action == Action::Queue && event.dev == self.top;
        if is_used && self.names.get(&event.pid) == Some(&true) {
            let used = self.processes.entry(event.pid);
            let used = used.or_insert(Used {
                first: time,
                last: time,
            });
            used.last = time;
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.insert(pid, comm == "fio");
    }
}

/// The pids and names by which processes are told of, by the pids that they had.
#[derive(Debug, Default)]
pub(super) struct Called(BTreeMap<Pid, (Pid, String)>);

impl Called {
    /// By the names of jobs.
    pub(super) fn by_name<'a>(
        used: &[(Pid, Used)],
        names: impl Iterator<Item = &'a str>,
    ) -> Called {
        let pairs = used.iter().zip(names);
        let pairs = pairs.map(|((pid, _), name)| (*pid, (*pid, name.to_owned())));
        Called(pairs.collect())
    }

    /// By the numbers and names that processes have in the experiment.
    pub(super) fn by_number(had: &[Pid], processes: &[(Pid, String)], seen: &Census) -> Called {
        let is_others = |pid: &Pid| seen.names.contains_key(pid) && !had.contains(pid);
        let pairs = had.iter().zip(processes);
        let pairs = pairs.map(|(had, (pid, name))| {
            // Of two with one number nobody could tell which is which.
            let told = if is_others(pid) { *had } else { *pid };
            (*had, (told, name.clone()))
        });
        Called(pairs.collect())
    }

    fn pid(&self, had: Pid) -> Pid {
        self.0.get(&had).map_or(had, |(pid, _)| *pid)
    }
}

/// A time of the machine as one of the run that began then.
pub(super) fn in_run(time: Time, begun: Time) -> Time {
    Time(time.0.saturating_sub(begun.0))
}

/// Passes events on.
pub(super) struct Told<'a> {
    pub(super) to: &'a mut dyn TraceSink,
    /// When the run began: events count from there.
    pub(super) begun: Time,
    pub(super) called: Called,
    /// The last event.
    pub(super) end: Time,
}

impl Told<'_> {
    fn told(&self, event: &Event) -> Event {
        Event {
            time: in_run(event.time, self.begun),
            pid: self.called.pid(event.pid),
            ..*event
        }
    }
}

impl TraceSink for Told<'_> {
    fn event(&mut self, event: &Event) {
        let event = self.told(event);
        self.end = self.end.max(event.time);
        self.to.event(&event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        // These alone: what they start is called otherwise.
        let called = self.called.0.get(&pid).filter(|_| LOADS.contains(&comm));
        let (pid, comm) = called.map_or((pid, comm), |(pid, name)| (*pid, name.as_str()));
        self.to.process(in_run(time, self.begun), pid, comm);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.to.message(&self.told(event), text);
    }
}
