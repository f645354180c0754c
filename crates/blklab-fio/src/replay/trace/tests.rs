// SPDX-License-Identifier: MIT OR Apache-2.0
//! What events of a trace become.

use super::*;
use crate::replay::Act;
use crate::settings::Skip;

fn event(kind: TraceKind, time_ns: u64, rwbs: &str, sector: u64, bytes: u32) -> TraceEvent {
    TraceEvent {
        kind,
        time_ns,
        major: 8,
        minor: 0,
        writes: rwbs.contains(['W', 'D']),
        discards: rwbs.contains('D'),
        flushes: rwbs.contains('F'),
        sector,
        bytes,
    }
}

fn replayed(events: &[TraceEvent], options: &ReplayOptions) -> Replay {
    let events = Box::new(events.iter().map(|event| Ok(*event)));
    read(events, "t", options).expect("a good trace")
}

#[test]
fn the_flush_category_makes_a_sync_of_anything_but_a_discard() {
    let q = |time, rwbs, sector, bytes| event(TraceKind::Queue, time, rwbs, sector, bytes);
    let events = [
        q(1_000, "R", 8, 4096),
        q(5_000, "FW", 16, 4096),
        q(9_000, "D", 24, 1 << 20),
        q(10_000, "W", 0, 0),
        q(20_000, "WS", 32, 512),
    ];
    let acts = |options: &ReplayOptions| -> Vec<(u64, Act)> {
        replayed(&events, options)
            .entries()
            .map(|entry| (entry.delay_us, entry.act))
            .collect()
    };
    let io = |op, offset, length| Act::Io {
        op,
        file: 0,
        offset,
        length,
    };
    let all = acts(&ReplayOptions::default());
    let expected = [
        (0, Act::Open { file: 0 }),
        (0, io(IoOp::Read, 4096, 4096)),
        (4, io(IoOp::Sync, 0, 0)),
        (4, io(IoOp::Trim, 12288, 1 << 20)),
        (10, io(IoOp::Write, 16384, 512)),
        (0, Act::Close { file: 0 }),
    ];
    assert_eq!(all, expected);
    let skip = Skip {
        reads: true,
        syncs: true,
        ..Skip::default()
    };
    let some = acts(&ReplayOptions {
        skip,
        ..ReplayOptions::default()
    });
    assert_eq!(some[1], (4, io(IoOp::Trim, 12288, 1 << 20)));
}

#[test]
fn the_depth_is_the_most_that_was_queued_between_completions() {
    use TraceKind::{Complete, Merge, Queue};
    let kinds = [Queue, Queue, Merge, Queue, Queue, Complete, Queue, Complete];
    let events: Vec<TraceEvent> = (1..)
        .zip(kinds)
        .map(|(at, kind)| event(kind, at * 1000, "R", at * 8, 4096))
        .collect();
    let options = ReplayOptions::default();
    assert_eq!(replayed(&events, &options).depth, Some(3));
    assert_eq!(replayed(&events[..5], &options).depth, Some(1));
    let chunked = ReplayOptions {
        chunked: true,
        ..options
    };
    assert_eq!(replayed(&events, &chunked).depth, None);
}

#[test]
fn devices_have_their_names_by_number() {
    for (major, minor, name) in [
        (8, 0, "/dev/sda"),
        (8, 17, "/dev/sdb1"),
        (65, 160, "/dev/sdaa"),
        (259, 3, "/dev/block/259:3"),
    ] {
        assert_eq!(device_name(major, minor), name);
    }
}

#[test]
fn a_trace_without_bios_is_refused() {
    let events: TraceEvents<'_> = Box::new(std::iter::empty());
    let problem = read(events, "t", &ReplayOptions::default()).map(drop);
    assert_eq!(
        problem.unwrap_err().to_string(),
        "t: nothing to replay: the trace has no Q event of the block layer"
    );
}
