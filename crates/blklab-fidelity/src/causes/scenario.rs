// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs scenarios, and what a run leaves behind.

use super::change::Change;
use super::effect::Effects;
use super::truth::{Sum, Sums};
use blklab::targets::{JobResult, Planner};
use blklab_experiment::{Experiment, Source};
use blklab_sim::Sinks;
use blklab_trace::{Event, TraceSink};
use blklab_types::{Error, Pid, Time};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// What a run left behind.
pub(super) struct Ran {
    pub(super) trace: Trace,
    /// What its processes felt.
    pub(super) effects: Effects,
    /// The truth by process, where the target has one.
    truth: Option<BTreeMap<Pid, Sum>>,
    /// Lines of `key=value`, as `blklab record` writes them beside a trace.
    pub(super) context: String,
    jobs: Vec<JobResult>,
}

/// What runs scenarios.
pub struct Bench {
    planner: Planner,
    target: &'static str,
    stop: Arc<AtomicBool>,
}

impl Bench {
    /// On this target. Setting `stop` from outside ends its runs.
    pub fn new(planner: Planner, target: &'static str, stop: Arc<AtomicBool>) -> Bench {
        Bench {
            planner,
            target,
            stop,
        }
    }

    /// Whether the runs were ended from outside.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The experiment of a text.
    fn parse(&self, id: &str, text: &str) -> Result<Experiment, Error> {
        let mut e = blklab_experiment::parse(
            &format!("{id}.toml"),
            Source::Toml,
            text,
            &|_| unreachable!("a scenario refers to no file"),
            self.planner.catalogue(),
        )?;
        self.target.clone_into(&mut e.target);
        Ok(e)
    }

    /// Runs an experiment.
    ///
    /// # Errors
    /// If it cannot be run.
    pub(super) fn run(&self, id: &str, text: &str) -> Result<Ran, Error> {
        let e = self.parse(id, text)?;
        let kept = Kept::default();
        let truth = Arc::new(Mutex::new(BTreeMap::new()));
        let mut sinks = Sinks::of_events(Box::new(kept.clone()));
        let has_truth = self.target == "sim";
        if has_truth {
            sinks.truth = Some(Box::new(Sums::new(Arc::clone(&truth))));
        }
        let plan = self.planner.plan(&e)?;
        let outcome = plan
            .run(sinks, Arc::clone(&self.stop))
            .map_err(|failed| Error::new(failed.to_string()))?;
        let context = blklab::why::context_of(&e, self.planner.catalogue())?;
        let trace = kept.take();
        let effects = Effects::new(&trace.events, &trace.names, &outcome.jobs);
        let truth = std::mem::take(&mut *truth.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Ran {
            trace,
            effects,
            truth: has_truth.then_some(truth),
            context: context
                .facts()
                .map(|(key, value)| format!("{key}={value}\n"))
                .collect(),
            jobs: outcome.jobs,
        })
    }
}

impl Ran {
    /// Changes the events, and with them what was felt.
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.trace.events, &mut self.trace.names);
        self.trace.events_changed();
        // What jobs measured is of the events as they were.
        self.jobs.clear();
        self.look_again();
    }

    /// What was felt, told from the events alone, as of a run whose events are changed.
    pub(super) fn look_at_events(&mut self) {
        self.jobs.clear();
        self.look_again();
    }

    fn look_again(&mut self) {
        self.effects = Effects::new(&self.trace.events, &self.trace.names, &self.jobs);
    }

    /// Whether a message has these words.
    pub(super) fn says(&self, words: &str) -> bool {
        self.trace
            .messages
            .iter()
            .any(|(_, _, m)| m.contains(words))
    }

    /// The truth of a process, where it is known.
    pub(super) fn truth_of_process(&self, pid: Pid) -> Option<Sum> {
        let truth = self.truth.as_ref()?;
        Some(truth.get(&pid).cloned().unwrap_or_default())
    }

    /// The truth of some processes, by name; of all, if none is named.
    pub(super) fn truth_of(&self, names: &[&str]) -> Option<Sum> {
        let mut all = Sum::default();
        for (pid, sum) in self.truth.as_ref()? {
            let comm = self.trace.names.get(pid).map_or("", String::as_str);
            if names.is_empty() || names.contains(&comm) {
                all.add(sum);
            }
        }
        Some(all)
    }
}

/// Events of a run, with what is beside them.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub(super) events: Vec<Event>,
    /// Messages of the kernel: before which event they come.
    pub(super) messages: Vec<(usize, Event, String)>,
    pub(super) names: BTreeMap<Pid, String>,
}

impl Trace {
    /// Puts messages where their time is, after the events were changed.
    fn events_changed(&mut self) {
        for (place, message, _) in &mut self.messages {
            *place = self.events.partition_point(|e| e.time <= message.time);
        }
    }
}

/// Keeps a trace.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Trace>>);

impl Kept {
    fn take(&self) -> Trace {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with(&self, change: impl FnOnce(&mut Trace)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl TraceSink for Kept {
    fn event(&mut self, event: &Event) {
        self.with(|trace| trace.events.push(*event));
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.with(|trace| {
            let place = trace.events.len();
            trace.messages.push((place, *event, text.to_owned()));
        });
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.with(|trace| {
            trace.names.insert(pid, comm.to_owned());
        });
    }
}
