// SPDX-License-Identifier: MIT OR Apache-2.0
//! btrfs of August 2008, released and in development, and today's.

use super::BtrfsOptions;
use crate::jbd::Barrier;
use crate::kind::{ATIME, BARRIER, COMMIT_S, Kind, MountOption, Mounting, numbers, switch, words};
use crate::vfs::VfsFeatures;
use blklab_types::{PAGE_BYTES, Unit};

/// btrfs of today.
pub(crate) const BTRFS: Kind<BtrfsOptions> = Kind {
    name: "btrfs",
    summary: "btrfs of today, as far as specified",
    page: Some("btrfs"),
    options: OPTIONS,
    choose: |m| options(m, BtrfsOptions::today()),
    ..Kind::PLAIN
};

/// btrfs as released in August 2008.
pub(crate) const BTRFS_0_16: Kind<BtrfsOptions> = Kind {
    name: "btrfs-0.16",
    summary: "btrfs of August 2008",
    choose: |m| options(m, BtrfsOptions::of_0_16()),
    ..BTRFS
};

/// btrfs as it was in development then.
pub(crate) const BTRFS_UNSTABLE: Kind<BtrfsOptions> = Kind {
    name: "btrfs-unstable",
    summary: "its development tree of August 2008",
    choose: |m| options(m, BtrfsOptions::of_unstable()),
    ..BTRFS
};

const OPTIONS: &[MountOption] = &[
    words(
        "metadata",
        &["dup", "single"],
        "dup",
        "copies of a tree block",
    ),
    words(
        "nodesize",
        &["4096", "8192", "16384", "32768", "65536"],
        "16384; 4096 in 2008",
        "bytes of a tree block",
    ),
    numbers(
        "max_inline",
        (0, 3949),
        Unit::Bytes,
        "2048; 3899 in 2008",
        "bytes of the largest file that lies in a leaf",
    ),
    COMMIT_S,
    numbers(
        "metadata_dirty_mib",
        (1, 1_048_576),
        Unit::MiB,
        "32",
        "MiB of dirty tree blocks below which the flusher leaves them alone",
    ),
    numbers(
        "kept_back_percent",
        (0, 99),
        Unit::Percent,
        "50; 0 in btrfs-0.16",
        "share of dirty tree blocks that a pass of the flusher leaves alone",
    ),
    switch(
        "log_tree",
        "1; 0 in 2008",
        "whether fsync writes a log of its own",
    ),
    BARRIER,
    ATIME,
];

/// The options of a volume.
fn options(m: &Mounting<'_>, d: BtrfsOptions) -> BtrfsOptions {
    let vfs = VfsFeatures::of(m.kernel);
    let number = |key, default| m.number_or(key, default);
    let flag = |key, default| m.flag(key, default);
    let dirty_mib = m.number("metadata_dirty_mib");
    BtrfsOptions {
        node_pages: m
            .number("nodesize")
            .map_or(d.node_pages, |n| (n / PAGE_BYTES) as u32),
        metadata_dup: m.option("metadata") != Some("single"),
        max_inline_bytes: number("max_inline", d.max_inline_bytes),
        log_tree: flag("log_tree", d.log_tree),
        commit_s: number("commit_s", d.commit_s),
        metadata_dirty_bytes: dirty_mib.map_or(d.metadata_dirty_bytes, |n| n << 20),
        kept_back_percent: number("kept_back_percent", d.kept_back_percent),
        barrier: Barrier::new(flag("barrier", true), vfs.flush_fua),
        atime: m.atime(vfs.atime),
        checksum_cost: (m.cpu_time)(d.checksum_cost),
        change_cost: (m.cpu_time)(d.change_cost),
        ..d
    }
}
