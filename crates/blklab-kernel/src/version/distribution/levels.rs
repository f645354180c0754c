// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which release's block layer a build of a distribution has.

use super::Fact;
use crate::KernelVersion;

/// From a build on, the block layer goes by the rules of a release.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The first build with it, as its names count: 348 of `4.18.0-348.el8`.
    pub build: u32,
    /// The release.
    pub rules: Fact<KernelVersion>,
}

impl Level {
    pub(super) const fn documented(
        build: u32,
        release: &'static str,
        source: &'static str,
    ) -> Level {
        Level {
            build,
            rules: Fact::documented(KernelVersion::row(release), source),
        }
    }

    pub(super) const fn assumed(build: u32, release: &'static str, source: &'static str) -> Level {
        Level {
            build,
            rules: Fact::assumed(KernelVersion::row(release), source),
        }
    }

    pub(super) const fn measured(build: u32, release: &'static str, source: &'static str) -> Level {
        Level {
            build,
            rules: Fact::measured(KernelVersion::row(release), source),
        }
    }
}

/// The level of a build, the newest where the name does not count builds; what was before
/// the first that is known has the first.
pub(super) fn level_of(levels: &'static [Level], build: Option<u32>) -> &'static Level {
    let is_there = |level: &&Level| build.is_none_or(|build| level.build <= build);
    let mut newest_first = levels.iter().rev();
    newest_first.find(is_there).unwrap_or(&levels[0])
}
