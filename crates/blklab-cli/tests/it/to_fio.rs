// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs made of traces: `blklab trace to-fio`.

use crate::support::{Done, Folder, root};
use serde_json::Value;
use std::process::Command;

/// Jobs of which each shows something else.
const JOBS: &str = "\
[global]
filename=/dev/sda
direct=1
norandommap=1
[reader]
rw=randread
bs=4k
size=1g
io_size=2m
thinktime=2000
[queue]
ioengine=libaio
iodepth=8
rw=randrw
rwmixread=70
bssplit=4k/50:16k/50
offset=2g
size=1g
io_size=6m
[stream]
startdelay=500ms
rw=read
bs=256k
offset=8g
size=32m
";

fn json(done: &Done) -> Value {
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    serde_json::from_str(&done.stdout).expect("JSON")
}

/// The ratio of a compared number.
fn ratio(report: &Value, name: &str) -> f64 {
    let rows = report["compared"].as_array().expect("rows");
    let row = rows.iter().find(|r| r["name"] == name);
    let row = row.unwrap_or_else(|| panic!("{name}: {report:#}"));
    row["ratio"].as_f64().expect("a ratio")
}

/// fio takes the job, where fio is installed.
fn fio_takes(folder: &Folder, job: &str) {
    if !blklab_testkit::has_program("fio") {
        return;
    }
    let fio = Command::new("fio")
        .args(["--parse-only", job])
        .current_dir(folder.path(""))
        .output();
    let out = fio.expect("fio starts");
    let text = [out.stderr, out.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(out.status.success(), "{text}\n{}", folder.read(job));
}

#[test]
fn a_job_becomes_itself_again() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--sched", "mq-deadline", "--out", "run"]);
    let args = [
        "trace",
        "to-fio",
        "run",
        "-o",
        "again.fio",
        "--format",
        "json",
    ];
    let report = json(&folder.run(&args));
    let text = folder.read("again.fio");
    assert_eq!(report["job"], text);
    for (section, options) in [
        (
            "[reader-1001]",
            &["rw=randread", "bs=4096", "ioengine=psync"][..],
        ),
        (
            "[queue-1002]",
            &["rw=randrw", "rwmixread=", "iodepth=8", "bssplit=4096/"],
        ),
        (
            "[stream-1003]",
            &["rw=read\n", "bs=262144", "size=33554432", "startdelay=50"],
        ),
    ] {
        let (_, rest) = text
            .split_once(section)
            .unwrap_or_else(|| panic!("{section}: {text}"));
        let own = rest.split("\n[").next().expect("a section");
        for option in options {
            assert!(own.contains(option), "{option} in {section}{own}");
        }
    }
    for name in [
        "bios",
        "bytes read",
        "bytes written",
        "all, p50",
        "all, p99",
        "reads, p99",
    ] {
        let ratio = ratio(&report, name);
        assert!((0.8..=1.2).contains(&ratio), "{name}: {ratio}\n{report:#}");
    }
    fio_takes(&folder, "again.fio");
    // Without a name it goes to standard output, with the report in comments.
    let text = folder.ok(&["trace", "to-fio", "run"]);
    assert!(
        text.contains("\n; the job simulated on kernel 7.3, mq-deadline"),
        "{text}"
    );
    folder.write("printed.fio", text);
    fio_takes(&folder, "printed.fio");
}

#[test]
fn logs_repeat_every_bio() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--trace", "a.blk"]);
    let args = ["trace", "to-fio", "a.blk", "--exact", "-o", "exact.fio"];
    let done = folder.run(&args);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // Who names no machine gets one with a device like the recorded one.
    let assumed = "the kernel is taken to be 7.3: the newest that was measured";
    assert!(done.stdout.contains(assumed), "{}", done.stdout);
    // On the disk of the run itself.
    let disk = [
        "--kernel",
        "7.3",
        "--device",
        "sata-7200-2008",
        "--format",
        "json",
    ];
    let report = json(&folder.run(&[&args[..], &disk].concat()));
    for name in ["bios", "bytes read", "bytes written", "mean"] {
        assert_eq!(ratio(&report, name), 1.0, "{name}");
    }
    for name in ["time from first to last", "all, p50"] {
        let ratio = ratio(&report, name);
        assert!((0.9..=1.1).contains(&ratio), "{name}: {ratio}\n{report:#}");
    }
    fio_takes(&folder, "exact.fio");
}

#[test]
fn what_cannot_become_a_job_is_one_line() {
    let folder = Folder::new();
    let line = "8,0 0 1 0.000000000 7 Q R 1000 + 8 [x]\n";
    folder.write("a.txt", line);
    folder.write("two.txt", format!("{line}{}", line.replace("8,0", "8,16")));
    folder.write("no-q.txt", line.replace(" Q ", " D "));
    folder.write("flush.txt", line.replace(" R 1000 + 8", " FN 0 + 0"));
    folder.write("c-1-7.iolog", "mine");
    for (args, expected) in [
        (
            &["two.txt"][..],
            "bios of several devices: 8,0 (1), 8,16 (1)",
        ),
        (&["no-q.txt"], "no Q events"),
        (&["flush.txt"], "only flushes"),
        (&["a.txt", "--exact"], "-o"),
        (&["a.txt", "-o", "a.txt"], "which this command reads"),
        (
            &["a.txt", "--exact", "-o", "c.fio"],
            "neither blklab nor fio wrote it",
        ),
        (&["a.txt", "--sched", "none,bfq"], "--sched: one value"),
        (
            &["a.txt", "--trace-dev", "x"],
            "--trace-dev: 'x' is no device",
        ),
        (&["a.txt", "--stack", "gone.toml"], "gone.toml"),
    ] {
        let done = folder.run(&[&["trace", "to-fio"], args].concat());
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
    assert_eq!(folder.read("c-1-7.iolog"), "mine");
    // One bio is a job, too.
    let done = folder.run(&["trace", "to-fio", "two.txt", "--trace-dev", "8,16"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("[x-7]"), "{}", done.stdout);
}

/// A device is found again from what it did, by the number of commands that it serves at a time
/// and by its times, and the job is as slow on it as on the real one.
#[test]
fn a_device_is_fitted_to_a_trace() {
    let folder = Folder::new();
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\n\
               iodepth=12\nnumber_ios=2000\n[b]\nstartdelay=20ms\nfilename=/dev/sda\ndirect=1\n\
               rw=randwrite\nbs=16k\nsize=1g\nnumber_ios=1000\nthinktime=100\n";
    folder.write("job.fio", job);
    for (device, channels) in [
        ("serial,read_ns=90us,write_ns=250us", 1),
        ("measured,channels=4,read=0:60us/100:120us,write=200us", 4),
    ] {
        let run = [
            "run", "job.fio", "--sched", "none", "--device", device, "--trace", "a.blk",
        ];
        folder.ok(&run);
        let report = json(&folder.run(&["trace", "to-fio", "a.blk", "--format", "json"]));
        let spec = report["device"].as_str().expect("a device");
        let expected = format!("measured,channels={channels},");
        assert!(spec.starts_with(&expected), "{device}: {spec}");
        for name in ["all, p50", "all, p99"] {
            let ratio = ratio(&report, name);
            assert!((0.8..=1.2).contains(&ratio), "{name}: {ratio}\n{report:#}");
        }
        // What was found is a device like any other.
        folder.ok(&["run", "job.fio", "--device", spec]);
    }
    // Without commands there is nothing to fit, and the job is there all the same.
    folder.write("q.txt", "8,0 0 1 0.000000000 7 Q R 1000 + 8 [x]\n");
    let text = folder.ok(&["trace", "to-fio", "q.txt"]);
    assert!(
        text.contains("[x-7]") && text.contains("; not compared with the trace: "),
        "{text}"
    );
    let done = folder.run(&[
        "trace", "to-fio", "q.txt", "--stack", "a.toml", "--device", "fit",
    ]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
}

/// The table in docs/traces.md, where the recorded traces are.
#[test]
fn the_table_in_the_documents_is_what_comes_out() {
    let page = std::fs::read_to_string(root().join("docs/traces.md")).expect("the page");
    let rows = page.lines().filter(|l| l.starts_with("| `"));
    let rows = rows.filter(|l| l.split('|').count() == 8);
    let folder = Folder::new();
    let mut nr_rows = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (name, stack) = (cells[1].trim_matches('`'), cells[2].trim_matches('`'));
        nr_rows += 1;
        let Some(args) = trace_and_stack(&folder, name, stack) else {
            eprintln!("skipped: {name}, which is not here");
            continue;
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let report =
            json(&folder.run(&[&["trace", "to-fio", "--format", "json"], &args[..]].concat()));
        let found = ["all, p50", "all, p99", "all, max"].map(|name| {
            let ratio = ratio(&report, name);
            format!("{ratio:.2}")
        });
        assert_eq!(&cells[3..6], found, "{name}");
        let within = found
            .iter()
            .all(|r| (0.8..=1.2).contains(&r.parse::<f64>().expect("it")));
        assert_eq!(cells[6], if within { "yes" } else { "no" }, "{name}");
    }
    assert!(nr_rows >= 5, "{nr_rows} rows");
}

/// The arguments for a row; none if its trace is not here.
fn trace_and_stack(folder: &Folder, name: &str, stack: &str) -> Option<Vec<String>> {
    if name.starts_with("examples/") {
        let example = root().join(name).display().to_string();
        folder.ok(&["run", &example, "--sched", stack, "--out", "example"]);
        return Some(vec!["example".to_owned()]);
    }
    let shared = blklab_testkit::shared(name)?;
    let mut args = vec![shared.display().to_string()];
    if stack == "its case" {
        let (folder, file) = name.split_once("/traces/").expect("a trace of a case");
        let (id, _) = file.split_once('.').expect("an ending");
        let case = blklab_testkit::shared(&format!("{folder}/cases/{id}.toml"))?;
        args.extend(["--stack".to_owned(), case.display().to_string()]);
    } else if stack != "fit" {
        args.extend(["--kernel", "6.1", "--sched", "none", "--device", stack].map(String::from));
    }
    Some(args)
}

/// It had three requests at a time: fewer than anybody can set.
#[test]
fn what_is_inferred_is_never_refused() {
    let f = Folder::new();
    let trace = root().join("testdata/fio-6.1/traces/ddls1-s1mq1-kyber.blktrace.0.zst");
    let trace = trace.to_str().expect("a path in UTF-8");
    for options in [
        &[][..],
        &["--kernel", "6.1", "--sched", "kyber"],
        &["--kernel", "4.4"],
    ] {
        let args = [&["trace", "to-fio", trace][..], options].concat();
        f.ok(&args);
    }
}
