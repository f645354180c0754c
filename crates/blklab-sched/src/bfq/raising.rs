// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weight raising for interactive and soft real-time processes
//! (`low_latency`).

use super::Bfq;
use super::clock::{Jiffy, LONG_AGO, is_over, jiffies};
use super::entity::Ent;
use super::settings::{MAX_SERVICE_RAISED, MAX_SOFT_RT_RATE, RAISED, RAISED_SOFT_RT};
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;

/// What is known of a queue that becomes busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// It was idle for long and is not part of a burst.
    pub(super) interactive: bool,
    pub(super) in_burst: bool,
    /// It came back no sooner than its bandwidth allows.
    pub(super) soft_rt: bool,
}

/// Length of interactive raising: the time in which a device of reference
/// would load a large application, scaled by the rates, within bounds.
pub(super) fn raising_jiffies(rate_times_span: u64, rate: u64, bounds: (Jiffy, Jiffy)) -> Jiffy {
    let span = Jiffy::try_from(rate_times_span / rate).unwrap_or(Jiffy::MAX);
    span.clamp(bounds.0, bounds.1)
}

/// When a new burst of requests may be soft real-time: not before the sectors
/// served would have been reached at the highest rate that is, nor too soon.
pub(super) fn soft_rt_start(
    before: Jiffy,
    (busy_since, service): (Jiffy, i64),
    hz: u32,
    soonest: Jiffy,
) -> Jiffy {
    let at_rate = busy_since + i64::from(hz) * service / MAX_SOFT_RT_RATE;
    before.max(at_rate).max(soonest)
}

impl Bfq {
    /// `bfq_wr_duration`.
    pub(super) fn interactive_jiffies(&self) -> Jiffy {
        let (rate, ms) = if self.rotational {
            (super::peak::ROTATIONAL_RATE, 7000)
        } else {
            (super::peak::FLASH_RATE, 2500)
        };
        let product = rate * self.set.ms(ms) as u64;
        let bounds = (self.set.ms(3000), self.set.ms(25000));
        raising_jiffies(product, self.peak.rate, bounds)
    }

    /// `bfq_bfqq_softrt_next_start`.
    pub(super) fn soft_rt_next_start(&self, cx: &Cx<'_>, id: QueueId) -> Jiffy {
        let x = &self.queues[id];
        let soonest = jiffies(cx) + self.set.ns_in_jiffies(self.set.slice_idle_ns) + 4;
        let since = (x.busy_since, x.service_busy);
        soft_rt_start(x.soft_rt_next, since, self.set.hz.0, soonest)
    }

    pub(super) fn is_soft_rt_raised(&self, id: QueueId) -> bool {
        self.queues[id].raised_for == self.set.soft_rt_jiffies
    }

    /// Whether raising has lasted its time.
    fn is_raised_enough(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let x = &self.queues[id];
        is_over(cx, x.raised_at + x.raised_for)
    }

    /// Whether the interactive raising that soft real-time raising replaced
    /// would be over, too.
    pub(super) fn is_interactive_over(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        is_over(
            cx,
            self.queues[id].interactive_at + self.interactive_jiffies(),
        )
    }

    /// A queue that becomes busy is raised, goes on being raised or stops.
    pub(super) fn update_raising(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        deserves: bool,
        arrival: Arrival,
    ) {
        let ent = Ent::of_queue(id);
        let before = self.ents[ent].wr;
        let (interactive_for, min_budget) = (self.interactive_jiffies(), self.min_budget());
        let soft_rt_for = self.set.soft_rt_jiffies;
        let (x, e) = (&mut self.queues[id], &mut self.ents[ent]);
        if before == 1 && deserves {
            if arrival.interactive {
                x.service_raised = 0;
                e.wr = RAISED;
                x.raised_for = interactive_for;
            } else {
                // What was interactive before must not come back after it.
                x.interactive_at = LONG_AGO;
                e.wr = RAISED_SOFT_RT;
                x.raised_for = soft_rt_for;
            }
            e.budget = e.budget.min(2 * min_budget);
        } else if before > 1 {
            if arrival.interactive {
                e.wr = RAISED;
                x.raised_for = interactive_for;
            } else if arrival.in_burst {
                e.wr = 1;
            } else if arrival.soft_rt {
                if x.raised_for != soft_rt_for {
                    x.interactive_at = x.raised_at;
                    x.raised_for = soft_rt_for;
                    e.wr = RAISED_SOFT_RT;
                }
                x.raised_at = jiffies(cx);
            }
        }
        if e.wr != before {
            e.prio_changed = true;
        }
    }

    /// An async queue that was silent for long is raised while it is busy.
    pub(super) fn raise_async(&mut self, id: QueueId) {
        let raised_for = self.interactive_jiffies();
        let e = &mut self.ents[Ent::of_queue(id)];
        e.wr = RAISED;
        e.prio_changed = true;
        self.queues[id].raised_for = raised_for;
        self.wr_busy += 1;
    }

    /// Interactive raising that soft real-time raising had replaced goes on.
    pub(super) fn switch_back_to_interactive(&mut self, id: QueueId) {
        let raised_for = self.interactive_jiffies();
        self.ents[Ent::of_queue(id)].wr = RAISED;
        let x = &mut self.queues[id];
        x.raised_for = raised_for;
        x.raised_at = x.interactive_at;
    }

    pub(super) fn end_raising(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let x = &mut self.queues[id];
        if self.feat.end_of_raising_allows_soft_rt && x.raised_for != self.set.soft_rt_jiffies {
            x.soft_rt_next = jiffies(cx);
        }
        if x.busy {
            self.wr_busy -= 1;
        }
        x.raised_for = 0;
        x.raised_at = jiffies(cx);
        let e = &mut self.ents[Ent::of_queue(id)];
        e.wr = 1;
        e.prio_changed = true;
    }

    /// After a dispatch from the queue in service: raising ends by time or by
    /// service, and its weight is put in force.
    pub(super) fn check_raising(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let ent = Ent::of_queue(id);
        if self.ents[ent].wr > 1 {
            self.report_raising(q, cx, id);
            let soft_rt = self.is_soft_rt_raised(id);
            if self.queues[id].in_large_burst {
                self.end_raising(cx, id);
            } else if self.is_raised_enough(cx, id) {
                if !soft_rt || self.is_interactive_over(cx, id) {
                    self.end_raising(cx, id);
                } else {
                    self.switch_back_to_interactive(id);
                    self.ents[ent].prio_changed = true;
                }
            }
            if self.ents[ent].wr > 1
                && !self.is_soft_rt_raised(id)
                && self.queues[id].service_raised > MAX_SERVICE_RAISED
            {
                self.end_raising(cx, id);
            }
        }
        let e = &self.ents[ent];
        if (e.weight > e.orig_weight) != (e.wr > 1) {
            self.apply_prio(q, cx, ent, false);
        }
    }

    fn report_raising(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let (x, e) = (&self.queues[id], &self.ents[Ent::of_queue(id)]);
        let elapsed = self.set.in_ms(jiffies(cx).saturating_sub(x.raised_at));
        let whole = self.set.in_ms(x.raised_for);
        let (wr, weight, orig) = (e.wr, e.weight, e.orig_weight);
        self.say(
            q,
            cx,
            id,
            format_args!(
                "raising period dur {elapsed}/{whole} msec, old coeff {wr}, w {weight}({orig})"
            ),
        );
        if e.prio_changed {
            self.say(q, cx, id, format_args!("WARN: pending prio change"));
        }
    }

    /// A process turned out to seek all the time: soft real-time raising ends.
    pub(super) fn check_seeky_soft_rt(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.wr(id) == 1 || !self.is_soft_rt_raised(id) || !self.queues[id].is_totally_seeky() {
            return;
        }
        if !self.feat.seeky_soft_rt_turns_interactive || self.is_interactive_over(cx, id) {
            self.end_raising(cx, id);
        } else {
            self.switch_back_to_interactive(id);
            self.ents[Ent::of_queue(id)].prio_changed = true;
        }
    }

    /// What raising a queue had when its process left it goes on, unless it is
    /// over by now.
    pub(super) fn resume_raising(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.wr(id) == 1 {
            return;
        }
        let burst = self.queues[id].in_large_burst;
        if !burst && !self.is_raised_enough(cx, id) {
            return;
        }
        if self.is_soft_rt_raised(id) && !burst && !self.is_interactive_over(cx, id) {
            self.switch_back_to_interactive(id);
        } else {
            self.ents[Ent::of_queue(id)].wr = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::peak::{FLASH_RATE, ROTATIONAL_RATE};
    use super::*;

    #[test]
    fn raising_lasts_as_long_as_the_device_is_slow() {
        let duration = |rate, ms, peak| raising_jiffies(rate * ms, peak, (3000, 25000));
        let disk = [9333, 3000, 50000].map(|peak| duration(ROTATIONAL_RATE, 7000, peak));
        assert_eq!(disk, [10500, 25000, 3000]);
        let flash = [22000, 66000].map(|peak| duration(FLASH_RATE, 2500, peak));
        assert_eq!(flash, [3750, 3000]);
    }

    #[test]
    fn soft_real_time_is_slow() {
        let soonest = 10020 + 8 + 4;
        assert_eq!(soft_rt_start(0, (10000, 700), 1000, soonest), 10100);
        assert_eq!(soft_rt_start(0, (10000, 70), 1000, soonest), soonest);
        assert_eq!(soft_rt_start(10200, (10000, 700), 1000, soonest), 10200);
    }
}
