// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between releases.
//!
//! Read were 5.10, 5.15, 6.1.192, 6.12.117 and 7.3.4; a release stands for the stable
//! kernels that follow it.

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
    /// It is that of the queue ([`crate::async_depth`]).
    OfQueue,
}

const SOURCE: &str = "block/mq-deadline.c";

blklab_kernel::features! {
    /// What a release does.
    pub(super) struct Features {
        /// All hardware queues are run as one (5.12).
        pub(super) runs_as_one: bool = false,
        /// Requests are kept apart by priority class, with a list each for those
        /// inserted at the head, and each direction keeps its position when the
        /// other is served (5.14).
        pub(super) classes: bool = false,
        /// A lower class waits until a higher one has nothing in the driver, or
        /// until it has aged (5.16).
        pub(super) strict: bool = false,
        /// The position is a sector, not a request (6.5).
        pub(super) position_is_sector: bool = false,
        /// Requests inserted at the head are on one list for all classes (5.10,
        /// 6.12).
        pub(super) one_head_list: bool = true,
        /// The limit of all but sync reads.
        pub(super) async_depth: AsyncDepth = AsyncDepth::Absent,
    }

    /// One entry for each release at which [`Features::of`] changes.
    pub(super) const CHANGES = {
        "5.12": "all hardware queues are run as one", "block/blk-mq.c" => {
            runs_as_one: true,
        }
        "5.14": "priority classes; positions of both directions are kept; async_depth", SOURCE => {
            classes: true,
            one_head_list: false,
            async_depth: AsyncDepth::OfWord,
        }
        "5.16": "a class waits for the requests of a higher one in the driver, or until it has aged",
            SOURCE => {
            strict: true,
        }
        "6.1": "async_depth counts all tags and is scaled to words (as in 6.1.192)", SOURCE => {
            async_depth: AsyncDepth::ScaledToWord,
        }
        "6.5": "a batch goes on at the first request behind a sector, not at a request", SOURCE => {
            position_is_sector: true,
        }
        "6.12": "one list for requests inserted at the head; async_depth is total (as in 6.12.117)",
            "block/mq-deadline.c, block/blk-mq.c, lib/sbitmap.c" => {
            one_head_list: true,
            async_depth: AsyncDepth::Total,
        }
        "7.0": "async_depth belongs to the queue: a write to nr_requests scales it, and wake-ups are batched by it",
            "block/mq-deadline.c, block/blk-sysfs.c, block/blk-mq.c" => {
            async_depth: AsyncDepth::OfQueue,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
