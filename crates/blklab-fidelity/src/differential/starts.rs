// SPDX-License-Identifier: MIT OR Apache-2.0
//! When jobs begin. That is fio's and its main process's doing, and the scheduler of
//! processes decides between those that begin together: the models are told when each job
//! brought its first bio on the kernel, and what is compared begins there.

use blklab::run::RunOutput;
use blklab_experiment::{Experiment, Workload};
use blklab_trace::{Action, Event};
use blklab_types::{Pid, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The first bio of each job, from the first of all, in the order of the jobs; none if that
/// cannot be told.
pub(super) fn start_times(output: &RunOutput) -> Option<Vec<Span>> {
    let delays = output.jobs.iter().map(|j| j.job.start_delay_us);
    if !delays.is_sorted() {
        // The order of the processes is not that of the jobs.
        return None;
    }
    let first = first_bios(&output.events);
    if first.len() != output.jobs.len() {
        return None;
    }
    let begin = first.values().min()?;
    Some(first.values().map(|time| time.since(*begin)).collect())
}

/// The time of the first bio of each process, but for workers of io_uring: what they bring
/// was refused before.
fn first_bios(events: &[Event]) -> BTreeMap<Pid, Time> {
    let mut refused = BTreeSet::new();
    let mut workers = BTreeSet::new();
    let mut first = BTreeMap::new();
    for e in events {
        if e.action == Action::Complete && e.error != 0 {
            refused.insert(e.sector);
        }
        if e.action != Action::Queue || workers.contains(&e.pid) || first.contains_key(&e.pid) {
            continue;
        }
        if refused.contains(&e.sector) {
            workers.insert(e.pid);
        } else {
            first.insert(e.pid, e.time);
        }
    }
    first
}

/// The same experiment, whose jobs begin at these times; none if they are not one a section.
pub(super) fn given(e: &Experiment, starts: &[Span]) -> Option<Experiment> {
    let Workload::Fio { name, text } = &e.workload else {
        return None;
    };
    let mut e = e.clone();
    e.workload = Workload::Fio {
        name: name.clone(),
        text: text_with(text, starts, e.switch_cost())?,
    };
    // No look decides it.
    e.vm.start_look_cost_ns = None;
    Some(e)
}

/// A job file with these delays, the last option of each section. The main process takes a
/// change of tasks to start a job that is not there from the start.
fn text_with(text: &str, starts: &[Span], switch: Span) -> Option<String> {
    let mut starts = starts.iter();
    let mut all = String::new();
    let mut own: Option<u64> = None;
    for line in text.lines().chain(["["]) {
        if line.trim_start().starts_with('[') {
            if let Some(us) = own.take() {
                let _ = writeln!(all, "startdelay={us}us");
            }
            let is_job = line.trim() != "[" && line.trim() != "[global]";
            if is_job {
                let ns = starts.next()?.ns().saturating_sub(switch.ns());
                own = Some((ns + 500) / 1000);
            }
        }
        if line != "[" {
            let _ = writeln!(all, "{line}");
        }
    }
    starts.next().is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_begins_at_its_time() {
        let text = "[global]\nbs=4k\n[a]\nrw=read\n[b]\nstartdelay=100ms\n";
        let starts = [Span::ZERO, Span(200_123_600)];
        let given = text_with(text, &starts, Span(2000)).expect("a job file");
        assert_eq!(
            given,
            "[global]\nbs=4k\n[a]\nrw=read\nstartdelay=0us\n[b]\nstartdelay=100ms\n\
             startdelay=200122us\n"
        );
        assert_eq!(text_with(text, &starts[..1], Span(2000)), None);
        assert_eq!(text_with(text, &[Span::ZERO; 3], Span(2000)), None);
    }

    #[test]
    fn workers_are_no_jobs() {
        let event = |ns: u64, action, pid, sector, error| Event {
            time: Time(ns),
            sector,
            arg: 0,
            bytes: 4096,
            pid,
            dev: blklab_types::Dev::default(),
            from_dev: blklab_types::Dev::default(),
            error,
            cpu: 0,
            rwbs: blklab_trace::Rwbs::READ,
            action,
        };
        let events = [
            event(10, Action::Queue, 5, 0, 0),
            event(20, Action::Queue, 5, 8, 0),
            event(21, Action::Complete, 5, 8, 11),
            event(30, Action::Queue, 6, 8, 0),
            event(40, Action::Queue, 6, 800, 0),
            event(50, Action::Queue, 7, 16, 0),
        ];
        let first: Vec<(Pid, Time)> = first_bios(&events).into_iter().collect();
        assert_eq!(first, [(5, Time(10)), (7, Time(50))]);
    }
}
