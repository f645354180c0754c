// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a drive was measured to do, beside what the presets do: the table of
//! `docs/devices.md`.
//!
//! Source: ublk-disksim (github.com/lumir-sliva/ublk-disksim, bench/expect and
//! docs/VALIDATION.md): one ST2000DM006, fio through NTFS on Windows, the file all
//! over the platters. Its flushes have up to 28 ms of the file system in them.

use super::{closed_loop, rate_mb_s};
use crate::host::Host;
use blklab_types::{Op, SplitMix64};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str =
    "<!-- generated: UPDATE_TABLES=1 cargo test -p blklab-device --lib measured -->\n";
const END: &str = "<!-- end of the measured disks -->\n";

/// The preset of the drive, and the one of 2008 beside it.
const PRESETS: [&str; 2] = ["st2000dm006", "sata-7200-2008"];

/// A figure that was measured.
struct Row {
    what: &'static str,
    published: f64,
    /// A parameter of the preset was set by it.
    calibrated: bool,
    ours: fn(&str) -> f64,
}

const ROWS: [Row; 9] = [
    row("random reads, depth 1, mean ms", 17.5, true, |s| {
        reads(s, 1).mean_ms
    }),
    row("… median ms", 17.4, false, |s| reads(s, 1).median_ms),
    row("… p99 ms", 28.7, false, |s| reads(s, 1).p99_ms),
    row("random reads, depth 32, per second", 94.0, true, |s| {
        reads(s, 31).per_s
    }),
    row(
        "random writes, depth 1, per second",
        124.0,
        false,
        writes_per_s,
    ),
    row("flush after 8 scattered writes, ms", 127.0, false, |s| {
        flush_ms(s, 8)
    }),
    row("flush after 64 scattered writes, ms", 630.0, true, |s| {
        flush_ms(s, 64)
    }),
    row(
        "stream of reads, mean of the disk, MB/s",
        143.0,
        true,
        |s| stream(s, Op::Read),
    ),
    row(
        "stream of writes, mean of the disk, MB/s",
        132.0,
        false,
        |s| stream(s, Op::Write),
    ),
];

const fn row(what: &'static str, published: f64, calibrated: bool, ours: fn(&str) -> f64) -> Row {
    Row {
        what,
        published,
        calibrated,
        ours,
    }
}

struct Reads {
    per_s: f64,
    mean_ms: f64,
    median_ms: f64,
    p99_ms: f64,
}

/// Random reads of 4 KiB over the disk.
fn reads(spec: &str, depth: usize) -> Reads {
    let mut host = Host::build(spec, depth as u32);
    let places = host.capacity().expect("a disk has an end") / 8;
    let mut random = SplitMix64(9);
    let all = closed_loop(&mut host, depth, 3000, || {
        (Op::Read, random.below(places) * 8, 8)
    });
    let ms = |f: &crate::host::Finished| (f.ended - f.submitted).ns() as f64 / 1e6;
    let mut times: Vec<f64> = all.iter().map(ms).collect();
    times.sort_by(f64::total_cmp);
    let n = times.len();
    Reads {
        per_s: n as f64 * 1e9 / host.now.ns() as f64,
        mean_ms: times.iter().sum::<f64>() / n as f64,
        median_ms: times[n / 2],
        p99_ms: times[n * 99 / 100],
    }
}

/// Random writes of 4 KiB, one at a time, for about 30 s.
fn writes_per_s(spec: &str) -> f64 {
    let mut host = Host::build(spec, 1);
    let places = host.capacity().expect("a disk has an end") / 8;
    let mut random = SplitMix64(9);
    let count = 3500;
    closed_loop(&mut host, 1, count, || {
        (Op::Write, random.below(places) * 8, 8)
    });
    count as f64 * 1e9 / host.now.ns() as f64
}

/// Mean time of a flush after so many random writes.
fn flush_ms(spec: &str, writes: u32) -> f64 {
    let mut host = Host::build(spec, 1);
    let places = host.capacity().expect("a disk has an end") / 8;
    let (mut random, mut sum_ns) = (SplitMix64(9), 0);
    for _ in 0..20 {
        for _ in 0..writes {
            host.one(Op::Write, random.below(places) * 8, 8);
        }
        let flush = host.one(Op::Flush, 0, 0);
        sum_ns += (flush.ended - flush.submitted).ns();
    }
    sum_ns as f64 / 20e6
}

/// Rate of 1 MiB pieces at 16 places from the outermost to the innermost zone.
fn stream(spec: &str, op: Op) -> f64 {
    let rate = |place: u64| {
        let mut host = Host::build(spec, 1);
        let first = host.capacity().expect("a disk has an end") / 16 * place;
        let run = |host: &mut Host, pieces: std::ops::Range<u64>| {
            for i in pieces {
                host.one(op, first + i * 2048, 2048);
            }
        };
        run(&mut host, 0..64);
        let begin = host.now;
        run(&mut host, 64..164);
        rate_mb_s(begin, host.now, 100 << 20)
    };
    (0..16).map(rate).sum::<f64>() / 16.0
}

fn table(figures: &[[f64; 2]]) -> String {
    let mut text = format!(
        "| | published | `{}` | ratio | | `{}` |\n| --- | ---: | ---: | ---: | --- | ---: |\n",
        PRESETS[0], PRESETS[1]
    );
    for (row, [ours, other]) in ROWS.iter().zip(figures) {
        let kind = if row.calibrated {
            "calibrated"
        } else {
            "predicted"
        };
        let ratio = ours / row.published;
        let _ = writeln!(
            text,
            "| {} | {} | {ours:.1} | {ratio:.2} | {kind} | {other:.1} |",
            row.what, row.published
        );
    }
    text
}

#[test]
fn measured_disks_are_what_the_table_says() {
    let figures: Vec<[f64; 2]> = ROWS.iter().map(|r| PRESETS.map(r.ours)).collect();
    for (row, [ours, _]) in ROWS.iter().zip(&figures) {
        let most = if row.calibrated { 0.1 } else { 0.2 };
        let ratio = ours / row.published;
        assert!((ratio - 1.0).abs() <= most, "{}: {ours:.1}", row.what);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices.md");
    let docs = std::fs::read_to_string(&path).expect("docs/devices.md");
    let (before, rest) = docs.split_once(BEGIN).expect("the mark of the table");
    let (generated, after) = rest.split_once(END).expect("the end of the table");
    let table = format!("\n{}\n", table(&figures));
    if std::env::var_os("UPDATE_TABLES").is_some() {
        let text = format!("{before}{BEGIN}{table}{END}{after}");
        std::fs::write(&path, text).expect("written");
    } else {
        assert!(
            generated == table,
            "run the command in the mark of the table"
        );
    }
}
