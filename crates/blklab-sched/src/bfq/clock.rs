// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two clocks of BFQ: jiffies and nanoseconds.

use blklab_block::Cx;

/// A value of the tick counter. Signed, so that times before the start of the
/// run can be told: the counter of a kernel is large when a device appears.
pub(super) type Jiffy = i64;

/// So long ago that any time added to it is past.
pub(super) const LONG_AGO: Jiffy = i64::MIN / 4;

/// The tick counter now.
pub(super) fn jiffies(cx: &Cx<'_>) -> Jiffy {
    cx.jiffies.0 as Jiffy
}

/// Nanoseconds since the start of the run.
pub(super) fn now_ns(cx: &Cx<'_>) -> u64 {
    cx.now.ns()
}

/// Whether a jiffy is over (`time_is_before_jiffies`).
pub(super) fn is_over(cx: &Cx<'_>, jiffy: Jiffy) -> bool {
    jiffy < jiffies(cx)
}

/// Whether a jiffy has come (`time_is_before_eq_jiffies`).
pub(super) fn has_come(cx: &Cx<'_>, jiffy: Jiffy) -> bool {
    jiffy <= jiffies(cx)
}
