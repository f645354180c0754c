// SPDX-License-Identifier: MIT OR Apache-2.0
//! What help texts and documents tell people to type works.

use crate::support::{Folder, root};
use crate::transcript;
use std::path::{Path, PathBuf};

/// A folder with everything that examples name.
fn folder() -> Folder {
    let f = Folder::new();
    for name in ["examples", "testdata"] {
        let from = root().join(name);
        if from.is_dir() {
            let from = from.canonicalize().expect("a folder");
            std::os::unix::fs::symlink(from, f.path(name)).expect("a link");
        }
    }
    f
}

fn works(f: &Folder, command: &str, place: &str) {
    let done = f.shell(command);
    assert_eq!(done.code, Some(0), "{place}: {command}\n{}", done.stderr);
}

/// The examples of a help text: lines that begin with the command. What
/// follows after several blanks explains it.
fn examples(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().filter_map(|l| l.strip_prefix("  blklab "));
    lines.map(|l| l.split("  ").next().unwrap_or(l))
}

#[test]
fn examples_in_help_texts() {
    let f = folder();
    let mut count = 0;
    let commands = [
        "",
        "run",
        "workload",
        "conform",
        "list",
        "trace",
        "example",
        "completions",
    ];
    for command in commands {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        for example in examples(&f.ok(&args)) {
            works(
                &f,
                &format!("blklab {example}"),
                &format!("help of {command}"),
            );
            count += 1;
        }
    }
    assert!(count >= 20, "{count} examples");
}

#[test]
fn the_experiment_file_in_the_help_runs() {
    let f = folder();
    let help = f.ok(&["run", "--help"]);
    let (_, example) = help
        .split_once("An experiment file is")
        .expect("it is there");
    let lines = example.lines().filter_map(|l| l.strip_prefix("  "));
    f.write("e.toml", lines.collect::<Vec<_>>().join("\n"));
    let text = f.ok(&["run", "e.toml"]);
    assert!(
        text.starts_with(
            "e, kernel 2.6.28, deadline, sata-7200-2008,rpm=5400, queue depth 4\nsmall"
        ),
        "{text}"
    );
}

/// The `sh` blocks of a document that begin with the command.
fn blocks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            None if line.trim() == "```sh" => block = Some(String::new()),
            None => {}
            Some(_) if line.trim() == "```" => found.extend(block.take()),
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found.retain(|b| b.trim_start().starts_with("blklab "));
    found
}

/// Every document, sorted.
fn documents() -> Vec<PathBuf> {
    let folders = [
        ".",
        "docs",
        "docs/filesystems",
        "docs/reports",
        "docs/schedulers",
    ];
    let folders = folders.map(|f| std::fs::read_dir(root().join(f)));
    let entries = folders.into_iter().flat_map(|f| f.expect("a folder"));
    let files = entries.map(|e| e.expect("an entry").path());
    let mut files: Vec<_> = files
        .filter(|f| f.extension() == Some("md".as_ref()))
        .collect();
    files.sort();
    files
}

#[test]
fn commands_in_documents() {
    for file in &documents() {
        let text = std::fs::read_to_string(file).expect("a document");
        let f = folder();
        for block in blocks(&text) {
            works(&f, &format!("set -e\n{block}"), &file.display().to_string());
        }
    }
}

/// Every setting of the queue and of the machine is in the page on experiment
/// files.
#[test]
fn the_page_on_experiments_names_every_setting() {
    let f = Folder::new();
    let page = std::fs::read_to_string(root().join("docs/experiments.md")).expect("the page");
    let list = f.ok(&["list", "tunables"]);
    let names = list.lines().filter_map(|l| {
        let key = l.split_whitespace().next()?;
        let (table, name) = key.split_once('/')?;
        ["queue", "machine"].contains(&table).then_some(name)
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 26, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
    }
}

/// What documents show of output is what is printed. (The tutorial's command is
/// its own; its test compares it.)
#[test]
fn output_in_documents() {
    let f = folder();
    let mut count = 0;
    for file in documents() {
        count += transcript::check(&file, |command| {
            if !command.starts_with("blklab ") {
                return None;
            }
            let done = f.shell(command);
            assert_eq!(done.code, Some(0), "{command}: {}", done.stderr);
            Some(done.stdout)
        });
    }
    assert!(count >= 2, "{count} blocks of output");
}

#[test]
fn blocks_are_found() {
    let text = "x\n```sh\nblklab list kernels\n```\n```sh\ncargo build\n```\n```\nblklab x\n```\n";
    assert_eq!(blocks(text), ["blklab list kernels\n"]);
    assert!(Path::new(env!("CARGO_BIN_EXE_blklab")).exists());
}
