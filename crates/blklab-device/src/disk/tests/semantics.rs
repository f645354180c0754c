// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caches, flushes, orders, and conservation under random load.

use super::{C, SplitMix64, ms};
use crate::Kind;
use crate::host::Host;
use blklab_types::{BioFlags, Op, Span, Time};

/// A random mixture of everything, with pauses; everything must come back.
fn shake(spec: &str, depth: u32, seed: u64, count: usize) {
    load(Host::build(spec, depth), spec, depth, seed, count);
}

fn load(mut host: Host, spec: &str, depth: u32, seed: u64, count: usize) {
    let capacity = host.capacity().unwrap_or(1 << 24);
    let mut random = SplitMix64(seed);
    let mut finished = Vec::new();
    for _ in 0..count {
        while host.nr_in_flight() >= depth as usize {
            finished.extend(host.step().unwrap_or_else(|| panic!("{spec}: stuck")));
        }
        let longest = if random.below(4) == 0 { 2048 } else { 64 };
        let n = 1 + random.below(longest);
        let near = random.below(2) == 0;
        let sector = random.below(if near {
            100_000.min(capacity - n)
        } else {
            capacity - n
        });
        let (op, flags, n) = match random.below(100) {
            0 => (Op::Flush, BioFlags::NONE, 0),
            1 => (Op::Discard, BioFlags::NONE, n),
            2..8 => (Op::Write, BioFlags::FUA, n),
            8..50 => (Op::Write, BioFlags::NONE, n),
            _ => (Op::Read, BioFlags::NONE, n),
        };
        finished.extend(host.submit(op, flags, sector, n as u32));
        if random.below(10) == 0 {
            let pause = Span(random.below(30_000_000));
            finished.extend(host.run_until(host.now + pause));
        }
    }
    finished.extend(host.drain());
    assert_eq!(finished.len(), count, "{spec}");
    assert!(finished.iter().all(|f| f.error == 0), "{spec}");
}

#[test]
fn every_device_completes_everything_once() {
    for info in crate::ALL.iter().filter(|d| !d.needs_files()) {
        for depth in [1, 4, 31] {
            shake(info.name, depth, u64::from(depth), 600);
        }
    }
}

#[test]
fn every_policy_completes_everything_once() {
    let choices: [(&str, &[&str]); 7] = [
        (
            "selection",
            &["fcfs", "sptf", "sptf_aged", "sptf_window", "scan"],
        ),
        ("read_priority", &["strict", "mixed", "greedy"]),
        ("write_cache", &["on", "off"]),
        ("layout", &["classic", "serpentine"]),
        ("prefetch_stop", &["segment", "track", "cylinder"]),
        ("prefetch_min_sectors", &["0", "100", "100000"]),
        ("dirty_limit_bytes", &["8MiB", "64KiB", "1KiB"]),
    ];
    let mut random = SplitMix64(11);
    for round in 0..60 {
        let mut spec = C.to_owned();
        for (name, values) in choices {
            spec += &format!(
                ",{name}={}",
                values[random.below(values.len() as u64) as usize]
            );
        }
        if round % 3 == 0 {
            spec += ",age_limit_ms=100,max_dirty_ranges=3,zero_latency=on,bus_mb_per_s=5";
        }
        if round % 5 == 0 {
            spec += ",reorder_bias_write=4,overhead_read_hit_ms=0,overhead_write_hit_ms=0";
        }
        shake(&spec, 31, round, 400);
    }
}

#[test]
fn the_same_load_gives_the_same_times() {
    let run = || {
        let mut host = Host::build(C, 31);
        let mut random = SplitMix64(3);
        super::closed_loop(&mut host, 31, 500, || {
            let op = if random.below(2) == 0 {
                Op::Read
            } else {
                Op::Write
            };
            (op, random.below(1 << 29), 8)
        })
    };
    assert_eq!(run(), run());
}

#[test]
fn a_cached_write_takes_overhead_and_bus() {
    let mut host = Host::build(C, 31);
    let write = host.one(Op::Write, 1 << 28, 8);
    assert_eq!((write.ended - write.submitted).ns(), 150_000 + 8 * 2_560);
    // A read of it comes from the cache while it is on its way to the medium …
    let read = host.one(Op::Read, 1 << 28, 8);
    assert_eq!((read.ended - read.submitted).ns(), 150_000 + 8 * 2_560);
    // … and while it waits because the mechanism is busy.
    let mut host = Host::build(C, 31);
    host.submit(Op::Read, BioFlags::NONE, 1 << 20, 8);
    host.one(Op::Write, 1 << 28, 8);
    let read = host.one(Op::Read, (1 << 28) + 2, 4);
    assert_eq!((read.ended - read.submitted).ns(), 150_000 + 4 * 2_560);
}

#[test]
fn forced_writes_and_flushes_reach_the_medium() {
    let mut host = Host::build(C, 31);
    let mut fua = host.submit(Op::Write, BioFlags::FUA, 1 << 28, 8);
    fua.extend(host.drain());
    assert!(ms(&fua[0]) > 1.0, "{}", ms(&fua[0]));
    // A flush with nothing dirty is free but for its overhead; its address is ignored.
    let flush = host.one(Op::Flush, u64::MAX, 0);
    assert_eq!((flush.ended - flush.submitted).ns(), 150_000);
    // One with 100 scattered writes takes about as long as to place them.
    let mut random = SplitMix64(2);
    for _ in 0..100 {
        host.one(Op::Write, random.below(1 << 29), 8);
    }
    let flush = host.one(Op::Flush, 0, 0);
    assert!(ms(&flush) > 200.0 && ms(&flush) < 1000.0, "{}", ms(&flush));
}

#[test]
fn a_flush_takes_longer_the_more_dirty_data_there_is() {
    let mut host = Host::build(C, 31);
    let mut random = SplitMix64(7);
    let mut before = 0.0;
    for dirty in [1, 4, 16, 64, 256] {
        for _ in 0..dirty {
            host.one(Op::Write, random.below(1 << 29), 8);
        }
        let flush = ms(&host.one(Op::Flush, 0, 0));
        assert!(
            flush > 1.4 * before,
            "{dirty} writes: {flush} after {before}"
        );
        before = flush;
    }
}

#[test]
fn a_disk_whose_cache_is_off_has_nothing_to_flush() {
    let has_flush = |name: &str, given: &[(&str, &str)]| {
        let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        let given: Vec<_> = given.iter().map(own).collect();
        crate::limits(name, &given).expect("limits").has_flush
    };
    for d in crate::ALL
        .iter()
        .filter(|d| std::ptr::eq(d.params, crate::disk::PARAMS))
    {
        let off = d.preset.contains(&("write_cache", "off"));
        assert_eq!(has_flush(d.name, &[]), !off, "{}", d.name);
        assert!(!has_flush(d.name, &[("write_cache", "off")]), "{}", d.name);
        assert!(has_flush(d.name, &[("write_cache", "on")]), "{}", d.name);
    }
    assert!(!has_flush("simdisk-2628", &[]));
    assert!(has_flush("simdisk-2628", &[("write_cache_sectors", "128")]));
}

#[test]
fn a_flush_holds_back_what_comes_after_it() {
    let mut host = Host::build(C, 31);
    for i in 0..20 {
        host.one(Op::Write, i << 24, 8);
    }
    let mut finished = host.submit(Op::Flush, BioFlags::NONE, 0, 0);
    finished.extend(host.run_until(host.now + Span::from_us(10)));
    finished.extend(host.submit(Op::Write, BioFlags::NONE, 5, 8));
    finished.extend(host.submit(Op::Flush, BioFlags::NONE, 0, 0));
    finished.extend(host.submit(Op::Read, BioFlags::NONE, 1 << 29, 8));
    finished.extend(host.drain());
    let order: Vec<Op> = finished.iter().map(|f| f.cmd.op).collect();
    assert_eq!(order, [Op::Flush, Op::Write, Op::Flush, Op::Read]);
}

#[test]
fn a_full_cache_writes_at_the_rate_of_the_medium() {
    // 32 KiB of cache: each write of 32 KiB waits for the destage of the one before.
    let mut host = Host::build(&format!("{C},dirty_limit_bytes=32KiB"), 1);
    let mut random = SplitMix64(4);
    let mut sum = 0.0;
    for i in 0..300 {
        let write = host.one(Op::Write, random.below(976_000_000), 64);
        sum += if i < 10 { 0.0 } else { ms(&write) };
    }
    // Seek 8.5 and settling 1.0, half a revolution, transfer 0.3 ms.
    super::near("random writes", sum / 290.0, 8.5 + 1.0 + 4.17 + 0.3, 0.05);
}

#[test]
fn adjacent_dirty_data_is_written_in_one_go() {
    let mut host = Host::build(C, 31);
    // Keep the mechanism busy, then write backwards.
    host.submit(Op::Read, BioFlags::NONE, 1 << 29, 8);
    let begin = host.now;
    for i in (0..32).rev() {
        host.one(Op::Write, (1 << 20) + i * 8, 8);
    }
    let flush = host.one(Op::Flush, 0, 0);
    assert!((flush.ended - begin).ns() < 60_000_000, "{}", flush.ended);
}

/// Order in which reads at `sectors`, handed over together behind a first one
/// that keeps the mechanism busy, are served.
fn order(spec: &str, sectors: &[u64]) -> Vec<u64> {
    let mut host = Host::build(spec, 31);
    host.submit(Op::Read, BioFlags::NONE, 500_000_000, 8);
    for &sector in sectors {
        host.submit(Op::Read, BioFlags::NONE, sector, 8);
    }
    host.drain().iter().skip(1).map(|f| f.cmd.sector).collect()
}

#[test]
fn selection_policies_order_as_they_say() {
    let near_far = [10, 900_000_000, 500_100_000, 700_000_000, 499_000_000];
    let by = |selection: &str| order(&format!("{C},{selection}"), &near_far);
    assert_eq!(by("selection=fcfs"), near_far);
    let scan = [500_100_000, 700_000_000, 900_000_000, 10, 499_000_000];
    assert_eq!(by("selection=scan"), scan);
    let sptf = by("selection=sptf");
    assert!(sptf[0] == 500_100_000 || sptf[0] == 499_000_000, "{sptf:?}");
    // A window of one is the order of arrival, and so is a limit that all exceed.
    assert_eq!(by("selection=sptf_window,window=1"), near_far);
    assert_eq!(by("selection=sptf,age_limit_ms=1us"), near_far);
    assert_eq!(by("selection=sptf_aged,age_weight=0"), sptf);
    // With a window of two the first is one of the two oldest.
    assert!(near_far[..2].contains(&by("selection=sptf_window,window=2")[0]));
}

#[test]
fn reads_bear_the_bias_for_writes() {
    // A near read and a far write, past the cache: with a large bias the write wins.
    let first = |bias: &str| {
        let spec = format!("{C},write_cache=off,selection=sptf,reorder_bias_write={bias}");
        let mut host = Host::build(&spec, 31);
        host.submit(Op::Read, BioFlags::NONE, 500_000_000, 8);
        host.submit(Op::Read, BioFlags::NONE, 500_100_000, 8);
        host.submit(Op::Write, BioFlags::NONE, 600_000_000, 8);
        host.drain()[1].cmd.op
    };
    assert_eq!(first("1"), Op::Read);
    assert_eq!(first("100"), Op::Write);
}

/// A reader of 4 KiB beside a stream of writes at depth 31, for 10 s: read
/// latencies in ms, ascending, and MB/s written.
fn reader_beside_writer(spec: &str) -> (Vec<f64>, f64) {
    let mut host = Host::build(spec, 31);
    let (mut random, mut next) = (SplitMix64(3), 10_000_000);
    let (mut latencies, mut written) = (Vec::new(), 0);
    host.submit(Op::Read, BioFlags::NONE, 0, 8);
    for _ in 0..30 {
        host.submit(Op::Write, BioFlags::NONE, next, 1024);
        next += 1024;
    }
    while host.now < Time(10_000_000_000) {
        for f in host.step().expect("the device goes on") {
            if f.cmd.op == Op::Read {
                latencies.push(ms(&f));
                host.submit(Op::Read, BioFlags::NONE, random.below(1_000_000) * 8, 8);
            } else {
                written += 1024 * 512;
                host.submit(Op::Write, BioFlags::NONE, next, 1024);
                next += 1024;
            }
        }
    }
    latencies.sort_by(f64::total_cmp);
    (latencies, super::rate_mb_s(Time::ZERO, host.now, written))
}

#[test]
fn read_priority_decides_between_reader_and_writer() {
    let run = |priority: &str| reader_beside_writer(&format!("{C},read_priority={priority}"));
    let worst = |latencies: &[f64]| latencies.last().copied().unwrap_or(0.0);
    let (strict, strict_rate) = run("strict");
    let (mixed, mixed_rate) = run("mixed");
    let (greedy, greedy_rate) = run("greedy");
    // Reads first: one piece of the writer at most is in the way.
    assert!(worst(&strict) < 45.0, "{}", worst(&strict));
    // Four pieces between two reads.
    assert!(mixed.len() < strict.len() && mixed_rate > 1.5 * strict_rate);
    // Greed: the stream is always nearer, and a read waits for seconds …
    assert!(
        worst(&greedy) > 1000.0 && greedy_rate > 90.0,
        "{} {greedy_rate}",
        worst(&greedy)
    );
    // … unless there is an age limit.
    let (aged, _) = run("greedy,age_limit_ms=50");
    assert!(worst(&aged) < 100.0, "{}", worst(&aged));
}

#[test]
fn read_ahead_goes_on_or_not() {
    let spec = |more: &str| format!("{C},segments=16,buffer_bytes=8MiB,{more}");
    // Without read-ahead the next sectors are a revolution away.
    let mut host = Host::build(&spec("read_ahead_sectors=0"), 1);
    host.one(Op::Read, 0, 8);
    assert!(ms(&host.one(Op::Read, 8, 8)) > 8.0);
    // It stops at the end of the track if told so.
    let mut host = Host::build(&spec("prefetch_stop=track"), 1);
    host.one(Op::Read, 1600, 8);
    host.run_until(Time(100_000_000));
    assert!(ms(&host.one(Op::Read, 1700, 9)) < 0.3);
    assert!(ms(&host.one(Op::Read, 1709, 8)) > 1.0);
    // Another command ends it, but not before its minimum.
    for (min, hit) in [("0", false), ("1000", true)] {
        let mut host = Host::build(&spec(&format!("prefetch_min_sectors={min}")), 2);
        host.one(Op::Read, 0, 8);
        host.one(Op::Read, 1 << 28, 8);
        assert_eq!(ms(&host.one(Op::Read, 900, 8)) < 0.3, hit, "minimum {min}");
    }
}

#[test]
fn a_write_voids_what_was_read() {
    let mut host = Host::build(&format!("{C},write_cache=off"), 1);
    host.one(Op::Read, 0, 8);
    host.run_until(Time(50_000_000));
    assert!(ms(&host.one(Op::Read, 0, 8)) < 0.3);
    host.one(Op::Write, 4, 8);
    assert!(ms(&host.one(Op::Read, 0, 8)) > 0.5);
}

#[test]
fn a_read_of_a_track_may_begin_anywhere() {
    let time = |more: &str| {
        let mut host = Host::build(&format!("{C},segments=1{more}"), 1);
        host.run_until(Time(3_000_000));
        ms(&host.one(Op::Read, 0, 1709))
    };
    assert!(time("") > 8.5 + 0.15);
    assert!((time(",zero_latency=on") - (8.333 + 0.15)).abs() < 0.01);
}

/// Whatever the tables allow must build and serve, or be refused with a word.
#[test]
fn extreme_parameters_do_not_break_anything() {
    let info = crate::find(C).expect("a preset");
    let (mut random, mut built) = (SplitMix64(21), 0);
    for round in 0..300 {
        let mut params: Vec<(String, String)> = Vec::new();
        for p in info.params {
            if random.below(8) > 0 {
                continue;
            }
            let either = |random: &mut SplitMix64, min: u64, max: u64| match random.below(3) {
                0 => min,
                1 => max.min(1 << 26),
                _ => (min + random.below(1000)).min(max),
            };
            let value = match p.kind {
                Kind::Time { unit_ns, max_ns } => {
                    either(&mut random, 0, max_ns / unit_ns).to_string()
                }
                Kind::Count { min, max } => either(&mut random, min, max).to_string(),
                Kind::Sectors { min, max } | Kind::Bytes { min, max } => {
                    either(&mut random, min, max).to_string()
                }
                Kind::Real { min, max } => [min, max][random.below(2) as usize].to_string(),
                Kind::Choice(list) => list[random.below(list.len() as u64) as usize].to_owned(),
                Kind::Switch => ["on", "off"][random.below(2) as usize].to_owned(),
                Kind::Text | Kind::Path => "1:1000 5:0.5 70:3".to_owned(),
            };
            params.push((p.name.to_owned(), value));
        }
        match crate::build(C, &params, 8, &|_| Err(String::new())) {
            Ok(device) => {
                built += 1;
                load(Host::new(device), &format!("{params:?}"), 8, round, 60);
            }
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
    assert!(built > 100, "{built} of 300 were possible");
}
