// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold for every device, under random loads: every command finishes
//! exactly once and not before its hand-over ([`Host`] asserts both), a device
//! with commands in flight goes on, and the same load gives the same times.

use crate::host::{Finished, Host};
use crate::info::DeviceInfo;
use crate::registry::ALL;
use blklab_types::{BioFlags, Op, SplitMix64, Time};

/// Devices beside the presets: what a preset leaves switched off.
const VARIANTS: &[(&str, &str)] = &[
    ("null_blk", ",irqmode=0"),
    ("null_blk", ",mbps=400"),
    ("simdisk", ",mode=1,order=1"),
    ("simdisk-2628", ",write_cache_sectors=4096"),
    (
        "nvme-consumer",
        ",state=steady,suspend_program=on,buffer_bytes=64KiB",
    ),
    (
        "samsung-980-pro",
        ",channels=1,ways=3,buffer_bytes=576KiB,gc_burst_bytes=96KiB,gc_dies=1,read_slots=2",
    ),
    (
        "samsung-980-pro",
        ",state=full,gc_burst_bytes=0,gc_dies=2,gc_suspend=on,reads_first=on,suspend_program=on",
    ),
    (
        "samsung-980-pro",
        ",ways=1,slc_bytes=4MiB,slc_when_full=fold,fold_idle_ms=1",
    ),
    (
        "nvme-datacenter",
        ",channels=1,ways=1,read_burst=1,power_loss_protection=off",
    ),
];

/// Most sectors of a command here.
const MOST: u64 = 512;

/// A random load: bursts, pauses, all kinds of commands.
fn load(info: &DeviceInfo, spec: &str, seed: u64) -> Vec<Finished> {
    let depth = info.queue_depth.min(40);
    let mut host = Host::build(spec, depth);
    let mut random = SplitMix64(seed);
    let span = host.capacity().unwrap_or(1 << 24).min(1 << 27) - MOST;
    let (mut all, mut last) = (Vec::new(), 0);
    for _ in 0..600 {
        while host.nr_in_flight() == depth as usize {
            all.extend(host.step().expect("a full device goes on"));
        }
        if random.below(4) == 0 {
            let pause = random.below(3_000_000);
            let until = Time(host.now.ns() + pause);
            all.extend(host.run_until(until));
        }
        let (op, n) = match random.below(40) {
            0 => (Op::Flush, 0),
            1 => (Op::Discard, MOST),
            2..20 => (Op::Write, 1 + random.below(MOST)),
            _ => (Op::Read, 1 + random.below(MOST)),
        };
        let flags = match random.below(16) {
            0 if op == Op::Write => BioFlags::FUA,
            _ => BioFlags::NONE,
        };
        let sector = match random.below(3) {
            0 => last,
            _ => random.below(span),
        };
        last = (sector + n) % span;
        all.extend(host.submit(op, flags, if n == 0 { 0 } else { sector }, n as u32));
    }
    all.extend(host.drain());
    assert!(all.iter().all(|f| f.error == 0), "{spec}");
    all
}

#[test]
fn every_device_finishes_every_command_once_and_repeats_itself() {
    let plain = ALL.iter().filter(|info| !info.needs_files());
    let presets = plain.map(|info| (info, info.name.to_owned()));
    let variants = VARIANTS.iter().map(|(name, given)| {
        let info = crate::find(name).expect("a device");
        (info, format!("{name}{given}"))
    });
    for (info, spec) in presets.chain(variants) {
        for seed in 0..3 {
            let first = load(info, &spec, seed);
            assert_eq!(first.len(), 600, "{spec}");
            assert!(first == load(info, &spec, seed), "{spec}: two runs differ");
        }
    }
}
