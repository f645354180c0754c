// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be said of a filesystem before it is mounted, and how its options
//! are chosen.

use blklab_kernel::{Change, KernelVersion};
use blklab_pagecache::Atime;
use blklab_types::{Span, Unit};
use std::fmt;

/// A filesystem by its name, mounted with options of type `O`: a row of
/// [`ALL`](crate::ALL).
#[derive(Debug)]
pub struct Kind<O> {
    /// How it is chosen: `ext3`.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The page below `docs/filesystems/` that explains its options, if it has any.
    pub page: Option<&'static str>,
    /// The release that it came with, of those that are modelled.
    pub since: KernelVersion,
    /// The release that it went with.
    pub until: KernelVersion,
    /// Options that it takes.
    pub options: &'static [MountOption],
    /// What the releases changed in it.
    pub changes: &'static [Change],
    /// The volume that is chosen.
    pub choose: fn(&Mounting<'_>) -> O,
    /// What the mount says.
    pub notes: fn(&Mounting<'_>) -> Vec<String>,
}

impl<O> Kind<O> {
    /// One that takes nothing, is there in all releases, and says nothing.
    pub(crate) const PLAIN: Kind<O> = Kind {
        name: "",
        summary: "",
        page: None,
        since: KernelVersion::v2_6(0),
        until: KernelVersion::FOREVER,
        options: &[],
        changes: &[],
        choose: |_| unreachable!("every row says what is chosen"),
        notes: |_| Vec::new(),
    };

    /// The same filesystem, whose volume is chosen so.
    pub(crate) const fn choosing<P>(&self, choose: fn(&Mounting<'_>) -> P) -> Kind<P> {
        Kind {
            name: self.name,
            summary: self.summary,
            page: self.page,
            since: self.since,
            until: self.until,
            options: self.options,
            changes: self.changes,
            choose,
            notes: self.notes,
        }
    }

    /// Whether a kernel has it.
    pub fn is_in(&self, kernel: KernelVersion) -> bool {
        kernel.is_within(self.since, self.until)
    }
}

/// An option of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOption {
    /// Its name.
    pub key: &'static str,
    /// What it takes.
    pub values: Values,
    /// What it is if not given, in words: releases differ.
    pub default: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A number from the first to the last of these units.
    Numbers(u32, u32, Unit),
}

/// An option that takes one of these words.
pub(crate) const fn words(
    key: &'static str,
    words: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> MountOption {
    MountOption {
        key,
        values: Values::Words(words),
        default,
        help,
    }
}

/// An option that is 0 or 1.
pub(crate) const fn switch(
    key: &'static str,
    default: &'static str,
    help: &'static str,
) -> MountOption {
    words(key, &["0", "1"], default, help)
}

/// An option that takes a number from `low` to `high`.
pub(crate) const fn numbers(
    key: &'static str,
    (low, high): (u32, u32),
    unit: Unit,
    default: &'static str,
    help: &'static str,
) -> MountOption {
    MountOption {
        key,
        values: Values::Numbers(low, high, unit),
        default,
        help,
    }
}

/// `atime`.
pub(crate) const ATIME: MountOption = words(
    "atime",
    &["strict", "relative", "never"],
    "by release: strict, then relative",
    "when a read changes the access time",
);
/// `barrier`.
pub(crate) const BARRIER: MountOption = switch(
    "barrier",
    "by filesystem and release",
    "the log is ordered against the disk's cache",
);
/// `commit_s`.
pub(crate) const COMMIT_S: MountOption = numbers(
    "commit_s",
    (1, 3600),
    Unit::S,
    "5; 30 on btrfs",
    "time between commits",
);
/// `journal_blocks`.
pub(crate) const JOURNAL_BLOCKS: MountOption = numbers(
    "journal_blocks",
    (1024, 10_240_000),
    Unit::Blocks,
    "by size of the disk",
    "blocks of 4 KiB of the journal",
);
/// `inode_size`.
pub(crate) const INODE_SIZE: MountOption = words(
    "inode_size",
    &["128", "256"],
    "256",
    "bytes of an inode on the disk",
);

/// What a volume is chosen by.
pub struct Mounting<'a> {
    /// Options that were given; each is one of the filesystem's, with a value that
    /// it takes.
    pub options: &'a [(String, String)],
    /// The kernel.
    pub kernel: KernelVersion,
    /// Sectors of the volume.
    pub sectors: u64,
    /// Draws what the kernel draws.
    pub seed: u64,
    /// The process that laid out the files from before the run.
    pub creator_pid: u32,
    /// Whether the device below carries out barriers.
    pub orders_writes: bool,
    /// Processor time on the machine for that of the one that was measured.
    pub cpu_time: &'a dyn Fn(Span) -> Span,
}

impl fmt::Debug for Mounting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounting")
            .field("options", &self.options)
            .field("kernel", &self.kernel)
            .field("sectors", &self.sectors)
            .finish_non_exhaustive()
    }
}

impl Mounting<'_> {
    /// The value given to an option.
    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// The same for a number.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let value = self.option(key)?;
        Some(value.parse().expect("options were checked"))
    }

    /// A number, or the default.
    pub(crate) fn number_or(&self, key: &str, default: u32) -> u32 {
        let value = self.number(key);
        value.map_or(default, |n| u32::try_from(n).expect("its range is smaller"))
    }

    /// 0 or 1, or the default.
    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        self.number(key).map_or(default, |n| n != 0)
    }

    /// `atime`.
    pub(crate) fn atime(&self, default: Atime) -> Atime {
        match self.option("atime") {
            Some("strict") => Atime::Strict,
            Some("relative") => Atime::Relative,
            Some("never") => Atime::Never,
            _ => default,
        }
    }
}
