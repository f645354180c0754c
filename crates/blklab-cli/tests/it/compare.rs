// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab compare`: sides, verdicts, what differs.

use crate::support::Folder;
use serde_json::Value;

const JOB: &str = "[global]\ndirect=1\nrandrepeat=0\nsize=1g\n\
    [reader]\nrw=randread\nio_size=120k\nnumjobs=2\nthinktime=200us\n\
    [writer]\nrw=write\nbs=64k\nio_size=4m\nioengine=libaio\niodepth=32\n";

/// noop and CFQ, each with as many runs.
fn matrix(runs: u32) -> Folder {
    let folder = Folder::new();
    folder.write("m.fio", JOB);
    let repeat = format!("--repeat={runs}");
    folder.ok(&[
        "run",
        "m.fio",
        "--kernel",
        "4.19",
        "--sched",
        "noop,cfq",
        "--set",
        "queue_depth=1",
        &repeat,
        "--out",
        "matrix",
    ]);
    folder
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    let text = folder.ok(&[&["compare"], args, &["--output-format", "json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// Repetitions that do not vary say nothing about the noise: no difference is called sure.
#[test]
fn runs_that_do_not_vary_make_no_difference_sure() {
    let folder = Folder::new();
    let job = "[r]\nrw=read\nbs=64k\nsize=4m\ndirect=1\n";
    folder.write("m.fio", job);
    let run = "run m.fio --sched none --device serial,serial,read_ns=2000000 --repeat 3 \
               --repeat-exact --out matrix";
    folder.ok(&run.split_whitespace().collect::<Vec<_>>());
    let text = folder.ok(&["compare", "matrix"]);
    assert!(
        !text.contains(" better") && !text.contains(" worse"),
        "{text}"
    );
    assert!(
        text.contains("note: not judged: the runs do not vary"),
        "{text}"
    );
    let page = folder.ok(&["report", "matrix", "--output-format", "json"]);
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let rows = page["verdict"]["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), page["members"].as_array().map(Vec::len)),
        (2, Some(2))
    );
    assert_eq!(
        (&rows[0]["interval"], &rows[0]["repetitions"]),
        (&Value::Null, &3.into())
    );
    let sure = page["verdict"]["sure"].as_str().expect("text");
    assert!(sure.contains("are the same run"), "{sure}");
}

#[test]
fn the_labels_of_a_matrix_are_compared() {
    let folder = matrix(6);
    let text = folder.ok(&["compare", "matrix"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "noop -> cfq: 6 runs of each, in pairs of the same seed",
            "  differs  scheduler: noop -> cfq"
        ]
    );
    for expected in [
        "reader read",
        "writer write",
        "disk ",
        " better",
        "events are the same; then",
    ] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
    assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");

    let all = json(&folder, &["matrix", "--base", "cfq"]);
    let comparison = &all[0];
    assert_eq!(
        (&comparison["before"], &comparison["after"]),
        (&"cfq".into(), &"noop".into())
    );
    let rows = comparison["rows"].as_array().expect("rows");
    let reader = rows.iter().find(|r| r["who"] == "reader").expect("readers");
    let mean = reader["changes"].as_array().expect("metrics");
    let mean = mean.iter().find(|c| c["metric"] == "clat_mean_ns");
    let mean = mean.expect("a mean");
    assert_eq!(mean["verdict"], "worse", "{mean}");
    assert!(mean["interval"][0].as_f64() > Some(1.0), "{mean}");

    let of_bios = json(&folder, &["matrix", "--bios", "--metric", "q2c_p99_ns"]);
    let metrics = of_bios[0]["rows"][0]["changes"]
        .as_array()
        .expect("metrics");
    assert_eq!(metrics.len(), 1);
    assert_eq!(metrics[0]["metric"], "q2c_p99_ns");
}

#[test]
fn runs_of_one_seed_are_identical_and_single_runs_have_no_verdict() {
    let folder = matrix(2);
    let again = ["compare", "matrix/cfq-run1", "matrix/cfq-run1"];
    assert_eq!(
        folder.ok(&again),
        "cfq-run1 -> cfq-run1: identical: the same events, bit for bit\n"
    );
    let text = folder.ok(&["compare", "matrix/cfq-run1", "matrix/noop-run1"]);
    assert!(text.contains("nothing is known of the"), "{text}");
    assert!(
        !text.contains("better") && !text.contains("worse"),
        "{text}"
    );
}

#[test]
fn a_trace_is_divided_into_stretches() {
    let folder = matrix(1);
    let written = folder.run(&["trace", "convert", "matrix/noop", "noop.blk"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let same = folder.ok(&["compare", "matrix/noop", "noop.blk"]);
    assert!(same.contains("identical"), "{same}");
    let text = folder.ok(&["compare", "noop.blk", "matrix/cfq"]);
    for expected in ["stretches", "Q2C p99.9", "intervals are from stretches"] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = matrix(1);
    std::fs::create_dir(folder.path("empty")).expect("a folder");
    for (args, expected) in [
        (
            &["matrix/cfq"][..],
            "cfq alone has nothing to be compared with",
        ),
        (
            &["matrix", "--base", "bfq"],
            "--base bfq: there are noop, cfq",
        ),
        (
            &["matrix", "--metric", "clat"],
            "--metric: no metric is called 'clat'",
        ),
        (
            &["empty", "matrix"],
            "empty: neither a run directory nor a folder of them",
        ),
        (&["nowhere", "matrix"], "cannot open nowhere"),
    ] {
        let done = folder.run(&[&["compare"], args].concat());
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}

/// What is cut, damaged or lost is said of each side, in the words of the other commands.
#[test]
fn what_is_missing_of_a_trace_is_said() {
    let f = Folder::new();
    f.ok(&["run", "job.fio", "--trace", "a.blk"]);
    let whole = std::fs::read(f.path("a.blk")).expect("a trace");
    f.write("cut.blk", &whole[..whole.len() / 2]);
    f.ok(&["compare", "a.blk", "a.blk"]);
    let said = f.run(&["trace", "stats", "cut.blk"]).stderr;
    assert!(said.starts_with("blklab: cut.blk: "), "{said}");
    for args in [
        ["compare", "a.blk", "cut.blk"],
        ["compare", "cut.blk", "a.blk"],
    ] {
        let done = f.run(&args);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert_eq!(done.stderr, said, "{args:?}");
    }
}
