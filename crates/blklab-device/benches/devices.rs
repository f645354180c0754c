// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of a command: `cargo bench -p blklab-device`.
//!
//! Each iteration runs 10,000 commands through a device at a constant depth;
//! items per second are commands per second.

use blklab_device::{CmdId, Command, Device, DeviceCx, Done, build, parse_spec};
use blklab_types::{BioFlags, Op, Time};
use divan::Bencher;
use divan::counter::ItemsCount;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const COMMANDS: u64 = 10_000;

fn main() {
    divan::main();
}

/// Keeps `depth` commands in flight; `next` makes them from their number.
fn run(device: &mut dyn Device, depth: u32, next: impl Fn(u64) -> (Op, u64, u32)) -> Time {
    let (mut wakes, mut done): (Vec<(Time, u64)>, Vec<Done>) = (Vec::new(), Vec::new());
    let mut events = BinaryHeap::new();
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut now, mut submitted, mut finished, mut pushed) = (Time::ZERO, 0, 0, 0u64);
    while finished < COMMANDS {
        let mut cx = DeviceCx {
            now,
            wakes: &mut wakes,
            done: &mut done,
        };
        while submitted < COMMANDS
            && let Some(id) = free.pop()
        {
            let (op, sector, nr_sectors) = next(submitted);
            let cmd = Command {
                id: CmdId(id),
                op,
                flags: BioFlags::NONE,
                sector,
                nr_sectors,
            };
            device.submit(&mut cx, &cmd);
            submitted += 1;
        }
        for (time, token) in cx.wakes.drain(..) {
            events.push(Reverse((time, pushed, token)));
            pushed += 1;
        }
        let Some(Reverse((time, _, token))) = events.pop() else {
            break;
        };
        now = time;
        cx.now = now;
        device.wake(&mut cx, token);
        for d in cx.done.drain(..) {
            finished += 1;
            free.push(d.id.0);
        }
    }
    now
}

fn bench(
    bencher: Bencher<'_, '_>,
    spec: &str,
    depth: u32,
    next: impl Fn(u64) -> (Op, u64, u32) + Sync,
) {
    let device = || {
        let (info, params) = parse_spec(spec).expect("a valid device");
        build(info.name, &params, depth, &|_| Err(String::new())).expect("a valid device")
    };
    bencher
        .counter(ItemsCount::new(COMMANDS))
        .with_inputs(device)
        .bench_local_refs(|device| run(device.as_mut(), depth, &next));
}

/// Scattered addresses on a 500 GB disk, multiples of 8.
fn scattered(i: u64) -> u64 {
    let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34;
    hash % (976_773_168 / 8) * 8
}

#[divan::bench]
fn serial(bencher: Bencher<'_, '_>) {
    bench(bencher, "serial", 31, |i| (Op::Read, i * 8, 8));
}

#[divan::bench]
fn parallel(bencher: Bencher<'_, '_>) {
    bench(bencher, "parallel", 31, |i| (Op::Read, i * 8, 8));
}

#[divan::bench]
fn null_blk(bencher: Bencher<'_, '_>) {
    bench(bencher, "null_blk", 31, |i| (Op::Read, i * 8, 8));
}

#[divan::bench]
fn scsi_debug(bencher: Bencher<'_, '_>) {
    bench(bencher, "scsi_debug", 31, |i| (Op::Read, i * 8, 8));
}

#[divan::bench]
fn simdisk_random_reads(bencher: Bencher<'_, '_>) {
    bench(bencher, "simdisk,mode=1,order=1", 31, |i| {
        (Op::Read, scattered(i) % 8_388_608, 8)
    });
}

#[divan::bench]
fn disk_streams(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-7200-2008", 31, |i| {
        (Op::Read, i % 4 * 200_000_000 + i / 4 * 256, 256)
    });
}

#[divan::bench]
fn disk_write_stream(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-7200-2008", 31, |i| (Op::Write, i * 256, 256));
}

#[divan::bench]
fn disk_random_reads(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-7200-2008", 31, |i| {
        (Op::Read, scattered(i), 8)
    });
}

#[divan::bench]
fn disk_random_reads_depth_256(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-7200-2008", 256, |i| {
        (Op::Read, scattered(i), 8)
    });
}

#[divan::bench]
fn disk_random_writes(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-7200-2008,max_dirty_ranges=1024", 31, |i| {
        (Op::Write, scattered(i), 8)
    });
}

#[divan::bench]
fn ssd_random_reads(bencher: Bencher<'_, '_>) {
    bench(bencher, "ssd-x25m", 31, |i| {
        (Op::Read, scattered(i) % 156_000_000, 8)
    });
}

#[divan::bench]
fn array_random_writes(bencher: Bencher<'_, '_>) {
    bench(bencher, "cciss", 31, |i| {
        (Op::Write, scattered(i) % 143_000_000 / 8 * 8, 8)
    });
}

#[divan::bench(args = [1, 32, 1023])]
fn nvme_random_reads(bencher: Bencher<'_, '_>, depth: u32) {
    bench(bencher, "nvme-datacenter", depth, |i| {
        (Op::Read, scattered(i), 8)
    });
}

#[divan::bench]
fn nvme_random_writes(bencher: Bencher<'_, '_>) {
    bench(bencher, "nvme-datacenter,buffer_bytes=1MiB", 32, |i| {
        (Op::Write, scattered(i), 8)
    });
}

#[divan::bench]
fn nvme_random_mix(bencher: Bencher<'_, '_>) {
    bench(bencher, "nvme-datacenter,buffer_bytes=1MiB", 32, |i| {
        let op = if i % 4 == 0 { Op::Write } else { Op::Read };
        (op, scattered(i), 8)
    });
}

#[divan::bench]
fn nvme_read_stream(bencher: Bencher<'_, '_>) {
    bench(bencher, "nvme-datacenter", 32, |i| (Op::Read, i * 256, 256));
}

#[divan::bench]
fn sata_ssd_random_reads(bencher: Bencher<'_, '_>) {
    bench(bencher, "sata-ssd", 31, |i| (Op::Read, scattered(i), 8));
}

#[divan::bench]
fn tlc_random_mix(bencher: Bencher<'_, '_>) {
    bench(bencher, "samsung-980-pro", 256, |i| {
        let op = if i % 2 == 0 { Op::Write } else { Op::Read };
        (op, scattered(i), 8)
    });
}

#[divan::bench]
fn tlc_random_reads(bencher: Bencher<'_, '_>) {
    bench(bencher, "samsung-980-pro", 256, |i| {
        (Op::Read, scattered(i), 8)
    });
}
