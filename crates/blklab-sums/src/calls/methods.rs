// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pg_test_fsync`: what a write takes that is to be safe, by the method that makes it so.

use crate::number::{figures, ms_text, number};
use crate::reading::Subject;

/// The methods of PostgreSQL.
const METHODS: [&str; 5] = [
    "open_datasync",
    "fdatasync",
    "fsync",
    "fsync_writethrough",
    "open_sync",
];
/// No flash that is not safe against the loss of power, and no disk, writes as fast.
const TOO_FAST_MS: f64 = 0.1;
/// A turn of a disk, or a flush of flash that has much to write.
const SLOW_MS: f64 = 4.0;

/// What the first test shows, that of one write of 8 KiB; none if there is none.
pub(super) fn subject(text: &str) -> Option<Subject> {
    let mut subject = Subject::new("one write that is made safe (pg_test_fsync)");
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches('>').split_whitespace().collect();
        let [method, rate, "ops/sec", us, "usecs/op"] = words.as_slice() else {
            continue;
        };
        let known = METHODS.iter().find(|name| *name == method);
        let (Some(method), Some(rate), Some(us)) = (known, number(rate), number(us)) else {
            continue;
        };
        // The same methods come again with two writes.
        if subject.figures.contains_key(&format!("{method}_ms")) {
            break;
        }
        subject.show(
            method,
            format!("{} each, {}/s", ms_text(us / 1e3), figures(rate)),
        );
        subject.figure(format!("{method}_ms"), us / 1e3);
    }
    let ms = ["fdatasync", "fsync"]
        .iter()
        .find_map(|m| subject.figures.get(&format!("{m}_ms")));
    match ms.copied() {
        Some(ms) if ms < TOO_FAST_MS => subject.show(
            "so",
            "so short that no cache of a disk is emptied: it is safe against the loss of power, or \
             something on the way (a host, a controller, a setting) says done too early",
        ),
        Some(ms) if ms >= SLOW_MS => subject.show(
            "so",
            "as long as a disk takes for a turn, or flash without protection against the loss of power \
             for emptying its cache: who commits one after the other gets no more than that",
        ),
        _ => {}
    }
    (!subject.shows.is_empty()).then_some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_counts() {
        let text = "Compare file sync methods using one 8kB write:\n\
            \x20       fdatasync                         329.207 ops/sec    3038 usecs/op\n\
            \x20       fsync_writethrough                            n/a\n\
            \x20       fsync                              32.739 ops/sec    9042 usecs/op\n\
            Compare file sync methods using two 8kB writes:\n        fdatasync  3.2 ops/sec  99999 usecs/op\n";
        let s = subject(text).unwrap();
        assert_eq!((s.figures["fdatasync_ms"], s.shows.len()), (3.038, 2));
        let fast = subject("  fdatasync  29260.122 ops/sec      34 usecs/op\n").unwrap();
        assert!(fast.shows[1].text.contains("no cache of a disk is emptied"));
        assert_eq!(subject("fsync 3 ops\n"), None);
    }
}
