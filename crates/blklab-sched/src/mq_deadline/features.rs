// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between releases.
//!
//! Read were 5.10, 5.15, 6.1.192 and 6.12.117; a release stands for the stable
//! kernels that follow it.

use blklab_kernel::{Change, KernelVersion};

/// How `async_depth` limits requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsyncDepth {
    /// Not at all.
    Absent,
    /// It is the number of tags per word; three quarters of all by default.
    OfWord,
    /// It counts all tags, and is scaled to words.
    ScaledToWord,
    /// It counts all tags.
    Total,
}

/// What a release does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// All hardware queues are run as one (5.12).
    pub(super) runs_as_one: bool,
    /// Requests are kept apart by priority class, with a list each for those
    /// inserted at the head, and each direction keeps its position when the
    /// other is served (5.14).
    pub(super) classes: bool,
    /// A lower class waits until a higher one has nothing in the driver, or
    /// until it has aged (5.16).
    pub(super) strict: bool,
    /// The position is a sector, not a request (6.5).
    pub(super) position_is_sector: bool,
    /// Requests inserted at the head are on one list for all classes (5.10,
    /// 6.12).
    pub(super) one_head_list: bool,
    /// The limit of all but sync reads.
    pub(super) async_depth: AsyncDepth,
}

impl Features {
    pub(super) fn of(v: KernelVersion) -> Features {
        Features {
            runs_as_one: v.since(5, 12),
            classes: v.since(5, 14),
            strict: v.since(5, 16),
            position_is_sector: v.since(6, 5),
            one_head_list: v.since(6, 12) || !v.since(5, 14),
            async_depth: if v.since(6, 12) {
                AsyncDepth::Total
            } else if v.since(6, 1) {
                AsyncDepth::ScaledToWord
            } else if v.since(5, 14) {
                AsyncDepth::OfWord
            } else {
                AsyncDepth::Absent
            },
        }
    }
}

const SOURCE: &str = "block/mq-deadline.c";

/// One entry for each release at which [`Features::of`] changes.
pub(super) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::new(5, 12),
        what: "all hardware queues are run as one",
        source: "block/blk-mq.c",
    },
    Change {
        release: KernelVersion::new(5, 14),
        what: "priority classes; positions of both directions are kept; async_depth",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(5, 16),
        what: "a class waits for the requests of a higher one in the driver, or until it has aged",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(6, 1),
        what: "async_depth counts all tags and is scaled to words (as in 6.1.192)",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(6, 5),
        what: "a batch goes on at the first request behind a sector, not at a request",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(6, 12),
        what: "one list for requests inserted at the head; async_depth is total (as in 6.12.117)",
        source: "block/mq-deadline.c, block/blk-mq.c, lib/sbitmap.c",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
