// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints in text: the same I/O as different programs print it, as mails
//! quote it, and what real ones hold.

use blklab_formats::ftrace::FtraceReader;
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{Event, TraceSource};
use std::path::Path;

/// What a text holds, and what was counted.
fn read(text: &str) -> (Vec<Event>, ReadCounts) {
    let mut reader = FtraceReader::new(text.as_bytes(), "test");
    let mut events = Vec::new();
    reader.send_all(&mut events).expect("memory can be read");
    (events, reader.counts().clone())
}

fn letters(events: &[Event]) -> String {
    events.iter().map(|e| e.action.letters()).collect()
}

const FTRACE: &str = include_str!("../../../../testdata/ftrace/trace_pipe.txt");
const TRACE_CMD: &str = include_str!("../../../../testdata/ftrace/trace-cmd-report.txt");
const PERF: &str = include_str!("../../../../testdata/ftrace/perf-script.txt");
const BLK_TRACER: &str = include_str!("../../../../testdata/ftrace/blk-tracer.txt");

#[test]
fn all_programs_print_the_same_io() {
    let (expected, counts) = read(FTRACE);
    assert_eq!(letters(&expected), "QGIDC");
    assert_eq!((counts.notes, counts.other_events), (4, 2));
    for text in [TRACE_CMD, PERF, BLK_TRACER] {
        let (events, counts) = read(text);
        assert_eq!(events, expected, "{text}");
        assert!(counts.is_clean(), "{counts:?}");
    }
}

/// A line that a mail has wrapped is one event, wherever it is cut; what is no
/// line of the trace does not hide the next one.
#[test]
fn wrapped_lines() {
    let whole = "fio-1 [001] .....  1.5: block_rq_issue: 8,16 WS 4096 () 98400 + 8 be,0,4 [fio]";
    let (expected, _) = read(whole);
    let begins = whole.find(": 8").expect("a colon") + 1;
    let spaces = whole.match_indices(' ').map(|(at, _)| at);
    for cut in spaces.filter(|at| *at >= begins) {
        let text = format!("> {}\n> {}\n\n", &whole[..cut], &whole[cut + 1..]);
        let (events, counts) = read(&text);
        assert_eq!(events, expected, "{text}");
        assert!(counts.is_clean(), "{text}{counts:?}");
    }
    let cut = "fio-1 [001] .....  1.5: block_rq_issue: 8,16 WS 4096 ()";
    let (events, counts) = read(&format!("{cut}\n{whole}\n{cut}"));
    assert_eq!((events, counts.damaged), (expected, 2));
}

#[test]
fn what_the_recorder_lost() {
    let text = FTRACE.replace("6/6", "6/106") + "CPU:2 [LOST 7 EVENTS]\n";
    let (_, counts) = read(&text);
    assert_eq!((counts.lost, counts.gaps), (107, 2));
    assert!(!counts.is_clean());
}

/// Every format begins with lines that its own row recognises.
#[test]
fn recognised_by_what_is_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let jbd2 = "jbd2-9 [000] .... 1.5: jbd2_commit_logging: dev 8,1 transaction 5 sync 0\n";
    let texts = [FTRACE, TRACE_CMD, PERF, BLK_TRACER, jbd2];
    for (i, text) in texts.iter().enumerate() {
        let path = dir.path().join(i.to_string());
        std::fs::write(&path, text).expect("a file");
        let file = TraceFile::open(&path).expect("a trace");
        assert_eq!(file.format().name, "ftrace", "{text}");
    }
}

/// Traces as people mail them, and one of a whole run.
#[test]
fn real_traces() {
    let open = |path: &Path| {
        let mut file = TraceFile::open(path).expect("a trace");
        let mut events: Vec<Event> = Vec::new();
        file.send_all(&mut events).expect("it can be read");
        (file.format().name, events, file.counts().clone())
    };
    let Some(dir) = blklab_testkit::shared("data/real-traces") else {
        return;
    };
    for (name, nr_events, others) in [
        ("lines/ftrace_linux-block_c119936268.txt", 4, 0),
        ("lines/ftrace_linux-block_fc4f935914.txt", 5, 0),
        ("lines/ftrace_linux-ext4_79d2f3cf36.txt", 11, 46),
        // Commands of the driver alone: four with both ends.
        ("lines/ftrace_linux-nvme_a1497580bb.txt", 8, 20),
        ("lines/ftrace_linux-xfs_c991a2265b.txt", 30, 22),
        ("other/bcc826_perf_script.txt", 11, 0),
        ("other/mysqld_perf_script.txt", 3, 0),
    ] {
        let (format, events, counts) = open(&dir.join(name));
        assert_eq!(format, "ftrace", "{name}");
        let found = (events.len(), counts.other_events, counts.damaged);
        assert_eq!(found, (nr_events, others, 0), "{name}: {counts:?}");
    }
    let Some(trace) =
        blklab_testkit::shared("data/oracle/13b-split-storm-host/trace.ftrace.txt.zst")
    else {
        return;
    };
    let (format, events, counts) = open(&trace);
    assert_eq!((format, counts.damaged), ("ftrace", 0), "{counts:?}");
    assert!(events.len() > 1000, "{}", events.len());
    let rwbs_of = |letters: &str| {
        events
            .iter()
            .filter(|e| e.action.letters() == letters)
            .count()
    };
    assert_eq!(
        rwbs_of("D"),
        rwbs_of("C"),
        "every request that was issued came back"
    );
}
