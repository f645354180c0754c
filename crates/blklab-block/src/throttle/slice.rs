// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a group may pass in one direction: rates, counted in slices of time.

use super::Rules;
use blklab_types::Jiffies;

/// What one bio takes from the limits of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// 0 if its bytes were charged before it was split.
    pub(super) bytes: u64,
    /// Its bytes count.
    pub(super) counts_bytes: bool,
}

/// The slice of a group in one direction: since `start`, so much went through
/// (`slice_start`, `slice_end`, `bytes_disp`, `io_disp`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    /// Limits per second; none: no limit.
    pub(super) bytes_per_s: Option<u64>,
    pub(super) ios_per_s: Option<u64>,
    start: Jiffies,
    end: Jiffies,
    bytes: i64,
    ios: i64,
    /// What went through beyond the limits (`carryover_bytes`, `carryover_ios`).
    bytes_debt: i64,
    ios_debt: i64,
}

impl Slice {
    /// A slice that begins now (`throtl_start_new_slice`).
    pub(super) fn new(
        bytes_per_s: Option<u64>,
        ios_per_s: Option<u64>,
        now: Jiffies,
        rules: &Rules,
    ) -> Slice {
        Slice {
            bytes_per_s,
            ios_per_s,
            start: now,
            end: now.plus(rules.slice_ticks),
            ..Slice::default()
        }
    }

    pub(super) fn has_limits(&self) -> bool {
        self.bytes_per_s.is_some() || self.ios_per_s.is_some()
    }

    /// Ticks until a bio may pass; 0: now (`tg_may_dispatch`). `queued`: others
    /// wait in front of it or it waits itself, so the slice goes on.
    pub(super) fn wait(&mut self, now: Jiffies, cost: Cost, queued: bool, rules: &Rules) -> u64 {
        if !self.has_limits() {
            return 0;
        }
        if self.is_over(now) && (!queued || rules.counting.restarts_with_held) {
            *self = Slice::new(self.bytes_per_s, self.ios_per_s, now, rules);
        } else {
            self.extend(now.plus(rules.slice_ticks), rules);
        }
        let wait = self
            .wait_for_bytes(now, cost, rules)
            .max(self.wait_for_io(now, rules));
        self.extend(now.plus(wait), rules);
        wait
    }

    /// A bio passed within the limits (`throtl_charge_bio`).
    pub(super) fn charge(&mut self, cost: Cost) {
        self.bytes = self.bytes.saturating_add(signed(cost.bytes));
        self.ios += 1;
    }

    /// A bio passed that could not be held: what follows waits for it
    /// (`tg_dispatch_in_debt`).
    pub(super) fn charge_debt(&mut self, cost: Cost) {
        self.bytes_debt = self.bytes_debt.saturating_add(signed(cost.bytes));
        self.ios_debt += 1;
    }

    /// Forgets whole slices of time that have gone by, with what was allowed in
    /// them (`throtl_trim_slice`).
    pub(super) fn trim(&mut self, now: Jiffies, rules: &Rules) {
        if self.is_over(now) {
            return;
        }
        self.end = round_up(now.plus(rules.slice_ticks), rules);
        let elapsed = now.0 - self.start.0;
        let whole = elapsed - elapsed % rules.slice_ticks;
        if whole == 0 {
            return;
        }
        let bytes = allowed(self.bytes_per_s, whole, rules) - self.bytes_debt;
        let ios = allowed(self.ios_per_s, whole, rules) - self.ios_debt;
        if bytes <= 0 && ios <= 0 {
            return;
        }
        self.bytes = self.bytes.saturating_sub(bytes).max(0);
        self.ios = self.ios.saturating_sub(ios).max(0);
        self.bytes_debt = 0;
        self.ios_debt = 0;
        self.start = self.start.plus(whole);
    }

    /// A bio came from a group below, whose slice is `child`: if nothing passed
    /// here for long, the time since then counts, too
    /// (`throtl_start_new_slice_with_credit`).
    pub(super) fn start_with_credit(&mut self, now: Jiffies, child: &Slice, rules: &Rules) {
        if self.is_over(now) {
            let start = self.start.max(child.start);
            *self = Slice::new(self.bytes_per_s, self.ios_per_s, now, rules);
            self.start = start;
        }
    }

    /// `throtl_slice_used`.
    fn is_over(&self, now: Jiffies) -> bool {
        now < self.start || now > self.end
    }

    /// `throtl_extend_slice`.
    fn extend(&mut self, until: Jiffies, rules: &Rules) {
        if self.end < until {
            self.end = round_up(until, rules);
        }
    }

    /// Ticks until its bytes may pass (`tg_within_bps_limit`).
    fn wait_for_bytes(&self, now: Jiffies, cost: Cost, rules: &Rules) -> u64 {
        let Some(rate) = self.bytes_per_s.filter(|_| cost.counts_bytes) else {
            return 0;
        };
        let elapsed = now.0 - self.start.0;
        let rounded = elapsed.max(1).next_multiple_of(rules.slice_ticks);
        let allowed = allowed(Some(rate), rounded, rules) - self.bytes_debt;
        let wanted = self.bytes.saturating_add(signed(cost.bytes));
        if allowed > 0 && wanted <= allowed {
            return 0;
        }
        let missing = u128::from(wanted.saturating_sub(allowed).max(0).unsigned_abs());
        let ticks = missing * u128::from(rules.hz.0) / u128::from(rate);
        u64::try_from(ticks).unwrap_or(u64::MAX >> 1).max(1) + rounded - elapsed
    }

    /// Ticks until it may pass as an I/O (`tg_within_iops_limit`).
    fn wait_for_io(&self, now: Jiffies, rules: &Rules) -> u64 {
        let Some(rate) = self.ios_per_s else {
            return 0;
        };
        let elapsed = now.0 - self.start.0;
        let by_number = rules.counting.waits_by_number;
        let since = if by_number {
            elapsed.max(1)
        } else {
            elapsed + 1
        };
        let rounded = since.next_multiple_of(rules.slice_ticks);
        let allowed = allowed(Some(rate), rounded, rules) - self.ios_debt;
        if allowed > 0 && self.ios < allowed {
            return 0;
        }
        if by_number {
            let number = self.ios.saturating_add(1).unsigned_abs();
            let ticks = number.saturating_mul(u64::from(rules.hz.0)) / rate + 1;
            return ticks.saturating_sub(elapsed).max(1);
        }
        let rest = rounded - elapsed;
        if rules.counting.waits_for_one_io {
            rest.max(u64::from(rules.hz.0) / rate + 1)
        } else {
            rest
        }
    }
}

/// What a rate allows in so many ticks (`calculate_bytes_allowed`,
/// `calculate_io_allowed`).
fn allowed(per_s: Option<u64>, ticks: u64, rules: &Rules) -> i64 {
    let Some(rate) = per_s else {
        return i64::MAX;
    };
    let n = u128::from(rate) * u128::from(ticks) / u128::from(rules.hz.0);
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn round_up(at: Jiffies, rules: &Rules) -> Jiffies {
    Jiffies(at.0.next_multiple_of(rules.slice_ticks))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
