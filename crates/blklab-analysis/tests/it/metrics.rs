// SPDX-License-Identifier: MIT OR Apache-2.0
//! The example of `docs/metrics.md`: trace, report, and the numbers in the text.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::distribution::Distribution;
use blklab_analysis::stats::TraceStats;
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::TraceSource;

const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");

fn block(kind: &str) -> &'static str {
    let begin = format!("```{kind}\n");
    let rest = DOCUMENT.split(&begin).nth(1).unwrap();
    rest.split("```").next().unwrap()
}

fn stats_of(text: &str) -> TraceStats {
    let mut reader = BlkparseReader::new(text.as_bytes(), "example");
    let mut collector = StatsCollector::new();
    reader.send_all(&mut collector).unwrap();
    assert!(reader.counts().is_clean(), "{:?}", reader.counts());
    collector.finish()
}

#[test]
fn the_report_is_what_is_printed() {
    let printed = render(&stats_of(block("blkparse")), TextOptions::default());
    assert_eq!(
        printed.trim_end(),
        block("report").trim_end(),
        "\n{printed}"
    );
}

#[test]
fn the_numbers_in_the_text() {
    let stats = stats_of(block("blkparse"));
    let us = |d: &Distribution| (d.min() / 1000, d.max() / 1000, d.sum() / 1000, d.count());
    let p = &stats.all;
    assert_eq!(us(&p.q2q), (510, 3490, 4000, 2));
    assert_eq!(us(&p.q2g), (1, 500, 501, 2));
    assert_eq!(us(&p.s2g), (498, 498, 498, 1));
    assert_eq!(us(&p.g2i), (1, 2, 3, 2));
    assert_eq!(us(&p.q2m), (1, 1, 1, 1));
    assert_eq!(us(&p.i2d), (98, 4600, 4698, 2));
    assert_eq!(us(&p.m2d), (89, 89, 89, 1));
    assert_eq!(us(&p.d2c), (4000, 8000, 20_000, 3));
    assert_eq!(us(&p.q2c), (8090, 8602, 25_292, 3));
    let device = &stats.devices[0];
    assert_eq!(us(&device.service), (4000, 8000, 12_000, 2));
    assert!(
        (device.depth.mean - 2.007).abs() < 1e-3,
        "{}",
        device.depth.mean
    );
    assert_eq!((device.depth.max, device.device_depth.max), (3, 1));
}

/// Synchronous writes on 2.6.24, quoted in mail: the first is held back while
/// three more merge with it, for 768 ms.
#[test]
fn a_write_held_back() {
    let text = include_str!("../../../../testdata/blkparse/sync-write-2.6.24.txt");
    let mut reader = BlkparseReader::new(text.as_bytes(), "quoted");
    let mut collector = StatsCollector::new();
    reader.send_all(&mut collector).unwrap();
    let stats = collector.finish();
    assert_eq!(stats.unmatched.events, []);
    assert_eq!(
        (stats.all.i2d.count(), stats.all.i2d.max()),
        (1, 767_856_976)
    );
    assert_eq!(
        (stats.all.m2d.count(), stats.all.m2d.max()),
        (3, 746_418_142)
    );
    assert_eq!(stats.processes[0].comm.as_deref(), Some("python"));
    assert_eq!(stats.devices[0].merge_ratio(), 4.0);
}
