// SPDX-License-Identifier: MIT OR Apache-2.0
//! What help texts and documents tell people to type works, and prints what
//! they show.
//!
//! Every command of a document runs here, but for those in [`LONG`], which
//! `make test-docs` runs, and in [`ELSEWHERE`], which say why they do not.

use crate::documents::{Document, documents};
use crate::support::{Folder, root};
use crate::transcript;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Commands that take minutes beside `reproduce` in full.
const LONG: &[&str] = &[
    "make run",
    "blklab conform testdata/fio-6.1/cases",
    "blklab conform testdata/fio-6.1/cases --output-format markdown",
    "blklab conform testdata/machine-2628",
    "blklab conform --causes",
    "blklab conform --causes --class idling,flush --count 20 --keep wrong",
    "blklab conform --causes --case idling-0",
    "blklab conform --causes --count 148 --output-format markdown",
    "blklab conform --causes --seed 7001 --count 148 --output-format markdown",
    "blklab conform --causes --seed 5002 --kernel 7.3 --count 110 --output-format markdown",
    "blklab run examples/db-beside-backup.fio --kernel 6.12,7.3 --fs ext4 --device sata-ssd --changes \
     | sed -n '/^What/,$p'",
    "blklab recommend examples/laptop-update.fio --device samsung-860-evo --fs ext4 --memory 2g",
    "blklab recommend examples/wal-beside-backup.fio --fs ext4 --device sata-ssd --kernel debian-13 \
     --memory 1g --keep 'bandwidth of backup >= 50 %'",
    "blklab run examples/quantum-2010.toml --trace quantum",
    "blklab fit-device testdata/fit/samsung-980-pro.csv -o drive.toml",
    "blklab fit-device testdata/fit/reads.json --like nvme-consumer,ways=4",
];

/// Studies of which even one seed runs for long: half a million I/Os of NVMe drives, and the
/// starts of a program beside ten others.
const LONG_STUDIES: [&str; 2] = [" nvme-", " bfq-startup"];

/// Whether a command runs whole studies. One seed of a study is mostly quick enough.
fn is_long(command: &str) -> bool {
    let study = command.strip_prefix("blklab reproduce");
    study.is_some_and(|args| {
        let is_quick =
            args.contains("--quick") && !LONG_STUDIES.iter().any(|name| args.contains(name));
        !is_quick && args.trim() != "list"
    }) || LONG.contains(&command)
}

/// Blocks that do not run here: a line of theirs, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "make test ",
        "it runs these tests; that its targets exist is tested",
    ),
    (
        "zstd -d trace-sda",
        "the measured trace is not part of the project",
    ),
    (
        "blklab kernel ",
        "it fetches the source of a kernel and builds it, for minutes",
    ),
    ("--target kernel", "it needs a kernel that was built"),
    ("--target sim,kernel", "it needs a kernel that was built"),
    ("--target qemu", "it needs an image that was fetched"),
    ("--target kvm", "it needs an image that was fetched"),
    ("--against kernel", "it needs a kernel that was built"),
    ("BLKLAB_FUZZ_", "it fuzzes for minutes"),
    ("blklab sweep FILE", "it is part of the package for Python"),
    ("blklab tune FILE", "it is part of the package for Python"),
    (
        "blklab fleet TRACES",
        "it is part of the package for Python",
    ),
    (
        "pip install",
        "it builds for minutes; make python installs the wheel and tests it",
    ),
];

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

/// Likewise; a study whose numbers are off is right, too.
fn works_or_differs(f: &Folder, command: &str, place: &str) {
    if command.starts_with("blklab reproduce") {
        works(f, &format!("{command} || test $? = 1"), place);
    } else {
        works(f, command, place);
    }
}

/// The commands of the command line, `trace stats` and the like included.
fn subcommands(f: &Folder) -> Vec<String> {
    let subcommands = |parent: &str| -> Vec<String> {
        let help = f.ok(&[parent, "--help"]
            .map(str::trim)
            .into_iter()
            .filter(|a| !a.is_empty())
            .collect::<Vec<_>>());
        let Some((_, rest)) = help.split_once("Commands:\n") else {
            return Vec::new();
        };
        let lines = rest.lines().take_while(|l| !l.is_empty());
        let names = lines.filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
        let names = names.filter(|n| !n.is_empty() && *n != "help");
        names
            .map(|n| format!("{parent} {n}").trim().to_owned())
            .collect()
    };
    let top = subcommands("");
    let below = top
        .iter()
        .flat_map(|name| subcommands(name))
        .collect::<Vec<_>>();
    let root = std::iter::once(String::new());
    root.chain(top.iter().cloned()).chain(below).collect()
}

fn help(f: &Folder, command: &str) -> String {
    let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    f.ok(&args)
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
    for command in subcommands(&f) {
        for example in examples(&help(&f, &command)) {
            let example = format!("blklab {example}");
            let is_elsewhere = ELSEWHERE.iter().any(|(part, _)| example.contains(part));
            if is_long(&example) || is_elsewhere {
                continue;
            }
            works_or_differs(&f, &example, &format!("help of {command}"));
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
            "e, kernel 2.6.28, deadline, sata-7200-2008,rpm=5400, queue depth 4\nsmall batches"
        ),
        "{text}"
    );
}

/// Does something for every document, two at a time.
fn for_documents(run: impl Fn(&Document) + Sync) {
    let queue = Mutex::new(documents());
    let next = || queue.lock().expect("no other failed").pop();
    let work = || {
        while let Some(document) = next() {
            run(&document);
        }
    };
    std::thread::scope(|s| {
        let other = s.spawn(work);
        work();
        other.join().expect("its documents are right");
    });
}

/// Shell blocks run as they stand, and what documents show of output is what is
/// printed, in one folder for each document. (The tutorial's command is its own;
/// its test compares it.)
#[test]
fn commands_and_output_in_documents() {
    let counts = Mutex::new((0, 0));
    for_documents(|document| {
        let f = folder();
        let mut blocks = 0;
        for block in document.blocks().iter().filter(|b| b.kind == "sh") {
            let text = &block.text;
            let elsewhere = ELSEWHERE.iter().any(|(line, _)| text.contains(line));
            if elsewhere || text.lines().any(is_long) {
                continue;
            }
            works(&f, &format!("set -e\n{text}"), &document.name);
            blocks += 1;
        }
        let outputs = transcript::check(&document.path, |command| {
            if !command.starts_with("blklab ") || is_long(command) {
                return None;
            }
            let done = f.shell(command);
            assert_eq!(done.code, Some(0), "{command}: {}", done.stderr);
            Some(done.stdout)
        });
        let mut sums = counts.lock().expect("no other failed");
        *sums = (sums.0 + blocks, sums.1 + outputs);
    });
    for (line, _) in ELSEWHERE {
        let named = documents().iter().any(|d| d.text.contains(line));
        assert!(named, "no document has {line}");
    }
    let (blocks, outputs) = counts.into_inner().expect("no other failed");
    println!("{blocks} blocks of commands, {outputs} of output");
    assert!(blocks >= 20 && outputs >= 7, "{blocks}, {outputs}");
}

/// Whether it is a command to be typed: no name of a subcommand alone, and
/// nothing that stands for something else.
fn is_complete(f: &[String], command: &str) -> bool {
    let args = command.strip_prefix("blklab ").unwrap_or(command);
    let stands_for = |w: &str| {
        w.len() > 1
            && w.chars()
                .all(|c| c.is_ascii_uppercase() || "_=".contains(c))
    };
    let is_name = f.iter().any(|name| name == args) && args != "reproduce";
    !is_name
        && !args.contains('…')
        && !args
            .split([' ', '=', ','])
            .any(|w| stands_for(w) || w == "V")
}

/// Commands within sentences.
#[test]
fn commands_in_sentences() {
    let f = folder();
    let names = subcommands(&f);
    let mut commands = BTreeSet::new();
    for document in documents() {
        for q in document
            .quoted()
            .iter()
            .filter(|q| q.starts_with("blklab "))
        {
            let words = q.split_whitespace().skip(1).take(2).collect::<Vec<_>>();
            let known = names
                .iter()
                .any(|n| !n.is_empty() && words.join(" ").starts_with(n.as_str()));
            assert!(known, "{}: there is no {q}", document.name);
            let is_elsewhere = ELSEWHERE.iter().any(|(line, _)| q.contains(line));
            if known && is_complete(&names, q) && !is_long(q) && !is_elsewhere {
                commands.insert(q.clone());
            }
        }
    }
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        works_or_differs(&f, &command, "a sentence");
    }
}

/// Options that documents name: of blklab, or of the tool that they are about.
#[test]
fn options_in_documents() {
    const OF_OTHERS: &[(&str, &str)] = &[
        ("--nocapture", "cargo test"),
        ("--release", "cargo"),
        ("--debug=io", "fio"),
        ("--parse-only", "fio"),
        ("--path", "cargo install"),
        ("--create_only=1", "fio"),
    ];
    let f = folder();
    let known: BTreeSet<String> = subcommands(&f)
        .iter()
        .flat_map(|c| {
            let help = help(&f, c);
            let words = help.split([' ', '\n', ',', '[', ']']);
            let options = words.filter(|w| w.starts_with("--"));
            options.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    // Programs in Python have options of their own, which their tests know.
    let of_command = |d: &Document| !d.name.contains("python-");
    for document in documents().into_iter().filter(of_command) {
        let blocks = document.blocks();
        let blocks = blocks
            .iter()
            .filter(|b| b.kind == "sh")
            .map(|b| b.text.clone());
        for text in document.quoted().into_iter().chain(blocks) {
            let words = text.split([' ', '\n', '`', ')']);
            for word in words.filter(|w| w.starts_with("--") && w.len() > 2) {
                let option = word.split('=').next().unwrap_or(word);
                let of_another = OF_OTHERS.iter().any(|(o, _)| *o == word);
                let other = text.contains("cargo ") || text.contains("scripts/");
                assert!(
                    known.contains(option) || of_another || other,
                    "{}: no option {word}",
                    document.name
                );
            }
        }
    }
}

/// Complete experiment files in documents run.
#[test]
fn experiment_files_in_documents() {
    let f = folder();
    let examples = root().join("examples").canonicalize().expect("a folder");
    std::os::unix::fs::symlink(
        examples.join("ssh-beside-dd.fio"),
        f.path("ssh-beside-dd.fio"),
    )
    .expect("a link");
    let mut count = 0;
    for document in documents() {
        let blocks = document.blocks();
        let is_complete = |t: &str| {
            let workloads = ["job = ", "job_file = ", "[[processes]]", "[scenario]"];
            t.lines()
                .any(|l| workloads.iter().any(|w| l.starts_with(w)))
        };
        for block in blocks
            .iter()
            .filter(|b| b.kind == "toml" && is_complete(&b.text))
        {
            f.write("e.toml", &block.text);
            works(&f, "blklab run e.toml", &document.name);
            count += 1;
        }
    }
    assert!(count >= 3, "{count} experiment files");
}

/// What runs for minutes: commands of documents, and what is shown of them.
#[test]
#[ignore = "runs whole studies; make test-docs"]
fn long_commands_in_documents() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let recipe = |target: &str| {
        let (_, rest) = makefile
            .split_once(&format!("\n{target}:"))
            .expect("a target");
        let line = rest.lines().nth(1).expect("a recipe");
        let (_, args) = line.split_once("--bin blklab -- ").expect("it runs blklab");
        format!("blklab {}", args.replace("$$", "$"))
    };
    let f = folder();
    let run = |command: &str| {
        let typed = match command.strip_prefix("make ") {
            Some(target) => recipe(target),
            None => command.to_owned(),
        };
        let done = f.shell(&typed);
        assert!(
            matches!(done.code, Some(0 | 1)),
            "{command}: {}",
            done.stderr
        );
        done.stdout
    };
    let mut shown = BTreeSet::new();
    for document in documents() {
        transcript::check(&document.path, |command| {
            is_long(command).then(|| {
                shown.insert(command.to_owned());
                run(command)
            })
        });
    }
    let all = documents();
    let quoted = all.iter().flat_map(Document::quoted);
    let blocks = all.iter().flat_map(Document::blocks);
    let lines = blocks.flat_map(|b| b.text.lines().map(str::to_owned).collect::<Vec<_>>());
    let long: BTreeSet<String> = quoted.chain(lines).filter(|c| is_long(c)).collect();
    for command in long.difference(&shown) {
        run(command);
    }
}

/// Each example is in a command or an experiment file that runs here.
#[test]
fn every_example_is_used() {
    let mut texts: Vec<String> = documents().into_iter().map(|d| d.text).collect();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("examples")).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension() == Some("toml".as_ref()) {
            texts.push(std::fs::read_to_string(&path).expect("an experiment"));
        }
        let name = path.file_name().expect("a name").to_string_lossy();
        names.push(name.into_owned());
    }
    for name in names {
        let used = texts.iter().any(|t| t.contains(&name));
        assert!(used, "examples/{name} is in no command");
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
