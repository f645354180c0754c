// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Makefile, the scripts and what documents say about them belong together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn makefile() -> String {
    read(&blklab_testkit::root().join("Makefile"))
}

/// The targets that have a rule.
fn targets(makefile: &str) -> BTreeSet<&str> {
    let is_name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let heads = makefile.lines().filter_map(|l| Some(l.split_once(':')?.0));
    heads.filter(|n| is_name(n)).collect()
}

/// Files of a folder.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(blklab_testkit::root().join(folder)).expect("a folder");
    let paths = entries.map(|e| e.expect("an entry").path());
    paths.filter(|p| p.is_file()).collect()
}

/// Texts that speak of targets and scripts.
fn texts() -> Vec<(PathBuf, String)> {
    let mut paths = files("");
    for folder in ["docs", "docs/reports", "fuzz", "testdata", "scripts", ".ci"] {
        paths.extend(files(folder));
    }
    let text = |p: PathBuf| Some((p.clone(), std::fs::read_to_string(&p).ok()?));
    paths.into_iter().filter_map(text).collect()
}

#[test]
fn every_target_has_a_rule_and_a_line_of_help() {
    let text = makefile();
    let declared = text.lines().find_map(|l| l.strip_prefix(".PHONY:"));
    let declared: BTreeSet<&str> = declared.expect("a list").split_whitespace().collect();
    assert_eq!(declared, targets(&text));
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, _)) = line.split_once(':').filter(|(n, _)| declared.contains(n)) else {
            continue;
        };
        assert!(line.contains("## "), "make {name} has no line of help");
        let rule = lines.peek().is_some_and(|l| l.starts_with('\t'));
        assert!(rule, "make {name} does nothing");
    }
}

#[test]
fn documents_name_targets_that_there_are() {
    let text = makefile();
    let targets = targets(&text);
    for (path, text) in texts() {
        let named = text
            .split("`make ")
            .skip(1)
            .filter_map(|s| s.split('`').next());
        for words in named {
            let target = words.split_whitespace().next().unwrap_or_default();
            assert!(
                targets.contains(target),
                "{}: make {target}",
                path.display()
            );
        }
    }
}

#[test]
fn every_script_is_there_and_used() {
    let scripts = files("scripts");
    let names: BTreeSet<String> = scripts
        .iter()
        .map(|p| {
            p.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let mut used = BTreeSet::new();
    for (path, text) in texts() {
        for word in text.split("scripts/").skip(1) {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let name: String = word.chars().take_while(|c| is_part(*c)).collect();
            let name = name.trim_end_matches('.');
            if name.is_empty() {
                continue;
            }
            assert!(names.contains(name), "{}: scripts/{name}", path.display());
            if path
                .file_name()
                .is_none_or(|own| own.to_string_lossy() != name)
            {
                used.insert(name.to_owned());
            }
        }
    }
    assert_eq!(names, used, "scripts that nobody names");
}
