// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ's tunables. Source: block/bfq-iosched.c of 5.10, 6.1, 6.12 and 7.3.

use crate::async_depth;
use blklab_kernel::{KernelVersion, Tunable, Unit};

const FIRST: KernelVersion = KernelVersion::new(5, 0);
const INT_MAX: i64 = i32::MAX as i64;

const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    least: i64,
    most: i64,
    help: &'static str,
) -> Tunable {
    Tunable {
        name,
        unit,
        default,
        range: (least, most),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help,
    }
}

pub(super) const TUNABLES: &[Tunable] = &[
    row(
        "fifo_expire_sync",
        Unit::Ms,
        125,
        1,
        INT_MAX,
        "age at which the oldest sync request of a queue goes first, once per service slot",
    ),
    row(
        "fifo_expire_async",
        Unit::Ms,
        250,
        1,
        INT_MAX,
        "age at which the oldest async request of a queue goes first, once per service slot",
    ),
    row(
        "back_seek_max",
        Unit::KiB,
        16384,
        0,
        INT_MAX,
        "distance behind the head within which a request may still be next",
    ),
    row(
        "back_seek_penalty",
        Unit::Count,
        2,
        1,
        INT_MAX,
        "factor on distances behind the head",
    ),
    row(
        "slice_idle",
        Unit::Ms,
        8,
        0,
        INT_MAX,
        "how long BFQ idles for the next request of a queue; 0: never",
    ),
    row(
        "slice_idle_us",
        Unit::Us,
        8000,
        0,
        u32::MAX as i64,
        "slice_idle in microseconds",
    ),
    row(
        "max_budget",
        Unit::Sectors,
        0,
        0,
        INT_MAX,
        "most sectors of a queue per service slot; 0: follows the device's peak rate",
    ),
    row(
        "timeout_sync",
        Unit::Ms,
        125,
        1,
        INT_MAX,
        "longest service slot, of sync and async queues",
    ),
    row(
        "strict_guarantees",
        Unit::Bool,
        0,
        0,
        1,
        "one request at the device at a time, and always idle",
    ),
    row(
        "low_latency",
        Unit::Bool,
        1,
        0,
        1,
        "raise the weight of interactive and soft real-time processes",
    ),
    async_depth::THREE_QUARTERS,
];
