// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of jobs: who has issued how much of what all of a flow have.
//!
//! Behaviour of fio 3.33 (flow.c): a flow counts the I/Os of its jobs from 1 and
//! knows the sum of the weights of all that have not ended, started or not. A
//! job may issue while its share of the count does not exceed its share of the
//! weights.

use crate::Machine;
use blklab_fio::job::Job;
use blklab_types::{TaskId, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Debug)]
struct Flow {
    issued: u64,
    weights: u64,
    /// Jobs that spin until another has issued.
    held: Vec<TaskId>,
}

/// All flows of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows(Rc<RefCell<BTreeMap<u32, Flow>>>);

/// A job's part in its flow.
#[derive(Debug)]
pub(crate) struct Share {
    flows: Flows,
    id: u32,
    weight: u64,
    issued: u64,
}

impl Flows {
    /// The part of a job, if it has one.
    pub(crate) fn join(&self, job: &Job) -> Option<Share> {
        let settings = &job.settings;
        if settings.flow == 0 {
            return None;
        }
        let (id, weight) = (settings.flow_id, u64::from(settings.flow));
        let mut flows = self.0.borrow_mut();
        let flow = flows.entry(id).or_insert_with(|| Flow {
            issued: 1,
            weights: 0,
            held: Vec::new(),
        });
        flow.weights += weight;
        Some(Share {
            flows: self.clone(),
            id,
            weight,
            issued: 0,
        })
    }

    /// Lets all that are held look again: a job has ended, or is to end.
    pub(crate) fn wake(&self, m: &Machine) {
        for flow in self.0.borrow_mut().values_mut() {
            flow.held.drain(..).for_each(|task| m.wake(task));
        }
    }
}

impl Share {
    fn with<R>(&self, f: impl FnOnce(&mut Flow) -> R) -> R {
        let mut flows = self.flows.0.borrow_mut();
        f(flows.get_mut(&self.id).expect("a flow outlives its jobs"))
    }

    /// Whether the job may issue; if so it is counted.
    pub(crate) fn may_issue(&mut self, m: &Machine) -> bool {
        let (issued, weight) = (self.issued as f64, self.weight as f64);
        let yes = self.with(|flow| {
            if issued / flow.issued as f64 > weight / flow.weights as f64 {
                return false;
            }
            flow.issued += 1;
            flow.held.drain(..).for_each(|task| m.wake(task));
            true
        });
        self.issued += u64::from(yes);
        yes
    }

    /// Waits until another job of the flow has issued or ended.
    pub(crate) async fn wait(&self, m: &Machine, until: Option<Time>) {
        let me = m.current();
        self.with(|flow| {
            if !flow.held.contains(&me) {
                flow.held.push(me);
            }
        });
        match until {
            Some(until) => m.suspend_until(until).await,
            None => m.suspend().await,
        }
    }

    /// The job has ended: what it has issued no longer counts.
    pub(crate) fn leave(self, m: &Machine) {
        self.with(|flow| {
            flow.issued -= self.issued;
            flow.weights -= self.weight;
        });
        self.flows.wake(m);
    }
}
