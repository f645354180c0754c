// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets as Perfetto writes them, made by hand.

use super::*;
use crate::TraceFile;
use std::io::{Cursor, Write as _};

fn key(number: u32, kind: u32) -> Vec<u8> {
    raw(u64::from(number << 3 | kind))
}

fn raw(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn number(field: u32, n: u64) -> Vec<u8> {
    [key(field, 0), raw(n)].concat()
}

fn bytes(field: u32, bytes: &[u8]) -> Vec<u8> {
    [key(field, 2), raw(bytes.len() as u64), bytes.to_vec()].concat()
}

/// An event: time in us, task, message.
fn event(us: u64, pid: u64, field: u32, message: &[Vec<u8>]) -> Vec<u8> {
    let said = bytes(field, &message.concat());
    bytes(2, &[number(1, us * 1000), number(2, pid), said].concat())
}

fn packet(cpu: u64, events: &[Vec<u8>]) -> Vec<u8> {
    let bundle = bytes(1, &[number(1, cpu), events.concat()].concat());
    bytes(1, &bundle)
}

const DEV: u64 = 8 << 20 | 16;

fn queue() -> Vec<u8> {
    let fields = [
        number(1, DEV),
        number(2, 2048),
        number(3, 8),
        bytes(4, b"WS"),
        bytes(5, b"fio"),
    ];
    event(100, 42, 119, &fields)
}

fn issue() -> Vec<u8> {
    let fields = [
        number(1, DEV),
        number(2, 2048),
        number(3, 8),
        number(4, 4096),
        bytes(5, b"WS"),
        bytes(6, b"fio"),
    ];
    event(110, 42, 45, &fields)
}

/// A completion with an error of -5, whose field of 0 is left out.
fn complete() -> Vec<u8> {
    let fields = [
        number(1, DEV),
        number(2, 2048),
        number(3, 8),
        number(4, (-5_i64) as u64),
        bytes(5, b"WS"),
    ];
    event(900, 0, 125, &fields)
}

/// What a file says, a line for each item.
fn read(file: Vec<u8>) -> (Vec<String>, ReadCounts) {
    let mut trace = TraceFile::from_reader(Cursor::new(file), "test").expect("a trace");
    assert_eq!(trace.format().name, "perfetto");
    let mut said = Vec::new();
    while let Some(item) = trace.next_item().expect("it is read") {
        said.push(match item {
            Item::Event(e) => e.to_string(),
            Item::Process { pid, comm, .. } => format!("{pid} is {comm}"),
            Item::Message(e, text) => format!("{} {text}", e.dev),
            Item::Kernel(e) => e.point.to_string(),
            Item::Stack { functions, .. } => functions.to_owned(),
            Item::NewRecording => "again".to_owned(),
        });
    }
    (said, trace.counts().clone())
}

const LINES: [&str; 4] = [
    "42 is fio",
    "8,16 1 0.000100000 42 Q WS 2048 + 8",
    "8,16 1 0.000110000 42 D WS 2048 + 8",
    "8,16 0 0.000900000 0 C WS 2048 + 8 [5]",
];

#[test]
fn events_of_all_cpus_in_order() {
    let (said, counts) = read([packet(0, &[complete()]), packet(1, &[queue(), issue()])].concat());
    assert_eq!(said, LINES);
    assert_eq!((counts.events, counts.lost, counts.damaged), (3, 0, 0));
}

#[test]
fn compressed_packets_and_lost_events() {
    let plain = [packet(1, &[queue(), issue()]), packet(0, &[complete()])].concat();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plain).expect("a vector");
    let packed = bytes(50, &encoder.finish().expect("a vector"));
    let lost = bytes(1, &bytes(1, &[number(1, 3), number(3, 1)].concat()));
    let (said, counts) = read([bytes(1, &packed), lost].concat());
    assert_eq!(said, LINES);
    assert_eq!((counts.lost, counts.gaps), (1, 1));
}

#[test]
fn events_without_a_message_of_their_own() {
    let field = |name: &[u8], value: Vec<u8>| bytes(2, &[bytes(1, name), value].concat());
    let generic = [
        bytes(1, b"jbd2_start_commit"),
        field(b"dev", number(5, DEV)),
        field(b"transaction", number(4, 77)),
    ];
    let generic = event(50, 9, 327, &generic);
    // The trace itself describes event 70000.
    let described = |name: &[u8], n| bytes(2, &[bytes(1, name), number(3, n)].concat());
    let message = [
        bytes(1, b"jbd2_end_commit"),
        described(b"dev", 1),
        described(b"transaction", 2),
    ];
    let description = [number(1, 70_000), bytes(2, &message.concat())].concat();
    let ended = event(60, 9, 70_000, &[number(1, DEV), number(2, 77)]);
    let bundle = [bytes(11, &description), ended].concat();
    let file = [packet(0, &[generic]), bytes(1, &bytes(1, &bundle))].concat();
    let (said, counts) = read(file);
    let expected = [
        "jbd2_start_commit: transaction 77",
        "jbd2_end_commit: transaction 77",
    ];
    assert_eq!(said, expected);
    assert_eq!((counts.kernel_events, counts.damaged), (2, 0));
}

#[test]
fn names_messages_and_what_is_not_read() {
    let thread = bytes(2, &[number(1, 7), bytes(2, b"worker")].concat());
    let tree = bytes(1, &bytes(2, &thread));
    let plain = event(20, 7, 126, &[number(1, DEV), number(3, 8), bytes(5, b"R")]);
    let print = event(30, 7, 3, &[bytes(2, b"blktrace m 8,16 cfq7 slice\n")]);
    let other = event(40, 7, 3, &[bytes(2, b"B|7|a slice of a program\n")]);
    let unknown = event(50, 7, 9999, &[number(1, 1)]);
    let (said, counts) = read([tree, packet(0, &[plain, print, other, unknown])].concat());
    let expected = [
        "7 is worker",
        "8,16 0 0.000020000 7 I R 0 + 8",
        "8,16 cfq7 slice",
    ];
    assert_eq!(said, expected);
    assert_eq!((counts.other_events, counts.messages), (2, 1));
}

#[test]
fn what_is_cut_or_no_packet() {
    let whole = [packet(1, &[queue(), issue()]), packet(0, &[complete()])].concat();
    let (said, counts) = read(whole[..whole.len() - 3].to_vec());
    assert_eq!(said, LINES[..3]);
    assert!(counts.truncated);
    for other in ["\n\n# a text that begins with lines\n", "\n\u{7}a text"] {
        let other = other.as_bytes().to_vec();
        let refused = TraceFile::from_reader(Cursor::new(other), "test").unwrap_err();
        assert!(
            matches!(refused, FormatError::Unrecognised { .. }),
            "{refused}"
        );
    }
}
