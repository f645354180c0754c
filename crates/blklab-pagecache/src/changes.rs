// SPDX-License-Identifier: MIT OR Apache-2.0
//! What releases changed in the page cache.

use blklab_kernel::{Change, KernelVersion};

/// One entry for each release at which [`Features::of`](crate::Features::of) changes.
pub const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(22),
        what: "the ratios are 10 and 5",
        source: "mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(23),
        what: "read-ahead on demand instead of two windows",
        source: "mm/readahead.c",
    },
    Change {
        release: KernelVersion::v2_6(24),
        what: "a dirty limit per device; three lists of inodes",
        source: "mm/page-writeback.c, fs/fs-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(25),
        what: "background work waits, rather than ends, while inodes are left on more_io; it does not sleep before it ends",
        source: "fs/fs-writeback.c, mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(28),
        what: "block devices can be discarded",
        source: "block/ioctl.c",
    },
    Change {
        release: KernelVersion::v2_6(29),
        what: "all pages that a task dirties count for its share; a walk stops at the very page",
        source: "mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(30),
        what: "the ratios are 20 and 10; integrity writes are synchronous",
        source: "mm/page-writeback.c, fs/fs-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(31),
        what: "read-ahead looks at the pages before a read; throttled writers write only above their limit",
        source: "mm/readahead.c, mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(32),
        what: "a flusher thread per device; writers over their limit wait by the clock",
        source: "fs/fs-writeback.c, mm/backing-dev.c, mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(33),
        what: "O_SYNC writes its range; direct writes do not unplug one by one; fsync on a block device flushes",
        source: "mm/filemap.c, fs/direct-io.c, fs/block_dev.c",
    },
    Change {
        release: KernelVersion::v2_6(34),
        what: "under the advice of random access whole requests are read",
        source: "mm/readahead.c, mm/fadvise.c",
    },
    Change {
        release: KernelVersion::v2_6(36),
        what: "integrity walks tag their pages; the flusher sleeps while nothing is dirty",
        source: "mm/page-writeback.c, fs/fs-writeback.c",
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "no floor below the dirty ratio; FLUSH instead of barriers",
        source: "mm/page-writeback.c, block/blk-flush.c",
    },
    Change {
        release: KernelVersion::v2_6(39),
        what: "fsync waits for the data before the filesystem's step",
        source: "fs/sync.c, fs/ext4/fsync.c",
    },
    Change {
        release: KernelVersion::new(3, 0),
        what: "pages under write-back are not changed; faults mark where read-ahead goes on; the bios of a discard are waited for together",
        source: "mm/filemap.c, block/blk-lib.c",
    },
    Change {
        release: KernelVersion::new(3, 2),
        what: "writers sleep, and only the flusher writes, in slices",
        source: "mm/page-writeback.c, fs/fs-writeback.c",
    },
    Change {
        release: KernelVersion::new(3, 6),
        what: "proportions age by time",
        source: "mm/page-writeback.c, lib/flex_proportions.c",
    },
    Change {
        release: KernelVersion::new(3, 8),
        what: "the bios of a discard are plugged",
        source: "block/blk-lib.c",
    },
    Change {
        release: KernelVersion::new(3, 9),
        what: "pages are stable only where the device asks for it",
        source: "mm/page-writeback.c",
    },
    Change {
        release: KernelVersion::new(3, 12),
        what: "cautious read-ahead by context; workers end queued writes with O_SYNC",
        source: "mm/readahead.c, fs/direct-io.c",
    },
    Change {
        release: KernelVersion::new(3, 15),
        what: "anonymous memory does not count for the limits; windows are at most 2 MiB",
        source: "mm/page-writeback.c, mm/readahead.c",
    },
    Change {
        release: KernelVersion::new(3, 16),
        what: "fsync flushes without a journal, too",
        source: "fs/libfs.c, fs/ext4/fsync.c",
    },
    Change {
        release: KernelVersion::new(4, 3),
        what: "a plug over whole rounds of the flusher",
        source: "fs/fs-writeback.c",
    },
    Change {
        release: KernelVersion::new(4, 4),
        what: "windows are as large as the device says",
        source: "mm/readahead.c",
    },
    Change {
        release: KernelVersion::new(4, 7),
        what: "the last bio of a discard is synchronous",
        source: "block/blk-lib.c",
    },
    Change {
        release: KernelVersion::new(4, 10),
        what: "background and direct writes are marked for write-back throttling; direct O_DSYNC writes to block devices carry FUA",
        source: "fs/fs-writeback.c, fs/block_dev.c, mm/readahead.c",
    },
    Change {
        release: KernelVersion::new(4, 12),
        what: "a discard drops the pages of its range",
        source: "block/ioctl.c",
    },
    Change {
        release: KernelVersion::new(4, 18),
        what: "direct O_DSYNC writes that overwrite a file carry FUA",
        source: "fs/iomap.c",
    },
    Change {
        release: KernelVersion::new(5, 0),
        what: "devices split bios themselves and are never congested",
        source: "block/blk-merge.c, mm/readahead.c, fs/block_dev.c",
    },
    Change {
        release: KernelVersion::new(5, 9),
        what: "a discard that does not begin at the granularity has a bio up to there",
        source: "block/blk-lib.c",
    },
    Change {
        release: KernelVersion::new(5, 18),
        what: "read-ahead fills large folios, of filesystems that have them",
        source: "mm/readahead.c",
    },
    Change {
        release: KernelVersion::new(6, 6),
        what: "direct writes to block devices are plugged like reads",
        source: "block/fops.c",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        let features = |v| Features::of(v).expect("a release that is modelled");
        blklab_kernel::check_changes(CHANGES, era, features);
    }
}
