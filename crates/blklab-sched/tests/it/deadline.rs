// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the deadline scheduler, for its five variants.

use crate::rig::{Rig, Setup};

/// One kernel of each variant V1 to V5.
const V: [&str; 5] = ["2.6.18", "2.6.24", "2.6.28", "3.1", "4.19"];

/// HZ 250, nothing dispatched until asked, one request per fetch.
fn rig(kernel: &'static str, tunables: &'static [(&'static str, i64)]) -> Rig {
    let limits = |l: &mut blklab_block::sq::Limits| {
        l.queue_depth = 1;
        l.unplug_thresh = 1000;
        l.fetch = blklab_block::sq::Fetch::CheckThenPeek;
        l.queue.nomerges = 0;
    };
    Setup {
        kernel,
        hz: 250,
        tunables,
        limits,
        ..Setup::default()
    }
    .rig()
}

/// Adds requests at the current jiffy, all behind one at the device, so that
/// the driver asks for the next exactly when that one completes.
fn add(r: &mut Rig, bios: &[&str]) {
    let t = r.task();
    if r.at_device.is_empty() {
        r.submit(t, "R 900000+8");
        r.enter(blklab_block::sq::Queue::unplug);
        r.events();
    }
    for b in bios {
        r.submit(t, b);
    }
}

/// One call of dispatch.
fn disp(r: &mut Rig) -> String {
    r.complete_first();
    let d = r.only("D");
    d.last()
        .cloned()
        .unwrap_or_default()
        .split('+')
        .next()
        .unwrap_or("")
        .to_owned()
}

fn order(
    kernel: &'static str,
    tunables: &'static [(&'static str, i64)],
    bios: &[&str],
) -> Vec<String> {
    let mut r = rig(kernel, tunables);
    add(&mut r, bios);
    r.until_jiffy(1);
    r.only("D");
    (0..bios.len()).map(|_| disp(&mut r)).collect()
}

fn check(tunables: &'static [(&'static str, i64)], bios: &[&str], expected: [&[&str]; 5]) {
    for (kernel, expected) in V.into_iter().zip(expected) {
        assert_eq!(order(kernel, tunables, bios), expected, "kernel {kernel}");
    }
}

#[test]
fn d1_first_choice() {
    let oldest: &[&str] = &["1000", "200", "600"];
    check(
        &[],
        &["R 1000+8", "R 200+8", "R 600+8"],
        [&["200", "600", "1000"], oldest, oldest, oldest, oldest],
    );
}

#[test]
fn d2_batch_and_gaps() {
    let reads: Vec<String> = (0..20).map(|i| format!("R {}+8", i * 16)).collect();
    let mut bios: Vec<&str> = reads.iter().map(String::as_str).collect();
    bios.push("W 100000+8");
    let sectors: Vec<String> = (0..20).map(|i| (i * 16).to_string()).collect();
    let gaps_end_it: Vec<&str> = ["0", "16", "100000"]
        .into_iter()
        .chain(sectors[2..].iter().map(String::as_str))
        .collect();
    let gaps_pass: Vec<&str> = sectors
        .iter()
        .map(String::as_str)
        .chain(["100000"])
        .collect();
    check(
        &[],
        &bios,
        [
            &gaps_end_it,
            &gaps_end_it,
            &gaps_pass,
            &gaps_pass,
            &gaps_pass,
        ],
    );
}

#[test]
fn d3_batch_without_gaps() {
    // Neighbours that never merge: added from the top down with front merges
    // off would still merge by the hash, so the sizes forbid it.
    for (kernel, before_write) in V.into_iter().zip([17, 20, 20, 20, 20]) {
        let mut r = Setup {
            kernel,
            hz: 250,
            limits: unmerged,
            ..Setup::default()
        }
        .rig();
        let reads: Vec<String> = (0..20).map(|i| format!("R {}+8", i * 8)).collect();
        let mut bios: Vec<&str> = reads.iter().map(String::as_str).collect();
        bios.push("W 100000+8");
        add(&mut r, &bios);
        r.until_jiffy(1);
        r.only("D");
        let got: Vec<String> = (0..21).map(|_| disp(&mut r)).collect();
        let at = got.iter().position(|s| s == "100000");
        assert_eq!(at, Some(before_write), "kernel {kernel}: {got:?}");
    }
}

const DESCENDING: [&str; 8] = [
    "R 60000+8",
    "R 50000+8",
    "R 40000+8",
    "R 30000+8",
    "R 20000+8",
    "R 10000+8",
    "W 500+8",
    "W 508+4",
];

#[test]
fn d4_starvation_with_single_requests() {
    let v1: &[&str] = &[
        "10000", "20000", "500", "30000", "40000", "508", "50000", "60000",
    ];
    let rest: &[&str] = &[
        "60000", "50000", "500", "40000", "30000", "508", "20000", "10000",
    ];
    // The two writes would merge; a size limit keeps them apart.
    for (kernel, expected) in V.into_iter().zip([v1, rest, rest, rest, rest]) {
        assert_eq!(
            unmerged_order(kernel, &[("fifo_batch", 1)]),
            expected,
            "kernel {kernel}"
        );
    }
}

#[test]
fn d5_starvation_with_batches() {
    let v1: &[&str] = &[
        "10000", "20000", "500", "508", "30000", "40000", "50000", "60000",
    ];
    let rest: &[&str] = &[
        "60000", "50000", "500", "508", "40000", "30000", "20000", "10000",
    ];
    for (kernel, expected) in V.into_iter().zip([v1, rest, rest, rest, rest]) {
        assert_eq!(unmerged_order(kernel, &[]), expected, "kernel {kernel}");
    }
}

/// One request at a time, of at most eight sectors, and no early unplug.
fn unmerged(l: &mut blklab_block::sq::Limits) {
    l.queue_depth = 1;
    l.unplug_thresh = 1000;
    l.fetch = blklab_block::sq::Fetch::CheckThenPeek;
    l.queue.max_sectors = 8;
}

fn unmerged_order(kernel: &'static str, tunables: &'static [(&'static str, i64)]) -> Vec<String> {
    let mut r = Setup {
        kernel,
        hz: 250,
        tunables,
        limits: unmerged,
        ..Setup::default()
    }
    .rig();
    add(&mut r, &DESCENDING);
    r.until_jiffy(1);
    r.only("D");
    (0..8).map(|_| disp(&mut r)).collect()
}

#[test]
fn d6_expiry_at_the_exact_jiffy() {
    let expected = [
        ["50", "100", "200"],
        ["100", "200", "50"],
        ["100", "200", "50"],
        ["100", "200", "50"],
        ["100", "50", "200"],
    ];
    for (kernel, expected) in V.into_iter().zip(expected) {
        let mut r = rig(kernel, &[("fifo_batch", 1)]);
        add(&mut r, &["R 100+8", "R 50+8", "R 200+8"]);
        let mut got = Vec::new();
        for jiffy in [1, 125, 126] {
            r.until_jiffy(jiffy);
            r.only("D");
            got.push(disp(&mut r));
        }
        assert_eq!(got, expected, "kernel {kernel}");
    }
}

#[test]
fn d7_equal_start_sectors() {
    let expected = [
        ["100+8", "50+8", "100+16"],
        ["100+8", "100+16", "50+8"],
        ["100+8", "100+16", "50+8"],
        ["100+8", "100+16", "50+8"],
        ["100+8", "100+16", "50+8"],
    ];
    for (kernel, expected) in V.into_iter().zip(expected) {
        let mut r = rig(kernel, &[]);
        add(&mut r, &["R 100+8"]);
        for (jiffy, b) in [(1, "R 100+16"), (2, "R 50+8")] {
            r.until_jiffy(jiffy - 1);
            let t = r.task();
            r.submit(t, b);
        }
        r.only("D");
        let mut got = Vec::new();
        for _ in 0..3 {
            r.complete_first();
            got.extend(r.only("D"));
        }
        assert_eq!(got, expected, "kernel {kernel}");
    }
}

#[test]
fn d8_fifo_place_after_a_request_merge() {
    for kernel in ["2.6.24", "2.6.28", "3.1", "4.19"] {
        let mut r = rig(kernel, &[]);
        add(&mut r, &["R 108+8"]);
        r.until_jiffy(5);
        add(&mut r, &["R 500+8"]);
        r.until_jiffy(10);
        add(&mut r, &["R 92+8"]);
        r.until_jiffy(11);
        r.events();
        add(&mut r, &["R 100+8"]);
        assert_eq!(
            r.events(),
            ["Q 100+8", "F 100+8", "MM 92+24"],
            "kernel {kernel}"
        );
        r.until_jiffy(12);
        assert_eq!(
            [disp(&mut r), disp(&mut r)],
            ["92", "500"],
            "kernel {kernel}"
        );
    }
}

#[test]
fn d9_requests_behind_the_head_position_are_passed_over() {
    let rest = ["1000", "1100", "1050", "10"];
    let expected = [["1000", "1100", "10", "1050"], rest, rest, rest, rest];
    for (kernel, expected) in V.into_iter().zip(expected) {
        let mut r = rig(kernel, &[]);
        add(&mut r, &["R 1000+8", "R 1100+8"]);
        r.until_jiffy(1);
        r.only("D");
        let mut got = vec![disp(&mut r)];
        add(&mut r, &["R 1050+8", "R 10+8"]);
        got.extend((0..3).map(|_| disp(&mut r)));
        assert_eq!(got, expected, "kernel {kernel}");
    }
}

#[test]
fn d10_front_merges_can_be_switched_off() {
    for (front_merges, expected) in [(0, "G 92+8"), (1, "F 92+8")] {
        let tunables: &'static [(&str, i64)] = if front_merges == 0 {
            &[("front_merges", 0)]
        } else {
            &[]
        };
        let mut r = rig("2.6.28", tunables);
        add(&mut r, &["R 500+8", "R 100+8"]);
        r.events();
        add(&mut r, &["R 92+8"]);
        assert_eq!(r.events()[1], expected);
    }
}

#[test]
fn d11_writes_starved_zero() {
    for kernel in ["2.6.24", "2.6.28", "3.1", "4.19"] {
        let tunables = &[("writes_starved", 0), ("fifo_batch", 1)];
        let mut r = Setup {
            kernel,
            hz: 250,
            tunables,
            limits: unmerged,
            ..Setup::default()
        }
        .rig();
        add(&mut r, &["R 0+8", "R 8+8", "W 100+8", "W 108+8"]);
        r.until_jiffy(1);
        r.only("D");
        let got: Vec<String> = (0..4).map(|_| disp(&mut r)).collect();
        assert_eq!(got, ["100", "108", "0", "8"], "kernel {kernel}");
    }
}
