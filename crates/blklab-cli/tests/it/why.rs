// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why`: on own samples; on real traces whose cause is known, where they are.

use crate::support::{Folder, root};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A case: its folder, the kind that must come first, a process that must be the first
/// sufferer, one that must be among the causes, and what must not be said.
struct Case {
    name: &'static str,
    kind: Option<&'static str>,
    suffers: &'static str,
    causes: &'static str,
    not: &'static [&'static str],
}

const fn case(
    name: &'static str,
    kind: &'static str,
    suffers: &'static str,
    causes: &'static str,
    not: &'static [&'static str],
) -> Case {
    Case {
        name,
        kind: Some(kind),
        suffers,
        causes,
        not,
    }
}

/// Traces of real kernels whose cause is known by construction. This list may only grow.
const ORACLE: &[Case] = &[
    case(
        "01-io-max-throttle",
        "cgroup-limit",
        "limited",
        "",
        &["device-slow", "behind-other"],
    ),
    case(
        "04a-mqd-writes-starved",
        "writes-starved",
        "logwriter",
        "readers",
        &["wbt", "flush"],
    ),
    case(
        "06-bfq-slice-idle",
        "idling",
        "other",
        "thinker",
        &["device-slow", "behind-other"],
    ),
    case(
        "07a-bfq-queue-merge",
        "bfq-queue-merge",
        "small",
        "hog",
        &["idling"],
    ),
    case(
        "08a-jbd2-flush",
        "flush",
        "dbcommit",
        "jbd2/oradisk0-8",
        &["deep-queue"],
    ),
    case("10-deep-queue", "deep-queue", "scan", "", &["device-slow"]),
    case(
        "12-missed-merge",
        "missed-merge",
        "ingest",
        "",
        &["device-slow", "deep-queue"],
    ),
    case(
        "13b-split-storm-host",
        "split",
        "backup",
        "",
        &["deep-queue"],
    ),
    case(
        "15-no-readahead",
        "no-readahead",
        "import",
        "",
        &["missed-merge", "device-slow"],
    ),
    Case {
        name: "16a-nothing-wrong",
        kind: None,
        suffers: "",
        causes: "",
        not: &[],
    },
    case(
        "17a-2628-noop-behind-writer",
        "reads-behind-writes",
        "fio",
        "pdflush",
        &["no-request-free", "missed-merge"],
    ),
];

fn json(f: &Folder, args: &[&str]) -> Value {
    let mut all = vec!["why", "--output-format", "json"];
    all.extend(args);
    let done = f.run(&all);
    assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
    serde_json::from_str(&done.stdout).expect("JSON")
}

fn has(parties: &Value, comm: &str) -> bool {
    let all = parties.as_array().expect("a list");
    all.iter().any(|p| p["comm"] == comm)
}

fn trace_in(folder: &Path) -> PathBuf {
    let names = ["trace.blktrace.0.zst", "trace.ftrace.txt.zst"];
    let paths = names.map(|name| folder.join(name));
    paths.into_iter().find(|p| p.is_file()).expect("a trace")
}

fn check(f: &Folder, folder: &Path, case: &Case) {
    let trace = trace_in(folder);
    let context = folder.join("context.txt");
    let report = json(
        f,
        &[
            trace.to_str().expect("UTF-8"),
            "--context",
            context.to_str().expect("UTF-8"),
        ],
    );
    let found = report["findings"].as_array().expect("a list");
    let complaints: Vec<&Value> = found.iter().filter(|f| f["weight"] != "note").collect();
    let kinds: Vec<&str> = complaints
        .iter()
        .filter_map(|f| f["kind"].as_str())
        .collect();
    assert_eq!(
        kinds.first().copied(),
        case.kind,
        "{}: {kinds:?}",
        case.name
    );
    for kind in case.not {
        assert!(
            !kinds.contains(kind),
            "{}: {kind} must not be said",
            case.name
        );
    }
    let Some(first) = complaints.first() else {
        return;
    };
    assert_eq!(first["victims"][0]["comm"], case.suffers, "{}", case.name);
    if !case.causes.is_empty() {
        assert!(
            has(&first["causes"], case.causes),
            "{}: {}",
            case.name,
            first["causes"]
        );
    }
    assert_ne!(
        first["remedies"].as_array().map(Vec::len),
        Some(0),
        "{}",
        case.name
    );
    let evidence = first["first"]["evidence"].as_array();
    assert!(evidence.is_some_and(|e| !e.is_empty()), "{}", case.name);
}

#[test]
fn causes_of_real_traces_are_named_first() {
    let Some(shared) = blklab_testkit::shared("data/oracle") else {
        return;
    };
    let f = Folder::new();
    for case in ORACLE {
        check(&f, &shared.join(case.name), case);
    }
}

#[test]
fn a_report_says_who_waited_for_what_and_what_to_change() {
    let f = Folder::new();
    let sample = root().join("testdata/blkparse/sync-write-2.6.24.txt");
    let sample = sample.to_str().expect("UTF-8");
    let text = f.run(&["why", sample]).stdout;
    for part in [
        "1. held-back on 104,48: likely",
        "python (2761)",
        "not known",
        "Where the time",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let evidence = "104,48   0        1     1.707253442  2761  Q  WS 35753545 + 128 [python]";
    assert!(text.contains(evidence), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    // A scheduler that is known changes what is said.
    let text = f
        .run(&[
            "why", "-v", sample, "--sched", "deadline", "--kernel", "2.6.24",
        ])
        .stdout;
    assert!(text.contains("deadline does not idle"), "{text}");
}

#[test]
fn a_context_that_cannot_be_used_is_one_line() {
    let f = Folder::new();
    f.write("bad.txt", "kernel=6.1\nnr_requests\n");
    f.write("dir/readme", "nothing here\n");
    f.write("t.txt", "8,0 0 1 0.0 7 Q W 8 + 8 [p]\n");
    for (args, said) in [
        (
            &["--context", "bad.txt"][..],
            "bad.txt:2: nr_requests: expected key=value",
        ),
        (&["--context", "dir"], "dir: neither context.txt nor a copy"),
        (&["--kernel", "new"], "--kernel new: expected a release"),
        (&["--sched", "cfk"], "cfq"),
        (&["--set", "nr_request=5"], "nr_requests"),
        (&["--set", "nr_requests=x"], "expected a number"),
        (&["--set", "nr_requests"], "expected KEY=VALUE"),
    ] {
        let mut all = vec!["why", "t.txt"];
        all.extend(args);
        let done = f.run(&all);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert_eq!(
            (done.stderr.lines().count(), done.stdout.as_str()),
            (1, ""),
            "{args:?}"
        );
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_copied_folder_of_sysfs_is_a_context() {
    let f = Folder::new();
    f.write("sda/queue/scheduler", "none [mq-deadline] \n");
    f.write("sda/queue/nr_requests", "64\n");
    f.write("sda/queue/iosched/writes_starved", "8\n");
    f.write("sda/device/queue_depth", "31\n");
    f.write("t.txt", "8,0 0 1 0.0 7 Q W 8 + 8 [p]\n");
    let text = f.ok(&["why", "t.txt", "--context", "sda"]);
    assert!(text.contains("1 event, scheduler mq-deadline"), "{text}");
    // A copy of queue alone.
    let text = f.ok(&["why", "t.txt", "--context", "sda/queue"]);
    assert!(text.contains("scheduler mq-deadline"), "{text}");
    assert!(text.contains("Nothing can be said to be wrong"), "{text}");
}

#[test]
fn the_slowest_are_shown_with_their_lives() {
    let f = Folder::new();
    let sample = root().join("testdata/blkparse/sync-write-stall-2.6.26.txt");
    let sample = sample.to_str().expect("UTF-8");
    let text = f.run(&["trace", "slow", sample, "-n", "1"]).stdout;
    assert!(
        text.starts_with("WS 35624860 + 128 of pdflush (4160): 592.7 ms"),
        "{text}"
    );
    assert!(
        text.contains("592.0 ms  in the scheduler (I-D), the device idle"),
        "{text}"
    );
    assert!(
        text.contains("4160  Q  WS 35624860 + 128 [pdflush]"),
        "{text}"
    );
    let by_sector = f.run(&["trace", "life", sample, "35624988"]).stdout;
    assert!(
        by_sector.contains("WS 35624988 + 128 of python (4159): no end"),
        "{by_sector}"
    );
    // The fourth event is its Q.
    let by_event = f.run(&["trace", "life", sample, "#4"]).stdout;
    assert_eq!(by_event, by_sector);
    for (which, said) in [
        ("1", "no request at sector 1"),
        ("#999", "event 999 belongs to no request"),
        ("x", "expected a sector"),
    ] {
        let done = f.run(&["trace", "life", sample, which]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{which}");
        assert!(done.stderr.contains(said), "{which}: {}", done.stderr);
    }
}

/// The same text is read alike by all commands, whatever stands in front of its events.
#[test]
fn a_trace_between_elisions_is_no_job_file() {
    let f = Folder::new();
    let elided = root().join("testdata/why/elided.txt");
    let text = std::fs::read_to_string(&elided).expect("a sample");
    f.write("brackets.txt", &text);
    f.write("snip.txt", text.replace("[...]", "[snip]"));
    f.write(
        "prompt.txt",
        text.replacen("[...]", "[root@host ~]# perf script", 1),
    );
    let biosnoop = std::fs::read_to_string(root().join("testdata/snoop/biosnoop.txt"));
    f.write(
        "snoop.txt",
        format!("[...]\n{}", biosnoop.expect("a sample")),
    );
    for name in ["brackets.txt", "snip.txt", "prompt.txt", "snoop.txt"] {
        let why = f.run(&["why", name]);
        assert_eq!(why.code, Some(0), "{name}: {}", why.stderr);
        let info = f.run(&["trace", "info", name]);
        assert_eq!(info.code, Some(0), "{name}: {}", info.stderr);
        assert!(
            why.stdout.contains("Where the time went"),
            "{name}: {}",
            why.stdout
        );
    }
    // JSON is no job file either.
    f.write("answer", "[{\"latency\": 3}]\n");
    let done = f.run(&["why", "answer"]);
    assert!(done.stderr.contains("expected a trace"), "{}", done.stderr);
}

/// The first finding fits one screen, and `-v` says the rest.
#[test]
fn the_first_finding_fits_a_screen() {
    let f = Folder::new();
    let sample = root().join("testdata/blkparse/sync-write-stall-2.6.26.txt");
    let sample = sample.to_str().expect("UTF-8");
    let short = f.run(&["why", sample]).stdout;
    let first = short
        .split("\n\n")
        .find(|part| part.starts_with("1. "))
        .expect("a finding");
    assert!(first.lines().count() <= 20, "{first}");
    let evidence = |text: &str| text.lines().filter(|l| l.starts_with("   104,48")).count();
    assert_eq!(evidence(first), 3, "{first}");
    let long = f.run(&["why", "-v", sample]).stdout;
    assert!(evidence(&long) > evidence(&short), "{long}");
    assert!(long.lines().count() > short.lines().count());
}

/// What is no proof is not said to be one; JSON has the same answer.
#[test]
fn too_little_is_no_proof() {
    let f = Folder::new();
    let sample = root().join("testdata/why/single-read.txt");
    let sample = sample.to_str().expect("UTF-8");
    let text = f.ok(&["why", sample]);
    assert!(!text.contains("Nothing is wrong"), "{text}");
    for part in [
        "device-slow on 259,1: possible",
        "Not visible in this trace",
        "blklab record",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let answer = json(&f, &[sample]);
    assert_eq!(answer["verdict"]["answer"], "cause");
    assert_eq!(answer["verdict"]["slowest_events"][1], 2);
    // A log that only looks like one of latencies.
    f.write(
        "job_bw.1.log",
        "500, 99500, 0, 131072, 0\n1000, 98000, 0, 131072, 0\n",
    );
    let done = f.run(&["trace", "info", "job_bw.1.log"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("log of bandwidth"), "{}", done.stderr);
    // What blklab wrote is read back.
    let source = root().join("testdata/blkparse/sync-write-2.6.24.txt");
    let source = source.to_str().expect("UTF-8");
    assert_eq!(
        f.run(&["trace", "convert", source, "out.csv"]).code,
        Some(0)
    );
    let kinds = |name: &str| {
        let done = f.run(&["trace", "info", name, "--format", "json"]);
        let info: Value = serde_json::from_str(&done.stdout).expect("JSON");
        info["kinds"].clone()
    };
    assert_eq!(kinds("out.csv"), kinds(source));
    assert_eq!(
        f.run(&["trace", "convert", source, "out.pftrace"]).code,
        Some(0)
    );
    assert_eq!(kinds("out.pftrace"), kinds(source));
}

/// A folder with the runs of a matrix: the first finding of each label, in the order of the
/// command; what the application sees stands first of a run.
#[test]
fn the_runs_of_a_matrix_are_examined_together() {
    let f = Folder::new();
    f.write(
        "m.fio",
        "[wal]\nrw=write\nbs=4k\nsize=1m\nfsync=4\n\
         [reader]\nrw=randread\nbs=16k\nsize=256m\nio_size=2m\nioengine=libaio\n\
         iodepth=32\ndirect=1\n",
    );
    let run = "run m.fio --sched none,bfq --set queue_depth=1,31 --repeat 2 --out runs";
    f.ok(&run.split_whitespace().collect::<Vec<_>>());
    let text = f.ok(&["why", "runs"]);
    assert!(
        text.starts_with("4 experiments; of repetitions the first was examined"),
        "{text}"
    );
    assert!(text.contains("values: sync p99.9 of wal"), "{text}");
    let places = [
        "none queue_depth=1: ",
        "none queue_depth=31: ",
        "bfq queue_depth=1: ",
    ];
    let places = places.map(|label| text.find(label).expect(label));
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("\nIn all of them: "), "{text}");
    let answer: Value =
        serde_json::from_str(&f.ok(&["why", "runs", "--format", "json"])).expect("JSON");
    assert_eq!(answer["cells"].as_array().map(Vec::len), Some(4));
    let refused = f.run(&["why", "runs", "--what-if", "sched=none"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("--what-if: of one run"),
        "{}",
        refused.stderr
    );
    let one = f.ok(&["why", "runs/bfq-queue_depth=1-run1"]);
    let second = one.lines().nth(1).expect("a line");
    assert!(
        second.starts_with("What the application sees: sync p99.9 of wal is "),
        "{one}"
    );
}
