// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that `blkio.throttle` holds back, and how they go on: kthrotld submits them as bios of
//! its own (`blk_throtl_work`, later `blk_throtl_dispatch_work_fn`).

use crate::sq::Queue;
use crate::{Cx, Gate, Pending, Submit};

impl Queue {
    /// Limits groups.
    pub fn limit_groups(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Limits of groups, and what waits for them.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// kthrotld, the running task, submits the next bio that was released: Q. None if there is
    /// none.
    ///
    /// # Panics
    /// If no task runs: a bug in the caller.
    pub fn submit_released(&mut self, cx: &mut Cx<'_>) -> Option<Submit> {
        let bio = self.gate.next_released(cx)?;
        Some(self.queue_bio(cx, Pending::new(bio, cx.now)))
    }

    /// kthrotld has submitted what was released: it does not wait for the queue's plug
    /// (`blk_unplug`, up to 2.6.38).
    pub fn end_release(&mut self, cx: &mut Cx<'_>) {
        if !self.core.feat.task_plug {
            self.unplug_and_run(cx);
        }
    }
}
