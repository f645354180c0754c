// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk against formulas, and against what must hold for any load.

use super::geometry::{Geometry, Layout, ZoneSpec};
use super::seek::{SeekCurve, SeekTable};
use crate::host::{Finished, Host};
use blklab_types::{BioFlags, Op, Time};

const C: &str = "sata-7200-2008";
const REV_MS: f64 = 60_000.0 / 7200.0;

/// A small generator for test loads (Steele, Lea and Flood's SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (u128::from(z ^ (z >> 31)) * u128::from(n) >> 64) as u64
    }
}

fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let ratio = got / expected;
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{what}: {got:.3}, expected {expected:.3} ± {tolerance}"
    );
}

/// Keeps `depth` commands in flight until `count` are done; returns them.
fn closed_loop(
    host: &mut Host,
    depth: usize,
    count: usize,
    mut next: impl FnMut() -> (Op, u64, u32),
) -> Vec<Finished> {
    let (mut all, mut submitted) = (Vec::new(), 0);
    while all.len() < count {
        while host.nr_in_flight() < depth && submitted < count {
            let (op, sector, n) = next();
            all.extend(host.submit(op, BioFlags::NONE, sector, n));
            submitted += 1;
        }
        if all.len() < count {
            all.extend(host.step().expect("the device goes on"));
        }
    }
    all
}

fn random_iops(spec: &str, depth: usize, count: usize, span: Option<u64>) -> f64 {
    let mut host = Host::build(spec, depth as u32);
    let span = span.or(host.capacity()).expect("a disk has an end") / 8;
    let mut random = Random(7);
    closed_loop(&mut host, depth, count, || {
        (Op::Read, random.below(span) * 8, 8)
    });
    count as f64 / (host.now.ns() as f64 / 1e9)
}

fn rate_mb_s(host: &Host, since: Time, bytes: u64) -> f64 {
    bytes as f64 * 1e3 / (host.now - since).ns() as f64
}

/// Reads or writes `count` pieces of `n` sectors from `sector` on, one by one.
fn stream(host: &mut Host, op: Op, sector: u64, n: u32, count: u64) -> f64 {
    let begin = host.now;
    for i in 0..count {
        host.one(op, sector + i * u64::from(n), n);
    }
    rate_mb_s(host, begin, count * u64::from(n) * 512)
}

#[test]
fn explore() {
    for (d, e) in [(1, 1.0), (4, 1.25), (8, 1.5), (16, 1.75), (31, 2.2)] {
        let one = random_iops(C, 1, 1000, None);
        for sel in ["fcfs", "sptf", "sptf_aged", "sptf_window", "scan"] {
            let got = random_iops(&format!("{C},selection={sel}"), d, 2000, None);
            print!("{sel} {d}: {got:.1} x{:.2} ({e});  ", got / one);
        }
        println!();
    }
    println!(
        "laptop {} 15k {} 10k {}",
        random_iops("laptop-5400", 1, 1000, None),
        random_iops("sas-15k", 1, 1000, None),
        random_iops("sas-10k", 1, 1000, None)
    );
    println!("30MiB {}", random_iops(C, 1, 1000, Some(61440)));
    for spec in [C, "sas-15k", "atlas-10k-v", "laptop-5400", "atlas-10k"] {
        for op in [Op::Read, Op::Write] {
            let mut host = Host::build(spec, 31);
            print!(
                "{spec} {op:?} stream {:.1} ",
                stream(&mut host, op, 0, 256, 2000)
            );
            let mut host = Host::build(spec, 31);
            let mut s = 0;
            closed_loop(&mut host, 16, 2000, || {
                s += 256;
                (op, s - 256, 256)
            });
            println!(
                "depth 16: {:.1}",
                rate_mb_s(&host, Time::ZERO, 2000 * 256 * 512)
            );
        }
    }
    let mut host = Host::build(&format!("{C},write_cache=off"), 31);
    println!(
        "sync writes {}",
        1e9 * 200.0 / {
            stream(&mut host, Op::Write, 0, 8, 200);
            host.now.ns() as f64
        }
    );
    let mut host = Host::build(C, 31);
    for i in 0..200 {
        host.one(Op::Write, i * 8, 8);
        host.one(Op::Flush, 0, 0);
    }
    println!("write flush {}", 1e9 * 200.0 / host.now.ns() as f64);
    for p in ["strict", "mixed", "greedy"] {
        let mut host = Host::build(&format!("{C},read_priority={p}"), 31);
        // A reader of 4 KiB beside a writer stream.
        let mut w = 10_000_000u64;
        let mut lat = Vec::new();
        let mut r = Random(3);
        let mut wb = 0u64;
        host.submit(Op::Read, BioFlags::NONE, 0, 8);
        for _ in 0..30 {
            host.submit(Op::Write, BioFlags::NONE, w, 1024);
            w += 1024;
        }
        while host.now < Time(20_000_000_000) {
            for f in host.step().unwrap() {
                if f.cmd.op == Op::Read {
                    lat.push((f.ended - f.submitted).ns() / 1000);
                    host.submit(Op::Read, BioFlags::NONE, r.below(1_000_000) * 8, 8);
                } else {
                    wb += 1024;
                    host.submit(Op::Write, BioFlags::NONE, w, 1024);
                    w += 1024;
                }
            }
        }
        lat.sort();
        println!(
            "{p}: reads {} p50 {} max {}; write {:.1} MB/s",
            lat.len(),
            lat[lat.len() / 2],
            lat[lat.len() - 1],
            wb as f64 * 512.0 / 20e6
        );
    }
}
