// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called says what it gives.

use std::path::Path;

/// Words that say nothing of what a function or closure gives. (`Features::of` a release is
/// the name of that everywhere.)
const EMPTY: [&str; 5] = ["of", "or", "some", "there", "is"];

#[test]
fn functions_and_closures_have_names_that_say_something() {
    let mut found = Vec::new();
    search(&blklab_testkit::root().join("crates"), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn search(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            search(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            let lines = text.lines().zip(1..).filter(|(line, _)| says_nothing(line));
            found.extend(lines.map(|(line, n)| format!("{}:{n}: {line}", path.display())));
        }
    }
}

fn says_nothing(line: &str) -> bool {
    let line = line.trim_start();
    EMPTY.iter().any(|name| {
        let is_function = line.contains(&format!("fn {name}(")) && !line.contains("Features");
        let value = line.strip_prefix(&format!("let {name} = "));
        let is_closure = value.is_some_and(|v| v.starts_with('|') || v.starts_with("move |"));
        is_function || is_closure
    })
}

#[test]
fn names_that_say_nothing_are_seen() {
    let function = ["    pub fn ", "of(&self) -> u64 {"].concat();
    for line in [&*function, "let or = |a, b| a", "let is = move |a| a"] {
        assert!(says_nothing(line), "{line}");
    }
    for line in [
        "fn of(v: KernelVersion) -> Features {",
        "let of = 3;",
        "fn offset(",
    ] {
        assert!(!says_nothing(line), "{line}");
    }
}
