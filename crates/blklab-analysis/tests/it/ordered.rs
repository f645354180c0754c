// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commits that write data of files before their own blocks (data=ordered).

use blklab_analysis::findings::{Context, Finding, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::fmt::Write as _;
use std::io::Cursor;

const MAILER: (u32, &str) = (1001, "mailer");
const JOURNAL: (u32, &str) = (43, "jbd2/sda1-8");

/// Six fsyncs: the file's block, so many KiB of data that the journal's thread writes in pieces of
/// 128 KiB, of 2 to 3 ms, three blocks of the journal, the commit record with a flush of 5 ms. Of D
/// and C alone, where whoever runs the queue hands most of it on, if `is_handed_on`.
fn commits(data_kib: u64, is_handed_on: bool) -> String {
    let mut text = String::new();
    let mut number = 0;
    let mut line = |us: u64, (pid, comm): (u32, &str), what: &str| {
        let is_shown = !is_handed_on || what.starts_with(['D', 'C']);
        if is_shown {
            number += 1;
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            let _ = writeln!(text, "8,0 1 {number} {s}.{us:06}000 {pid} {what} [{comm}]");
        }
    };
    let handed = |who| if is_handed_on { (0, "swapper/1") } else { who };
    let mut now = 0;
    for i in 0..6_u64 {
        let mut io =
            |now: &mut u64, who, runs: (u32, &str), sector: u64, sectors: u64, took: u64| {
                for action in ["Q", "G", "I"] {
                    line(*now, who, &format!("{action} WS {sector} + {sectors}"));
                }
                line(*now, runs, &format!("D WS {sector} + {sectors}"));
                *now += took;
                line(*now, (0, "0"), &format!("C WS {sector} + {sectors}"));
            };
        io(&mut now, MAILER, MAILER, 8000 + 8 * i, 8, 200);
        for n in 0..data_kib / 128 {
            let sector = 5_000_000 + 4096 * (i * 64 + n);
            let runs = if n == 0 { JOURNAL } else { handed(JOURNAL) };
            io(
                &mut now,
                JOURNAL,
                runs,
                sector,
                256,
                2_000 + 37 * (n * n % 29),
            );
        }
        let log = 900_000 + 64 * i;
        for block in 0..3 {
            io(&mut now, JOURNAL, handed(JOURNAL), log + 8 * block, 8, 150);
        }
        let record = log + 24;
        let end = format!("{record} + 8");
        line(now, JOURNAL, &format!("Q FWFS {end}"));
        line(now, JOURNAL, &format!("G FWFS {end}"));
        line(now, handed(JOURNAL), "D FN 0 + 0");
        now += 5_000;
        line(now, (0, "0"), "C FN 0 + 0");
        line(now, handed(JOURNAL), &format!("D FWFS {end}"));
        now += 150;
        line(now, (0, "0"), &format!("C FWFS {end}"));
        now += 100;
    }
    text
}

fn why(text: &str) -> Report {
    let mut trace =
        TraceFile::from_reader(Cursor::new(text.as_bytes().to_vec()), "text").expect("a trace");
    let context = "queue/write_cache=write back\nbuffered_writers=backup\n";
    let mut search = Search::all(Context::parse(context).expect("a context"));
    trace.send_all(&mut search).expect("it can be read");
    search.finish(Reading::default())
}

#[test]
fn a_commit_waits_for_data_that_others_wrote() {
    for is_handed_on in [false, true] {
        let report = why(&commits(4096, is_handed_on));
        let f = &report.findings[0];
        assert_eq!(f.kind, "commit-behind", "{is_handed_on}: {}", f.what);
        assert_eq!((f.victims[0].pid, f.causes[0].pid), (MAILER.0, JOURNAL.0));
        let writer = "backup (written back by jbd2/sda1-8 (43))";
        assert!(f.what.contains(writer), "{}", f.what);
        assert!(f.how.contains("data=ordered"), "{}", f.how);
    }
    // A little of it is what a commit has anyway.
    let is_it = |f: &Finding| f.kind == "commit-behind";
    assert!(!why(&commits(512, false)).findings.iter().any(is_it));
}
