// SPDX-License-Identifier: MIT OR Apache-2.0
//! What requests are said to have waited for.
//!
//! One request at a time, 10 ms each, fetched when the device is free.
//! Processes have pids 100, 101, ... in order of appearance.

use crate::rig::{Rig, Setup};
use crate::timetable::{Table, arrivals};
use blklab_block::IoContext;
use blklab_trace::truth::TruthSink;
use blklab_trace::{WaitLabels, Waited};
use blklab_types::{IoPrio, PrioClass};
use std::cell::RefCell;

/// `sector: reason pid ms, ...` of a request.
pub(crate) fn shown(w: &Waited<'_>) -> String {
    let waits = w.labels.iter().map(|l| {
        let ms = l.span.0 / 1_000_000;
        match l.pid {
            0 => format!("{} {ms}", l.why.text()),
            pid => format!("{} ({pid}) {ms}", l.why.text()),
        }
    });
    let waits: Vec<String> = waits.collect();
    format!("{}: {}", w.request.sector, waits.join(", "))
}

/// In order of hand-over.
fn labels(t: Table) -> Vec<String> {
    let lines = RefCell::new(Vec::new());
    let mut sink = WaitLabels::new(|w: &Waited<'_>| lines.borrow_mut().push(shown(w)));
    let feed = |r: &mut Rig, sink: &mut dyn TruthSink| {
        for record in r.truths() {
            sink.truth(&record, "");
        }
    };
    let (mut r, _) = t.run_with(|_, r| feed(r, &mut sink));
    feed(&mut r, &mut sink);
    drop(sink);
    lines.into_inner()
}

fn table(kernel: &'static str, sched: &'static str, what: &str) -> Table {
    Table {
        setup: Setup {
            kernel,
            sched,
            ..Setup::default()
        },
        service: |_| 10,
        arrivals: arrivals(what),
        ..Table::default()
    }
}

/// b and c come while a is served, so they wait for the device; at 10 b is
/// chosen and c passed over.
#[test]
fn noop_device_and_order() {
    let what = "0 A a 1000; 1 B b 500; 2 C c 9000";
    let expected = [
        "1000: ",
        "500: device full 9",
        "9000: device full 8, behind others 10",
    ];
    assert_eq!(labels(table("2.6.28", "noop", what)), expected);
    // Fetched in advance, b is the driver's from 1 on.
    let mut t = table("2.6.28", "noop", what);
    t.peek = true;
    let expected = ["1000: ", "500: device full 9", "9000: device full 18"];
    assert_eq!(labels(t), expected);
}

/// At 10 reads go first, at 20 as well; then it is the write's turn, and r4,
/// which came last, waits for it.
#[test]
fn deadline_batches() {
    let what = "0 A r1 1000; 1 F w1 90000w; 2 B r2 2000; 12 A r3 500; 22 A r4 100";
    let got = labels(table("2.6.28", "deadline", what));
    assert_eq!(
        got,
        [
            "1000: ",
            "2000: device full 8",
            "500: device full 8",
            "90000: device full 9, read batch 20",
            "100: device full 8, write batch 10",
        ]
    );
}

/// A has the slice, one request per round: a3 is behind a2, b1 waits for A's
/// slice, and from 30 to 38 for A to come back.
#[test]
fn cfq_slices_and_idling() {
    let what = "0 A a1 1000; 1 B b1 5000; 2 A a2 1008; 3 A a3 1016";
    let mut t = table("2.6.18", "cfq", what);
    t.setup.tunables = &[("quantum", 1)];
    assert_eq!(
        labels(t),
        [
            "1000: ",
            "1008: device full 8",
            "1016: device full 7, behind others (100) 10",
            "5000: device full 9, other queue's slice (100) 20, idling (100) 8",
        ]
    );
}

/// i1 waits for a1 at the device, for A to come back, and for a quiet disk
/// until 10 + 100.
#[test]
fn cfq_idle_class() {
    let mut t = table("2.6.18", "cfq", "0 A a1 1000; 1 I i1 3000");
    t.processes = |name: &str, ioc: &mut IoContext| {
        if name == "I" {
            ioc.ioprio = IoPrio {
                class: PrioClass::Idle,
                level: 7,
            };
        }
    };
    assert_eq!(
        labels(t),
        [
            "1000: ",
            "3000: device full 9, idling (100) 8, idle class (101) 92",
        ]
    );
}

#[test]
fn plugged_requests_wait_for_the_plug() {
    let mut r = Setup {
        kernel: "2.6.28",
        sched: "deadline",
        ..Setup::default()
    }
    .rig();
    let t = r.task();
    r.submit(t, "R 1000+8");
    r.until_jiffy(2);
    r.submit(t, "R 1008+8");
    r.submit(t, "R 5000+8");
    r.until_jiffy(10);
    r.complete_first();
    let mut lines = Vec::new();
    let mut sink = WaitLabels::new(|w: &Waited<'_>| lines.push(shown(w)));
    for record in r.truths() {
        sink.truth(&record, "");
    }
    // The second bio joined the first request. The plug goes at 3; the driver
    // fetches the other request at once, and waits for the device.
    assert_eq!(lines, ["1000: plugged 3", "5000: plugged 1, device full 7"]);
}

/// A is waited for twice: until a2 comes at 12, and in vain until 28; then B,
/// until 44. Only then is it the writer's turn.
#[test]
fn anticipatory_waits_and_batches() {
    let what = "0 A a1 1000; 1 W w1 900000w; 12 A a2 1008; 13 B b1 500000000";
    assert_eq!(
        labels(table("2.6.28", "anticipatory", what)),
        [
            "1000: ",
            "1008: ",
            "500000000: device full 9, idling (100) 6",
            "900000: device full 9, idling (100) 2, read batch (100) 10, idling (100) 6, \
             read batch (102) 10, idling (102) 6",
        ]
    );
}

/// A's five requests keep the device busy until 15, then A is idled for. B
/// seeks: 2.6.28 does not idle for it, and the write waits only for the read
/// at the device; with low latency the write waits for B's idling as well.
#[test]
fn cfq_in_flight_idling_and_sync_in_flight() {
    let reasons = |kernel| {
        let mut arrived = crate::timetable::series(0, "A", "a", 5, 1000, 8, "");
        arrived.extend(arrivals("1 B b1 500000; 1 F w1 900000w"));
        let mut t = table(kernel, "cfq", "");
        (t.depth, t.arrivals) = (8, arrived);
        t.service = |_| 3;
        if kernel == "4.19" {
            (t.setup.hz, t.tick_ns) = (250, 1_000_000);
        }
        labels(t)[5..].to_vec()
    };
    let b1 = "500000: served queue in flight (100) 14, idling (100) 8";
    let w1 = "900000: served queue in flight (100) 14, idling (100) 8";
    assert_eq!(reasons("2.6.28"), [b1, &format!("{w1}, sync in flight 3")]);
    for kernel in ["2.6.32", "2.6.33", "4.19"] {
        let w1 = format!("{w1}, served queue in flight (101) 3, idling (101) 8");
        assert_eq!(reasons(kernel), [b1, &w1], "{kernel}");
    }
}

/// Beside B, A has four requests at the device, and one more with each that
/// comes back: every 3 ms from 3 on.
#[test]
fn cfq_quantum() {
    for kernel in ["2.6.30", "2.6.33"] {
        let mut arrived = crate::timetable::series(0, "A", "a", 6, 1000, 8, "");
        arrived.extend(arrivals("0 B b1 1100"));
        let mut t = table(kernel, "cfq", "");
        (t.depth, t.arrivals) = (8, arrived);
        t.service = |_| 3;
        let got = labels(t);
        assert_eq!(
            got[4..6],
            [
                "1032: quantum reached (100) 3",
                "1040: quantum reached (100) 6"
            ],
            "{kernel}: {got:#?}"
        );
    }
}
