// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that were once wrong, found by fuzzing, through the functions that
//! the fuzz targets call.

#[path = "../../../../fuzz/exercise/traces.rs"]
mod traces;

fn replay(target: &str, exercise: fn(&[u8])) {
    replay_all(&format!("fuzz/regressions/{target}"), exercise);
}

fn replay_all(folder: &str, exercise: fn(&[u8])) {
    let dir = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("the folder is part of the project") {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{folder}");
}

#[test]
fn regressions_of_traces() {
    replay("trace", traces::trace);
}

#[test]
fn regressions_of_compact() {
    replay("compact", traces::compact);
}

#[test]
fn samples_of_all_readers() {
    replay_all("testdata/ctf/le-large/kernel", traces::ctf);
    for path in blklab_testkit::samples() {
        let bytes = std::fs::read(path).unwrap();
        traces::trace(&bytes);
        traces::every_format(&bytes);
    }
}
