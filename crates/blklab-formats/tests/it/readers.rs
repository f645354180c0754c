// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading back: what we write, what kernels recorded, what mails quote.

use crate::synthetic::{Recorder, Said, header, send, trace};
use blklab_formats::blkparse::{BlkparseOptions, BlkparseReader, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceReader, BlktraceStream, BlktraceWriter};
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{Action, Event, Rwbs, TraceSource};
use blklab_types::{Dev, Time};
use std::path::Path;

pub(crate) fn read_binary(bytes: &[u8]) -> (Vec<Said>, ReadCounts) {
    let mut reader = BlktraceReader::from_stream(bytes, "test");
    let mut recorder = Recorder::default();
    reader.send_all(&mut recorder).unwrap();
    (recorder.0, reader.counts().clone())
}

pub(crate) fn read_text(text: &[u8]) -> (Vec<Said>, ReadCounts) {
    let mut reader = BlkparseReader::new(text, "test");
    let mut recorder = Recorder::default();
    reader.send_all(&mut recorder).unwrap();
    (recorder.0, reader.counts().clone())
}

pub(crate) fn print(said: &[Said]) -> Vec<u8> {
    let mut writer = BlkparseWriter::new(Vec::new(), BlkparseOptions::default());
    send(said, &mut writer);
    writer.finish().unwrap()
}

fn events(said: &[Said]) -> Vec<Event> {
    said.iter()
        .filter_map(|s| match s {
            Said::Event(event) => Some(*event),
            _ => None,
        })
        .collect()
}

/// What the binary form cannot tell apart: barriers are flushes, events
/// without data do not read.
fn as_binary(mut event: Event) -> Event {
    if event.rwbs.has(Rwbs::BARRIER) {
        event.rwbs = Rwbs(event.rwbs.0 & !Rwbs::BARRIER.0).with(Rwbs::FLUSH);
    }
    if event.bytes == 0 {
        event.rwbs = Rwbs(event.rwbs.0 & !Rwbs::READ.0);
    } else if event.rwbs == Rwbs::FLUSH {
        event.rwbs = Rwbs::FLUSH.with(Rwbs::READ);
    }
    event
}

#[test]
fn binary_stream_there_and_back() {
    let said = trace(5, 5_000, 3, 1);
    let mut stream = BlktraceStream::new(Vec::new());
    send(&said, &mut stream);
    let (back, counts) = read_binary(&stream.finish().unwrap());
    let expected: Vec<Event> = events(&said).into_iter().map(as_binary).collect();
    assert_eq!(events(&back), expected);
    assert!(counts.is_clean(), "{counts:?}");
    assert_eq!(counts.notes, 1, "the timestamp");
}

#[test]
fn files_of_cpus_there_and_back_in_blkparse_order() {
    for seed in 0..20 {
        let said = trace(seed, 500, 4, 5);
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("t");
        let mut writer = BlktraceWriter::create(&base, &header(4)).unwrap();
        send(&said, &mut writer);
        writer.finish().unwrap();
        let mut reader = BlktraceReader::open(&base).unwrap();
        let mut recorder = Recorder::default();
        reader.send_all(&mut recorder).unwrap();
        assert!(reader.counts().is_clean(), "{:?}", reader.counts());
        let printed = print(&recorder.0);
        assert_eq!(
            String::from_utf8_lossy(&printed),
            String::from_utf8_lossy(&print(&said))
        );
    }
}

#[test]
fn text_there_and_back() {
    let said: Vec<Said> = trace(9, 2_000, 2, 0)
        .into_iter()
        .filter(|s| match s {
            // The text has no shorter lengths, of splits only the sectors, and
            // of completed commands nothing.
            Said::Event(event) => {
                (event.bytes == 0 || event.bytes >= 512)
                    && event.action != Action::Split
                    && !event.rwbs.has(Rwbs::PC)
            }
            Said::Message(_, text) => !text.contains('\n'),
            Said::Process(..) => true,
        })
        .collect();
    let text = print(&said);
    let (back, counts) = read_text(&text);
    assert!(counts.is_clean(), "{counts:?}");
    assert!(counts.notes > 10, "the summary");
    // What is printed has all that was read.
    let again = print(&back);
    for (a, b) in String::from_utf8_lossy(&text)
        .lines()
        .zip(String::from_utf8_lossy(&again).lines())
    {
        if a.starts_with("CPU0") {
            break;
        }
        assert_eq!(a, b);
    }
}

/// What a process that is killed leaves behind can be read; a writer that is
/// dropped leaves nothing.
#[test]
fn an_interrupted_writer() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = BlktraceWriter::create(&dir.path().join("t"), &header(2)).unwrap();
    send(&trace(6, 20_000, 2, 0), &mut writer);
    assert!(!dir.path().join("t.blktrace.0").exists());
    for cpu in ["t.blktrace.0.partial", "t.blktrace.1.partial"] {
        let (said, counts) = read_binary(&std::fs::read(dir.path().join(cpu)).unwrap());
        assert!(counts.is_clean(), "{cpu}: {counts:?}");
        assert!(said.len() > 5_000);
    }
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A trace of fewer CPUs takes the place of one with more: none of the old
/// files is read with it. A file that is no trace stays.
#[test]
fn files_of_an_earlier_trace_do_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("t");
    for nr_cpus in [4, 2] {
        let mut writer = BlktraceWriter::create(&base, &header(nr_cpus)).unwrap();
        send(&trace(6, 100, nr_cpus.into(), 0), &mut writer);
        std::fs::write(dir.path().join("t.blktrace.9"), b"notes of mine").unwrap();
        writer.finish().unwrap();
    }
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["t.blktrace.0", "t.blktrace.1", "t.blktrace.9"]);
}

/// A process may have 1024 files open at first.
#[test]
fn a_machine_of_many_cpus() {
    const CPUS: u16 = 1500;
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("t");
    let said = trace(11, 20_000, CPUS.into(), 0);
    // The CPUs are found as they come.
    let mut writer = BlktraceWriter::create(&base, &header(1)).unwrap();
    send(&said, &mut writer);
    let written = writer.finish().unwrap();
    assert_eq!(written.files.len(), usize::from(CPUS));
    let mut reader = BlktraceReader::open(&base).unwrap();
    reader.send_all(&mut Vec::new()).unwrap();
    assert!(reader.counts().is_clean(), "{:?}", reader.counts());
    assert_eq!(reader.counts().events, events(&said).len() as u64);
    let error = BlktraceWriter::create(&base, &header(8193)).map(drop);
    assert_eq!(
        error.unwrap_err().to_string(),
        "trace with 8193 CPUs: no Linux has more than 8192"
    );
}

#[test]
fn a_directory_that_is_not_there() {
    let error = BlktraceWriter::create(Path::new("/nonexistent/t"), &header(1)).map(|_| ());
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot create /nonexistent/t.blktrace.0.partial: "),
        "{error}"
    );
}

#[test]
fn any_trace_file_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let said = trace(8, 300, 2, 0);
    let mut writer = BlktraceWriter::create(&dir.path().join("t"), &header(2)).unwrap();
    send(&said, &mut writer);
    writer.finish().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    put("text", &[b"Hello,\n\n", &print(&said)[..]].concat());
    put("events.blk", &crate::compact::write(&said, &header(2)));
    put("job.fio", b"[global]\nrw=read\n");
    let nr_events = events(&said).len() as u64;
    for (name, format) in [
        ("t", "blktrace"),
        ("t.blktrace.1", "blktrace"),
        ("text", "blkparse"),
        ("events.blk", "events.blk"),
    ] {
        let mut file = TraceFile::open(&dir.path().join(name)).unwrap();
        assert_eq!(file.format().name, format);
        assert_eq!(file.header().is_some(), name == "events.blk");
        file.send_all(&mut Vec::new()).unwrap();
        assert_eq!(file.counts().events, nr_events, "{name}");
    }
    let error = TraceFile::open(&dir.path().join("job.fio"))
        .map(|_| ())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it seems to be a fio job file: run it with `blklab run`"),
        "{error}"
    );
    let error = TraceFile::open(dir.path()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains(": Is a directory"), "{error}");
    let error = TraceFile::open(&dir.path().join("none"))
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("none: No such file"), "{error}");
}

#[test]
fn both_byte_orders_and_cgroup_ids() {
    let mut record = Vec::new();
    let action = 0x100 | 10 | 0x11 << 16;
    for word in [0x6561_7407_u32, 1] {
        record.extend(word.to_be_bytes());
    }
    for word in [1_000_u64, 0] {
        record.extend(word.to_be_bytes());
    }
    for word in [0, action, 42, 8 << 20 | 16, 1] {
        record.extend(u32::to_be_bytes(word));
    }
    record.extend(0_u16.to_be_bytes());
    record.extend(16_u16.to_be_bytes());
    record.extend([9; 8]);
    record.extend(3_u64.to_be_bytes());
    let (said, counts) = read_binary(&record);
    assert!(counts.is_clean(), "{counts:?}");
    assert_eq!(
        said,
        [Said::Event(Event {
            time: Time(1_000),
            sector: 0,
            arg: 3,
            bytes: 0,
            pid: 42,
            dev: Dev {
                major: 8,
                minor: 16
            },
            from_dev: Dev::default(),
            error: 0,
            cpu: 1,
            rwbs: Rwbs::NONE,
            action: Action::Unplug,
        })]
    );
}

#[test]
fn damage_is_counted() {
    let said = trace(4, 200, 1, 1);
    let mut stream = BlktraceStream::new(Vec::new());
    send(&said, &mut stream);
    let bytes = stream.finish().unwrap();
    let all = events(&said).len() as u64;
    let find = |number: u32| {
        let mut at = 0;
        let mut seen = 0;
        loop {
            let word = |o: usize| u32::from_le_bytes(bytes[at + o..at + o + 4].try_into().unwrap());
            if word(4) > 0 {
                seen += 1;
                if seen == number {
                    return at;
                }
            }
            at += 48 + (word(44) >> 16) as usize;
        }
    };

    let mut bad_magic = bytes.clone();
    bad_magic[find(50)] ^= 1;
    let (_, counts) = read_binary(&bad_magic);
    assert_eq!(
        (counts.damaged, counts.lost, counts.gaps),
        (1, 1, 1),
        "{counts:?}"
    );
    assert_eq!(counts.events, all - 1);
    assert!(counts.examples[0].contains("no record at byte"));

    let mut unknown = bytes.clone();
    unknown[find(50) + 28] = 17;
    let (_, counts) = read_binary(&unknown);
    assert_eq!(
        (counts.unknown, counts.damaged, counts.events),
        (1, 0, all - 1)
    );

    let (_, counts) = read_binary(&bytes[..bytes.len() - 3]);
    assert!(counts.truncated);

    let mut hole = bytes[..find(50)].to_vec();
    hole.extend_from_slice(&bytes[find(60)..]);
    let (_, counts) = read_binary(&hole);
    assert_eq!((counts.lost, counts.gaps, counts.damaged), (10, 1, 0));
}

#[test]
fn versions_and_other_files_are_named() {
    let error = |bytes: &[u8]| {
        let mut reader = BlktraceReader::from_stream(bytes, "x.blktrace.0");
        let result = reader.next_item().map(|_| ());
        result.unwrap_err().to_string()
    };
    assert_eq!(
        error(b"\x09tae and so on"),
        "x.blktrace.0: blktrace version 9 is not supported, only versions 7 and 8"
    );
    assert_eq!(
        error(b"8,0 text"),
        "x.blktrace.0: begins with \"8,0 \", expected \"\\x07tae\" or \"eat\\x07\" (blktrace)"
    );
    let missing = BlktraceReader::open(Path::new("/nonexistent/t")).map(|_| ());
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .starts_with("cannot open /nonexistent/t: ")
    );
}

#[test]
fn quoted_traces_are_read() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blkparse");
    for (name, nr_events, left_out) in [
        ("missed-merge.txt", 17, 29),
        ("sync-write-2.6.24.txt", 10, 141),
        ("sync-write-stall-2.6.26.txt", 37, 23),
    ] {
        let text = std::fs::read(samples.join(name)).unwrap();
        let (said, counts) = read_text(&text);
        assert_eq!(events(&said).len(), nr_events, "{name}");
        assert_eq!(
            (counts.damaged, counts.lost, counts.left_out),
            (0, 0, left_out),
            "{name}"
        );
        let quoted: String = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|l| format!("> {l}\n"))
            .collect();
        let (again, counts) = read_text(format!("Hello\n{quoted}> ...\n").as_bytes());
        assert_eq!(again, said);
        assert_eq!((counts.foreign, counts.elided), (1, 1));
        assert_eq!(
            counts.examples,
            ["test:1: does not begin with a device, as in 8,0"]
        );
    }
}
