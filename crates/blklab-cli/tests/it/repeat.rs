// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --repeat auto`: until a metric is known.

use crate::support::Folder;

const JOB: &str = "[global]\ndirect=1\nrandrepeat=0\nsize=1g\n\
    [reader]\nrw=randread\nio_size=100k\nnumjobs=2\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("m.fio", JOB);
    folder
}

/// Rows of the CSV by repetition and scheduler, from the first column on that is a result.
fn rows(folder: &Folder, repeat: &str, jobs: &str) -> (Vec<String>, String) {
    let run = [
        "run",
        "m.fio",
        "--sched",
        "none,mq-deadline",
        "--seed",
        "3",
        "--output-format",
        "csv",
        "--repeat",
        repeat,
        "--jobs",
        jobs,
    ];
    let out = folder.run(&run);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let rows = out.stdout.lines().skip(1).map(str::to_owned);
    (rows.collect(), out.stderr)
}

#[test]
fn runs_are_repeated_until_the_interval_is_narrow() {
    let folder = folder();
    let (rows_of_one, note) = rows(&folder, "auto:clat_mean_ns:4%", "1");
    // Both experiments as often: they are compared in pairs of the same seed.
    let runs = rows_of_one.len() / 2;
    assert!((6..30).contains(&runs), "{runs}: {note}");
    let said = format!("{runs} runs: clat_mean_ns is known within ±");
    assert!(note.starts_with(&said), "{note}");
    assert!(
        note.contains("±4 % was asked for), least of reader read under "),
        "{note}"
    );
    // What is run follows from results, not from how many run at a time.
    assert_eq!(
        rows(&folder, "auto:clat_mean_ns:4%", "2"),
        (rows_of_one.clone(), note)
    );
    // They are the first of any number of repetitions.
    let (by_number, note) = rows(&folder, &runs.to_string(), "2");
    assert_eq!((by_number, note.as_str()), (rows_of_one, ""));
}

#[test]
fn the_limit_is_said() {
    let folder = folder();
    let run = [
        "run",
        "m.fio",
        "--repeat",
        "auto:clat_max_ns:0.1%:6",
        "--out",
        "o",
    ];
    let text = folder.ok(&run);
    assert!(text.contains("medians of 6 runs"), "{text}");
    let note = "note: 6 runs, the limit, were not enough: clat_max_ns of reader read";
    assert!(text.contains(note), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(folder.path("o/run6/result.json").is_file());
    let run = [
        "run",
        "m.fio",
        "--repeat",
        "auto:clat_max_ns:60%:40",
        "--out",
        "few",
    ];
    folder.ok(&run);
    assert!(folder.path("few/run5/result.json").is_file());
    assert!(!folder.path("few/run6").exists(), "it was not run");
}

#[test]
fn runs_that_a_seed_does_not_change_are_not_repeated() {
    let folder = Folder::new();
    folder.write(
        "e.toml",
        "[device]\nname = 'serial'\n[[processes]]\nname = 'p'\npid = 1\n\
         io = { pattern = 'sequential', rw = 'read', start = 0, nsect = 8, count = 20 }\n",
    );
    let text = folder.ok(&["run", "e.toml", "--repeat", "auto:disk_util_percent"]);
    assert!(
        text.contains("note: 5 runs of each are the same, event for event"),
        "{text}"
    );
}

#[test]
fn repetitions_draw_other_offsets_unless_the_job_or_the_user_says_otherwise() {
    let folder = Folder::new();
    let job = |more: &str| {
        format!("[a]\nrw=randread\ndirect=1\nsize=64m\nnumber_ios=40\nioengine=psync\n{more}")
    };
    folder.write("plain.fio", job(""));
    folder.write("same.fio", job("randrepeat=1\n"));
    let offsets = |file: &str, more: &[&str]| -> Vec<String> {
        let run = [
            &[
                "run", file, "--repeat", "2", "--out", "o", "--sched", "none",
            ],
            more,
        ]
        .concat();
        let out = folder.run(&run);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let each = folder.names("o").into_iter().map(|name| {
            let trace = format!("o/{name}/events.blk");
            let text = folder.ok(&["trace", "print", &trace]);
            let queued = text.lines().filter(|l| l.contains(" Q "));
            let sector = |l: &str| l.split_whitespace().nth(7).unwrap_or_default().to_owned();
            queued.map(sector).collect::<Vec<String>>().join(",")
        });
        let each = each.collect();
        std::fs::remove_dir_all(folder.path("o")).expect("it was made");
        each
    };
    let plain = offsets("plain.fio", &[]);
    assert_eq!(plain.len(), 2);
    assert_ne!(plain[0], plain[1]);
    let exact = offsets("plain.fio", &["--repeat-exact"]);
    assert_eq!(exact[0], exact[1]);
    assert_eq!(exact[0], plain[0], "the first is as without repetitions");
    let same = offsets("same.fio", &[]);
    assert_eq!(same[0], same[1]);
}

#[test]
fn repetitions_that_are_the_same_run_say_so() {
    let folder = Folder::new();
    let process = "[[processes]]\nname = \"a\"\npid = 7\ndepth = 2\n\
        io = { pattern = \"sequential\", rw = \"read\", start = 0, nsect = 8, count = 9 }\n";
    folder.write("j.toml", format!("kernel = \"6.12\"\n{process}"));
    let run = folder.ok(&["run", "j.toml", "--repeat", "3", "--device", "serial"]);
    assert!(run.contains("3 runs of each are the same"), "{run}");
}
