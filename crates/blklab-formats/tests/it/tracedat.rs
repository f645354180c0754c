// SPDX-License-Identifier: MIT OR Apache-2.0
//! trace.dat against what trace-cmd prints of it.

use blklab_formats::TraceFile;
use blklab_formats::tracedat::TraceDatReader;
use blklab_trace::{Event, Item, TraceSource};
use std::io::Read as _;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tracedat")
}

/// A sample, decompressed.
fn sample(name: &str) -> Vec<u8> {
    let packed = std::fs::read(folder().join(name)).expect("a sample");
    let mut bytes = Vec::new();
    let mut decoder = zstd::Decoder::new(&packed[..]).expect("zstd");
    decoder.read_to_end(&mut bytes).expect("zstd");
    bytes
}

/// The events, and the names of processes.
fn read(file: &mut TraceFile) -> (Vec<Event>, Vec<String>) {
    let (mut events, mut names) = (Vec::new(), Vec::new());
    while let Some(item) = file.next_item().expect("it can be read") {
        match item {
            Item::Event(event) => events.push(event),
            Item::Process { pid, comm, .. } => names.push(format!("{pid} {comm}")),
            _ => {}
        }
    }
    (events, names)
}

#[test]
fn as_trace_cmd_prints_it() {
    let mut report = TraceFile::open(&folder().join("loop-6.18.report.txt.zst")).expect("text");
    let (expected, names) = read(&mut report);
    assert!(expected.len() >= 80, "{}", expected.len());
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in ["v6", "v7-none", "v7-zlib", "v7-zstd"] {
        let packed = format!("loop-6.18-{name}.dat.zst");
        let path = dir.path().join(name);
        std::fs::write(&path, sample(&packed)).expect("a file");
        // From a file, and from memory.
        for path in [path, folder().join(&packed)] {
            let mut file = TraceFile::open(&path).expect("a trace");
            assert_eq!(file.format().name, "trace.dat");
            let (events, found_names) = read(&mut file);
            assert!(file.counts().is_clean(), "{name}: {:?}", file.counts());
            assert_eq!(found_names, names);
            assert_eq!(events.len(), expected.len(), "{name}");
            for (event, expected) in events.iter().zip(&expected) {
                // The text has microseconds.
                let off_ns = event.time.0.abs_diff(expected.time.0);
                assert!(off_ns < 1000, "{event} {expected}");
                let rounded = Event {
                    time: expected.time,
                    ..*event
                };
                assert_eq!(rounded, *expected, "{name}");
            }
        }
    }
}

#[test]
fn what_is_lost() {
    let mut bytes = sample("loop-6.18-v6.dat.zst");
    // The pages are at the end: one of the first CPU, two of the second.
    let page = bytes.len() - 3 * 4096;
    bytes[page + 11] |= 0x80;
    let mut reader = TraceDatReader::new(&bytes[..], "test").expect("a trace");
    reader.send_all(&mut Vec::new()).expect("it can be read");
    assert_eq!((reader.counts().gaps, reader.counts().lost), (1, 1));
    // What the recorder counted is more than what the pages tell.
    let counted = with_statistics(
        &bytes,
        "CPU: 1\nentries: 0\noverrun: 5\ndropped events: 2\n",
    );
    let mut reader = TraceDatReader::new(&counted[..], "test").expect("a trace");
    let mut events = Vec::new();
    reader.send_all(&mut events).expect("it can be read");
    assert!(events.len() >= 80, "{}", events.len());
    assert_eq!((reader.counts().gaps, reader.counts().lost), (1, 7));
}

/// A file of version 6 without options, with the statistics of a CPU.
fn with_statistics(bytes: &[u8], text: &str) -> Vec<u8> {
    let title = b"flyrecord\0";
    let begin = bytes.windows(title.len()).position(|w| w == title);
    let begin = begin.expect("pages");
    let mut table = begin + title.len();
    let mut option = b"options  \0\x02\0".to_vec();
    option.extend((text.len() as u32).to_le_bytes());
    option.extend(text.as_bytes());
    option.extend([0, 0]);
    let mut all = bytes.to_vec();
    // Pages are found by their places in the file.
    loop {
        let place = u64::from_le_bytes(all[table..table + 8].try_into().expect("8 bytes"));
        if !(table as u64..bytes.len() as u64).contains(&place) {
            break;
        }
        let moved = place + option.len() as u64;
        all[table..table + 8].copy_from_slice(&moved.to_le_bytes());
        table += 16;
    }
    all.splice(begin..begin, option);
    all
}

#[test]
fn damage_is_counted_or_one_line() {
    let bytes = sample("loop-6.18-v6.dat.zst");
    let error = |bytes: &[u8]| match TraceDatReader::new(bytes, "x.dat") {
        Err(e) => e.to_string(),
        Ok(_) => "none".to_owned(),
    };
    assert_eq!(
        error(&bytes[..200]),
        "x.dat: damaged header: the file ends inside it"
    );
    let mut version = bytes.clone();
    version[10] = b'9';
    assert_eq!(
        error(&version),
        "x.dat: trace.dat version 9 is not supported, only versions 6 and 7"
    );
    // Cut behind the head of a page, and a page of nonsense.
    let pages = bytes.len() - 3 * 4096;
    for damaged in [bytes[..pages + 12].to_vec(), {
        let mut bytes = bytes.clone();
        bytes[pages + 8..pages + 64].fill(0xee);
        bytes
    }] {
        let mut reader = TraceDatReader::new(&damaged[..], "x.dat").expect("a head");
        reader
            .send_all(&mut Vec::<Event>::new())
            .expect("it can be read");
        assert!(!reader.counts().is_clean(), "{:?}", reader.counts());
    }
}

/// A file can promise more compressed parts than anybody will wait for.
#[test]
fn what_is_promised_behind_the_end_is_not_waited_for() {
    let bytes = sample("endless-v7-zlib.dat.zst");
    let mut reader = TraceDatReader::new(&bytes[..], "x.dat").expect("a head");
    reader
        .send_all(&mut Vec::<Event>::new())
        .expect("it can be read");
    assert!(
        (1..1000).contains(&reader.counts().damaged),
        "{:?}",
        reader.counts()
    );
}

/// Events of other parts of the kernel, as Linux 6.18 recorded them.
#[test]
fn what_other_parts_of_the_kernel_did() {
    let path = folder().join("ext4-fsync-6.18.dat.zst");
    let mut file = TraceFile::open(&path).expect("a trace");
    let mut said = Vec::new();
    let mut last = blklab_types::Time::ZERO;
    while let Some(item) = file.next_item().expect("it can be read") {
        let time = match item {
            Item::Event(e) => e.time,
            Item::Kernel(e) => {
                said.push(format!("{} {}", e.dev, e.point));
                e.time
            }
            _ => continue,
        };
        assert!(time >= last, "in order of time");
        last = time;
    }
    let counts = file.counts();
    assert_eq!(
        (said.len() as u64, counts.damaged),
        (counts.kernel_events, 0)
    );
    let nr_with = |name: &str| said.iter().filter(|s| s.contains(name)).count();
    for (name, nr) in [
        ("7,1 jbd2_start_commit: transaction 3", 4),
        ("7,1 jbd2_run_stats", 4),
        ("7,1 ext4_sync_file_enter: inode", 4),
        (", returns 0", 4),
        ("7,1 jbd2_handle_stats", 13),
        ("0,0 sched_switch", 12),
        (" D => ", 5),
    ] {
        assert_eq!(nr_with(name), nr, "{name}: {said:#?}");
    }
    assert!(
        counts
            .other_names
            .iter()
            .all(|(name, _)| !name.starts_with("jbd2_run"))
    );
}
