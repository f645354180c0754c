// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the command are known to the command: texts of libraries name keys and things.

use std::collections::BTreeSet;

/// What stands before an option that a text quotes of another program.
const QUOTED: [&str; 14] = [
    ".arg(\"",
    ".args([\"",
    "\"-coz\", \"",
    "\"indextargets\", \"",
    "cargo test -p blklab-device ",
    "diff ",
    // Of a command line of fio, which a posted text holds.
    "engine(line, \"",
    "fio ",
    "fio: ",
    "fstrim ",
    "lttng create ",
    "mdadm ",
    "option(line, \"",
    // What somebody is told to type to see what a trace does not show.
    "sudo blklab record {device} ",
];

/// Files that write what a machine's shell runs: programs there have options.
const SCRIPTS: [&str; 6] = [
    "blklab-kernel-target/src/kernel/array.rs",
    "blklab-kernel-target/src/kernel/dm.rs",
    "blklab-kernel-target/src/kernel/filesystem/kinds.rs",
    "blklab-kernel-target/src/kernel/loops.rs",
    "blklab-kernel-target/src/build/image.rs",
    "blklab-kernel-target/src/build/simdisk.rs",
];

#[test]
fn libraries_name_no_options_of_the_command() {
    let mut found = Vec::new();
    let mut quoted = BTreeSet::new();
    for name in super::crates().iter().filter(|name| *name != "cli") {
        super::each_line(
            &super::folder(name).join("src"),
            &mut |place, line| match before_option(line) {
                None => {}
                Some(_) if SCRIPTS.iter().any(|file| place.contains(file)) => {}
                Some(before) => match QUOTED.iter().find(|words| before.ends_with(**words)) {
                    Some(words) => {
                        quoted.insert(words);
                    }
                    None => found.push(format!("{place}: {line}")),
                },
            },
        );
    }
    assert!(
        found.is_empty(),
        "name the key or the thing, and let blklab-cli say which option it is:\n{}",
        found.join("\n")
    );
    let unused: Vec<_> = QUOTED.iter().filter(|w| !quoted.contains(w)).collect();
    assert!(unused.is_empty(), "nothing quotes {unused:?} any more");
}

/// What stands before the first option in a line that is no comment.
fn before_option(line: &str) -> Option<&str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let mut marks = line.match_indices("--").map(|(at, _)| line.split_at(at));
    let option = marks.find(|(_, option)| {
        let name = option.trim_start_matches('-');
        name.starts_with(|c: char| c.is_ascii_lowercase())
    });
    option.map(|(before, _)| before)
}

#[test]
fn options_are_seen() {
    for (line, before) in [
        ("    \"no kernel (--kernel)\"", Some("    \"no kernel (")),
        ("    \"run fio --output=x\"", Some("    \"run fio ")),
        ("    /// `--kernel`.", None),
        ("    \"<!-- generated -->\"", None),
        ("    let x = 3;", None),
    ] {
        assert_eq!(before_option(line), before, "{line}");
    }
}
