// SPDX-License-Identifier: MIT OR Apache-2.0
//! Excerpts of traces that experts explained in public, where they are: what they said
//! must be said, and nothing else as surely.

use blklab_analysis::findings::{Confidence, Context, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::path::Path;

/// What a report must say: the first finding, and texts anywhere in findings or words.
struct Case {
    nr: &'static str,
    first: Option<&'static str>,
    said: &'static [&'static str],
}

/// This list may only grow.
const CASES: &[Case] = &[
    case(
        "02",
        Some("missed-merge"),
        &["xxxx (2885275)", "up to 4 KiB", "plug"],
    ),
    case(
        "04",
        Some("misaligned"),
        &["2056 + 1", "2080 + 7", "physical_block_size"],
    ),
    case("06", Some("split"), &["multiple of 256 sectors", "chunk"]),
    case(
        "08",
        Some("small-discards"),
        &["of 8 sectors", "of 1016 sectors", "going down"],
    ),
    case(
        "11",
        Some("dependent-read"),
        &["right before and right behind", "xfs_io (907)"],
    ),
    case(
        "12",
        None,
        &["1 request was merged into another", "inferred"],
    ),
    case("14", None, &["flushing explains no long wait here"]),
    case(
        "15",
        Some("misaligned"),
        &["1024 sectors inside", "optimal_io_size"],
    ),
    case("17", None, &["20.0 ms the longest", "after the last flush"]),
    case("20", Some("write-order"), &["zoned", "order"]),
    case("22", Some("limited-passthrough"), &["depth of 8", "bypass"]),
    case(
        "25",
        Some("rate-capped"),
        &["reads and writes", "rate limit below"],
    ),
    case("27", Some("flush"), &["9.09 ms", "flushed behind the data"]),
    case("28", None, &["no I"]),
    case("32", Some("false-latency"), &["No latency", "lost"]),
    case(
        "34",
        Some("journal-chain"),
        &["fio (90790)", "at the device"],
    ),
];

const fn case(
    nr: &'static str,
    first: Option<&'static str>,
    said: &'static [&'static str],
) -> Case {
    Case { nr, first, said }
}

fn report(path: &Path) -> Report {
    let mut search = Search::all(Context::default());
    let mut file = TraceFile::open(path).expect("a trace");
    file.send_all(&mut search).expect("a trace");
    let counts = file.counts();
    search.finish(Reading {
        lost: counts.lost + counts.left_out,
        elided: counts.elided,
        losses_unsaid: !file.says_losses(),
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for f in &report.findings {
        text += &format!("{} {} {} {}\n", f.kind, f.confidence.word(), f.what, f.how);
        text += &format!(
            "{} {:?} {:?}\n",
            f.missing.join("; "),
            f.victims,
            f.remedies
        );
    }
    for d in &report.devices {
        text += &format!("{} {}\n", d.dev.major, d.words.join(" "));
    }
    text
}

#[test]
fn what_experts_said_is_said() {
    let Some(shared) = blklab_testkit::shared("data/answers") else {
        return;
    };
    let mut wrong = Vec::new();
    for case in CASES {
        let report = report(&shared.join(format!("{}.txt", case.nr)));
        let text = text(&report);
        let first = report.findings.first().map(|f| f.kind);
        if first != case.first || !case.said.iter().all(|s| text.contains(s)) {
            wrong.push(format!("{}: {first:?}\n{text}", case.nr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Traces of machines where nobody said that anything is wrong: what is found there is
/// not said to be certain.
#[test]
fn nothing_is_certain_of_traces_that_nobody_complained_of() {
    let Some(shared) = blklab_testkit::shared("data/real-traces") else {
        return;
    };
    let names = [
        "centos/sda.blktrace.0",
        "keks/keks.blktrace.0",
        "one-file/sample.blktrace.0",
    ];
    for name in names {
        let report = report(&shared.join(name));
        let sure = |f: &&blklab_analysis::findings::Finding| f.confidence == Confidence::Certain;
        let certain: Vec<_> = report.findings.iter().filter(sure).collect();
        println!("{name}:\n{}", text(&report));
        assert!(certain.is_empty(), "{name}: {}", text(&report));
    }
}
