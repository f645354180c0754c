// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run`: the table, determinism, run directories.

use crate::support::{Folder, digest, root};

const MIXED: &str = "\
[global]
size=2m
[mixed]
rw=randrw
ioengine=libaio
iodepth=8
direct=1
[writers]
stonewall
rw=write
numjobs=2
fsync=64
";

#[test]
fn a_run_says_what_its_readers_want_to_know() {
    let f = Folder::new();
    f.write("mixed.fio", MIXED);
    let text = f.ok(&["run", "mixed.fio", "--sched", "none,mq-deadline"]);
    for part in [
        "mixed, kernel 7.3, sata-7200-2008, queue depth 31",
        "group 0, read, job mixed: ",
        "group 0, write, job mixed: ",
        "group 1, write, 2 jobs (writers): 4.00MiB in 1024 I/Os",
        "group 1, sync, 2 jobs (writers): 14 calls of fsync",
        "runt-min runt-max  clat50   99 % 99.9 %    max bandwidth   IOPS",
        "sync p99.9 of writers is ",
        "requests    merged     Q2D    D2C  %util in flight",
    ] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
    // A row for each scheduler in four tables, two histograms, that of the disk and
    // that of digests.
    for scheduler in ["none", "mq-deadline"] {
        let rows = text.lines().filter(|l| l.starts_with(scheduler)).count();
        assert_eq!(rows, 8, "{text}");
    }
}

#[test]
fn patches_and_settings_go_where_they_belong() {
    let f = Folder::new();
    f.write("mixed.fio", MIXED);
    let run = |args: &[&str]| {
        let base = ["run", "mixed.fio", "--kernel", "2.6.28"];
        f.ok(&[&base, args].concat())
    };
    let text = run(&[
        "--sched",
        "noop,deadline",
        "--patch",
        "none,cached_merge_limit",
        "--set",
        "fifo_batch=1,99999999999",
    ]);
    for part in [
        "noop unpatched",
        "noop cached_merge_limit",
        "deadline cached_merge_limit fifo_batch=1\n",
        "note: noop ran without fifo_batch, which it does not have",
        "note: fifo_batch=99999999999: the kernel makes it 2147483647",
        "note: patch cached_merge_limit is a reconstruction",
    ] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
}

#[test]
fn tables_fit_a_terminal_and_have_no_escape_codes() {
    let f = Folder::new();
    f.write("mixed.fio", MIXED);
    let long = "a-very-long-name-of-a-job-file-that-does-not-fit-any-column-of-a-table-at-all.fio";
    f.write(long, MIXED);
    let cases = root().join("testdata/legacy/cases");
    let cases = cases.to_string_lossy();
    let runs: &[&[&str]] = &[
        &["run", "mixed.fio"],
        &["run", "mixed.fio", long, "--repeat", "2"],
        &[
            "run",
            "mixed.fio",
            "--sched",
            "none,mq-deadline",
            "--set",
            "dirty_background_ratio=5,10",
        ],
        &[
            "run",
            "mixed.fio",
            "--device",
            "sata-7200-2008,rpm=5400,seek_avg_ms=9.5,buffer_bytes=8MiB",
        ],
        &[
            "run",
            "mixed.fio",
            "--device",
            "sata-7200-2008,rpm=5400",
            "--device",
            "sas-15k",
        ],
        &["conform", &cases],
        &["list", "devices"],
        &["list", "devices", "sata-7200-2008"],
        &["list", "tunables"],
        &["--help"],
        &["run", "--help"],
        &["workload", "--help"],
        &["conform", "--help"],
        &["list", "--help"],
        &["trace", "--help"],
        &["trace", "stats", "--help"],
    ];
    for args in runs {
        for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")] {
            let output = f.command(args).env(name, value).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(!text.contains('\x1b'), "{args:?}");
            for line in text.lines().filter(|l| !l.starts_with("trace: ")) {
                assert!(line.chars().count() <= 80, "{args:?}: too wide:\n{line}");
            }
        }
    }
}

#[test]
fn the_same_run_gives_the_same_bits() {
    let f = Folder::new();
    f.write("mixed.fio", MIXED);
    let first = f.ok(&["run", "mixed.fio"]);
    let verified = f.ok(&["run", "mixed.fio", "--verify-digest"]);
    let line = format!("verified: two runs gave digest {}\n", digest(&first));
    assert!(verified.contains(&line), "{verified}");
    assert_eq!(verified.replace(&line, ""), first);
    let matrix = [
        "run",
        "mixed.fio",
        "--sched",
        "none,mq-deadline",
        "--repeat",
        "2",
    ];
    let with_jobs = |n: &str| {
        let args = [&matrix[..], &["--output-format", "json", "--jobs", n]].concat();
        f.ok(&args)
    };
    let one = with_jobs("1");
    assert_eq!(one, with_jobs("2"));
    assert_eq!(one.matches("\"digest\"").count(), 4);
}

#[test]
fn seeds_and_repetitions() {
    let f = Folder::new();
    f.write(
        "free.fio",
        "[a]\nrw=randread\nsize=4m\ndirect=1\nnumber_ios=64\nrandrepeat=0\n",
    );
    let run = |args: &[&str]| f.ok(&[&["run", "free.fio"], args].concat());
    assert_eq!(
        digest(&run(&["--seed", "1"])),
        digest(&run(&["--set", "seed=1"]))
    );
    assert_ne!(
        digest(&run(&["--seed", "1"])),
        digest(&run(&["--seed", "2"]))
    );
    let text = run(&["--repeat", "3", "--seed", "1"]);
    for part in ["medians of 3 runs", "\n  lowest", "\n  highest"] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
}

#[test]
fn a_job_on_standard_input() {
    let f = Folder::new();
    let text = f.shell("blklab run - < job.fio").stdout;
    assert!(text.starts_with("stdin, kernel 7.3"), "{text}");
    assert_eq!(digest(&text), digest(&f.ok(&["run", "job.fio"])));
    let error = f.shell("echo '[a]\nrw=x' | blklab run -").stderr;
    assert!(error.starts_with("blklab: standard input:2: "), "{error}");
}

#[test]
fn a_run_directory_can_be_run_again() {
    let f = Folder::new();
    f.write("sub/common.inc", "size=2m\ndirect=1\n");
    f.write(
        "sub/two.fio",
        "[a]\ninclude common.inc\nrw=randread\n[b]\ninclude common.inc\nrw=write\n",
    );
    f.write(
        "sub/e.toml",
        "job_file = 'two.fio'\nsections = ['a']\nseed = 3\n[queue]\nnr_requests = 64\n",
    );
    f.write(
        "p.json",
        r#"{"kernel":"2.6.28","device":{"law":"serial","read_ns":500},"processes":[{"name":"p",
        "pid":7,"io":{"pattern":"script","ops":[[5,"read",[],8,8],[9,"write",["sync"],16,8]]}}]}"#,
    );
    for (input, extra) in [
        ("sub/e.toml", &["--sched", "none"][..]),
        (
            "sub/two.fio",
            &["--set", "read_expire=50", "--memory", "1g"],
        ),
        ("p.json", &[]),
    ] {
        let args = [&["run", input, "--out", "runs"], extra].concat();
        let text = f.ok(&args);
        let expected: &[&str] = match input {
            "p.json" => &["events.blk", "experiment.toml", "result.json"],
            _ => &["events.blk", "experiment.toml", "job.fio", "result.json"],
        };
        assert_eq!(f.names("runs"), expected, "{input}");
        let again = f.ok(&["run", "runs/experiment.toml", "--out", "again"]);
        assert_eq!(digest(&again), digest(&text), "{input}");
        assert_eq!(
            f.read("again/experiment.toml"),
            f.read("runs/experiment.toml")
        );
        let print = |dir: &str| f.ok(&["trace", "print", "-q", &format!("{dir}/events.blk")]);
        assert!(print("runs") == print("again"), "{input}");
        assert!(
            f.read("runs/result.json").contains(digest(&text)),
            "{input}"
        );
        std::fs::remove_dir_all(f.path("runs")).unwrap();
        std::fs::remove_dir_all(f.path("again")).unwrap();
    }
}

#[test]
fn every_experiment_of_a_matrix_has_its_files() {
    let f = Folder::new();
    f.write(
        "log.fio",
        "[a]\nrw=randread\nsize=1m\ndirect=1\nwrite_lat_log=l\nwrite_iolog=io.log\n",
    );
    f.ok(&[
        "run",
        "log.fio",
        "--sched",
        "none,mq-deadline",
        "--repeat",
        "2",
        "--out",
        "o",
        "--trace",
        "t.txt",
    ]);
    let labels = [
        "mq-deadline-run1",
        "mq-deadline-run2",
        "none-run1",
        "none-run2",
    ];
    assert_eq!(f.names("o"), labels);
    let names = f.names(".");
    for label in labels {
        assert!(names.contains(&format!("t-{label}.txt")), "{names:?}");
        let own = f.names(&format!("o/{label}"));
        for log in ["io.log", "l_clat.1.log", "l_lat.1.log", "l_slat.1.log"] {
            assert!(own.contains(&log.to_owned()), "{own:?}");
        }
        assert_eq!(own.len(), 8, "{own:?}");
    }
    assert!(!names.iter().any(|n| n.ends_with(".partial")), "{names:?}");
}

#[test]
fn notes_about_what_is_not_as_asked() {
    let f = Folder::new();
    f.write(
        "n.fio",
        "[a]\nrw=read\nsize=1g\noffset=499g\nfilename=/dev/sda\nnumber_ios=2\nioscheduler=deadline\n",
    );
    let chosen = ["run", "n.fio", "--sched", "mq-deadline", "--device"];
    let text = f.ok(&[&chosen[..], &["serial"]].concat());
    assert!(
        text.contains("note: the job file asks for ioscheduler=deadline; mq-deadline ran"),
        "{text}"
    );
    let text = f.ok(&[
        "run",
        "n.fio",
        "--kernel",
        "4.19",
        "--device",
        "sata-7200-2008,capacity_sectors=1047000000",
    ]);
    assert!(text.contains("is cut"), "{text}");
    let direct = f.ok(&["run", "job.fio"]);
    assert!(
        !direct.contains("page cache"),
        "direct I/O is not concerned: {direct}"
    );
}

#[test]
fn fio_formats_of_real_runs() {
    let f = Folder::new();
    f.write("mixed.fio", MIXED);
    let format = |name: &str| f.ok(&["run", "mixed.fio", "--output-format", name]);
    let normal = format("normal");
    for part in [
        "mixed: (groupid=0, jobs=1): err= 0:",
        "clat percentiles (",
        "Run status group 1 (all jobs):",
        "Disk stats (read/write):",
        "  sda: ios=",
    ] {
        assert!(normal.contains(part), "{normal}\nlacks {part}");
    }
    assert_eq!(format("terse").lines().count(), 3);
    assert!(format("terse").starts_with("3;blklab-"));
    assert!(
        f.ok(&[
            "run",
            "mixed.fio",
            "--output-format",
            "terse",
            "--terse-version",
            "5"
        ])
        .starts_with("5;")
    );
    f.ok(&[
        "run",
        "mixed.fio",
        "--output-format",
        "json",
        "--output",
        "r.json",
    ]);
    assert_eq!(f.read("r.json"), format("json"));
}

#[test]
fn what_a_job_issues() {
    let f = Folder::new();
    let text = f.ok(&["workload", "job.fio", "--limit", "3"]);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.starts_with(" job  op "), "{text}");
    let csv = f.ok(&["workload", "job.fio", "--output-format", "csv"]);
    assert_eq!(csv.lines().next(), Some("job,op,offset,length,file"));
    assert_eq!(csv.lines().filter(|l| l.contains(",read,")).count(), 256);
}
