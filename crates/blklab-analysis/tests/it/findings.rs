// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings in traces that people posted.

use blklab_analysis::findings::{Confidence, Cost, Search};
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::TraceSource as _;

fn sample(name: &str) -> Search {
    let path = blklab_testkit::root().join("testdata/blkparse").join(name);
    let text = std::fs::read(path).expect("the sample");
    let mut search = Search::all();
    let mut reader = BlkparseReader::new(&text[..], name);
    reader.send_all(&mut search).expect("a trace");
    search
}

#[test]
fn the_missed_merge_of_2008_is_found_with_its_events() {
    let found = sample("missed-merge.txt").finish();
    assert_eq!(found.len(), 1, "{found:#?}");
    let f = &found[0];
    assert_eq!((f.kind, f.cost), ("missed-merge", Cost::Commands(1)));
    assert_eq!(f.victims[0].comm.as_deref(), Some("pdflush"));
    assert_eq!(
        f.figures[..2],
        [
            ("first request", 376, "sectors"),
            ("second request", 248, "sectors"),
        ]
    );
    // I and I of both, D of the first: lines 4, 13 and 16.
    assert_eq!(f.evidence, [3, 12, 15]);
    // No request of 624 sectors is in these lines.
    assert_eq!(f.confidence, Confidence::Possible);
    assert_eq!(f.cost.to_string(), "1 command more than needed");
}

#[test]
fn the_stall_of_a_synchronous_writer_is_found() {
    let found = sample("sync-write-2.6.24.txt").finish();
    assert_eq!(found.len(), 1, "{found:#?}");
    let f = &found[0];
    assert_eq!((f.kind, f.confidence), ("stall", Confidence::Certain));
    assert_eq!(f.cost, Cost::WaitedNs(767_878_989));
    let victim = &f.victims[0];
    assert_eq!(
        (victim.pid, victim.comm.as_deref(), victim.bios),
        (2761, Some("python"), 4)
    );
    // Nothing went to the device meanwhile.
    assert_eq!(f.causes, []);
    // The first Q and the D.
    assert_eq!(f.evidence, [0, 9]);
}

#[test]
fn what_waits_less_and_has_no_neighbour_is_no_finding() {
    let mut search = Search::all();
    let text = "8,0 0 1 0.0 7 Q W 8 + 8 [p]\n8,0 0 2 0.0 7 G W 8 + 8 [p]\n\
                8,0 0 3 0.0 7 I W 8 + 8 [p]\n8,0 0 4 0.2 7 D W 8 + 8 [p]\n";
    let mut reader = BlkparseReader::new(text.as_bytes(), "text");
    reader.send_all(&mut search).expect("a trace");
    assert_eq!(search.finish(), []);
}
