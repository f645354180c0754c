// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices allocate nothing per command once they have reached their steady
//! state: twice as many commands cost no more allocations.

use allocation_counter::measure;
use blklab_device::{CmdId, Command, DeviceCx, Done, build, parse_spec};
use blklab_types::{BioFlags, Op, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Allocations while `commands` reads, writes, flushes and discards run, 32 at a
/// time, from making the device to the end.
fn allocations(spec: &str, commands: u64) -> u64 {
    measure(|| run(spec, commands)).count_total
}

fn run(spec: &str, commands: u64) {
    const DEPTH: u32 = 32;
    let (info, params) = parse_spec(spec).expect("a valid device");
    let no_files = |_: &str| Err(String::new());
    let mut device = build(info.name, &params, DEPTH, &no_files).expect("a valid device");
    let mut wakes: Vec<(Time, u64)> = Vec::with_capacity(1024);
    let mut done: Vec<Done> = Vec::with_capacity(1024);
    let mut events = BinaryHeap::with_capacity(4096);
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let (mut now, mut sent, mut finished, mut pushed) = (Time::ZERO, 0, 0, 0u64);
    while finished < commands {
        let mut cx = DeviceCx {
            now,
            wakes: &mut wakes,
            done: &mut done,
        };
        while sent < commands
            && let Some(id) = free.pop()
        {
            device.submit(&mut cx, &command(CmdId(id), sent));
            sent += 1;
        }
        for (time, token) in cx.wakes.drain(..) {
            events.push(Reverse((time, pushed, token)));
            pushed += 1;
        }
        if let Some(Reverse((time, _, token))) = events.pop() {
            now = time;
            cx.now = now;
            device.wake(&mut cx, token);
        }
        for d in cx.done.drain(..) {
            finished += 1;
            free.push(d.id.0);
        }
    }
}

fn command(id: CmdId, i: u64) -> Command {
    let (op, nr_sectors) = match i % 64 {
        0 => (Op::Flush, 0),
        1 => (Op::Discard, 64),
        n if n % 3 == 0 => (Op::Write, 8 << (n % 5)),
        n => (Op::Read, 8 << (n % 4)),
    };
    let flags = match i % 30 {
        0 if op == Op::Write => BioFlags::FUA,
        _ => BioFlags::NONE,
    };
    let sector = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42;
    Command {
        id,
        op,
        flags,
        sector,
        nr_sectors,
    }
}

#[test]
fn laws_and_flash_drives_allocate_nothing_per_command() {
    for spec in [
        "serial",
        "null_blk,mbps=1000",
        "scsi_debug",
        "simdisk,mode=1,order=1",
        "nvme-datacenter",
        "nvme-datacenter,ways=1,dies=1,power_loss_protection=off",
        "nvme-consumer",
        "nvme-consumer,state=steady,suspend_program=on,suspend_erase=on",
        "sata-ssd",
        "gp2",
        "iocost",
        "sd-card-a1",
        "samsung-980-pro",
        "samsung-980-pro,slc_bytes=1MiB,slc_when_full=fold",
        "samsung-980-pro,ways=1,gc_burst_bytes=1MiB,read_slots=8",
    ] {
        let (n, twice) = (allocations(spec, 20_000), allocations(spec, 40_000));
        assert!(
            twice <= n + 4,
            "{spec}: {n} allocations for 20000 commands, {twice} for 40000"
        );
    }
}
