// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `blklab fit-device` takes beside traces: results of fio, tables of measurements, the
//! six numbers of io.cost. Refused in one line, or loads that a drive can be given.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::{Seed, samples};
use blklab_fit::{Cell, Drive, Measured, device_file, is_iocost, judge};
use blklab_fit::{parse_facts, parse_fio, parse_iocost};
use blklab_types::Error;

pub(crate) const TARGET: Target = Target {
    name: "fit_device",
    feed,
    samples: measurements,
};

/// Cells that are run, and commands that they have under way at most: more takes long.
const CELLS_MAX: usize = 1;
const DEPTH_MAX: u64 = 256;

fn measurements() -> Vec<Seed> {
    let mut all = samples(&["testdata/fit"], &[".csv", ".json"]);
    all.extend(samples(&["testdata/fio-json"], &[".json"]));
    all
}

fn feed(data: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(data).ok()?;
    let loads = [
        parse_facts("fuzz", text, None),
        parse_fio("fuzz", text, Some(0)),
    ];
    let loads = loads.map(|read| told(read).map(|measured| loads_of(&measured)));
    let iocost = is_iocost(text).then(|| parse_iocost("fuzz", text));
    let iocost = iocost.and_then(told).map(|lines| {
        device_file("iocost", &[], &lines);
        fingerprint(&lines)
    });
    loads[0].or(loads[1]).or(iocost)
}

fn told<T>(read: Result<T, Error>) -> Option<T> {
    read.inspect_err(|e| one_line(e)).ok()
}

fn loads_of(measured: &Measured) -> u64 {
    for why in &measured.left_out {
        one_line(why);
    }
    let depth = |c: &Cell| -> u64 { c.streams.iter().map(|s| u64::from(s.depth)).sum() };
    let small = measured.cells.iter().filter(|c| depth(c) <= DEPTH_MAX);
    let cells: Vec<Cell> = small.take(CELLS_MAX).cloned().collect();
    let drive = Drive::parse("samsung-980-pro").expect("a preset");
    for judged in judge(&cells, &drive) {
        one_line(&judged.name);
    }
    fingerprint(measured)
}
