// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of very many processes, devices and unfinished I/Os: memory and time
//! stay within bounds, and the result says what was summed.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::lifecycle::{DEVICES_MAX, IN_FLIGHT_MAX};
use blklab_analysis::stats::PROCESSES_MAX;
use blklab_analysis::stats::TraceStats;
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::snoop::SnoopReader;
use blklab_trace::{Action, Event, Rwbs, TraceSink, TraceSource as _};
use blklab_types::{Dev, Pid, Time};
use std::time::{Duration, Instant};

fn event(time: u64, action: Action, dev: u32, pid: Pid, sector: u64) -> Event {
    Event {
        time: Time(time),
        sector,
        arg: 0,
        bytes: 4096,
        pid,
        dev: Dev {
            major: (dev >> 16) as u16,
            minor: dev as u16,
        },
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs: Rwbs::READ,
        action,
    }
}

/// One whole I/O of a millisecond.
fn io(sink: &mut impl TraceSink, n: u64, dev: u32, pid: Pid) {
    let start = n * 10_000_000;
    for (after, action) in [
        (0, Action::Queue),
        (1_000, Action::GetRequest),
        (3_000, Action::Insert),
        (7_000, Action::Issue),
        (1_000_000 + n * 37 % 5_000_000, Action::Complete),
    ] {
        sink.event(&event(start + after, action, dev, pid, 8 * n));
    }
}

/// The statistics, the most memory at a time, and the time it took.
fn measure(run: impl FnOnce(&mut StatsCollector)) -> (TraceStats, u64, Duration) {
    let mut stats = None;
    let begun = Instant::now();
    let used = allocation_counter::measure(|| {
        let mut collector = StatsCollector::new();
        run(&mut collector);
        stats = Some(collector.finish());
    });
    (stats.unwrap(), used.bytes_max, begun.elapsed())
}

/// A process took 2.9 KB and more; a hundred thousand took 290 MB.
#[test]
fn very_many_processes() {
    const PIDS: u32 = 100_000;
    let (stats, bytes, _) = measure(|c| {
        for pid in 1..=PIDS {
            c.process(Time(0), pid, "cc1");
        }
        for pid in 1..=PIDS {
            io(c, pid.into(), 8 << 16, pid);
        }
    });
    assert!(bytes < 24 << 20, "{bytes}");
    assert_eq!(stats.processes.len(), PROCESSES_MAX);
    let others = stats.other_processes.as_deref().unwrap();
    let nr_others = u64::from(PIDS) - PROCESSES_MAX as u64;
    assert_eq!(others.queued.read.count, nr_others);
    assert_eq!(others.completed.read.count, nr_others);
    assert_eq!(others.phases.q2c.count(), nr_others);
    assert_eq!(others.phases.q2q.count(), 0);
    assert_eq!(stats.processes[0].comm.as_deref(), Some("cc1"));
    assert_eq!(stats.all.q2c.count(), u64::from(PIDS));
    let text = render(&stats, TextOptions::default());
    assert!(text.contains("\nall others "), "{text}");
    assert!(text.contains("further ones are one, 'all others'"));
    assert!(serde_json::to_value(&stats).unwrap()["other_processes"].is_object());
}

/// A device took 32 KB and more, and each event the time of all devices.
#[test]
fn very_many_devices() {
    const DEVICES: u32 = 20_000;
    let (stats, bytes, time) = measure(|c| {
        for round in 0..3 {
            for dev in 0..DEVICES {
                io(c, u64::from(round * DEVICES + dev), dev, 1);
            }
        }
    });
    assert!(bytes < DEVICES_MAX as u64 * 32_000, "{bytes}");
    assert!(time < Duration::from_secs(20), "{time:?}");
    assert_eq!(stats.devices.len(), DEVICES_MAX);
    let others = stats.other_devices.unwrap();
    let nr_others = 3 * (u64::from(DEVICES) - DEVICES_MAX as u64);
    assert_eq!(others.nr_events, 5 * nr_others);
    assert_eq!(others.queued.read.count, nr_others);
    assert_eq!(
        (others.nr_issued, others.nr_completed),
        (nr_others, nr_others)
    );
    let text = render(&stats, TextOptions::default());
    assert!(
        text.contains("events of devices beyond the first 4096"),
        "{text}"
    );
    // A trace of few devices says nothing of that.
    let (few, ..) = measure(|c| io(c, 1, 5, 1));
    assert!(few.other_devices.is_none() && few.other_processes.is_none());
    assert!(!serde_json::to_string(&few).unwrap().contains("other_"));
}

/// Neither bios nor requests that never complete, on however many devices,
/// take more than the I/O that can be in flight.
#[test]
fn nothing_ever_completes() {
    for (action, nr_devices) in [
        (Action::Queue, 7),
        (Action::Issue, 7),
        (Action::Queue, DEVICES_MAX as u32),
    ] {
        let nr_events = IN_FLIGHT_MAX as u64 + 100_000;
        let (stats, bytes, _) = measure(|c| {
            for n in 0..nr_events {
                c.event(&event(n, action, n as u32 % nr_devices, 1, 8 * n));
            }
        });
        assert!(bytes < 700 << 20, "{action:?}: {bytes}");
        let unmatched = &stats.unmatched;
        let unfinished = unmatched.unfinished_bios + unmatched.unfinished_requests;
        assert_eq!(unfinished, nr_events, "{action:?}");
    }
}

/// An array whose bios are never seen to complete, as md shows none of old kernels:
/// what its members have under way meanwhile is matched all the same.
#[test]
fn bios_of_an_array_do_not_cost_those_of_its_members() {
    let nr_bios = 2_100_000;
    assert!(nr_bios > IN_FLIGHT_MAX as u64);
    let mut collector = StatsCollector::new();
    for n in 0..nr_bios {
        collector.event(&event(10 * n, Action::Queue, 9 << 16, 1, 8 * n));
        if n % 1000 == 0 {
            for action in [Action::Queue, Action::GetRequest, Action::Issue] {
                collector.event(&event(10 * n + 1, action, 8 << 16, 1, 8 * n));
            }
        }
        if n % 1000 == 900 {
            collector.event(&event(
                10 * n + 2,
                Action::Complete,
                8 << 16,
                1,
                8 * (n - 900),
            ));
        }
    }
    let unmatched = collector.finish().unmatched;
    assert_eq!(unmatched.unfinished_bios, nr_bios);
    assert!(unmatched.events.is_empty(), "{:?}", unmatched.events);
}

/// A burst of bios that wait for the only request: what is kept for many is given
/// back when all of them are gone, not before.
#[test]
fn a_burst_goes_one_by_one() {
    const BIOS: u64 = 10_000;
    let (stats, ..) = measure(|c| {
        for burst in 0..2 {
            let at = |n: u64| burst * BIOS * 10 + n;
            for n in 0..BIOS {
                c.event(&event(at(n), Action::Queue, 1, 1, 8 * n));
            }
            for n in 0..BIOS {
                for action in [
                    Action::GetRequest,
                    Action::Insert,
                    Action::Issue,
                    Action::Complete,
                ] {
                    c.event(&event(at(BIOS + n), action, 1, 1, 8 * n));
                }
            }
        }
    });
    assert_eq!(stats.all.q2c.count(), 2 * BIOS);
    assert_eq!(stats.devices[0].nr_issued, 2 * BIOS);
    assert_eq!(stats.devices[0].depth.max, BIOS as u32);
    assert!(stats.unmatched.events.is_empty());
}

/// Everything at one sector, or in one request: each event looks at a few
/// others, not at all.
#[test]
fn crowded_sectors() {
    const EVENTS: u64 = 60_000;
    let (.., time) = measure(|c| {
        for n in 0..EVENTS {
            let mut e = event(n, Action::Queue, 1, 1, 0);
            e.bytes = 512 * (1 + n as u32 % 60_000);
            c.event(&e);
            e.action = Action::SleepRequest;
            e.bytes = 1 << 30;
            c.event(&e);
        }
    });
    assert!(time < Duration::from_secs(20), "same sector: {time:?}");
    let (stats, _, time) = measure(|c| {
        c.event(&event(0, Action::GetRequest, 1, 1, 0));
        for n in 1..EVENTS {
            c.event(&event(n, Action::Queue, 1, 1, 8 * n));
            c.event(&event(n, Action::BackMerge, 1, 1, 8 * n));
        }
        c.event(&event(EVENTS, Action::Issue, 1, 1, 0));
        for n in 0..EVENTS {
            let mut e = event(EVENTS + n, Action::Complete, 1, 1, 8 * n);
            e.bytes = 512;
            c.event(&e);
        }
    });
    assert!(time < Duration::from_secs(20), "one request: {time:?}");
    assert_eq!(stats.nr_events, 3 * EVENTS);
}

/// Sums that would wrap stay at their end and are counted.
#[test]
fn sums_beyond_64_bits() {
    let (stats, ..) = measure(|c| {
        for n in 0..4 {
            c.event(&event(n, Action::Plug, 1, 1, 0));
            let mut unplug = event(u64::MAX / 2, Action::Unplug, 1, 1, 0);
            unplug.arg = u64::MAX / 2;
            c.event(&unplug);
        }
    });
    let plugs = &stats.devices[0].plugs;
    assert_eq!((plugs.plugged_ns, plugs.nr_requests), (u64::MAX, u64::MAX));
    assert_eq!(stats.nr_overflows, 4);
    assert_eq!((stats.start_ns, stats.end_ns), (0, u64::MAX / 2));
    let text = render(&stats, TextOptions::default());
    assert!(text.contains("4 additions went beyond 64 bits"), "{text}");
}

/// bpftrace's first form says neither place nor size, and iosnoop shows flushes of nothing: Q
/// and D of an I/O belong together nevertheless.
#[test]
fn ios_of_unknown_or_no_size_end() {
    for text in [
        "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611 nvme0n1 bash 4179 10\n611 nvme0n1 cksum 4179 2\n627 nvme0n1 cksum 4179 15\n",
        "STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\n1.1 1.2 kjournald 5 WFS 8,1 64 0 100.00\n1.3 1.4 kjournald 5 WFS 8,1 64 0 100.00\n1.5 1.6 kjournald 5 FF 8,1 0 0 100.00\n",
    ] {
        let mut reader = SnoopReader::new(text.as_bytes(), "test");
        let mut lives = StatsCollector::new();
        reader.send_all(&mut lives).expect("memory can be read");
        let stats = lives.finish();
        let unmatched = &stats.unmatched;
        assert!(unmatched.events.is_empty(), "{text}: {unmatched:?}");
        assert_eq!(unmatched.unfinished_bios, 0, "{text}");
    }
}
