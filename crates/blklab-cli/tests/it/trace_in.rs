// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded bios that are run again: `blklab run --trace-in`.

use crate::support::{Folder, digest, root};

/// A reader that thinks, a queue of writes, and large reads that are split.
const JOBS: &str = "\
[global]
filename=/dev/sda
direct=1
[reader]
rw=randread
bs=4k
size=4g
io_size=512k
thinktime=500
[writer]
ioengine=libaio
iodepth=8
rw=randwrite
bs=8k
size=8g
io_size=1m
[large]
startdelay=100ms
rw=read
bs=1m
size=16m
";

/// The Q2C line of `trace stats`: the latencies of all bios.
fn latencies(folder: &Folder, trace: &str) -> Vec<f64> {
    let text = folder.ok(&["trace", "stats", trace]);
    let line = text.lines().find(|l| l.starts_with("Q2C ")).expect("Q2C");
    let numbers = line.split_whitespace().skip(1);
    numbers.map(|n| n.parse().expect("a number")).collect()
}

/// On the stack that they were recorded on, closed loops give the same latencies.
#[test]
fn a_closed_loop_gives_what_was_recorded() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    for kernel in ["6.18", "4.19", "2.6.28"] {
        folder.ok(&["run", "jobs.fio", "--kernel", kernel, "--trace", "a.blk"]);
        let stack = ["run", "--trace-in", "a.blk", "--kernel", kernel];
        let closed = [&stack[..], &["--loop", "closed", "--trace", "b.blk"]].concat();
        let text = folder.ok(&closed);
        for name in ["reader (1001)", "writer (1002)", "large (1003)"] {
            assert!(text.contains(name), "{text}");
        }
        let (recorded, again) = (latencies(&folder, "a.blk"), latencies(&folder, "b.blk"));
        for (a, b) in recorded.iter().zip(&again) {
            let near = (a - b).abs() <= 0.02 * a.max(*b);
            assert!(near, "{kernel}: recorded {recorded:?}, again {again:?}");
        }
    }
}

/// Open loop keeps the times of all arrivals, whatever the stack is.
#[test]
fn an_open_loop_keeps_the_times_of_arrivals() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--trace", "a.blk"]);
    let arrivals = |trace: &str| {
        let text = folder.ok(&["trace", "print", "-q", trace]);
        let of_q = text
            .lines()
            .filter(|l| l.split_whitespace().nth(5) == Some("Q"));
        let row = |l: &str| {
            let f: Vec<&str> = l.split_whitespace().collect();
            [f[3], f[4], f[6], f[7], f[9]].join(" ")
        };
        of_q.map(row).collect::<Vec<_>>()
    };
    let recorded = arrivals("a.blk");
    assert!(recorded.len() > 250);
    for stack in [
        &["--kernel", "6.18", "--sched", "bfq"],
        &["--device", "nvme-consumer", "--sched", "none"],
    ] {
        let run = ["run", "--trace-in", "a.blk", "--trace", "b.blk"];
        folder.ok(&[&run[..], &stack[..]].concat());
        assert_eq!(arrivals("b.blk"), recorded, "{stack:?}");
    }
}

/// Every kind of trace is taken, on kernels of both paths.
#[test]
fn other_formats_run_on_other_kernels() {
    let folder = Folder::new();
    let data = |name: &str| root().join("testdata").join(name).display().to_string();
    for trace in [
        "blktrace/linux-6.1-mq-deadline.blktrace.0.zst",
        "blktrace/linux-2.6.28-cfq.blktrace.0.zst",
        "snoop/biosnoop.txt",
    ] {
        for kernel in ["2.6.16", "2.6.38", "4.4", "6.18"] {
            let trace = data(trace);
            let args = ["run", "--trace-in", &trace, "--kernel", kernel];
            let options = ["--sectors", "wrap", "--loop", "closed"];
            folder.ok(&[&args[..], &options[..]].concat());
        }
    }
}

#[test]
fn a_run_directory_keeps_the_trace_and_runs_again() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--sched", "bfq", "--out", "first"]);
    // The stack is that of the run that is repeated.
    let args = [
        "run",
        "--trace-in",
        "first",
        "--loop",
        "closed",
        "--out",
        "second",
    ];
    let text = folder.ok(&args);
    assert!(text.contains("bfq"), "{text}");
    std::fs::remove_dir_all(folder.path("first")).expect("the folder");
    let again = folder.ok(&["run", "second", "--verify-digest"]);
    assert_eq!(digest(&again), digest(&text));
    let experiment = folder.read("second/experiment.toml");
    assert!(experiment.contains("[replay]"), "{experiment}");
    assert!(experiment.contains("loop = \"closed\""), "{experiment}");
}

#[test]
fn a_matrix_of_schedulers_and_an_experiment_file() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--trace", "a.blk"]);
    let args = [
        "run",
        "--trace-in",
        "a.blk",
        "--sched",
        "none,bfq",
        "--output-format",
        "csv",
    ];
    let csv = folder.ok(&args);
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    folder.write(
        "e.toml",
        "replay = { trace = \"a.blk\", loop = \"closed\" }\n",
    );
    assert!(folder.ok(&["run", "e.toml"]).contains("reader (1001)"));
}

#[test]
fn what_cannot_run_is_one_line() {
    let folder = Folder::new();
    folder.write("jobs.fio", JOBS);
    folder.ok(&["run", "jobs.fio", "--trace", "a.blk"]);
    let far = "8,0 0 1 0.000000000 7 Q R 999999999999 + 8 [x]\n";
    folder.write("far.txt", far);
    folder.write("no-q.txt", far.replace(" Q ", " D "));
    folder.write("two.txt", format!("{far}{}", far.replace("8,0", "8,16")));
    folder.write(
        "stray.toml",
        "replay = { trace = \"a.blk\", loop = \"shut\" }\n",
    );
    folder.write("device.toml", "replay = { trace = \"/dev/zero\" }\n");
    for (args, expected) in [
        (
            &["--trace-in", "far.txt"][..],
            "lie beyond the end of the device",
        ),
        (
            &[
                "--trace-in",
                "far.txt",
                "--loop",
                "closed",
                "--sectors",
                "wrap",
            ],
            "no completions (C)",
        ),
        (&["--trace-in", "no-q.txt"], "no Q events"),
        (
            &["--trace-in", "two.txt"],
            "bios of several devices: 8,0 (1), 8,16 (1); one can be repeated, choose it; \
             --trace-dev MAJOR,MINOR or 'device' in [replay] says which",
        ),
        (
            &["--trace-in", "two.txt", "--trace-dev", "9,9"],
            "no bios of device 9,9",
        ),
        (
            &["--trace-in", "a.blk", "--loop", "shut"],
            "--loop: no value is called 'shut'",
        ),
        (&["--trace-in", "gone.blk"], "gone.blk"),
        (&["--trace-in", "job.fio"], "job.fio"),
        (&["stray.toml"], "stray.toml"),
        (&["device.toml"], "not a regular file"),
    ] {
        let done = folder.run(&[&["run"], args].concat());
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
    // Down by whole MiB it fits.
    folder.ok(&["run", "--trace-in", "far.txt", "--sectors", "shift"]);
}
