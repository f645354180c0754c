// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a job text and keeps its events.

use blklab_experiment::{DeviceSpec, Experiment, Source, Workload};
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_sim::fio::run_fio;
use blklab_sim::{Sinks, build_machine, catalogue, spawn_processes};
use blklab_target::{JobResult, Outcome};
use blklab_trace::{Action, Digest, Event, TraceSink};
use blklab_types::Time;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Default)]
pub(crate) struct Events(pub(crate) Rc<RefCell<Vec<Event>>>);

impl TraceSink for Events {
    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().push(*event);
    }
}

/// Runs the processes of an experiment file to their end.
pub(crate) fn run_processes(toml: &str) -> Vec<Event> {
    let no_files = |_: &str| Err(blklab_types::Error::new("no files here"));
    let catalogue = blklab_sim::catalogue();
    let e = blklab_experiment::parse("t.toml", Source::Toml, toml, &no_files, &catalogue);
    let e = e.expect("an experiment");
    e.check(&catalogue).expect("a possible experiment");
    let events = Events::default();
    let sinks = Sinks::of_events(Box::new(events.clone()));
    let m = build_machine(&e, sinks, std::sync::Arc::default()).expect("a machine");
    let Workload::Processes(p) = &e.workload else {
        panic!("explicit processes")
    };
    spawn_processes(&m, &e, p);
    m.run(Time::MAX);
    events.0.take()
}

pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

impl Ran {
    pub(crate) fn job(&self, name: &str) -> &JobResult {
        let found = self.outcome.jobs.iter().find(|j| j.job.name == name);
        found.unwrap_or_else(|| panic!("no job {name}"))
    }

    /// Sectors and lengths of the events of one kind.
    pub(crate) fn spans(&self, action: Action) -> Vec<(u64, u64)> {
        let all = self.events.iter().filter(|e| e.action == action);
        all.map(|e| (e.sector, e.nr_sectors())).collect()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.events.iter().for_each(|e| digest.event(e));
        digest.value()
    }
}

/// A disk that takes 1 ms for everything, one command at a time.
pub(crate) fn experiment() -> Experiment {
    let none = Workload::Processes(Vec::new());
    let mut e = Experiment::new("test", none);
    e.kernel = "2.6.28".parse().expect("a version");
    e.scheduler = "noop".to_owned();
    e.device = DeviceSpec {
        name: "serial".to_owned(),
        params: vec![("read_ns".to_owned(), "1000000".to_owned())],
    };
    e.queue.queue_depth = Some(32);
    e.vm.memory_bytes = Some(256 << 20);
    e
}

pub(crate) fn parallel(mut e: Experiment) -> Experiment {
    e.device.name = "parallel".to_owned();
    e
}

pub(crate) fn try_run(e: &Experiment, text: &str) -> Result<Ran, String> {
    let jobs = parse(
        "test.fio",
        text,
        &ParseOptions::default(),
        &Fixed::default(),
    )
    .map_err(|e| e.to_string())?;
    let events = Events::default();
    let sinks = Sinks::of_events(Box::new(events.clone()));
    let outcome = run_fio(e, jobs, sinks, std::sync::Arc::default()).map_err(|e| e.to_string())?;
    let events = events.0.take();
    Ok(Ran { outcome, events })
}

pub(crate) fn run(e: &Experiment, text: &str) -> Ran {
    try_run(e, text).expect("the job runs")
}

/// Runs a built-in scenario with some of its parameters on that experiment's
/// stack.
pub(crate) fn run_scenario(e: &Experiment, name: &str, set: &[(&str, &str)]) -> Ran {
    let mut s = Experiment::of_scenario(name, &blklab_sim::catalogue()).expect("a scenario");
    for (key, value) in set {
        s.set(key, value, &catalogue()).expect("a parameter");
    }
    let Workload::Scenario(scenario) = &s.workload else {
        panic!("no scenario");
    };
    let options = ParseOptions {
        release: s.fio,
        ..ParseOptions::default()
    };
    let around = Fixed {
        devices: vec!["/dev/sda".to_owned()],
        ..Fixed::default()
    };
    let jobs = parse(name, &scenario.job_text(), &options, &around).expect("its jobs");
    let mut e = e.clone();
    e.workload = s.workload.clone();
    let events = Events::default();
    let sinks = Sinks::of_events(Box::new(events.clone()));
    let outcome = run_fio(&e, jobs, sinks, std::sync::Arc::default()).expect("it runs");
    let events = events.0.take();
    Ran { outcome, events }
}
