// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab new-scheduler`: what is written, what is refused, and (in minutes) that a change of
//! one line has an effect.

use crate::support::{Folder, root};
use std::process::Command;

#[test]
fn a_crate_is_written_once_with_the_source_of_this_build() {
    let f = Folder::new();
    let text = f.ok(&[
        "new-scheduler",
        "--like",
        "mq-deadline",
        "mine",
        "--name",
        "mine",
    ]);
    assert!(
        text.contains("mine/src/mq_deadline/mod.rs, then: cd mine && cargo run"),
        "{text}"
    );
    let own = f.read("mine/src/mq_deadline/select.rs");
    let source = root().join("crates/blklab-sched/src/mq_deadline/select.rs");
    assert_eq!(own, std::fs::read_to_string(source).expect("the source"));
    let manifest = f.read("mine/Cargo.toml");
    assert!(manifest.contains("name = \"mine\"") && manifest.contains("crates/blklab\" }"));
    for (args, expected) in [
        (
            &["--like", "mq-deadline", "mine"][..],
            "there is a crate already",
        ),
        (&["--like", "none", "other"], "has no source"),
        (
            &["--like", "mq-dedline", "other"],
            "did you mean 'mq-deadline'",
        ),
        (
            &["--like", "bfq", "other", "--name", "bfq"],
            "blklab has one of that name",
        ),
        (
            &["--like", "bfq", "other", "--blklab", "mine"],
            "this is not a source tree",
        ),
    ] {
        let done = f.run(&[&["new-scheduler"], args].concat());
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
    assert!(!f.path("other").exists());
}

/// Of an installed command: the source tree is the one that is named, and of its version.
#[test]
fn the_crate_is_built_with_the_source_tree_that_is_named() {
    let f = Folder::new();
    let version = env!("CARGO_PKG_VERSION");
    for (tree, version) in [("same", version), ("old", "0.0.0")] {
        f.write(&format!("{tree}/crates/blklab/Cargo.toml"), "");
        f.write(
            &format!("{tree}/Cargo.toml"),
            format!("[workspace.package]\nversion = \"{version}\"\n"),
        );
    }
    let asked = |tree: &str| {
        let args = ["new-scheduler", "--like", "noop", "mine", "--blklab", tree];
        f.run(&args)
    };
    let old = asked("old");
    assert_eq!(old.code, Some(2));
    assert!(old.stderr.contains("another version"), "{}", old.stderr);
    assert!(!f.path("mine").exists());
    assert_eq!(asked("same").code, Some(0));
    let tree = f.path("same").canonicalize().expect("a folder");
    let crates = format!("{}/crates/blklab-sched\"", tree.display());
    let manifest = f.read("mine/Cargo.toml");
    assert!(manifest.contains(&crates), "{manifest}");
}

/// What cargo prints in a crate that was written; all share what they are built of.
fn cargo(f: &Folder, krate: &str, what: &str) -> String {
    let mut cargo = Command::new("cargo");
    cargo.args([what, "--quiet"]).current_dir(f.path(krate));
    cargo.env("CARGO_TARGET_DIR", root().join("target/new-scheduler"));
    let done = cargo.output().expect("cargo runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{krate}: {said}");
    String::from_utf8(done.stdout).expect("text")
}

/// A copy of every scheduler whose source stands alone compiles, does what the original does
/// to the event, and passes its tests.
#[test]
#[ignore = "builds seven crates of their own for minutes; make test-docs"]
fn every_copy_does_what_its_original_does() {
    let f = Folder::new();
    for like in blklab::scheduler::sources::ALONE {
        f.ok(&["new-scheduler", "--like", like, like]);
        let said = cargo(&f, like, "run");
        assert!(said.contains("in the same order"), "{like}: {said}");
        let said = cargo(&f, like, "test");
        let passed = said.matches("test result: ok").count();
        assert!(passed >= 1 && !said.contains("FAILED"), "{like}: {said}");
    }
}

/// Unchanged it does what the original does; with one line changed it does not.
#[test]
#[ignore = "builds a crate of its own for minutes; make test-docs"]
fn one_line_changed_has_an_effect() {
    let f = Folder::new();
    f.ok(&["new-scheduler", "--like", "mq-deadline", "mine"]);
    let ran = || cargo(&f, "mine", "run");
    let same = ran();
    assert!(same.contains("in the same order"), "{same}");
    let path = f.path("mine/src/mq_deadline/tunables.rs");
    let text = std::fs::read_to_string(&path).expect("the tunables");
    let changed = text.replacen("        16,\n", "        1,\n", 1);
    assert_ne!(text, changed);
    std::fs::write(&path, changed).expect("written");
    let other = ran();
    assert!(
        other.contains("dispatches are the same; then mq-deadline takes"),
        "{other}"
    );
    assert!(other.contains(" is best for "), "{other}");
}
