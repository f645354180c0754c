// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which release of fio the jobs follow.
//!
//! Everything is fio 3.33's unless a feature here says otherwise. Sources of
//! the differences: fio 1.24 (February 2009) as recorded on Linux 2.6.28: a
//! trace with the reads of one job, and the number of reads of 270 jobs.

use std::fmt;
use std::str::FromStr;

/// A release of fio whose rules are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 1.24, February 2009.
    V1_24,
    /// 3.33, December 2022.
    #[default]
    V3_33,
}

/// All releases and their names.
pub const RELEASES: [(Release, &str); 2] = [(Release::V1_24, "1.24"), (Release::V3_33, "3.33")];

impl Release {
    /// Its number, as `fio --version` has it.
    pub fn name(self) -> &'static str {
        match self {
            Release::V1_24 => "1.24",
            Release::V3_33 => "3.33",
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A release that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRelease(String);

impl fmt::Display for UnknownRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fio {}: its rules are not known; there are 1.24 (February 2009) and 3.33",
            blklab_types::shown(&self.0)
        )
    }
}

impl std::error::Error for UnknownRelease {}

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Release, UnknownRelease> {
        let known = RELEASES.iter().find(|(_, name)| *name == text);
        known
            .map(|(release, _)| *release)
            .ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}

/// What a release does differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Random offsets come from the C library's 48-bit generator, up to five
    /// draws, then from the map; random lengths are rounded up (3.33: from a
    /// Tausworthe generator, one draw, then the next free block; rounded down).
    pub draws_of_2009: bool,
    /// Files are opened, dropped from the cache and advised before the run
    /// time begins (3.33: within it, before a file's first I/O).
    pub opens_before_run_time: bool,
    /// Files are written before the jobs start and stay in the cache (3.33:
    /// they count as written long before).
    pub writes_files_first: bool,
}

impl Features {
    /// The features of a release.
    pub fn of(release: Release) -> Features {
        let old = release < Release::V3_33;
        Features {
            draws_of_2009: old,
            opens_before_run_time: old,
            writes_files_first: old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_names_and_others_are_refused() {
        for (release, name) in RELEASES {
            assert_eq!(name.parse(), Ok(release));
            assert_eq!(release.name(), name);
        }
        let error = "2.0".parse::<Release>().unwrap_err().to_string();
        assert!(error.starts_with("fio 2.0: "), "{error}");
    }
}
