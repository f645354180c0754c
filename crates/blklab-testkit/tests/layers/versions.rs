// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a release changes is a row (`blklab_kernel::features!`, tables of settings,
//! tunables and patches), so that lists show it: nothing else compares versions.

use std::path::Path;

/// What may: the type itself, and what looks up rows.
const MAY: [(&str, &str); 17] = [
    ("blklab-kernel/src/version.rs", "the type"),
    ("blklab-kernel/src/version/change.rs", "says who has a row"),
    ("blklab-kernel/src/known.rs", "says how rules are known"),
    (
        "blklab-kernel/src/version/distribution/mod.rs",
        "finds the rules of a build",
    ),
    ("blklab-kernel/src/patch.rs", "looks up patches"),
    ("blklab-kernel/src/tunable.rs", "looks up tunables"),
    ("blklab-sched/src/lib.rs", "looks up schedulers"),
    (
        "blklab-sched/src/cfq/mod.rs",
        "has a table for each of three eras",
    ),
    ("blklab-fs/src/kind.rs", "looks up filesystems"),
    (
        "blklab-sim/src/filesystem.rs",
        "says when a filesystem came or went",
    ),
    (
        "blklab-experiment/src/catalogue.rs",
        "says when a scheduler came or went",
    ),
    (
        "blklab-experiment/src/cgroup/mod.rs",
        "says of which releases the rules were not read",
    ),
    (
        "blklab-experiment/src/cgroup/check.rs",
        "says when control groups came",
    ),
    (
        "blklab-kernel-target/src/kernel/source.rs",
        "finds the source of a release",
    ),
    (
        "blklab-kernel-target/src/kernel/filesystem/mod.rs",
        "says when a filesystem came or went",
    ),
    ("blklab/src/list.rs", "lists rows"),
    (
        "blklab-exercise/src/tape.rs",
        "draws what a release may have",
    ),
];

/// And what is modelled as one release for several.
const ERA: &str = "blklab-experiment/src/md.rs";

#[test]
fn versions_are_compared_by_rows_alone() {
    let mut found = Vec::new();
    let mut used = Vec::new();
    each_source(&blklab_testkit::root().join("crates"), &mut |path, text| {
        let place = path.display().to_string();
        let may = MAY.iter().map(|(file, _)| *file).chain([ERA]);
        let may = may
            .into_iter()
            .find(|file| place.ends_with(&format!("/crates/{file}")));
        for (line, n) in text.lines().zip(1..).filter(|(l, _)| compares(l)) {
            match may {
                Some(file) => used.push(file),
                None => found.push(format!("{place}:{n}: {}", line.trim())),
            }
        }
    });
    assert!(
        found.is_empty(),
        "make it a row (CONTRIBUTING.md, \"Adding a kernel\"):\n{}",
        found.join("\n")
    );
    for (file, why) in MAY.iter().copied().chain([(ERA, "has an era")]) {
        assert!(
            used.contains(&file),
            "{file} ({why}) compares no versions any more"
        );
    }
}

/// Visits what is not tests of every source below `src` folders.
fn each_source(folder: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !["tests", "examples", "benches"].contains(&name) {
                each_source(&path, visit);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).expect("text");
            let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
            visit(&path, &text[..end]);
        }
    }
}

/// Whether a line compares versions of kernels.
fn compares(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let asks = [".is_from(", ".has_change(", ".series()"];
    let name = |word: &str| {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        name.rsplit('.').next().unwrap_or_default().to_owned()
    };
    let is_kernel = |name: &str| name == "kernel" || name.starts_with("KernelVersion::");
    let is_release = |name: &str| ["v", "version"].contains(&name);
    let is_bound = |name: &str| ["since", "until"].contains(&name);
    let words: Vec<&str> = code.split_whitespace().collect();
    let is_compared = words.windows(3).any(|w| {
        let (one, other) = (name(w[0]), name(w[2]));
        let is_order = ["<", ">", "<=", ">="].contains(&w[1]);
        let is_bounded = is_release(&one) && is_bound(&other);
        is_order && (is_kernel(&one) || is_kernel(&other) || is_bounded)
    });
    let receivers = ["kernel", "version", "v", "release"];
    let is_within = receivers.iter().any(|name| {
        let call = format!("{name}.is_within(");
        let before = code.find(&call).map(|at| code[..at].chars().next_back());
        before.is_some_and(|c| !c.is_some_and(|c| c.is_alphanumeric() || c == '_'))
    });
    asks.iter().any(|call| code.contains(call)) || is_compared || is_within
}

#[test]
fn comparisons_are_seen() {
    for line in [
        "if e.kernel >= KernelVersion::new(4, 18) {",
        "request_prio: e.kernel >= REQUEST_PRIO_SINCE,",
        "if v < patch.since || v >= patch.until {",
        "if !kernel.is_from(FIRST) {",
        "() if version.is_within(A, B) => 1,",
        "self.kernel.series() == READ",
    ] {
        assert!(compares(line), "{line}");
    }
    for line in [
        "since: KernelVersion::new(5, 0),",
        "kernel: Option<KernelVersion>,",
        "// from kernel >= 5.0 on",
        "if f.is_within() {",
        "let kernels: Vec<&str> = a > b;",
    ] {
        assert!(!compares(line), "{line}");
    }
}
