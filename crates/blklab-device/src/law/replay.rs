// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded hand-overs and completions of the legacy scheduler measurements,
//! replayed into the laws: every start and end must be the recorded one.
//!
//! The recordings are event logs (`results/*.csv.gz`) beside the description of
//! each case (`cases/*.json`). A small sample of both is part of the project.

use crate::host::Host;
use blklab_types::{BioFlags, Op, Time};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The device of a case as a spec for [`crate::parse_spec`], and its depth.
fn device_of(case: &Value) -> (String, u32) {
    let device = &case["device"];
    let law = device["law"].as_str().expect("the law's name");
    let (info, _) = crate::parse_spec(law).expect("a known law");
    let mut spec = law.to_owned();
    for param in info.params {
        match &device[param.name] {
            Value::Null => {}
            Value::String(text) => spec += &format!(",{}={text}", param.name),
            number => spec += &format!(",{}={number}", param.name),
        }
    }
    (
        spec,
        device["queue_depth"].as_u64().expect("a depth") as u32,
    )
}

/// Replays one log; returns how many completions were compared.
fn replay(name: &str, spec: &str, depth: u32, log: &str) -> usize {
    let mut host = Host::build(spec, depth);
    let mut compared = 0;
    for (i, line) in log.lines().enumerate() {
        let place = format!("{name} line {}: {line}", i + 1);
        let fields: Vec<&str> = line.split(',').collect();
        if !matches!(fields.get(2), Some(&("DS" | "C"))) {
            continue;
        }
        let number = |i: usize| -> u64 { fields[i].parse().expect("a number") };
        let (time, sector, n) = (Time(number(0)), number(6), number(7) as u32);
        let op = if fields[4] == "R" {
            Op::Read
        } else {
            Op::Write
        };
        if fields[2] == "DS" {
            assert!(
                host.next_time().is_none_or(|t| t >= time),
                "{place}: ends too early"
            );
            host.now = time;
            assert_eq!(host.submit(op, BioFlags::NONE, sector, n), [], "{place}");
            assert!(host.nr_in_flight() <= depth as usize, "{place}");
            continue;
        }
        let start = fields[8].split(' ').find_map(|f| f.strip_prefix("start="));
        let start: u64 = start.and_then(|s| s.parse().ok()).expect("a start");
        let finished = host
            .step()
            .unwrap_or_else(|| panic!("{place}: nothing to finish"));
        assert_eq!(finished.len(), 1, "{place}");
        let f = finished[0];
        let ours = (f.cmd.op, f.cmd.sector, f.cmd.nr_sectors, f.started, f.ended);
        assert_eq!(ours, (op, sector, n, Time(start), time), "{place}");
        compared += 1;
    }
    compared
}

/// Replays all cases under `root`; returns (cases, completions).
fn replay_all(root: &Path) -> (usize, usize) {
    let mut results: Vec<PathBuf> = fs::read_dir(root.join("results"))
        .expect("a directory of results")
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    results.sort();
    let mut completions = 0;
    for path in &results {
        let file = path
            .file_name()
            .and_then(|f| f.to_str())
            .expect("a file name");
        let id = file.strip_suffix(".csv.gz").expect("a compressed log");
        let case = fs::read_to_string(root.join("cases").join(format!("{id}.json")));
        let case: Value = serde_json::from_str(&case.expect("the case")).expect("JSON");
        let mut log = String::new();
        let bytes = fs::File::open(path).expect("the log");
        GzDecoder::new(bytes)
            .read_to_string(&mut log)
            .expect("gzip");
        let (spec, depth) = device_of(&case);
        let compared = replay(id, &spec, depth, &log);
        assert!(compared > 0, "{id}: no completions");
        completions += compared;
    }
    (results.len(), completions)
}

#[test]
fn the_sample_replays_exactly() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/legacy");
    let (cases, completions) = replay_all(&root);
    assert_eq!((cases, completions), SAMPLE);
}

/// Cases and completions in the sample.
const SAMPLE: (usize, usize) = (3, 1777);

#[test]
fn all_recorded_cases_replay_exactly() {
    let Some(root) = blklab_testkit::shared("truth-legacy") else {
        return;
    };
    let (cases, completions) = replay_all(&root);
    println!("{cases} cases, {completions} completions");
}

/// One line of a driver's trace: time, hand-over or completion, and what.
struct Traced {
    time: Time,
    handed_over: bool,
    op: Op,
    sector: u64,
    n: u32,
}

fn trace(name: &str) -> Vec<Traced> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/simdisk");
    let text = fs::read_to_string(path.join(name)).expect("the trace");
    let line = |line: &str| {
        let f: Vec<&str> = line.split(' ').collect();
        Traced {
            time: Time(f[0].parse().expect("a time")),
            handed_over: f[1] == "D",
            op: if f[2] == "R" { Op::Read } else { Op::Write },
            sector: f[3].parse().expect("a sector"),
            n: f[4].parse().expect("a length"),
        }
    };
    text.lines().map(line).collect()
}

const SIMDISK: &str = "simdisk,mode=1,fixed_ns=100us,sector_ns=8138,spt=1024,ra=512,\
                       seek_min_ns=1ms,seek_var_ns=14ms";

/// Completions may come this much later than the law says: interrupts.
const INTERRUPT_NS: u64 = 10_000;

/// Hands over what the kernel handed over, and compares order and time of all
/// completions; returns how many.
fn follow(spec: &str, name: &str) -> usize {
    let mut host = Host::build(spec, 31);
    let trace = trace(name);
    let mut finished = std::collections::VecDeque::new();
    let mut compared = 0;
    for record in &trace {
        finished.extend(host.run_until(record.time));
        if record.handed_over {
            finished.extend(host.submit(record.op, BioFlags::NONE, record.sector, record.n));
            continue;
        }
        let f = finished.pop_front().expect("a completion by now");
        let late_ns = record.time.ns() - f.ended.ns();
        assert_eq!(
            (f.cmd.op, f.cmd.sector, f.cmd.nr_sectors),
            (record.op, record.sector, record.n)
        );
        assert!(
            late_ns < INTERRUPT_NS,
            "{name} at {}: {late_ns} ns",
            record.time
        );
        compared += 1;
    }
    compared
}

#[test]
fn simdisk_agrees_with_traces_of_linux_6_1() {
    assert_eq!(
        follow(&format!("{SIMDISK},order=1"), "random-sptf.txt"),
        336
    );
    assert_eq!(follow(SIMDISK, "readers-fifo.txt"), 400);
}

/// The driver's lock kept the disk's own timers off while requests were handed
/// over, so the trace does not show when a choice was made. Given the order,
/// every service time must be right: each command is handed over alone, so that
/// it is ready when it was, or when the one before had ended.
#[test]
fn simdisk_2628_agrees_with_a_trace_of_linux_2_6_28() {
    let mut host = Host::build("simdisk-2628,interrupt_ns=0", 31);
    let trace = trace("mixed-2628.txt");
    let mut waiting: Vec<&Traced> = Vec::new();
    let mut compared = 0;
    for record in &trace {
        if record.handed_over {
            waiting.push(record);
            continue;
        }
        let same = |w: &&Traced| (w.op, w.sector, w.n) == (record.op, record.sector, record.n);
        let Some(i) = waiting.iter().position(same) else {
            continue;
        };
        let handed_over = waiting.remove(i).time;
        host.now = handed_over.max(Time(host.now.ns().saturating_sub(150_000)));
        let f = host.one(record.op, record.sector, record.n);
        let late_ns = record.time.ns() - f.ended.ns();
        assert!(
            late_ns < 2 * INTERRUPT_NS,
            "at {}: {late_ns} ns",
            record.time
        );
        compared += 1;
    }
    assert_eq!(compared, 893);
}
