// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver that admits so many bytes per tick: the bandwidth limit `mbps` of
//! `null_blk`.
//!
//! Each attempt takes the bytes of its request, also one that fails. The first
//! that finds too little stops the driver's hardware queues until the next tick,
//! at which the budget is what it was at first (what was left over is lost) and
//! the queues start again. A queue that is stopped is not run, and what is
//! submitted meanwhile waits where it can be merged into; but a driver that
//! takes the list of a plug as a whole (`queue_rqs`) is asked all the same, and
//! each attempt takes bytes that nobody gets.
//!
//! A tick that finds the budget untouched is the last one, until a request comes:
//! the timer that it starts is overdue, so that the budget is renewed at once.
//! Ticks come at a fixed phase of 20 ms of virtual time; in the kernel they count
//! from the creation of the device. A request larger than a whole budget would wait
//! for ever in the kernel; here it takes the budget of a tick.
//!
//! Source: `null_handle_throttled`, `nullb_bwtimer_fn` of
//! drivers/block/null_blk/main.c of 6.1 and 6.12.

use crate::mq::Queue;
use crate::{Cx, RqId};
use blklab_engine::{TimerId, Timers};
use blklab_types::{SECTOR_BYTES, Span, Time};

/// Time between two ticks (`TIMER_INTERVAL`).
const TICK_NS: u64 = 20_000_000;

/// Bytes that a driver still admits.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    per_tick: i64,
    phase_ns: u64,
    /// Below zero once an attempt failed.
    left: i64,
    /// The timer is set (`hrtimer_active`).
    ticks: bool,
    timer: TimerId,
}

impl ByteBudget {
    /// A full budget; registers its timer.
    pub(crate) fn new(bytes_per_tick: u64, phase: Span, timers: &mut Timers) -> ByteBudget {
        let per_tick = i64::try_from(bytes_per_tick).unwrap_or(i64::MAX);
        ByteBudget {
            per_tick,
            phase_ns: phase.ns() % TICK_NS,
            left: per_tick,
            ticks: false,
            timer: timers.register("byte_budget"),
        }
    }

    /// An attempt to hand over so many bytes, which it takes; false if they are
    /// too many.
    fn admit(&mut self, timers: &mut Timers, now: Time, bytes: u64) -> bool {
        if !self.ticks {
            self.tick(timers, now);
        }
        let is_full = self.left == self.per_tick;
        self.left = self.left.saturating_sub(bytes as i64);
        self.left >= 0 || is_full
    }

    /// The timer fires: true if the budget is renewed, and it will fire again.
    fn tick(&mut self, timers: &mut Timers, now: Time) -> bool {
        self.ticks = self.left != self.per_tick;
        if self.ticks {
            self.left = self.per_tick;
            let ticks = (now.ns() + TICK_NS - self.phase_ns) / TICK_NS;
            timers.arm_at(self.timer, Time(ticks * TICK_NS + self.phase_ns));
        }
        self.ticks
    }
}

impl Queue {
    /// Whether the driver's bandwidth limit admits a request; if not, the driver
    /// stops its queues.
    pub(crate) fn within_byte_budget(&mut self, cx: &mut Cx<'_>, rq: RqId) -> bool {
        let Some(budget) = &mut self.byte_budget else {
            return true;
        };
        let bytes = u64::from(self.core.rqs[rq].nr_sectors) * SECTOR_BYTES;
        if budget.admit(cx.timers, cx.now, bytes) {
            return true;
        }
        for hctx in &mut self.hctxs {
            hctx.stopped = true;
        }
        false
    }

    /// A timer fired. If it is that of the budget, the queues that the driver
    /// stopped start again, in kblockd (`blk_mq_start_stopped_hw_queues`).
    pub(crate) fn is_byte_budget_tick(&mut self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let Some(budget) = &mut self.byte_budget else {
            return false;
        };
        if budget.timer != timer {
            return false;
        }
        if budget.tick(cx.timers, cx.now) {
            for (h, hctx) in self.hctxs.iter_mut().enumerate() {
                if std::mem::take(&mut hctx.stopped) {
                    self.core.run_hctx(h as u16);
                }
            }
            self.push_runs(cx);
        }
        true
    }
}
