// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel releases.

mod change;
mod distribution;

pub use change::Change;
pub use distribution::{Basis, DISTRIBUTIONS, Distribution, Fact, Level, Part, Schedulers};

use crate::name::{Name, split};
use blklab_types::{Hz, nearest_name, shown};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A kernel: the release by whose rules it is modelled, and what it is called.
///
/// Rules compare the release alone: 6.12, or the point release 6.12.117, of which 6.12
/// is the first, .0. The name is what was given, as `uname -r` prints it, and is shown
/// wherever the kernel is. Of a distribution that is known ([`DISTRIBUTIONS`]) the release
/// is that whose block layer it has, whatever its numbers say (`4.18.0-425.el8`, or the
/// distribution's own name, `rhel8`), and [`KernelVersion::in_part`] says by which release
/// its other parts go. Of others a name tells the mainline release that they were made of:
/// they are modelled as that. What is newer than [`KernelVersion::NEWEST`] goes by its
/// rules. [`KernelVersion::note`] says all of that.
///
/// ```
/// use blklab_kernel::KernelVersion;
///
/// let kernel: KernelVersion = "6.6.13-200.fc39".parse()?;
/// assert_eq!(kernel, KernelVersion::row("6.6.13"));
/// assert_eq!(kernel.to_string(), "6.6.13-200.fc39");
/// let kernel: KernelVersion = "4.18.0-425.el8".parse()?;
/// assert_eq!(kernel.to_string(), "4.18.0-425.el8");
/// assert_eq!(kernel.release().to_string(), "5.12");
/// assert_eq!(kernel.distribution().map(|d| d.name), Some("rhel8"));
/// # Ok::<(), blklab_kernel::VersionError>(())
/// ```
#[derive(Clone, Copy)]
pub struct KernelVersion {
    /// 2, 6, 28 and 10 of 2.6.28.10; 6, 12, 0 and 117 of 6.12.117.
    numbers: [u16; 4],
    name: Name,
    distribution: Option<&'static Distribution>,
    /// Changes that its models do not have, though the release does.
    without: &'static [&'static Change],
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

/// Whether two texts are the same, where tables are compiled.
const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    a.len() == b.len()
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
            distribution: None,
            without: &[],
        }
    }

    /// The same kernel without some changes that it has: the models do there what the release
    /// before each did.
    #[must_use]
    pub const fn without(self, changes: &'static [&'static Change]) -> KernelVersion {
        KernelVersion {
            without: changes,
            ..self
        }
    }

    /// The changes that its models do not have.
    pub const fn lacks(self) -> &'static [&'static Change] {
        self.without
    }

    /// Release 2.6.`patch`.
    pub const fn v2_6(patch: u16) -> KernelVersion {
        KernelVersion::of_numbers([2, 6, patch, 0])
    }

    /// Release `major`.`minor` of the 3.x and later series.
    pub const fn new(major: u16, minor: u16) -> KernelVersion {
        KernelVersion::of_numbers([major, minor, 0, 0])
    }

    /// The kernel of a name as `uname -r` prints it, or of a distribution, of whatever age.
    /// None if it is not one.
    pub fn of_name(text: &str) -> Option<KernelVersion> {
        if let Some(distribution) = Distribution::named(text) {
            return Some(KernelVersion {
                name: Name::new(distribution.name)?,
                distribution: Some(distribution),
                ..distribution.newest().rules.value
            });
        }
        let named = KernelVersion::of_numbers_in(text)?;
        let (_, suffix) = split(text)?;
        let is_plain = named.to_string() == text;
        let name = if is_plain {
            Name::NONE
        } else {
            Name::new(text)?
        };
        let distribution = Distribution::of_suffix(named, suffix);
        let rules = distribution.map_or(named, |d| d.rules_of_build(named, suffix));
        let is_known = !rules.series().is_from(KernelVersion::after_newest());
        let rules = if is_known {
            rules
        } else {
            KernelVersion::NEWEST
        };
        Some(KernelVersion {
            numbers: rules.numbers,
            name: if is_known { name } else { Name::new(text)? },
            distribution,
            without: &[],
        })
    }

    /// The series behind the newest that the models know.
    const fn after_newest() -> KernelVersion {
        let [major, minor, ..] = KernelVersion::NEWEST.numbers;
        KernelVersion::new(major, minor + 1)
    }

    /// The release that the numbers of a name say.
    fn of_numbers_in(text: &str) -> Option<KernelVersion> {
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
        Some(KernelVersion::of_numbers(numbers))
    }

    /// The distribution that it is of, if that is known.
    pub const fn distribution(self) -> Option<&'static Distribution> {
        self.distribution
    }

    /// The release that it is called by, whatever its rules are: 4.18 of `4.18.0-425.el8`
    /// and of `rhel8`, 7.4 of `7.4.0-rc3`.
    pub fn named(self) -> KernelVersion {
        match (
            KernelVersion::of_numbers_in(self.name.as_str()),
            self.distribution,
        ) {
            (Some(named), _) => named,
            (None, Some(distribution)) => distribution.release,
            (None, None) => self.release(),
        }
    }

    /// The release by whose rules a part of it goes.
    pub fn in_part(self, part: Part) -> KernelVersion {
        let distribution = self.distribution;
        distribution.map_or(self, |d| {
            d.rules(part, self.release()).without(self.without)
        })
    }

    /// Ticks per second that it is built with.
    pub fn hz(self) -> Hz {
        self.distribution
            .map_or_else(Hz::default, |d| Hz(d.hz.value))
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

    /// Whether its models have a row of a table: [`KernelVersion::has_change`], unless it is
    /// [without](KernelVersion::without) it. `what` are the row's words, which tell it from
    /// others.
    pub const fn has_row(self, first: KernelVersion, stable: &[KernelVersion], what: &str) -> bool {
        let mut i = 0;
        while i < self.without.len() {
            let lacked = self.without[i];
            if first.is_from(lacked.release)
                && lacked.release.is_from(first)
                && is_same(lacked.what.as_bytes(), what.as_bytes())
            {
                return false;
            }
            i += 1;
        }
        self.has_change(first, stable)
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

    /// What a reader of results should know of a kernel whose name says more or less than
    /// its rules; none of those that are called by their numbers.
    pub fn note(self) -> Option<String> {
        let (named, rules) = (self.named(), self.release());
        if let Some(d) = self.distribution {
            let title = d.title.split(['(', ';', ',']).next().unwrap_or_default();
            return Some(format!(
                "kernel {self} is that of {}, modelled as {}: what its builder changed besides \
                 is not in the model",
                title.trim_end(),
                d.rules_in_words(rules)
            ));
        }
        if named != rules {
            return Some(format!(
                "kernel {self} is newer than {rules}, the newest that is known, and modelled as \
                 that: what changed later is not in the model"
            ));
        }
        let (_, suffix) = split(self.name.as_str())?;
        (!suffix.is_empty()).then(|| {
            format!(
                "kernel {self} is modelled as mainline {rules}: what its builder changed, or took \
                 from later releases, is not in the model"
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
        // Tags of git are called v6.12.
        let tag = s
            .strip_prefix('v')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let Some(kernel) = KernelVersion::of_name(tag.unwrap_or(s)) else {
            return Err(VersionError(not_a_kernel(s)));
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

/// What is said of a name that is none: the nearest of those that are.
fn not_a_kernel(name: &str) -> String {
    let of_distributions = DISTRIBUTIONS.iter().flat_map(Distribution::names);
    let versions = releases().map(|v| v.to_string());
    let known: Vec<String> = of_distributions
        .map(str::to_owned)
        .chain(versions)
        .collect();
    let hint = match nearest_name(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean '{near}'? "),
        None => String::new(),
    };
    let names: Vec<&str> = DISTRIBUTIONS.iter().map(|d| d.name).collect();
    format!(
        "'{}' is no kernel; {hint}write a release (2.6.28, 6.12.117), what uname -r prints \
         (6.1.0-13-amd64), or a distribution: {}",
        shown(name),
        names.join(", ")
    )
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

#[cfg(test)]
mod tests;
