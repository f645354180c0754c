// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two partitions of one disk: the one waits for what is written to the other.

use blklab_analysis::findings::{Context, Finding, Reading, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::io::Cursor;

/// Where the second partition begins; the first begins at 2048.
const SECOND: u64 = 4_000_000;

/// A line of blkparse's: its time in us, and what comes behind the time.
struct Lines(Vec<(u64, String)>);

impl Lines {
    /// A bio of a partition and its request, from Q to D and to C.
    fn io(&mut self, who: (u32, &str), rw: char, [sector, nr]: [u64; 2], [from, to]: [u64; 2]) {
        let (pid, comm) = who;
        let (minor, start) = if sector < SECOND {
            (1, 2048)
        } else {
            (2, SECOND)
        };
        let place = format!("{sector} + {nr}");
        let mut line = |us, text| self.0.push((us, text));
        let on_partition = sector - start;
        line(
            from,
            format!("{pid} A {rw} {place} <- (8,{minor}) {on_partition}"),
        );
        for action in ["Q", "G", "I", "D"] {
            line(from, format!("{pid} {action} {rw} {place} [{comm}]"));
        }
        line(to, format!("0 C {rw} {place} [0]"));
    }

    fn text(mut self) -> String {
        self.0.sort_by_key(|(us, _)| *us);
        let lines = self.0.iter().enumerate().map(|(i, (us, text))| {
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            format!("8,0 0 {} {s}.{us:06}000 {text}\n", i + 1)
        });
        lines.collect()
    }
}

/// A database reads on the first partition, every 20 ms; in every second of these times 3 MiB are
/// written to the partition that is named by where it begins.
fn reads_behind_writes_at(start: u64) -> Finding {
    let mut lines = Lines(Vec::new());
    for i in 0..400 {
        let at = 20_000 * i;
        let is_behind = i % 2 == 1;
        for k in 0..3 * u64::from(is_behind) {
            let place = [start + 1_000_000 + (3 * i + k) * 2048, 2048];
            lines.io((88, "dump"), 'W', place, [at, at + 5_000 * (k + 1)]);
        }
        let took = if is_behind { 15_100 } else { 300 };
        lines.io(
            (77, "db"),
            'R',
            [8_000 + 128 * i, 8],
            [at + 10, at + 10 + took],
        );
    }
    let text = lines.text();
    let mut trace =
        TraceFile::from_reader(Cursor::new(text.into_bytes()), "blkparse").expect("a trace");
    let mut search = Search::all(Context::default());
    trace.send_all(&mut search).expect("it can be read");
    let report = search.finish(Reading::default());
    report.findings.into_iter().next().expect("it is found")
}

#[test]
fn who_writes_to_another_partition_is_a_neighbour() {
    let f = reads_behind_writes_at(SECOND);
    assert_eq!(f.kind, "reads-behind-writes", "{f:?}");
    let says =
        "A neighbour on the same disk: the I/O of dump (88) is for 8,2, that of db (77) for 8,1.";
    assert!(f.what.ends_with(says), "{}", f.what);
    // On the same partition it is none.
    let f = reads_behind_writes_at(2048);
    assert_eq!(f.kind, "reads-behind-writes", "{f:?}");
    assert!(!f.what.contains("neighbour"), "{}", f.what);
}
