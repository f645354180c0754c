// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of any content, written as everything that `blklab trace convert` writes. What was
//! written is read back: it is well-formed, it has a row for each event, and a copy says of
//! its losses what the original says.

use crate::Target;
use crate::corpus::root;
use crate::traces::{open, traces};
use crate::well_formed::messages;
use blklab::trace_file::{TraceOut, header_for};
use blklab_export::{IologExport, PerfettoWriter, Rows, SheetFormat, TableWriter};
use blklab_fio::replay::text;
use blklab_fio::settings::ReplayOptions;
use blklab_formats::blktrace::BlktraceStream;
use blklab_formats::{FORMATS, FormatError, ReadCounts, TraceFile};
use blklab_trace::{DigestSink, NullSink, TraceSource as _};
use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use std::io::Cursor;

pub(crate) const TARGET: Target = Target {
    name: "export",
    feed,
    samples: traces,
};

fn feed(data: &[u8]) -> Option<u64> {
    let mut input = open(data)?;
    let header = header_for(&input, root());
    let table = |format, rows| TableWriter::new(format, rows, Vec::new()).expect("titles");
    let sheets = |rows| {
        (
            table(SheetFormat::Csv, rows),
            table(SheetFormat::Parquet, rows),
        )
    };
    let mut events = sheets(Rows::Events);
    let mut ios = sheets(Rows::Ios);
    let mut bios = sheets(Rows::Bios);
    let mut perfetto = PerfettoWriter::new(Vec::new(), &header);
    let mut log = IologExport::new(Vec::new(), &header).expect("a vector takes all");
    let mut blktrace = BlktraceStream::new(Vec::new());
    let mut digest = DigestSink::<NullSink>::default();
    let mut tables = (&mut events, (&mut ios, &mut bios));
    let mut others = (&mut perfetto, (&mut log, &mut blktrace));
    let mut all = (&mut digest, (&mut tables, &mut others));
    // What came before it was refused is a trace, too.
    let read = input.send_all(&mut all);
    let counts = input.counts().clone();

    let nr_rows = counts.events + counts.messages;
    let written = [(Rows::Events, events), (Rows::Ios, ios), (Rows::Bios, bios)];
    for (rows, (csv, parquet)) in written {
        let nr = csv_rows(rows, &done(csv.finish()));
        assert_eq!(parquet_rows(done(parquet.finish())), nr, "rows of {rows:?}");
        if rows == Rows::Events && read.is_ok() {
            assert_eq!(nr, nr_rows, "an event is a row");
        }
    }
    messages(&done(perfetto.finish()));
    let log = done(log.finish());
    let replayed = text::read(&mut &log[..], "written.iolog", &ReplayOptions::default());
    if let Err(e) = replayed {
        // Not everything has something to repeat.
        assert!(is_empty(&log), "the iolog is none: {e}");
    }
    reads_back(done(blktrace.finish()), &counts);
    if read.is_ok() {
        copies(data, &counts);
    }
    (digest.digest.nr_events() > 0).then(|| digest.digest.value())
}

/// Whether a log asks for no data: a trace of flushes alone has none.
fn is_empty(log: &[u8]) -> bool {
    let log = String::from_utf8_lossy(log);
    let asks = |line: &str| matches!(line.split(' ').nth(2), Some("read" | "write"));
    !log.lines().any(asks)
}

fn done(written: Result<Vec<u8>, FormatError>) -> Vec<u8> {
    written.expect("a vector takes all")
}

/// Rows of a table, each as wide as the titles.
fn csv_rows(rows: Rows, bytes: &[u8]) -> u64 {
    let mut reader = csv::Reader::from_reader(bytes);
    assert_eq!(reader.headers().expect("titles"), rows.titles());
    let rows = reader
        .records()
        .inspect(|row| assert!(row.is_ok(), "a row of the table"));
    rows.count() as u64
}

fn parquet_rows(bytes: Vec<u8>) -> u64 {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let rows = rows.inspect(|row| assert!(row.is_ok(), "a row of the table"));
    rows.count() as u64
}

/// A stream of blktrace has no damage of its own, and the events that were read.
fn reads_back(bytes: Vec<u8>, read: &ReadCounts) {
    if read.events == 0 {
        return;
    }
    let format = FORMATS.iter().find(|f| f.name == "blktrace");
    let format = format.expect("a format");
    let again = TraceFile::of_format(format, Cursor::new(bytes), "written");
    sound(&mut again.expect("what was written is a trace"), read);
}

fn sound(copy: &mut TraceFile, read: &ReadCounts) {
    let name = copy.format().name;
    if let Err(e) = copy.send_all(&mut NullSink) {
        panic!("{name} cannot be read: {e}");
    }
    let counts = copy.counts();
    let amiss = [counts.damaged, counts.foreign, counts.skipped_bytes];
    assert_eq!(amiss, [0; 3], "{name}: {:?}", counts.examples);
    assert_eq!(counts.events, read.events, "events of {name}");
}

/// Copies as text and in the compact form; the latter lacks what the original lacks.
fn copies(data: &[u8], read: &ReadCounts) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copied = |name: &str| {
        let path = folder.path().join(name);
        let mut input = open(data).expect("it was a trace");
        let header = header_for(&input, root());
        let mut out = TraceOut::create(&path, &header).expect("it can be created");
        out.copy(&mut input).expect("it was read before");
        out.finish().expect("it can be written");
        let copy = TraceFile::open(&path);
        let copy = copy.unwrap_or_else(|e| panic!("what was written is no trace: {e}"));
        (input, copy)
    };
    if read.events > 0 {
        sound(&mut copied("copy.txt").1, read);
    }
    let (input, mut copy) = copied("copy.blk");
    copy.send_all(&mut NullSink).expect("it can be read");
    assert_eq!(
        copy.says_losses(),
        input.says_losses(),
        "whether losses are told"
    );
    let said = |c: &ReadCounts| [c.events, c.lost, c.left_out, c.elided, c.missing, c.damaged];
    assert_eq!(said(copy.counts()), said(input.counts()), "what is lost");
    assert_eq!(
        copy.counts().truncated,
        input.counts().truncated,
        "whether it is cut"
    );
}
