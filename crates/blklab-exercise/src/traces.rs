// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of any content as a trace: reader, lives, findings, statistics, their
//! texts, and every writer. Nothing may panic, and the compact form must hold what
//! was read.

use crate::Target;
use crate::corpus::{self, Seed, samples};
use blklab_analysis::collect::StatsCollector;
use blklab_analysis::findings::slow::{Lives, Which};
use blklab_analysis::findings::{ALL, Context, Detector, Reading, Search};
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_formats::blktrace::BlktraceStream;
use blklab_formats::compact::{CompactReader, CompactWriter};
use blklab_formats::ctf::CtfReader;
use blklab_formats::{FORMATS, Format, FormatError, TraceFile};
use blklab_trace::{DigestSink, NullSink, TraceHeader, TraceSource};
use std::io::{Cursor, sink};

pub(crate) const TRACE: Target = Target {
    name: "trace",
    feed: trace,
    samples: traces,
};

pub(crate) const CTF: Target = Target {
    name: "ctf",
    feed: ctf,
    samples: channels,
};

pub(crate) const COMPACT: Target = Target {
    name: "compact",
    feed: compact,
    samples: corpus::none,
};

/// Traces that the project carries, of every format; what is none is refused.
pub(crate) fn traces() -> Vec<Seed> {
    let ends = [
        ".txt",
        ".trace",
        ".csv",
        ".log",
        ".iolog",
        ".bin",
        ".blktrace.0",
        ".blktrace.1",
        ".vscsi",
        ".pftrace",
        ".parquet",
    ];
    let folders = [
        "blkparse",
        "ftrace",
        "lttng",
        "rows",
        "snoop",
        "qemu",
        "tables",
        "perfetto",
        "why",
        "vscsi",
        "fio/replay",
    ];
    let folders = folders.map(|name| format!("testdata/{name}"));
    let mut all = samples(&folders.each_ref().map(String::as_str), &ends);
    for packed in samples(&["testdata/tracedat"], &[".dat.zst"]) {
        let bytes = zstd::decode_all(&packed.bytes[..]).unwrap_or_default();
        all.push(Seed { bytes, ..packed });
    }
    all
}

/// Files of packets behind the metadata, and alone.
fn channels() -> Vec<Seed> {
    let folder = "testdata/ctf/le-large/kernel";
    let alone = samples(&[folder], &["channel0_0", "channel0_1"]);
    let behind = |seed: &Seed| {
        let (_, file) = seed.name.split_once("kernel_").expect("it lies there");
        let paths = ["metadata", file].map(|name| format!("{folder}/{name}"));
        Seed::joined(&format!("both-{file}"), &paths)
    };
    let both: Vec<Seed> = alone.iter().map(behind).collect();
    [alone, both].concat()
}

/// A trace of whatever format is recognised, with lines of others among its own. Behind a
/// first line that names a format, bytes that are read as that, whatever they look like.
pub(crate) fn open(data: &[u8]) -> Option<TraceFile> {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (name, bytes) = data.split_at(end);
    let named = FORMATS.iter().find(|f| f.name.as_bytes() == name);
    let read = match named {
        Some(format) => of_format(format, bytes.get(1..).unwrap_or_default()),
        None => TraceFile::from_reader(Cursor::new(data.to_vec()), "fuzz"),
    };
    read.ok()
}

fn trace(data: &[u8]) -> Option<u64> {
    through_everything(open(data)?)
}

/// Bytes as a trace of every format.
///
/// # Panics
/// If something is wrong with what is read.
pub fn every_format(data: &[u8]) {
    for format in FORMATS {
        if let Ok(file) = of_format(format, data) {
            through_everything(file);
        }
    }
}

fn of_format(format: &'static Format, bytes: &[u8]) -> Result<TraceFile, FormatError> {
    TraceFile::of_format(format, Cursor::new(bytes.to_vec()), "fuzz")
}

/// A folder of LTTng: metadata, a NUL, and the bytes of a file; and all of it as a file beside
/// sound metadata.
fn ctf(data: &[u8]) -> Option<u64> {
    const SOUND: &[u8] = include_bytes!("../../../testdata/ctf/le-large/kernel/metadata");
    let end = data.iter().position(|b| *b == 0).unwrap_or(data.len());
    let (metadata, file) = data.split_at(end);
    let file = file.get(1..).unwrap_or_default();
    let ways = [(metadata, file), (SOUND, data)].map(|(metadata, file)| {
        let reader = CtfReader::of_bytes(metadata, vec![file.to_vec()], "fuzz");
        through_everything(reader.ok()?)
    });
    ways[0].or(ways[1])
}

/// The compact form: the bytes as a file, and as the payload of a chunk whose
/// checksum matches, since that of an edited one does not.
fn compact(data: &[u8]) -> Option<u64> {
    let ways = [data, &chunk(data)].map(|file| {
        let reader = CompactReader::new(file, "fuzz");
        through_everything(reader.ok()?)
    });
    ways[0].or(ways[1])
}

/// A file of one chunk with this payload, see `docs/trace-format.md`.
fn chunk(payload: &[u8]) -> Vec<u8> {
    let empty = CompactWriter::new(Vec::new(), &TraceHeader::default());
    let mut file = empty
        .and_then(CompactWriter::finish)
        .expect("a vector takes all");
    let end = file.split_off(file.len() - 16);
    let nr_records = payload.len() as u32 / 2;
    let mut rest = (payload.len() as u32).to_le_bytes().to_vec();
    rest.extend_from_slice(&nr_records.to_le_bytes());
    rest.extend_from_slice(payload);
    let mut crc = flate2::Crc::new();
    crc.update(&rest);
    file.extend_from_slice(b"Chnk");
    file.extend_from_slice(&crc.sum().to_le_bytes());
    [file, rest, end].concat()
}

/// Every detector, and lives by each way of asking for them.
fn search() -> Search {
    let mut detectors: Vec<Box<dyn Detector>> = ALL.iter().map(|k| (k.detector)()).collect();
    for which in [Which::Slowest(3), Which::At(0, 3), Which::OfEvent(1)] {
        detectors.push(Box::new(Lives::new(which)));
    }
    Search::with(detectors, Context::default())
}

/// What was read, if there was an event.
fn through_everything(mut source: impl TraceSource<Error = FormatError>) -> Option<u64> {
    let mut stats = StatsCollector::new();
    let mut findings = search();
    let mut text = BlkparseWriter::new(sink(), BlkparseOptions::default());
    let mut binary = BlktraceStream::new(sink());
    let mut compact =
        CompactWriter::new(Vec::new(), &TraceHeader::default()).expect("a vector takes all");
    let mut digest = DigestSink::<NullSink>::default();
    let mut seen = (&mut stats, &mut findings);
    let mut written = (&mut text, (&mut binary, (&mut compact, &mut digest)));
    let mut all = (&mut seen, &mut written);
    // An input of another kind is refused; what came before has been sent.
    let _ = source.send_all(&mut all);
    text.finish().expect("nothing is written");
    binary.finish().expect("nothing is written");

    let stats = stats.finish();
    let shown = render(&stats, TextOptions { all: true });
    assert!(shown.lines().count() > 10);
    serde_json::to_string(&stats).expect("statistics have no keys but texts");

    let report = findings.finish(Reading::default());
    serde_json::to_string(&report).expect("reports have no keys but texts");

    let bytes = compact.finish().expect("a vector takes all");
    let mut again = CompactReader::new(&bytes[..], "fuzz").expect("what was written is a trace");
    let mut copy = DigestSink::<NullSink>::default();
    again.send_all(&mut copy).expect("and can be read");
    assert!(!again.counts().truncated && again.counts().missing == 0);
    assert_eq!(
        copy.digest.value(),
        digest.digest.value(),
        "the copy differs"
    );
    assert_eq!(copy.digest.nr_events(), digest.digest.nr_events());
    let nr_events = copy.digest.nr_events();
    (nr_events > 0).then(|| copy.digest.value())
}
