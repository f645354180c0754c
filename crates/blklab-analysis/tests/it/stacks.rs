// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts whose recorder has kept the stacks of those who queue bios.

use blklab_analysis::findings::{Context, Reading, Report, Search, way_in};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::fmt::Write as _;
use std::io::Cursor;

/// The kinds whose traces are here.
pub(crate) const KINDS: [&str; 1] = ["submit-reads"];

/// Functions of io_submit, the innermost first, behind those through which a read comes there.
const CALL: [&str; 4] = [
    "aio_read",
    "io_submit_one",
    "__x64_sys_io_submit",
    "do_syscall_64",
];
const DIRECT: [&str; 3] = ["submit_bio_noacct", "iomap_dio_submit_bio", "iomap_dio_rw"];
const METADATA: [&str; 4] = [
    "submit_bio",
    "xfs_buf_read_map",
    "xfs_iread_extents",
    "iomap_dio_rw",
];
const CACHE: [&str; 4] = [
    "submit_bio",
    "mpage_readahead",
    "filemap_get_pages",
    "xfs_file_read_iter",
];

/// Reads of a database, each behind another one that is made as `before` says and takes 4 ms.
fn perf(rwbs: &str, before: &[&str]) -> String {
    let mut text = String::new();
    let mut event = |us: u64, pid: u32, what: &str, stack: &[&str]| {
        let (s, us) = (100 + us / 1_000_000, us % 1_000_000);
        let (comm, end) = if pid == 0 {
            ("swapper", "[0]")
        } else {
            ("db", "[db]")
        };
        let _ = writeln!(
            text,
            "{comm} {pid:>5} [000] {s}.{us:06}: block:{what} {end}"
        );
        for (i, name) in stack.iter().enumerate() {
            let _ = writeln!(
                text,
                "\tffffffff8148d{i:03x} {name}+0x35 ([kernel.kallsyms])"
            );
        }
        if !stack.is_empty() {
            text.push_str("\t    7f12abcd0123 syscall+0x1d (/usr/lib/libc.so.6)\n\n");
        }
    };
    for i in 0..20_u64 {
        for (at, sector, rwbs, way, took) in [
            (0, 8000 + 64 * i, rwbs, before, 4_000),
            (4_050, 900_000 + 4096 * i, "R", &DIRECT[..], 200),
        ] {
            let (at, place) = (10_000 * i + at, format!("{sector} + 8"));
            let stack = [way, &CALL].concat();
            event(
                at,
                77,
                &format!("block_bio_queue: 8,0 {rwbs} {place}"),
                &stack,
            );
            event(at + 2, 77, &format!("block_getrq: 8,0 {rwbs} {place}"), &[]);
            event(
                at + 9,
                77,
                &format!("block_rq_issue: 8,0 {rwbs} 4096 () {place}"),
                &[],
            );
            event(
                at + took,
                0,
                &format!("block_rq_complete: 8,0 {rwbs} () {place}"),
                &[],
            );
        }
    }
    text
}

fn why(text: &str) -> Report {
    let mut trace = TraceFile::from_reader(Cursor::new(text.as_bytes().to_vec()), "perf");
    let trace = trace.as_mut().expect("a trace");
    let mut search = Search::all(Context::default());
    trace.send_all(&mut search).expect("it can be read");
    assert!(trace.counts().is_clean(), "{:?}", trace.counts());
    assert_eq!(trace.counts().stacks, 40);
    search.finish(Reading::default())
}

#[test]
fn a_read_in_io_submit_is_waited_for() {
    for (rwbs, before, says, way) in [
        (
            "RM",
            &METADATA[..],
            "for reads of metadata",
            "submit_bio < xfs_buf_read_map < xfs_iread_extents < iomap_dio_rw < aio_read < \
             io_submit_one < __x64_sys_io_submit",
        ),
        (
            "RA",
            &CACHE[..],
            "for reads through the page cache",
            "submit_bio < mpage_readahead < filemap_get_pages < xfs_file_read_iter < aio_read < \
             io_submit_one < __x64_sys_io_submit",
        ),
    ] {
        let report = why(&perf(rwbs, before));
        let f = report.findings.first().expect("it is found");
        assert_eq!((f.kind, f.count), ("submit-reads", 20), "{f:?}");
        assert_eq!((f.victims[0].pid, f.total_ns), (77, Some(80_000_000)));
        assert!(f.what.contains(says), "{}", f.what);
        assert!(f.how.contains(way), "{}", f.how);
        let shown = f.first.as_ref().expect("one");
        assert_eq!(way_in(&shown.evidence).as_deref(), Some(way));
    }
    // Direct I/O itself, and the same without stacks, say nothing of it.
    let is_it = |report: &Report| report.findings.iter().any(|f| f.kind == "submit-reads");
    assert!(!is_it(&why(&perf("R", &DIRECT))));
}

/// Recordings of a real kernel: files of many extents, read by libaio when nothing of them was in
/// memory.
#[test]
fn what_was_recorded_tells_the_way_in() {
    for (name, stacks, way) in [
        ("xfs", 203, "xfs_buf_submit < xfs_buf_read"),
        ("ext4", 171, "ext4_read_bh < __read_extent_tree_block"),
    ] {
        let path = format!("testdata/tracedat/{name}-stacks-6.18.dat.zst");
        let mut trace = TraceFile::open(&blklab_testkit::root().join(path)).expect("a trace");
        let mut search = Search::all(Context::default());
        trace.send_all(&mut search).expect("it can be read");
        assert_eq!(trace.counts().stacks, stacks, "{name}");
        assert!(trace.counts().is_clean(), "{:?}", trace.counts());
        let report = search.finish(Reading::default());
        let mut found = report.findings.iter().filter(|f| f.kind == "submit-reads");
        let f = found.next().expect("reads of extents in io_submit");
        let fio = f.victims[0].comm.as_deref();
        assert_eq!(fio, Some("fio"), "{}", f.what);
        assert!(f.what.contains("reads of metadata"), "{}", f.what);
        assert!(f.how.contains(way), "{}", f.how);
        assert!(
            f.how.contains("io_submit_one < __x64_sys_io_submit"),
            "{}",
            f.how
        );
    }
}

/// What tracefs and trace-cmd print.
#[test]
fn stacks_of_tracefs_are_read() {
    let text = "\
              db-77      [000] .....   100.000001: block_bio_queue: 8,0 R 8 + 8 [db]
              db-77      [000] .....   100.000003: <stack trace>
 => submit_bio_noacct
 => submit_bio
 => ext4_read_bh
              db-77      [000] .....   100.000009: block_rq_issue: 8,0 R 4096 () 8 + 8 [db]
          <idle>-0       [000] d.h1.   100.009000: block_rq_complete: 8,0 R () 8 + 8 [0]
              db-77      [000] .....   100.010000: block_bio_queue: 8,0 R 16 + 8 [db]
              db-77      [000] .....   100.010001: kernel_stack:         <stack trace >
=> submit_bio (ffffffff8148d8d5)
=> ext4_bread (ffffffff8148d8d5)
          <idle>-0       [000] d.h1.   100.020000: block_rq_complete: 8,0 R () 16 + 8 [0]
";
    let mut trace =
        TraceFile::from_reader(Cursor::new(text.as_bytes().to_vec()), "trace").expect("a trace");
    let mut said = Vec::new();
    while let Some(item) = trace.next_item().expect("it can be read") {
        if let blklab_trace::Item::Stack { pid, functions, .. } = item {
            said.push(format!("{pid}: {functions}"));
        }
    }
    assert_eq!(
        said,
        [
            "77: submit_bio_noacct < submit_bio < ext4_read_bh",
            "77: submit_bio < ext4_bread"
        ]
    );
    assert!(trace.counts().is_clean(), "{:?}", trace.counts());
}
