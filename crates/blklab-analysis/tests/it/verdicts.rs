// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is answered to short traces as people paste them: a cause, what is ruled out, what is not
//! visible, and that nothing is wrong only where that is shown.

use blklab_analysis::findings::{Answer, Confidence, Context, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::path::Path;

/// The kinds whose traces are here.
pub(crate) const KINDS: [&str; 1] = ["buffer-stall"];

fn why_file(path: &Path) -> Report {
    let mut trace = TraceFile::open(path).expect("a trace");
    let mut search = Search::all(Context::default());
    if !trace.says_flags() {
        search = search.without_flags();
    }
    trace.send_all(&mut search).expect("it can be read");
    let reading = Reading {
        elided: trace.counts().elided,
        losses_unsaid: !trace.says_losses(),
        ..Reading::default()
    };
    search.finish(reading)
}

fn why(name: &str) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/why");
    why_file(&folder.join(name))
}

fn why_text(text: &str) -> Report {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    why_file(file.path())
}

/// What the verdict says of the slowest.
fn said_of_slowest(report: &Report) -> &str {
    let said = report.verdict.slowest.as_deref();
    said.expect("one is the slowest")
}

fn first(report: &Report) -> (&'static str, Confidence) {
    let shown: Vec<_> = report.findings.iter().map(|f| (f.kind, &f.what)).collect();
    let first = report.findings.first();
    first.map_or_else(|| panic!("{shown:?}"), |f| (f.kind, f.confidence))
}

/// In a passage that was left out, the device may have got what ends later.
#[test]
fn what_the_device_had_is_said_of_what_is_shown() {
    let d = "db 9 [000] 1.000000: block:block_rq_issue: 8,0 R 0 () 800 + 8 [db]\n";
    let c = "swapper 0 [000] 1.001000: block:block_rq_complete: 8,0 R () 16000 + 8 [0]\n";
    let end = "swapper 0 [000] 1.013000: block:block_rq_complete: 8,0 R () 800 + 8 [0]\n";
    let cut = why_text(&format!("[...]\n{d}{c}{end}[...]\n"));
    let said = said_of_slowest(&cut);
    assert!(
        said.contains("the device had nothing else of what is shown when"),
        "{said}"
    );
    let whole = why_text(&format!("{d}{end}"));
    let said = said_of_slowest(&whole);
    assert!(said.contains("the device had nothing else when"), "{said}");
}

/// No sync flag is shown; who waits is told by what the processes do, and said as inferred.
#[test]
fn writers_in_turn_wait_for_a_slow_device() {
    let report = why("biosnoop-sync-writers.txt");
    assert_eq!(first(&report), ("device-slow", Confidence::Likely));
    let f = &report.findings[0];
    assert_eq!(
        (f.count, f.worst_ns.map(|ns| ns / 1_000_000)),
        (3, Some(1310))
    );
    let who: Vec<_> = f.victims.iter().filter_map(|p| p.comm.as_deref()).collect();
    assert!(
        who.contains(&"storaged") && who.contains(&"jbd2/sdb1-8"),
        "{who:?}"
    );
    let said = f.missing.join("; ");
    assert!(
        said.contains("does not show which writes are sync"),
        "{said}"
    );
    assert_eq!(report.verdict.answer, Answer::Cause);
    let hidden = &report.verdict.not_visible;
    assert!(
        hidden.iter().any(|n| n.what.contains("storaged")),
        "{hidden:?}"
    );
}

/// Flushers write for nobody in particular, whatever the tool shows.
#[test]
fn nobody_waits_for_a_flusher() {
    let mut text =
        "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n".to_owned();
    for n in 0..40_u64 {
        let (us, took) = (n * 3000, if n == 20 { 400.0 } else { 1.0 });
        let sector = n * 100_000;
        text += &format!(
            "{}.{:06} kworker/u16:3 77 sda W {sector} 65536 {took:.2}\n",
            us / 1_000_000 + 1,
            us % 1_000_000
        );
    }
    let report = why_text(&text);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.verdict.answer, Answer::NotVisible);
    let said = &report.verdict.sentence;
    assert!(said.contains("none is known to be waited for"), "{said}");
}

/// Few requests, one of them far slower: that one is what is asked about.
#[test]
fn one_outlier_among_few() {
    let report = why("biosnoop-one-outlier.txt");
    assert_eq!(first(&report), ("device-slow", Confidence::Possible));
    let verdict = &report.verdict;
    let slowest = verdict.slowest.as_deref().expect("one is the slowest");
    assert!(
        slowest.contains("655.2 ms") && slowest.contains("maild"),
        "{slowest}"
    );
    assert!(slowest.contains("the other 25 take"), "{slowest}");
    let command = verdict.record.as_deref().expect("a command");
    assert!(command.starts_with("sudo blklab record sda"), "{command}");
}

#[test]
fn a_single_read_is_explained_as_far_as_it_goes() {
    let report = why("single-read.txt");
    assert_eq!(first(&report), ("device-slow", Confidence::Possible));
    let slowest = said_of_slowest(&report);
    assert!(
        slowest.contains("47.7 ms") && slowest.contains("shard-3 (2209)"),
        "{slowest}"
    );
    assert!(
        slowest.contains("it is not known whether that is long"),
        "{slowest}"
    );
    assert_eq!(report.verdict.slowest_events, [1, 2]);
}

/// D and C alone, nothing stands out: what came before the device is not shown.
#[test]
fn an_excerpt_is_no_proof() {
    let report = why("elided.txt");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let verdict = &report.verdict;
    assert_eq!(verdict.answer, Answer::NotVisible);
    for said in [
        "2 requests",
        "before the device is not shown",
        "events are missing",
    ] {
        assert!(verdict.sentence.contains(said), "{}", verdict.sentence);
    }
    assert!(verdict.record.is_some());
}

#[test]
fn fields_that_are_0_are_there_all_the_same() {
    let report = why("perf-trace-flushes.txt");
    assert_eq!(first(&report).0, "flush");
    let f = &report.findings[0];
    assert_eq!(
        (f.count, f.victims[0].to_string()),
        (3, "jbd2/vdb1-8".to_owned())
    );
    assert!(f.worst_ns.is_some_and(|ns| ns > 19_000_000), "{f:?}");
    // What is found is not ruled out.
    let out: Vec<_> = report.verdict.ruled_out.iter().map(|r| r.what).collect();
    assert_eq!(out, ["errors and requeues"]);
}

#[test]
fn commands_of_drivers_alone_are_io() {
    let report = why("nvme-commands.txt");
    let kinds: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
    assert!(
        kinds.contains(&"command-fault") || kinds.contains(&"io-error"),
        "{kinds:?}"
    );
    let sum = &report.devices[0].sum;
    assert_eq!((sum.waited.requests, sum.flushes), (2, (1, 38_000_000)));
    let slowest = said_of_slowest(&report);
    assert!(
        slowest.contains("8208 + 16") && slowest.contains("1.70 s"),
        "{slowest}"
    );
    let report = why("ufs-commands.txt");
    assert_eq!(first(&report).0, "flush");
    let report = why("mmc-requests.txt");
    let slowest = said_of_slowest(&report);
    assert!(
        slowest.starts_with("R 8192 + 16") && slowest.contains("2.40 ms"),
        "{slowest}"
    );
}

#[test]
fn stalls_for_a_buffer_are_evidence_by_themselves() {
    let report = why("buffer-stalls.txt");
    assert_eq!(first(&report), ("buffer-stall", Confidence::Certain));
    let all: Vec<_> = report.findings.iter().flat_map(|f| &f.victims).collect();
    let delays: Vec<_> = all
        .iter()
        .map(|p| (p.comm.as_deref(), p.delay_ns))
        .collect();
    assert!(delays.contains(&(Some("mua"), 5_160_000_000)), "{delays:?}");
    assert!(
        delays.contains(&(Some("flush-8:16"), 2_240_000_000)),
        "{delays:?}"
    );
    let command = report.verdict.record.as_deref().expect("a command");
    assert!(command.contains("record sdb"), "{command}");
}

/// Reads one at a time, each in 200 us or a little more, for as long as is said.
fn reads(n: u64, every_us: u64, slow: Option<u64>) -> String {
    let mut text = String::new();
    let mut nr = 0;
    for k in 0..n {
        let from = k * every_us;
        let took = if slow == Some(k) {
            9_000
        } else {
            200 + k * 7 % 20
        };
        let sector = k * 7919 % 1000 * 1000;
        for (at, action) in [(0, "Q"), (0, "G"), (1, "I"), (2, "D"), (2 + took, "C")] {
            nr += 1;
            let us = from + at;
            let of = if action == "C" { "0" } else { "app" };
            text += &format!(
                "8,0 0 {nr} {}.{:06}000 5 {action} R {sector} + 8 [{of}]\n",
                us / 1_000_000,
                us % 1_000_000
            );
        }
    }
    text
}

#[test]
fn nothing_is_wrong_only_where_that_is_shown() {
    let report = why_text(&reads(400, 10_000, None));
    assert_eq!(
        report.verdict.answer,
        Answer::NothingWrong,
        "{:?}",
        report.verdict
    );
    assert_eq!(report.verdict.sentence, "Nothing is wrong here.");
    assert_eq!(report.verdict.record, None);
    let out: Vec<_> = report.verdict.ruled_out.iter().map(|r| r.what).collect();
    assert_eq!(
        out,
        [
            "requests and tags (Q-G)",
            "the plug (G-I)",
            "the scheduler (I-D)",
            "flushes",
            "errors and requeues"
        ]
    );
    let few = why_text(&reads(40, 10_000, None));
    assert_eq!(few.verdict.answer, Answer::NotVisible);
    let short = why_text(&reads(400, 300, None));
    assert!(
        short.verdict.sentence.contains("it is short"),
        "{}",
        short.verdict.sentence
    );
    // The lines of D and C alone: what came before is not shown.
    let parts = |line: &&str| line.contains(" D ") || line.contains(" C ");
    let of_device: Vec<_> = reads(400, 10_000, None)
        .lines()
        .filter(parts)
        .map(str::to_owned)
        .collect();
    let report = why_text(&of_device.join("\n"));
    assert_eq!(report.verdict.answer, Answer::NotVisible);
    let hidden = &report.verdict.not_visible[0].what;
    assert!(hidden.contains("before the device"), "{hidden}");
}

/// What JSON says leads to the events.
#[test]
fn answers_are_data_too() {
    let report = why_text(&reads(400, 10_000, Some(200)));
    let json = serde_json::to_value(&report).expect("it has a form");
    let verdict = &json["verdict"];
    assert_eq!(verdict["slowest_events"][0], 1001);
    let scheduler = &verdict["ruled_out"][2];
    assert_eq!(scheduler["what"], "the scheduler (I-D)");
    assert!(
        scheduler["events"]
            .as_array()
            .is_some_and(|e| !e.is_empty()),
        "{scheduler}"
    );
}

/// Who records D and C alone wants what the device takes more than anything else.
#[test]
fn statistics_without_q() {
    let text: Vec<_> = reads(3, 10_000, Some(1))
        .lines()
        .filter(|line| line.contains(" D ") || line.contains(" C "))
        .map(str::to_owned)
        .collect();
    let mut stats = blklab_analysis::collect::StatsCollector::new();
    let text = text.join("\n");
    let mut reader = blklab_formats::blkparse::BlkparseReader::new(text.as_bytes(), "text");
    reader.send_all(&mut stats).expect("a trace");
    let stats = stats.finish();
    let shown = blklab_analysis::text::render(&stats, Default::default());
    let d2c = "(  8,  0) R       0.000200000   0.003138000   0.009000000           3";
    assert!(shown.contains(d2c), "{shown}");
    assert!(shown.contains("D2D"), "{shown}");
}

/// What a device of QEMU does, as it says itself.
#[test]
fn an_emulated_device_is_a_device() {
    let report = why("../qemu/nvme.txt");
    let slowest = said_of_slowest(&report);
    assert!(
        slowest.starts_with("W 2048 + 16") && slowest.contains("41.8 ms"),
        "{slowest}"
    );
    let kinds: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
    assert!(kinds.contains(&"flush"), "{kinds:?}");
    let sum = &report.devices[0].sum;
    assert_eq!((sum.waited.requests, sum.background.requests), (2, 0));
}
