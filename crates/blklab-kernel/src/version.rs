// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel releases.

use crate::name::{Name, split};
use blklab_types::shown;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A kernel: the release by whose rules it is modelled, and what it is called.
///
/// Rules compare the release alone: 6.12, or the point release 6.12.117, of which 6.12
/// is the first, .0. The name is what was given, as `uname -r` prints it, and is shown
/// wherever the kernel is. A distribution's name tells the mainline release that it was
/// made of, as a rule not which stable updates are in it (`6.1.0-13-amd64`), let alone
/// what was taken from later releases (`4.18.0-425.el8`): it is modelled as the release
/// of its numbers, and [`KernelVersion::mainline_note`] says so.
///
/// ```
/// use blklab_kernel::KernelVersion;
///
/// let kernel: KernelVersion = "4.18.0-425.el8".parse()?;
/// assert_eq!(kernel, KernelVersion::new(4, 18));
/// assert_eq!(kernel.to_string(), "4.18.0-425.el8");
/// assert_eq!(kernel.release().to_string(), "4.18");
/// # Ok::<(), blklab_kernel::VersionError>(())
/// ```
#[derive(Clone, Copy)]
pub struct KernelVersion {
    /// 2, 6, 28 and 10 of 2.6.28.10; 6, 12, 0 and 117 of 6.12.117.
    numbers: [u16; 4],
    name: Name,
}

impl PartialEq for KernelVersion {
    fn eq(&self, other: &KernelVersion) -> bool {
        self.numbers == other.numbers
    }
}

impl Eq for KernelVersion {}

impl PartialOrd for KernelVersion {
    fn partial_cmp(&self, other: &KernelVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KernelVersion {
    fn cmp(&self, other: &KernelVersion) -> Ordering {
        self.numbers.cmp(&other.numbers)
    }
}

impl Hash for KernelVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.numbers.hash(state);
    }
}

impl fmt::Debug for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelVersion({self})")
    }
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
    pub const NEWEST: KernelVersion = KernelVersion::new(7, 3);

    const fn of_numbers(numbers: [u16; 4]) -> KernelVersion {
        KernelVersion {
            numbers,
            name: Name::NONE,
        }
    }

    /// Release 2.6.`patch`.
    pub const fn v2_6(patch: u16) -> KernelVersion {
        KernelVersion::of_numbers([2, 6, patch, 0])
    }

    /// Release `major`.`minor` of the 3.x and later series.
    pub const fn new(major: u16, minor: u16) -> KernelVersion {
        KernelVersion::of_numbers([major, minor, 0, 0])
    }

    /// The kernel of a name as `uname -r` prints it, of whatever age. None if it is not
    /// one.
    pub fn of_name(text: &str) -> Option<KernelVersion> {
        let (numbers, suffix) = split(text)?;
        let numbers = match *numbers {
            [2, minor, patch] => [2, minor, patch, 0],
            [2, minor, patch, point] => [2, minor, patch, point],
            [0..=2, ..] => return None,
            [major, minor] => [major, minor, 0, 0],
            [major, minor, point] => [major, minor, 0, point],
            // What a builder counts beside the point release: 6.6.87.2-microsoft-…
            [major, minor, point, _] if !suffix.is_empty() => [major, minor, 0, point],
            _ => return None,
        };
        let kernel = KernelVersion::of_numbers(numbers);
        let name = if kernel.to_string() == text {
            Name::NONE
        } else {
            Name::new(text)?
        };
        Some(KernelVersion { name, ..kernel })
    }

    /// The three numbers of the series; the third is 0 from 3.0 on.
    pub fn numbers(self) -> [u16; 3] {
        let [major, minor, patch, _] = self.numbers;
        [major, minor, patch]
    }

    /// The number of the point release: 10 of 2.6.28.10, 117 of 6.12.117; 0 of the first.
    pub const fn point(self) -> u16 {
        self.numbers[3]
    }

    /// The release by whose rules it goes, whatever it is called.
    pub const fn release(self) -> KernelVersion {
        KernelVersion::of_numbers(self.numbers)
    }

    /// The release without its point: 6.12 of 6.12.117.
    pub const fn series(self) -> KernelVersion {
        let [major, minor, patch, _] = self.numbers;
        KernelVersion::of_numbers([major, minor, patch, 0])
    }

    /// The point release before it, if it has a point.
    pub(crate) fn point_before(self) -> Option<KernelVersion> {
        let [major, minor, patch, point] = self.numbers;
        let before = point.checked_sub(1)?;
        Some(KernelVersion::of_numbers([major, minor, patch, before]))
    }

    /// Whether it is `first` or a later release.
    pub const fn is_from(self, first: KernelVersion) -> bool {
        let mut i = 0;
        while i < self.numbers.len() {
            if self.numbers[i] != first.numbers[i] {
                return self.numbers[i] > first.numbers[i];
            }
            i += 1;
        }
        true
    }

    /// Whether it is `since` or later, but before `until`.
    pub const fn is_within(self, since: KernelVersion, until: KernelVersion) -> bool {
        self.is_from(since) && !self.is_from(until)
    }

    /// Whether it has what came with the release `first` and, in the series of each, with
    /// the point releases `stable`.
    pub const fn has_change(self, first: KernelVersion, stable: &[KernelVersion]) -> bool {
        let mut has = self.is_from(first);
        let mut i = 0;
        while i < stable.len() {
            let (own, other) = (self.series(), stable[i].series());
            let is_same_series = own.is_from(other) && other.is_from(own);
            has = has || is_same_series && self.is_from(stable[i]);
            i += 1;
        }
        has
    }

    /// The release that a row of a table names, as 2.6.28, 4.19, 2.6.33.1 or 6.12.117.
    ///
    /// # Panics
    /// If it is written otherwise, where the table is compiled.
    pub const fn row(text: &str) -> KernelVersion {
        let bytes = text.as_bytes();
        let mut numbers = [0_u16; 4];
        let mut at = 0;
        let mut i = 0;
        while i < bytes.len() {
            match bytes[i] {
                b'.' => {
                    assert!(at < 3, "a row's release is written like 2.6.28 or 6.12.117");
                    at += 1;
                }
                digit => {
                    let is_digit = digit.is_ascii_digit();
                    assert!(
                        is_digit,
                        "a row's release is written like 2.6.28 or 6.12.117"
                    );
                    numbers[at] = numbers[at] * 10 + (digit - b'0') as u16;
                }
            }
            i += 1;
        }
        match (numbers, at) {
            ([2, 6, _, _], 2 | 3) => KernelVersion::of_numbers(numbers),
            ([major, minor, point, _], 1 | 2) if major > 2 => {
                KernelVersion::of_numbers([major, minor, 0, point])
            }
            _ => panic!("a row's release is written like 2.6.28 or 6.12.117"),
        }
    }

    /// Whether the single-queue block layer exists (it went with 5.0).
    pub fn has_single_queue(self) -> bool {
        !self.is_from(KernelVersion::new(5, 0))
    }

    /// Whether the models know the release.
    pub fn is_modelled(self) -> bool {
        releases().any(|v| v == self.series())
    }

    /// What a reader of results should know of a kernel that its builder may have
    /// changed; none of those that are called by their numbers.
    pub fn mainline_note(self) -> Option<String> {
        let (_, suffix) = split(self.name.as_str())?;
        (!suffix.is_empty()).then(|| {
            format!(
                "kernel {self} is modelled as mainline {}: what its builder changed, or took \
                 from later releases, is not in the model",
                self.release()
            )
        })
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_str();
        if !name.is_empty() {
            return f.write_str(name);
        }
        let [major, minor, patch, point] = self.numbers;
        write!(f, "{major}.{minor}")?;
        if major == 2 {
            write!(f, ".{patch}")?;
        }
        if point > 0 {
            write!(f, ".{point}")?;
        }
        Ok(())
    }
}

impl FromStr for KernelVersion {
    type Err = VersionError;

    fn from_str(s: &str) -> Result<KernelVersion, VersionError> {
        let Some(kernel) = KernelVersion::of_name(s) else {
            return Err(VersionError(format!(
                "'{}' is not a kernel version; write it like 2.6.28, 4.19 or 4.18.0-425.el8",
                shown(s)
            )));
        };
        if !kernel.is_from(KernelVersion::v2_6(16)) {
            return Err(VersionError(format!(
                "kernel {kernel} is older than 2.6.16, the oldest modelled"
            )));
        }
        let [major, minor, patch] = kernel.numbers();
        if major == 2 && (minor, patch) > (6, 39) {
            return Err(VersionError(format!(
                "kernel {kernel} does not exist: 3.0 follows 2.6.39"
            )));
        }
        Ok(kernel)
    }
}

/// All releases that models know of, oldest first: 2.6.16 to [`KernelVersion::NEWEST`].
pub fn releases() -> impl Iterator<Item = KernelVersion> {
    let series = |(major, last)| (0..=last).map(move |minor| KernelVersion::new(major, minor));
    let old = (16..=39).map(KernelVersion::v2_6);
    let newest = KernelVersion::NEWEST;
    let ended = [(3, 19), (4, 20), (5, 19), (6, 19)];
    let [major, minor, ..] = newest.numbers();
    let numbered = ended.into_iter().chain([(major, minor)]);
    old.chain(numbered.flat_map(series))
}

/// The releases with the single-queue path, oldest first: 2.6.16 to 4.20.
pub fn single_queue_releases() -> impl Iterator<Item = KernelVersion> {
    releases().filter(|v| v.has_single_queue())
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
        summary: "requests of up to 4 MiB, large folios on ext4, long read-ahead where disks seek",
    },
    Preset {
        version: KernelVersion::new(7, 3),
        summary: "the newest; single bios are not plugged, async_depth is the queue's (7.3.4)",
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
        assert_eq!(ends(&all), ("2.6.16".to_owned(), "7.3".to_owned()));
        let old: Vec<KernelVersion> = single_queue_releases().collect();
        assert_eq!(ends(&old), ("2.6.16".to_owned(), "4.20".to_owned()));
        assert_eq!(all.len() - old.len(), 20 + 20 + 4);
    }

    #[test]
    fn is_from_is_the_order_of_releases() {
        let points = ["2.6.28.10", "3.0.101", "6.12.117"].map(KernelVersion::row);
        let all: Vec<KernelVersion> = releases().chain(points).collect();
        for v in &all {
            for other in &all {
                assert_eq!(v.is_from(*other), v >= other, "{v} from {other}");
            }
        }
    }

    #[test]
    fn a_change_is_in_its_release_and_in_the_point_releases_that_have_it() {
        let stable = ["6.1.55", "6.5.5"].map(KernelVersion::row);
        let has = |text: &str| {
            let kernel: KernelVersion = text.parse().expect("a version");
            kernel.has_change(KernelVersion::new(6, 6), &stable)
        };
        for with in [
            "6.1.55",
            "6.1.112",
            "6.5.13",
            "6.6",
            "6.6.1",
            "6.7",
            "6.1.55-1.el9",
        ] {
            assert!(has(with), "{with}");
        }
        for without in [
            "6.0",
            "6.1",
            "6.1.54",
            "6.1.0-13-amd64",
            "6.2",
            "6.4.16",
            "6.5.4",
        ] {
            assert!(!has(without), "{without}");
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
    fn a_row_names_a_point_release() {
        assert_eq!(KernelVersion::row("2.6.33.1").point(), 1);
        let v = KernelVersion::row("6.12.117");
        assert_eq!((v.numbers(), v.point()), ([6, 12, 0], 117));
        assert_eq!(v.to_string(), "6.12.117");
    }

    #[test]
    #[should_panic(expected = "is written like")]
    fn a_row_with_the_name_of_a_distribution_is_refused() {
        KernelVersion::row("4.18.0-425.el8");
    }

    #[test]
    fn versions_parse_order_and_print() {
        let v = |s: &str| s.parse::<KernelVersion>().expect(s);
        assert!(v("2.6.39") < v("3.0"));
        assert!(v("2.6.28") < v("2.6.28.10") && v("2.6.28.10") < v("2.6.29"));
        assert!(v("6.12.9") < v("6.12.10") && v("6.12.117") < v("6.13"));
        assert_eq!(v("6.12.0"), v("6.12"));
        assert_eq!(v("6.12.117").series(), v("6.12"));
        for bad in [
            "",
            "2",
            "2.6",
            "4.x",
            "4.1.2.3",
            "2.6.1.2.3",
            "6.1 x",
            "1.2.13",
        ] {
            let error = bad.parse::<KernelVersion>().expect_err(bad).to_string();
            assert!(error.contains("is not a kernel version"), "{error}");
        }
        for old in ["2.4.20", "2.6.9", "2.6.9-89.EL"] {
            let error = old.parse::<KernelVersion>().expect_err(old).to_string();
            assert!(error.contains("is older than 2.6.16"), "{error}");
        }
        assert!("2.6.40".parse::<KernelVersion>().is_err());
        let long = format!("6.1.0-{}", "9".repeat(59));
        assert!(long.parse::<KernelVersion>().is_err());
    }

    #[test]
    fn kernels_of_distributions_go_by_their_release_and_keep_their_names() {
        for (name, release) in [
            ("2.6.32-754.el6.x86_64", "2.6.32"),
            ("2.6.32.12-0.7-default", "2.6.32.12"),
            ("3.10.0-1160.el7.x86_64", "3.10"),
            ("4.18.0-425.el8", "4.18"),
            ("5.14.0-362.24.1.el9_3.x86_64", "5.14"),
            ("6.1.0-13-amd64", "6.1"),
            ("5.15.0-91-generic", "5.15"),
            ("5.10.0-28-cloud-amd64", "5.10"),
            ("6.6.13-200.fc39", "6.6.13"),
            ("6.12.117+deb12-amd64", "6.12.117"),
            ("6.6.87.2-microsoft-standard-WSL2", "6.6.87"),
        ] {
            let kernel: KernelVersion = name.parse().expect(name);
            assert_eq!(kernel.to_string(), name);
            assert_eq!(kernel.release().to_string(), release);
            assert_eq!(kernel, KernelVersion::row(release));
            let note = kernel.mainline_note().expect(name);
            let says = format!("kernel {name} is modelled as mainline {release}: ");
            assert!(note.starts_with(&says), "{note}");
        }
        for plain in ["6.12.117", "2.6.28", "6.12.0", "2.6.28.10"] {
            let kernel: KernelVersion = plain.parse().expect(plain);
            assert_eq!(
                (kernel.to_string().as_str(), kernel.mainline_note()),
                (plain, None)
            );
        }
    }
}
