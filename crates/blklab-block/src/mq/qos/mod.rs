// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies that may hold a task back before its bio gets a request, and that see
//! requests and bios end (`rq_qos`): write-back throttling, `io.latency`, `io.cost`.
//!
//! They stand in a chain, and a bio passes them in its order. One that makes a task
//! sleep is asked again when the task was woken, then those behind it.
//!
//! ```text
//! merged? ──yes──► merged
//!    │ no
//!    ▼
//! throttle ► throttle ► … ► request ► issued ► completed ► bio_done ► freed
//!    │ ▲                     (tracked)
//!  sleeps resumed
//! ```
//!
//! Source: block/blk-rq-qos.c, blk-rq-qos.h of 5.10, 6.1, 6.12 and 7.3.

pub(crate) mod cost;
pub(crate) mod latency;
#[cfg(test)]
mod rig;
pub(crate) mod wbt;
mod wbt_policy;

use self::cost::IoCost;
use self::latency::IoLatency;
use self::wbt::Wbt;
use super::{Features, Limits};
use crate::qos::BioQos;
use crate::{Cx, Pending, Request, RqId, SleepsFor, TaskTable};
use blklab_engine::{TimerId, Timers};
use blklab_types::{Bio, BioFlags, Jiffies, Span, TaskId, Time};
use std::fmt::Debug;

/// Whether a bio goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It does.
    Goes,
    /// Its task sleeps until it is woken; then [`Policy::resumed`].
    Sleeps,
}

/// Metadata is issued at once and charged afterwards, lest others wait for who waits
/// (`bio_issue_as_root_blkg`).
pub(crate) fn is_issued_as_root(bio: &Bio) -> bool {
    bio.flags.has(BioFlags::META)
}

/// A policy of a queue (`rq_qos_ops`). Tasks that may go on are appended to `wakes`.
pub(crate) trait Policy: Debug {
    /// A bio that was not merged is to get a request.
    fn throttle(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        wakes: &mut Vec<TaskId>,
    ) -> Admission;

    /// A task that slept here was woken.
    fn resumed(
        &mut self,
        _cx: &mut Cx<'_>,
        _part: &mut Pending,
        _wakes: &mut Vec<TaskId>,
    ) -> Admission {
        Admission::Goes
    }

    /// A bio is about to join a request, whose first bio has the notes `first`.
    fn merged(&mut self, _cx: &mut Cx<'_>, _rq: &Request, _first: BioQos, _part: &mut Pending) {}

    /// An admitted bio gets no request, as its task does not sleep for one.
    fn refused(&mut self, _cx: &mut Cx<'_>, _part: &Pending, _wakes: &mut Vec<TaskId>) {}

    /// The driver has a request.
    fn issued(&mut self, _cx: &Cx<'_>, _id: RqId, _rq: &Request) {}

    /// The driver gave it back.
    fn requeued(&mut self, _id: RqId) {}

    /// The device finished a command.
    fn completed(&mut self, _cx: &Cx<'_>, _rq: &Request) {}

    /// A bio ended.
    fn bio_done(&mut self, _cx: &mut Cx<'_>, _done: &Pending, _wakes: &mut Vec<TaskId>) {}

    /// A request is freed.
    fn freed(&mut self, _cx: &mut Cx<'_>, _id: RqId, _rq: &Request, _wakes: &mut Vec<TaskId>) {}

    /// A task slept in `balance_dirty_pages`.
    fn dirty_wait(&mut self, _jiffies: Jiffies) {}

    /// A timer fired; whether it is one of this policy.
    fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId, wakes: &mut Vec<TaskId>) -> bool;

    /// How long a task of a group is held up before it returns to its program, for what
    /// its group and those above have had others wait for.
    fn hold_up(&mut self, _group: u16, _now: Time) -> Span {
        Span::ZERO
    }

    /// What a task sleeps for that sleeps here.
    fn sleeps_for(&self) -> SleepsFor;

    /// What a group's tasks are held up for at the end: `use_delay` and `delay_nsec` of its
    /// `io.stat`, if they are.
    fn delay(&self, _group: u16) -> Option<(i64, u64)> {
        None
    }

    /// What `io.stat` of a group says of it, words such as `cost.usage=12`.
    fn says(&self, _group: u16) -> Vec<String> {
        Vec::new()
    }
}

/// The policies of control groups.
#[derive(Debug, Default)]
pub struct GroupPolicies {
    latency: Option<IoLatency>,
    cost: Option<IoCost>,
}

impl GroupPolicies {
    /// Those that a run's groups ask for; registers their timers.
    pub fn new(
        tasks: &TaskTable,
        feat: &Features,
        limits: &Limits,
        has_scheduler: bool,
        timers: &mut Timers,
    ) -> GroupPolicies {
        let nr_requests = limits.nr_requests(has_scheduler);
        GroupPolicies {
            latency: IoLatency::new(tasks, limits.queue.rotational, nr_requests, timers),
            cost: IoCost::new(tasks, feat, limits, nr_requests, timers),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.latency.is_none() && self.cost.is_none()
    }
}

/// The chain of a queue's policies.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    policies: Vec<Box<dyn Policy>>,
}

impl Chain {
    /// Write-back throttling alone, as disks come up.
    pub(crate) fn new(wbt: Option<Wbt>) -> Chain {
        let wbt = wbt.map(|wbt| Box::new(wbt) as Box<dyn Policy>);
        Chain {
            policies: wbt.into_iter().collect(),
        }
    }

    /// The chain with what groups ask for. What joins later is asked first. io.cost
    /// switches write-back throttling off, unless that was set (`wbt_disable_default`);
    /// io.latency is there before it up to 6.2, and joins at its first target from then
    /// on.
    pub(crate) fn add_groups(&mut self, added: GroupPolicies, feat: &Features, wbt_was_set: bool) {
        if added.cost.is_some() && !wbt_was_set {
            self.policies.clear();
        }
        if let Some(latency) = added.latency {
            let at = if feat.latency_joins_late {
                0
            } else {
                self.policies.len()
            };
            self.policies.insert(at, Box::new(latency));
        }
        if let Some(cost) = added.cost {
            self.policies.insert(0, Box::new(cost));
        }
    }

    /// A bio passes the chain from the beginning, or goes on behind the policy that
    /// its task slept for. The number of the one that it sleeps for, if it does.
    pub(crate) fn pass(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        slept_at: Option<usize>,
        wakes: &mut Vec<TaskId>,
    ) -> Option<usize> {
        if let Some(at) = slept_at
            && self.policies[at].resumed(cx, part, wakes) == Admission::Sleeps
        {
            return Some(at);
        }
        let from = slept_at.map_or(0, |at| at + 1);
        (from..self.policies.len())
            .find(|&at| self.policies[at].throttle(cx, part, wakes) == Admission::Sleeps)
    }

    /// How long a task of a group is held up before it returns to its program
    /// (`blkcg_maybe_throttle_blkg`).
    pub(crate) fn hold_up(&mut self, group: u16, now: Time) -> Span {
        let each = self.policies.iter_mut().map(|p| p.hold_up(group, now));
        each.max().unwrap_or_default()
    }

    /// What a task sleeps for at a place of the chain.
    pub(crate) fn sleeps_for(&self, at: usize) -> SleepsFor {
        self.policies[at].sleeps_for()
    }

    /// A timer fired; whether it is one of theirs.
    pub(crate) fn owns_timer(
        &mut self,
        cx: &mut Cx<'_>,
        timer: TimerId,
        wakes: &mut Vec<TaskId>,
    ) -> bool {
        let mut policies = self.policies.iter_mut();
        policies.any(|policy| policy.timer(cx, timer, wakes))
    }

    /// All of them, in order.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn Policy>> {
        self.policies.iter_mut()
    }

    /// What they say of a group, as with `blkcg_debug_stats` on: delays, which belong to
    /// the group, come first.
    pub(crate) fn says(&self, group: u16) -> Vec<String> {
        let delay = self.policies.iter().find_map(|p| p.delay(group));
        let delay =
            delay.map(|(uses, ns)| [format!("use_delay={uses}"), format!("delay_nsec={ns}")]);
        let each = self.policies.iter().flat_map(|p| p.says(group));
        delay.into_iter().flatten().chain(each).collect()
    }
}
