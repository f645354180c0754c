// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of LTTng, compared with what babeltrace2 reads in them.

use blklab_formats::braces::BracesReader;
use blklab_formats::ctf::CtfReader;
use blklab_formats::{FormatError, ReadCounts, TraceFile};
use blklab_trace::{Event, TraceSource};
use blklab_types::Time;
use std::path::{Path, PathBuf};

/// What the clock showed when it was at 0.
const OFFSET_NS: u64 = 1_700_000_000_000_000_000;

fn sample(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ctf");
    root.join(name)
}

fn events(mut source: impl TraceSource<Error = FormatError>) -> Vec<Event> {
    let mut all = Vec::new();
    source.send_all(&mut all).unwrap();
    all
}

/// As babeltrace2 prints it: events without a task of their own have none.
fn printed() -> Vec<Event> {
    let text = std::fs::read(sample("le-compact.txt")).unwrap();
    let mut all = events(BracesReader::new(&text[..], "text"));
    for event in &mut all {
        event.time = Time(event.time.0 - OFFSET_NS);
    }
    all
}

fn counts_of(name: &str) -> (Vec<Event>, ReadCounts) {
    let mut file = TraceFile::open(&sample(name)).unwrap();
    assert_eq!(file.format().name, "ctf");
    let mut all = Vec::new();
    file.send_all(&mut all).unwrap();
    (all, file.counts().clone())
}

#[test]
fn every_layout_has_the_events_that_babeltrace2_reads() {
    let expected = printed();
    assert!(expected.len() > 190, "{}", expected.len());
    for name in ["le-compact", "be-compact", "le-large", "babeltrace2"] {
        let (found, counts) = counts_of(name);
        assert_eq!(found.len(), expected.len(), "{name}: {counts:?}");
        for (found, expected) in found.iter().zip(&expected) {
            let mut comparable = *found;
            if expected.pid == 0 {
                comparable.pid = 0;
            }
            assert_eq!(comparable, *expected, "{name}");
        }
        // What names no task happened in that of which a switch told.
        let of_nobody = found.iter().filter(|e| e.pid == 0).count();
        assert_eq!(of_nobody, 1, "{name}");
        assert_eq!(
            (counts.lost, counts.gaps, counts.damaged),
            (3, 1, 0),
            "{name}"
        );
        let named = |name: &str| counts.other_names.iter().find(|n| n.0 == name).map(|n| n.1);
        // Switches, 24 of them, and wake-ups.
        assert_eq!((named("sched_switch"), counts.kernel_events), (None, 52));
        assert_eq!(named("lttng_statedump_block_device"), Some(1));
    }
}

#[test]
fn a_file_of_a_folder_stands_for_it() {
    let (all, _) = counts_of("le-compact");
    for name in ["le-compact/kernel/channel0_1", "be-compact/kernel/metadata"] {
        assert_eq!(counts_of(name).0.len(), all.len(), "{name}");
    }
    let bytes = std::fs::read(sample("le-compact/kernel/channel0_0")).unwrap();
    let error = TraceFile::from_reader(std::io::Cursor::new(bytes), "pipe").unwrap_err();
    assert_eq!(
        error.to_string(),
        "pipe: a file of an LTTng trace, which is a folder with a file 'metadata': give that"
    );
}

fn bytes_of(name: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
    let folder = sample(name).join("kernel");
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
    (
        read("metadata"),
        vec![read("channel0_0"), read("channel0_1")],
    )
}

/// Reads a trace of changed bytes.
fn changed(name: &str, change: impl Fn(&mut Vec<u8>, &mut Vec<Vec<u8>>)) -> (usize, ReadCounts) {
    let (mut metadata, mut files) = bytes_of(name);
    change(&mut metadata, &mut files);
    let mut reader = CtfReader::of_bytes(&metadata, files, "changed").unwrap();
    let mut all = Vec::new();
    reader.send_all(&mut all).unwrap();
    (all.len(), reader.counts().clone())
}

#[test]
fn damage_is_counted() {
    let (whole, _) = changed("le-compact", |_, _| {});
    // The last packet is cut within its events.
    let (nr, counts) = changed("le-compact", |_, files| files[0].truncate(3 * 4096 - 4000));
    assert!(counts.truncated && nr < whole, "{nr}: {counts:?}");
    // Sizes that no packet has.
    let (nr, counts) = changed("le-compact", |_, files| files[0][4096 + 55] = 0xff);
    assert_eq!(counts.damaged, 1, "{nr}: {counts:?}");
    assert!(counts.skipped_bytes == 8192, "{counts:?}");
    // An event whose number the metadata do not have: the rest of its packet is lost.
    let (nr, counts) = changed("le-compact", |_, files| files[1][84] = 30);
    assert!(counts.damaged == 1 && nr < whole, "{nr}: {counts:?}");
    let example = "changed: an event of a number that the metadata do not have";
    assert_eq!(counts.examples, [example]);
    // A lost packet shows in the numbers of the others.
    let (_, counts) = changed("be-compact", |_, files| {
        files[0].drain(4096..8192);
    });
    assert_eq!((counts.lost, counts.gaps), (4, 2), "{counts:?}");
}

#[test]
fn metadata_that_make_no_sense_are_one_line() {
    let (metadata, _) = bytes_of("le-large");
    let refused = |bytes: &[u8]| {
        let refused = CtfReader::of_bytes(bytes, Vec::new(), "m");
        refused.unwrap_err().to_string()
    };
    let text = String::from_utf8(metadata).unwrap();
    let without = text.replace("} := uint16_t", "} := uint17_t");
    assert_eq!(
        refused(without.as_bytes()),
        "m:74: no type is called 'uint16_t'"
    );
    assert_eq!(
        refused(b"\x1e{\"type\":\"preamble\",\"version\":2}"),
        "m: CTF version 2 is not supported, only 1.8 (lttng create --trace-format=ctf-1.8)"
    );
    let (packets, _) = bytes_of("le-compact");
    assert_eq!(
        refused(&packets[..5000]),
        "m: the sizes of a packet make no sense, or the file was cut"
    );
}

/// No byte of the samples may be changed into a panic.
#[test]
fn any_byte_may_be_wrong() {
    for name in ["le-compact", "be-compact"] {
        for at in (0..12288).step_by(53) {
            changed(name, |_, files| files[0][at] ^= 1 << (at % 8));
        }
        let (metadata, files) = bytes_of(name);
        for at in (0..metadata.len()).step_by(211) {
            let mut metadata = metadata.clone();
            metadata[at] ^= 1 << (at % 7);
            if let Ok(mut reader) = CtfReader::of_bytes(&metadata, files.clone(), "changed") {
                let _ = reader.send_all(&mut Vec::new());
            }
        }
    }
}
