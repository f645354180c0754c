// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why` about a process, a moment, and what fio was told.

use crate::support::Folder;
use serde_json::Value;

/// Lines of ftrace, with their times in us.
fn line(us: u64, comm: &str, pid: u32, event: &str) -> String {
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    format!("{comm}-{pid} [000] ..... {s}.{us:06}: {event}\n")
}

/// A read of 4 KiB from Q to C that goes to the device at once.
fn read(comm: &str, pid: u32, sector: u64, from: u64, to: u64) -> Vec<(u64, String)> {
    long_read(comm, pid, ("R", 8), sector, from, to)
}

/// A read with such letters, of so many sectors.
fn long_read(
    comm: &str,
    pid: u32,
    (rwbs, sectors): (&str, u64),
    sector: u64,
    from: u64,
    to: u64,
) -> Vec<(u64, String)> {
    let place = format!("{sector} + {sectors}");
    let bytes = sectors * 512;
    let mut lines = Vec::new();
    for event in [
        format!("block_bio_queue: 8,0 {rwbs} {place} [{comm}]"),
        format!("block_getrq: 8,0 {rwbs} {place} [{comm}]"),
        format!("block_rq_insert: 8,0 {rwbs} {bytes} () {place} be,0,4 [{comm}]"),
        format!("block_rq_issue: 8,0 {rwbs} {bytes} () {place} be,0,4 [{comm}]"),
    ] {
        lines.push((from, line(from, comm, pid, &event)));
    }
    let done = format!("block_rq_complete: 8,0 {rwbs} () {place} be,0,4 [0]");
    lines.push((to, line(to, "<idle>", 0, &done)));
    lines
}

fn trace(mut lines: Vec<(u64, String)>) -> String {
    lines.sort_by_key(|(us, _)| *us);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Four reads of fio of 1 ms each, and one of another process.
fn reads() -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    for i in 0..4 {
        lines.extend(read("fio", 50, 1000 * i, 200_000 * i, 200_000 * i + 1000));
    }
    lines.extend(read("db", 60, 90_000, 400_500, 404_500));
    lines
}

/// What fio prints of four reads.
fn result(mean_ns: u64, max_ns: u64) -> String {
    let latency = format!(r#"{{"min": 1000, "max": {max_ns}, "mean": {mean_ns}.0, "N": 4}}"#);
    format!(
        r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "rr", "read": {{"io_bytes": 16384,
        "io_kbytes": 16, "total_ios": 4, "runtime": 700, "lat_ns": {latency},
        "clat_ns": {latency}}}}}]}}"#
    )
}

#[test]
fn what_fio_was_told_is_divided() {
    let f = Folder::new();
    f.write("t.txt", trace(reads()));
    f.write("out.json", result(32_000_000, 128_000_000));
    let text = f.ok(&["why", "t.txt", "--fio", "out.json"]);
    for part in [
        "fio: reads of rr (lat)",
        "in the trace fio (50)",
        "on average 31.0 ms of 32.0 ms (96 %) are outside of the block layer",
        "of the longest (128.0 ms) 127.0 ms or more are outside",
        "nothing in the trace shows what it waits for there",
        "blklab record sda --also jbd2,ext4,writeback,sched",
    ] {
        assert!(one_line(&text).contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    // What the task was kept from is named where its events are there.
    let mut lines = reads();
    let asleep = "sched_switch: prev_comm=fio prev_pid=50 prev_prio=120 prev_state=D ==> \
                  next_comm=hog next_pid=9 next_prio=120";
    let woken = "sched_wakeup: comm=fio pid=50 prio=120 target_cpu=000";
    let runs = "sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R ==> \
                next_comm=fio next_pid=50 next_prio=120";
    lines.push((600_010, line(600_010, "fio", 50, asleep)));
    lines.push((601_010, line(601_010, "<idle>", 0, woken)));
    lines.push((725_010, line(725_010, "hog", 9, runs)));
    f.write("sched.txt", trace(lines));
    let text = f.ok(&["why", "sched.txt", "--fio", "out.json"]);
    let said = "were 124.0 ms awake and waiting for a CPU (1 time, 124.0 ms the worst)";
    assert!(one_line(&text).contains(said), "{text}");
    assert!(!text.contains("nothing in the trace shows"), "{text}");
}

#[test]
fn what_the_block_layer_explains_is_said_to_be_explained() {
    let f = Folder::new();
    f.write("t.txt", trace(reads()));
    f.write("out.json", result(1_020_000, 1_030_000));
    let text = f.ok(&["why", "t.txt", "--fio", "out.json", "--format", "json"]);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let divided = &answer["fio"][0];
    assert_eq!(divided["block_layer"]["nr"], 4);
    assert_eq!(divided["block_layer"]["max_ns"], 1_000_000);
    assert_eq!(divided["outside_ns"], 20_000);
    assert_eq!(divided["record"], Value::Null);
    let words = divided["words"].to_string();
    assert!(
        words.contains("99 % of what fio sees is in the block layer"),
        "{words}"
    );
    // fio cannot have waited for what takes longer than it says.
    f.write("short.json", result(100_000, 200_000));
    let text = f.ok(&["why", "t.txt", "--fio", "short.json"]);
    assert!(
        text.contains("the block layer has them for longer"),
        "{text}"
    );
}

#[test]
fn what_is_not_the_jobs_is_left_out() {
    let f = Folder::new();
    // The parent reads what it laid out, the job a map of blocks and a symbolic link.
    let mut lines = reads();
    for i in 0..6 {
        let from = 10_000 + 10_000 * i;
        lines.extend(long_read(
            "fio",
            49,
            ("R", 256),
            50_000 + 1000 * i,
            from,
            from + 9000,
        ));
    }
    lines.extend(long_read("fio", 50, ("RM", 8), 70_000, 90_000, 99_000));
    lines.extend(long_read("fio", 50, ("R", 2), 71_000, 110_000, 119_000));
    f.write("t.txt", trace(lines));
    f.write("out.json", result(1_020_000, 1_030_000));
    let args = ["why", "t.txt", "--fio", "out.json", "--format", "json"];
    let answer: Value = serde_json::from_str(&f.ok(&args)).expect("JSON");
    let divided = &answer["fio"][0];
    assert_eq!(divided["block_layer"]["nr"], 4);
    assert_eq!(divided["block_layer"]["max_ns"], 1_000_000);
    assert_eq!(divided["device"]["nr"], 4);
    let left = &divided["left_out"];
    assert_eq!(
        *left,
        serde_json::json!({"metadata": 1, "longer": 6, "shorter": 1})
    );
    let text = one_line(&f.ok(&args[..4]));
    let said = "without 8 reads of these processes: 1 of the filesystem's metadata, 6 longer \
                than the job's 4 KiB (of files that fio lays out, or of other jobs), 1 shorter than the \
                job's 4 KiB.";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("fio counts"), "{text}");
    // The page cache may have had the others, and may read ahead: only those of metadata are
    // certainly not the job's, and what is longer if it goes past the cache.
    let many = result(1_020_000, 1_030_000)
        .replace("16384", "81920")
        .replace(r#""total_ios": 4"#, r#""total_ios": 20"#);
    f.write("many.json", &many);
    let direct = many.replacen('{', r#"{"global options": {"direct": "1"}, "#, 1);
    f.write("direct.json", direct);
    for (file, nr, longer) in [("many.json", 11, 0), ("direct.json", 5, 6)] {
        let text = f.ok(&["why", "t.txt", "--fio", file, "--format", "json"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let divided = &answer["fio"][0];
        assert_eq!(divided["block_layer"]["nr"], nr, "{file}");
        assert_eq!(divided["left_out"]["longer"], longer, "{file}");
        assert_eq!(divided["left_out"]["metadata"], 1, "{file}");
    }
}

#[test]
fn a_log_of_latencies_is_divided_too() {
    let f = Folder::new();
    f.write("t.txt", trace(reads()));
    let log = "1, 1000000, 0, 4096\n201, 1000000, 0, 4096\n401, 1000000, 0, 4096\n\
               728, 128000000, 0, 4096\n";
    f.write("rr_clat.1.log", log);
    let text = one_line(&f.ok(&["why", "t.txt", "--fio", "rr_clat.1.log"]));
    for part in [
        "fio: reads of rr (clat)",
        "of the longest (128.0 ms, which ended 728.0 ms after the log began)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let refused = f.run(&["why", "t.txt", "--fio", "t.txt"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("not ftrace"), "{}", refused.stderr);
}

#[test]
fn the_io_of_a_moment_is_shown() {
    let f = Folder::new();
    f.write("t.txt", trace(reads()));
    let text = one_line(&f.ok(&["why", "t.txt", "--at", "0.4007s"]));
    for part in [
        "2 I/Os under way: 2 at the device (D-C)",
        "R 2000 + 8 of fio (50) on 8,0, for 700.0 us so far, 300.0 us more",
        "which also has 1 read (1 of db (60))",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = one_line(&f.ok(&["why", "t.txt", "--at", "500ms"]));
    let said =
        "no I/O is under way: the last one ended 95.5 ms before, the next begins 100.0 ms later";
    assert!(text.contains(said), "{text}");
    let refused = f.run(&["why", "t.txt", "--at", "9s"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("--at: t.txt goes from 0.000000 s to 0.601000 s"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_slowest_of_a_process_are_shown() {
    let f = Folder::new();
    f.write("t.txt", trace(reads()));
    for who in ["db", "comm db", "pid 60", "60"] {
        let text = f.ok(&["why", "t.txt", "--slow", who]);
        assert!(text.contains("R 90000 + 8 of db (60): 4.00 ms"), "{text}");
        let (slowest, _) = text.split_once("Where the time").expect("all of it");
        assert!(!slowest.contains("of fio (50):"), "{text}");
    }
    let refused = f.run(&["why", "t.txt", "--slow", "pid 61"]);
    assert_eq!(refused.code, Some(2));
    let said =
        "no I/O of process 61 ends in t.txt; processes that wait for I/O in it: fio (50), db (60)";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    let refused = f.run(&["why", "t.txt", "--slow", "pid x"]);
    assert_eq!(refused.code, Some(2));
}

/// Text without the ends of its lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
