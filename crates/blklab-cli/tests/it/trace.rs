// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of runs, read by the tools of the blktrace package and by our own.

use crate::support::{Folder, installed};

const JOBS: &[(&str, &str)] = &[
    (
        "aio",
        "[a]\nrw=randrw\nsize=2m\nioengine=libaio\niodepth=16\ndirect=1\n",
    ),
    (
        "buffered",
        "[a]\nrw=write\nsize=4m\nfsync=32\n[b]\nrw=read\nsize=2m\n",
    ),
    (
        "mmap",
        "[a]\nrw=randrw\nsize=1m\nioengine=mmap\n[b]\nrw=randwrite\nsize=1m\nioengine=posixaio\niodepth=4\n",
    ),
];

#[test]
fn blkparse_and_btt_read_them() {
    if !installed("blkparse") || !installed("btt") {
        return;
    }
    let f = Folder::new();
    let old = ["2.6.16", "2.6.28", "2.6.33", "3.7", "4.19"].map(|v| (v, ["noop", "deadline"]));
    let new = ["5.10", "6.1", "6.18"].map(|v| (v, ["none", "mq-deadline"]));
    for (kernel, scheds) in old.into_iter().chain(new) {
        for sched in scheds {
            for (name, job) in JOBS {
                f.write("job.fio", job);
                f.ok(&[
                    "run",
                    "job.fio",
                    "--kernel",
                    kernel,
                    "--sched",
                    sched,
                    "--trace",
                    "t",
                    "--set",
                    "queue_depth=2",
                ]);
                let real = f.shell("blkparse -i t");
                assert_eq!(real.code, Some(0), "{}", real.stderr);
                let ours = f.ok(&["trace", "print", "t"]);
                assert!(ours.lines().count() > 100, "{kernel} {sched} {name}");
                if let Some((n, (a, b))) = real
                    .stdout
                    .lines()
                    .zip(ours.lines())
                    .enumerate()
                    .find(|(_, (a, b))| a != b)
                {
                    panic!(
                        "{kernel} {sched} {name}: line {}\nblkparse {a}\nblklab   {b}",
                        n + 1
                    );
                }
                assert!(
                    real.stdout == ours,
                    "{kernel} {sched} {name}: lengths differ"
                );
                let btt = f.shell("blkparse -q -i t -d t.bin -O >/dev/null && btt -i t.bin");
                assert_eq!(btt.code, Some(0), "{kernel} {sched} {name}: {}", btt.stderr);
                assert!(btt.stdout.contains("Q2C"), "{kernel} {sched} {name}");
            }
        }
    }
}

#[test]
fn every_form_holds_the_same_events() {
    let f = Folder::new();
    f.write("job.fio", JOBS[1].1);
    f.ok(&["run", "job.fio", "--trace", "t"]);
    let names = |pattern: &str| {
        let all = f.names(".");
        all.into_iter()
            .filter(|n| n.starts_with(pattern))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("t"), ["t.blktrace.0"]);
    let events = |file: &str| {
        let text = f.ok(&["trace", "print", "-q", file]);
        let events = text.lines().filter(|l| !l.starts_with("Input file "));
        events.map(str::to_owned).collect::<Vec<_>>()
    };
    let original = events("t");
    assert_eq!(events("t.blktrace.0"), original);
    for (from, to) in [
        ("t", "u.blk"),
        ("u.blk", "v.txt"),
        ("v.txt", "w"),
        ("w", "x.txt"),
    ] {
        let done = f.run(&["trace", "convert", from, to]);
        assert_eq!(done.code, Some(0), "{from} to {to}: {}", done.stderr);
        assert_eq!(events(to), original, "{from} to {to}");
    }
    f.ok(&["run", "job.fio", "--trace", "direct.blk"]);
    assert_eq!(events("direct.blk"), original);
    f.ok(&["run", "job.fio", "--trace", "n.blktrace.0"]);
    assert_eq!(names("n"), ["n.blktrace.0"]);
    let stats = f.ok(&["trace", "stats", "t"]);
    assert!(stats.contains("Q2C") && stats.contains("D2C"), "{stats}");
    let json = f.ok(&["trace", "stats", "u.blk", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["nr_events"].as_u64() > Some(100));
    assert!(f.ok(&["trace", "info", "t"]).contains("damage    none"));
}
