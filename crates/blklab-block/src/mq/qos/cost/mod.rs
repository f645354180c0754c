// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io.cost`: the device's time is shared among control groups by weight.
//!
//! docs/cgroups/iocost.md has the rules in words. Source: block/blk-iocost.c of 5.10, 6.1,
//! 6.12 and 7.3.
//!
//! Device time runs at a rate in units of 2^-37 s; a group's clock runs by what its bios
//! cost over its share. [`shares`] has the tree of weights, [`model`] the costs,
//! [`period`] what happens at the end of a period, [`donation`] how groups give away what
//! they do not use, [`budget`] who waits and who goes on.
//!
//! Left out: weights that change during a run, swap.

mod budget;
mod donation;
mod group;
mod model;
mod period;
mod shares;
#[cfg(test)]
mod tests;

use self::group::Group;
use self::model::{Model, PER_US};
use self::period::Period;
use self::shares::{Shares, WHOLE};
use super::{Admission, Policy, is_issued_as_root};
use crate::mq::{Features, Limits};
use crate::qos::BioQos;
use crate::{Cx, Pending, Request, RqId, SleepsFor, TaskTable};
use blklab_engine::{TimerId, Timers};
use blklab_types::{Op, Span, TaskId, Time};
use std::collections::BTreeSet;

/// The weight of a group whose file was not written (`CGROUP_WEIGHT_DFL`).
const WEIGHT: u32 = 100;

/// Parts of a period, in percent: credit below which a group gives nothing away, below
/// which it takes its weight back, and which it is to have at the end of a period
/// (`MARGIN_MIN_PCT`, `MARGIN_LOW_PCT`, `MARGIN_TARGET_PCT`).
const LEAST_PERCENT: u64 = 10;
const LOW_PERCENT: u64 = 20;
const AIM_PERCENT: u64 = 50;

/// The present (`ioc_now`).
#[derive(Clone, Copy, Debug)]
struct Now {
    time: Time,
    us: u64,
    /// Device time.
    device: i64,
}

/// What a release does otherwise.
#[derive(Clone, Copy, Debug)]
struct Rules {
    falls_below_min: bool,
    charges_empty: bool,
    class_resets_rate: bool,
    waits_for_ends: bool,
}

/// The cost controller of one device (`struct ioc`).
#[derive(Debug)]
pub(crate) struct IoCost {
    rules: Rules,
    model: Model,
    shares: Shares,
    /// By number.
    groups: Vec<Group>,
    /// Those that are active, the newest first (`active_iocgs`).
    active: Vec<u16>,
    /// Device time per microsecond, as the busy level has it, and with what makes up for
    /// lost credit (`vtime_base_rate`, `vtime_rate`).
    base_rate: u64,
    rate: u64,
    period: Period,
    /// Groups whose waiters are to be looked at.
    due: BTreeSet<(Time, u16)>,
    look_timer: TimerId,
    /// Bios of tasks that were let go and have not gone on: their charges.
    let_go: Vec<(TaskId, u64)>,
}

impl IoCost {
    /// The controller of a device; none if it is switched off.
    pub(crate) fn new(
        tasks: &TaskTable,
        feat: &Features,
        limits: &Limits,
        nr_requests: u32,
        timers: &mut Timers,
    ) -> Option<IoCost> {
        let (qos, user) = *tasks.cost();
        if !qos.enable {
            return None;
        }
        let depth = limits.budget.unwrap_or(nr_requests);
        let numbers = 1..=u16::try_from(tasks.nr_groups()).expect("groups fit 16 bits");
        let groups = numbers.filter_map(|n| tasks.group(n));
        let weights = groups.map(|g| (Some(g.parent), g.cost_weight.unwrap_or(WEIGHT)));
        let all = std::iter::once((None, WEIGHT)).chain(weights);
        Some(IoCost {
            rules: Rules {
                falls_below_min: feat.cost_falls_below_min,
                charges_empty: feat.cost_charges_empty,
                class_resets_rate: feat.cost_class_resets_rate,
                waits_for_ends: feat.cost_waits_for_ends,
            },
            model: Model::new(qos, user, limits.queue.rotational, depth),
            groups: all.clone().map(|_| Group::default()).collect(),
            shares: Shares::new(all),
            active: Vec::new(),
            base_rate: PER_US,
            rate: PER_US,
            period: Period::new(timers),
            due: BTreeSet::new(),
            look_timer: timers.register("iocost wait"),
            let_go: Vec::new(),
        })
    }

    fn group(&mut self, n: u16) -> &mut Group {
        &mut self.groups[usize::from(n)]
    }

    fn now(&self, time: Time) -> Now {
        let us = time.ns() / 1000;
        let since = us - self.period.began_us;
        Now {
            time,
            us,
            device: self.period.began_device + (since * self.rate) as i64,
        }
    }

    /// A part of a period in device time (`ioc_refresh_margins`).
    fn part_of_period(&self, percent: u64) -> i64 {
        (self.model.period_us * percent / 100 * self.base_rate) as i64
    }

    /// A cost for a group with such a share (`abs_cost_to_cost`).
    fn charge(cost: u64, share: u64) -> u64 {
        shares::part_up(cost, WHOLE, share)
    }

    /// The cost that a charge stands for (`cost_to_abs_cost`).
    fn cost_of_charge(charge: u64, share: u64) -> u64 {
        shares::part_up(charge, share, WHOLE)
    }

    /// What a bio costs; 0: it is not controlled.
    fn cost(&mut self, part: &Pending, joins: bool) -> u64 {
        let bio = &part.bio;
        if bio.group == TaskTable::ROOT_GROUP {
            return 0;
        }
        if bio.nr_sectors == 0 && !self.rules.charges_empty {
            return 0;
        }
        let distance = match self.group(bio.group).cursor {
            0 => 0,
            cursor => bio.sector.abs_diff(cursor),
        };
        self.model.cost(bio.op, bio.nr_sectors, distance, joins)
    }

    /// A group has a bio: it is active from now on. False if groups above or below it
    /// are, whose bios are not controlled (`iocg_activate`).
    fn activate(&mut self, n: u16, now: Now, timers: &mut Timers) -> bool {
        let period = self.period.number;
        if self.group(n).is_active {
            self.group(n).last_period = period;
            return true;
        }
        if self.shares.node(n).active_below > 0 {
            return false;
        }
        self.group(n).last_period = period;
        let above: Vec<u16> = self.shares.above(n).collect();
        if above.iter().any(|&a| self.group(a).is_active) {
            return false;
        }
        let aim = self.part_of_period(AIM_PERCENT);
        let group = self.group(n);
        group.skip(now.device - aim - group.clock);
        group.is_active = true;
        group.active_since = now.us;
        group.credit_then = aim;
        self.active.insert(0, n);
        self.shares.activate(n);
        if !self.period.runs {
            self.period.runs = true;
            self.period.begin_forgiving(now.us);
            self.begin_period(now, timers);
        }
        true
    }

    /// What a group has in use changes, and its credit at that time is kept.
    fn use_weight(&mut self, n: u16, in_use: u64, now: Now) {
        self.shares.use_weight(n, in_use);
        let group = self.group(n);
        group.credit_then = now.device - group.clock;
    }

    /// What a bio of a cost is charged. A group whose credit went down takes weight back
    /// that it gave away, in steps, until the bio fits (`adjust_inuse_and_calc_cost`).
    fn charge_taking_back(&mut self, n: u16, cost: u64, now: Now) -> u64 {
        const STEP_PERCENT: u64 = 25;
        let mut charged = Self::charge(cost, self.shares.share(n).in_use);
        let low = self.part_of_period(LOW_PERCENT);
        let clock = self.group(n).clock;
        let credit = now.device - clock - charged as i64;
        let gives_away = |shares: &Shares| {
            let node = shares.node(n);
            node.in_use != node.active
        };
        let group = self.group(n);
        if group.debt > 0
            || credit >= group.credit_then
            || credit >= low
            || !group.is_active
            || !gives_away(&self.shares)
        {
            return charged;
        }
        let step = (self.shares.node(n).active * STEP_PERCENT).div_ceil(100);
        loop {
            let in_use = self.shares.node(n).in_use + step;
            self.use_weight(n, in_use, now);
            self.shares.commit();
            charged = Self::charge(cost, self.shares.share(n).in_use);
            if clock + charged as i64 <= now.device || !gives_away(&self.shares) {
                return charged;
            }
        }
    }
}

impl Policy for IoCost {
    fn throttle(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        wakes: &mut Vec<TaskId>,
    ) -> Admission {
        let cost = self.cost(part, false);
        let n = part.bio.group;
        let now = self.now(cx.now);
        if cost == 0 || !self.activate(n, now, cx.timers) {
            return Admission::Goes;
        }
        let now = self.now(cx.now);
        self.group(n).cursor = part.bio.end();
        let charged = self.charge_taking_back(n, cost, now);
        let group = self.group(n);
        let has_room = group.has_room(charged, now.device);
        if group.waiters.is_empty() && group.debt == 0 && has_room {
            group.commit(cost, charged);
            part.qos.cost = charged;
            return Admission::Goes;
        }
        if is_issued_as_root(&part.bio) {
            self.owe(n, cost, now);
            if self.delay(n, now) {
                cx.asks_on_return();
            }
            return Admission::Goes;
        }
        self.wait(n, part.bio.task, cost, now, wakes);
        self.arm(cx.timers);
        // It may have been let go at once.
        match wakes.iter().rposition(|&woken| woken == part.bio.task) {
            Some(at) => {
                wakes.remove(at);
                self.resumed(cx, part, wakes)
            }
            None => Admission::Sleeps,
        }
    }

    fn resumed(
        &mut self,
        _cx: &mut Cx<'_>,
        part: &mut Pending,
        _wakes: &mut Vec<TaskId>,
    ) -> Admission {
        let task = part.bio.task;
        let at = self.let_go.iter().position(|(whose, _)| *whose == task);
        let (_, charged) = self.let_go.remove(at.expect("who goes on was let go"));
        part.qos.cost = charged;
        Admission::Goes
    }

    /// A merged bio is paid for if there is room and its request was; else it is owed
    /// (`ioc_rqos_merge`).
    fn merged(&mut self, cx: &mut Cx<'_>, rq: &Request, first: BioQos, part: &mut Pending) {
        let cost = self.cost(part, true);
        if cost == 0 {
            return;
        }
        let n = part.bio.group;
        let now = self.now(cx.now);
        let charged = self.charge_taking_back(n, cost, now);
        let end = part.bio.end();
        let group = self.group(n);
        if rq.sector < end && rq.end() == group.cursor {
            group.cursor = end;
        }
        let has_room = group.has_room(charged, now.device);
        if (first.cost > 0 && has_room) || !group.is_active {
            group.commit(cost, charged);
            part.qos.cost = charged;
        } else {
            self.owe(n, cost, now);
            if self.delay(n, now) {
                cx.asks_on_return();
            }
        }
    }

    fn refused(&mut self, cx: &mut Cx<'_>, part: &Pending, wakes: &mut Vec<TaskId>) {
        self.bio_done(cx, part, wakes);
    }

    fn bio_done(&mut self, _cx: &mut Cx<'_>, done: &Pending, _wakes: &mut Vec<TaskId>) {
        self.group(done.bio.group).clock_done += done.qos.cost as i64;
    }

    /// Whether its latency was kept, and how long it waited for a request
    /// (`ioc_rqos_done`).
    fn freed(&mut self, cx: &mut Cx<'_>, _id: RqId, rq: &Request, _wakes: &mut Vec<TaskId>) {
        let direction = match rq.op {
            Op::Read => 0,
            Op::Write | Op::Flush => 1,
            Op::Discard => return,
        };
        let took = cx.now.since(rq.wanted);
        let size = self.model.time_of_size(rq.op, rq.nr_sectors);
        let target = u64::from(self.model.targets[direction].latency_us) * 1000;
        let is_met = took <= size || took.ns() - size.ns() <= target;
        let waited = rq.allocated.ns().saturating_sub(rq.wanted.ns());
        self.period.count(direction, is_met, waited);
    }

    fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId, wakes: &mut Vec<TaskId>) -> bool {
        if timer == self.look_timer {
            self.look(cx.now, wakes);
        } else if timer == self.period.timer {
            self.end_period(cx.now, cx.timers, wakes);
        } else {
            return false;
        }
        self.arm(cx.timers);
        true
    }

    /// The longest of its own delay and of those of the groups above.
    fn hold_up(&mut self, group: u16, _now: Time) -> Span {
        let above = self.shares.above(group);
        let all = std::iter::once(group).chain(above);
        let us = all.map(|n| self.groups[usize::from(n)].held_us).max();
        Span::from_us(us.unwrap_or(0))
    }

    fn sleeps_for(&self) -> SleepsFor {
        SleepsFor::GroupCost
    }

    /// Its delays are no number of reasons (`blkcg_set_delay`).
    fn delay(&self, group: u16) -> Option<(i64, u64)> {
        let us = self.groups[usize::from(group)].held_us;
        (us > 0).then(|| (-1, Span::from_us(us).ns()))
    }

    fn says(&self, group: u16) -> Vec<String> {
        let told = &self.groups[usize::from(group)].told;
        vec![
            format!("cost.usage={}", told.usage),
            format!("cost.wait={}", told.wait),
            format!("cost.indebt={}", told.in_debt),
            format!("cost.indelay={}", told.in_delay),
        ]
    }
}
