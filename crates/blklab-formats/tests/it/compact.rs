// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compact form: what goes in comes out; damage costs what it hits.

use crate::synthetic::{Recorder, Said, header, send, trace};
use blklab_formats::compact::{CompactReader, CompactWriter};
use blklab_formats::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, TraceHeader, TraceSource};

pub(crate) fn write(said: &[Said], header: &TraceHeader) -> Vec<u8> {
    let mut writer = CompactWriter::new(Vec::new(), header).unwrap();
    send(said, &mut writer);
    writer.finish().unwrap()
}

pub(crate) fn read(bytes: &[u8]) -> Result<(TraceHeader, Vec<Said>, ReadCounts), FormatError> {
    let mut reader = CompactReader::new(bytes, "test")?;
    let mut recorder = Recorder::default();
    reader.send_all(&mut recorder)?;
    Ok((reader.header().clone(), recorder.0, reader.counts().clone()))
}

#[test]
fn there_and_back() {
    let head = TraceHeader {
        origin: "seed 7, ünï".into(),
        ..header(3)
    };
    let said = trace(7, 30_000, 3, 1);
    let bytes = write(&said, &head);
    let (head_back, back, counts) = read(&bytes).unwrap();
    assert_eq!(head_back, head);
    assert_eq!(back, said);
    assert!(counts.is_clean(), "{counts:?}");
    assert_eq!(
        counts.events + counts.messages + counts.processes,
        said.len() as u64
    );
    let (_, none, counts) = read(&write(&[], &head)).unwrap();
    assert!(none.is_empty() && counts.is_clean());
}

#[test]
fn any_cut_leaves_a_prefix() {
    let said = trace(1, 24_000, 2, 1);
    let bytes = write(&said, &header(2));
    let mut complete = 0;
    for cut in (0..bytes.len())
        .step_by(997)
        .chain([bytes.len() - 1, bytes.len() - 16])
    {
        match read(&bytes[..cut]) {
            Err(FormatError::Unrecognised { .. } | FormatError::Header { .. }) => {
                assert!(cut < 100, "cut at {cut}");
            }
            Err(e) => panic!("cut at {cut}: {e}"),
            Ok((_, back, counts)) => {
                assert!(counts.truncated);
                assert_eq!(back, said[..back.len()], "cut at {cut}");
                assert!(back.len() >= complete || cut > bytes.len() - 20);
                complete = complete.max(back.len());
                let end = back.len() as u64 + counts.missing;
                assert!(end <= said.len() as u64);
            }
        }
    }
    assert!(complete > 20_000, "several chunks were complete");
}

#[test]
fn a_flipped_bit_costs_one_chunk() {
    let said = trace(2, 40_000, 2, 1);
    let bytes = write(&said, &header(2));
    let start = bytes.windows(4).position(|w| w == b"Chnk").unwrap();
    for place in [
        start + 1,
        start + 9,
        start + 13,
        start + 5_000,
        start + 150_000,
    ] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        let (_, back, counts) = read(&damaged).unwrap();
        assert_eq!(counts.damaged, 1, "at {place}: {counts:?}");
        assert!(counts.missing > 1000);
        assert_eq!(
            back.len() as u64 + counts.missing,
            said.len() as u64,
            "at {place}"
        );
    }
}

#[test]
fn other_files_and_versions_are_named() {
    let error = read(b"\x07tae and more").unwrap_err().to_string();
    assert!(error.starts_with("test: begins with \"\\x07tae"), "{error}");
    let mut bytes = write(&[], &header(1));
    bytes[8] = 9;
    let error = read(&bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "test: events.blk version 9 is not supported, only version 1"
    );
}

/// One I/O after the other as a disk sees it: the size of a typical event.
#[test]
fn events_are_small() {
    let mut said = Vec::new();
    let mut n = crate::synthetic::Numbers(1);
    let mut time = 0;
    for _ in 0..5_000 {
        let sector = n.below(1 << 31) & !7;
        for (action, step_ns, pid) in [
            (Action::Queue, 900_000, 4175),
            (Action::GetRequest, 1_200, 4175),
            (Action::Insert, 900, 4175),
            (Action::Issue, 2_000_000, 37),
            (Action::Complete, 5_000_000, 0),
        ] {
            time += n.below(2 * step_ns) + 1;
            said.push(Said::Event(Event {
                time: blklab_types::Time(time),
                sector,
                arg: 0,
                bytes: 4096,
                pid,
                dev: blklab_types::Dev { major: 8, minor: 0 },
                from_dev: blklab_types::Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: blklab_trace::Rwbs::READ,
                action,
            }));
        }
    }
    let bytes = write(&said, &header(1)).len();
    assert!(
        bytes < 8 * said.len(),
        "{} bytes for {} events",
        bytes,
        said.len()
    );
}

/// The example of `docs/trace-format.md`.
#[test]
fn the_documented_example() {
    let q = Event {
        time: blklab_types::Time(1000),
        sector: 2048,
        arg: 0,
        bytes: 4096,
        pid: 42,
        dev: blklab_types::Dev { major: 8, minor: 0 },
        from_dev: blklab_types::Dev::default(),
        error: 0,
        cpu: 0,
        rwbs: blklab_trace::Rwbs::READ,
        action: Action::Queue,
    };
    let g = Event {
        time: blklab_types::Time(1300),
        action: Action::GetRequest,
        ..q
    };
    let bytes = write(&[Said::Event(q), Said::Event(g)], &TraceHeader::default());
    let documented = include_str!("../../../../docs/trace-format.md");
    let section = documented.split("## Example").nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    let expected: Vec<u8> = block
        .lines()
        .flat_map(|line| line.get(..14).unwrap_or_default().split_whitespace())
        .map(|hex| u8::from_str_radix(hex, 16).unwrap())
        .collect();
    let start = bytes.windows(4).position(|w| w == b"Chnk").unwrap() + 16;
    assert_eq!(bytes[start..bytes.len() - 16], expected);
}

#[test]
fn a_copy_keeps_what_the_original_lacks() {
    let original = ReadCounts {
        lost: 7,
        gaps: 2,
        left_out: 29,
        damaged: u64::MAX,
        missing: 5,
        truncated: true,
        unsaid: true,
        ..ReadCounts::default()
    };
    let said = trace(3, 9_000, 2, 1);
    let mut writer = CompactWriter::new(Vec::new(), &header(2)).unwrap();
    send(&said, &mut writer);
    writer.original_lacks(&original);
    let bytes = writer.finish().unwrap();
    let (_, back, counts) = read(&bytes).unwrap();
    assert_eq!(back, said);
    let kept = ReadCounts {
        events: 0,
        messages: 0,
        processes: 0,
        ..counts.clone()
    };
    // No trace lacks more, whatever a file says: sums stay numbers.
    let original = ReadCounts {
        damaged: 1 << 60,
        ..original
    };
    assert_eq!(kept, original);
    // A copy of the copy, which was cut as well.
    let (_, _, cut) = read(&bytes[..bytes.len() - 40]).unwrap();
    assert!(cut.truncated && cut.missing > 0, "{cut:?}");
    // What lacks nothing is as it was.
    let mut writer = CompactWriter::new(Vec::new(), &header(2)).unwrap();
    send(&said, &mut writer);
    writer.original_lacks(&ReadCounts::default());
    assert_eq!(writer.finish().unwrap(), write(&said, &header(2)));
}
