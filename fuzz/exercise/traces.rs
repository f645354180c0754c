// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of any content as a trace: reader, lives, statistics, their texts,
//! and every writer. Nothing may panic, and the compact form must hold what
//! was read. Shared by the fuzz targets and by the test that replays what they
//! found.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::FormatError;
use blklab_formats::blkparse::{BlkparseOptions, BlkparseReader, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceReader, BlktraceStream};
use blklab_formats::compact::{CompactReader, CompactWriter};
use blklab_trace::{DigestSink, NullSink, TraceHeader, TraceSource};
use std::io::sink;

/// Binary records, one stream of all CPUs.
pub(crate) fn blktrace(data: &[u8]) {
    through_everything(BlktraceReader::from_stream(data, "fuzz"));
}

/// Text as blkparse prints it.
pub(crate) fn blkparse(data: &[u8]) {
    through_everything(BlkparseReader::new(data, "fuzz"));
}

/// The compact form.
pub(crate) fn compact(data: &[u8]) {
    if let Ok(reader) = CompactReader::new(data, "fuzz") {
        through_everything(reader);
    }
}

fn through_everything(mut source: impl TraceSource<Error = FormatError>) {
    let mut stats = StatsCollector::new();
    let mut text = BlkparseWriter::new(sink(), BlkparseOptions::default());
    let mut binary = BlktraceStream::new(sink());
    let mut compact =
        CompactWriter::new(Vec::new(), &TraceHeader::default()).expect("a vector takes all");
    let mut digest = DigestSink::<NullSink>::default();
    let mut all = (
        &mut stats,
        (&mut text, (&mut binary, (&mut compact, &mut digest))),
    );
    // An input of another kind is refused; what came before has been sent.
    let _ = source.send_all(&mut all);
    text.finish().expect("nothing is written");
    binary.finish().expect("nothing is written");

    let stats = stats.finish();
    let shown = render(&stats, TextOptions { all: true });
    assert!(shown.lines().count() > 10);
    serde_json::to_string(&stats).expect("statistics have no keys but texts");

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
}
