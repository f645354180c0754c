// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of sums of any content: refused in one line, or what is said of them is in lines of
//! its own and all figures are numbers.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::{Seed, samples};
use blklab::sums::{Reading, reading};
use blklab_formats::{FormatError, TraceFile};

pub(crate) const TARGET: Target = Target {
    name: "sums",
    feed,
    samples: tables,
};

fn tables() -> Vec<Seed> {
    samples(&["testdata/sums"], &[".txt", ".json"])
}

/// They are recognised where traces are.
fn feed(data: &[u8]) -> Option<u64> {
    let opened = TraceFile::from_reader(std::io::Cursor::new(data.to_vec()), "fuzz");
    let Err(FormatError::Foreign { sums, .. }) = opened else {
        return None;
    };
    match reading(&*sums?) {
        Ok(reading) => {
            check(&reading);
            Some(fingerprint(&reading))
        }
        Err(e) => {
            one_line(&e);
            None
        }
    }
}

fn check(reading: &Reading) {
    assert!(!reading.subjects.is_empty() || !reading.notes.is_empty());
    assert_eq!(reading.record.lines().count(), 1);
    for subject in &reading.subjects {
        for (name, value) in &subject.figures {
            assert!(value.is_finite() && *value >= 0.0, "{name} is {value}");
        }
        for shown in &subject.shows {
            assert!(!shown.text.is_empty(), "{} says something", shown.about);
        }
    }
}
