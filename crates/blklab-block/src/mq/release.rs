// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that `io.max` holds back, and how they go on: a timer releases them, and
//! a worker, kthrotld, submits them under a plug of its own
//! (`blk_throtl_dispatch_work_fn`).

use crate::mq::{GroupPolicies, HoldStats, Queue, Throttle, Throttled};
use crate::{Cx, Effect, Pending, Submit, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, Completion};

impl Queue {
    /// Limits groups; none: no limits. The timer of the limits was registered
    /// before those of the queue.
    pub fn limit_groups(&mut self, throttle: Option<Throttle>) {
        self.throttle = throttle;
    }

    /// Policies of groups join those of the queue. Their timers were registered before
    /// those of the queue.
    pub fn add_group_policies(&mut self, policies: GroupPolicies) {
        let wbt_was_set = self.core.limits.wbt_lat_us.is_some();
        self.counts_groups |= !policies.is_empty();
        (self.policies).add_groups(policies, &self.core.feat, wbt_was_set);
    }

    /// What limits groups, if anything does.
    pub fn has_group_limits(&self) -> bool {
        self.throttle.is_some()
    }

    /// What was held of the bios of a group.
    pub fn hold_stats(&self, group: u16) -> HoldStats {
        let stats = self.throttle.as_ref().map(|t| t.stats(group));
        stats.unwrap_or_default()
    }

    /// Whether bios are held, or released and not submitted.
    pub(crate) fn holds_bios(&self) -> bool {
        let held = |t: &Throttle| t.held() > 0;
        !self.released.is_empty() || self.throttle.as_ref().is_some_and(held)
    }

    /// Whether a bio has to wait for its group's limits: then it is kept here
    /// (`blk_throtl_bio`). Remainders of split bios count as I/Os alone.
    pub(crate) fn is_held(&mut self, cx: &mut Cx<'_>, bio: &Bio, is_remainder: bool) -> bool {
        let Some(throttle) = &mut self.throttle else {
            return false;
        };
        throttle.submit(cx.timers, bio.group, bio, is_remainder) == Throttled::Held
    }

    /// The timer of the limits fired: kthrotld gets what may go on
    /// (`dispatch_work`).
    pub(crate) fn release_held(&mut self, cx: &mut Cx<'_>) {
        if let Some(throttle) = &mut self.throttle {
            throttle.timer(cx.timers, &mut self.releasing);
        }
        if !self.releasing.is_empty() {
            self.released.extend(self.releasing.drain(..));
            cx.ask(Effect::ReleaseWork);
        }
    }

    /// Bios that wait for kthrotld.
    pub fn nr_released(&self) -> usize {
        self.released.len()
    }

    /// kthrotld, the running task, submits the next bio that was released: Q,
    /// unless it is the remainder of one that was queued already. None if there
    /// is none.
    ///
    /// # Panics
    /// If no task runs: a bug in the caller.
    pub fn submit_released(&mut self, cx: &mut Cx<'_>) -> Option<Submit> {
        let mut bio = self.released.pop_front()?;
        bio.task = cx.running.task.expect("kthrotld is a task");
        let queued = match bio.completion {
            Completion::Split { chain } => self.chains.queued(chain),
            _ => {
                self.count_for_group(&bio);
                events::bio_event(self.core.dev, cx, Action::Queue, Kind::Queue, &bio);
                cx.now
            }
        };
        let mut pending = Pending::new(bio, queued);
        pending.qos.issued = cx.now;
        Some(self.go_on(cx, &mut pending))
    }
}
