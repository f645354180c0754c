// SPDX-License-Identifier: MIT OR Apache-2.0
//! What options do about an error: libraries name keys, and only the command knows its options.

use blklab::Error;

/// Keys that errors are about, and what is said of each.
const HINTS: [(&str, &str); 2] = [
    ("jobs", "--jobs N runs fewer"),
    (
        "replay.device",
        "--trace-dev MAJOR,MINOR or 'device' in [replay] says which",
    ),
];

/// The error with what an option does about it, if there is one for its key.
pub(crate) fn hinted(err: Error) -> Error {
    match HINTS.iter().find(|(key, _)| *key == &*err.key) {
        Some((_, hint)) => Error {
            what: format!("{}; {hint}", err.what),
            ..err
        },
        None => err,
    }
}
