// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may use whom: the map in ARCHITECTURE.md beside the manifests, modules that
//! import each other, options that libraries name, names that say nothing, and versions
//! that are compared outside rows.

mod circles;
mod flags;
mod names;
mod versions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A row of the map: a crate and the workspace crates that its code uses.
struct Row {
    name: String,
    uses: Vec<String>,
}

#[test]
fn manifests_and_the_map_agree() {
    let map = map();
    let mut above: Vec<&str> = Vec::new();
    for row in &map {
        let manifest = std::fs::read_to_string(folder(&row.name).join("Cargo.toml"));
        let manifest = manifest.unwrap_or_else(|e| panic!("the map's crate {}: {e}", row.name));
        let used = dependencies(&manifest);
        let mapped: BTreeSet<String> = row.uses.iter().cloned().collect();
        let more: Vec<_> = used.difference(&mapped).collect();
        assert!(
            more.is_empty(),
            "{} uses {more:?}, which ARCHITECTURE.md does not say",
            row.name
        );
        let fewer: Vec<_> = mapped.difference(&used).collect();
        assert!(
            fewer.is_empty(),
            "ARCHITECTURE.md says that {} uses {fewer:?}; its manifest does not",
            row.name
        );
        let below = used.iter().find(|u| !above.contains(&u.as_str()));
        assert_eq!(below, None, "{} stands above what it uses", row.name);
        above.push(&row.name);
    }
    let mapped: BTreeSet<&str> = above.into_iter().collect();
    let there = crates();
    let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    assert_eq!(mapped, there, "crates in the map and in the folder");
}

/// The one crate that does not lie among the others.
const PYTHON: &str = "python";

/// The rows of the code map.
fn map() -> Vec<Row> {
    let text = std::fs::read_to_string(blklab_testkit::root().join("ARCHITECTURE.md"));
    let text = text.expect("the map");
    let lines = text
        .lines()
        .skip_while(|l| *l != "| crate | uses | holds |");
    let rows = lines.skip(2).take_while(|l| l.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Row {
            name: cells[1].to_owned(),
            uses: cells[2].split_whitespace().map(str::to_owned).collect(),
        }
    };
    let rows: Vec<Row> = rows.map(row).collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no code map");
    rows
}

/// The folder of a crate, by its name without prefix.
fn folder(name: &str) -> PathBuf {
    if name == PYTHON {
        return blklab_testkit::root().join(PYTHON);
    }
    let prefix = if name == "blklab" { "" } else { "blklab-" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{prefix}{name}"))
}

/// All crates, without their prefix.
fn crates() -> Vec<String> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(all).expect("the crates folder");
    let folders = entries.map(|e| e.expect("an entry").path());
    let mut names: Vec<String> = folders
        .filter(|f| f.join("Cargo.toml").is_file())
        .filter_map(|f| {
            let name = f.file_name()?.to_str()?;
            Some(name.strip_prefix("blklab-").unwrap_or(name).to_owned())
        })
        .collect();
    names.push(PYTHON.to_owned());
    names.sort();
    names
}

/// Workspace crates in `[dependencies]`, without their prefix.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest");
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = table.into_iter().flat_map(|t| t.keys());
    names
        .filter_map(|n| match n.as_str() {
            "blklab" => Some("blklab".to_owned()),
            n => n.strip_prefix("blklab-").map(str::to_owned),
        })
        .collect()
}

/// Visits the lines of all Rust files below a folder, with their places.
fn each_line(folder: &Path, visit: &mut dyn FnMut(&str, &str)) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            each_line(&path, visit);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            for (line, n) in text.lines().zip(1..) {
                visit(&format!("{}:{n}", path.display()), line);
            }
        }
    }
}
