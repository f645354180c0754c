// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace does not show is nobody's choice: requests that were handed on, journals' threads,
//! read-ahead, and what lies between the passages of an excerpt.

use blklab_analysis::findings::{Context, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::io::Cursor;

type Task = (u32, &'static str);

const MAILER: Task = (1001, "mailer");
const READER: Task = (1002, "reader");
const JOURNAL: Task = (43, "jbd2/sda1-8");
const KBLOCKD: Task = (42, "kworker/0:1H");
const FLUSHER: Task = (45, "kworker/u8:2");

/// Lines of blkparse with their times in us.
#[derive(Default)]
struct Lines(Vec<(u64, String)>);

impl Lines {
    fn line(&mut self, us: u64, (pid, comm): Task, what: &str) {
        let (s, rest) = (us / 1_000_000, us % 1_000_000);
        let line = format!("{s}.{rest:06}000 {pid} {what} [{comm}]\n");
        self.0.push((us, line));
    }

    /// D and C.
    fn command(&mut self, who: Task, what: &str, [issue, complete]: [u64; 2]) {
        self.line(issue, who, &format!("D {what}"));
        self.line(complete, (0, "0"), &format!("C {what}"));
    }

    /// Q, G and I at once; D and C.
    fn io(&mut self, who: Task, what: &str, [queue, issue, complete]: [u64; 3]) {
        for action in ["Q", "G", "I"] {
            self.line(queue, who, &format!("{action} {what}"));
        }
        self.command(who, what, [issue, complete]);
    }

    fn why(mut self, context: &str) -> Report {
        self.0.sort_by_key(|(us, _)| *us);
        let numbered = (1..).zip(&self.0);
        let text: String = numbered
            .map(|(n, (_, line))| format!("8,0 0 {n} {line}"))
            .collect();
        let input = Cursor::new(text.into_bytes());
        let mut trace = TraceFile::from_reader(input, "text").expect("a trace");
        let mut search = Search::all(Context::parse(context).expect("a context"));
        trace.send_all(&mut search).expect("it can be read");
        search.finish(Reading::default())
    }
}

fn kinds(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.kind).collect()
}

/// Fsyncs of a new kernel of which only D and C are shown: the flushes around a commit record are
/// commands of their own, and kblockd hands the record on, and all but the first of the journal's
/// blocks. Both the commit and the next write begin only `wait` us after what they follow. Behind
/// `others` large writes of a flusher each takes 60 ms, without them 200 us.
fn fsyncs(wait: u64, others: bool) -> Report {
    let mut lines = Lines::default();
    let took = if others { 60_000 } else { 200 };
    let mut now = 0;
    for n in 0..8_u64 {
        let go = |lines: &mut Lines, now: &mut u64, who, what: &str| {
            if others {
                for k in 0..15 {
                    let place = 8_000_000 + (*now / 1000 * 16 + k) * 1024;
                    let end = *now + 3_900 * (k + 1);
                    lines.command(FLUSHER, &format!("W {place} + 1024"), [*now, end]);
                }
            }
            lines.command(who, what, [*now + 1, *now + 1 + took]);
            *now += 1 + took;
        };
        go(
            &mut lines,
            &mut now,
            MAILER,
            &format!("WS {} + 8", 8000 + 8 * n),
        );
        now += wait;
        let log = 900_000 + 40 * n;
        let first = if n == 0 { JOURNAL } else { KBLOCKD };
        go(&mut lines, &mut now, first, &format!("WS {log} + 32"));
        lines.command(KBLOCKD, "FN 0 + 0", [now, now + 3_000]);
        now += 3_000;
        go(
            &mut lines,
            &mut now,
            KBLOCKD,
            &format!("WS {} + 8", log + 32),
        );
        lines.command(KBLOCKD, "FN 0 + 0", [now, now + 3_000]);
        now += 3_000 + wait;
    }
    lines.why("queue/write_cache=write back\nbuffered_writers=backup")
}

#[test]
fn a_commit_is_told_from_its_flushes_though_kblockd_hands_it_on() {
    for wait in [20, 12_000] {
        let report = fsyncs(wait, true);
        let first = &report.findings[0];
        assert_eq!(first.kind, "commit-behind", "{wait}: {:?}", kinds(&report));
        assert_eq!(first.victims[0].pid, MAILER.0, "{wait}");
        assert!(first.causes[0].to_string().starts_with("backup"), "{wait}");
        let wrong = |kind: &&str| ["deep-queue", "seek-storm"].contains(kind);
        assert!(!kinds(&report).iter().any(wrong), "{:?}", kinds(&report));
    }
}

/// Without others' writes the same commits take long for their flushes.
#[test]
fn the_same_commit_alone_waits_for_its_flushes() {
    let report = fsyncs(20, false);
    let first = &report.findings[0];
    assert_eq!(first.kind, "flush", "{:?}", kinds(&report));
    assert_eq!(first.victims[0].pid, MAILER.0);
}

/// Twenty of one sort at a time on a device that ends one in 500 us.
fn twenty_at_a_time(who: Task, rwbs: &str) -> Report {
    let mut lines = Lines::default();
    for n in 0..200_u64 {
        let end = 500 * (n + 1);
        let begin = (500 * n).saturating_sub(500 * 20);
        let place = n * 7919 % 1000 * 1000;
        lines.io(who, &format!("{rwbs} {place} + 8"), [begin, begin, end]);
    }
    lines.why("")
}

#[test]
fn a_depth_is_a_choice_only_of_who_can_choose_it() {
    assert_eq!(kinds(&twenty_at_a_time(MAILER, "WS")), ["deep-queue"]);
    assert_eq!(kinds(&twenty_at_a_time(MAILER, "R")), ["deep-queue"]);
    assert_eq!(kinds(&twenty_at_a_time(JOURNAL, "WS")), [""; 0]);
    assert_eq!(kinds(&twenty_at_a_time(MAILER, "RA")), [""; 0]);
}

/// The beginning and the end of a read of two seconds; between them lines are left out. `shows_it`
/// if the requests that go to the device at the end are shown from their beginning.
fn excerpt(shows_it: bool) -> Report {
    let mut lines = Lines::default();
    for n in 0..4_u64 {
        let what = format!("R {} + 8", n * 8000);
        lines.io(MAILER, &what, [n * 300, n * 300, n * 300 + 250]);
    }
    let read = "R 700000 + 8";
    for action in ["Q", "G", "I"] {
        lines.line(1_300, READER, &format!("{action} {read}"));
    }
    for n in 0..6_u64 {
        let (what, d) = (format!("R {} + 8", 90_000 + n * 8000), 2_000_000 + n * 300);
        if shows_it {
            lines.io(MAILER, &what, [d - 100, d, d + 250]);
        } else {
            lines.command(KBLOCKD, &what, [d, d + 250]);
        }
    }
    lines.command(KBLOCKD, read, [2_002_000, 2_002_250]);
    lines.why("queue/scheduler=mq-deadline")
}

#[test]
fn a_device_is_idle_only_where_all_that_it_had_is_shown() {
    assert_eq!(kinds(&excerpt(true))[0], "held-back");
    assert_eq!(kinds(&excerpt(false)), [""; 0]);
}

/// An excerpt that begins behind the D of a disk's other requests: they end while it has a write.
fn a_write_beside(others: u64) -> Report {
    let mut lines = Lines::default();
    lines.command(JOURNAL, "WS 5000 + 1024", [0, 160_000]);
    for n in 0..others {
        let what = format!("C WS {} + 1024", 90_000 + 1024 * n);
        lines.line(9_000 * (n + 1), (0, "0"), &what);
    }
    lines.why("")
}

#[test]
fn a_device_that_ends_others_meanwhile_is_not_slow_by_itself() {
    assert_eq!(kinds(&a_write_beside(0)), ["device-slow"]);
    assert_eq!(kinds(&a_write_beside(16)), [""; 0]);
}

/// Twenty runs of reads of these lengths in sectors, one after the other, wherever each is.
fn runs(lengths: &[u64], rwbs: &str) -> Report {
    let mut lines = Lines::default();
    let mut now = 0;
    for run in 0..20_u64 {
        let mut sector = run * 7919 % 20 * 1_000_000;
        for length in lengths {
            let what = format!("{rwbs} {sector} + {length}");
            lines.io(READER, &what, [now, now, now + 200 + length]);
            sector += length;
            now += 300 + length;
        }
    }
    lines.why("queue/read_ahead_kb=4096")
}

/// Old kernels do not mark what is read ahead; its windows grow.
#[test]
fn read_ahead_is_told_from_windows_that_grow() {
    let is_found = |report: &Report| kinds(report).contains(&"readahead-unused");
    assert!(is_found(&runs(&[32, 128, 512, 1024], "R")));
    assert!(is_found(&runs(&[16, 64, 256], "R")));
    // The reader's own length, the end of a file, and what is not read ahead.
    assert!(!is_found(&runs(&[1024, 1024, 1024], "R")));
    assert!(!is_found(&runs(&[32, 128, 512, 200], "R")));
    assert!(!is_found(&runs(&[32, 128, 512, 1024], "RS")));
}

/// A process that asks for requests one after the other. Each becomes free when the device has
/// emptied its cache, if `is_flush`; else while it does so.
fn writes_beside_flushes(is_flush: bool) -> Report {
    let mut lines = Lines::default();
    let mut now = 0;
    for n in 0..40_u64 {
        lines.command(KBLOCKD, "FN 0 + 0", [now, now + 10_000]);
        let nr = if is_flush { 1 } else { 9 };
        for k in 0..nr {
            let what = format!("WS {} + 8", 8000 * (n * 10 + k));
            let get = if is_flush {
                now + 10_000
            } else {
                now + 1_000 * (k + 1)
            };
            let queue = if is_flush {
                now + 100
            } else {
                now + 1_000 * k + 100
            };
            lines.line(queue, MAILER, &format!("Q {what}"));
            lines.line(get, MAILER, &format!("G {what}"));
            lines.command(MAILER, &what, [get, get + 1_050]);
        }
        now += 10_400;
    }
    lines.why("queue/nr_requests=2")
}

#[test]
fn a_request_that_a_flush_holds_is_not_held_by_the_queue() {
    let submits = |report: &Report| kinds(report).contains(&"submit-blocked");
    let flushed = writes_beside_flushes(true);
    assert!(!submits(&flushed), "{:?}", kinds(&flushed));
    assert_eq!(kinds(&flushed)[0], "flush");
    let held = writes_beside_flushes(false);
    assert!(submits(&held), "{:?}", kinds(&held));
}
