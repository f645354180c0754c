// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page docs/write-a-scheduler.md shows this crate's code, and what its
//! command prints.

#[path = "../../../../crates/blklab-cli/tests/it/transcript.rs"]
mod transcript;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the project")
}

fn page() -> PathBuf {
    root().join("docs/write-a-scheduler.md")
}

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(path).expect("a file of this crate")
}

/// The blocks of code of the page.
fn blocks() -> Vec<String> {
    let page = std::fs::read_to_string(page()).expect("the page");
    let parts = page.split("```rust\n").skip(1);
    let code = parts.map(|p| p.split("```").next().unwrap_or(p).trim_end());
    code.map(str::to_owned).collect()
}

#[test]
fn the_code_is_that_of_the_crate() {
    let files = [
        "src/lib.rs",
        "src/main.rs",
        "tests/it/vectors.rs",
        "tests/it/properties.rs",
    ]
    .map(text);
    let blocks = blocks();
    assert!(blocks.len() >= 9, "{} blocks", blocks.len());
    for block in &blocks {
        assert!(
            files.iter().any(|f| f.contains(block.as_str())),
            "this is in no file of examples/write-a-scheduler:\n{block}"
        );
    }
}

#[test]
fn the_page_shows_the_whole_scheduler() {
    let shown = blocks().join("\n");
    for line in text("src/lib.rs").lines().filter(|l| !l.starts_with("//")) {
        assert!(shown.contains(line), "not on the page: {line}");
    }
}

#[test]
fn the_output_is_what_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = folder.path().join("examples");
    symlink(root().join("examples"), examples).expect("a link");
    let ran = transcript::check(&page(), |command| {
        let args: Vec<&str> = command.strip_prefix("sstf ")?.split_whitespace().collect();
        let run = Command::new(env!("CARGO_BIN_EXE_sstf"))
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("it starts");
        assert!(run.status.success(), "{command}: {run:?}");
        Some(String::from_utf8(run.stdout).expect("text"))
    });
    assert_eq!(ran, 4);
}
