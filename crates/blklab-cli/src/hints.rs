// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command can do about an error: libraries name keys, and only the command knows
//! its options and lists.

use blklab::types::{Error, ErrorKind};

/// What helps with an error, if something does.
pub(crate) fn hint(err: &Error) -> Option<&'static str> {
    match (err.kind, &*err.key) {
        (ErrorKind::UnknownName, "kernel") => Some("blklab list kernels shows them"),
        (ErrorKind::UnknownName, "built kernel") => {
            Some("blklab kernel list shows them, blklab kernel build RELEASE builds one")
        }
        (ErrorKind::UnknownName, "kernel image") => {
            Some("blklab kernel list shows them, blklab kernel fetch RELEASE fetches one")
        }
        (ErrorKind::UnknownName, "target") => Some("blklab list targets shows them"),
        (ErrorKind::UnknownName, "scenario") => Some("blklab list scenarios shows them"),
        (ErrorKind::UnknownName, "device") => Some("blklab list devices shows them"),
        (ErrorKind::UnknownName, key) if key.starts_with("device.") => {
            Some("blklab list devices NAME shows them")
        }
        (ErrorKind::UnknownName, _) => Some("blklab list tunables shows them"),
        (_, "jobs") => Some("--jobs N runs fewer"),
        (_, "replay.device") => Some("--trace-dev MAJOR,MINOR or 'device' in [replay] says which"),
        _ => None,
    }
}
