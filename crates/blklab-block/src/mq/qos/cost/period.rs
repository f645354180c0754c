// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a period: how the device did, who is idle, who uses less than its share,
//! and the rate of the next one.

use super::budget::Forgiving;
use super::donation::Donor;
use super::model::PER_US;
use super::shares::{Share, WHOLE};
use super::{AIM_PERCENT, IoCost, LEAST_PERCENT, LOW_PERCENT, Now};
use blklab_engine::{TimerId, Timers};
use blklab_types::{TaskId, Time};

/// More of a period than this waited for requests: the device is busy
/// (`RQ_WAIT_BUSY_PCT`).
const WAIT_BUSY_PERCENT: u64 = 5;
/// Part of a bound below which the device is not busy (`UNBUSY_THR_PCT`).
const UNBUSY_PERCENT: u64 = 75;
/// I/Os that are older than so many periods count no more as slow
/// (`MAX_LAGGING_PERIODS`).
const LAGS_FOR_PERIODS: i64 = 10;
/// The rate returns into its bounds by so much a period (`VRATE_CLAMP_ADJ_PCT`).
const RETURN_PERCENT: u64 = 4;
/// The slowest rate, whatever `min` is (`VRATE_MIN`).
const SLOWEST: u64 = PER_US / 100;
const LEVEL_MAX: i32 = 1000;

/// A period and what it counts.
#[derive(Debug)]
pub(super) struct Period {
    pub(super) timer: TimerId,
    /// There are active groups, and an end.
    pub(super) runs: bool,
    /// How many there were.
    pub(super) number: u64,
    pub(super) began_us: u64,
    pub(super) began_device: i64,
    /// Requests that kept their latency and that did not: reads, writes.
    met: [u64; 2],
    missed: [u64; 2],
    /// Waits for requests, added up.
    waited_ns: u64,
    /// For how many periods the device was busy (above 0) or not used enough (below).
    pub(super) busy_level: i32,
    /// Device time that nobody got, below 0 (`vtime_err`).
    lost: i64,
    pub(super) forgiving: Forgiving,
}

impl Period {
    pub(super) fn new(timers: &mut Timers) -> Period {
        Period {
            timer: timers.register("iocost period"),
            runs: false,
            number: 0,
            began_us: 0,
            began_device: 0,
            met: [0; 2],
            missed: [0; 2],
            waited_ns: 0,
            busy_level: 0,
            lost: 0,
            forgiving: Forgiving::default(),
        }
    }

    pub(super) fn begin_forgiving(&mut self, now_us: u64) {
        self.forgiving.begin(now_us);
    }

    /// A request ended.
    pub(super) fn count(&mut self, direction: usize, is_met: bool, waited_ns: u64) {
        let count = if is_met {
            &mut self.met
        } else {
            &mut self.missed
        };
        count[direction] += 1;
        self.waited_ns += waited_ns;
    }

    /// How the device did (`ioc_lat_stat`).
    fn take_counts(&mut self, period_us: u64) -> Counts {
        let met = std::mem::take(&mut self.met);
        let missed = std::mem::take(&mut self.missed);
        let ppm = |d: usize| {
            let all = met[d] + missed[d];
            (missed[d] * 1_000_000).div_ceil(all.max(1))
        };
        Counts {
            missed_ppm: [ppm(0), ppm(1)],
            wait_percent: std::mem::take(&mut self.waited_ns) * 100 / (period_us * 1000),
            nr_done: met.iter().chain(&missed).sum(),
        }
    }
}

struct Counts {
    missed_ppm: [u64; 2],
    wait_percent: u64,
    nr_done: u64,
}

/// What groups did in a period.
#[derive(Default)]
struct Groups {
    donors: Vec<Donor>,
    /// Groups that have nothing to give.
    nr_short: u32,
    /// Groups with I/Os from before the period.
    nr_lagging: u32,
    used_us: u64,
}

impl IoCost {
    /// A period begins (`ioc_start_period`).
    pub(super) fn begin_period(&mut self, now: Now, timers: &mut Timers) {
        self.period.began_us = now.us;
        self.period.began_device = now.device;
        let tick_us = 1_000_000 / u64::from(timers.hz().0);
        let ticks = self.model.period_us.div_ceil(tick_us);
        timers.arm_on_wheel(self.period.timer, ticks);
    }

    /// It ends (`ioc_timer_fn`).
    pub(super) fn end_period(&mut self, time: Time, timers: &mut Timers, wakes: &mut Vec<TaskId>) {
        let counts = self.period.take_counts(self.model.period_us);
        let now = self.now(time);
        let nr_debtors = self.visit_groups(now, wakes);
        self.tell_spent();
        let mut groups = self.weigh_groups(now);
        if !groups.donors.is_empty() && groups.nr_short > 0 {
            self.donate(&mut groups.donors, now);
        }
        self.shares.commit();
        self.judge(&counts, &groups);
        self.change_rate(&counts, groups.nr_lagging > 0);
        if self.model.reconsider(self.base_rate, time) {
            self.rate = PER_US;
            if self.rules.class_resets_rate {
                self.base_rate = PER_US;
            }
        }
        self.forgive(groups.used_us, nr_debtors, now, wakes);
        self.period.number += 1;
        if self.active.is_empty() {
            self.period.busy_level = 0;
            self.period.lost = 0;
            self.period.runs = false;
        } else {
            self.begin_period(now, timers);
        }
        self.make_up_for_losses(now);
    }

    /// Looks at waiters, who may sleep for too long by what they knew, and takes idle
    /// groups off the list; how many are in debt (`ioc_check_iocgs`).
    fn visit_groups(&mut self, now: Now, wakes: &mut Vec<TaskId>) -> u32 {
        let mut nr_debtors = 0;
        for n in self.active.clone() {
            let number = self.period.number;
            let group = self.group(n);
            let is_idle = group.last_period != number && group.clock_done == group.clock;
            let waits = !group.waiters.is_empty() || group.debt > 0 || group.delay_us > 0;
            if !waits && !is_idle {
                continue;
            }
            group.spent.wait += lap(&mut group.waits_since, now.us);
            group.spent.in_debt += lap(&mut group.in_debt_since, now.us);
            group.spent.in_delay += lap(&mut group.in_delay_since, now.us);
            if waits {
                self.let_go_on(n, true, now, wakes);
                let group = self.group(n);
                nr_debtors += u32::from(group.debt > 0 || group.delay_us > 0);
            } else {
                self.retire(n, now);
            }
        }
        self.shares.commit();
        nr_debtors
    }

    /// An idle group loses its credit.
    fn retire(&mut self, n: u16, now: Now) {
        let excess = now.device - self.group(n).clock - self.part_of_period(AIM_PERCENT);
        if excess > 0 {
            let share = self.shares.share(n);
            self.lose(excess, share);
        }
        self.shares.deactivate(n);
        self.group(n).is_active = false;
        self.active.retain(|&other| other != n);
    }

    /// Credit of a group with such a share is gone.
    fn lose(&mut self, credit: i64, share: Share) {
        let whole = i128::from(credit) * i128::from(share.in_use) / i128::from(WHOLE);
        self.period.lost -= whole as i64;
    }

    /// What groups used of the period is told to those above (`iocg_flush_stat`).
    fn tell_spent(&mut self) {
        let mut above = Vec::new();
        for n in self.active.clone() {
            let rate = self.base_rate;
            let group = self.group(n);
            group.usage_us = (group.used - group.used_before) / rate;
            group.used_before = group.used;
            group.spent.usage += group.usage_us;
            self.tell_parent(n);
            above.extend(
                self.shares
                    .above(n)
                    .map(|a| (self.shares.above(a).count(), a)),
            );
        }
        above.sort_unstable();
        above.dedup();
        for (_, n) in above.into_iter().rev() {
            self.tell_parent(n);
        }
    }

    fn tell_parent(&mut self, n: u16) {
        let group = self.group(n);
        let new = group.spent.since(&group.told);
        group.told = group.spent;
        if let Some(parent) = self.shares.node(n).parent {
            self.group(parent).spent.add(&new);
        }
    }

    /// Who has something to give away, and who has not.
    fn weigh_groups(&mut self, now: Now) -> Groups {
        let mut groups = Groups::default();
        let cares = self.model.targets.iter().any(|t| t.ppm != 0);
        let lasted = now.device - self.period.began_device;
        let low = self.part_of_period(LOW_PERCENT);
        for n in self.active.clone() {
            let share = self.shares.share(n);
            let group = self.group(n);
            let lags = group.clock > group.clock_done
                && group.clock > now.device - LAGS_FOR_PERIODS * lasted
                && group.clock_done < now.device - lasted;
            groups.nr_lagging += u32::from(cares && lags && group.in_delay_since.is_none());
            groups.used_us += group.usage_us;
            let has_credit = group.waiters.is_empty() && group.clock < now.device - low;
            if share.in_use >= share.full && !has_credit {
                groups.nr_short += 1;
                continue;
            }
            let most = self.shares.largest(n);
            let after = self.after_donation(n, share, most, now);
            let full = self.shares.share(n).full;
            if after < most && full >= 2 {
                groups.donors.insert(0, Donor { n, full, after });
            } else if self.group(n).debt == 0 {
                let active = self.shares.node(n).active;
                self.use_weight(n, active, now);
                groups.nr_short += 1;
            }
        }
        groups
    }

    /// The share that a group needs, so that it has half a period of credit at the end of
    /// the next if it goes on as in this one (`hweight_after_donation`).
    fn after_donation(&mut self, n: u16, share: Share, most: u64, now: Now) -> u64 {
        let usage = self.usage(n, share, now);
        let least = self.part_of_period(LEAST_PERCENT);
        let aim = self.part_of_period(AIM_PERCENT);
        let group = self.group(n);
        if group.debt > 0 {
            return 1;
        }
        if !group.waiters.is_empty() || group.clock > now.device - least {
            return most;
        }
        let excess = now.device - group.clock - aim;
        if excess > 0 {
            group.skip(excess);
            self.lose(excess, share);
        }
        let credit = now.device - self.group(n).clock;
        let lasted = (now.device - self.period.began_device).max(1);
        let whole = WHOLE as i64;
        let credit = i128::from(whole) * i128::from(credit) / i128::from(lasted);
        let parts = i128::from(whole - whole * AIM_PERCENT as i64 / 100) + credit;
        let wanted = i128::from(whole) * i128::from(usage) / parts.max(1);
        u64::try_from(wanted).unwrap_or(0).clamp(1, most)
    }

    /// What a group used of the device in this period, as a share; I/Os on their way
    /// count.
    fn usage(&mut self, n: u16, share: Share, now: Now) -> u64 {
        let (rate, began_us) = (self.base_rate, self.period.began_us);
        let group = self.group(n);
        let on_their_way = (group.clock - group.clock_done).max(0) as u64;
        let on_their_way = Self::cost_of_charge(on_their_way, share.in_use).div_ceil(rate);
        let group = self.group(n);
        let used = group.usage_us.max(on_their_way);
        let since = group.active_since.max(began_us);
        let lasted = (now.us - since).max(1);
        (used * WHOLE).div_ceil(lasted).clamp(1, WHOLE)
    }

    /// Whether the device is busy, or could do more.
    fn judge(&mut self, counts: &Counts, groups: &Groups) {
        if self.rules.waits_for_ends && counts.nr_done == 0 && groups.nr_lagging > 0 {
            return;
        }
        let may_miss = self.model.targets.map(|t| 1_000_000 - u64::from(t.ppm));
        let pairs = || counts.missed_ppm.iter().zip(may_miss);
        let misses = pairs().any(|(&missed, may)| missed > may);
        let keeps = pairs().all(|(&missed, may)| missed <= may * UNBUSY_PERCENT / 100);
        let is_free = counts.wait_percent <= WAIT_BUSY_PERCENT * UNBUSY_PERCENT / 100;
        let level = self.period.busy_level;
        let level = if counts.wait_percent > WAIT_BUSY_PERCENT || misses {
            level.max(0) + 1
        } else if is_free && keeps && groups.nr_short > 0 {
            level.min(0) - i32::from(groups.nr_lagging == 0)
        } else {
            0
        };
        self.period.busy_level = level.clamp(-LEVEL_MAX, LEVEL_MAX);
    }

    /// The rate follows the busy level (`ioc_adjust_base_vrate`).
    fn change_rate(&mut self, counts: &Counts, lags: bool) {
        let level = self.period.busy_level;
        if level == 0 || (level < 0 && lags) {
            return;
        }
        let waits = counts.wait_percent > WAIT_BUSY_PERCENT;
        let least = if waits && self.rules.falls_below_min {
            SLOWEST
        } else {
            self.model.rate_min
        };
        let (most, rate) = (self.model.rate_max, self.base_rate);
        self.base_rate = if rate < least {
            (rate * (100 + RETURN_PERCENT) / 100).min(least)
        } else if rate > most {
            (rate * (100 - RETURN_PERCENT) / 100).max(most)
        } else {
            let step = step_percent(level);
            let percent = if level > 0 { 100 - step } else { 100 + step };
            (rate * percent).div_ceil(100).clamp(least, most)
        };
    }

    /// Credit that was lost is made up for by a rate that is higher until the period ends
    /// (`ioc_refresh_vrate`).
    fn make_up_for_losses(&mut self, now: Now) {
        let left = (self.period.began_us + self.model.period_us) as i64 - now.us as i64;
        let base = self.base_rate as i64;
        if left > 0 {
            let more = (-(self.period.lost / left)).clamp(-(base / 2), base);
            self.period.lost += more * left;
            self.rate = (base + more) as u64;
        }
        let most = self.model.period_us as i64 * base;
        self.period.lost = self.period.lost.clamp(-most, most);
    }
}

/// The time since something began, if it goes on; from now on it began now.
fn lap(since: &mut Option<u64>, now_us: u64) -> u64 {
    let lap = |at: &mut u64| now_us - std::mem::replace(at, now_us);
    since.as_mut().map_or(0, lap)
}

/// By how much a busy level changes the rate (`vrate_adj_pct`).
fn step_percent(level: i32) -> u64 {
    match level.unsigned_abs() {
        0..4 => 0,
        4..20 => 1,
        20..36 => 2,
        36..44 => 4,
        44..52 => 8,
        _ => 16,
    }
}
