// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput and latency against what simple formulas say.

use super::{C, SplitMix64, closed_loop, near, rate_mb_s};
use crate::host::Host;
use blklab_types::{Op, Time};

/// Random 4 KiB reads over the first `span` sectors (or all) at a depth.
fn random_iops(spec: &str, depth: usize, count: usize, span: Option<u64>) -> f64 {
    let mut host = Host::build(spec, depth as u32);
    let span = span.or(host.capacity()).expect("a disk has an end") / 8;
    let mut random = SplitMix64(9);
    closed_loop(&mut host, depth, count, || {
        (Op::Read, random.below(span) * 8, 8)
    });
    count as f64 * 1e9 / host.now.ns() as f64
}

/// Reads or writes `count` pieces of `n` sectors from the first sector on, one
/// after another; MB/s.
fn stream(host: &mut Host, op: Op, n: u32, count: u64) -> f64 {
    let begin = host.now;
    for i in 0..count {
        host.one(op, i * u64::from(n), n);
    }
    rate_mb_s(begin, host.now, count * u64::from(n) * 512)
}

#[test]
fn one_sector_of_1709_takes_4876_ns_and_eight_39_us() {
    let mut host = Host::build(C, 1);
    let (one, eight) = (host.one(Op::Read, 1000, 1), host.one(Op::Read, 500_000, 8));
    // What is left of the service time after positioning, which ends at the
    // sector's angle: track 0 for sector 1000, and 500,000 = 292 * 1709 + 972.
    let revolution_ns = 8_333_333;
    let angle_ns = 1000 * revolution_ns / 1709;
    assert_eq!((one.ended.ns() - angle_ns) % revolution_ns, 4_876);
    let track = 500_000 / 1709;
    let skew_ns = 833_333;
    let angle_ns = (track * skew_ns + 500_000 % 1709 * revolution_ns / 1709) % revolution_ns;
    let transfer_ns = (eight.ended.ns() + revolution_ns - angle_ns) % revolution_ns;
    assert!((39_008..=39_010).contains(&transfer_ns), "{transfer_ns}");
}

#[test]
fn random_reads_over_the_whole_disk_take_12_85_ms() {
    let ms = 1e3 / random_iops(C, 1, 4000, None);
    near("mean service time", ms, 12.85, 0.01);
}

#[test]
fn random_reads_of_other_classes() {
    near(
        "15,000 rpm",
        random_iops("sas-15k", 1, 2000, None),
        177.0,
        0.04,
    );
    near(
        "laptop",
        random_iops("laptop-5400", 1, 2000, None),
        57.0,
        0.08,
    );
}

#[test]
fn random_reads_within_30_mib_take_5_3_ms() {
    near(
        "reads per second",
        random_iops(C, 1, 1000, Some(61_440)),
        188.0,
        0.08,
    );
}

#[test]
fn reordering_gains_what_it_should() {
    let alone = random_iops(C, 1, 4000, None);
    for (depth, gain) in [(4, 1.25), (8, 1.5), (16, 1.75), (31, 2.15)] {
        let got = random_iops(C, depth, 4000, None) / alone;
        near(&format!("gain of depth {depth}"), got, gain, 0.17);
    }
    // In order of arrival only the overhead is saved.
    let fcfs = random_iops(&format!("{C},selection=fcfs"), 31, 2000, None);
    near("fcfs", fcfs / alone, 1.0 + 0.15 / 12.7, 0.02);
    // Without ageing there is more to gain, for those that do not wait.
    assert!(random_iops(&format!("{C},selection=sptf"), 31, 4000, None) / alone > 2.4);
}

#[test]
fn streams_run_at_the_media_rate_less_the_skew() {
    let media = |spt: f64, rpm: f64, skew: f64| spt * 512.0 * rpm / 60.0 / (1.0 + skew) / 1e6;
    for (spec, rate) in [
        (C, media(1709.0, 7200.0, 0.10)),
        ("laptop-5400", media(1628.0, 5400.0, 0.10)),
        ("sas-15k", media(742.0, 15_000.0, 0.10)),
        ("atlas-10k-v", media(1170.0, 10_001.0, 0.24)),
    ] {
        let mut host = Host::build(spec, 1);
        near(spec, stream(&mut host, Op::Read, 256, 2000), rate, 0.005);
        let (mut host, mut next) = (Host::build(spec, 31), 0);
        closed_loop(&mut host, 16, 2000, || {
            next += 256;
            (Op::Read, next - 256, 256)
        });
        let bytes = 2000 * 256 * 512;
        near(spec, rate_mb_s(Time::ZERO, host.now, bytes), rate, 0.005);
    }
    assert!((media(1170.0, 10_000.0, 0.24) - 80.5).abs() < 0.05);
}

#[test]
fn a_write_stream_through_the_cache_runs_at_the_media_rate() {
    let mut host = Host::build(C, 1);
    let rate = stream(&mut host, Op::Write, 1024, 2000);
    near("write stream", rate, 105.0 / 1.1, 0.02);
}

/// One revolution and the length of the write itself.
#[test]
fn small_synchronous_writes_go_one_per_revolution() {
    for (spec, rpm, spt) in [("sas-15k", 15_000.0, 742.0), ("sas-10k", 10_000.0, 879.0)] {
        let mut host = Host::build(spec, 1);
        let bytes_per_s = stream(&mut host, Op::Write, 8, 500) * 1e6;
        near(
            spec,
            bytes_per_s / 4096.0,
            rpm / 60.0 / (1.0 + 8.0 / spt),
            0.002,
        );
    }
    let mut host = Host::build(C, 1);
    for i in 0..500 {
        host.one(Op::Write, i * 8, 8);
        host.one(Op::Flush, 0, 0);
    }
    near(
        "write and flush",
        500e9 / host.now.ns() as f64,
        120.0 / (1.0 + 8.0 / 1709.0),
        0.002,
    );
}

#[test]
fn alternating_streams_pay_for_positioning_each_time() {
    let (mut host, far) = (Host::build(C, 1), 100_000_000);
    for i in 0..500u64 {
        host.one(Op::Read, i * 1024, 1024);
        host.one(Op::Read, far + i * 1024, 1024);
    }
    // 2L / (2 * (seek + half a revolution + overhead) + 2L / r)
    let (bytes, positioning_s) = (1024.0 * 512.0, 0.00377 + 0.00417 + 0.00015);
    let rate = bytes / (positioning_s + bytes / 94.6e6) / 1e6;
    near(
        "alternating",
        rate_mb_s(Time::ZERO, host.now, 1000 * 1024 * 512),
        rate,
        0.05,
    );
}

#[test]
fn reads_from_the_track_buffer_take_a_fraction_of_a_millisecond() {
    let mut host = Host::build(C, 1);
    let first = host.one(Op::Read, 1_000_000, 8);
    host.run_until(Time(first.ended.ns() + 20_000_000));
    for i in 1..50 {
        let hit = host.one(Op::Read, 1_000_000 + i * 8, 8);
        let us = (hit.ended - hit.submitted).ns() / 1000;
        assert!((150..200).contains(&us), "read {i}: {us} us");
    }
}
