// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holding back tasks that dirty pages by sleeping alone:
//! `balance_dirty_pages` (mm/page-writeback.c, 3.7; kernels 3.2 and later).
//!
//! A task looks at the limits after a number of pages that it was given the
//! time before. Between the free-run limit and the hard limit it then sleeps
//! so long that, with what it dirtied since, it keeps the rate that
//! [`Bandwidth`](crate::bandwidth::Bandwidth) and
//! [`Position`] give it. What a pause is too short
//! for is saved up. A task in a control group that write-back is charged to counts
//! among the writers of its group's part of the write-back. Left out: limits of the
//! memory that a group has for itself, strict limits, pages that exited tasks had not
//! been charged for.

use crate::bandwidth::{Counts, task_ratelimit};
use crate::cache::PageCache;
use crate::ops::Host;
use crate::position::{self, Position};
use crate::state::State;
use crate::state::sleeps::Sleep;
use crate::state::task_dirty::TaskDirty;
use crate::state::wb::Wb;
use blklab_types::{Hz, Jiffies, TaskId};

/// Pages between checks while the limit is exceeded.
const EXCEEDED_PAGES: u64 = 8;

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Go on.
    Free,
    /// Sleep.
    Pause {
        ticks: u64,
        /// What counts as the time of the check.
        from: Jiffies,
        /// Pages until the next check.
        pages: u64,
        /// The limit is reached: look again after the pause.
        again: bool,
    },
}

/// A tick, and how long one is.
#[derive(Clone, Copy, Debug)]
struct At {
    now: Jiffies,
    hz: Hz,
}

impl State {
    /// The throttle's record of a task.
    pub(crate) fn task_dirty(&mut self, task: TaskId) -> &mut TaskDirty {
        if self.task_dirties.len() <= task.idx() {
            self.task_dirties
                .resize(task.idx() + 1, TaskDirty::default());
        }
        &mut self.task_dirties[task.idx()]
    }

    /// Pages after which a task of a group looks at the limits
    /// (`nr_dirtied_pause`).
    fn poll_pages(&mut self, (task, group): (TaskId, u16)) -> u64 {
        let pause = self.task_dirty(task).nr_dirtied_pause;
        if self.wbs.group(group).dirty_exceeded {
            pause.min(EXCEEDED_PAGES)
        } else {
            pause
        }
    }

    /// Pages that a task may dirty until it looks at the limits.
    pub(crate) fn pages_until_poll(&mut self, of: (TaskId, u16), cpu: usize) -> u64 {
        let own = self
            .poll_pages(of)
            .saturating_sub(self.task_dirty(of.0).nr_dirtied);
        own.min(self.ratelimit.saturating_sub(self.dirtied[cpu]))
            .max(1)
    }

    /// Whether a task that dirtied pages has to look at the limits now
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) fn poll_due(&mut self, of: (TaskId, u16), cpu: usize) -> bool {
        let own = self.poll_pages(of);
        let nr_dirtied = self.task_dirty(of.0).nr_dirtied;
        let due = nr_dirtied >= own || self.dirtied[cpu] >= self.ratelimit;
        if due {
            self.dirtied[cpu] = 0;
        }
        due
    }

    /// Where the dirty pages stand, for the writers of a group.
    pub(crate) fn position(&mut self, group: u16, now: Jiffies) -> Position {
        Position {
            background: self.limits.background,
            dirty: self.limits.dirty,
            limit: self.limits.dirty.max(self.dirty_limit_follower),
            pages: self.nr_dirty + self.nr_writeback,
            device_limit: self.share_of(group, self.limits.dirty, now),
            device_pages: self.nr_unwritten_of(group),
        }
    }

    /// Updates the estimates for a throttled task of a group
    /// (`bdi_update_bandwidth`, later `wb_update_bandwidth`).
    fn update_rates(&mut self, group: u16, position: &Position, started: Jiffies, at: At) {
        if self.wbs.group(group).update(started, Some(position), at) {
            let (dirty, pages) = (self.limits.dirty, position.pages);
            self.dirty_limit_follower =
                position::follow_limit(self.dirty_limit_follower, dirty, pages);
        }
    }

    /// Decides about a task of a group that came with so many dirtied pages: the
    /// pause that `balance_dirty_pages` computes.
    fn judge(
        &mut self,
        (task, group): (TaskId, u16),
        dirtied: u64,
        position: &Position,
        At { now, hz }: At,
    ) -> Verdict {
        let bw = self.wbs.group(group).bandwidth;
        let rate = task_ratelimit(bw.dirty_ratelimit, position.ratio(bw.avg_write));
        let max_pause = position::max_pause(position.device_pages, bw.avg_write, hz);
        let target = position::target_pause(max_pause, rate, bw.dirty_ratelimit, bw.avg_write, hz);
        let mut verdict = Verdict::Pause {
            ticks: max_pause,
            from: now,
            pages: target.pages,
            again: rate == 0,
        };
        if let Some(period) = (u64::from(hz.0) * dirtied).checked_div(rate) {
            let record = self.task_dirty(task);
            let since = record.paused_when.map_or(0, |w| now.0 as i64 - w.0 as i64);
            let pause = i64::try_from(period).unwrap_or(i64::MAX / 2) - since;
            if pause < target.min_pause as i64 {
                record.save_up(dirtied, (pause, period), now, hz);
                return Verdict::Free;
            }
            let pause = pause as u64;
            if let Verdict::Pause { ticks, from, .. } = &mut verdict {
                *ticks = pause.min(max_pause);
                *from = now.plus(pause.saturating_sub(max_pause).min(max_pause));
            }
        }
        verdict
    }
}

impl Wb {
    /// Updates the estimates ([`Bandwidth::update`](crate::bandwidth::Bandwidth)).
    fn update(&mut self, started: Jiffies, position: Option<&Position>, at: At) -> bool {
        let counts = Counts {
            dirtied: self.nr_dirtied,
            written: self.nr_written,
            now: at.now,
            hz: at.hz,
        };
        self.bandwidth.update(counts, started, position)
    }
}

impl TaskDirty {
    /// A pause too short to be worth it is left for later.
    fn save_up(&mut self, dirtied: u64, (pause, period): (i64, u64), now: Jiffies, hz: Hz) {
        if pause < -i64::from(hz.0) {
            self.paused_when = Some(now);
            self.nr_dirtied = 0;
        } else if period > 0 {
            self.paused_when = Some(self.paused_when.unwrap_or_default().plus(period));
            self.nr_dirtied = 0;
        } else if self.nr_dirtied_pause <= dirtied {
            self.nr_dirtied_pause += dirtied;
        }
    }

    /// Nobody is held back: the pages until the next check follow from what is free
    /// (`dirty_poll_interval`).
    fn run_free(&mut self, pages: u64, now: Jiffies) {
        *self = TaskDirty {
            nr_dirtied: 0,
            nr_dirtied_pause: pages,
            paused_when: Some(now),
        };
    }
}

impl<H: Host> PageCache<H> {
    /// The flusher's part of the estimates (`wb_update_bandwidth`).
    pub(crate) fn update_bandwidth(&self, started: Jiffies) {
        let at = self.at();
        self.with(|s| {
            for group in s.wbs.groups() {
                s.wbs.group(group).update(started, None, at);
            }
        });
    }

    fn at(&self) -> At {
        At {
            now: self.host.jiffies(),
            hz: self.host.hz(),
        }
    }

    /// The running task, and the group whose part of the write-back its pages count
    /// for.
    pub(crate) fn dirtier(&self) -> (TaskId, u16) {
        let group = if self.config.cgroup_writeback {
            self.host.group()
        } else {
            0
        };
        (self.host.current(), group)
    }

    /// Checks the limits for the running task and lets it pause
    /// (`balance_dirty_pages`).
    pub(crate) async fn balance_by_pauses(&self) {
        let (task, group) = self.dirtier();
        let (begun, started) = (self.host.now(), self.host.jiffies());
        let (mut held, mut pauses) = (false, 0);
        let dirtied = self.with(|s| s.task_dirty(task).nr_dirtied);
        loop {
            let at = self.at();
            let position = self.with(|s| s.position(group, at.now));
            if position.pages <= position.freerun() {
                let pages = position::poll_interval(position.pages, position.dirty);
                self.with(|s| {
                    s.task_dirty(task).run_free(pages, at.now);
                    s.wbs.group(group).dirty_exceeded = false;
                });
                break;
            }
            held = true;
            if self.with(|s| !s.flusher.in_progress()) {
                self.ask_flusher(0);
            }
            let verdict = self.with(|s| {
                s.wbs.group(group).dirty_exceeded = position.exceeded();
                s.update_rates(group, &position, started, at);
                s.judge((task, group), dirtied, &position, at)
            });
            let Verdict::Pause {
                ticks,
                from,
                pages,
                again,
            } = verdict
            else {
                break;
            };
            pauses += 1;
            self.host.note_dirty_sleep();
            self.sleep_ticks(ticks).await;
            let left = self.with(|s| {
                *s.task_dirty(task) = TaskDirty {
                    nr_dirtied: 0,
                    nr_dirtied_pause: pages,
                    paused_when: Some(from.plus(ticks)),
                };
                s.nr_unwritten_of(group)
            });
            if !again || left == 0 {
                break;
            }
        }
        let took = self.host.now().since(begun);
        let wanted = self.with(|s| {
            let t = s.stats.throttled_mut(task);
            t.checks += 1;
            t.exceeded += u64::from(held);
            t.waits += pauses;
            t.time += took;
            !s.flusher.in_progress() && s.nr_dirty > s.limits.background
        });
        if wanted {
            self.ask_flusher(0);
        }
    }

    /// Sleeps for so many ticks (`io_schedule_timeout`).
    pub(crate) async fn sleep_ticks(&self, ticks: u64) {
        let ticks = ticks + u64::from(self.config.features.sleeps_past_tick);
        let until = self.host.hz().start_of(self.host.jiffies().plus(ticks));
        let pause = self.host.sleep_for_io(until.since(self.host.now()));
        self.sleeping(Sleep::Pause, pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::features::rules_of;
    use crate::position::tests::at;

    /// A task of the root group.
    const TASK: (TaskId, u16) = (TaskId(3), 0);

    fn tick(now: u64) -> At {
        At {
            now: Jiffies(now),
            hz: Hz(1000),
        }
    }

    /// A machine whose device has a share of everything.
    fn state() -> State {
        let mut s = State::new(&Config::new(rules_of("3.6"), 1 << 30));
        s.limits.background = 20_000;
        s.limits.dirty = 40_000;
        s.dirty_limit_follower = 40_000;
        s
    }

    #[test]
    fn a_pause_makes_up_for_what_was_dirtied() {
        let mut s = state();
        *s.task_dirty(TASK.0) = TaskDirty {
            nr_dirtied: 2_560,
            nr_dirtied_pause: 250,
            paused_when: Some(Jiffies(1_000)),
        };
        // 25600 pages/s * 1045 / 1024 = 26125; 2560 pages are 97 ticks.
        let verdict = s.judge(TASK, 2_560, &at(33_750), tick(1_010));
        let Verdict::Pause {
            ticks, from, again, ..
        } = verdict
        else {
            panic!("{verdict:?}");
        };
        assert_eq!((ticks, from, again), (97 - 10, Jiffies(1_010), false));
    }

    #[test]
    fn short_pauses_are_saved_up_and_long_idleness_forgotten() {
        let mut s = state();
        let record = TaskDirty {
            nr_dirtied: 100,
            nr_dirtied_pause: 100,
            paused_when: Some(Jiffies(2_000)),
        };
        *s.task_dirty(TASK.0) = record;
        assert_eq!(s.judge(TASK, 100, &at(33_750), tick(2_000)), Verdict::Free);
        // 100 pages at 26125 pages/s: 3 ticks on account.
        assert_eq!(s.task_dirty(TASK.0).paused_when, Some(Jiffies(2_003)));
        *s.task_dirty(TASK.0) = record;
        assert_eq!(s.judge(TASK, 100, &at(33_750), tick(3_100)), Verdict::Free);
        assert_eq!(s.task_dirty(TASK.0).paused_when, Some(Jiffies(3_100)));
    }

    #[test]
    fn at_the_limit_a_task_sleeps_and_looks_again() {
        let mut s = state();
        let verdict = s.judge(TASK, 100, &at(40_000), tick(500));
        let Verdict::Pause { ticks, again, .. } = verdict else {
            panic!("{verdict:?}");
        };
        // 25600 / 128 = 200; 40000 / 201 + 1 is 200 ms.
        assert_eq!((ticks, again), (200, true));
    }

    #[test]
    fn checks_come_when_the_task_or_its_processor_dirtied_enough() {
        let mut s = state();
        s.ratelimit = 1_250;
        assert_eq!(s.pages_until_poll(TASK, 0), 32);
        s.task_dirty(TASK.0).nr_dirtied = 31;
        assert!(!s.poll_due(TASK, 0));
        s.task_dirty(TASK.0).nr_dirtied = 32;
        assert!(s.poll_due(TASK, 0));
        s.task_dirty(TASK.0).run_free(64, Jiffies(0));
        s.dirtied[0] = 1_249;
        assert_eq!(s.pages_until_poll(TASK, 0), 1);
        s.dirtied[0] = 1_250;
        assert!(s.poll_due(TASK, 0) && s.dirtied[0] == 0);
        s.wbs.group(0).dirty_exceeded = true;
        assert_eq!(s.pages_until_poll(TASK, 0), 8);
    }
}
