// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario, what proves that its cause is there, and its run.

use super::change::Change;
use super::setup::Setup;
use super::truth::{Sum, Sums};
use blklab::findings::{Context, Reading, Report, Search};
use blklab::targets::{Planner, Sim};
use blklab_experiment::{Experiment, Source};
use blklab_sim::Sinks;
use blklab_trace::truth::Why;
use blklab_trace::{Event, TraceSink};
use blklab_types::Error;
use blklab_types::{Pid, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// An experiment with a cause in it.
#[derive(Clone, Debug)]
pub(super) struct Planted {
    /// The experiment.
    pub(super) setup: Setup,
    /// The same without the cause.
    pub(super) control: Setup,
    /// Whose I/O suffers, by the names of their jobs; the finding must name one of them.
    /// Empty where nobody is delayed.
    pub(super) victims: &'static [&'static str],
    /// Whose I/O causes it; empty if no process does. Where the finding names causes, one
    /// of these must be among them.
    pub(super) culprits: &'static [&'static str],
    /// Kinds of findings that are true of the same construction.
    pub(super) also: Vec<&'static str>,
    /// What shows that the cause is there: all of it.
    pub(super) proof: &'static [Proof],
    /// What is done to the events of the run.
    pub(super) change: Option<Change>,
}

/// What shows, in the truth of the run, that a cause has an effect.
#[derive(Clone, Debug)]
pub(super) enum Proof {
    /// I/O of the victims takes so many times as long as without the cause, on average.
    Slower(f64),
    /// The longest I/O of the victims takes so many times as long as without the cause.
    Longest(f64),
    /// So large a part of the victims' time is for these reasons.
    Waits(&'static [Why], f64),
    /// So large a part of the victims' time they sleep for a request.
    Sleeps(f64),
    /// The device gets so many times as many commands for as many sectors.
    MoreCommands(f64),
    /// The victims transfer so many times as much without the cause.
    LessDone(f64),
    /// I/O of the victims takes so long on average, ns.
    Mean(u64),
    /// The scheduler says so in a message.
    Said(&'static str),
    /// The events themselves were made so.
    Constructed,
}

/// What a run left behind.
pub(super) struct Ran {
    events: Vec<Event>,
    messages: Vec<(usize, Event, String)>,
    names: BTreeMap<Pid, String>,
    /// The truth by process.
    truth: BTreeMap<Pid, Sum>,
    context: Context,
}

/// The experiment of a text.
///
/// # Errors
/// If the text is no experiment.
pub(super) fn parse(id: &str, text: &str) -> Result<Experiment, Error> {
    blklab_experiment::parse(
        &format!("{id}.toml"),
        Source::Toml,
        text,
        &|_| unreachable!("a scenario refers to no file"),
        &blklab::targets::catalogue(),
    )
}

/// Runs an experiment.
///
/// # Errors
/// If it cannot be run.
pub(super) fn run(id: &str, text: &str) -> Result<Ran, Error> {
    let e = parse(id, text)?;
    let kept = Kept::default();
    let truth = Rc::new(RefCell::new(BTreeMap::new()));
    let sinks = Sinks {
        truth: Some(Box::new(Sums::new(Rc::clone(&truth)))),
        ..Sinks::of_events(Box::new(kept.clone()))
    };
    let planner = Planner::new(Sim::default());
    let plan = planner.plan(&e)?;
    let ended = plan.run(sinks, Arc::default());
    ended.map_err(|failed| Error::new(failed.to_string()))?;
    let context = blklab::why::context_of(&e, planner.catalogue())?;
    let trace = kept.0.take();
    Ok(Ran {
        events: trace.events,
        messages: trace.messages,
        names: trace.names,
        truth: truth.take(),
        context,
    })
}

impl Ran {
    /// What somebody who has its events, and what is known of the machine, is told.
    pub(super) fn why(&self) -> Report {
        let mut search = Search::all(self.context.clone());
        for (pid, name) in &self.names {
            search.process(Time::ZERO, *pid, name);
        }
        let mut messages = self.messages.iter().peekable();
        for (place, event) in self.events.iter().enumerate() {
            while let Some((_, event, text)) = messages.next_if(|(at, _, _)| *at <= place) {
                search.message(event, text);
            }
            search.event(event);
        }
        search.finish(Reading::default())
    }

    /// Changes the events.
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.events, &mut self.names);
    }

    /// The truth of a process.
    pub(super) fn truth_of_process(&self, pid: Pid) -> Sum {
        self.truth.get(&pid).cloned().unwrap_or_default()
    }

    /// The truth of some processes, by name; of all, if none is named.
    pub(super) fn truth_of(&self, names: &[&str]) -> Sum {
        let mut all = Sum::default();
        for (pid, sum) in &self.truth {
            let comm = self.names.get(pid).map_or("", String::as_str);
            if names.is_empty() || names.contains(&comm) {
                all.add(sum);
            }
        }
        all
    }
}

impl Proof {
    /// Whether a run has what it asks for, seen beside the run without the cause.
    pub(super) fn holds(&self, names: &[&str], ran: &Ran, control: &Ran) -> bool {
        let (with, without) = (ran.truth_of(names), control.truth_of(names));
        let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
        let mean = |s: &Sum| s.waited_ns / s.bios.max(1);
        let commands = |s: &Sum| ratio(s.commands, s.sectors);
        with.bios >= BIOS_MIN
            && match self {
                Proof::Slower(times) => ratio(mean(&with), mean(&without)) >= *times,
                Proof::Longest(times) => ratio(with.worst_ns, without.worst_ns) >= *times,
                Proof::Waits(reasons, part) => {
                    let ns = reasons.iter().filter_map(|why| with.why.get(why)).sum();
                    ratio(ns, with.waited_ns) >= *part
                }
                Proof::Sleeps(part) => ratio(with.sleep_ns, with.waited_ns) >= *part,
                Proof::MoreCommands(times) => commands(&with) >= times * commands(&without),
                Proof::LessDone(times) => ratio(without.sectors, with.sectors) >= *times,
                Proof::Mean(ns) => mean(&with) >= *ns,
                Proof::Said(words) => ran.messages.iter().any(|(_, _, m)| m.contains(words)),
                Proof::Constructed => true,
            }
    }
}

/// Fewer bios of the victims prove nothing.
const BIOS_MIN: u64 = 8;

#[derive(Default)]
struct Trace {
    events: Vec<Event>,
    messages: Vec<(usize, Event, String)>,
    names: BTreeMap<Pid, String>,
}

/// Keeps a trace.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Trace>>);

impl TraceSink for Kept {
    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().events.push(*event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        let mut trace = self.0.borrow_mut();
        let place = trace.events.len();
        trace.messages.push((place, *event, text.to_owned()));
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.0.borrow_mut().names.insert(pid, comm.to_owned());
    }
}
