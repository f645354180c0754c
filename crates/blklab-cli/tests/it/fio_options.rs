// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documented options of fio jobs are those of the table that the parser
//! reads. `UPDATE_GOLDEN=1` writes the document anew.

use crate::support::{Folder, root};
use serde_json::Value;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Options of fio jobs

This page lists every option of fio 3.33 and says what it does in blklab, for users who want to
know whether their job file means the same. It is generated from the table that the parser reads
(`blklab list fio-options`).

- *acts*: the option acts as in fio 3.33; *acts (results)*: it changes only the results.
- *cannot matter*: blklab accepts the option without a note, for the reason given.
- *noted*: blklab accepts the option, and a note says what happens instead.
- *refused*: blklab refuses the option, because the job would not do what it does in fio.

Options of one I/O engine follow at the end as `ENGINE.OPTION`. `blklab list engines` names the
engines that blklab does not simulate. blklab leaves out jobs of `cpuio`, `exec`, `filecreate`,
`filestat` and `filedelete`, and a note says so.

";

fn document() -> String {
    let listed = Folder::new().ok(&["list", "fio-options", "--output-format", "json"]);
    let entries: Vec<Value> = serde_json::from_str(&listed).expect("a list");
    let text = |entry: &Value, key: &str| entry[key].as_str().expect("text").to_owned();
    let parts = entries.iter().map(|entry| {
        let summary = text(entry, "summary");
        let (class, reason) = summary.split_once(": ").expect("class and reason");
        (text(entry, "name"), class.to_owned(), reason.to_owned())
    });
    let parts: Vec<_> = parts.collect();
    let mut out = INTRODUCTION.to_owned();
    let classes = [
        "acts",
        "acts (results)",
        "cannot matter",
        "noted",
        "refused",
    ];
    for class in classes {
        let count = parts.iter().filter(|p| p.1 == class).count();
        writeln!(out, "- {class}: {count}").expect("memory");
    }
    out.push_str("\n| option | here | |\n|---|---|---|\n");
    for (name, class, reason) in &parts {
        let reason = if class.starts_with("acts") {
            ""
        } else {
            reason
        };
        writeln!(out, "| `{name}` | {class} | {reason} |").expect("memory");
    }
    out
}

#[test]
fn the_document_is_up_to_date() {
    let path = root().join("docs/fio-options.md");
    let text = document();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "docs/fio-options.md is out of date: UPDATE_GOLDEN=1 writes it"
    );
}

#[test]
fn jobs_that_move_no_data_are_left_out_beside_others() {
    let f = Folder::new();
    let job = "[burn]\nioengine=cpuio\ncpuload=50\n[a]\nrw=randread\ndirect=1\nsize=1m\n";
    f.write("a.fio", job);
    let text = f.ok(&["run", "a.fio"]);
    assert!(
        text.contains("256 I/Os") || text.contains("in 256"),
        "{text}"
    );
    assert!(
        text.contains("job 'burn' is left out: ioengine=cpuio"),
        "{text}"
    );
    f.write("a.fio", "[burn]\nioengine=cpuio\ncpuload=50\n");
    let done = f.run(&["run", "a.fio"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        "blklab: a.fio:2: no job reads or writes: ioengine=cpuio moves no data\n"
    );
}

#[test]
fn what_would_be_another_workload_is_refused() {
    let f = Folder::new();
    for (line, why) in [
        ("opendir=/tmp", "directories are not searched"),
        ("verify_only", "it would verify what an earlier run wrote"),
        ("profile=act", "built-in profiles are not modelled"),
    ] {
        f.write("a.fio", format!("[a]\nsize=1m\n{line}\n"));
        let done = f.run(&["run", "a.fio"]);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
}

#[test]
fn results_leave_out_what_jobs_do_not_report() {
    let f = Folder::new();
    f.write(
        "a.fio",
        "[a]\nsize=1m\nstats=0\ndisk_util=0\n[b]\nsize=1m\ndisk_util=0\n",
    );
    let text = f.ok(&["run", "a.fio", "--output-format", "normal"]);
    assert!(
        !text.contains("a: (groupid") && text.contains("b: (groupid"),
        "{text}"
    );
    assert!(!text.contains("Disk stats"), "{text}");
}

/// Virtual time is counted from the beginning of 2009.
#[test]
fn logs_have_unix_time_if_asked_for() {
    let f = Folder::new();
    let job = "[a]\nrw=randread\nsize=1m\ndirect=1\nwrite_lat_log=x\nstartdelay=2\n";
    let first_time = |more: &str| {
        f.write("a.fio", format!("{job}{more}"));
        f.ok(&["run", "a.fio"]);
        let log = f.read("x_clat.1.log");
        let time = log.split(',').next().expect("a time").to_owned();
        time.parse::<u64>().expect("a number")
    };
    assert!(first_time("") < 1000);
    let unix = first_time("log_unix_epoch=1\n");
    assert!(
        (1_230_768_002_000..1_230_768_003_000).contains(&unix),
        "{unix}"
    );
    let monotonic = "log_alternate_epoch=1\nlog_alternate_epoch_clock_id=1\n";
    assert!((2000..3000).contains(&first_time(monotonic)));
}

/// Half of the requests are of the real-time class: mq-deadline serves them
/// first.
#[test]
fn requests_have_priorities_of_their_own() {
    let f = Folder::new();
    let job = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nsize=1g\nnumber_ios=2000\n";
    f.write("a.fio", format!("{job}cmdprio_percentage=30\n"));
    let run = [
        "run",
        "a.fio",
        "--sched",
        "mq-deadline",
        "--set",
        "queue_depth=1",
        // Twice the depth, by default: nothing would wait in the scheduler.
        "--set",
        "nr_requests=64",
    ];
    let text = f.ok(&[&run[..], &["--output-format", "json"]].concat());
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let prios = result["jobs"][0]["read"]["prios"]
        .as_array()
        .expect("prios")
        .clone();
    assert_eq!(prios.len(), 2, "{prios:?}");
    let number = |i: usize, path: &str| prios[i].pointer(path).and_then(Value::as_f64).expect(path);
    assert_eq!(
        (number(0, "/prioclass"), number(1, "/prioclass")),
        (0.0, 1.0)
    );
    assert!(
        (500.0..700.0).contains(&number(1, "/clat_ns/N")),
        "{prios:?}"
    );
    let (own, real_time) = (number(0, "/clat_ns/mean"), number(1, "/clat_ns/mean"));
    assert!(real_time < own / 2.0, "{real_time} {own}");
    f.write(
        "a.fio",
        format!("{job}cmdprio_bssplit=4k/10/2/1:4k/20/3/0\n"),
    );
    let text = f.ok(&[&run[..], &["--output-format", "normal"]].concat());
    for prio in ["clat prio 0/0", "clat prio 2/1", "clat prio 3/0"] {
        assert!(text.contains(prio), "{prio}: {text}");
    }
    f.write(
        "a.fio",
        format!("{job}cmdprio_percentage=3\ncmdprio_bssplit=4k/10\n"),
    );
    let done = f.run(&["run", "a.fio"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("mutually exclusive"),
        "{}",
        done.stderr
    );
}
