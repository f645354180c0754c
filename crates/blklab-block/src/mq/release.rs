// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that `io.max` holds back, and how they go on: a timer releases them, and
//! a worker, kthrotld, submits them under a plug of its own
//! (`blk_throtl_dispatch_work_fn`).

use crate::mq::{GroupPolicies, Queue};
use crate::{Cx, Gate, Pending, Submit, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, Completion};

impl Queue {
    /// Limits groups. The timer of the limits was registered before those of the queue.
    pub fn limit_groups(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Policies of groups join those of the queue. Their timers were registered before
    /// those of the queue.
    pub fn add_group_policies(&mut self, policies: GroupPolicies) {
        let wbt_was_set = self.core.limits.wbt_lat_us.is_some();
        self.has_group_policies |= !policies.is_empty();
        (self.policies).add_groups(policies, &self.core.feat, wbt_was_set);
    }

    /// Counts from here on what each group moves.
    pub fn count_groups(&mut self) {
        self.counts_groups = true;
    }

    /// Limits of groups, and what waits for them.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Whether a bio has to wait for its group's limits.
    pub(crate) fn is_held(&mut self, cx: &mut Cx<'_>, bio: &Bio, is_remainder: bool) -> bool {
        self.gate.is_held(cx, bio, is_remainder)
    }

    /// kthrotld, the running task, submits the next bio that was released: Q,
    /// unless it is the remainder of one that was queued already. None if there
    /// is none.
    ///
    /// # Panics
    /// If no task runs: a bug in the caller.
    pub fn submit_released(&mut self, cx: &mut Cx<'_>) -> Option<Submit> {
        let bio = self.gate.next_released(cx)?;
        self.count_for_group(&bio);
        let queued = match bio.completion {
            Completion::Split { chain } => self.chains.queued(chain),
            _ => {
                events::bio_event(self.core.dev, cx, Action::Queue, Kind::Queue, &bio);
                cx.now
            }
        };
        let mut pending = Pending::new(bio, queued);
        pending.qos.issued = cx.now;
        Some(self.go_on(cx, &mut pending))
    }
}
