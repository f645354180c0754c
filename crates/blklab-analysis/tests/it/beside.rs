// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings that events of other parts of the kernel lead to, each in a trace that is made
//! up to have it: lines as the kernel prints them.

use blklab_analysis::findings::{Context, Finding, Reading, Report, Search};
use blklab_formats::ftrace::FtraceReader;
use blklab_trace::TraceSource as _;

/// The kinds that these traces have.
pub(crate) const KINDS: [&str; 1] = ["journal-commit"];

/// A process: its name and number.
type Who = (&'static str, u32);

const DB: Who = ("db", 77);
const JOURNAL: Who = ("jbd2/sda1-8", 9);

/// Lines of `trace_pipe` with their times in us.
#[derive(Default)]
struct Lines(Vec<(u64, String)>);

impl Lines {
    fn event(&mut self, us: u64, who: Who, event: &str) {
        let (comm, pid) = who;
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        self.0
            .push((us, format!("{comm}-{pid} [000] ..... {time}: {event}\n")));
    }

    /// A request from Q to C; it is issued as soon as it is there.
    fn io(&mut self, who: Who, rw: &str, at: (u64, u64), from: u64, to: u64) {
        let (sector, nr) = at;
        let place = format!("{sector} + {nr}");
        let bytes = nr * 512;
        self.event(
            from,
            who,
            &format!("block_bio_queue: 8,0 {rw} {place} [{}]", who.0),
        );
        self.event(
            from,
            who,
            &format!("block_getrq: 8,0 {rw} {place} [{}]", who.0),
        );
        for name in ["insert", "issue"] {
            let text = format!(
                "block_rq_{name}: 8,0 {rw} {bytes} () {place} be,0,4 [{}]",
                who.0
            );
            self.event(from, who, &text);
        }
        let done = format!("block_rq_complete: 8,0 {rw} () {place} be,0,4 [0]");
        self.event(to, ("<idle>", 0), &done);
    }

    /// An fsync that waits for a commit: when each of its steps begins, and its end.
    fn fsync(&mut self, tid: u64, steps: [u64; 5], record: Option<u64>) {
        let [start, locking, flushing, logging, end] = steps;
        let enter = "ext4_sync_file_enter: dev 8,1 ino 12 parent 2 datasync 0 ";
        self.event(start - 10, DB, enter);
        for (us, step) in [
            (start, "start_commit"),
            (locking, "commit_locking"),
            (flushing, "commit_flushing"),
            (logging, "commit_logging"),
        ] {
            let text = format!("jbd2_{step}: dev 8,1 transaction {tid} sync 0");
            self.event(us, JOURNAL, &text);
        }
        let sector = 100_000 + tid * 16;
        self.io(JOURNAL, "WS", (sector, 8), logging + 5, logging + 300);
        if let Some(record) = record {
            self.io(JOURNAL, "FWFS", (sector + 8, 8), record, end - 20);
        }
        let ticks = (end - logging) / 4000;
        let stats = format!(
            "jbd2_run_stats: dev 8,1 tid {tid} wait 1 request_delay 0 running 5 locked 0 \
             flushing 0 logging {ticks} handle_count 4 blocks 2 blocks_logged 3"
        );
        self.event(end - 2, JOURNAL, &stats);
        let text = format!("jbd2_end_commit: dev 8,1 transaction {tid} sync 0 head 1");
        self.event(end, JOURNAL, &text);
        self.event(end + 30, DB, "ext4_sync_file_exit: dev 8,1 ino 12 ret 0");
    }

    fn report(mut self, context: &str) -> Report {
        self.0.sort_by_key(|(us, _)| *us);
        let text: String = self.0.into_iter().map(|(_, line)| line).collect();
        let mut search = Search::all(Context::parse(context).expect("a context"));
        let mut reader = FtraceReader::new(text.as_bytes(), "text");
        reader.send_all(&mut search).expect("a trace");
        let counts = reader.counts();
        assert!(counts.is_clean() && counts.other_events == 0, "{counts:?}");
        search.finish(Reading::default())
    }
}

fn first<'a>(report: &'a Report, kind: &str) -> &'a Finding {
    let shown: Vec<_> = report.findings.iter().map(|f| (f.kind, &f.what)).collect();
    let first = report.findings.first();
    first
        .filter(|f| f.kind == kind)
        .unwrap_or_else(|| panic!("{kind}: {shown:#?}"))
}

/// What the evidence of the first instance says.
fn evidence(f: &Finding) -> Vec<String> {
    let instance = f.first.as_ref().expect("an instance");
    let shown = |e: &blklab_analysis::findings::Evidence| match &e.text {
        Some(text) => text.split(':').next().unwrap_or_default().to_owned(),
        None => e.event.action.letters().to_owned(),
    };
    instance.evidence.iter().map(shown).collect()
}

/// A partition's journal, whose requests are the disk's.
fn with_remap(lines: &mut Lines) {
    let remap = "block_bio_remap: 8,0 WS 100016 + 8 <- (8,1) 97968";
    lines.event(1, JOURNAL, remap);
}

#[test]
fn an_fsync_waits_for_the_flush_of_the_commit_record() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let t = 10_000 + n * 30_000;
        lines.io(DB, "WS", (8000 + n * 8, 8), t, t + 500);
        let start = t + 600;
        let steps = [0, 5, 20, 60, 15_000].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 500));
    }
    let report = lines.report("");
    let f = first(&report, "journal-commit");
    assert_eq!((f.victims[0].pid, f.causes[0].pid), (DB.1, JOURNAL.1));
    assert_eq!((f.count, f.total_ns), (10, Some(150_000_000)));
    assert!(f.how.contains("96 % for the commit record"), "{}", f.how);
    // A tick is 4 ms, since logging takes as many.
    assert!(f.how.contains("up to 4.00 ms for a handle"), "{}", f.how);
    assert!(f.cause.as_ref().is_some_and(|c| c.contains("flushed")));
    assert_eq!(f.dev.to_string(), "8,0");
    assert!(report.findings.iter().all(|f| f.kind != "flush"));
    let shown = evidence(f);
    for name in [
        "ext4_sync_file_enter",
        "jbd2_commit_logging",
        "jbd2_end_commit",
        "D",
    ] {
        assert!(shown.iter().any(|e| e == name), "{name}: {shown:?}");
    }
}

#[test]
fn an_fsync_waits_for_handles_that_somebody_has_open() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let t = 10_000 + n * 30_000;
        let start = t + 600;
        let steps = [0, 5, 9_000, 9_050, 10_000].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 9_400));
        let handle = format!(
            "jbd2_handle_stats: dev 8,1 tid {} type 6 line_no 1 interval 2 sync 0 \
             requested_blocks 8 dirtied_blocks 4",
            n + 1
        );
        lines.event(start + 8_990, ("rm", 55), &handle);
    }
    let f = &lines.report("").findings[0];
    assert_eq!(f.kind, "journal-commit");
    let cause = f.cause.as_deref().unwrap_or_default();
    assert_eq!(
        cause,
        "handles that process 55 keeps open".replace("process 55", "rm (55)")
    );
    assert!(f.how.contains("90 % for handles"), "{}", f.how);
}

#[test]
fn fast_commits_are_no_finding() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let start = 10_000 + n * 30_000;
        let steps = [0, 5, 20, 60, 700].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 400));
    }
    let report = lines.report("");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}
