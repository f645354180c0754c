// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts as people mail them: several recordings, programs and disorders.

use blklab_formats::blkparse::BlkparseReader;
use blklab_formats::ftrace::FtraceReader;
use blklab_formats::snoop::SnoopReader;
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{Action, Actions, Item, TraceSource};
use std::path::Path;

/// The items of a trace, a line each.
fn lines<E: std::fmt::Debug>(source: &mut impl TraceSource<Error = E>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(item) = source.next_item().expect("memory can be read") {
        lines.push(match item {
            Item::Event(event) => event.to_string(),
            Item::Message(event, text) => format!("{event}: {text}"),
            Item::Kernel(event) => event.point.to_string(),
            Item::Stack { functions, .. } => functions.to_owned(),
            Item::Process { pid, comm, .. } => format!("{pid} is {comm}"),
            Item::NewRecording => "new recording".to_owned(),
        });
    }
    lines
}

fn blkparse(text: &str) -> (Vec<String>, ReadCounts) {
    let mut reader = BlkparseReader::new(text.as_bytes(), "test");
    (lines(&mut reader), reader.counts().clone())
}

const MAIL: &str = include_str!("../../../../testdata/snoop/joined-mail.txt");
const BIOSNOOP: &str = include_str!("../../../../testdata/snoop/biosnoop.txt");
const IOSNOOP: &str = include_str!("../../../../testdata/snoop/iosnoop.txt");

#[test]
fn a_mail_of_several_recordings() {
    let mut file = TraceFile::from_reader(MAIL.as_bytes(), "mail").expect("a trace");
    let found = lines(&mut file);
    let counts = file.counts();
    let expected = [
        "907 is xfs_io",
        "8,16 3 0.000000000 907 Q W 98384 + 8",
        "8,16 3 0.000001200 907 G W 98384 + 8",
        "8,16 3 0.000002000 907 Q W 98392 + 8",
        "8,16 3 0.000002500 907 M W 98392 + 8",
        "198 is kworker/3:1H",
        "8,16 3 0.000004100 198 D W 98384 + 16",
        "8,16 0 0.000740000 0 C W 98384 + 16",
        "new recording",
        "944 is xfs_io",
        "8,16 5 0.999999384 944 G W 98384 + 8",
        "8,16 5 1.000000000 944 Q W 98384 + 8",
        "new recording",
        "8,16 0 1.499340000 944 Q W 98384 + 8",
        "8,16 0 1.499340000 944 D W 98384 + 8",
        "8,16 0 1.500000000 944 C W 98384 + 8",
    ];
    assert_eq!(found, expected);
    assert_eq!((counts.new_recordings, counts.reordered), (2, 2));
    assert_eq!((counts.shift_s, counts.damaged, counts.foreign), (1, 0, 6));
    assert_eq!(counts.backwards, 0);
}

#[test]
fn lines_about_whole_ios() {
    let mut reader = SnoopReader::new(BIOSNOOP.as_bytes(), "test");
    let found = lines(&mut reader);
    // The latencies reach back before the first completion, which is at 0.
    let expected = [
        "3011 is Web Content",
        "8,0 0 0.992730000 3011 Q R 22803672 + 8",
        "8,0 0 0.992730000 3011 D R 22803672 + 8",
        "2527 is postgres",
        "8,0 0 0.999570000 2527 Q W 1804936 + 16",
        "8,0 0 0.999590000 2527 D W 1804936 + 16",
        "8,0 0 1.000000000 2527 C W 1804936 + 16",
        "8,0 0 1.000850000 3011 C R 22803672 + 8",
        "310 is jbd2/sda1-8",
        "8,0 0 1.009910000 310 Q W 5125728 + 24",
        "8,0 0 1.009960000 310 D W 5125728 + 24",
        "8,0 0 1.010300000 310 C W 5125728 + 24",
    ];
    assert_eq!(found, expected);
    let header = reader.header().expect("disks have names");
    let known = [Action::Queue, Action::Issue, Action::Complete];
    assert_eq!(header.recorded, Actions::new(&known));
    assert_eq!(header.devices[0].1, "sda");
    let mut reader = SnoopReader::new(IOSNOOP.as_bytes(), "test");
    assert_eq!(lines(&mut reader).len(), 7);
    assert_eq!((reader.counts().notes, reader.counts().foreign), (2, 0));
}

/// `blkparse -t -a complete`: each C says how long ago its D was.
#[test]
fn completions_that_tell_of_their_issue() {
    let complete = "8,0 1 5 0.000812345 0 C R 1234 + 8 (  112345) [0]\n";
    let (found, counts) = blkparse(complete);
    let ended = "8,0 1 0.000812345 0 C R 1234 + 8";
    assert_eq!(found, ["8,0 1 0.000700000 0 D R 1234 + 8", ended]);
    assert_eq!((counts.left_out, counts.damaged), (0, 0), "{counts:?}");
    // Where D was printed it is not told twice.
    let issue = "8,0 1 4 0.000700000 9 D R 1234 + 8 (   10000) [fio]\n";
    let (found, _) = blkparse(&format!("{issue}{complete}"));
    assert_eq!(
        found,
        ["9 is fio", "8,0 1 0.000700000 9 D R 1234 + 8", ended]
    );
    // The bytes of a command are no time.
    let (found, _) = blkparse("8,0 1 5 0.5 0 C R (12 00 ..) [0]\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Fields by their names, as programs show them that lack the kernel's own form.
#[test]
fn tracepoints_with_named_fields() {
    let ftrace = |text: &str| {
        let mut reader = FtraceReader::new(text.as_bytes(), "test");
        lines(&mut reader)
    };
    let expected = [
        "5 is fio",
        "8,16 0 0.000412000 5 D WS 4112 + 8",
        "8,16 0 0.000812000 0 C WS 4112 + 8 [5]",
    ];
    assert_eq!(
        ftrace(
            "\
     0.412 fio/5 block:block_rq_issue(dev: 8388624, sector: 4112, nr_sector: 8, bytes: 4096, rwbs: \"WS\", comm: \"fio\")
     0.812 :0/0 block:block_rq_complete(dev: 8388624, sector: 4112, nr_sector: 8, error: -5, rwbs: \"WS\")
"
        )[..2],
        expected[..2]
    );
    assert_eq!(
        ftrace(
            "\
 fio-5    [000]  0.000412: block_rq_issue: dev=0x800010 sector=0x1010 nr_sector=8 bytes=0x1000 rwbs=WS comm=fio
 <idle>-0 [000]  0.000812: block_rq_complete: dev=8388624 sector=4112 nr_sector=8 error=-5 rwbs=WS
"
        ),
        expected
    );
    // perf script with the period.
    assert_eq!(
        ftrace(
            " fio 5 [000] 0.000412:          1 block:block_rq_issue: 8,16 WS 4096 () 4112 + 8 [fio]\n"
        ),
        expected[..2]
    );
}

/// Lines that a mail has wrapped, wherever it is.
#[test]
fn wrapped_anywhere() {
    let whole = "253,0    3 12268358 211388.842309745  4329  Q WSM 746864240 + 8 [jbd2/dm-0-8]";
    let next = "253,0    3 12268359 211388.842309999  4329  G WSM 746864240 + 8 [jbd2/dm-0-8]";
    let (expected, _) = blkparse(&format!("{whole}\n{next}\n"));
    assert_eq!(expected.len(), 3);
    for (cut, _) in whole.match_indices(' ') {
        let text = format!("> {}\n> {}\n> {next}\n", &whole[..cut], &whole[cut + 1..]);
        let (found, counts) = blkparse(&text);
        // In front of the process nothing says that it is a trace.
        if whole[..cut].trim_end().len() > 45 {
            assert_eq!(found, expected, "{text}");
            assert!(counts.is_clean(), "{text}{counts:?}");
        }
    }
    // An event that lacks its end is one nevertheless.
    let bare = whole.split(" [").next().expect("a part");
    let (found, counts) = blkparse(&format!("{bare}\n{bare}\n"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(counts.damaged == 0 && counts.foreign == 0, "{counts:?}");
}

/// Lines that were numbered by whoever quotes them, of two devices that were traced apart.
#[test]
fn numbered_lines_of_several_devices() {
    let (found, counts) = blkparse(
        "\
    device CPU    seq #  timestamp     PID Action R/W I/O details
    ------ --- --------  ----------- ----- ------ ---
* 1 249,0    0      241  1.634187070 24797      Q  WS 0 + 2048 [dd]
* 2   8,0    0     1866  1.634190230 24797      Q  WS 16 + 2048 [dd]
  3   8,0    0     1867  1.634197750 24797      X  WS 16 / 1040 [dd]
*21 249,0    0      242  1.634855557 24797      Q   R 0 + 8 [dd]
*8,0    0     1868  1.634873197 24797      Q   R 16 + 8 [dd]*
",
    );
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(found[5], "8,0 0 1.634873197 24797 Q R 16 + 8");
    assert_eq!((counts.foreign, counts.damaged), (2, 0), "{counts:?}");
    assert_eq!((counts.left_out, counts.restarts), (0, 0), "{counts:?}");
}

/// A trace whose lines other CPUs have overtaken is in order; one that comes
/// late beyond all bounds is counted.
#[test]
fn order() {
    let line =
        |cpu: u32, number: u32, us: u32| format!("8,0 {cpu} {number} 0.{us:06} 9 Q R 8 + 8 [x]\n");
    let text = [
        line(0, 1, 1),
        line(0, 2, 50),
        line(1, 1, 20),
        line(0, 3, 60),
    ]
    .concat();
    let (found, counts) = blkparse(&text);
    assert_eq!(found[3], "8,0 0 0.000050000 9 Q R 8 + 8");
    assert_eq!((counts.reordered, counts.backwards), (1, 0));
    let late: String = (2..3000).map(|n| line(0, n, 100 + n)).collect();
    let (_, counts) = blkparse(&[line(0, 1, 1), late, line(1, 1, 20)].concat());
    assert_eq!((counts.backwards, counts.new_recordings), (1, 0));
}

/// The excerpts that experts have explained: every line of a trace is read.
#[test]
fn excerpts() {
    let Some(dir) = blklab_testkit::shared("data/answers") else {
        return;
    };
    let read = |path: &Path| {
        let mut file = TraceFile::open(path).expect("a trace");
        let lines = lines(&mut file);
        (file.format().name, lines, file.counts().clone())
    };
    for (number, format, nr_events, recordings) in [
        ("02", "blkparse", 20, 1),
        ("04", "blkparse", 16, 2),
        ("06", "blkparse", 36, 2),
        ("08", "blkparse", 24, 1),
        ("11", "ftrace", 30, 2),
        ("12", "blkparse", 6, 1),
        ("14", "blkparse", 24, 1),
        ("15", "blkparse", 14, 1),
        ("17", "blkparse", 37, 2),
        ("20", "blkparse", 22, 1),
        ("22", "blkparse", 4, 1),
        ("25", "biosnoop", 24, 1),
        ("27", "ftrace", 18, 2),
        ("28", "blkparse", 59, 2),
        ("30", "blkparse", 2, 1),
        ("32", "ftrace", 3, 1),
        ("34", "blkparse", 36, 2),
    ] {
        let (found, _, counts) = read(&dir.join(format!("{number}.txt")));
        let nr_recordings = counts.new_recordings + 1;
        assert_eq!(
            (found, counts.events, nr_recordings, counts.damaged),
            (format, nr_events, recordings, 0),
            "{number}: {counts:?}"
        );
        assert_eq!(
            (counts.backwards, counts.jumps),
            (0, 0),
            "{number}: {counts:?}"
        );
    }
}

/// An event of the block layer without a time has that of the one before.
#[test]
fn without_times() {
    let text = "fio-9 [001] .... 7.5: block_bio_queue: 8,0 R 8 + 8 [fio]\n\
                block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n";
    let mut reader = FtraceReader::new(text.as_bytes(), "test");
    let found = lines(&mut reader);
    assert_eq!(found[2], "8,0 0 7.500000000 0 D R 8 + 8");
    assert_eq!(reader.counts().untimed, 1);
}

/// Rows of research traces and logs, of public collections.
#[test]
fn rows() {
    let Some(dir) = blklab_testkit::shared("data/real-traces/other") else {
        return;
    };
    for (name, format, nr_events, foreign) in [
        ("aks_biosnoopQ.txt", "biosnoop", 24, 0),
        ("alibaba.csv", "alibaba", 5, 0),
        ("cloudphysics-head.vscsi", "vscsi", 2187, 0),
        ("disksim-ascii.trace", "disksim", 231, 0),
        ("fio_v2_issue756.log", "fio-iolog", 4, 0),
        ("fio_v3_body_issue1537.log", "fio-iolog", 12, 0),
        ("fio_v3_doc.log", "fio-iolog", 3, 0),
        ("fiu.txt", "fiu", 1, 0),
        ("mqsim-head.txt", "mqsim", 97, 1),
        ("msr.csv", "msr", 4, 0),
        ("spc.csv", "spc", 6, 0),
    ] {
        let mut file = TraceFile::open(&dir.join(name)).expect("a trace");
        let nr = lines(&mut file).len();
        let counts = file.counts();
        let found = (file.format().name, counts.events, counts.foreign);
        assert_eq!(
            found,
            (format, nr_events, foreign),
            "{name}, {nr}: {counts:?}"
        );
        assert_eq!(counts.damaged + counts.backwards, 0, "{name}: {counts:?}");
    }
}
