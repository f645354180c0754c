// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for the next request of a process: whether, for how long, and what
//! ends it.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32. After a sync request the
//! scheduler holds everything back: first for its completion, then for the
//! next request of the same process, `antic_expire` from the completion. A
//! request that lies close enough is as welcome as one of the process.

use super::{Anticipatory, BASE, SYNC};
use blklab_block::sq::Core;
use blklab_block::{Cx, Effect, RqId};
use blklab_trace::truth::{Kind, Why};
use blklab_types::Jiffies;

/// State of the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Status {
    /// There is none.
    #[default]
    Off,
    /// For a request at the device.
    ForCompletion,
    /// For the next request, until the timer fires.
    ForNext,
    /// It is over: one decision is taken without waiting.
    Over,
}

impl Status {
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, Status::ForCompletion | Status::ForNext)
    }
}

/// Sectors ahead that are close at first; half of it behind.
const CLOSE_SECTORS: u64 = 8192;
/// Within this time the close distance doubles with every jiffy; later,
/// everything is close.
const CLOSE_MS: u64 = 20;

impl Anticipatory {
    /// Whether to wait rather than send `next` (`as_can_anticipate`).
    pub(super) fn should_wait(&mut self, q: &Core, next: Option<RqId>, now: u64) -> bool {
        self.served.is_some() && self.status != Status::Over && !self.ends_wait(q, next, now)
    }

    /// Starts to wait, unless it does already (`as_antic_waitreq`).
    pub(super) fn start_waiting(&mut self, cx: &mut Cx<'_>, now: u64) {
        if self.status == Status::Off {
            if self.served_done {
                self.wait_for_next(cx, now);
            } else {
                self.status = Status::ForCompletion;
            }
        }
        self.show_wait(cx);
    }

    /// Waits for the next request: the clock runs from the completion
    /// (`as_antic_waitnext`).
    pub(super) fn wait_for_next(&mut self, cx: &mut Cx<'_>, now: u64) {
        let due = self.wait_start.saturating_add(self.set.antic_expire);
        cx.timers.arm(self.timer, Jiffies(due.saturating_sub(BASE)));
        let delay = due.saturating_sub(now);
        cx.truth_note(Kind::TimerArm, delay, cx.timers.name(self.timer));
        self.status = Status::ForNext;
    }

    /// Ends the wait; kblockd looks for what to do (`as_antic_stop`).
    pub(super) fn stop_waiting(&mut self, cx: &mut Cx<'_>) {
        if !self.status.is_waiting() {
            return;
        }
        if self.status == Status::ForNext && cx.timers.cancel(self.timer) {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(self.timer));
        }
        self.status = Status::Over;
        cx.ask(Effect::RunWork);
    }

    /// The timer fired: nothing came in time (`as_antic_timeout`).
    pub(super) fn timed_out(&mut self, cx: &mut Cx<'_>) {
        cx.truth_note(Kind::TimerFire, 0, cx.timers.name(self.timer));
        let (true, Some(task)) = (self.status.is_waiting(), self.served) else {
            return;
        };
        self.status = Status::Over;
        cx.ask(Effect::RunWork);
        self.processes.with(task, |p| {
            if p.think.samples == 0 {
                self.estimates.exited_early();
            }
            if p.exited {
                self.estimates.nobody_cooperated();
            }
        });
    }

    /// Whether a wait for the served process makes no sense (any more), given
    /// a candidate to send instead (`as_can_break_anticipation`).
    pub(super) fn ends_wait(&mut self, q: &Core, candidate: Option<RqId>, now: u64) -> bool {
        let Some(task) = self.served else {
            return true;
        };
        if candidate.is_some_and(|rq| self.info[rq].owner == task) {
            return true;
        }
        if self.served_done && now.abs_diff(self.wait_start) >= self.set.antic_expire {
            return true;
        }
        let p = self.processes.with(task, |p| *p);
        if p.nr_queued > 0 || p.nr_dispatched > 0 {
            return true;
        }
        if let Some(rq) = candidate
            && self.info[rq].kind == SYNC
            && self.is_close(q, rq, now)
        {
            self.accept_close(q, rq, now);
            return true;
        }
        if p.exited {
            if p.think.samples == 0 {
                self.estimates.exited_early();
            }
            if self.estimates.exits_alone() {
                return true;
            }
        }
        if p.think.samples == 0 {
            self.estimates.think_mean > self.set.antic_expire
                || self.estimates.new_process_exits_alone()
        } else {
            p.think.mean > self.set.antic_expire
        }
    }

    /// A close request of another process counts as one of the served process.
    fn accept_close(&mut self, q: &Core, rq: RqId, now: u64) {
        let Some(task) = self.served else { return };
        let range = (q.rqs[rq].sector, q.rqs[rq].end());
        self.processes.with(task, |p| {
            if p.exited {
                if p.think.samples == 0 {
                    self.estimates.exited_early();
                }
                self.estimates.cooperated();
            }
            p.arrived(&mut self.estimates, range, now, self.set.max_think);
        });
    }

    /// Whether a request is as near as what the served process may be
    /// expected to ask for. The longer the wait, the less near it has to be
    /// (`as_close_req`).
    fn is_close(&mut self, q: &Core, rq: RqId, now: u64) -> bool {
        let last = self.waiting[self.batch.kind].last_sector;
        let sector = q.rqs[rq].sector;
        let (waited, limit) = self.waited(now);
        let ahead = if waited == 0 {
            CLOSE_SECTORS
        } else if waited <= limit && waited <= self.set.antic_expire {
            let shift = u32::try_from(waited).unwrap_or(u32::MAX);
            CLOSE_SECTORS.checked_shl(shift).unwrap_or(u64::MAX)
        } else {
            return true;
        };
        if last <= sector.saturating_add(ahead / 2) && sector <= last.saturating_add(ahead) {
            return true;
        }
        let expected = self.served.map_or(0, |task| {
            self.processes.with(task, |p| {
                if p.seek.samples == 0 {
                    self.estimates.seek_mean
                } else {
                    p.seek.mean
                }
            })
        });
        expected > last.abs_diff(sector)
    }

    /// How long the wait for the next request has lasted, and the time after
    /// which everything is close; in jiffies, or in ms in old releases.
    fn waited(&self, now: u64) -> (u64, u64) {
        let (hz, ms) = (self.set.hz, self.feat.closeness_in_ms);
        let limit = if ms { CLOSE_MS } else { CLOSE_MS * hz / 1000 };
        if self.status == Status::Off || !self.served_done {
            return (0, limit);
        }
        let waited = now.saturating_sub(self.wait_start);
        let waited = if ms {
            waited.saturating_mul(1000) / hz
        } else {
            waited
        };
        (waited, limit)
    }

    /// Says what everything waits for.
    pub(super) fn show_wait(&self, cx: &mut Cx<'_>) {
        let why = match self.status {
            Status::ForCompletion => Why::InFlight,
            Status::ForNext => Why::Idling,
            Status::Off | Status::Over => return,
        };
        let pid = self.served.map_or(0, |task| cx.tasks.get(task).pid);
        cx.waits(why, pid);
    }
}
