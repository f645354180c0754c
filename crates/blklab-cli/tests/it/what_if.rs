// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why --what-if`: on own runs, whose change is run, too; on real traces, where they
//! are, whose change was measured; and the table of docs/why.md that says how right it is.

use crate::support::{Folder, root};
use serde_json::Value;
use std::fmt::Write as _;

/// A logger beside deep readers.
const STARVED: &str = "[global]\nioengine=libaio\ndirect=1\nbs=4k\nruntime=1\ntime_based\n\
    [readers]\nrw=randread\niodepth=32\nsize=1g\noffset=1g\n\
    [logger]\nioengine=psync\nrw=write\nsize=64m\n";

/// Runs a job, with a trace and 8 batches of reads before one of writes unless the settings
/// say otherwise.
fn run(f: &Folder, name: &str, settings: &[&str]) {
    let mut args = vec![
        "run",
        "job.fio",
        "--kernel",
        "6.12",
        "--sched",
        "mq-deadline",
        "--device",
        "simdisk,fixed_ns=500000,sector_ns=1000,depth=1",
        "--set",
        "nr_requests=64",
        "--trace",
        name,
    ];
    for s in settings {
        args.extend(["--set", s]);
    }
    f.ok(&args);
}

fn ask(f: &Folder, args: &[&str]) -> Value {
    let mut all = vec!["why", "--format", "json"];
    all.extend(args);
    serde_json::from_str(&f.ok(&all)).expect("JSON")
}

/// What is known of the machine of [`run`].
const KNOWN: [&str; 10] = [
    "--kernel",
    "6.12",
    "--sched",
    "mq-deadline",
    "--set",
    "writes_starved=8",
    "--set",
    "queue_depth=1",
    "--set",
    "nr_requests=64",
];

/// The row of a process in the closed loop.
fn row<'a>(trial: &'a Value, comm: &str) -> &'a Value {
    let rows = trial["closed_loop"].as_array().expect("rows");
    let found = rows.iter().find(|r| r["recorded"]["comm"] == comm);
    found.unwrap_or_else(|| panic!("no {comm}: {trial}"))
}

fn within(a: f64, b: f64, factor: f64) -> bool {
    a / b <= factor && b / a <= factor
}

#[test]
fn a_change_is_foreseen_from_the_trace_alone() {
    let f = Folder::new();
    f.write("job.fio", STARVED);
    run(&f, "before", &["writes_starved=8"]);
    run(&f, "after", &["writes_starved=1"]);
    let mut args = vec!["before.blktrace.0", "--what-if", "set=writes_starved=1"];
    args.extend(KNOWN);
    let foreseen = ask(&f, &args);
    let asked = &foreseen["what_if"];
    assert_eq!(asked["is_trusted"], true, "{asked}");
    let logger = row(&asked["trials"][0], "logger");
    // The figures of the run that was changed, without a change of its own.
    let mut args = vec!["after.blktrace.0", "--what-if", "set=front_merges=1"];
    args.extend(KNOWN);
    args[8] = "writes_starved=1";
    let truth = ask(&f, &args);
    let truth = row(&truth["what_if"]["trials"][0], "logger");
    for figure in ["p50_ns", "mean_ns", "per_s"] {
        let got = logger["after"][figure].as_f64().expect("a number");
        let true_one = truth["recorded"][figure].as_f64().expect("a number");
        let before = logger["recorded"][figure].as_f64().expect("a number");
        assert!(
            within(got, true_one, 1.1),
            "{figure}: {got}, not {true_one}"
        );
        assert!(
            !within(got, before, 2.0),
            "{figure}: no change from {before}"
        );
    }
}

#[test]
fn remedies_are_tried_or_named() {
    let f = Folder::new();
    f.write("job.fio", STARVED);
    run(&f, "before", &["writes_starved=8"]);
    let mut args = vec!["why", "before.blktrace.0", "--what-if"];
    args.extend(KNOWN);
    let text = f.ok(&args);
    for part in [
        "What if, on 8,0: the model of Linux 6.12, mq-deadline",
        "one at a time",
        "What if writes-starved: queue/iosched/writes_starved = 1",
        "it helps those who suffer",
        "model, before",
        "change",
        "open loop",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    // What does not help is said not to.
    args.insert(3, "set=front_merges=1");
    assert!(f.ok(&args).contains("it does not help"), "{}", f.ok(&args));
}

#[test]
fn changes_that_cannot_be_are_one_line() {
    let f = Folder::new();
    f.write("job.fio", STARVED);
    run(&f, "t", &[]);
    for (change, said) in [
        ("shed=bfq", "did you mean 'sched'?"),
        ("sched=cfq", "cfq"),
        ("set=writes_starve=1", "writes_starved"),
        ("set=nr_requests=x", "nr_requests"),
        ("patch=nothing", "patch"),
        ("device=nvm", "device"),
        ("depth=reeders:4", "did you mean 'readers'?"),
        ("depth=readers:0", "write depth=fio:4"),
    ] {
        let mut args = vec!["why", "t.blktrace.0", "--what-if", change];
        args.extend(KNOWN);
        let done = f.run(&args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{change}");
        assert_eq!(done.stderr.lines().count(), 1, "{change}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{change}: {}", done.stderr);
    }
    // Without a kernel there is no model.
    let text = f.ok(&["why", "t.blktrace.0", "--what-if"]);
    assert!(
        text.contains("No what-if: the kernel is not known"),
        "{text}"
    );
}

/// The machine of [`run`], said to an experiment.
const MACHINE: [&str; 8] = [
    "--kernel",
    "6.12",
    "--sched",
    "mq-deadline",
    "--device",
    "simdisk,fixed_ns=500000,sector_ns=1000,depth=1",
    "--set",
    "nr_requests=64",
];

fn with_machine<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().copied().chain(MACHINE).collect()
}

#[test]
fn of_an_experiment_the_change_itself_runs() {
    let f = Folder::new();
    f.write("job.fio", STARVED);
    let starved = ["job.fio", "--set", "writes_starved=8"];
    let mut args = with_machine(&starved);
    args.extend([
        "--what-if",
        "set=writes_starved=1",
        "--what-if",
        "depth=readers:2",
    ]);
    let asked = ask(&f, &args);
    assert_eq!(asked["findings"][0]["kind"], "writes-starved");
    assert_eq!(
        asked["re_enacted"]["agreement"]["first_difference"],
        Value::Null
    );
    let trials = &asked["what_if"]["trials"];
    // What runs with the change from the beginning has the figures of after as those of before.
    let changed = with_machine(&[
        "job.fio",
        "--set",
        "writes_starved=1",
        "--what-if",
        "sched=none",
    ]);
    let truth = ask(&f, &changed);
    let logger = |trial: &Value| {
        let rows = trial["closed_loop"].as_array().expect("rows");
        let found = rows.iter().find(|r| r["before"]["comm"] == "logger");
        found.expect("the process").clone()
    };
    let foreseen = logger(&trials[0]);
    assert_eq!(
        foreseen["after"],
        logger(&truth["what_if"]["trials"][0])["before"]
    );
    assert_eq!(foreseen.get("recorded"), None);
    // What a job does is changed in its section.
    let shallow = logger(&trials[1]);
    let p50 = |of: &str| shallow[of]["p50_ns"].as_u64().expect("a number");
    assert!(p50("after") * 4 < p50("before"), "{shallow}");
}

#[test]
fn a_run_directory_runs_again() {
    let f = Folder::new();
    f.write("job.fio", STARVED);
    f.ok(&with_machine(&[
        "run",
        "job.fio",
        "--set",
        "writes_starved=8",
        "--out",
        "results",
    ]));
    let text = f.ok(&["why", "results", "--what-if"]);
    for part in [
        "the experiment itself runs again: nothing is inferred",
        "What if writes-starved: queue/iosched/writes_starved = 1",
        "it helps those who suffer",
        "readers (1001) keeps at most 4 under way",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let asked = ask(&f, &["results", "--what-if", "set=front_merges=1"]);
    let asked = &asked["what_if"];
    assert_eq!(
        (&asked["is_rerun"], &asked["closed_loop_off"]),
        (&true.into(), &1.0.into())
    );
    assert_eq!(asked["trials"][0]["verdict"]["helps"], false);
}

#[test]
fn processes_of_an_experiment_file_are_changed() {
    let f = Folder::new();
    let process = |name: &str, pid: u32, rw: &str, depth: u32| {
        format!(
            "[[processes]]\nname = \"{name}\"\npid = {pid}\ndepth = {depth}\nio = {{ pattern = \
             \"sequential\", rw = \"{rw}\", start = {pid}00000, nsect = 8, count = 200 }}\n"
        )
    };
    let text = format!(
        "kernel = \"6.12\"\nscheduler = \"bfq\"\n[device]\nname = \"simdisk\"\nfixed_ns = \
         500000\n{}{}",
        process("deep", 11, "read", 16),
        process("single", 12, "read", 1)
    );
    f.write("e.toml", text);
    let changes = ["depth=deep:1", "batch=deep:4", "prio=12:0", "sync=deep"];
    let mut args = vec!["e.toml"];
    for change in &changes {
        args.extend(["--what-if", change]);
    }
    let asked = ask(&f, &args);
    let trials = asked["what_if"]["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), changes.len());
    let rows = trials[0]["closed_loop"].as_array().expect("rows");
    let deep = rows
        .iter()
        .find(|r| r["before"]["pid"] == 11)
        .expect("deep");
    let p50 = |of: &str| deep[of]["p50_ns"].as_u64().expect("a number");
    assert!(p50("after") * 3 < p50("before") * 2, "{deep}");
    let wrong = f.run(&["why", "e.toml", "--what-if", "depth=deap:1"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("did you mean 'deep'?"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn options_that_say_nothing_are_refused() {
    let f = Folder::new();
    for (args, said) in [
        (
            &["job.fio", "--sched", "none,bfq", "--kernel", "6.12"][..],
            "2 experiments (none, bfq)",
        ),
        (
            &["job.fio", "--context", "job.fio"],
            "--context: an experiment says itself",
        ),
        (&["job.fio", "--sched", "try"], "--sched try: is for traces"),
        (
            &["job.fio", "--section", "reader"],
            "did you mean 'readers'?",
        ),
    ] {
        let mut all = vec!["why"];
        all.extend(args);
        let done = f.run(&all);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    let chosen = [
        "why",
        "job.fio",
        "--kernel",
        "6.12",
        "--sched",
        "none,bfq",
        "--variant",
        "bfq",
    ];
    assert!(f.ok(&chosen).contains("scheduler bfq"));
    f.ok(&["run", "job.fio", "--trace", "t"]);
    let done = f.run(&["why", "t.blktrace.0", "--device", "nvme-datacenter"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("--device: only for an experiment"),
        "{}",
        done.stderr
    );
    // What begins with a section is a job file, whatever it is called.
    f.write("load", crate::support::JOB);
    assert!(f.ok(&["why", "load"]).contains("Linux "));
}

/// A measured remedy: the case, the change, the process of which the effect was measured,
/// and whether latency or throughput (MiB/s, or I/Os per second) is compared.
struct Measured {
    case: &'static str,
    change: &'static str,
    comm: &'static str,
    direction: &'static str,
    figure: &'static str,
    /// Before and after, as fio measured it: ms, or a rate.
    measured: (f64, f64),
    /// The device's law is known: the effect must be within a factor of 1.5.
    is_exact: bool,
}

const fn measured(
    case: &'static str,
    change: &'static str,
    comm: &'static str,
    direction: &'static str,
    figure: &'static str,
    measured: (f64, f64),
) -> Measured {
    Measured {
        case,
        change,
        comm,
        direction,
        figure,
        measured,
        is_exact: true,
    }
}

/// The rows of the table in docs/why.md. This list may only grow.
const MEASURED: &[Measured] = &[
    measured(
        "01-io-max-throttle",
        "set=cgroup.batch.io.max=max",
        "limited",
        "read",
        "per_s",
        (100.3, 7496.3),
    ),
    measured(
        "04a-mqd-writes-starved",
        "set=writes_starved=1",
        "logwriter",
        "write",
        "mean_ns",
        (66.16, 15.22),
    ),
    measured(
        "04a-mqd-writes-starved",
        "set=writes_starved=1",
        "logwriter",
        "write",
        "per_s",
        (15.1, 65.7),
    ),
    measured(
        "06-bfq-slice-idle",
        "set=slice_idle=0",
        "other",
        "read",
        "max_ns",
        (131.13, 6.78),
    ),
    measured(
        "06-bfq-slice-idle",
        "set=slice_idle=0",
        "thinker",
        "read",
        "per_s",
        (108.5, 191.4),
    ),
    measured(
        "07a-bfq-queue-merge",
        "prio=hog:5",
        "small",
        "read",
        "mean_ns",
        (31.89, 1.81),
    ),
    measured(
        "07a-bfq-queue-merge",
        "prio=hog:5",
        "hog",
        "read",
        "per_s",
        (1851.9, 813.7),
    ),
    measured(
        "08a-jbd2-flush",
        "set=write_cache=write through",
        "lookup",
        "read",
        "mean_ns",
        (6.52, 0.18),
    ),
    // When commits take 0.3 ms, many fsyncs fall into the tick of the one before and need
    // none: no recording of slow ones shows that.
    Measured {
        is_exact: false,
        ..measured(
            "08a-jbd2-flush",
            "set=write_cache=write through",
            "dbcommit",
            "write",
            "per_s",
            (56.7, 3101.0),
        )
    },
    measured(
        "10-deep-queue",
        "depth=scan:4",
        "scan",
        "read",
        "mean_ns",
        (32.03, 2.00),
    ),
    measured(
        "12-missed-merge",
        "batch=ingest:32",
        "ingest",
        "write",
        "per_s",
        (3288.6, 48056.0),
    ),
    measured(
        "15-no-readahead",
        "set=read_ahead_kb=128",
        "import",
        "read",
        "mib_per_s",
        (7.34, 162.89),
    ),
    Measured {
        is_exact: false,
        ..measured(
            "13b-split-storm-host",
            "set=max_sectors_kb=1280",
            "backup",
            "read",
            "mean_ns",
            (2.14, 0.66),
        )
    },
];

const BEGIN: &str = "<!-- what-if: UPDATE_DOCS=1 cargo test -p blklab-cli --test it what_if -->\n";
const END: &str = "<!-- what-if ends -->\n";

/// Effects of the model, by row of [`MEASURED`]: the factor between before and after.
fn foreseen(f: &Folder, m: &Measured) -> Option<f64> {
    let folder = blklab_testkit::shared("data/oracle")?.join(m.case);
    let names = ["trace.blktrace.0.zst", "trace.ftrace.txt.zst"];
    let trace = names
        .map(|n| folder.join(n))
        .into_iter()
        .find(|p| p.is_file())?;
    let context = folder.join("context.txt");
    let text = |p: &std::path::Path| p.to_str().expect("UTF-8").to_owned();
    let (trace, context) = (text(&trace), text(&context));
    let asked = ask(f, &[&trace, "--context", &context, "--what-if", m.change]);
    let asked = &asked["what_if"];
    assert_eq!(asked["is_trusted"], true, "{}: {asked}", m.case);
    let rows = asked["trials"][0]["closed_loop"].as_array().expect("rows");
    let is_it =
        |r: &&Value| r["recorded"]["comm"] == m.comm && r["recorded"]["direction"] == m.direction;
    let row = rows.iter().find(is_it).expect("the process");
    let figure = |of: &str| row[of][m.figure].as_f64().expect("a number");
    Some(figure("after") / figure("before"))
}

fn factor(f: f64) -> String {
    if f >= 1.0 {
        format!("× {f:.1}")
    } else {
        format!("÷ {:.1}", 1.0 / f)
    }
}

#[test]
fn effects_of_measured_remedies_are_foreseen() {
    if blklab_testkit::shared("data/oracle").is_none() {
        return;
    }
    let f = Folder::new();
    let mut table =
        "| trace | change | of | measured | model | off by |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for m in MEASURED {
        let got = foreseen(&f, m).expect("the case");
        let truth = m.measured.1 / m.measured.0;
        let off = (got / truth).max(truth / got);
        let figure = match m.figure {
            "mean_ns" => "mean latency",
            "max_ns" => "longest",
            "per_s" => "I/Os per second",
            _ => "MiB/s",
        };
        let _ = writeln!(
            table,
            "| {} | `{}` | {} {}s, {figure} | {} | {} | {off:.2} |",
            m.case,
            m.change,
            m.comm,
            m.direction,
            factor(truth),
            factor(got)
        );
        assert_eq!(got > 1.0, truth > 1.0, "{}: {got}, not {truth}", m.case);
        let most = if m.is_exact { 1.5 } else { 5.0 };
        assert!(off <= most, "{}, {}: {got}, not {truth}", m.case, m.figure);
    }
    let path = root().join("docs/why.md");
    let docs = std::fs::read_to_string(&path).expect("docs/why.md");
    let (head, rest) = docs.split_once(BEGIN).expect("the mark");
    let (written, tail) = rest.split_once(END).expect("the end of the mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).expect("written");
    } else {
        assert_eq!(written, table, "docs/why.md: run the command in its mark");
    }
}

/// Nobody is in the group: that it does not help is no news about the group's limit.
#[test]
fn a_group_with_nobody_in_it_is_said() {
    let f = Folder::new();
    let file = root()
        .join("examples/io-latency.toml")
        .display()
        .to_string();
    let ask = |key: &str| {
        f.ok(&[
            "why",
            &file,
            "--what-if",
            &format!("set=cgroup.{key}.io.max=rbps=1000000"),
        ])
    };
    let text = ask("ghost");
    assert!(
        text.contains("warning    nobody is in control group ghost"),
        "{text}"
    );
    assert!(!ask("batch").contains("warning"));
}
