// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proof that tables of changes tell what models do.

use crate::{Change, KernelVersion, releases};
use std::ops::Range;

/// For tests of models: proves that a table of changes tells what
/// `features_of` does. Every change lies in the `era` of the model; after its
/// first release there is one entry for each release at which the features
/// differ from those of the release before, and no other. Nor does any point release
/// have an entry that changes nothing.
///
/// # Panics
/// If not: the message names the release.
pub fn check_changes<F: PartialEq>(
    changes: &[Change],
    era: Range<KernelVersion>,
    features_of: impl Fn(KernelVersion) -> F,
) {
    for change in changes {
        let release = change.release;
        assert!(era.contains(&release), "{release}: not here");
        let same = changes.iter().filter(|c| c.release == release).count();
        assert_eq!(same, 1, "entries for {release}");
        let points = std::iter::once(release).chain(change.stable.iter().copied());
        for (point, before) in points.filter_map(|v| Some((v, v.point_before()?))) {
            let changed = features_of(before) != features_of(point);
            assert!(changed, "nothing changes in {point}");
        }
    }
    let releases: Vec<KernelVersion> = releases().filter(|v| era.contains(v)).collect();
    for pair in releases.windows(2) {
        let changed = features_of(pair[0]) != features_of(pair[1]);
        let came = |c: &&Change| pair[0] < c.release && c.release <= pair[1];
        // A whole series that has it by its stable releases: it comes with that, and goes.
        let is_of_series = |c: &Change| c.stable.iter().any(|v| pair.contains(v));
        let listed = changes.iter().any(|c| came(&c) || is_of_series(c));
        assert_eq!(listed, changed, "entries for {}", pair[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn change(minor: u16) -> Change {
        Change {
            release: KernelVersion::new(3, minor),
            stable: &[],
            what: "",
            source: "",
        }
    }

    fn check_table(changes: &[Change]) {
        let era = KernelVersion::new(3, 0)..KernelVersion::new(4, 0);
        check_changes(changes, era, |v| {
            [7, 9].map(|minor| v.is_from(KernelVersion::new(3, minor)))
        });
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
    fn a_table_with_point_releases() {
        crate::features! {
            struct Features {
                fixed: bool = false,
                depth: u32 = 1,
            }
            const CHANGES = {
                "3.4.2": "a depth of two", "" => { depth: 2 }
                "3.7" | "3.2.9" | "3.6.1": "a fix", "" => { fixed: true }
            };
        }
        let era = KernelVersion::new(3, 0)..KernelVersion::new(4, 0);
        check_changes(CHANGES, era, Features::of);
        let rules = |text| Features::of(KernelVersion::row(text));
        let seen = [
            "3.2.8", "3.2.9", "3.3", "3.4.1", "3.4.2", "3.6", "3.6.1", "3.7",
        ];
        assert_eq!(
            seen.map(|v| (rules(v).fixed, rules(v).depth)),
            [
                (false, 1),
                (true, 1),
                (false, 1),
                (false, 1),
                (false, 2),
                (false, 2),
                (true, 2),
                (true, 2),
            ]
        );
        let of_series = |text: &str| {
            let kernel = text.parse().expect("a version");
            let came = |c: &&Change| c.is_in_series_of(kernel);
            CHANGES.iter().filter(came).count()
        };
        let asked = [
            "3.2",
            "3.2.8",
            "3.2.9",
            "3.2.0-4-amd64",
            "3.3",
            "3.7",
            "3.7.1",
        ];
        assert_eq!(asked.map(of_series), [1, 0, 1, 1, 0, 1, 1]);
    }

    #[test]
    #[should_panic(expected = "nothing changes in 3.9.4")]
    fn a_point_release_that_changes_nothing() {
        let change = Change {
            stable: const { &[KernelVersion::row("3.9.4")] },
            ..change(7)
        };
        check_table(&[change, self::change(9)]);
    }
}
