// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drives were measured to do, beside what their presets do: the tables of
//! `docs/devices.md`.

use super::loads::{Load, Times, run};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const BEGIN: &str =
    "<!-- generated: UPDATE_TABLES=1 cargo test -p blklab-device --lib published -->\n";
const END: &str = "<!-- end of the tables -->\n";

/// Commands per second and response times in µs; 0: not published.
#[derive(Clone, Copy, Debug)]
struct Figures {
    per_s: f64,
    p50: f64,
    p99: f64,
    p999: f64,
}

/// A load that was measured on a drive.
struct Cell {
    what: &'static str,
    load: Load,
    read: Option<Figures>,
    write: Option<Figures>,
    /// A parameter of the preset was set by it.
    calibrated: bool,
}

/// A preset and what is known of the drive.
struct Drive {
    name: &'static str,
    cells: &'static [Cell],
}

const fn figures(per_s: f64, p50: f64, p99: f64, p999: f64) -> Option<Figures> {
    Some(Figures {
        per_s,
        p50,
        p99,
        p999,
    })
}

/// Random reads of so many KiB through SPDK: nothing of the host.
const fn reads(reads: usize, kib: u64) -> Load {
    Load {
        reads,
        read_bytes: kib * 1024,
        writes: 0,
        write_bytes: 4096,
        sequential: false,
        wake_ns: 0,
        reap_ns: 0,
        submit_ns: [0; 2],
    }
}

/// Interrupt and wake-up.
const WAKE_NS: u64 = 5_000;

/// What the process takes for a command besides submitting it: of the time of a command
/// at the most commands per second of one process, which is that of its processor
/// (381,090 with none, 303,981 with Kyber), what the mean submission latency (1.93 and
/// 2.61 µs) leaves.
const REAP_NS: u64 = 700;

/// Through the kernel, with one process for each direction, and the submission latencies of
/// reads and writes that fio measured for this load.
const fn through_kernel(load: Load, submit_ns: [u64; 2]) -> Load {
    Load {
        wake_ns: WAKE_NS,
        reap_ns: REAP_NS,
        submit_ns,
        ..load
    }
}

/// Through the kernel, where no submission latency was published: all of the process's time
/// counts in the response time.
const fn through_kernel_in(load: Load, reap_ns: u64) -> Load {
    Load {
        wake_ns: WAKE_NS,
        reap_ns,
        ..load
    }
}

/// All of the process's time for a command, without a scheduler and with Kyber.
const NONE_NS: u64 = 2_600;
const KYBER_NS: u64 = 3_300;

const fn beside(reads: usize, writes: usize) -> Load {
    Load {
        reads,
        writes,
        ..self::reads(0, 4)
    }
}

const fn stream(reads: usize, writes: usize, kib: u64) -> Load {
    Load {
        reads,
        read_bytes: kib * 1024,
        writes,
        write_bytes: kib * 1024,
        sequential: true,
        wake_ns: WAKE_NS,
        reap_ns: NONE_NS,
        submit_ns: [0; 2],
    }
}

const fn read(what: &'static str, load: Load, read: Option<Figures>, calibrated: bool) -> Cell {
    Cell {
        what,
        load,
        read,
        write: None,
        calibrated,
    }
}

#[rustfmt::skip]
const DRIVES: &[Drive] = &[
    Drive { name: "samsung-980-pro", cells: &[
        read("4 KiB, depth 1, SPDK", reads(1, 4), figures(16_583.0, 56.1, 69.1, 73.2), true),
        read("4 KiB, depth 8, SPDK", reads(8, 4), figures(125_351.0, 57.6, 111.1, 142.3), false),
        read("4 KiB, depth 32, SPDK", reads(32, 4), figures(400_496.0, 70.1, 191.5, 272.4), false),
        read("4 KiB, depth 128, SPDK", reads(128, 4), figures(735_639.0, 134.1, 602.1, 872.4), true),
        read("4 KiB, depth 256, SPDK", reads(256, 4), figures(783_333.0, 268.3, 1011.7, 1499.1), true),
        read("4 KiB, depth 512, SPDK", reads(512, 4), figures(790_254.0, 593.9, 1351.7, 1843.2), true),
        read("8 KiB, depth 1", through_kernel(reads(1, 8), [3_910, 0]), figures(8_676.0, 110.1, 136.2, 148.5), true),
        read("16 KiB, depth 1", through_kernel(reads(1, 16), [4_580, 0]), figures(7_835.0, 119.3, 146.4, 158.7), false),
        read("64 KiB, depth 1", through_kernel(reads(1, 64), [5_950, 0]), figures(6_468.0, 140.3, 166.9, 177.2), false),
        read("8 KiB, depth 16", through_kernel(reads(16, 8), [2_170, 0]), figures(100_280.0, 138.2, 370.7, 456.7), false),
        read("16 KiB, depth 16", through_kernel(reads(16, 16), [2_350, 0]), figures(83_250.0, 169.0, 448.5, 577.5), true),
        read("16 KiB, depth 128", through_kernel(reads(128, 16), [2_450, 0]), figures(134_971.0, 905.2, 1531.9, 1876.0), false),
        read("64 KiB, depth 128", through_kernel(reads(128, 64), [3_990, 0]), figures(32_350.0, 4079.6, 4685.8, 5537.8), true),
        Cell {
            what: "4 KiB, reader depth 1 beside writer depth 128", load: through_kernel(beside(1, 128), [11_700, 2_600]), calibrated: true,
            read: figures(1_890.0, 131.0, 2808.0, 3405.0), write: figures(127_000.0, 481.0, 12_439.0, 14_500.0),
        },
        Cell {
            what: "4 KiB, reader depth 128 beside writer depth 128", load: through_kernel(beside(128, 128), [2_640, 2_820]), calibrated: true,
            read: figures(137_000.0, 548.0, 3988.0, 7111.0), write: figures(114_000.0, 488.0, 14_772.0, 17_433.0),
        },
        Cell {
            what: "4 KiB, reader depth 128 beside writer depth 1", load: through_kernel(beside(128, 1), [2_620, 2_600]), calibrated: false,
            read: figures(221_821.0, 420.0, 2605.0, 3785.0), write: figures(69_938.0, 0.0, 0.0, 0.0),
        },
    ] },
    Drive { name: "samsung-970-pro", cells: &[
        read("4 KiB, depth 256", reads(256, 4), figures(376_844.0, 0.0, 0.0, 0.0), false),
        Cell {
            what: "4 KiB, writer depth 256", load: Load { writes: 256, ..reads(0, 4) }, calibrated: true,
            read: None, write: figures(252_536.0, 0.0, 0.0, 0.0),
        },
        read("stream of 1 MiB, depth 8", stream(8, 0, 1024), figures(3_307.8, 0.0, 0.0, 0.0), true),
        Cell {
            what: "stream of 1 MiB, depth 8", load: stream(0, 8, 1024), calibrated: false,
            read: None, write: figures(2_107.0, 0.0, 0.0, 0.0),
        },
    ] },
    Drive { name: "micron-7300-pro", cells: &[
        Cell {
            what: "4 KiB, reader depth 1 beside writer depth 128", load: through_kernel_in(beside(1, 128), KYBER_NS), calibrated: true,
            read: figures(0.0, 104.0, 2376.0, 3097.0), write: None,
        },
    ] },
    Drive { name: "samsung-860-evo", cells: &[
        read("4 KiB, depth 31", through_kernel_in(reads(31, 4), NONE_NS), figures(98_549.0, 0.0, 0.0, 0.0), true),
        read("stream of 4 KiB, depth 31", stream(31, 0, 4), figures(94_009.0, 0.0, 0.0, 0.0), false),
        read("stream of 1 MiB, depth 8", stream(8, 0, 1024), figures(545.5, 0.0, 0.0, 0.0), true),
        read("4 KiB, depth 1 (data sheet)", through_kernel_in(reads(1, 4), NONE_NS), figures(10_000.0, 0.0, 0.0, 0.0), true),
        Cell {
            what: "4 KiB, depth 31, into the SLC cache", load: Load { writes: 31, ..reads(0, 4) }, calibrated: true,
            read: None, write: figures(87_471.0, 0.0, 0.0, 0.0),
        },
        Cell {
            what: "stream of 1 MiB, depth 8, into the SLC cache (data sheet)", load: stream(0, 8, 1024), calibrated: false,
            read: None, write: figures(495.9, 0.0, 0.0, 0.0),
        },
    ] },
    Drive { name: "samsung-850-evo", cells: &[
        read("4 KiB, depth 1", through_kernel_in(reads(1, 4), NONE_NS), figures(10_652.0, 91.7, 119.3, 144.4), true),
        read("4 KiB, depth 31", through_kernel_in(reads(31, 4), NONE_NS), figures(98_400.0, 0.0, 0.0, 0.0), false),
        read("stream of 128 KiB, depth 31", stream(31, 0, 128), figures(4_219.0, 0.0, 0.0, 0.0), false),
        Cell {
            what: "stream of 128 KiB, depth 31, into the SLC cache", load: stream(0, 31, 128), calibrated: false,
            read: None, write: figures(3_983.0, 0.0, 0.0, 0.0),
        },
    ] },
];

/// A figure with its ratio to the published one.
fn beside_published(ours: f64, published: f64) -> String {
    if published == 0.0 {
        return format!("{ours:.0}");
    }
    format!("{ours:.0} : {published:.0} = {:.2}", ours / published)
}

fn row(text: &mut String, cell: &Cell, way: &str, ours: &Times, published: &Figures) {
    let how = if cell.calibrated {
        "calibrated"
    } else {
        "predicted"
    };
    let _ = writeln!(
        text,
        "| {way}, {} | {} | {} | {} | {} | {how} |",
        cell.what,
        beside_published(ours.per_s(), published.per_s),
        beside_published(ours.us(0.5), published.p50),
        beside_published(ours.us(0.99), published.p99),
        beside_published(ours.us(0.999), published.p999),
    );
}

fn tables() -> String {
    let mut text = String::new();
    for drive in DRIVES {
        let _ = write!(
            text,
            "\n`{}`, ours : published = ratio:\n\n| load | per second | p50, µs | p99, µs | \
             p99.9, µs | |\n| --- | ---: | ---: | ---: | ---: | --- |\n",
            drive.name
        );
        for cell in drive.cells {
            let [reads, writes] = run(drive.name, cell.load, 1.0);
            if let Some(published) = &cell.read {
                row(&mut text, cell, "read", &reads, published);
            }
            if let Some(published) = &cell.write {
                row(&mut text, cell, "write", &writes, published);
            }
        }
    }
    text + "\n"
}

/// Writes the tables anew if asked to; otherwise there is nothing to do, because
/// they take seconds.
#[test]
fn the_tables_can_be_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices.md");
    let docs = fs::read_to_string(&path).expect("docs/devices.md");
    let (before, rest) = docs.split_once(BEGIN).expect("the mark before the tables");
    let (_, after) = rest.split_once(END).expect("the mark behind the tables");
    if std::env::var_os("UPDATE_TABLES").is_some() {
        let text = format!("{before}{BEGIN}{}{END}{after}", tables());
        fs::write(&path, text).expect("written");
    }
}

/// Ours over what is published.
fn ratios(ours: &Times, published: &Figures) -> [f64; 4] {
    [
        ours.per_s() / published.per_s,
        ours.us(0.5) / published.p50,
        ours.us(0.99) / published.p99,
        ours.us(0.999) / published.p999,
    ]
}

/// Within a factor of so much, either way.
fn within(what: &str, ratio: f64, factor: f64) {
    assert!(
        ratio < factor && ratio > 1.0 / factor,
        "{what}: {ratio:.2} times what is published"
    );
}

fn cell(drive: &str, what: &str) -> &'static Cell {
    let drive = DRIVES.iter().find(|d| d.name == drive).expect("a drive");
    let cell = drive.cells.iter().find(|c| c.what == what);
    cell.expect("a cell")
}

#[test]
fn pure_reads_are_as_published() {
    for what in [
        "4 KiB, depth 1, SPDK",
        "4 KiB, depth 32, SPDK",
        "16 KiB, depth 16",
    ] {
        let cell = cell("samsung-980-pro", what);
        let published = cell.read.expect("published");
        let [reads, _] = run("samsung-980-pro", cell.load, 0.05);
        let [rate, p50, ..] = ratios(&reads, &published);
        within(what, rate, 1.15);
        within(what, p50, 1.15);
    }
}

#[test]
fn reads_wait_behind_writes_as_published() {
    for what in [
        "4 KiB, reader depth 1 beside writer depth 128",
        "4 KiB, reader depth 128 beside writer depth 128",
    ] {
        let cell = cell("samsung-980-pro", what);
        let both = run("samsung-980-pro", cell.load, 0.4);
        for (ours, published) in both.iter().zip([cell.read, cell.write]) {
            let [rate, _, p99, p999] = ratios(ours, &published.expect("published"));
            within(what, rate, 1.5);
            within(what, p99, 1.5);
            within(what, p999, 2.0);
        }
    }
}

/// A drive whose dies are busy each in its own time has them at 0.55 and 0.58.
#[test]
fn half_of_many_reads_wait_as_published() {
    for what in [
        "4 KiB, reader depth 128 beside writer depth 128",
        "4 KiB, reader depth 128 beside writer depth 1",
    ] {
        let cell = cell("samsung-980-pro", what);
        let [reads, _] = run("samsung-980-pro", cell.load, 0.4);
        let [rate, p50, ..] = ratios(&reads, &cell.read.expect("published"));
        within(what, rate, 1.25);
        within(what, p50, 1.35);
    }
}
