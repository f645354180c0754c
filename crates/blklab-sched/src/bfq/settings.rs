// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tunables as BFQ keeps them, and its constants in the units it computes
//! with.

use super::clock::Jiffy;
use crate::{Build, async_depth};
use blklab_types::Hz;

const NS_PER_MS: u64 = 1_000_000;

/// Idling never gets shorter than this by `strict_guarantees`.
const STRICT_IDLE_NS: u64 = 8 * NS_PER_MS;

/// Factor on the weight while it is raised (`bfq_wr_coeff`).
pub(super) const RAISED: u32 = 30;
/// The same for soft real-time processes.
pub(super) const RAISED_SOFT_RT: u32 = RAISED * 100;
/// Sectors per second above which a process is not soft real-time.
pub(super) const MAX_SOFT_RT_RATE: i64 = 7000;
/// Sectors after which an interactive process is not raised any more.
pub(super) const MAX_SERVICE_RAISED: i64 = 120_000;
/// Budget in sectors before anything is known (`bfq_default_max_budget`).
pub(super) const DEFAULT_MAX_BUDGET: i64 = 16 * 1024;
/// Factor on the sectors of async requests where all weights are equal.
pub(super) const ASYNC_CHARGE: i64 = 3;
/// Shortest time that idling for a seeking process is worth (`BFQ_MIN_TT`).
pub(super) const MIN_THINK_NS: u64 = 2 * NS_PER_MS;
/// Least idling for a process whose weight is raised.
pub(super) const RAISED_IDLE_NS: u64 = 20 * NS_PER_MS;

/// Values of one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) hz: Hz,
    /// Age that puts a request first, by sync.
    pub(super) fifo_expire_ns: [u64; 2],
    pub(super) back_max_sectors: u64,
    pub(super) back_penalty: u64,
    pub(super) slice_idle_ns: u64,
    /// 0: automatic.
    pub(super) user_max_budget: i64,
    /// `max_budget` or `timeout_sync` was written while the former was
    /// automatic: the budget is computed at once.
    pub(super) budget_from_rate: bool,
    pub(super) timeout_jiffies: Jiffy,
    pub(super) strict: bool,
    pub(super) low_latency: bool,
    /// `queue/async_depth` if written.
    pub(super) async_depth: Option<u32>,

    /// `HZ / 8` in ms: the time that charging by time counts as a whole budget.
    pub(super) charge_span_ms: i64,
    /// Length of soft real-time raising.
    pub(super) soft_rt_jiffies: Jiffy,
    /// Idleness after which a process is interactive, and the age of a split
    /// from which it is raised again.
    pub(super) min_idle_jiffies: Jiffy,
    /// Silence after which an async queue is raised.
    pub(super) async_idle_jiffies: Jiffy,
    /// How long a queue that is served may be merged.
    pub(super) merge_jiffies: Jiffy,
    /// Least time that the idle class goes without service.
    pub(super) idle_class_jiffies: Jiffy,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>) -> Settings {
        let Hz(hz) = b.hz;
        let number = |name| b.tunables.get(name).unsigned_abs();
        let user_max_budget = b.tunables.get("max_budget");
        let written = |name| b.tunables.written(&[name]).is_some();
        let eighth = b.jiffies("timeout_sync", hz / 8);
        let this = Settings {
            hz: b.hz,
            fifo_expire_ns: [
                number("fifo_expire_async") * NS_PER_MS,
                number("fifo_expire_sync") * NS_PER_MS,
            ],
            back_max_sectors: number("back_seek_max") * 2,
            back_penalty: number("back_seek_penalty"),
            slice_idle_ns: slice_idle_ns(b),
            user_max_budget,
            budget_from_rate: user_max_budget == 0
                && (written("max_budget") || written("timeout_sync")),
            timeout_jiffies: Jiffy::try_from(eighth).unwrap_or(Jiffy::MAX),
            strict: b.tunables.get("strict_guarantees") != 0,
            low_latency: b.tunables.get("low_latency") != 0,
            async_depth: async_depth::written(b),
            charge_span_ms: i64::from(hz / 8) * 1000 / i64::from(hz),
            soft_rt_jiffies: 0,
            min_idle_jiffies: 0,
            async_idle_jiffies: 0,
            merge_jiffies: Jiffy::from(hz / 10),
            idle_class_jiffies: Jiffy::from(hz / 5),
        };
        Settings {
            soft_rt_jiffies: this.ms(300),
            min_idle_jiffies: this.ms(2000),
            async_idle_jiffies: this.ms(500),
            ..this
        }
    }

    /// Milliseconds in jiffies, rounded up.
    pub(super) fn ms(&self, ms: u64) -> Jiffy {
        self.hz.from_ms(ms) as Jiffy
    }

    /// Jiffies in milliseconds, rounded down.
    pub(super) fn in_ms(&self, jiffies: Jiffy) -> i64 {
        jiffies.saturating_mul(1000) / i64::from(self.hz.0)
    }

    /// Nanoseconds in jiffies, rounded down.
    pub(super) fn ns_in_jiffies(&self, ns: u64) -> Jiffy {
        (ns / (1_000_000_000 / u64::from(self.hz.0))) as Jiffy
    }
}

/// `slice_idle` and `slice_idle_us` are one variable; switching
/// `strict_guarantees` on lifts it.
fn slice_idle_ns(b: &Build<'_>) -> u64 {
    let ns = match b.tunables.written(&["slice_idle", "slice_idle_us"]) {
        Some(("slice_idle_us", us)) => us.unsigned_abs() * 1000,
        Some((_, ms)) => ms.unsigned_abs() * NS_PER_MS,
        None => b.tunables.get("slice_idle").unsigned_abs() * NS_PER_MS,
    };
    let names = ["strict_guarantees", "slice_idle", "slice_idle_us"];
    match b.tunables.written(&names) {
        Some(("strict_guarantees", on)) if on != 0 => ns.max(STRICT_IDLE_NS),
        _ => ns,
    }
}
