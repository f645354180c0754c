// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording side over time: samples, passes, ramp time.

use blklab_fiostat::{Completion, Ddir, JobStats, LogKind, LogOptions, StatOptions};

const MS: u64 = 1_000_000;

/// One I/O of 4 KiB per millisecond, of 50 µs each, from 1 ms to the end.
fn run_one_per_ms(stats: &mut JobStats, dir: Ddir, ms: std::ops::RangeInclusive<u64>) {
    for now_ms in ms {
        stats.on_issue(dir);
        stats.on_submit(1, 1);
        stats.on_complete(&Completion {
            clat_ns: 50_000,
            lat_ns: 51_000,
            now_ns: now_ms * MS,
            ..Completion::new(dir, 4096)
        });
        stats.on_complete_batch(1);
    }
}

#[test]
fn rates_are_sampled_twice_a_second() {
    let mut stats = JobStats::new(StatOptions::default(), 0);
    run_one_per_ms(&mut stats, Ddir::Write, 1..=1600);
    let (stat, _) = stats.finish(1600 * MS);
    let write = stat.dir(Ddir::Write);
    // The I/O that ends with an interval counts for the next one.
    assert_eq!(
        (write.iops.samples, write.iops.min, write.iops.max),
        (3, 998, 1000)
    );
    assert_eq!(
        (write.bw.samples, write.bw.min, write.bw.max),
        (3, 3992, 4000)
    );
    assert_eq!(stat.dir(Ddir::Read).bw.samples, 0);
}

#[test]
fn log_windows_set_the_interval() {
    let options = StatOptions {
        bw_log: true,
        iops_log: true,
        lat_log: true,
        iopsavgtime_ms: Some(50),
        log: LogOptions {
            avg_ms: 100,
            ..LogOptions::default()
        },
        ..StatOptions::default()
    };
    let mut stats = JobStats::new(options, 0);
    run_one_per_ms(&mut stats, Ddir::Read, 1..=220);
    let (stat, logs) = stats.finish(230 * MS);
    assert_eq!(stat.dir(Ddir::Read).bw.samples, 2);
    assert_eq!(stat.dir(Ddir::Read).iops.samples, 4);
    let text = |wanted| logs.texts().into_iter().find(|(kind, _)| *kind == wanted);
    let check = |kind, lines: &str| assert_eq!(text(kind), Some((kind, lines.to_string())));
    check(LogKind::Bw, "100, 3960, 0, 0, 0\n200, 4000, 0, 0, 0\n");
    let iops = "50, 980, 0, 0, 0\n100, 1000, 0, 0, 0\n150, 1000, 0, 0, 0\n200, 1000, 0, 0, 0\n";
    check(LogKind::Iops, iops);
    check(
        LogKind::Clat,
        "100, 50000, 0, 0, 0\n200, 50000, 0, 0, 0\n230, 50000, 0, 0, 0\n",
    );
    check(LogKind::Slat, "");
}

#[test]
fn run_time_is_summed_over_passes_and_rounded_up() {
    let mut stats = JobStats::new(StatOptions::default(), 0);
    run_one_per_ms(&mut stats, Ddir::Write, 1..=2);
    stats.end_pass(2_000_999);
    run_one_per_ms(&mut stats, Ddir::Read, 3..=4);
    run_one_per_ms(&mut stats, Ddir::Write, 5..=6);
    stats.end_pass(4_001_000);
    let (stat, _) = stats.finish(6_900_000);
    let runtimes = stat.dirs.each_ref().map(|dir| dir.runtime_ms);
    assert_eq!(runtimes, [5, 7, 0]);
    assert_eq!(stat.job_runtime_ms, 6);
}

#[test]
fn ramp_time_is_forgotten() {
    let mut stats = JobStats::new(StatOptions::default(), 0);
    run_one_per_ms(&mut stats, Ddir::Read, 1..=700);
    stats.on_sync_issue();
    stats.on_sync_complete(1_000);
    stats.end_ramp(700 * MS);
    let (empty, _) = stats.clone().finish(700 * MS);
    assert_eq!(
        (empty.total_ios(), empty.io_bytes(), empty.sync_ios),
        (0, 0, 0)
    );
    assert_eq!((empty.sync.stat.samples, empty.total_submit), (0, 0));
    run_one_per_ms(&mut stats, Ddir::Read, 701..=1300);
    stats.end_pass(600 * MS);
    let (stat, _) = stats.finish(1300 * MS);
    let read = stat.dir(Ddir::Read);
    assert_eq!(
        (read.total_ios, read.clat.stat.samples, read.runtime_ms),
        (600, 600, 600)
    );
    assert_eq!((read.iops.samples, read.iops.max), (1, 998));
}

#[test]
fn priorities_are_told_apart() {
    let options = StatOptions {
        ioprios: vec![0, 0x2003],
        ..StatOptions::default()
    };
    let mut stats = JobStats::new(options, 0);
    for (ioprio, clat_ns) in [(0, 100), (0x2003, 40), (0x2003, 60), (0x4000, 9)] {
        stats.on_complete(&Completion {
            ioprio,
            clat_ns,
            ..Completion::new(Ddir::Read, 512)
        });
    }
    let (stat, _) = stats.finish(MS);
    let latency = |i: usize| stat.dir(Ddir::Read).prios[i].latency.stat;
    assert_eq!((latency(0).samples, latency(0).mean), (1, 100.0));
    assert_eq!((latency(1).samples, latency(1).mean), (2, 50.0));
    assert_eq!(stat.dir(Ddir::Read).clat.stat.samples, 4);
}

#[test]
fn what_is_disabled_is_not_counted() {
    let options = StatOptions {
        disable_slat: true,
        disable_clat: true,
        disable_lat: true,
        ..StatOptions::default()
    };
    let mut stats = JobStats::new(options, 0);
    let done = Completion::new(Ddir::Trim, 4096);
    stats.on_complete(&Completion {
        slat_ns: Some(7),
        clat_ns: 50,
        lat_ns: 57,
        ..done
    });
    stats.on_sync_complete(5);
    stats.on_error(5);
    stats.on_error(28);
    assert_eq!(stats.errors(), (2, 5));
    let (stat, _) = stats.finish(MS);
    let trim = stat.dir(Ddir::Trim);
    let counts = [&trim.slat, &trim.clat, &trim.lat, &stat.sync].map(|l| l.stat.samples);
    assert_eq!((counts, trim.io_bytes), ([0; 4], 4096));
}
