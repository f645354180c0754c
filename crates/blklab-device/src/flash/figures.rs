// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the presets do beside what their data sheets say; the table in
//! `docs/devices.md` is made of what `cargo test -p blklab-device figures --
//! --nocapture` prints.

use crate::host::Host;
use blklab_types::{BioFlags, Op, SECTOR_BYTES};

/// Addresses of 4 KiB all over a drive, from their number.
fn scattered(i: u64, capacity_sectors: u64) -> u64 {
    let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16;
    hash % (capacity_sectors / 8) * 8
}

/// A load of commands of one size with a constant number in flight.
#[derive(Clone, Copy)]
struct Load {
    op: Op,
    sectors: u32,
    random: bool,
    depth: usize,
}

/// Commands per second of `count` commands, after a third as many.
fn rate(spec: &str, load: Load, count: u64) -> f64 {
    let mut host = Host::build(spec, 1023);
    let capacity = host.capacity().expect("a drive has an end");
    let (mut sent, mut done, mut in_flight) = (0, 0, 0);
    let mut begin = host.now;
    while done < count + count / 3 {
        while in_flight < load.depth {
            let sector = if load.random {
                scattered(sent, capacity)
            } else {
                sent * u64::from(load.sectors) % (capacity / 2)
            };
            host.submit(load.op, BioFlags::NONE, sector, load.sectors);
            (sent, in_flight) = (sent + 1, in_flight + 1);
        }
        for _ in host.step().expect("goes on") {
            (done, in_flight) = (done + 1, in_flight - 1);
            if done == count / 3 {
                begin = host.now;
            }
        }
    }
    count as f64 * 1e9 / (host.now - begin).ns() as f64
}

const KIB_4: u32 = 8;
const KIB_128: u32 = 256;

/// The loads of a data sheet, with the unit of the figure.
const LOADS: [(&str, Load, u64); 6] = [
    (
        "random read, depth 1",
        load(Op::Read, KIB_4, true, 1),
        3_000,
    ),
    (
        "random read, depth 32",
        load(Op::Read, KIB_4, true, 32),
        60_000,
    ),
    (
        "random read, depth 256",
        load(Op::Read, KIB_4, true, 256),
        200_000,
    ),
    (
        "random write, depth 256",
        load(Op::Write, KIB_4, true, 256),
        200_000,
    ),
    (
        "sequential read",
        load(Op::Read, KIB_128, false, 32),
        10_000,
    ),
    (
        "sequential write",
        load(Op::Write, KIB_128, false, 32),
        10_000,
    ),
];

const fn load(op: Op, sectors: u32, random: bool, depth: usize) -> Load {
    Load {
        op,
        sectors,
        random,
        depth,
    }
}

/// Compares with a data sheet; `None` where it says nothing.
fn check(name: &str, sheet: [Option<f64>; 6], tolerance: f64) {
    for ((what, mut load, count), expected) in LOADS.into_iter().zip(sheet) {
        let most = crate::find(name).expect("a preset").queue_depth as usize;
        load.depth = load.depth.min(most);
        let per_s = rate(name, load, count);
        let ours = if load.random {
            per_s
        } else {
            per_s * f64::from(load.sectors) * SECTOR_BYTES as f64 / 1e6
        };
        println!("{name}: {what}: {ours:.0}, data sheet {expected:?}");
        let Some(expected) = expected else { continue };
        let apart = (ours / expected - 1.0).abs();
        assert!(apart < tolerance, "{name}: {what}: {ours} for {expected}");
    }
}

#[test]
fn nvme_datacenter_does_what_its_data_sheet_says() {
    // Depth 1 from the latency, 85 us.
    let sheet = [11_765.0, -1.0, 490_000.0, 38_000.0, 3200.0, 1050.0];
    check(
        "nvme-datacenter",
        sheet.map(|v| (v > 0.0).then_some(v)),
        0.15,
    );
}

#[test]
fn nvme_consumer_does_what_its_data_sheet_says() {
    let sheet = [15_000.0, -1.0, 370_000.0, 500_000.0, 3500.0, 2300.0];
    check("nvme-consumer", sheet.map(|v| (v > 0.0).then_some(v)), 0.15);
}

#[test]
fn sata_ssd_does_what_its_data_sheet_says() {
    // Depth 1 from the latency, 110 us.
    let sheet = [9_091.0, 72_000.0, -1.0, 33_000.0, 500.0, 490.0];
    check("sata-ssd", sheet.map(|v| (v > 0.0).then_some(v)), 0.15);
}
