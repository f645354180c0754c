// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies that fio logged, fed to the recording side: it must come to the
//! numbers that fio printed for the same run, and write the same logs.

use blklab_fiostat::{
    Completion, Ddir, DirStat, FioRun, JobInfo, JobLogs, JobRecord, JobStats, LogKind, LogOptions,
    StatOptions, ThreadStat, UnifiedRw, log_file_name,
};

use crate::recorded;

/// A row `time ms, value, direction, bytes[, offset], priority`.
struct Row {
    time_ns: u64,
    value: u64,
    done: Completion,
}

fn rows(case: &str, log: &str, job_number: u32) -> Vec<Row> {
    let text = recorded::file(case, &format!("log_{log}.{job_number}.log"));
    text.lines().map(row).collect()
}

fn row(line: &str) -> Row {
    let fields: Vec<&str> = line.split(", ").collect();
    let number = |i: usize| fields[i].parse::<u64>().expect("number");
    let dir = Ddir::ALL[number(2) as usize];
    let offset = if fields.len() == 6 { number(4) } else { 0 };
    Row {
        time_ns: number(0) * 1_000_000,
        value: number(1),
        done: Completion {
            offset,
            ..Completion::new(dir, number(3))
        },
    }
}

/// Replays the logs of a run of threads and compares entries and logs.
fn check(case: &str, jobs: &[JobInfo], options: &StatOptions) {
    let expected = recorded::load(case).result();
    let mut run = FioRun::default();
    for (number, info) in (1..).zip(jobs) {
        let (stat, logs) = replay(case, number, options.clone());
        for (kind, ours) in logs.texts() {
            let name = log_file_name("log", kind, Some(number));
            same_log(kind, &ours, &recorded::file(case, &name));
        }
        let info = info.clone();
        run.jobs.push(JobRecord { info, stat });
    }
    let result = run.result();
    assert_eq!(result.entries.len(), expected.entries.len());
    for (ours, theirs) in result.entries.iter().zip(&expected.entries) {
        assert_eq!(ours.members, theirs.members);
        for (ours, theirs) in ours.stat.dirs.iter().zip(&theirs.stat.dirs) {
            same_direction(ours, theirs);
        }
        assert_eq!(ours.stat.lat_dist, theirs.stat.lat_dist);
    }
}

fn replay(case: &str, number: u32, options: StatOptions) -> (ThreadStat, JobLogs) {
    let mut stats = JobStats::new(options, 0);
    for row in rows(case, "slat", number) {
        stats.on_slat(&row.done, row.value, row.time_ns);
    }
    let lats = rows(case, "lat", number);
    for (clat, lat) in rows(case, "clat", number).into_iter().zip(lats) {
        stats.on_issue(clat.done.dir);
        stats.on_complete(&Completion {
            clat_ns: clat.value,
            lat_ns: lat.value,
            now_ns: clat.time_ns,
            ..clat.done
        });
    }
    stats.finish(0)
}

/// The same lines. fio reads the clock for each log anew, so a millisecond may
/// end between two rows of one I/O.
fn same_log(kind: LogKind, ours: &str, theirs: &str) {
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{kind:?}");
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        let split = |line: &str| -> (i64, String) {
            let (time, rest) = line.split_once(", ").expect("columns");
            (time.parse().expect("time"), rest.to_string())
        };
        let ((our_ms, ours), (their_ms, theirs)) = (split(ours), split(theirs));
        assert_eq!(ours, theirs, "{kind:?}");
        assert!(
            (our_ms - their_ms).abs() <= 1,
            "{kind:?} {our_ms} {their_ms} {ours}"
        );
    }
}

/// Counters and histograms agree exactly, means and deviations to the six
/// decimals that fio prints.
fn same_direction(ours: &DirStat, theirs: &DirStat) {
    assert_eq!(ours.total_ios, theirs.total_ios);
    assert_eq!(ours.io_bytes, theirs.io_bytes);
    assert_eq!(ours.slat.hist, theirs.slat.hist);
    assert_eq!(ours.clat.hist, theirs.clat.hist);
    assert_eq!(ours.lat.hist, theirs.lat.hist);
    let pairs = [
        (&ours.slat.stat, &theirs.slat.stat),
        (&ours.clat.stat, &theirs.clat.stat),
        (&ours.lat.stat, &theirs.lat.stat),
        (&ours.bw, &theirs.bw),
        (&ours.iops, &theirs.iops),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(
            (ours.samples, ours.min, ours.max),
            (theirs.samples, theirs.min, theirs.max)
        );
        assert!(
            (ours.mean - theirs.mean).abs() < 1e-6,
            "{} {}",
            ours.mean,
            theirs.mean
        );
        assert!(
            (ours.stddev() - theirs.stddev()).abs() < 1e-5,
            "{ours:?} {theirs:?}"
        );
    }
}

#[test]
fn synchronous_run() {
    let options = StatOptions {
        lat_log: true,
        disable_slat: true,
        log: LogOptions {
            offset: true,
            ..LogOptions::default()
        },
        ..StatOptions::default()
    };
    check("psync-randrw", &[JobInfo::default()], &options);
}

#[test]
fn asynchronous_run_with_every_log() {
    let options = StatOptions {
        lat_log: true,
        bw_log: true,
        iops_log: true,
        log: LogOptions {
            prio: true,
            ..LogOptions::default()
        },
        ..StatOptions::default()
    };
    check("logs-per-io", &[JobInfo::default()], &options);
}

#[test]
fn merged_threads() {
    let options = StatOptions {
        slat_percentiles: true,
        lat_percentiles: true,
        lat_log: true,
        bw_log: true,
        ..StatOptions::default()
    };
    let merged = JobInfo {
        group_reporting: true,
        ..JobInfo::default()
    };
    let single = JobInfo {
        group_id: 1,
        ..JobInfo::default()
    };
    let jobs = [merged.clone(), merged.clone(), merged, single];
    check("replay-group", &jobs, &options);
}

#[test]
fn merged_directions() {
    let options = StatOptions {
        lat_log: true,
        bw_log: true,
        iops_log: true,
        ..StatOptions::default()
    };
    let mixed = JobInfo {
        unified: UnifiedRw::Mixed,
        ..JobInfo::default()
    };
    check("replay-mixed", &[mixed], &options);
}

/// A histogram log has as many columns as fio's at the same coarseness, and its
/// rows come at the same kind of times.
#[test]
fn histogram_log_has_the_same_columns() {
    let options = StatOptions {
        hist_log: true,
        log: LogOptions {
            hist_ms: 200,
            hist_coarseness: 4,
            ..LogOptions::default()
        },
        ..StatOptions::default()
    };
    let mut stats = JobStats::new(options, 0);
    for now_ms in 0..500 {
        let done = Completion::new(Ddir::Read, 4096);
        stats.on_complete(&Completion {
            now_ns: now_ms * 1_000_000,
            clat_ns: 60_000,
            ..done
        });
    }
    let (_, logs) = stats.finish(500_000_000);
    let [(LogKind::ClatHist, ours)] = &logs.texts()[..] else {
        panic!("one log was asked for");
    };
    let theirs = recorded::file("logs-windowed", "log_clat_hist.log");
    let columns = |text: &str| text.lines().next().map(|line| line.split(", ").count());
    assert_eq!(columns(ours), columns(&theirs));
    let times: Vec<_> = ours
        .lines()
        .map(|l| l.split(", ").next().unwrap_or(""))
        .collect();
    assert_eq!(times, ["201", "401"]);
}
