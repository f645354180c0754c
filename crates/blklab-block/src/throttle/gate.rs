// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where bios wait for the limits of their groups, and how they go on: a timer releases them,
//! and a worker, kthrotld, submits them (`blk_throtl_dispatch_work_fn`).

use super::{HoldStats, Throttle, Throttled};
use crate::{Cx, Effect};
use blklab_engine::TimerId;
use blklab_types::Bio;
use std::collections::VecDeque;

/// The limits of a queue, and what they released.
#[derive(Debug, Default)]
pub struct Gate {
    throttle: Option<Throttle>,
    /// Bios that wait for kthrotld.
    released: VecDeque<Bio>,
    /// Kept for its memory.
    releasing: Vec<Bio>,
}

impl Gate {
    /// One with these limits; none: no limits.
    pub fn new(throttle: Option<Throttle>) -> Gate {
        Gate {
            throttle,
            ..Gate::default()
        }
    }

    /// Whether anything limits groups.
    pub fn has_limits(&self) -> bool {
        self.throttle.is_some()
    }

    /// What was held of the bios of a group.
    pub fn hold_stats(&self, group: u16) -> HoldStats {
        let stats = self.throttle.as_ref().map(|t| t.stats(group));
        stats.unwrap_or_default()
    }

    /// Whether bios are held, or released and not submitted.
    pub fn holds_bios(&self) -> bool {
        let held = |t: &Throttle| t.held() > 0;
        !self.released.is_empty() || self.throttle.as_ref().is_some_and(held)
    }

    /// Whether a bio has to wait for its group's limits: then it is kept here
    /// (`blk_throtl_bio`). Remainders of split bios count as I/Os alone.
    pub fn is_held(&mut self, cx: &mut Cx<'_>, bio: &Bio, is_remainder: bool) -> bool {
        let Some(throttle) = &mut self.throttle else {
            return false;
        };
        throttle.submit(cx.timers, bio.group, bio, is_remainder) == Throttled::Held
    }

    /// One of the queue's timers fired; false if it is not that of the limits. Else kthrotld
    /// gets what may go on (`dispatch_work`).
    pub fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let own = self.throttle.as_mut().filter(|t| t.timer_id() == timer);
        let Some(throttle) = own else {
            return false;
        };
        throttle.timer(cx.timers, &mut self.releasing);
        if !self.releasing.is_empty() {
            self.released.extend(self.releasing.drain(..));
            cx.ask(Effect::ReleaseWork);
        }
        true
    }

    /// Bios that wait for kthrotld.
    pub fn nr_released(&self) -> usize {
        self.released.len()
    }

    /// The next bio that was released, now one of the running task, which is kthrotld. None if
    /// there is none.
    ///
    /// # Panics
    /// If no task runs: a bug in the caller.
    pub fn next_released(&mut self, cx: &Cx<'_>) -> Option<Bio> {
        let mut bio = self.released.pop_front()?;
        bio.task = cx.running.task.expect("kthrotld is a task");
        Some(bio)
    }
}
