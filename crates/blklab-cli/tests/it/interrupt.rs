// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C in the middle of a long run.

use crate::support::Folder;
use std::io::Read as _;
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

fn interrupt(child: &Child) {
    // Of the shell: not every machine has the program.
    let kill = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
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
    let f = Folder::new();
    let child = start(&f, &["run", "long.fio", "--out", "o", "--trace", "t"]);
    wait_for(&f, "o/events.blk.partial");
    interrupt(&child);
    let (code, seconds, text) = end(child);
    assert_eq!(code, Some(130), "{text}");
    // A second is the aim; machines that build something else are slower.
    assert!(seconds < 5.0, "{seconds} s");
    assert!(text.contains("\nread, job "), "{text}");
    assert!(text.contains("interrupted at "), "{text}");
    assert_eq!(
        f.names("o"),
        ["events.blk", "experiment.toml", "job.fio", "result.json"]
    );
    assert!(f.read("o/result.json").contains("\"interrupted\": true"));
    for trace in ["t", "o/events.blk"] {
        let info = f.ok(&["trace", "info", trace]);
        assert!(info.contains("damage    none"), "{info}");
    }
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
