// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run --md`: arrays on the command line and in results.

use crate::support::{Folder, digest, root};
use serde_json::Value;

/// Logins beside a large copy on a mirror: noop lets the logins wait for the
/// copy, CFQ does not (the report of 2009 and its repetition on 2.6.28).
#[test]
fn logins_beside_a_copy_on_a_mirror() {
    let f = Folder::new();
    let job = root().join("examples/ssh-beside-dd.fio");
    let run = |sched: &str, more: &[&str]| {
        let args = [
            "run",
            &job.to_string_lossy(),
            "--kernel",
            "2.6.28",
            "--md",
            "raid1:2",
            "--device",
            "simdisk-2628",
            "--memory",
            "2g",
            "--output-format",
            "json",
            "--sched",
            sched,
        ];
        let text = f.ok(&[&args, more].concat());
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let slowest = |v: &Value| {
        let jobs = v["jobs"].as_array().expect("jobs");
        let times = jobs.iter().map(|j| j["read"]["runtime"].as_u64());
        times.max().flatten().expect("readers")
    };
    let noop = run("noop", &[]);
    let cfq = run("cfq", &[]);
    assert!(slowest(&noop) > 100_000, "{}", slowest(&noop));
    assert!(slowest(&cfq) < 20_000, "{}", slowest(&cfq));
    let small = ["quantum=1", "slice_async_rq=1", "queue_depth=1"];
    let small: Vec<&str> = small.iter().flat_map(|s| ["--set", s]).collect();
    let tuned = run("cfq", &small);
    assert!(slowest(&tuned) < 2_000, "{}", slowest(&tuned));
    disk_use(&noop);
}

/// The array counts bios and no times, as 2.6.28 does (measured: md0 of the
/// cases `md-*`); members are named below it, and written to alike.
fn disk_use(result: &Value) {
    let disks = result["disk_util"].as_array().expect("disks");
    let names: Vec<_> = disks.iter().map(|d| d["name"].as_str()).collect();
    assert_eq!(names, [Some("md0"), Some("sda"), Some("sdb")]);
    let number = |d: &Value, key: &str| d[key].as_u64().expect("a number");
    let (md0, sda, sdb) = (&disks[0], &disks[1], &disks[2]);
    for key in ["read_ticks", "write_ticks", "in_queue", "read_merges"] {
        assert_eq!(number(md0, key), 0, "{key}");
    }
    let reads = |d| number(d, "read_ios") + number(d, "read_merges");
    let writes = |d| number(d, "write_ios") + number(d, "write_merges");
    assert_eq!(reads(sda) + reads(sdb), number(md0, "read_ios"));
    assert_eq!(writes(sda), number(md0, "write_ios"));
    assert_eq!(writes(sdb), number(md0, "write_ios"));
    let mean = (number(sda, "write_ios") + number(sdb, "write_ios")) / 2;
    assert_eq!(number(md0, "aggr_write_ios"), mean);
    assert!(sda["aggr_write_ios"].is_null());
}

#[test]
fn an_array_and_one_disk_side_by_side_and_again() {
    let f = Folder::new();
    let args = ["run", "job.fio", "--kernel", "2.6.28", "--md"];
    let text = f.ok(&[&args[..], &["none,raid1:2,raid0:2,chunk_kb=4"]].concat());
    // A long label stands on a line of its own; who is best has a sentence, too.
    for (label, lines) in [("one disk", 4), ("raid1:2", 4), ("raid0:2,chunk_kb=4", 5)] {
        let is_row = |l: &&str| *l == label || l.starts_with(&format!("{label} "));
        let rows = text.lines().filter(is_row).count();
        assert_eq!(rows, lines, "jobs, histogram, disk and digests: {text}");
    }
    let with = [&args[..], &["raid1:2", "--out", "d", "--verify-digest"]].concat();
    let first = f.ok(&with);
    assert!(first.contains("raid1:2 of sata-7200-2008"), "{first}");
    let again = f.ok(&["run", "d/experiment.toml"]);
    assert_eq!(digest(&again), digest(&first));
    let info = f.ok(&["trace", "info", "d/events.blk"]);
    for name in ["9,0: ", "8,0: ", "8,16: "] {
        assert!(info.contains(name), "{info}");
    }
}
