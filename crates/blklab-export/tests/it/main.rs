// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written is read back by the readers of others.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use blklab_export::{Batches, IologExport, Rows, SheetFormat, TableWriter, is_written_here};
use blklab_formats::TraceFile;
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::{TraceHeader, TraceSink, TraceSource as _};
use blklab_types::Dev;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// A merge of two writes, a flush, a read in two recordings, a message, an unplug, and
/// an array above a disk.
const TEXT: &str = "\
  8,0    0        1     0.000000000    10  Q  WS 800 + 8 [dd]
  8,0    0        2     0.000001000    10  G  WS 800 + 8 [dd]
  8,0    0        3     0.000002000    10  Q  WS 808 + 8 [dd]
  8,0    0        4     0.000003000    10  M  WS 808 + 8 [dd]
  8,0    0        5     0.000004000    10  U   N [dd] 1
  8,0    0        6     0.000005000    10  I  WS 800 + 16 [dd]
  8,0    0        7     0.000006000     0  m   N cfq said, \"well\"
  8,0    0        8     0.000010000    10  D  WS 800 + 16 [dd]
  8,0    0        9     0.000050000     0  C  WS 800 + 16 [0]
  9,0    0       10     0.001000000    10  Q   R 64 + 8 [dd]
  8,0    0       11     0.001001000    10  A   R 128 + 8 <- (9,0) 64
  8,0    0       12     0.001002000    10  Q   R 128 + 8 [dd]
  8,0    0       13     0.001010000    10  Q FWS 0 + 0 [dd]
";

fn send(sink: &mut impl TraceSink) {
    let mut reader = BlkparseReader::new(TEXT.as_bytes(), "test");
    reader.send_all(sink).expect("sound");
    let counts = reader.counts();
    assert_eq!((counts.damaged, counts.foreign), (0, 0), "{counts:?}");
}

fn table(format: SheetFormat, rows: Rows) -> Vec<u8> {
    let mut writer = TableWriter::new(format, rows, Vec::new()).expect("a vector has room");
    send(&mut writer);
    writer.finish().expect("a vector has room")
}

fn csv_lines(rows: Rows) -> Vec<String> {
    let text = String::from_utf8(table(SheetFormat::Csv, rows)).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// Rows of Parquet, each value as CSV shows it.
fn parquet_rows(rows: Rows) -> Vec<Vec<String>> {
    let bytes = table(SheetFormat::Parquet, rows);
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a file of Parquet");
    let rows = file.get_row_iter(None).expect("rows");
    let shown = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Long(n) => n.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    rows.map(|row| {
        let row = row.expect("a row");
        row.get_column_iter().map(|(_, f)| shown(f)).collect()
    })
    .collect()
}

#[test]
fn events_are_rows() {
    let lines = csv_lines(Rows::Events);
    assert_eq!(lines.len(), 14);
    assert_eq!(
        lines[0],
        "recording,number,time_ns,cpu,device,pid,process,action,rwbs,sector,sectors,bytes,\
         error,requests,split_sector,from_device,from_sector,message"
    );
    assert_eq!(lines[1], "1,1,0,0,\"8,0\",10,dd,Q,WS,800,8,4096,,,,,,");
    assert_eq!(lines[5], "1,5,4000,0,\"8,0\",10,dd,U,N,0,0,0,,1,,,,");
    assert!(
        lines[7].ends_with(",m,N,0,0,0,,,,,,\"cfq said, \"\"well\"\"\""),
        "{}",
        lines[7]
    );
    assert!(lines[9].contains(",C,WS,800,16,8192,0,"), "{}", lines[9]);
    assert!(
        lines[11].ends_with(",A,R,128,8,4096,,,,\"9,0\",64,"),
        "{}",
        lines[11]
    );
}

#[test]
fn bios_and_ios_are_rows_when_they_end() {
    let bios = csv_lines(Rows::Bios);
    // The two of the write, then three without an end.
    assert_eq!(bios.len(), 1 + 5);
    assert_eq!(
        bios[1],
        "1,\"8,0\",10,dd,WS,800,4096,0,0,0,,1000,,,5000,10000,50000,0,10000,40000,50000"
    );
    assert_eq!(
        bios[2],
        "1,\"8,0\",10,dd,WS,808,4096,0,0,2000,,,3000,back,,10000,50000,0,8000,40000,48000"
    );
    let ios = csv_lines(Rows::Ios);
    assert_eq!(
        ios[1],
        "1,0,\"8,0\",10,dd,WS,800,16,0,1000,5000,10000,50000,0,2,1,0,0,0,5000,40000,50000"
    );
}

/// Both forms of a table hold the same.
#[test]
fn parquet_holds_what_csv_holds() {
    for rows in [Rows::Events, Rows::Ios, Rows::Bios] {
        let text = table(SheetFormat::Csv, rows);
        let mut csv = csv::Reader::from_reader(&*text);
        let from_csv: Vec<Vec<String>> = csv
            .records()
            .map(|r| r.expect("a record").iter().map(str::to_owned).collect())
            .collect();
        assert!(!from_csv.is_empty());
        assert_eq!(parquet_rows(rows), from_csv, "{rows:?}");
    }
}

/// More rows than a group has, and a trace without any.
#[test]
fn groups_of_parquet() {
    let mut writer = TableWriter::new(SheetFormat::Parquet, Rows::Events, Vec::new()).unwrap();
    let mut reader = BlkparseReader::new(TEXT.as_bytes(), "test");
    let mut events = Vec::new();
    while let Some(item) = reader.next_item().expect("sound") {
        if let blklab_trace::Item::Event(event) = item {
            events.push(event);
        }
    }
    let nr = (1 << 16) + 100;
    for event in events.iter().cycle().take(nr) {
        writer.event(event);
    }
    let bytes = bytes::Bytes::from(writer.finish().unwrap());
    let file = SerializedFileReader::new(bytes).unwrap();
    assert_eq!(file.metadata().num_row_groups(), 2);
    assert_eq!(file.metadata().file_metadata().num_rows(), nr as i64);
    let last = file.get_row_iter(None).unwrap().last().unwrap().unwrap();
    let number = last
        .get_column_iter()
        .nth(1)
        .map(|(_, field)| field.clone());
    assert_eq!(number, Some(Field::Long(nr as i64)));
    let empty = TableWriter::new(SheetFormat::Parquet, Rows::Bios, Vec::new()).unwrap();
    let file = SerializedFileReader::new(bytes::Bytes::from(empty.finish().unwrap())).unwrap();
    assert_eq!(file.metadata().file_metadata().num_rows(), 0);
}

/// What fio would do again: the array's read once, not the disk's beside it.
#[test]
fn an_iolog_asks_for_the_same() {
    let header = TraceHeader {
        devices: vec![(Dev { major: 8, minor: 0 }, "sda".to_owned())],
        ..TraceHeader::default()
    };
    let mut writer = IologExport::new(Vec::new(), &header).expect("a vector has room");
    send(&mut writer);
    let log = writer.finish().expect("a vector has room");
    let text = String::from_utf8(log.clone()).expect("text");
    assert_eq!(
        text,
        "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n\
         0 /dev/sda write 409600 4096\n2 /dev/sda write 413696 4096\n\
         1000 /dev/block/9:0 add\n1000 /dev/block/9:0 open\n1000 /dev/block/9:0 read 32768 4096\n\
         1010 /dev/sda sync 0 0\n1010 /dev/sda close\n1010 /dev/block/9:0 close\n"
    );
    let mut back = TraceFile::from_reader(std::io::Cursor::new(log), "log").expect("a log");
    assert_eq!(back.format().name, "fio-iolog");
    let mut events = Vec::new();
    while let Some(item) = back.next_item().expect("sound") {
        if let blklab_trace::Item::Event(event) = item {
            events.push(event.to_string());
        }
    }
    assert_eq!(
        events,
        [
            "0,1 0 0.000000000 0 Q W 800 + 8",
            "0,1 0 0.000002000 0 Q W 808 + 8",
            "0,2 0 0.001000000 0 Q R 64 + 8",
            "0,1 0 0.001010000 0 Q FN 0 + 0",
        ]
    );
}

#[test]
fn only_what_was_written_here_may_be_replaced() {
    let dir = tempfile::tempdir().expect("a folder");
    let check = |bytes: &[u8], expected| {
        let path = dir.path().join("t");
        std::fs::write(&path, bytes).expect("room");
        assert_eq!(is_written_here(&path), expected, "{:?}", bytes.get(..20));
    };
    for rows in [Rows::Events, Rows::Ios, Rows::Bios] {
        check(&table(SheetFormat::Csv, rows), true);
        check(&table(SheetFormat::Parquet, rows), true);
    }
    check(b"recording,number\n1,2\n", false);
    check(b"to do\n", false);
}

/// Rows of batches, each value as CSV shows it.
fn batch_rows(rows: Rows, most: usize) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut sizes = Vec::new();
    let most = std::num::NonZeroUsize::new(most).expect("a batch has rows");
    let mut batches = Batches::new(rows, most, |batch: RecordBatch| {
        sizes.push(batch.num_rows());
        let titles = batch
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect::<Vec<_>>();
        assert_eq!(titles, rows.titles());
        all.extend((0..batch.num_rows()).map(|row| {
            let shown = |column: &std::sync::Arc<dyn Array>| match column {
                column if column.is_null(row) => String::new(),
                column => match column.as_primitive_opt::<Int64Type>() {
                    Some(numbers) => numbers.value(row).to_string(),
                    None => column.as_string::<i32>().value(row).to_owned(),
                },
            };
            batch.columns().iter().map(shown).collect::<Vec<_>>()
        }));
        Ok(())
    });
    send(&mut batches);
    batches.finish().expect("all is taken");
    let (last, full) = sizes.split_last().expect("a batch");
    assert!(full.iter().all(|n| *n == most.get()) && (1..=most.get()).contains(last));
    all
}

#[test]
fn batches_have_the_rows_of_parquet() {
    for rows in [Rows::Events, Rows::Ios, Rows::Bios] {
        for most in [1, 2, 1000] {
            assert_eq!(
                batch_rows(rows, most),
                parquet_rows(rows),
                "{rows:?}, {most}"
            );
        }
    }
}

#[test]
fn an_error_of_who_takes_batches_is_given_once() {
    let one = std::num::NonZeroUsize::MIN;
    let mut taken = 0;
    let mut batches = Batches::new(Rows::Events, one, |_| {
        taken += 1;
        Err(std::io::Error::other("no more"))
    });
    send(&mut batches);
    let e = batches.finish().expect_err("it was refused");
    assert!(e.to_string().contains("no more"), "{e}");
    assert_eq!(taken, 1);
}
