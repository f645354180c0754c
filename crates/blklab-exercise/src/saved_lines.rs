// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines that `blklab reproduce` keeps of runs that are done: refused in one line with the
//! file as it was, or read, the file cut behind its last whole line, and then read as the
//! same.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus;
use blklab_fidelity::reproduce::testbeds::Journal;

pub(crate) const TARGET: Target = Target {
    name: "saved_lines",
    feed,
    samples: corpus::none,
};

fn feed(data: &[u8]) -> Option<u64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("runs.jsonl");
    std::fs::write(&path, data).expect("it can be written");
    let kept = || std::fs::read(&path).expect("it is there");
    let journal = match Journal::open(&path) {
        Ok(journal) => journal,
        Err(e) => {
            one_line(&e);
            assert_eq!(kept(), data, "what is refused stays");
            return None;
        }
    };
    let done: Vec<_> = journal.done().collect();
    let first = kept();
    assert!(data.starts_with(&first) && (first.is_empty() || first.ends_with(b"\n")));
    let again = Journal::open(&path).expect("what was kept is read");
    let same: Vec<_> = again.done().collect();
    assert_eq!(fingerprint(&same), fingerprint(&done));
    (!done.is_empty()).then(|| fingerprint(&done))
}
