// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows themselves. What comes of them is tested where the models are, in
//! `blklab-sim`.

use super::{all, find};

#[test]
fn names_are_unique_and_rows_are_in_order() {
    for s in all() {
        let same = all().filter(|o| o.name() == s.name() || o.fine_name() == Some(s.name()));
        assert_eq!(same.count(), 1, "{}", s.name());
        for (a, b) in s.rows().iter().zip(&s.rows()[1..]) {
            assert_eq!(a.until, b.since, "{}", s.name());
            assert!(a.since < b.since, "{}", s.name());
        }
        for row in s.rows() {
            assert!(!row.help.is_empty() && row.name == s.name(), "{}", s.name());
            assert!(row.range.0 <= row.range.1, "{}", s.name());
        }
    }
}

#[test]
fn defaults_are_told_by_release() {
    let default = |name: &str| find(name).expect("a row").default_doc();
    assert_eq!(
        default("dirty_ratio"),
        "40 to 2.6.21, 10 to 2.6.29, then 20"
    );
    assert_eq!(default("dirty_bytes"), "unset");
    assert_eq!(default("cpus"), "2");
}
