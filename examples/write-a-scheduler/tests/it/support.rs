// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running an experiment for its events.

use blklab::run::{RunOptions, run};
use blklab::{Event, ExperimentError, Source, parse};

/// The trace events of an experiment under SSTF.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let no_files = |name: &str| Err(ExperimentError::new(format!("{name}: not here")));
    let mut e = parse("test", Source::Toml, text, &no_files).expect("an experiment");
    e.schedulers = sstf::schedulers();
    let options = RunOptions {
        keep_events: true,
        ..RunOptions::default()
    };
    run(&e, &options).expect("it can be run").events
}
