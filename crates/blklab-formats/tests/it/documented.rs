// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tables say against `docs/traces.md` and the test data: no row is without its line
//! and its sample.

use blklab_formats::{FORMATS, TraceFile};
use blklab_trace::{POINTS, Part};
use std::collections::BTreeSet;

fn page() -> String {
    let path = blklab_testkit::root().join("docs/traces.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// What is between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_format_has_a_line() {
    let page = page();
    let table = page.split("\n## Formats\n").nth(1).expect("a section");
    let table = table.split("\n## ").next().expect("its end");
    let firsts = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = firsts.filter_map(|line| line.split(" | ").next());
    let documented: BTreeSet<&str> = cells.flat_map(|c| c.split(['`', ',', ' ', ':'])).collect();
    for format in FORMATS {
        assert!(documented.contains(format.name), "{}", format.name);
    }
}

#[test]
fn every_format_has_a_sample() {
    let mut left: BTreeSet<&str> = FORMATS.iter().map(|f| f.name).collect();
    for path in blklab_testkit::samples() {
        if let Ok(file) = TraceFile::open(&path) {
            left.remove(file.format().name);
        }
    }
    // Folders, forms without a sample of their own, and what `convert` makes.
    let elsewhere = ["ctf", "blkparse-columns", "block_dump", "events.blk"];
    let mut elsewhere = BTreeSet::from(elsewhere);
    // Without the feature it is refused.
    if !cfg!(feature = "parquet") {
        elsewhere.insert("events-parquet");
    }
    assert_eq!(left, elsewhere);
}

/// A name on the page is whole, or the end of one whose beginning is that of the one before.
#[test]
fn every_tracepoint_has_a_line() {
    let page = page();
    let table = page
        .split("\n| part | events | from |")
        .nth(1)
        .expect("the table");
    let table = table.split("\n\n").next().expect("its end");
    let mut documented = BTreeSet::new();
    let mut part = "";
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if !cells[0].is_empty() {
            part = cells[0];
        }
        let mut last = "";
        for name in quoted(cells[1]) {
            if !name.starts_with('_') {
                last = name;
            }
            let ends = |point: &str| {
                point == name
                    || point
                        .strip_suffix(name)
                        .is_some_and(|begin| !begin.is_empty() && last.starts_with(begin))
            };
            let found = POINTS
                .iter()
                .find(|p| p.part.name() == part && ends(p.name));
            documented.insert(found.unwrap_or_else(|| panic!("{part}: {name}")).name);
        }
    }
    let read: BTreeSet<&str> = POINTS.iter().map(|p| p.name).collect();
    assert_eq!(documented, read);
    let parts = Part::ALL.iter().map(|p| p.name());
    let used: BTreeSet<&str> = POINTS.iter().map(|p| p.part.name()).collect();
    assert_eq!(parts.collect::<BTreeSet<_>>(), used);
}
