// SPDX-License-Identifier: MIT OR Apache-2.0
//! blktrace binary in its other forms: version 8, the other byte order, several
//! traces in one file, records in the file of another CPU.

use crate::readers::read_binary;
use crate::synthetic::{Said, send, trace};
use blklab_formats::blktrace::BlktraceStream;
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{Action, Event, Rwbs, TraceSource as _};

fn binary(said: &[Said]) -> Vec<u8> {
    let mut stream = BlktraceStream::new(Vec::new());
    send(said, &mut stream);
    stream.finish().expect("a vector takes all")
}

/// The records of version 7, each with its payload.
fn records(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let (mut rest, mut records) = (bytes, Vec::new());
    while !rest.is_empty() {
        let len = usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        let (record, behind) = rest.split_at(48 + len);
        records.push(record.split_at(48));
        rest = behind;
    }
    records
}

/// A record of version 8 with these fields and the upper half of its action.
fn wide(head: &[u8], upper: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = head[..28].to_vec();
    record[0] = 8;
    record.extend_from_slice(&head[32..36]);
    record.extend_from_slice(&head[28..32]);
    record.extend_from_slice(&upper.to_le_bytes());
    record.extend_from_slice(&head[36..48]);
    record.resize(64, 0);
    record.extend_from_slice(payload);
    record
}

/// The same with every field the other way round.
fn turned(record: &[u8], fields: &[usize], head_bytes: usize) -> Vec<u8> {
    let mut turned = record.to_vec();
    let mut at = 0;
    for len in fields {
        turned[at..at + len].reverse();
        at += len;
    }
    assert!(at <= head_bytes);
    turned
}

#[test]
fn both_versions_in_both_byte_orders() {
    let said = trace(5, 400, 3, 1);
    let narrow = binary(&said);
    let (expected, expected_counts) = read_binary(&narrow);
    type Form<'a> = dyn Fn(&[u8], &[u8]) -> Vec<u8> + 'a;
    let bytes_of = |record: &Form<'_>| {
        let all = records(&narrow);
        let bytes: Vec<u8> = all.iter().flat_map(|(h, p)| record(h, p)).collect();
        read_binary(&bytes)
    };
    let narrow_fields = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
    let wide_fields = [4, 4, 8, 8, 4, 4, 8, 4, 4, 2, 2];
    let turned_narrow = bytes_of(&|h, p| [turned(h, &narrow_fields, 48), p.to_vec()].concat());
    let same_wide = bytes_of(&|h, p| wide(h, 0, p));
    let turned_wide = bytes_of(&|h, p| turned(&wide(h, 0, p), &wide_fields, 64));
    for (found, counts) in [turned_narrow, same_wide, turned_wide] {
        assert_eq!(found, expected);
        assert_eq!(counts, expected_counts);
    }
    // A file that goes on in the other order is read on, and says so.
    let all = records(&narrow);
    let (first, rest) = all.split_at(all.len() / 2);
    let mut mixed: Vec<u8> = first.iter().flat_map(|(h, p)| [*h, *p].concat()).collect();
    mixed.extend(
        rest.iter()
            .flat_map(|(h, p)| turned(&wide(h, 0, p), &wide_fields, 64)),
    );
    let (found, counts) = read_binary(&mixed);
    assert_eq!(found, expected);
    assert_eq!(counts.damaged, 1);
    assert!(counts.examples[0].contains("byte order or version changes"));
}

/// What only version 8 can tell.
#[test]
fn operations_on_zones() {
    let event = Event {
        time: blklab_types::Time(1000),
        sector: 524_288,
        arg: 0,
        bytes: 4096,
        pid: 42,
        dev: blklab_types::Dev { major: 8, minor: 0 },
        from_dev: blklab_types::Dev::default(),
        error: 0,
        cpu: 0,
        rwbs: Rwbs::WRITE.with(Rwbs::SYNC),
        action: Action::Complete,
    };
    let narrow = binary(&[Said::Event(event)]);
    let all = records(&narrow);
    let (head, _) = all.last().expect("an event");
    let with = |code: u8, categories: u16, bytes: u32, upper: u32| {
        let mut head = head.to_vec();
        head[24..28].copy_from_slice(&bytes.to_le_bytes());
        head[28] = code;
        head[30..32].copy_from_slice(&categories.to_le_bytes());
        let (said, counts) = read_binary(&wide(&head, upper, &[]));
        let shown = said.first().map(|said| match said {
            Said::Event(event) => format!("{} {}", event.action.letters(), event.rwbs),
            other => format!("{other:?}"),
        });
        (shown.unwrap_or_default(), counts.other_names)
    };
    let (write, sync, complete) = (2, 8, 0x80);
    let named = |name: &str| vec![(name.to_owned(), 1)];
    let none = Vec::new;
    // An append, its end, and in between where the device has put it.
    assert_eq!(with(1, write | sync, 4096, 1), ("Q WS".into(), none()));
    assert_eq!(with(8, write | complete, 4096, 1), ("C W".into(), none()));
    assert_eq!(
        with(8, write, 4096, 1),
        (String::new(), named("zone append"))
    );
    // A reset moves no data; zeroes are written.
    assert_eq!(with(1, write | sync, 0, 2), ("Q NS".into(), none()));
    assert_eq!(with(1, write | sync, 4096, 0x40), ("Q WS".into(), none()));
    assert_eq!(with(18, write, 0, 0), (String::new(), named("zone plug")));
    assert_eq!(with(19, write, 0, 0), (String::new(), named("zone unplug")));
}

#[test]
fn two_traces_in_one_file() {
    let said = trace(6, 300, 2, 1);
    let bytes = binary(&said);
    let twice = [&bytes[..], &bytes[..]].concat();
    let mut file = TraceFile::from_reader(std::io::Cursor::new(twice), "x").expect("a trace");
    let mut new_recordings = 0;
    while let Some(item) = file.next_item().expect("memory can be read") {
        new_recordings += usize::from(matches!(item, blklab_trace::Item::NewRecording));
    }
    // The second begins with a message, which has no number.
    assert_eq!((new_recordings, file.counts().backwards), (1, 1));
    let (_, one) = read_binary(&bytes);
    assert_eq!(file.counts().events, 2 * one.events);
}

#[test]
fn records_in_the_file_of_another_cpu() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let said = trace(6, 300, 2, 1);
    let path = dir.path().join("t.blktrace.7");
    std::fs::write(&path, binary(&said)).expect("a file");
    let mut file = TraceFile::open(&path).expect("a trace");
    file.send_all(&mut Vec::new()).expect("it can be read");
    let counts = file.counts();
    assert!(counts.events > 250 && counts.other_cpu >= counts.events);
    assert_eq!((counts.damaged, counts.lost), (0, 0));
    assert_eq!(file.missing_cpus(), (0..7).collect::<Vec<u16>>());
}

/// Traces of real machines, all of whose records are sound.
#[test]
fn real_traces() {
    let Some(dir) = blklab_testkit::shared("data/real-traces") else {
        return;
    };
    for (name, nr_events, files) in [
        ("keks/keks", 2_398, 8),
        ("centos/sda", 799, 2),
        ("one-file/sample", 6_741, 1),
    ] {
        let mut file = TraceFile::open(&dir.join(name)).expect("a trace");
        file.send_all(&mut Vec::new()).expect("it can be read");
        let ReadCounts {
            events, damaged, ..
        } = *file.counts();
        let found = (events, damaged, file.cpu_files().len());
        assert_eq!(found, (nr_events, 0, files), "{name}: {:?}", file.counts());
    }
}

/// Traces of known cause: every event is read, none is damaged.
#[test]
fn known_causes() {
    let Some(dir) = blklab_testkit::shared("data/oracle") else {
        return;
    };
    let index = std::fs::read_to_string(dir.join("index.csv")).expect("an index");
    let mut nr_cases = 0;
    for row in index.lines().skip(1) {
        let mut fields = row.split(',');
        let (case, trace) = (
            fields.next().expect("a case"),
            fields.next().expect("a file"),
        );
        let nr_events: u64 = fields
            .nth(1)
            .and_then(|n| n.parse().ok())
            .expect("a number");
        let mut file = TraceFile::open(&dir.join(case).join(trace)).expect("a trace");
        file.send_all(&mut Vec::new()).expect("it can be read");
        let counts = file.counts();
        let all = counts.events + counts.kernel_events + counts.other_events;
        assert!(
            all.abs_diff(nr_events) <= nr_events / 50,
            "{case}: {all} of {nr_events}"
        );
        assert_eq!(
            (counts.damaged, counts.unknown, counts.lost),
            (0, 0, 0),
            "{case}: {counts:?}"
        );
        nr_cases += 1;
    }
    assert!(nr_cases >= 11, "{nr_cases}");
}
