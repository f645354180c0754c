// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output stored beside this file; `UPDATE_GOLDEN=1 cargo test -p blklab-cli`
//! writes it anew, for review as a text.

use crate::support::{Folder, root};
use std::path::Path;

fn check(name: &str, args: &[&str]) {
    let text = Folder::new().ok(args);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == golden,
        "blklab {} differs from {}; if that is meant, run with UPDATE_GOLDEN=1\n{text}",
        args.join(" "),
        path.display()
    );
}

#[test]
fn lists() {
    for what in [
        "schedulers",
        "tunables",
        "devices",
        "kernels",
        "patches",
        "formats",
        "engines",
        "scenarios",
    ] {
        check(&format!("list-{what}.txt"), &["list", what]);
    }
    check(
        "list-schedulers-2.6.28.txt",
        &["list", "schedulers", "--kernel", "2.6.28"],
    );
    check("list-deadline.txt", &["list", "schedulers", "deadline"]);
    check(
        "list-patches.json",
        &["list", "patches", "--output-format", "json"],
    );
}

#[test]
fn conform() {
    let cases = root().join("testdata/legacy/cases");
    check("conform.txt", &["conform", &cases.to_string_lossy()]);
}
