// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small matrices, judged.

use super::*;
use serde_json::{Value, json};

/// A run in which wal syncs so long and backup writes so fast.
fn run(seed: u64, sync_us: &[u64], backup: f64) -> SideRun {
    let bins: Vec<Value> = sync_us.iter().map(|us| json!([us * 1000, 1])).collect();
    let p = |bins: &[Value]| bins.last().map(|bin| bin[0].clone());
    let metrics = json!({"jobs": [
        {"level": "job", "job": "wal", "direction": "sync", "ios": 5.0, "bytes": 0.0,
            "clat_p999_ns": p(&bins), "clat_bins": bins},
        {"level": "job", "job": "backup", "direction": "write", "ios": 9.0, "bytes": backup,
            "bandwidth_bytes_per_s": backup, "clat_p999_ns": 5e9, "clat_bins": [[5_000_000_000_u64, 9]]},
    ]});
    SideRun {
        measured: Measured::new(&metrics),
        seed,
        digest: seed * 1_000_003 + sync_us[0],
    }
}

fn side(label: &str, syncs: &[u64], backup: f64) -> Side {
    let runs = syncs.iter().enumerate();
    Side {
        label: label.to_owned(),
        runs: runs
            .map(|(i, us)| run(i as u64, &[*us, us * 2], backup))
            .collect(),
    }
}

#[test]
fn the_best_is_named_with_its_interval_and_what_others_lose() {
    let sides = [
        side(
            "dirty_bytes=1g",
            &[90_000, 100_000, 95_000, 105_000, 98_000],
            500e6,
        ),
        side(
            "dirty_bytes=64m",
            &[10_000, 10_500, 9_800, 10_200, 10_100],
            300e6,
        ),
        side(
            "dirty_bytes=256m",
            &[30_000, 31_000, 29_000, 30_500, 29_500],
            400e6,
        ),
    ];
    let v = judge(&sides, None).expect("jobs sync");
    assert_eq!(v.figure, "sync p99.9 of wal");
    assert_eq!(v.best, Some(1));
    let labels: Vec<&str> = v.rows.iter().map(|r| r.label.as_str()).collect();
    assert_eq!(
        labels,
        ["dirty_bytes=1g", "dirty_bytes=64m", "dirty_bytes=256m"]
    );
    assert!(v.rows.iter().all(|r| r.interval.is_some()));
    let start = "dirty_bytes=64m is best for sync p99.9 of wal: 2";
    assert!(v.answer.starts_with(start), "{}", v.answer);
    assert!(
        v.answer.contains("than dirty_bytes=256m, the next"),
        "{}",
        v.answer
    );
    assert!(
        v.answer.contains("than dirty_bytes=1g, the worst"),
        "{}",
        v.answer
    );
    assert!(v.sure.starts_with("Sure: 2."), "{}", v.sure);
    let cost = "Others pay: bandwidth of backup 300 MB/s instead of 500 MB/s (dirty_bytes=1g).";
    assert_eq!(v.cost, cost);
    assert_eq!(v.others[0], "bandwidth of backup");
    assert_eq!(v.rows[2].others[0].text, "400 MB/s");
}

/// Who waits less because it hardly gets to call is not the best.
#[test]
fn what_did_much_less_in_the_same_time_is_not_best() {
    let with_rate = |label: &str, us: u64, per_s: f64| {
        let metrics = json!({"jobs": [
            {"level": "job", "job": "wal", "direction": "sync", "ios": per_s,
                "iops": per_s, "bytes": 0.0, "clat_p999_ns": us * 1000, "clat_bins": [[us * 1000, 9]]},
        ]});
        Side {
            label: label.to_owned(),
            runs: vec![SideRun {
                measured: Measured::new(&metrics),
                seed: 0,
                digest: us,
            }],
        }
    };
    let judged = |per_s: f64| {
        let sides = [
            with_rate("rhel-8", 80, per_s),
            with_rate("rhel-9", 90, 600.0),
        ];
        judge(&sides, None).expect("jobs sync")
    };
    let v = judged(100.0);
    assert_eq!((v.best, v.first, v.did_more), (None, Some(0), Some(1)));
    assert_eq!(v.rows[0].calls_per_s, Some(100.0));
    let told = "That does not make it the best: it made 100 such calls a second, rhel-9 made 600, \
                6.0 times as many";
    assert!(v.answer.contains(told), "{}", v.answer);
    // Half of it is not much less.
    let v = judged(300.0);
    assert_eq!((v.best, v.did_more), (Some(0), None));
    assert!(v.answer.starts_with("rhel-8 is best"), "{}", v.answer);
}

#[test]
fn one_run_each_has_no_interval() {
    let sides = [side("a", &[20_000], 1e6), side("b", &[10_000], 1e6)];
    let v = judge(&sides, None).expect("jobs sync");
    assert_eq!(
        (v.best, v.sure.as_str()),
        (Some(1), "One run each: no interval.")
    );
    assert!(v.rows.iter().all(|r| r.interval.is_none()));
    assert_eq!(v.cost, "No other job loses by it.");
}

#[test]
fn copies_are_one_run_and_sure_of_nothing() {
    let mut copied = side("b", &[10_000, 10_000, 10_000], 1e6);
    copied.runs.iter_mut().for_each(|run| run.digest = 7);
    let sides = [side("a", &[20_000, 21_000, 19_000], 1e6), copied];
    let v = judge(&sides, None).expect("jobs sync");
    assert_eq!((v.rows[1].repetitions, v.rows[1].runs), (3, 1));
    assert_eq!(v.rows[1].interval_text, "3 copies of one run");
    assert_eq!(v.rows[0].verdict, Some(Sureness::OneRun));
    assert!(
        v.sure.starts_with("Beside a it is not judged"),
        "{}",
        v.sure
    );
}

#[test]
fn what_runs_do_not_tell_apart_is_said() {
    let sides = [
        side("a", &[20_000, 10_000, 30_000, 12_000], 1e6),
        side("b", &[19_000, 11_000, 24_000, 14_000], 1e6),
    ];
    let v = judge(&sides, None).expect("jobs sync");
    let told = "These runs do not tell it from ";
    assert!(v.sure.starts_with(told), "{}", v.sure);
}

#[test]
fn what_nobody_does_is_refused() {
    let sides = [side("a", &[20_000], 1e6), side("b", &[10_000], 1e6)];
    let told = |text: &str| {
        let figure = Figure::parse(text).expect("a figure");
        judge(&sides, Some(&figure)).expect_err("refused").what
    };
    assert!(told("p99 of wall").contains("did you mean 'wal'"));
    assert_eq!(
        told("read p99 of wal"),
        "read p99 of wal: it makes no such calls"
    );
    let figure = Figure::parse("bandwidth of backup").expect("a figure");
    let v = judge(&sides, Some(&figure)).expect("it writes");
    assert_eq!(v.best, None);
    assert_eq!(v.answer, "bandwidth of backup is 1.00 MB/s in all of them.");
}

/// A difference that is no more than the noise is no loss that is said for sure, and not
/// denied either.
#[test]
fn a_loss_that_may_be_noise_says_so() {
    let noisy = |label: &str, syncs: [u64; 3], backup: [f64; 3]| Side {
        label: label.to_owned(),
        runs: (0..3)
            .map(|i| run(i as u64, &[syncs[i], syncs[i] * 2], backup[i]))
            .collect(),
    };
    let sides = [
        noisy("a", [20_000, 21_000, 19_000], [500e6, 300e6, 420e6]),
        noisy("b", [10_000, 10_500, 9_500], [300e6, 410e6, 350e6]),
    ];
    let v = judge(&sides, None).expect("jobs sync");
    assert!(v.cost.starts_with("Others may pay"), "{}", v.cost);
}
