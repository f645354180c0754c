// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events per second, written and read in each form.
//!
//! To beat: blkparse prints 1.1 M events/s, merges 2.4 M events/s.

use blklab_formats::blkparse::{BlkparseOptions, BlkparseReader, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceReader, BlktraceStream};
use blklab_formats::compact::{CompactReader, CompactWriter};
use blklab_trace::{Action, Event, NullSink, Rwbs, TraceHeader, TraceSink, TraceSource};
use blklab_types::{Dev, Time};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const NR_IOS: u64 = 40_000;
const NR_EVENTS: usize = 5 * NR_IOS as usize;

/// Random reads and writes on a disk, five events each.
fn events() -> Vec<Event> {
    let mut state = 1_u64;
    let mut below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut events = Vec::with_capacity(NR_EVENTS);
    let mut time_ns = 0;
    for _ in 0..NR_IOS {
        let sector = below(1 << 31) & !7;
        let rwbs = [Rwbs::READ, Rwbs::WRITE.with(Rwbs::SYNC)][below(2) as usize];
        for (action, step_ns, pid) in [
            (Action::Queue, 900_000, 4175),
            (Action::GetRequest, 1_200, 4175),
            (Action::Insert, 900, 4175),
            (Action::Issue, 2_000_000, 37),
            (Action::Complete, 5_000_000, 0),
        ] {
            time_ns += 1 + below(2 * step_ns);
            events.push(Event {
                time: Time(time_ns),
                sector,
                arg: 0,
                bytes: 4096,
                pid,
                dev: Dev { major: 8, minor: 0 },
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs,
                action,
            });
        }
    }
    events
}

fn send(events: &[Event], sink: &mut impl TraceSink) {
    for (pid, comm) in [(0, "swapper"), (37, "kworker/0:1H"), (4175, "fio")] {
        sink.process(Time(0), pid, comm);
    }
    for event in events {
        sink.event(event);
    }
}

fn text(events: &[Event]) -> Vec<u8> {
    let mut writer = BlkparseWriter::new(Vec::new(), BlkparseOptions::default());
    send(events, &mut writer);
    writer.finish().unwrap_or_default()
}

fn binary(events: &[Event]) -> Vec<u8> {
    let mut writer = BlktraceStream::new(Vec::new());
    send(events, &mut writer);
    writer.finish().unwrap_or_default()
}

fn compact(events: &[Event]) -> Vec<u8> {
    let Ok(mut writer) = CompactWriter::new(Vec::new(), &TraceHeader::default()) else {
        return Vec::new();
    };
    send(events, &mut writer);
    writer.finish().unwrap_or_default()
}

fn write(bencher: Bencher<'_, '_>, form: fn(&[Event]) -> Vec<u8>) {
    let events = events();
    bencher
        .counter(ItemsCount::new(NR_EVENTS))
        .bench_local(|| form(&events).len());
}

#[divan::bench]
fn write_text(bencher: Bencher<'_, '_>) {
    write(bencher, text);
}

#[divan::bench]
fn write_binary(bencher: Bencher<'_, '_>) {
    write(bencher, binary);
}

#[divan::bench]
fn write_compact(bencher: Bencher<'_, '_>) {
    write(bencher, compact);
}

#[divan::bench]
fn read_text(bencher: Bencher<'_, '_>) {
    let bytes = text(&events());
    bencher.counter(ItemsCount::new(NR_EVENTS)).bench_local(|| {
        let mut reader = BlkparseReader::new(&bytes[..], "text");
        assert!(reader.send_all(&mut NullSink).is_ok());
        assert_eq!(reader.counts().events, NR_EVENTS as u64);
    });
}

#[divan::bench]
fn read_binary(bencher: Bencher<'_, '_>) {
    let bytes = binary(&events());
    bencher.counter(ItemsCount::new(NR_EVENTS)).bench_local(|| {
        let mut reader = BlktraceReader::from_stream(&bytes[..], "binary");
        assert!(reader.send_all(&mut NullSink).is_ok());
        assert_eq!(reader.counts().events, NR_EVENTS as u64);
    });
}

#[divan::bench]
fn read_compact(bencher: Bencher<'_, '_>) {
    let bytes = compact(&events());
    bencher.counter(ItemsCount::new(NR_EVENTS)).bench_local(|| {
        let reader = CompactReader::new(&bytes[..], "compact");
        assert!(reader.is_ok_and(|mut r| {
            r.send_all(&mut NullSink).is_ok() && r.counts().events == NR_EVENTS as u64
        }));
    });
}
