// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short excerpts: few requests, parts that tools or old kernels do not show. What is said of them,
//! and what must not be.

use blklab_analysis::findings::{Confidence, Context, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::io::Write as _;

/// The kinds whose traces are here.
pub(crate) const KINDS: [&str; 1] = ["reversed"];

fn why_with(text: &str, context: &str) -> Report {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("it can be written");
    let mut trace = TraceFile::open(file.path()).expect("a trace");
    let context = Context::parse(context).expect("a context");
    let mut search = Search::all(context);
    trace.send_all(&mut search).expect("it can be read");
    search.finish(Reading::default())
}

fn why(text: &str) -> Report {
    why_with(text, "")
}

/// Lines of blkparse with their times in us.
#[derive(Default)]
struct Lines(Vec<(u64, String)>);

impl Lines {
    fn line(&mut self, us: u64, pid: u32, action: &str, what: &str) {
        let (s, rest) = (us / 1_000_000, us % 1_000_000);
        let line = format!("{s}.{rest:06}000 {pid} {action} {what}\n");
        self.0.push((us, line));
    }

    /// A request with its times: Q, G and I, D, C.
    fn io(&mut self, [queue, get, issue, complete]: [u64; 4], who: (u32, &str), place: &str) {
        let (pid, comm) = who;
        self.line(queue, pid, "Q", &format!("{place} [{comm}]"));
        self.line(get, pid, "G", &format!("{place} [{comm}]"));
        self.line(get, pid, "I", &format!("{place} [{comm}]"));
        self.line(issue, pid, "D", &format!("{place} [{comm}]"));
        self.line(complete, 0, "C", &format!("{place} [0]"));
    }

    fn text(mut self) -> String {
        self.0.sort_by_key(|(us, _)| *us);
        let numbered = (1..).zip(&self.0);
        numbered
            .map(|(n, (_, line))| format!("8,0 0 {n} {line}"))
            .collect()
    }
}

/// Reads queued forward, and handed to the device from the last to the first.
fn plug_emptied_from_its_end(context: &str) -> Report {
    let mut lines = Lines::default();
    for batch in 0..3_u64 {
        let begin = batch * 5_000;
        for i in 0..6_u64 {
            let place = format!("R {} + 256", batch * 900_000 + i * 256);
            let issue = begin + 40 - i;
            lines.io(
                [begin + i, begin + i, issue, issue + 900],
                (33, "fio"),
                &place,
            );
        }
    }
    why_with(&lines.text(), context)
}

#[test]
fn requests_that_go_backward() {
    let report = plug_emptied_from_its_end("queue/rotational=1");
    let f = report.findings.iter().find(|f| f.kind == "reversed");
    let f = f.expect("it is found");
    assert_eq!((f.count, f.victims[0].pid), (18, 33));
    assert_eq!(f.confidence, Confidence::Certain);
    assert!(f.what.contains("up to 6 in a row"), "{}", f.what);
    assert!(f.how.contains("queued forward"), "{}", f.how);
    let flash = plug_emptied_from_its_end("queue/rotational=0");
    assert!(flash.findings.iter().all(|f| f.kind != "reversed"));
}

/// What a mapping hands to its devices, of which nothing else is shown; and a device of which D
/// alone is.
#[test]
fn a_mapping_hands_on_its_pieces_backward() {
    let mut mapped = String::from("9,0 1 1 0.500000000 77 Q WS 100000 + 8192 [dd]\n");
    let mut issued = String::new();
    for i in 0..5_u64 {
        let (n, above) = (i + 2, 108_184 - i * 1024);
        let below = 50_000 - i / 2 * 1024;
        let member = i % 2 * 16;
        mapped += &format!("8,{member} 1 {n} 0.50010000{i} 77 A WS {below} + 8 <- (9,0) {above}\n");
        let place = 90_000 - i * 2048;
        issued += &format!("259,1 0 {n} 0.00010000{i} 39 D R {place} + 2048 [ublk]\n");
    }
    let report = why(&mapped);
    let f = &report.findings[0];
    assert_eq!(
        (f.kind, f.dev.to_string(), f.count),
        ("reversed", "9,0".to_owned(), 5)
    );
    assert!(f.what.contains("devices below"), "{}", f.what);
    assert_eq!(f.first.as_ref().expect("one").evidence.len(), 4);
    let report = why(&issued);
    let f = &report.findings[0];
    assert_eq!((f.kind, f.confidence), ("reversed", Confidence::Possible));
}

/// Old kernels show no command of the flush in front of a commit record: the record waits for it,
/// and is not held back.
#[test]
fn a_flush_without_a_command_of_its_own() {
    let report = why("\
*8,0    0      399     3.313174047     0  C  WS 26024032 + 56 [0]*
*8,0    0      401     3.313200916   219  Q FWFS 26024088 + 8 [jbd2/sda2-8]*
*8,0    0      402     3.313201448   219  G FWFS 26024088 + 8 [jbd2/sda2-8]*
*8,0    0      404     3.313202322   219  I FWFS 26024088 + 8 [jbd2/sda2-8]*
*8,0    0      406     3.318909890     0  D  WS 26024088 + 8 [swapper]*
*8,0    0      407     3.319005492     0  C  WS 26024088 + 8 [0]*
");
    let kinds: Vec<&str> = report.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, ["flush"]);
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("98 % for cache flushes"), "{words}");
}

/// A request that is at the device for longer than drivers wait for one.
#[test]
fn few_others_show_that_one_never_ends() {
    let lost = |step_us: u64| {
        let mut lines = Lines::default();
        lines.line(0, 300, "Q", "WS 2048 + 8 [mkfs]");
        lines.line(1, 300, "G", "WS 2048 + 8 [mkfs]");
        lines.line(2, 300, "D", "WS 2048 + 8 [mkfs]");
        for i in 1..4_u64 {
            let at = i * step_us;
            let place = format!("R {} + 8", 90_000 + i * 800);
            lines.io([at, at, at + 5, at + 900], (301, "bash"), &place);
        }
        why(&lines.text())
    };
    let report = lost(12_000_000);
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("never-completed", 300));
    assert_eq!(f.confidence, Confidence::Possible);
    assert!(lost(1_000_000).findings.is_empty());
}

#[test]
fn one_request_of_a_few_takes_very_long() {
    let slow = |us: u64| {
        let mut lines = Lines::default();
        lines.io([0, 1, 5, 2_000], (60, "postgres"), "WS 4000 + 16");
        lines.io(
            [4_100, 4_101, 4_110, 5_000],
            (61, "walwriter"),
            "WS 9000 + 8",
        );
        lines.io(
            [6_100, 6_101, 6_110, 6_110 + us],
            (61, "walwriter"),
            "WS 9008 + 8",
        );
        why(&lines.text())
    };
    let report = slow(268_000);
    let f = &report.findings[0];
    assert_eq!(
        (f.kind, f.confidence),
        ("device-slow", Confidence::Possible)
    );
    assert!(
        f.what.contains("268.0 ms for a single request"),
        "{}",
        f.what
    );
    assert!(slow(15_000).findings.is_empty());
}

/// The first read of a trace comes to an idle device, which then serves later ones.
#[test]
fn a_read_that_the_device_passes_over() {
    let mut lines = Lines::default();
    lines.io([0, 1, 5, 310_000], (12, "mysqld"), "R 900000000 + 32");
    for i in 0..60_u64 {
        let at = 100 + i * 5_000;
        let place = format!("R {} + 256", 1_000 + i * 256);
        lines.io([at, at, at + 10, at + 4_800], (13, "backup"), &place);
    }
    let report = why(&lines.text());
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("device-slow", 12));
    assert!(
        f.how.contains("about 60 others that came later"),
        "{}",
        f.how
    );
}

/// From Q to G while the device has nothing: it is no lack of requests.
#[test]
fn who_waits_for_a_request_while_none_is_in_use() {
    let held = |letters: &str| {
        let mut lines = Lines::default();
        for i in 0..8_u64 {
            let at = i * 32_000;
            let place = format!("{letters} {} + 1024", 40_000 + i * 99_000);
            lines.io(
                [at, at + 30_000, at + 30_010, at + 31_000],
                (44, "dd"),
                &place,
            );
        }
        why(&lines.text())
    };
    let writes = held("WS");
    let f = &writes.findings[0];
    assert_eq!((f.kind, f.confidence), ("wbt-likely", Confidence::Possible));
    let reads = held("R");
    let f = &reads.findings[0];
    assert_eq!(
        (f.kind, f.confidence),
        ("no-request-free", Confidence::Possible)
    );
    assert!(f.how.contains("Hardly any are in use"), "{}", f.how);
}

/// Who dispatches is not who writes.
#[test]
fn writes_of_part_of_a_block_are_their_writers() {
    let mut lines = Lines::default();
    for i in 0..3_u64 {
        let (at, place) = (i * 9_000, format!("WS {} + 2", 2_126 + i * 40));
        lines.line(at, 157, "Q", &format!("{place} [writer]"));
        lines.line(at + 1, 157, "G", &format!("{place} [writer]"));
        lines.line(at + 2, 157, "I", &format!("{place} [writer]"));
        lines.line(at + 9, 161, "D", &format!("{place} [kworker/0:1H]"));
        lines.line(at + 2_000, 229, "C", &format!("{place} [0]"));
    }
    let report = why(&lines.text());
    let f = &report.findings[0];
    assert_eq!(f.kind, "misaligned");
    let pids: Vec<u32> = f.victims.iter().map(|p| p.pid).collect();
    assert_eq!(pids, [157]);
}

/// One write of a process waits behind a stream; the pause before the stream's end is no finding.
#[test]
fn a_pause_in_which_nobody_suffers_is_not_told() {
    let mut lines = Lines::default();
    lines.io([0, 1, 900_000, 904_000], (90, "sync"), "WS 900000000 + 8");
    for i in 0..220_u64 {
        let at = 100 + i * 4_000;
        let place = format!("WS {} + 1024", 1_000 + i * 1024);
        lines.io([at, at, at + 100, at + 3_900], (91, "dd"), &place);
    }
    let report = why(&lines.text());
    let kinds: Vec<&str> = report.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, ["overtaken"]);
}

/// The time of an fsync is that of its write and of the journal's behind it.
#[test]
fn a_chain_takes_as_long_as_its_writes() {
    let mut lines = Lines::default();
    for i in 0..4_u64 {
        let at = i * 40_000;
        let place = format!("WS {} + 8", 7_614_368 + i * 8);
        lines.io([at, at, at + 5, at + 8_000], (90, "fio"), &place);
        let journal = (91, "jbd2/sde-8");
        let place = format!("WS {} + 24", 3_905_206_216 + i * 64);
        lines.io(
            [at + 8_030, at + 8_031, at + 8_040, at + 16_000],
            journal,
            &place,
        );
        let place = format!("WS {} + 8", 3_905_206_240 + i * 64);
        lines.io(
            [at + 16_030, at + 16_031, at + 16_040, at + 24_000],
            journal,
            &place,
        );
    }
    let report = why(&lines.text());
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("journal-chain", 90));
    assert_eq!((f.count, f.total_ns), (4, Some(96_000_000)));
    assert!(
        f.what.contains("(16.0 ms until its last write ends)"),
        "{}",
        f.what
    );
}

/// A copy of a file without read-ahead thinks for a moment between its reads.
#[test]
fn small_reads_one_by_one_with_pauses() {
    let copy = |pause_us: u64| {
        let mut lines = Lines::default();
        for i in 0..20_u64 {
            let at = i * (200 + pause_us);
            let place = format!("R {} + 8", 800_000 + i * 8);
            lines.io([at, at, at + 5, at + 200], (40, "cp"), &place);
        }
        why(&lines.text())
    };
    assert_eq!(copy(120).findings[0].kind, "no-readahead");
    assert!(copy(900).findings.is_empty());
}
