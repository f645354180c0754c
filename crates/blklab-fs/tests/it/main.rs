// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page cache on a small machine: whole tasks in virtual time.

mod cow;
mod direct;
mod draw;
mod eras;
mod eras_mq;
mod ext3;
mod ext3_names;
mod ext3_random;
mod ext4;
mod ext4_property;
mod flush;
mod machine;
mod ntfs3g;
mod property;
mod read;
mod reiserfs;
mod sync;
mod volumes;
mod write;
mod xfs;

use blklab_fs::Filesystem;
use blklab_kernel::KernelVersion;
use blklab_pagecache::{Config, Features, PageCache};
use blklab_types::Span;
use machine::{Disk, Machine};

/// 75 MB/s and 100 us per request.
pub(crate) const DISK: Disk = Disk {
    per_request: Span::from_us(100),
    bytes_per_s: 75_000_000,
    bad_sector: None,
};

pub(crate) const MIB: u64 = 1 << 20;

/// A release by its numbers.
pub(crate) fn kernel([a, b, c]: [u16; 3]) -> KernelVersion {
    match a {
        2 => KernelVersion::v2_6(c),
        _ => KernelVersion::new(a, b),
    }
}

/// The page cache of a release.
pub(crate) const fn rules_of(release: &str) -> Features {
    Features::of(KernelVersion::row(release))
}

/// A machine of so much memory, on which a kernel of these features runs.
pub(crate) fn boot(features: Features, memory_bytes: u64) -> (Machine, PageCache<Machine>) {
    boot_with(Config::new(features, memory_bytes), DISK)
}

pub(crate) fn boot_with(config: Config, disk: Disk) -> (Machine, PageCache<Machine>) {
    boot_on(Filesystem::Extents(()), config, disk)
}

/// A machine with that filesystem.
pub(crate) fn boot_on(
    filesystem: Filesystem,
    config: Config,
    disk: Disk,
) -> (Machine, PageCache<Machine>) {
    let machine = Machine::new(disk);
    let cache = PageCache::new(machine.clone(), config, filesystem).expect("the settings work");
    cache.start();
    (machine, cache)
}
