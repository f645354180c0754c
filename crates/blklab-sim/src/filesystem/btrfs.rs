// SPDX-License-Identifier: MIT OR Apache-2.0
//! btrfs of August 2008, released and in development, and today's.

use super::{atime, flag, number};
use blklab_experiment::Experiment;
use blklab_fs::{Barrier, BtrfsOptions, ExtFeatures};
use blklab_types::PAGE_BYTES;

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> BtrfsOptions {
    let spec = &e.filesystem;
    let of_kernel = ExtFeatures::of_release(e.kernel.numbers());
    let d = match spec.name.as_str() {
        "btrfs-0.16" => BtrfsOptions::of_0_16(),
        "btrfs-unstable" => BtrfsOptions::of_unstable(),
        _ => BtrfsOptions::today(),
    };
    let number = |key, default| number(spec, key, default);
    let flag = |key, default| flag(spec, key, default);
    let dirty_mib = spec.number("metadata_dirty_mib");
    BtrfsOptions {
        node_pages: spec
            .number("nodesize")
            .map_or(d.node_pages, |n| (n / PAGE_BYTES) as u32),
        metadata_dup: spec.option("metadata") != Some("single"),
        max_inline_bytes: number("max_inline", d.max_inline_bytes),
        log_tree: flag("log_tree", d.log_tree),
        commit_s: number("commit_s", d.commit_s),
        metadata_dirty_bytes: dirty_mib.map_or(d.metadata_dirty_bytes, |n| n << 20),
        kept_back_percent: number("kept_back_percent", d.kept_back_percent),
        barrier: Barrier::new(flag("barrier", true), of_kernel.flush_fua),
        atime: atime(spec, of_kernel.atime),
        checksum_cost: e.cpu_time(d.checksum_cost),
        change_cost: e.cpu_time(d.change_cost),
        ..d
    }
}

#[cfg(test)]
mod tests {
    use blklab_fs::BtrfsOptions;
    use blklab_workload::compilebench::shape::{Set, Shape};

    #[test]
    fn half_of_a_source_tree_lies_in_leaves() {
        let most = u64::from(BtrfsOptions::of_0_16().max_inline_bytes);
        let files = Shape::recorded().files_of(Set::Unpatched);
        let sizes = files.iter().map(|f| f.1).filter(|bytes| *bytes <= most);
        let (count, bytes) = sizes.fold((0, 0), |(n, sum), b| (n + 1, sum + b));
        assert_eq!((count, bytes), (10_431, 15_662_948));
    }
}
