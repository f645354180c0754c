// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of distributions: what is known of how each was built and what it took from
//! later releases, as rows of facts with their sources.

mod levels;
mod rows;
mod uname;

pub use levels::Level;
pub use rows::DISTRIBUTIONS;

use crate::KernelVersion;
use levels::level_of;
use std::fmt;
use uname::{Uname, build_number};

/// How a fact is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Somebody read it, in a source or a manual, and nobody measured it here.
    Documented,
    /// We measured it.
    Measured,
    /// It is usual, and we found no source.
    Assumed,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Basis::Documented => "documented",
            Basis::Measured => "measured",
            Basis::Assumed => "assumed",
        })
    }
}

/// A fact, how it is known, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Fact<T: 'static> {
    /// What is so.
    pub value: T,
    /// How it is known.
    pub basis: Basis,
    /// Where that stands, or why it is taken to be so.
    pub source: &'static str,
}

impl<T> Fact<T> {
    const fn documented(value: T, source: &'static str) -> Fact<T> {
        Fact {
            value,
            basis: Basis::Documented,
            source,
        }
    }

    const fn measured(value: T, source: &'static str) -> Fact<T> {
        Fact {
            value,
            basis: Basis::Measured,
            source,
        }
    }

    const fn assumed(value: T, source: &'static str) -> Fact<T> {
        Fact {
            value,
            basis: Basis::Assumed,
            source,
        }
    }
}

/// A part of a kernel that a distribution takes from a release of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The block layer, its schedulers and drivers.
    Block,
    /// The page cache.
    PageCache,
    /// The filesystems.
    Filesystems,
    /// The scheduler of tasks.
    Processor,
}

/// Which scheduler a disk gets without anybody choosing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedulers {
    /// A disk that seeks, with one hardware queue or several.
    pub seeks: Option<&'static str>,
}

impl Schedulers {
    /// The kernel's choice stays as it is.
    const OF_KERNEL: Schedulers = Schedulers { seeks: None };

    /// In words.
    pub fn words(&self) -> String {
        let others = "mq-deadline, none with several hardware queues";
        match self.seeks {
            None => others.to_owned(),
            Some(name) => format!("{name} on disks that seek; {others}"),
        }
    }
}

/// A distribution's kernel.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    /// Its name: `rhel8`.
    pub name: &'static str,
    /// Whose it is, and who builds the same.
    pub title: &'static str,
    /// Other names of it.
    also: &'static [&'static str],
    /// The release that its names begin with.
    pub release: KernelVersion,
    /// How its names end.
    uname: Uname,
    /// A name as `uname -r` prints it.
    pub example: &'static str,
    /// The releases by whose rules the block layer goes, by build, oldest first.
    pub levels: &'static [Level],
    /// The same of the page cache.
    pub page_cache: Fact<KernelVersion>,
    /// Of the filesystems.
    pub filesystems: Fact<KernelVersion>,
    /// Of the scheduler of tasks.
    pub processor: Fact<KernelVersion>,
    /// Ticks per second.
    pub hz: Fact<u32>,
    /// Where a task gives way that is in the kernel: the models know it by release alone.
    pub preemption: Fact<&'static str>,
    /// Which schedulers disks get.
    pub schedulers: Fact<Schedulers>,
    /// The filesystem that its installer makes; none is made unless asked for.
    pub filesystem: Fact<&'static str>,
    /// What else is known, and sets nothing.
    pub remarks: &'static [Fact<&'static str>],
    /// Whether Debian has its source.
    pub is_of_debian: bool,
}

impl Distribution {
    /// The distribution of that name, with or without its hyphens.
    pub fn named(name: &str) -> Option<&'static Distribution> {
        let plain = |name: &str| name.to_ascii_lowercase().replace('-', "");
        let wanted = plain(name);
        let is_it = |d: &&Distribution| d.names().any(|own| plain(own) == wanted);
        DISTRIBUTIONS.iter().find(is_it)
    }

    /// The distribution whose kernel has these numbers and, behind them, this in its name.
    pub(crate) fn of_suffix(kernel: KernelVersion, suffix: &str) -> Option<&'static Distribution> {
        let is_it = |d: &&Distribution| d.release == kernel.series() && d.uname.fits(suffix);
        DISTRIBUTIONS.iter().find(is_it)
    }

    /// All names that it is called by, its own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    /// What its newest build that was read has of the block layer.
    pub fn newest(&self) -> &'static Level {
        self.levels.last().expect("a row has a level")
    }

    /// The release by whose block layer a build of it goes. Numbers that count fixes of
    /// stable kernels stay.
    pub(crate) fn rules_of_build(&self, named: KernelVersion, suffix: &str) -> KernelVersion {
        let level = level_of(self.levels, build_number(suffix));
        let rules = level.rules.value;
        if rules.series() == named.series() {
            named
        } else {
            rules
        }
    }

    /// The release by whose rules a part goes, where the block layer goes by `block`.
    pub(crate) fn rules(&self, part: Part, block: KernelVersion) -> KernelVersion {
        let own = match part {
            Part::Block => block,
            Part::PageCache => self.page_cache.value,
            Part::Filesystems => self.filesystems.value,
            Part::Processor => self.processor.value,
        };
        // Fixes of stable kernels are in all parts.
        if own.series() == block.series() {
            block
        } else {
            own
        }
    }

    /// The release by whose rules each part goes, in words.
    pub(crate) fn rules_in_words(&self, block: KernelVersion) -> String {
        let rules = |part| self.rules(part, block);
        let parts = [
            (Part::Block, "block layer"),
            (Part::PageCache, "page cache"),
            (Part::Filesystems, "filesystems"),
            (Part::Processor, "task scheduler"),
        ];
        if parts.iter().all(|(part, _)| rules(*part) == block) {
            return format!("mainline {block}");
        }
        let words = parts.map(|(part, name)| format!("{name} {}", rules(part)));
        format!("mainline by part: {}", words.join(", "))
    }
}

impl PartialEq for Distribution {
    fn eq(&self, other: &Distribution) -> bool {
        self.name == other.name
    }
}

#[cfg(test)]
mod tests;
