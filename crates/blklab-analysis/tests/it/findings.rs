// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings in traces that people posted.

use blklab_analysis::findings::{Confidence, Context, Finding, Reading, Report, Search};
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::TraceSource as _;

fn report(text: &[u8], name: &str, context: &str) -> Report {
    let context = Context::parse(context).expect("a context");
    let mut search = Search::all(context);
    let mut reader = BlkparseReader::new(text, name);
    reader.send_all(&mut search).expect("a trace");
    let counts = reader.counts();
    search.finish(Reading {
        lost: counts.lost,
        elided: counts.elided,
        ..Reading::default()
    })
}

fn sample(name: &str) -> Vec<Finding> {
    let path = blklab_testkit::root().join("testdata/blkparse").join(name);
    let text = std::fs::read(path).expect("the sample");
    report(&text, name, "").findings
}

fn numbers(f: &Finding) -> Vec<u64> {
    let first = f.first.as_ref().expect("an instance");
    first.evidence.iter().map(|e| e.number).collect()
}

#[test]
fn the_missed_merge_of_2008_is_found_with_its_events() {
    let found = sample("missed-merge.txt");
    assert_eq!(found.len(), 1, "{found:#?}");
    let f = &found[0];
    assert_eq!((f.kind, f.extra_commands), ("missed-merge", Some(1)));
    assert_eq!(f.victims[0].comm.as_deref(), Some("pdflush"));
    assert!(f.what.contains("376 and 248 sectors"), "{}", f.what);
    // Q, G, I and D of both: lines 1, 2, 4, 16 and 11, 12, 13, 17.
    assert_eq!(numbers(f), [1, 2, 4, 11, 12, 13, 16, 17]);
    // No request of 624 sectors is in these lines.
    assert_eq!(f.confidence, Confidence::Possible);
}

#[test]
fn writes_held_back_from_an_idle_device_are_found() {
    let found = sample("sync-write-2.6.24.txt");
    assert_eq!(found.len(), 1, "{found:#?}");
    let f = &found[0];
    assert_eq!((f.kind, f.confidence), ("held-back", Confidence::Likely));
    assert_eq!(f.worst_ns, Some(767_856_976));
    let victim = &f.victims[0];
    assert_eq!((victim.pid, victim.comm.as_deref()), (2761, Some("python")));
    assert_eq!(f.causes, []);
    // Q, I and D.
    assert_eq!(numbers(f), [1, 3, 10]);
    assert!(!f.missing.is_empty());
}

#[test]
fn eight_writes_held_back_are_one_finding() {
    let found = sample("sync-write-stall-2.6.26.txt");
    assert_eq!(found[0].kind, "held-back", "{found:#?}");
    let pids: Vec<u32> = found[0].victims.iter().map(|p| p.pid).collect();
    assert_eq!(pids, [4159, 4160]);
    assert_eq!(found[0].count, 8);
}

#[test]
fn what_waits_little_and_has_no_neighbour_is_no_finding() {
    let text = "8,0 0 1 0.0 7 Q W 8 + 8 [p]\n8,0 0 2 0.0 7 G W 8 + 8 [p]\n\
                8,0 0 3 0.0 7 I W 8 + 8 [p]\n8,0 0 4 0.0001 7 D W 8 + 8 [p]\n";
    let report = report(text.as_bytes(), "text", "");
    assert_eq!(report.findings, []);
    // It says what is not shown.
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("No completions (C)"), "{words}");
}
