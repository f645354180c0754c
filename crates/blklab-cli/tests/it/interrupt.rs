// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and SIGTERM in the middle of something long.

use crate::support::Folder;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LONG: &str = "\
[a]
rw=randread
size=10g
direct=1
time_based
runtime=100000000
";

fn start(f: &Folder, args: &[&str]) -> Child {
    f.write("long.fio", LONG);
    let child = f
        .command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("blklab starts")
}

/// Signals that ask to end, and what a command that they ended exits with.
const SIGNALS: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

/// Those that a child heeds: under `nohup` it inherits that SIGHUP is ignored.
fn signals() -> impl Iterator<Item = (&'static str, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|l| u64::from_str_radix(l.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let ignores_hup = ignored.is_some_and(|mask| mask & 1 != 0);
    SIGNALS
        .into_iter()
        .filter(move |(name, _)| *name != "HUP" || !ignores_hup)
}

fn interrupt(child: &Child) {
    signal(child, "INT");
}

fn signal(child: &Child, name: &str) {
    // Of the shell: not every machine has the program.
    let kill = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(kill.expect("a shell").success());
}

/// Waits until the run has begun: until its trace is there.
fn wait_for(f: &Folder, name: &str) {
    let begin = Instant::now();
    while !f.path(name).exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "{name} does not appear"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
}

/// Exit code, seconds it took, standard output.
fn end(mut child: Child) -> (Option<i32>, f64, String) {
    let begin = Instant::now();
    let mut text = String::new();
    let mut out = child.stdout.take().expect("piped");
    out.read_to_string(&mut text).expect("text");
    let status = child.wait().expect("it ends");
    (status.code(), begin.elapsed().as_secs_f64(), text)
}

#[test]
fn what_ran_so_far_is_shown_and_kept() {
    for (name, exit) in signals() {
        let f = Folder::new();
        let child = start(&f, &["run", "long.fio", "--out", "o", "--trace", "t"]);
        wait_for(&f, "o/events.blk.partial");
        signal(&child, name);
        let (code, seconds, text) = end(child);
        assert_eq!(code, Some(exit), "{text}");
        // A second is the aim; machines that build something else are slower.
        assert!(seconds < 5.0, "{seconds} s");
        assert!(text.contains("\nread, job "), "{text}");
        assert!(text.contains("interrupted at "), "{text}");
        assert_eq!(
            f.names("o"),
            ["events.blk", "experiment.toml", "job.fio", "result.json"]
        );
        assert!(f.read("o/result.json").contains("\"interrupted\": true"));
        for trace in ["t", "o/events.blk", "o"] {
            let info = f.ok(&["trace", "info", trace]);
            assert!(info.contains("damage    none"), "{info}");
        }
    }
}

/// A command that reads a trace which does not come to its end is ended, and leaves nothing.
#[test]
fn what_reads_is_ended_and_leaves_nothing() {
    let line = "8,0 0 1 0.000000000 7 Q R 1000 + 8 [x]\n";
    let commands: [&[&str]; 13] = [
        &["trace", "convert", "pipe", "x.parquet"],
        &["trace", "convert", "pipe", "x"],
        &["trace", "convert", "pipe", "x.blk"],
        &["trace", "print", "pipe"],
        &["trace", "info", "pipe"],
        &["trace", "stats", "pipe"],
        &["trace", "slow", "pipe"],
        &["trace", "to-fio", "pipe", "-o", "x.fio"],
        &["why", "pipe"],
        &["why", "pipe", "--what-if"],
        &["report", "pipe", "-o", "x.html", "--svg", "charts"],
        &["compare", "pipe", "a.txt", "--output", "x.txt"],
        &["fit-device", "pipe", "-o", "x.toml"],
    ];
    for args in commands {
        for (name, exit) in &SIGNALS[..2] {
            let f = Folder::new();
            f.write("a.txt", line);
            f.shell("mkfifo pipe");
            f.write("long.fio", LONG);
            let before = f.names(".");
            let child = start(&f, args);
            // Opened for both, it has a reader and a writer at once and no end.
            let mut both = std::fs::File::options();
            let pipe = both.read(true).write(true).open(f.path("pipe"));
            let pipe = pipe.expect("the pipe");
            // More than is looked at to tell what it is; nothing waits for the writing.
            let (mut writer, text) = (pipe.try_clone().expect("the pipe"), line.repeat(3000));
            std::thread::spawn(move || writer.write_all(text.as_bytes()));
            if args[1] == "convert" {
                let begin = Instant::now();
                while f.names(".") == before && begin.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                assert_ne!(f.names("."), before, "{args:?}: a partial file");
            } else {
                std::thread::sleep(Duration::from_millis(300));
            }
            signal(&child, name);
            let (code, _, text) = end(child);
            assert_eq!(code, Some(*exit), "{args:?}: {text}");
            assert_eq!(f.names("."), before, "{args:?}");
        }
    }
}

/// Experiments that another command than `run` makes end as well.
#[test]
fn what_runs_is_ended() {
    let name = "cfq-quantum-2010";
    let commands: [&[&str]; 3] = [
        &["why", "long.fio"],
        &["reproduce", name, "--output", "x.txt"],
        &["reproduce", name, "--testbeds", "300", "--save", "tb"],
    ];
    for args in commands {
        for (name, exit) in &SIGNALS[..2] {
            let f = Folder::new();
            let child = start(&f, args);
            std::thread::sleep(Duration::from_millis(1500));
            signal(&child, name);
            let (code, seconds, text) = end(child);
            assert_eq!(code, Some(*exit), "{args:?}: {text}");
            assert!(seconds < 20.0, "{args:?}: {seconds} s");
            let left = f.names(".");
            assert!(!left.iter().any(|n| n.ends_with(".partial")), "{left:?}");
        }
    }
}

/// Whoever starts a command with nohup wants it to go on when the terminal is closed.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let f = Folder::new();
    let script = "trap '' HUP
        mkfifo pipe; blklab trace info pipe > info.txt & pid=$!
        exec 3> pipe; echo '8,0 0 1 0.000000000 7 Q R 1000 + 8 [x]' >&3
        sleep 0.3; kill -HUP $pid; sleep 0.3; exec 3>&-; wait $pid; echo code $?";
    assert_eq!(f.shell(script).stdout, "code 0\n");
}

#[test]
fn experiments_that_did_not_start_are_counted() {
    let f = Folder::new();
    let child = start(
        &f,
        &[
            "run", "long.fio", "--repeat", "3", "--jobs", "1", "--out", "o",
        ],
    );
    wait_for(&f, "o/run1/events.blk.partial");
    interrupt(&child);
    let (code, _, text) = end(child);
    assert_eq!(code, Some(130), "{text}");
    assert!(
        text.contains("interrupted: 2 of 3 experiments did not start"),
        "{text}"
    );
    // No folders of experiments that did not start.
    assert_eq!(f.names("o"), ["run1"]);
}

#[test]
fn json_of_what_ran_is_whole() {
    let f = Folder::new();
    let child = start(
        &f,
        &[
            "run",
            "long.fio",
            "--output-format",
            "json",
            "--trace",
            "t.blk",
        ],
    );
    wait_for(&f, "t.blk.partial");
    interrupt(&child);
    let (code, _, text) = end(child);
    assert_eq!(code, Some(130));
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["blklab"]["interrupted"], true);
    assert!(value["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
}
