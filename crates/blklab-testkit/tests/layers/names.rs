// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called says what it gives.

/// Words that say nothing of what a function or closure gives. (`Features::of` a release is
/// the name of that everywhere.)
const EMPTY: [&str; 5] = ["of", "or", "some", "there", "is"];

#[test]
fn functions_and_closures_have_names_that_say_something() {
    let mut found = Vec::new();
    super::each_line(
        &blklab_testkit::root().join("crates"),
        &mut |place, line| {
            if says_nothing(line) {
                found.push(format!("{place}: {line}"));
            }
        },
    );
    assert!(found.is_empty(), "{}", found.join("\n"));
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
