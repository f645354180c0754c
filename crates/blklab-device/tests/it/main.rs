// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that were once wrong, found by fuzzing.

#[path = "../../../../fuzz/exercise/disks.rs"]
mod disks;

#[test]
fn regressions_of_diskspecs() {
    let dir = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/regressions/diskspecs"
    );
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("the folder is part of the project") {
        disks::diskspecs(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0);
}

/// The sample disk goes all the way: the exercise is not one of refusals.
#[test]
fn the_exercise_builds_a_disk() {
    let dir = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/device/disksim/atlas10k"
    );
    let texts = ["diskspecs", "model", "seek", "parv", "trace"]
        .map(|e| std::fs::read_to_string(format!("{dir}.{e}")).unwrap());
    assert!(disks::diskspecs(texts.join("\0").as_bytes()));
}
