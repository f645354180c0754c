// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces re-enacted: what each request waited for, as the model of its kernel says.

pub use blklab_explain::{
    Agreement, Decision, Decisions, Difference, Explained, ReEnacted, Reason, Survey, Tried,
    Waiting,
};

use blklab_analysis::findings::Context;
use blklab_experiment::Experiment;
use blklab_explain::{DiskSurvey, Options, Processes, ReEnactment, Stack, candidates};
use blklab_sched::Schedulers;
use blklab_types::Error;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What is known of a recorded machine.
#[derive(Clone, Copy, Debug)]
pub enum Machine<'a> {
    /// What a context says; the scheduler is tried out if it does not say it, or if
    /// this is set.
    Recorded(&'a Context, bool),
    /// The trace is one of a run of this experiment.
    Simulated(&'a Experiment),
}

/// What is wanted of a re-enactment.
#[derive(Clone, Debug)]
pub struct Request {
    /// So many of the requests that waited longest.
    pub worst: usize,
    /// Requests by the number of their D, from 1.
    pub wanted: BTreeSet<u64>,
    /// The schedulers that there are.
    pub schedulers: Schedulers,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was done.
    Done(Box<ReEnacted>),
    /// It cannot be: why, in a clause.
    Refused(Error),
}

/// A re-enactment while it is sent its trace; it is taken out in the end, whoever else
/// still has a hold of this.
pub type Shared = Rc<RefCell<Option<ReEnactment>>>;

/// Re-enacts a trace that a survey has seen whole. `send` sends all of it again, once for
/// each attempt; `lost` is how many events are known to be missing.
///
/// # Errors
/// If it cannot be read.
pub fn re_enact<E>(
    send: impl Fn(Shared) -> Result<(), E>,
    survey: &Survey,
    lost: u64,
    machine: Machine<'_>,
    request: &Request,
) -> Result<Outcome, E> {
    let (dev, disk) = match survey.disk(lost) {
        Ok(found) => found,
        Err(why) => return Ok(Outcome::Refused(why)),
    };
    let (stacks, processes) = match known(survey, disk, machine, request.schedulers) {
        Ok(known) => known,
        Err(why) => return Ok(Outcome::Refused(why)),
    };
    let attempt = |stack: &Stack, direct: bool| -> Result<Result<ReEnacted, Error>, E> {
        let options = Options {
            direct,
            worst: request.worst,
            wanted: request.wanted.clone(),
            processes: processes.clone(),
        };
        let made = ReEnactment::new(stack.clone(), survey, (dev, disk), options);
        let sink = match made {
            Ok(sink) => Rc::new(RefCell::new(Some(sink))),
            Err(why) => return Ok(Err(why)),
        };
        send(Rc::clone(&sink))?;
        let done = sink.borrow_mut().take();
        Ok(done.expect("nobody else takes it").finish())
    };
    let mut done: Vec<ReEnacted> = Vec::new();
    for stack in &stacks {
        let mut best = match attempt(stack, false)? {
            Ok(r) => r,
            Err(why) => return Ok(Outcome::Refused(why)),
        };
        // A trace does not show which sync writes are direct ones.
        if best.agreement.first_difference.is_some()
            && disk.nr_sync_writes > 0
            && stack.reads_direct_writes()
            && let Ok(other) = attempt(stack, true)?
            && other.fit() > best.fit()
        {
            best = other;
        }
        done.push(best);
    }
    done.sort_by(|a, b| b.fit().total_cmp(&a.fit()));
    let tried: Vec<Tried> = done.iter().map(ReEnacted::as_tried).collect();
    let Some(mut best) = done.into_iter().next() else {
        return Ok(Outcome::Refused(Error::new("the kernel has no scheduler")));
    };
    if tried.len() > 1 {
        best.tried = tried;
    }
    Ok(Outcome::Done(Box::new(best)))
}

/// The stacks that a machine may have had, and what is known of its processes.
fn known(
    survey: &Survey,
    disk: &DiskSurvey,
    machine: Machine<'_>,
    schedulers: Schedulers,
) -> Result<(Vec<Stack>, Processes), Error> {
    match machine {
        Machine::Simulated(e) => {
            let catalogue = blklab_sim::catalogue_with(schedulers);
            let models = crate::targets::models_of(e, &catalogue);
            let stack = Stack {
                // What a real kernel did before is not known.
                begins_idle: models.target == e.target,
                ..Stack::of_run(&models, schedulers)
            };
            let context = crate::why::context_of(e, &catalogue)?;
            let processes = Processes::new(&context, survey, disk, true);
            Ok((vec![stack], processes))
        }
        Machine::Recorded(context, tries) => {
            let names = candidates(context, schedulers, tries)?.into_iter();
            let stacks = names.map(|name| Stack::of_context(context, name, schedulers, disk));
            let stacks: Result<Vec<Stack>, Error> = stacks.collect();
            Ok((stacks?, Processes::new(context, survey, disk, false)))
        }
    }
}
