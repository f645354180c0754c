// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io.latency`: groups with a target are protected from siblings with looser ones,
//! which may have fewer bios on their way while the target is missed.
//!
//! docs/cgroups/iolatency.md has the rules in words. Source: block/blk-iolatency.c of
//! 5.10, 6.1, 6.12 and 7.3.
//!
//! Left out: targets that change during a run; counters by processor.

mod hold_up;
mod scale;
#[cfg(test)]
mod tests;
mod window;

use self::hold_up::HeldUp;
use self::scale::Siblings;
use self::window::Latencies;
use super::{Admission, Policy, is_issued_as_root};
use crate::{Cx, Pending, SleepsFor, TaskTable};
use blklab_engine::{TimerId, Timers};
use blklab_types::{Span, TaskId, Time};
use std::collections::VecDeque;

/// Bounds of a window (`BLKIOLATENCY_MIN_WIN_SIZE`, `BLKIOLATENCY_MAX_WIN_SIZE`), and
/// how many targets it is long.
const WINDOW_MIN: Span = Span(100_000_000);
const WINDOW_MAX: Span = Span(1_000_000_000);
const TARGETS_OF_WINDOW: u64 = 16;

/// A scale changes no sooner after it changed (`BLKIOLATENCY_MIN_ADJUST_TIME`).
const PAUSE: Span = Span(500_000_000);

/// Good bios that let a scale go up (`BLKIOLATENCY_MIN_GOOD_SAMPLES`).
const GOOD_MIN: u64 = 5;

/// Who scaled and changed nothing for so long scales no more.
const SCALER_RESTS: Span = Span(5_000_000_000);

/// No limit of depth.
const ANY_DEPTH: u32 = u32::MAX;

/// A control group on this device (`iolatency_grp`).
#[derive(Debug)]
struct Group {
    /// None: the root, which is never held back.
    parent: Option<u16>,
    /// 0: no target.
    target_ns: u64,
    window: Span,
    window_began: Time,
    /// Bios that ended in this window, and in those since the scale changed.
    now: Latencies,
    since_change: Latencies,
    /// Bios that count for its siblings.
    nr_samples: u64,
    /// A long mean (`lat_avg`).
    average_ns: u64,
    /// Most bios on their way.
    depth: u32,
    inflight: u32,
    sleepers: VecDeque<TaskId>,
    /// The scale of its siblings that it saw last.
    seen: i64,
    /// How often it was asked for less than one bio (`use_delay`).
    delays: u32,
    /// How long its tasks are held up for that.
    held_up: HeldUp,
    below: Siblings,
}

/// Targets of all groups on one device.
#[derive(Debug)]
pub(crate) struct IoLatency {
    /// By number.
    groups: Vec<Group>,
    rotational: bool,
    /// Requests of the queue, the measure of all steps.
    nr_requests: u32,
    timer: TimerId,
}

impl IoLatency {
    /// The targets of a run's groups; none if no group has one.
    pub(crate) fn new(
        tasks: &TaskTable,
        rotational: bool,
        nr_requests: u32,
        timers: &mut Timers,
    ) -> Option<IoLatency> {
        let numbers = 1..=u16::try_from(tasks.nr_groups()).expect("groups fit 16 bits");
        let groups = numbers.filter_map(|n| tasks.group(n));
        if groups.clone().all(|g| g.latency_us.is_none()) {
            return None;
        }
        let rows = groups.map(|g| (Some(g.parent), g.latency_us.unwrap_or(0)));
        let new = |(parent, us): (Option<u16>, u64)| {
            let target_ns = us.saturating_mul(1000);
            let window = Span(target_ns.saturating_mul(TARGETS_OF_WINDOW));
            Group {
                parent,
                target_ns,
                window: window.clamp(WINDOW_MIN, WINDOW_MAX),
                window_began: Time::ZERO,
                now: Latencies::none(rotational),
                since_change: Latencies::none(rotational),
                nr_samples: 0,
                average_ns: 0,
                depth: ANY_DEPTH,
                inflight: 0,
                sleepers: VecDeque::new(),
                seen: Siblings::DEFAULT,
                delays: 0,
                held_up: HeldUp::default(),
                below: Siblings::default(),
            }
        };
        Some(IoLatency {
            groups: std::iter::once((None, 0)).chain(rows).map(new).collect(),
            rotational,
            nr_requests: nr_requests.max(1),
            timer: timers.register("iolatency"),
        })
    }

    fn group(&mut self, n: u16) -> &mut Group {
        &mut self.groups[usize::from(n)]
    }

    /// The bio passes its group's limit and those above, from `at` on; it sleeps at the
    /// first that is reached (`blkcg_iolatency_throttle`).
    fn climb(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        mut at: u16,
        wakes: &mut Vec<TaskId>,
    ) -> Admission {
        let as_root = is_issued_as_root(&part.bio);
        while let Some(parent) = self.group(at).parent {
            self.follow_scale(at, parent, wakes);
            let group = self.group(at);
            if group.delays > 0 {
                cx.asks_on_return();
            }
            if !as_root && (!group.sleepers.is_empty() || group.inflight >= group.depth) {
                group.sleepers.push_back(part.bio.task);
                part.qos.held_by = at;
                return Admission::Sleeps;
            }
            group.inflight += 1;
            at = parent;
        }
        part.qos.is_counted = true;
        Admission::Goes
    }

    /// A bio that is counted leaves its group and those above; `latency`: since it
    /// was issued, if it was (`blkcg_iolatency_done_bio`).
    fn leave(&mut self, done: &Pending, now: Option<Time>, wakes: &mut Vec<TaskId>) {
        if !done.qos.is_counted {
            return;
        }
        let mut at = done.bio.group;
        while let Some(parent) = self.group(at).parent {
            let group = self.group(at);
            assert!(group.inflight > 0, "a group counts what is on its way");
            group.inflight -= 1;
            if let Some(now) = now.filter(|_| group.target_ns > 0) {
                group.record(done, now);
                if now > group.window_began && now.since(group.window_began) >= group.window {
                    group.window_began = now;
                    self.judge(at, parent, now);
                }
            }
            self.group(at).wake(1, wakes);
            at = parent;
        }
    }

    /// A window is over: the scale of the siblings may change
    /// (`iolatency_check_latencies`).
    fn judge(&mut self, at: u16, parent: u16, now: Time) {
        let none = Latencies::none(self.rotational);
        let nr_requests = self.nr_requests;
        let [group, above] = self
            .groups
            .get_disjoint_mut([usize::from(at), usize::from(parent)])
            .expect("a group is not its own parent");
        let window = std::mem::replace(&mut group.now, none);
        group.average(&window);
        let siblings = &mut above.below;
        let is_good = window.are_good(group.target_ns);
        if is_good && siblings.scale == Siblings::DEFAULT {
            return;
        }
        group.since_change.absorb(window);
        siblings.nr_samples -= group.nr_samples;
        group.nr_samples = group.since_change.total();
        siblings.nr_samples += group.nr_samples;
        if siblings.changed_within(PAUSE, now) {
            return;
        }
        if is_good && group.since_change.are_good(group.target_ns) {
            if group.since_change.total() < GOOD_MIN {
                return;
            }
            if siblings.scaler == Some(at) {
                siblings.changed = Some(now);
                siblings.move_scale(true, nr_requests);
            }
        } else if siblings.missed_ns == 0 || siblings.missed_ns >= group.target_ns {
            siblings.changed = Some(now);
            if siblings.scaler.is_none() || siblings.missed_ns > group.target_ns {
                siblings.missed_ns = group.target_ns;
                siblings.scaler = Some(at);
            }
            siblings.move_scale(false, nr_requests);
        }
        group.since_change = none;
    }

    /// A group looks at the scale of its siblings when it submits
    /// (`check_scale_change`).
    fn follow_scale(&mut self, at: u16, parent: u16, wakes: &mut Vec<TaskId>) {
        let nr_requests = self.nr_requests;
        let siblings = &self.groups[usize::from(parent)].below;
        let (scale, missed_ns, nr_samples) =
            (siblings.scale, siblings.missed_ns, siblings.nr_samples);
        let group = self.group(at);
        let before = std::mem::replace(&mut group.seen, scale);
        let goes_down = scale < before;
        if scale == before {
            return;
        }
        if goes_down && group.target_ns > 0 {
            let is_protected = missed_ns == 0 || group.target_ns <= missed_ns;
            if is_protected || group.nr_samples <= (nr_samples * 5 / 100).max(1) {
                return;
            }
        }
        if goes_down && group.depth == 1 {
            group.delays += 1;
        } else if scale == Siblings::DEFAULT {
            group.delays = 0;
            group.depth = ANY_DEPTH;
            group.wake(usize::MAX, wakes);
        } else {
            group.change_depth(!goes_down, nr_requests, wakes);
        }
    }

    /// Each second: scales that nobody minds go up (`blkiolatency_timer_fn`).
    fn tick(&mut self, now: Time) {
        let nr_requests = self.nr_requests;
        for siblings in self.groups.iter_mut().map(|g| &mut g.below) {
            if siblings.scale >= Siblings::DEFAULT || siblings.changed.is_some_and(|at| at >= now) {
                continue;
            }
            if siblings.scaler.is_none() {
                siblings.move_scale(true, nr_requests);
            } else if !siblings.changed_within(SCALER_RESTS, now) {
                siblings.scaler = None;
            }
        }
    }
}

impl Group {
    /// How long a bio took. What was issued for it as if by the root is not counted
    /// while it is held back, as that would better its mean: what such a bio was faster
    /// than the target is made up for by a delay (`iolatency_record_time`).
    fn record(&mut self, done: &Pending, now: Time) {
        if now <= done.qos.issued {
            return;
        }
        let took_ns = now.since(done.qos.issued).ns();
        if is_issued_as_root(&done.bio) && self.depth != ANY_DEPTH {
            let faster_ns = self.target_ns.saturating_sub(took_ns);
            if faster_ns > 0 {
                self.held_up.add(faster_ns, self.delays, now);
            }
            return;
        }
        self.now.add(took_ns, self.target_ns);
    }

    /// `iolat_update_total_lat_avg`: a mean that forgets in about a minute.
    fn average(&mut self, window: &Latencies) {
        const FACTORS: [u64; 5] = [2045, 2039, 2031, 2023, 2014];
        let Latencies::Averaged { mean, .. } = *window else {
            return;
        };
        let bucket = (self.window.ns() / (WINDOW_MAX.ns() / 4)) as usize;
        let keeps = FACTORS[bucket.min(FACTORS.len() - 1)];
        let rounds = if mean >= self.average_ns { 2047 } else { 0 };
        self.average_ns = (self.average_ns * keeps + mean * (2048 - keeps) + rounds) / 2048;
    }

    /// Up to so many sleepers go on, as far as the depth lets them.
    fn wake(&mut self, most: usize, wakes: &mut Vec<TaskId>) {
        for _ in 0..most.min(self.sleepers.len()) {
            if self.inflight >= self.depth {
                return;
            }
            self.inflight += 1;
            wakes.extend(self.sleepers.pop_front());
        }
    }

    /// A step of the depth (`scale_change`).
    fn change_depth(&mut self, up: bool, nr_requests: u32, wakes: &mut Vec<TaskId>) {
        let old = self.depth.min(nr_requests);
        if !up {
            self.depth = (old / 2).max(1);
        } else if old == 1 && self.delays > 0 {
            self.delays -= 1;
        } else if old < nr_requests {
            let step = scale::step(nr_requests, true);
            self.depth = old.saturating_add(step).min(nr_requests);
            self.wake(usize::MAX, wakes);
        }
    }
}

impl Policy for IoLatency {
    fn throttle(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        wakes: &mut Vec<TaskId>,
    ) -> Admission {
        let group = part.bio.group;
        let admission = self.climb(cx, part, group, wakes);
        if !cx.timers.is_pending(self.timer) {
            let second = u64::from(cx.timers.hz().0);
            cx.timers.arm_on_wheel(self.timer, second);
        }
        admission
    }

    fn resumed(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        wakes: &mut Vec<TaskId>,
    ) -> Admission {
        let parent = self.group(part.qos.held_by).parent;
        self.climb(cx, part, parent.expect("the root holds nobody back"), wakes)
    }

    fn refused(&mut self, _cx: &mut Cx<'_>, part: &Pending, wakes: &mut Vec<TaskId>) {
        self.leave(part, None, wakes);
    }

    fn bio_done(&mut self, cx: &mut Cx<'_>, done: &Pending, wakes: &mut Vec<TaskId>) {
        self.leave(done, Some(cx.now), wakes);
    }

    fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId, _wakes: &mut Vec<TaskId>) -> bool {
        let is_ours = self.timer == timer;
        if is_ours {
            self.tick(cx.now);
        }
        is_ours
    }

    /// The longest of its own delay and of those of the groups above.
    fn hold_up(&mut self, mut group: u16, now: Time) -> Span {
        let mut longest = Span::ZERO;
        while let Some(parent) = self.group(group).parent {
            let Group {
                delays, held_up, ..
            } = self.group(group);
            longest = longest.max(held_up.of_now(*delays, now));
            group = parent;
        }
        longest
    }

    fn sleeps_for(&self) -> SleepsFor {
        SleepsFor::GroupLatency
    }

    fn delay(&self, group: u16) -> Option<(i64, u64)> {
        let group = &self.groups[usize::from(group)];
        let owed = group.held_up.owed_ns();
        (group.delays > 0).then_some((i64::from(group.delays), owed))
    }

    fn says(&self, group: u16) -> Vec<String> {
        let group = &self.groups[usize::from(group)];
        let depth = match group.depth {
            ANY_DEPTH => "depth=max".to_owned(),
            depth => format!("depth={depth}"),
        };
        match group.now {
            Latencies::Counted { total, missed } => {
                vec![format!("missed={missed}"), format!("total={total}"), depth]
            }
            Latencies::Averaged { .. } => {
                let average = group.average_ns / 1000;
                let window = group.window.ns() / 1_000_000;
                vec![depth, format!("avg_lat={average}"), format!("win={window}")]
            }
        }
    }
}
