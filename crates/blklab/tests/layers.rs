// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may use whom: the table in ARCHITECTURE.md as a test.

use std::path::Path;

/// Each crate and the workspace crates its code may use (tests may use more).
const LAYERS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("kernel", &["types"]),
    ("trace", &["types"]),
    ("engine", &["types", "trace"]),
    ("block", &["types", "trace", "engine", "kernel"]),
    ("sched", &["types", "trace", "engine", "kernel", "block"]),
    ("device", &["types", "engine"]),
    ("fs", &["types", "engine", "kernel"]),
    ("workload", &["types", "engine"]),
    ("fio", &["types"]),
    ("fiostat", &["types"]),
    (
        "experiment",
        &[
            "types", "kernel", "fio", "workload", "device", "sched", "block",
        ],
    ),
    (
        "sim",
        &[
            "types",
            "trace",
            "engine",
            "kernel",
            "block",
            "sched",
            "device",
            "fs",
            "workload",
            "fio",
            "fiostat",
            "experiment",
        ],
    ),
    ("formats", &["types", "trace", "kernel"]),
    ("analysis", &["types", "trace"]),
    (
        "blklab",
        &[
            "types",
            "trace",
            "engine",
            "kernel",
            "block",
            "sched",
            "device",
            "fs",
            "workload",
            "fio",
            "fiostat",
            "experiment",
            "sim",
            "formats",
            "analysis",
        ],
    ),
    (
        "fidelity",
        &[
            "types",
            "trace",
            "device",
            "fio",
            "fiostat",
            "experiment",
            "sim",
            "formats",
            "blklab",
        ],
    ),
    ("cli", &["blklab", "fidelity"]),
];

#[test]
fn crates_use_only_what_lies_below_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = 0;
    for entry in std::fs::read_dir(&crates).expect("the crates folder") {
        let dir = entry.expect("an entry").path();
        let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).expect("a manifest");
        let name = dir.file_name().and_then(|n| n.to_str()).expect("a name");
        let short = name.strip_prefix("blklab-").unwrap_or(name);
        let (_, allowed) = LAYERS
            .iter()
            .find(|(n, _)| *n == short)
            .unwrap_or_else(|| panic!("crate {name} is not in the table of layers"));
        for used in dependencies(&manifest) {
            assert!(
                allowed.contains(&used.as_str()),
                "{name} must not use blklab-{used}"
            );
        }
        found += 1;
    }
    assert_eq!(found, LAYERS.len(), "a crate of the table is missing");
}

/// Workspace crates in `[dependencies]`, without their prefix.
fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest
        .lines()
        .skip_while(|l| *l != "[dependencies]")
        .skip(1);
    lines
        .take_while(|l| !l.starts_with('['))
        .filter_map(|l| l.split(['.', ' ', '=']).next())
        .filter_map(|n| match n {
            "blklab" => Some("blklab".to_owned()),
            n => n.strip_prefix("blklab-").map(str::to_owned),
        })
        .collect()
}
