// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits to what a simulated drive does: its parameters are known.

use crate::cell::{Cell, HostTimes, Seen, State, Stream};
use crate::drive::Drive;
use crate::fit::{Fit, FitOptions, fit};
use crate::load::{self, Length};
use blklab_types::Op;

/// A draw that no fit has.
const DRAW: u64 = 1_000;

fn stream(depth: u32, read_pct: u32, bytes: u32) -> Stream {
    Stream {
        processes: 1,
        depth,
        read_pct,
        bytes: [bytes; 2],
        sequential: false,
        host: HostTimes::default(),
    }
}

/// What comes of a load on a drive.
fn measured(name: &str, state: State, stream: Stream, drive: &Drive) -> Cell {
    let mut cell = Cell {
        name: name.to_owned(),
        state,
        streams: vec![stream],
        seen: Vec::new(),
    };
    let device = drive.build(Some(&cell)).expect("is a drive");
    let length = Length {
        buffer_slots: if cell.has(Op::Write) { 2048 } else { 0 },
        writes_per_s: 1e9,
        seconds: 0.25,
        commands_max: 30_000,
    };
    let mut times = load::run(device, drive.queue_depth(), &cell.streams, length, DRAW);
    for op in [Op::Read, Op::Write] {
        if cell.has(op) {
            let t = &mut times[0][usize::from(op == Op::Write)];
            let parts = [0.1, 0.5, 0.9, 0.95, 0.99];
            cell.seen.push(Seen {
                stream: 0,
                op,
                per_s: t.per_s,
                quantiles: parts.iter().map(|p| (*p, t.us(*p))).collect(),
            });
        }
    }
    cell
}

fn fitted(truth: &str) -> Fit {
    let truth = Drive::parse(truth).expect("a drive");
    let mut cells = Vec::new();
    for depth in [1, 16, 256] {
        let load = stream(depth, 100, 4096);
        cells.push(measured(
            &format!("read-{depth}"),
            State::Used,
            load,
            &truth,
        ));
    }
    for (name, state, bytes) in [
        ("fresh", State::Fresh, 131_072),
        ("used", State::Used, 4096),
    ] {
        cells.push(measured(name, state, stream(32, 0, bytes), &truth));
    }
    cells.push(measured("both", State::Used, stream(32, 70, 4096), &truth));
    let options = FitOptions {
        like: Some(Drive::parse("nvme-datacenter,buffer_bytes=8MiB").expect("a drive")),
        hold_out: 0,
        threads: 2,
    };
    fit(&cells, &options).expect("there are cells")
}

fn off(fit: &Fit, name: &str, truth: f64) -> f64 {
    let found: f64 = fit.drive.get(name).parse().expect("a number");
    (found / truth - 1.0).abs()
}

#[test]
fn reads_and_writes_tell_their_parameters() {
    let fit = fitted(
        "nvme-datacenter,buffer_bytes=8MiB,read_us=75,command_us=2.6,program_us=1200,spare_pct=12",
    );
    for (name, truth) in [("command_us", 2.6), ("program_us", 1200.0)] {
        assert!(off(&fit, name, truth) < 0.05, "{name}: {:?}", fit.fitted);
    }
    // What is said to be told is.
    let truth = [
        ("read_us", 75.0),
        ("read_overhead_us", 14.0),
        ("spare_pct", 12.0),
    ];
    for (name, truth) in truth {
        let said = fit.fitted.iter().find(|f| f.name == name);
        let said = said.unwrap_or_else(|| panic!("{name} is looked for"));
        assert!(!said.is_told() || off(&fit, name, truth) < 0.05, "{said:?}");
    }
    // An erase costs one part in a hundred of the time of these loads.
    let erase = fit.fitted.iter().find(|f| f.name == "erase_us");
    assert!(!erase.expect("is looked for").is_told());
}
