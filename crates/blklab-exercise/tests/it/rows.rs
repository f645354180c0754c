// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places that have a row for each target have one.

use blklab_exercise::{TARGETS, fuzzer};
use blklab_testkit::root;
use std::collections::BTreeSet;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Texts between two marks, one for each line that has both.
fn between(text: &str, begin: &str, end: &str) -> BTreeSet<String> {
    let inside = |line: &str| Some(line.strip_prefix(begin)?.split_once(end)?.0.to_owned());
    text.lines().filter_map(inside).collect()
}

/// What the file of a target says, whatever it feeds. Compiling them takes libFuzzer; what they
/// call is compiled here.
fn libfuzzers(name: &str) -> String {
    const _: fn(&str) = fuzzer::begin;
    const _: fn(&[u8]) = fuzzer::feed;
    format!(
        "// SPDX-License-Identifier: MIT OR Apache-2.0\n#![no_main]\n\n\
         use blklab_exercise::fuzzer;\n\n\
         libfuzzer_sys::fuzz_target!(init: fuzzer::begin(\"{name}\"), \
         |data: &[u8]| fuzzer::feed(data));\n"
    )
}

#[test]
fn a_target_has_its_file_its_binary_and_its_row() {
    let names: BTreeSet<String> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len());
    let manifest = text("fuzz/Cargo.toml");
    assert_eq!(between(&manifest, "path = \"fuzz_targets/", ".rs\""), names);
    for name in &names {
        let file = text(&format!("fuzz/fuzz_targets/{name}.rs"));
        assert_eq!(file, libfuzzers(name), "{name}");
    }
    assert_eq!(between(&text("docs/fuzzing.md"), "| `", "` |"), names);
}

/// Folders of no target are forgotten ones; corpora stay small.
#[test]
fn corpora_are_of_targets_and_small() {
    const BYTES_MAX: u64 = 256 * 1024;
    for kind in ["corpora", "regressions"] {
        let mut bytes = 0;
        for folder in std::fs::read_dir(root().join("fuzz").join(kind)).unwrap() {
            let folder = folder.unwrap();
            let name = folder.file_name().into_string().unwrap();
            assert!(TARGETS.iter().any(|t| t.name == name), "{kind}/{name}");
            let files = std::fs::read_dir(folder.path()).unwrap();
            bytes += files
                .map(|f| f.unwrap().metadata().unwrap().len())
                .sum::<u64>();
        }
        assert!(bytes <= BYTES_MAX, "{kind}: {bytes} bytes");
    }
}
