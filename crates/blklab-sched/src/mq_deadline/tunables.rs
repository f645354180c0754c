// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables and the settings made of them.

use crate::Build;
use blklab_kernel::{KernelVersion, Tunable, Unit};

const FIRST: KernelVersion = KernelVersion::new(5, 0);
const INT_MAX: i64 = i32::MAX as i64;

const fn tunable(
    name: &'static str,
    unit: Unit,
    default: i64,
    range: (i64, i64),
    help: &'static str,
) -> Tunable {
    Tunable {
        name,
        unit,
        default,
        range,
        since: FIRST,
        until: KernelVersion::FOREVER,
        help,
    }
}

/// The files in `queue/iosched`.
pub(super) const TUNABLES: &[Tunable] = &[
    tunable(
        "read_expire",
        Unit::Ms,
        500,
        (0, INT_MAX),
        "age at which the oldest read starts the next read batch",
    ),
    tunable(
        "write_expire",
        Unit::Ms,
        5000,
        (0, INT_MAX),
        "age at which the oldest write starts the next write batch",
    ),
    tunable(
        "writes_starved",
        Unit::Count,
        2,
        (-INT_MAX - 1, INT_MAX),
        "read batches that go before waiting writes; negative: all",
    ),
    tunable(
        "front_merges",
        Unit::Bool,
        1,
        (0, 1),
        "look for requests that a bio could be put in front of",
    ),
    tunable(
        "fifo_batch",
        Unit::Count,
        16,
        (0, INT_MAX),
        "requests of a batch",
    ),
    Tunable {
        since: KernelVersion::new(5, 14),
        ..tunable(
            "async_depth",
            Unit::Count,
            256,
            (1, INT_MAX),
            "scheduler tags for all but sync reads; nr_requests unless written",
        )
    },
    Tunable {
        since: KernelVersion::new(5, 16),
        ..tunable(
            "prio_aging_expire",
            Unit::Ms,
            10_000,
            (0, INT_MAX),
            "age at which a request is served before higher classes",
        )
    },
];

/// Settings in the units of the scheduler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) expire_jiffies: [u64; 2],
    pub(super) aging_jiffies: u64,
    /// Compared without its sign: a negative number is a large one.
    pub(super) writes_starved: u32,
    pub(super) fifo_batch: u32,
    pub(super) front_merges: bool,
    /// If written.
    pub(super) async_depth: Option<u32>,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>) -> Settings {
        let ms = |name| b.hz.from_ms(b.tunables.get(name).unsigned_abs());
        let number = |name| b.tunables.get(name) as i32 as u32;
        let has = |name| b.tunables.names().any(|n| n == name);
        let aging = "prio_aging_expire";
        Settings {
            expire_jiffies: [ms("read_expire"), ms("write_expire")],
            aging_jiffies: if has(aging) { ms(aging) } else { 0 },
            writes_starved: number("writes_starved"),
            fifo_batch: number("fifo_batch"),
            front_merges: b.tunables.get("front_merges") != 0,
            async_depth: b
                .tunables
                .written(&["async_depth"])
                .map(|(_, n)| n as i32 as u32),
        }
    }
}
