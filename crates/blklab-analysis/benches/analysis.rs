// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events per second, followed and summed up.
//!
//! To beat: btt takes 1.6 M events/s.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::lifecycle::{LifeSink, Lifecycles};
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const NR_IOS: u64 = 20_000;

/// I/Os of which about `depth` are in flight at a time; one in two merges.
fn events(depth: u64) -> Vec<Event> {
    let mut state = 1_u64;
    let mut below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut events = Vec::new();
    for io in 0..NR_IOS {
        let mut time_ns = io * 1_000_000;
        let sector = 1024 * below(1 << 20);
        let mut put = |action, step_ns, sector, nr_sectors: u32, pid| {
            time_ns += step_ns;
            events.push(Event {
                time: Time(time_ns),
                sector,
                arg: 0,
                bytes: nr_sectors * 512,
                pid,
                dev: Dev { major: 8, minor: 0 },
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: Rwbs::WRITE,
                action,
            });
        };
        let pid = 100 + (io % 8) as u32;
        put(Action::Queue, 0, sector, 8, pid);
        put(Action::GetRequest, 1_200, sector, 8, pid);
        put(Action::Insert, 900, sector, 8, pid);
        let mut nr_sectors = 8;
        if below(2) == 0 {
            put(Action::Queue, 2_000, sector + 8, 8, pid);
            put(Action::BackMerge, 700, sector + 8, 8, pid);
            nr_sectors = 16;
        }
        put(
            Action::Issue,
            1 + below(depth * 1_000_000),
            sector,
            nr_sectors,
            37,
        );
        put(
            Action::Complete,
            1 + below(depth * 1_000_000),
            sector,
            nr_sectors,
            0,
        );
    }
    events.sort_by_key(|e| e.time);
    events
}

/// Takes lives and forgets them.
struct Forget;

impl LifeSink for Forget {}

#[divan::bench(args = [1, 32, 1024])]
fn lifecycles(bencher: Bencher<'_, '_>, depth: u64) {
    let events = events(depth);
    bencher
        .counter(ItemsCount::new(events.len()))
        .bench_local(|| {
            let mut tracker = Lifecycles::new(Forget);
            for event in &events {
                tracker.event(event);
            }
            assert_eq!(tracker.finish().1.nr_events(), 0);
        });
}

#[divan::bench(args = [1, 32, 1024])]
fn statistics(bencher: Bencher<'_, '_>, depth: u64) {
    let events = events(depth);
    bencher
        .counter(ItemsCount::new(events.len()))
        .bench_local(|| {
            let mut collector = StatsCollector::new();
            for event in &events {
                collector.event(event);
            }
            collector.finish().all.q2c.count()
        });
}
