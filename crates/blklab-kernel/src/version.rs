// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel releases.

use blklab_types::shown;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A kernel release. The fourth number of 2.6.x.y and stable numbers of later
/// series are accepted and dropped: no modelled behaviour depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

/// Why a version was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionError(String);

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VersionError {}

impl KernelVersion {
    /// Later than every release: what has no end yet.
    pub const FOREVER: KernelVersion = KernelVersion::new(u16::MAX, 0);

    /// The newest release that the models know.
    pub const NEWEST: KernelVersion = KernelVersion::new(6, 18);

    /// Release 2.6.`patch`.
    pub const fn v2_6(patch: u16) -> KernelVersion {
        KernelVersion {
            major: 2,
            minor: 6,
            patch,
        }
    }

    /// Release `major`.`minor` of the 3.x and later series.
    pub const fn new(major: u16, minor: u16) -> KernelVersion {
        KernelVersion {
            major,
            minor,
            patch: 0,
        }
    }

    /// The three numbers; the third is 0 from 3.0 on.
    pub fn numbers(self) -> [u16; 3] {
        [self.major, self.minor, self.patch]
    }

    /// Whether it is 2.6.`patch` or a later release.
    pub const fn since_2_6(self, patch: u16) -> bool {
        self.major > 2 || self.patch >= patch
    }

    /// Whether it is `major`.`minor` of the 3.x and later series or a later
    /// release.
    pub const fn since(self, major: u16, minor: u16) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    /// Whether it is `first` or a later release.
    pub const fn is_from(self, first: KernelVersion) -> bool {
        if first.major == 2 {
            self.since_2_6(first.patch)
        } else {
            self.since(first.major, first.minor)
        }
    }

    /// The release that a row of a table names, as 2.6.28 or 4.19.
    ///
    /// # Panics
    /// If it is written otherwise, where the table is compiled.
    pub const fn row(text: &str) -> KernelVersion {
        let bytes = text.as_bytes();
        let mut numbers = [0_u16; 3];
        let mut at = 0;
        let mut i = 0;
        while i < bytes.len() {
            match bytes[i] {
                b'.' => {
                    assert!(at < 2, "a row's release is written like 2.6.28 or 4.19");
                    at += 1;
                }
                digit => {
                    let is_digit = digit.is_ascii_digit();
                    assert!(is_digit, "a row's release is written like 2.6.28 or 4.19");
                    numbers[at] = numbers[at] * 10 + (digit - b'0') as u16;
                }
            }
            i += 1;
        }
        match (numbers, at) {
            ([2, 6, patch], 2) => KernelVersion::v2_6(patch),
            ([major, minor, _], 1) if major > 2 => KernelVersion::new(major, minor),
            _ => panic!("a row's release is written like 2.6.28 or 4.19"),
        }
    }

    /// Whether the single-queue block layer exists (it went with 5.0).
    pub fn has_single_queue(self) -> bool {
        !self.since(5, 0)
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.major == 2 {
            write!(f, ".{}", self.patch)
        } else {
            Ok(())
        }
    }
}

impl FromStr for KernelVersion {
    type Err = VersionError;

    fn from_str(s: &str) -> Result<KernelVersion, VersionError> {
        let bad = || {
            VersionError(format!(
                "'{}' is not a kernel version; write it like 2.6.28 or 4.19",
                shown(s)
            ))
        };
        let mut parts = s.split('.').map(str::parse::<u16>);
        let major = parts.next().ok_or_else(bad)?.map_err(|_| bad())?;
        let minor = parts.next().ok_or_else(bad)?.map_err(|_| bad())?;
        let third = parts.next().transpose().map_err(|_| bad())?;
        let fourth = parts.next().transpose().map_err(|_| bad())?;
        if parts.next().is_some() || (fourth.is_some() && major != 2) {
            return Err(bad());
        }
        let version = if major == 2 {
            if minor != 6 {
                return Err(bad());
            }
            KernelVersion::v2_6(third.ok_or_else(bad)?)
        } else {
            KernelVersion::new(major, minor)
        };
        if version < KernelVersion::v2_6(16) {
            return Err(VersionError(format!(
                "kernel {s} is older than 2.6.16, the oldest modelled"
            )));
        }
        if version > KernelVersion::v2_6(39) && major == 2 {
            return Err(VersionError(format!(
                "kernel {s} does not exist: 3.0 follows 2.6.39"
            )));
        }
        Ok(version)
    }
}

/// All releases that models know of, oldest first: 2.6.16 to [`KernelVersion::NEWEST`].
pub fn releases() -> impl Iterator<Item = KernelVersion> {
    let series = |(major, last)| (0..=last).map(move |minor| KernelVersion::new(major, minor));
    let old = (16..=39).map(KernelVersion::v2_6);
    let newest = KernelVersion::NEWEST;
    let ended = [(3, 19), (4, 20), (5, 19)];
    let numbered = ended.into_iter().chain([(newest.major, newest.minor)]);
    old.chain(numbered.flat_map(series))
}

/// The releases with the single-queue path, oldest first: 2.6.16 to 4.20.
pub fn single_queue_releases() -> impl Iterator<Item = KernelVersion> {
    releases().filter(|v| v.has_single_queue())
}

/// Something that changed in a release, as data: what a model does differently
/// from then on, and where that was read.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The first release with it.
    pub release: KernelVersion,
    /// What changed, in a line.
    pub what: &'static str,
    /// Files of the kernel.
    pub source: &'static str,
}

/// For tests of models: proves that a table of changes tells what
/// `features_of` does. Every change lies in the `era` of the model; after its
/// first release there is one entry for each release at which the features
/// differ from those of the release before, and no other.
///
/// # Panics
/// If not: the message names the release.
pub fn check_changes<F: PartialEq>(
    changes: &[Change],
    era: Range<KernelVersion>,
    features_of: impl Fn(KernelVersion) -> F,
) {
    for change in changes {
        assert!(
            era.contains(&change.release),
            "{}: not here",
            change.release
        );
    }
    let releases: Vec<KernelVersion> = releases().filter(|v| era.contains(v)).collect();
    for pair in releases.windows(2) {
        let changed = features_of(pair[0]) != features_of(pair[1]);
        let listed = changes.iter().filter(|c| c.release == pair[1]).count();
        assert_eq!(listed, usize::from(changed), "entries for {}", pair[1]);
    }
}

/// A release whose rules were read and measured, offered by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The release.
    pub version: KernelVersion,
    /// What it stands for, in a line.
    pub summary: &'static str,
}

/// The presets, oldest first. Releases between them are accepted too and
/// take each feature from the version at which it changed.
pub const PRESETS: &[Preset] = &[
    Preset {
        version: KernelVersion::v2_6(16),
        summary: "queue plugs; schedulers keep the merge hash; CFQ with lists, one queue per process",
    },
    Preset {
        version: KernelVersion::v2_6(18),
        summary: "CFQ is the default; it idles at completion, all writes are async to it",
    },
    Preset {
        version: KernelVersion::v2_6(24),
        summary: "core merge hash; CFQ with a service tree; deadline restarts at the oldest request",
    },
    Preset {
        version: KernelVersion::v2_6(26),
        summary: "nomerges; anticipatory gives batches their full time after a drain",
    },
    Preset {
        version: KernelVersion::v2_6(28),
        summary: "CFQ samples whether a device queues; deadline batches cross gaps",
    },
    Preset {
        version: KernelVersion::v2_6(32),
        summary: "pools by sync and async; CFQ dispatches one request at a time, low_latency",
    },
    Preset {
        version: KernelVersion::v2_6(33),
        summary: "anticipatory removed; CFQ with groups and workload trees",
    },
    Preset {
        version: KernelVersion::new(3, 7),
        summary: "task plugs, sorted flush; FLUSH/FUA without draining; CFQ with group idling",
    },
    Preset {
        version: KernelVersion::new(4, 19),
        summary: "last long-term release with the single-queue path; CFQ in nanoseconds",
    },
    Preset {
        version: KernelVersion::new(5, 10),
        summary: "multi-queue only; plugs of 16 requests, mq-deadline without classes",
    },
    Preset {
        version: KernelVersion::new(6, 1),
        summary: "plugs of 32, newest first; mq-deadline with classes; BFQ merges for good",
    },
    Preset {
        version: KernelVersion::new(6, 12),
        summary: "every bio plugged, oldest first; limited depths count all tags (6.12.117)",
    },
    Preset {
        version: KernelVersion::new(6, 18),
        summary: "the newest; requests of up to 4 MiB, large folios on ext4",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_go_up_and_the_single_queue_path_ends_with_4_20() {
        let all: Vec<KernelVersion> = releases().collect();
        assert!(all.is_sorted());
        let ends = |v: &[KernelVersion]| (v[0].to_string(), v[v.len() - 1].to_string());
        assert_eq!(ends(&all), ("2.6.16".to_owned(), "6.18".to_owned()));
        let old: Vec<KernelVersion> = single_queue_releases().collect();
        assert_eq!(ends(&old), ("2.6.16".to_owned(), "4.20".to_owned()));
        assert_eq!(all.len() - old.len(), 20 + 19);
    }

    #[test]
    fn since_is_the_order_of_releases() {
        for v in releases() {
            for other in releases() {
                let since = match other.numbers() {
                    [2, _, patch] => v.since_2_6(patch),
                    [major, minor, _] => v.since(major, minor),
                };
                assert_eq!(since, v >= other, "{v} since {other}");
                assert_eq!(v.is_from(other), since, "{v} from {other}");
            }
        }
    }

    #[test]
    fn a_row_names_every_release_as_it_is_printed() {
        for v in releases() {
            assert_eq!(KernelVersion::row(&v.to_string()), v);
        }
        assert_eq!(releases().last(), Some(KernelVersion::NEWEST));
    }

    #[test]
    #[should_panic(expected = "is written like")]
    fn a_row_with_a_point_release_is_refused() {
        KernelVersion::row("6.12.117");
    }

    const fn change(minor: u16) -> Change {
        Change {
            release: KernelVersion::new(3, minor),
            what: "",
            source: "",
        }
    }

    fn check_table(changes: &[Change]) {
        let era = KernelVersion::new(3, 0)..KernelVersion::new(4, 0);
        check_changes(changes, era, |v| (v.since(3, 7), v.since(3, 9)));
    }

    #[test]
    fn a_table_that_tells_what_changed() {
        check_table(&[change(7), change(9)]);
    }

    #[test]
    #[should_panic(expected = "entries for 3.9")]
    fn a_change_that_the_table_leaves_out() {
        check_table(&[change(7)]);
    }

    #[test]
    #[should_panic(expected = "entries for 3.8")]
    fn an_entry_without_a_change() {
        check_table(&[change(7), change(8), change(9)]);
    }

    #[test]
    fn versions_parse_order_and_print() {
        let v = |s: &str| s.parse::<KernelVersion>().unwrap();
        assert_eq!(v("2.6.28.10"), KernelVersion::v2_6(28));
        assert_eq!(v("4.19.13").to_string(), "4.19");
        assert!(v("2.6.39") < v("3.0"));
        assert_eq!(v("2.6.28.10").to_string(), "2.6.28");
        for bad in [
            "",
            "2",
            "2.6",
            "2.4.20",
            "2.6.9",
            "2.6.40",
            "4.x",
            "4.1.2.3",
            "2.6.1.2.3",
        ] {
            assert!(bad.parse::<KernelVersion>().is_err(), "{bad}");
        }
    }
}
