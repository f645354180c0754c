// SPDX-License-Identifier: MIT OR Apache-2.0
//! What requests of multi-queue schedulers are said to have waited for.

use crate::mq_rig::MqRig;
use crate::mq_table::{MqTable, arrivals, series};
use crate::waits::shown;
use blklab_trace::truth::TruthSink;
use blklab_trace::{WaitLabels, Waited};
use std::cell::RefCell;

/// `sector: reason ms, ...` in order of dispatch.
fn labels(t: MqTable) -> Vec<String> {
    let lines = RefCell::new(Vec::new());
    let mut sink = WaitLabels::new(|w: &Waited<'_>| lines.borrow_mut().push(shown(w)));
    let feed = |r: &mut MqRig, sink: &mut dyn TruthSink| {
        for record in r.truths() {
            sink.truth(&record, "");
        }
    };
    t.run_with(|_, r| feed(r, &mut sink));
    drop(sink);
    lines.into_inner()
}

/// A slot stays free while the real-time request is at the device.
#[test]
fn a_higher_class_in_flight() {
    let a = arrivals("0 RT r1 5000; 0 BE b1 100; 1 BE b2 200");
    let got = labels(MqTable::new("6.1", "mq-deadline", 2, "10", a));
    assert_eq!(
        got,
        [
            "5000: ",
            "100: higher class in flight 10",
            "200: higher class in flight 9"
        ]
    );
}

#[test]
fn batches() {
    let mut a = series("0", "P", "r", 3, (1000, 8), "");
    a.extend(arrivals("0 P w 9000w"));
    let got = labels(MqTable::new("6.1", "mq-deadline", 1, "10", a.clone()));
    assert_eq!(got[3], "9000: read batch 30");
    let got = labels(MqTable::new("6.1", "kyber", 1, "10", a));
    assert_eq!(got[3], "9000: read batch 30");
}

/// All 64 tokens of discards are out; there would be slots for two more.
#[test]
fn tokens() {
    let a = series("0", "P", "d", 66, (1000, 8), "d");
    let mut t = MqTable::new("6.1", "kyber", 66, "10", a);
    t.setup.limits.queue_depth = 128;
    let got = labels(t);
    assert_eq!(got[63], "1504: ");
    assert_eq!(
        got[64..],
        ["1512: out of tokens 10", "1520: out of tokens 20"]
    );
}

/// The last read waits for its process's slot, the device idles for another.
#[test]
fn idling_of_bfq() {
    let a = "0 P1 A0 100000+64; 0 P1 A1 100064+64; 0 P1 A2 100128+64; 15 RT R0 5000";
    let mut t = MqTable::new("6.1", "bfq", 1, "10", arrivals(a)).with(&[("low_latency", 0)]);
    t.setup.limits.queue.rotational = true;
    let got = labels(t);
    assert_eq!(
        got,
        [
            "100000: ",
            "100064: behind others (100) 10",
            "5000: device full 5",
            "100128: behind others (100) 20, other queue's slice (101) 10, idling (101) 8",
        ]
    );
}
