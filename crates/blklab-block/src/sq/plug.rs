// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue plug (to 2.6.38): a short wait for more requests.

use crate::sq::{Features, Kick, PlugPolicy, Queue};
use crate::{Cx, Effect};
use blklab_trace::Action;
use blklab_trace::truth::{Kind, Why};
use blklab_types::Hz;

/// 3 ms: what a plug waits for more requests.
const UNPLUG_DELAY_MS: u64 = 3;

impl Features {
    /// What a plug waits for more requests, in jiffies.
    pub fn unplug_delay(&self, hz: Hz) -> u64 {
        if self.unplug_delay_rounds_up {
            hz.from_ms(UNPLUG_DELAY_MS)
        } else {
            (UNPLUG_DELAY_MS * u64::from(hz.0) / 1000).max(1)
        }
    }
}

impl Queue {
    /// Whether an empty queue is plugged when a request comes.
    pub(crate) fn may_plug(&self) -> bool {
        let limits = &self.core.limits;
        match self.core.feat.plug_policy {
            PlugPolicy::Always => true,
            PlugPolicy::SkipNonrot => limits.queue.rotational,
            PlugPolicy::SkipNonrotTagged => limits.queue.rotational || !limits.tagged,
            PlugPolicy::SkipNonrotDeep => limits.queue.rotational || !self.ever_deep,
        }
    }

    /// Plugs the queue (P) and starts the timer; nothing if it is plugged
    /// (`blk_plug_device`).
    pub(crate) fn plug(&mut self, cx: &mut Cx<'_>) {
        if std::mem::replace(&mut self.plugged, true) {
            return;
        }
        let delay = self.core.feat.unplug_delay(self.core.hz);
        cx.timers.arm(self.unplug_timer, cx.jiffies.plus(delay));
        cx.truth_note(Kind::TimerArm, delay, cx.timers.name(self.unplug_timer));
        self.core.queue_event(cx, Action::Plug, 0);
        cx.truth_note(Kind::Plug, 0, "");
        cx.waits(Why::Plugged, 0);
    }

    /// Removes the plug (`blk_remove_plug`); false if there was none.
    pub(crate) fn remove_plug(&mut self, cx: &mut Cx<'_>) -> bool {
        let was = std::mem::take(&mut self.plugged);
        if was && cx.timers.cancel(self.unplug_timer) {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(self.unplug_timer));
        }
        was
    }

    /// Removes the plug and calls the driver; nothing if there was no plug
    /// (`__generic_unplug_device`; from 2.6.29 non-rotational queues call the
    /// driver all the same).
    pub(crate) fn unplug_and_run(&mut self, cx: &mut Cx<'_>) {
        let forced = self.core.feat.unplug_runs_nonrot && !self.core.limits.queue.rotational;
        if self.remove_plug(cx) || forced {
            self.run(cx);
        }
    }

    /// A task is about to wait for I/O, or submission of a batch ended: U,
    /// then the driver if the queue is plugged (`generic_unplug_device`; a
    /// non-rotational queue is no exception here). From 2.6.39 tasks have plugs
    /// of their own and this does nothing.
    pub fn unplug(&mut self, cx: &mut Cx<'_>) {
        if self.core.feat.task_plug {
            return;
        }
        let count = self.requests_allocated();
        self.core.queue_event(cx, Action::Unplug, count);
        cx.truth_note(Kind::Unplug, count, "");
        if self.plugged {
            self.unplug_and_run(cx);
        }
    }

    /// The plug timer fired (`blk_unplug_timeout`): UT; kblockd does the rest.
    pub fn unplug_timeout(&mut self, cx: &mut Cx<'_>) {
        cx.truth_note(Kind::TimerFire, 0, cx.timers.name(self.unplug_timer));
        let count = self.requests_allocated();
        self.core.queue_event(cx, Action::UnplugTimer, count);
        cx.truth_note(Kind::UnplugTimer, count, "");
        cx.ask(Effect::UnplugWork);
    }

    /// kblockd's part of a timer unplug (`blk_unplug_work`): U, then the driver.
    pub fn unplug_work(&mut self, cx: &mut Cx<'_>) {
        self.unplug(cx);
    }

    /// kblockd calls the driver, the way the scheduler does it.
    pub fn run_work(&mut self, cx: &mut Cx<'_>) {
        match self.elv.kick() {
            Kick::PlugStays => {
                if self.core.nr_sorted > 0 {
                    self.run(cx);
                }
            }
            Kick::Unplug => self.start_queueing(cx),
            Kick::UnplugIfWaiting => {
                self.remove_plug(cx);
                if !self.core.nothing_waits() {
                    self.run(cx);
                }
            }
        }
    }

    /// A scheduler's kick: removes a plug, calls the driver in any case
    /// (`blk_start_queueing`, later `__blk_run_queue`).
    pub(crate) fn start_queueing(&mut self, cx: &mut Cx<'_>) {
        self.remove_plug(cx);
        self.run(cx);
    }

    /// At the end of an insertion: enough requests wait (`unplug_thresh`, in
    /// `elv_insert`).
    pub(crate) fn unplug_at_threshold(&mut self, cx: &mut Cx<'_>) {
        if !self.plugged {
            return;
        }
        let waiting = self
            .requests_allocated()
            .saturating_sub(u64::from(self.core.in_flight));
        if waiting >= u64::from(self.core.limits.unplug_thresh) {
            self.unplug_and_run(cx);
        }
    }

    fn requests_allocated(&self) -> u64 {
        u64::from(self.pools.count[0]) + u64::from(self.pools.count[1])
    }
}
