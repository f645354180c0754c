// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits for its group's share, who goes on, and what groups owe.

use super::group::Waiter;
use super::{IoCost, Now};
use blklab_engine::Timers;
use blklab_types::{Span, TaskId, Time};

/// A look at waiters comes so much later than the first of them needs, in parts of a
/// period, and up to as much again (`TIMER_SLACK_PCT`).
const SLACK_PERCENT: u64 = 1;

/// Debt in percent of a period beyond which system calls are held up, and from which on
/// for longest (`MIN_DELAY_THR_PCT`, `MAX_DELAY_THR_PCT`); for how long, in us
/// (`MIN_DELAY`, `MAX_DELAY`).
const DELAYS_FROM_PERCENT: i64 = 500;
const DELAYS_MOST_PERCENT: i64 = 25_000;
const DELAY_US: (u64, u64) = (250, 250_000);

/// Debts are halved if the device was used by no more than this part of so many us
/// (`DFGV_USAGE_PCT`, `DFGV_PERIOD`).
const FORGIVES_BELOW_PERCENT: u64 = 50;
const FORGIVES_EACH_US: u64 = 100_000;

/// When debts are halved next.
#[derive(Debug, Default)]
pub(super) struct Forgiving {
    since_us: u64,
    /// What was left of a whole time of [`FORGIVES_EACH_US`].
    rest_us: u64,
    used_us: u64,
}

impl Forgiving {
    pub(super) fn begin(&mut self, now_us: u64) {
        self.since_us = now_us;
        self.rest_us = 0;
    }
}

impl IoCost {
    fn slack(&self) -> Span {
        Span(self.model.period_us * 1000 * SLACK_PERCENT / 100)
    }

    /// A task waits behind those of its group. A group with waiters has all of its weight
    /// in use.
    pub(super) fn wait(
        &mut self,
        n: u16,
        task: TaskId,
        cost: u64,
        now: Now,
        wakes: &mut Vec<TaskId>,
    ) {
        let pays = self.group(n).debt > 0;
        let (in_use, active) = {
            let node = self.shares.node(n);
            (node.in_use, node.active)
        };
        if !pays && in_use != active {
            self.use_weight(n, active, now);
            self.shares.commit();
        }
        self.group(n).waiters.push_back(Waiter { task, cost });
        self.let_go_on(n, pays, now, wakes);
    }

    /// What a group has of credit pays its debt, then lets waiters go on
    /// (`iocg_kick_waitq`).
    pub(super) fn let_go_on(&mut self, n: u16, pays: bool, now: Now, wakes: &mut Vec<TaskId>) {
        let full = self.shares.share(n).full;
        let mut budget = now.device - self.group(n).clock;
        if pays && self.group(n).debt > 0 && budget > 0 {
            budget -= self.pay(n, budget as u64, full, now);
        }
        if self.group(n).debt > 0 || self.group(n).delay_us > 0 {
            self.delay(n, now);
        }
        let debt = self.group(n).debt;
        if debt > 0 {
            budget = (budget - Self::charge(debt, full) as i64).min(0);
        }
        let in_use = self.shares.share(n).in_use;
        while let Some(&first) = self.group(n).waiters.front() {
            let charged = Self::charge(first.cost, in_use);
            budget -= charged as i64;
            if budget < 0 {
                break;
            }
            self.group(n).waiters.pop_front();
            self.group(n).commit(first.cost, charged);
            self.let_go.push((first.task, charged));
            wakes.push(first.task);
        }
        let group = self.group(n);
        if group.waiters.is_empty() {
            if let Some(since) = group.waits_since.take() {
                group.spent.wait += now.us - since;
            }
            return;
        }
        group.waits_since.get_or_insert(now.us);
        self.look_later(n, budget.unsigned_abs(), now);
    }

    /// A group's waiters are looked at when it has so much more credit.
    fn look_later(&mut self, n: u16, missing: u64, now: Now) {
        let us = missing.div_ceil(self.base_rate);
        let slack = self.slack();
        let at = now.time + Span(us * 1000) + slack;
        let group = self.group(n);
        if let Some(before) = group.looks_at {
            if before.ns().abs_diff(at.ns()) <= slack.ns() {
                return;
            }
            self.due.remove(&(before, n));
        }
        self.group(n).looks_at = Some(at);
        self.due.insert((at, n));
    }

    /// Sets the timer for the next look: it fires with the next tick, and at the end of
    /// its slack at the latest.
    pub(super) fn arm(&self, timers: &mut Timers) {
        let Some(&(first, _)) = self.due.first() else {
            timers.cancel(self.look_timer);
            return;
        };
        let hz = timers.hz();
        let tick = hz.start_of(hz.jiffies_at(first).plus(1));
        timers.arm_at(self.look_timer, tick.min(first + self.slack()));
    }

    /// Looks at the waiters of groups for which it is time
    /// (`iocg_waitq_timer_fn`).
    pub(super) fn look(&mut self, time: Time, wakes: &mut Vec<TaskId>) {
        let now = self.now(time);
        while let Some(&(at, n)) = self.due.first()
            && at <= time
        {
            self.due.pop_first();
            self.group(n).looks_at = None;
            let pays = self.group(n).debt > 0;
            self.let_go_on(n, pays, now, wakes);
        }
    }

    /// A bio went on without credit (`iocg_incur_debt`). A group in debt has as little in
    /// use as can be.
    pub(super) fn owe(&mut self, n: u16, cost: u64, now: Now) {
        if self.group(n).debt == 0 {
            self.group(n).in_debt_since = Some(now.us);
            self.shares.use_weight(n, 0);
            self.shares.commit();
        }
        let group = self.group(n);
        group.debt += cost;
        group.used += cost;
    }

    /// Pays debt out of a budget, at the group's full share; what it took
    /// (`iocg_pay_debt`).
    fn pay(&mut self, n: u16, budget: u64, full: u64, now: Now) -> i64 {
        let group = self.group(n);
        let paid = Self::cost_of_charge(budget, full).min(group.debt);
        let took = Self::charge(paid, full) as i64;
        group.skip(took);
        group.debt -= paid;
        if group.debt == 0 {
            if let Some(since) = group.in_debt_since.take() {
                group.spent.in_debt += now.us - since;
            }
            let before = self.shares.node(n).in_use_before;
            self.shares.use_weight(n, before);
            self.shares.commit();
        }
        took
    }

    /// How long system calls of a group's tasks are held up for its debt
    /// (`iocg_kick_delay`); whether they are.
    pub(super) fn delay(&mut self, n: u16, now: Now) -> bool {
        let full = self.shares.share(n).full;
        let period = (self.model.period_us * self.base_rate) as i64;
        let group = self.group(n);
        if now.us < group.delay_since {
            return false;
        }
        let halvings = (now.us - group.delay_since) / 1_000_000;
        let old = match u32::try_from(halvings) {
            Ok(n) if n < u64::BITS => group.delay_us >> n,
            _ => 0,
        };
        let ahead = group.clock + Self::charge(group.debt, full) as i64 - now.device;
        let new = delay_of(100 * ahead / period);
        if new > old {
            group.delay_us = new;
            group.delay_since = now.us;
        }
        if new.max(old) >= DELAY_US.0 {
            group.in_delay_since.get_or_insert(now.us);
            group.held_us = new.max(old);
        } else {
            if let Some(since) = group.in_delay_since.take() {
                group.spent.in_delay += now.us - since;
            }
            group.delay_us = 0;
            group.held_us = 0;
        }
        group.held_us > 0
    }

    /// Halves debts and delays where the device had little to do
    /// (`ioc_forgive_debts`).
    pub(super) fn forgive(
        &mut self,
        used_us: u64,
        nr_debtors: u32,
        now: Now,
        wakes: &mut Vec<TaskId>,
    ) {
        let is_busy = self.period.busy_level > 0;
        let period_us = self.model.period_us;
        let forgiving = &mut self.period.forgiving;
        if nr_debtors == 0 {
            forgiving.begin(now.us);
            forgiving.used_us = 0;
            return;
        }
        forgiving.used_us += if is_busy {
            used_us.max(period_us)
        } else {
            used_us
        };
        let lasted = now.us.saturating_sub(forgiving.since_us);
        if lasted < FORGIVES_EACH_US {
            return;
        }
        let percent = 100 * std::mem::take(&mut forgiving.used_us) / lasted;
        forgiving.since_us = now.us;
        if percent > FORGIVES_BELOW_PERCENT {
            forgiving.rest_us = 0;
            return;
        }
        let all = lasted + forgiving.rest_us;
        forgiving.rest_us = all % FORGIVES_EACH_US;
        let halvings = (all / FORGIVES_EACH_US).min(63);
        for n in self.active.clone() {
            let group = self.group(n);
            if group.debt == 0 && group.delay_us == 0 {
                continue;
            }
            if group.debt > 0 {
                group.debt = (group.debt >> halvings).max(1);
            }
            if group.delay_us > 0 {
                group.delay_us = (group.delay_us >> halvings).max(1);
            }
            self.let_go_on(n, true, now, wakes);
        }
    }
}

/// The delay of a debt in percent of a period, in us.
fn delay_of(percent: i64) -> u64 {
    if percent <= DELAYS_FROM_PERCENT {
        return 0;
    }
    let beyond = percent.min(DELAYS_MOST_PERCENT) - DELAYS_FROM_PERCENT;
    let range = (DELAYS_MOST_PERCENT - DELAYS_FROM_PERCENT) as u64;
    DELAY_US.0 + (DELAY_US.1 - DELAY_US.0) * beyond as u64 / range
}

#[cfg(test)]
mod tests {
    use super::delay_of;

    #[test]
    fn delays_grow_with_debt() {
        assert_eq!(delay_of(500), 0);
        assert_eq!(delay_of(501), 250 + 10);
        assert_eq!(delay_of(12_750), 250 + 249_750 / 2);
        assert_eq!(delay_of(25_000), 250_000);
        assert_eq!(delay_of(1_000_000), 250_000);
    }
}
