// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running an experiment for its events.

use blklab::experiment::{Source, parse};
use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab::trace::Event;
use blklab::types::Error;

/// The trace events of an experiment under SSTF.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let no_files = |name: &str| Err(Error::new(format!("{name}: not here")));
    let planner = Planner::new(Sim::with(sstf::schedulers()));
    let e =
        parse("test", Source::Toml, text, &no_files, planner.catalogue()).expect("an experiment");
    let options = RunOptions {
        kept_events_max: usize::MAX,
        ..RunOptions::default()
    };
    let plan = planner.plan(&e).expect("it can be run");
    run(&plan, &options).expect("it runs").events
}
