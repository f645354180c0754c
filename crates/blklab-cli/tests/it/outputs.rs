// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs replace nothing that the command reads and nothing that belongs to a run directory,
//! whatever the command, the option and the name. A command that gets another option for a file
//! fails here until it says whether that is read or written.

use crate::support::{Folder, root};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, symlink};

/// Options whose files are only read.
const READ: [&str; 9] = [
    "blklab",
    "context",
    "stack",
    "results",
    "disk",
    "filename",
    "fio",
    "kernel-source",
    "modules",
];

/// A command that must be refused, with the option that writes; `@` is the name of a file that
/// must not be replaced.
struct Case {
    option: &'static str,
    command: &'static str,
    /// The file, and how the folder is made ready where the option names a folder.
    keeps: &'static str,
}

const fn case(option: &'static str, command: &'static str, keeps: &'static str) -> Case {
    Case {
        option,
        command,
        keeps,
    }
}

/// Each option that writes: over what the command reads, where it reads something, and over what
/// belongs to a run directory. `links` has links to it under the names that are written there.
const CASES: &[Case] = &[
    case("run --output", "run job.fio --output @", "job.fio"),
    case("run --output", "run ran --output @", "ran/experiment.toml"),
    case("run --output", "run ran --output @", "ran/events.blk"),
    case("run --output", "run job.fio --output @", "ran/result.json"),
    case(
        "run --output",
        "run job.fio --device drive.toml --output @",
        "drive.toml",
    ),
    case("run --trace", "run job.fio --trace @", "ran/events.blk"),
    case("run --trace", "run --trace-in in.txt --trace @", "in.txt"),
    case("run --out", "run ran --out ran", "ran/experiment.toml"),
    case(
        "run --out",
        "run --trace-in ran --out ran",
        "ran/events.blk",
    ),
    case(
        "reproduce --output",
        "reproduce list --output @",
        "ran/result.json",
    ),
    case(
        "reproduce --output",
        "reproduce cfq-quantum-2010 --testbeds 1 --save tb --output tb/runs.jsonl",
        "in.txt",
    ),
    case(
        "reproduce --save",
        "reproduce cfq-quantum-2010 --testbeds 1 --save links",
        "ran/events.blk",
    ),
    case(
        "conform --keep",
        "conform --against kernel --keep ran",
        "ran/experiment.toml",
    ),
    case("trace convert OUTPUT", "trace convert in.txt @", "in.txt"),
    case(
        "trace convert OUTPUT",
        "trace convert in.txt @",
        "ran/events.blk",
    ),
    case(
        "trace convert OUTPUT",
        "trace convert two two.blktrace.0",
        "two.blktrace.1",
    ),
    case(
        "trace to-fio --output",
        "trace to-fio in.txt -o @",
        "in.txt",
    ),
    case(
        "trace to-fio --output",
        "trace to-fio ran -o @",
        "ran/job.fio",
    ),
    case(
        "trace to-fio --output",
        "trace to-fio in.txt --context context.txt -o @",
        "context.txt",
    ),
    case(
        "trace to-fio --output",
        "trace to-fio in.txt --stack ran -o @",
        "ran/experiment.toml",
    ),
    case("record --output", "record -o @ -- true", "ran/events.blk"),
    case("report --output", "report in.txt -o @", "in.txt"),
    case("report --output", "report ran -o @", "ran/result.json"),
    case("report --output", "report in.txt -o @", "ran/events.blk"),
    case(
        "report --output",
        "report two.blktrace.0 -o @",
        "two.blktrace.1",
    ),
    case(
        "report --output",
        "report in.txt --context context.txt -o @",
        "context.txt",
    ),
    case("report --svg", "report in.txt --svg links", "in.txt"),
    case("report --png", "report in.txt --png links", "in.txt"),
    case(
        "compare --output",
        "compare in.txt other.txt --output @",
        "in.txt",
    ),
    case(
        "compare --output",
        "compare ran other.txt --output @",
        "ran/events.blk",
    ),
    case(
        "compare --output",
        "compare in.txt other.txt --output @",
        "ran/result.json",
    ),
    case(
        "compare --output",
        "compare two.blktrace.0 other.txt --output @",
        "two.blktrace.1",
    ),
    case("fit-device --output", "fit-device in.txt -o @", "in.txt"),
    case(
        "fit-device --output",
        "fit-device reads.json -o @",
        "reads.json",
    ),
    case(
        "fit-device --output",
        "fit-device reads.json -o @",
        "ran/result.json",
    ),
    case(
        "fit-device --out",
        "fit-device --jobs --out links",
        "in.txt",
    ),
    case(
        "example --out",
        "example random-read.fio --out links",
        "in.txt",
    ),
    case("man --out", "man --out links", "ran/events.blk"),
];

/// Names that commands give to files of their own in a folder.
const NAMES: [&str; 5] = [
    "runs.jsonl",
    "blklab.1",
    "random-read.fio",
    "testbeds.json",
    "samples.csv",
];

/// A folder with what the cases name.
fn folder() -> Folder {
    let f = Folder::new();
    f.ok(&["run", "job.fio", "--out", "ran"]);
    let testdata = root().join("testdata");
    let copy = |from: &str, to: &str| {
        f.write(to, std::fs::read(testdata.join(from)).expect("test data"));
    };
    copy("blkparse/sync-write-2.6.24.txt", "in.txt");
    copy("blkparse/missed-merge.txt", "other.txt");
    copy("blkparse/all-actions.blktrace.0", "two.blktrace.0");
    copy("blkparse/all-actions.blktrace.1", "two.blktrace.1");
    copy("fit/reads.json", "reads.json");
    copy("fit/drive.toml", "drive.toml");
    f.write("context.txt", "kernel=2.6.24\n");
    f.shell("mkdir tb");
    f
}

/// All files with their contents.
fn contents(f: &Folder) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![String::from(".")];
    while let Some(folder) = folders.pop() {
        for name in f.names(&folder) {
            let name = format!("{folder}/{name}");
            match f.path(&name) {
                path if path.is_dir() => folders.push(name),
                path => drop(all.insert(name, std::fs::read(path).expect("a file"))),
            }
        }
    }
    all
}

#[test]
fn nothing_that_is_read_or_of_a_run_is_replaced() {
    let f = folder();
    // Names under which the charts of a report and the jobs of a fit are written.
    let charts = f.run(&["report", "in.txt", "--svg", "charts", "--png", "charts"]);
    assert_eq!(charts.code, Some(0), "{}", charts.stderr);
    let jobs = f.run(&["fit-device", "--jobs", "--out", "jobs"]);
    assert_eq!(jobs.code, Some(0), "{}", jobs.stderr);
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    names.extend(f.names("charts"));
    names.extend(f.names("jobs"));
    for Case {
        option,
        command,
        keeps,
    } in CASES
    {
        let _ = std::fs::remove_dir_all(f.path("links"));
        std::fs::create_dir(f.path("links")).expect("a folder");
        for name in &names {
            let to = f.path("links").join(name);
            symlink(f.path(keeps), to).expect("a link");
        }
        // The end of a name says what kind of trace it is.
        let end = keeps.rsplit('.').next().unwrap_or_default();
        let (hard, soft) = (format!("hard.{end}"), format!("soft.{end}"));
        std::fs::hard_link(f.path(keeps), f.path(&hard)).expect("a link");
        symlink(keeps, f.path(&soft)).expect("a link");
        let mut shown = vec![
            (*keeps).to_owned(),
            format!("./{keeps}"),
            format!("links/../{keeps}"),
            f.path(keeps).display().to_string(),
            soft.clone(),
        ];
        // Another name of a file of a run is no file of the run, unless it is read.
        if !keeps.starts_with("ran/") || command.split(' ').any(|word| word == "ran") {
            shown.push(hard.clone());
        }
        if !command.contains('@') {
            shown.truncate(1);
        }
        let before = contents(&f);
        for shown in &shown {
            let args: Vec<&str> = command
                .split(' ')
                .map(|word| if word == "@" { shown } else { word })
                .collect();
            let done = f.run(&args);
            assert_eq!(done.code, Some(2), "{option}: {args:?}: {}", done.stderr);
            let said = done.stderr.lines();
            let said = said.filter(|line| !line.contains("that the text leaves out"));
            assert_eq!(said.count(), 1, "{args:?}: {}", done.stderr);
            let why = [
                "which this command reads",
                "belongs to the run directory ran",
                "exists and is another file",
                "the folder is not empty",
                "both write",
            ];
            let is_refused = why.iter().any(|why| done.stderr.contains(why));
            assert!(is_refused, "{args:?}: {}", done.stderr);
            let after = contents(&f);
            let changed = |name: &&String| before.get(*name) != after.get(*name);
            let names = before.keys().chain(after.keys());
            let changed: Vec<&String> = names.filter(changed).collect();
            assert!(changed.is_empty(), "{args:?}: {changed:?}");
        }
        let links = f.path(keeps).metadata().expect("a file").nlink();
        assert_eq!(links, 2, "{option} {keeps}");
        for link in [hard, soft] {
            std::fs::remove_file(f.path(&link)).expect("a link");
        }
    }
}

/// Options with a file or a folder, of all commands, as their help shows them.
fn options_with_files(f: &Folder) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut commands = vec![Vec::new(), vec!["man".to_owned()]];
    while let Some(command) = commands.pop() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        let help = f.ok(&args);
        let listed = help
            .split_once("\nCommands:\n")
            .map_or("", |(_, rest)| rest);
        for line in listed.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap_or_default();
            if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
                commands.push([&command[..], &[name.to_owned()]].concat());
            }
        }
        for line in help.lines().filter(|line| line.contains("--")) {
            let Some((_, option)) = line.split_once("--") else {
                continue;
            };
            let names_file = ["<FILE>", "<DIR>", "<FILE|DIR>", "<NAME>"];
            let known = ["output", "out", "save", "svg", "png", "trace"];
            let name = option.split(' ').next().unwrap_or_default();
            let is_option = line.trim_start().starts_with('-')
                && option.contains(" <")
                && names_file.iter().any(|value| option.contains(value));
            let is_name = option.contains("<NAME>") && !known.contains(&name);
            if is_option && !is_name {
                found.insert(format!("{} --{name}", command.join(" ")));
            }
        }
    }
    found
}

#[test]
fn each_option_that_writes_has_a_case() {
    let f = Folder::new();
    let all = options_with_files(&f);
    let written: BTreeSet<&str> = CASES.iter().map(|case| case.option).collect();
    for option in &all {
        let (_, name) = option.rsplit_once("--").expect("an option");
        assert!(
            READ.contains(&name) || written.contains(option.as_str()),
            "{option}: is its file read or written?"
        );
    }
    for option in written {
        let there = all.contains(option) || option == "trace convert OUTPUT";
        assert!(there, "{option} is no option: {all:?}");
    }
}

/// What a page or a table of a run directory replaces is one that was made before, not the run.
#[test]
fn results_beside_a_run_are_made_anew() {
    let f = folder();
    for _ in 0..2 {
        f.ok(&["report", "ran", "-o", "ran/report.html"]);
        f.ok(&["run", "ran", "--output", "ran/table.txt"]);
    }
    // A file that is written has another name until it is whole.
    f.shell("cp in.txt x.partial");
    let done = f.run(&["compare", "x.partial", "other.txt", "--output", "x"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert_eq!(f.read("x.partial"), f.read("in.txt"));
    let piped = f.shell("blklab compare - other.txt --output in.txt < in.txt");
    assert_eq!(piped.code, Some(2), "{}", piped.stderr);
    assert!(
        piped.stderr.contains("which this command reads"),
        "{}",
        piped.stderr
    );
}

/// Results of testbeds are replaced where the runs that they are from are beside them.
#[test]
fn a_folder_of_others_is_not_taken_for_testbeds() {
    let f = Folder::new();
    f.write("mine/samples.csv", "a,b\n");
    let args = ["reproduce", "cfq-quantum-2010", "--testbeds", "1", "--save"];
    let done = f.run(&[&args[..], &["mine"]].concat());
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("mine/samples.csv exists, and there is no runs.jsonl"),
        "{}",
        done.stderr
    );
    assert_eq!(f.names("mine"), ["samples.csv"]);
    f.write("notes/runs.jsonl", "my notes, without an end of line");
    let done = f.run(&[&args[..], &["notes"]].concat());
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("notes/runs.jsonl:1: "),
        "{}",
        done.stderr
    );
    assert_eq!(
        f.read("notes/runs.jsonl"),
        "my notes, without an end of line"
    );
}

/// A file that cannot be written whole leaves nothing, and what had its name stays. The limit of
/// the shell stands for a disk that is full.
#[test]
fn failed_outputs_leave_nothing() {
    let f = folder();
    f.shell("echo mine > there");
    f.write(
        "job.fio",
        "[a]\nrw=randread\nsize=4m\ndirect=1\nwrite_lat_log=log\n",
    );
    f.ok(&["run", "job.fio", "--trace", "big.blk"]);
    f.shell("rm -f log_*");
    let commands = [
        "run job.fio --out new",
        "run job.fio --output-format json+ --output there --set queue_depth=2",
        "run job.fio --trace x",
        "run job.fio --trace x.blk",
        "run job.fio --sched none,bfq --out new",
        "trace convert big.blk x",
        "trace convert big.blk x.blk",
        "trace convert big.blk x.csv",
        "trace convert big.blk x.txt",
        "trace convert big.blk x.parquet",
        "trace convert big.blk x.pftrace",
        "trace convert big.blk x.iolog",
        "trace to-fio big.blk --exact -o x.fio",
        "report in.txt -o there",
        "report in.txt --svg new --png new",
        "compare in.txt other.txt --output there --format json",
        "man --out new",
    ];
    let before = contents(&f);
    for command in commands {
        // Blocks of 512 bytes in most shells, of 1024 in some.
        let done = f.shell(&format!(
            "trap '' XFSZ; ulimit -f 1; blklab {command} | cat"
        ));
        let after = contents(&f);
        let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
        assert!(
            done.stderr.contains("File too large"),
            "{command}: {}",
            done.stderr
        );
        assert_eq!(names(&after), names(&before), "{command}");
        assert!(after == before, "{command}: a file has changed");
        assert!(!f.path("new").exists(), "{command}: a folder is left");
    }
}
