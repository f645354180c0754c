// SPDX-License-Identifier: MIT OR Apache-2.0
//! The models with the kernel's bios and completions: each comes when it did on the kernel,
//! so that fio, the scheduler of processes and the device are the kernel's, and what is
//! compared is the block layer and its scheduler alone.

use blklab::explain::{Agreement, Machine, Outcome, Request, Shared, Survey, re_enact};
use blklab::run::RunOutput;
use blklab::scheduler::Schedulers;
use blklab_experiment::Experiment;
use blklab_trace::TraceSink;
use blklab_types::Time;
use serde::Serialize;
use std::collections::BTreeSet;
use std::convert::Infallible;

/// How far the models dispatch what the kernel did, if they get the same bios and
/// completions at the same times.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Given {
    /// Dispatches, and where they part.
    Agreed(Agreement),
    /// It cannot be tried: why, in a clause.
    Refused(String),
}

impl Given {
    /// Whether all dispatches are the kernel's, in its order; none if it was not tried.
    pub fn is_same(&self) -> Option<bool> {
        match self {
            Given::Agreed(a) => Some(a.first_difference.is_none()),
            Given::Refused(_) => None,
        }
    }

    /// In a line.
    pub fn words(&self) -> String {
        match self {
            Given::Refused(why) => format!("bios given: not possible: {why}"),
            Given::Agreed(a) => match &a.first_difference {
                None => "bios given: the same order".to_owned(),
                Some(d) => format!(
                    "bios given: dispatch {} is {} on the kernel, {} in sim",
                    a.prefix + 1,
                    d.recorded,
                    d.model
                ),
            },
        }
    }
}

/// Feeds what the kernel did into the models of an experiment.
pub(super) fn given(kernel: &RunOutput, models: &Experiment) -> Given {
    let mut survey = Survey::default();
    send_all(kernel, &mut survey);
    let send = |sink: Shared| -> Result<(), Infallible> {
        let mut sink = sink.borrow_mut();
        send_all(kernel, sink.as_mut().expect("nobody took it"));
        Ok(())
    };
    let request = Request {
        worst: 0,
        wanted: BTreeSet::new(),
        schedulers: Schedulers::default(),
    };
    let done = re_enact(send, &survey, 0, Machine::Simulated(models), &request);
    match done.unwrap_or_else(|never| match never {}) {
        Outcome::Done(done) => Given::Agreed(done.agreement),
        Outcome::Refused(why) => Given::Refused(why.to_string()),
    }
}

fn send_all(output: &RunOutput, sink: &mut impl TraceSink) {
    for p in &output.stats.processes {
        sink.process(Time::ZERO, p.pid, p.comm.as_deref().unwrap_or_default());
    }
    for e in &output.events {
        sink.event(e);
    }
}
