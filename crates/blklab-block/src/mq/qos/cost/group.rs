// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group under the cost controller: its clock, who waits, what it owes.

use blklab_types::{TaskId, Time};
use std::collections::VecDeque;

/// A bio whose task sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) task: TaskId,
    /// Its cost as if the group had the whole device.
    pub(super) cost: u64,
}

/// Times that a group spent, in us (`iocg_stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) usage: u64,
    pub(super) wait: u64,
    pub(super) in_debt: u64,
    pub(super) in_delay: u64,
}

impl Spent {
    /// What was added since `before`.
    pub(super) fn since(&self, before: &Spent) -> Spent {
        Spent {
            usage: self.usage - before.usage,
            wait: self.wait - before.wait,
            in_debt: self.in_debt - before.in_debt,
            in_delay: self.in_delay - before.in_delay,
        }
    }

    pub(super) fn add(&mut self, more: &Spent) {
        self.usage += more.usage;
        self.wait += more.wait;
        self.in_debt += more.in_debt;
        self.in_delay += more.in_delay;
    }
}

/// A control group on this device (`ioc_gq`). Device times may lie before the start of
/// the run.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// It is on the list of active groups.
    pub(super) is_active: bool,
    /// Since when, in us.
    pub(super) active_since: u64,
    /// The number of the period in which it had its last bio.
    pub(super) last_period: u64,
    /// The sector behind its last bio; 0: there was none.
    pub(super) cursor: u64,
    /// Its clock, and where that will be when all of its bios have ended (`vtime`,
    /// `done_vtime`).
    pub(super) clock: i64,
    pub(super) clock_done: i64,
    /// Its credit when what it has in use changed last (`saved_margin`).
    pub(super) credit_then: i64,
    pub(super) waiters: VecDeque<Waiter>,
    /// When the first of them is looked at, at the earliest.
    pub(super) looks_at: Option<Time>,
    /// What it owes, as if it had the whole device (`abs_vdebt`).
    pub(super) debt: u64,
    /// How long system calls of its tasks are held up, in us, and since when.
    pub(super) delay_us: u64,
    pub(super) delay_since: u64,
    /// The delay in effect, in us (`blkcg_set_delay`).
    pub(super) held_us: u64,
    /// What its bios cost in all, and as of the last period (`abs_vusage`).
    pub(super) used: u64,
    pub(super) used_before: u64,
    /// Device time that it used in the last period, in us (`usage_delta_us`).
    pub(super) usage_us: u64,
    pub(super) waits_since: Option<u64>,
    pub(super) in_debt_since: Option<u64>,
    pub(super) in_delay_since: Option<u64>,
    pub(super) spent: Spent,
    /// The same as of the last period, which is what `io.stat` shows (`last_stat`).
    pub(super) told: Spent,
}

impl Group {
    /// Whether its clock is not beyond the device's once this is charged.
    pub(super) fn has_room(&self, charged: u64, device: i64) -> bool {
        self.clock + charged as i64 <= device
    }

    /// A bio takes its cost from the clock (`iocg_commit_bio`).
    pub(super) fn commit(&mut self, cost: u64, charged: u64) {
        self.clock += charged as i64;
        self.used += cost;
    }

    /// The clock goes on without a bio, beside what is on its way.
    pub(super) fn skip(&mut self, device_time: i64) {
        self.clock += device_time;
        self.clock_done += device_time;
    }
}
