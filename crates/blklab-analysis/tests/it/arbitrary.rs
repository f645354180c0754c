// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any events in any order: nothing panics, and every bio ends exactly once.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::findings::slow::{Lives, Which};
use blklab_analysis::findings::{Context, Reading, Search, time_text};
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::ftrace::FtraceReader;
use blklab_trace::{Action, Event, POINTS, Rwbs, TraceSink, TraceSource as _};
use blklab_types::{Dev, Time};
use proptest::prelude::*;

/// Few places and processes, so that much matches by chance.
fn event() -> impl Strategy<Value = Event> {
    let what = (0..15_usize, 0..5_usize, 0..40_u64, 0..4_u32, 0..60_u64);
    (what, 0..3_u32, 0..2_u16, 0..1_000_u64).prop_map(|(what, pid, minor, step)| {
        let (action, rwbs, sector, nr_sectors, arg) = what;
        Event {
            time: Time(step),
            sector: if sector == 39 { u64::MAX - 1 } else { sector },
            arg,
            bytes: nr_sectors * 512,
            pid,
            dev: Dev { major: 8, minor },
            from_dev: Dev::default(),
            error: (pid == 2).into(),
            cpu: 0,
            rwbs: [
                Rwbs::READ,
                Rwbs::WRITE,
                Rwbs::DISCARD,
                Rwbs::FLUSH,
                Rwbs::PC,
            ][rwbs],
            action: Action::ALL[action],
        }
    })
}

/// Sectors, lengths and times that no device and no clock has, among others that fit.
fn hostile() -> impl Strategy<Value = Event> {
    let far = prop::sample::select(vec![0, 1, 1_000, 30_000_000, 1 << 40, 1 << 62, u64::MAX]);
    let edge = prop::sample::select(vec![0, 8, 1 << 54, u64::MAX - 8, u64::MAX]);
    let bytes = prop::sample::select(vec![0, 512, 4096, u32::MAX]);
    (event(), far, edge, bytes).prop_map(|(event, far, edge, bytes)| Event {
        time: Time(far),
        sector: edge,
        arg: if event.arg < 8 {
            u64::MAX
        } else {
            edge.saturating_add(event.arg)
        },
        bytes,
        ..event
    })
}

#[derive(Default)]
struct Ends {
    bios: Vec<BioLife>,
    requests: Vec<RequestLife>,
    depth: [(u32, u32); 2],
}

impl LifeSink for Ends {
    fn bio(&mut self, bio: &BioLife) {
        self.bios.push(*bio);
    }
    fn request(&mut self, request: &RequestLife) {
        self.requests.push(*request);
    }
    fn depth(&mut self, _: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        self.depth[usize::from(dev.minor)] = (nr_bios, nr_issued);
    }
}

/// Makes the steps of time into times.
fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    let mut time = 0;
    for event in &mut events {
        time = event.time.0.saturating_add(time);
        event.time.0 = time;
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_bio_ends_once(events in prop::collection::vec(event(), 0..400)) {
        let events = in_order(events);
        let mut tracker = Lifecycles::new(Ends::default());
        for event in &events {
            tracker.event(event);
        }
        let (ends, unmatched) = tracker.finish();
        let count = |action: Action| {
            let of = events.iter().filter(|e| e.action == action && e.rwbs != Rwbs::PC);
            of.count() as u64
        };
        let nr_splits = count(Action::Split) - unmatched.events(Action::Split);
        prop_assert_eq!(ends.bios.len() as u64, count(Action::Queue) + nr_splits);
        prop_assert_eq!(ends.depth, [(0, 0); 2]);
        let finished = ends.bios.iter().filter(|b| b.complete.is_some()).count() as u64;
        prop_assert_eq!(finished + unmatched.unfinished_bios, ends.bios.len() as u64);
        let in_requests: u64 = ends.requests.iter().map(|r| u64::from(r.nr_bios)).sum();
        let with_request = ends.bios.iter().filter(|b| b.request.is_some()).count() as u64;
        prop_assert_eq!(in_requests, with_request);
        for bio in &ends.bios {
            let steps = [Some(bio.queue), bio.get.or(bio.merge.map(|m| m.0)), bio.issue, bio.complete];
            prop_assert!(steps.iter().flatten().is_sorted(), "{:?}", bio);
        }
        let mut numbers: Vec<u64> = ends.requests.iter().map(|r| r.number).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn statistics_of_anything_can_be_shown(events in prop::collection::vec(event(), 0..200)) {
        let mut collector = StatsCollector::new();
        for event in &events {
            // Times go back here, which no source should give but may.
            collector.event(event);
        }
        let stats = collector.finish();
        let text = render(&stats, TextOptions { all: true });
        prop_assert!(text.lines().all(|l| l.chars().count() <= 80), "{}", text);
        let _ = serde_json::to_string(&stats).unwrap();
    }
    #[test]
    fn findings_of_anything_can_be_shown(
        usual in prop::collection::vec(event(), 0..200),
        hostile in prop::collection::vec(hostile(), 0..200),
        sorted in any::<bool>(),
    ) {
        let mut events: Vec<Event> = usual.into_iter().zip(hostile).flat_map(|(a, b)| [a, b]).collect();
        if sorted {
            events = in_order(events);
        }
        let wanted = [Which::Slowest(3), Which::At(u64::MAX, 3), Which::OfEvent(5)].map(Lives::new);
        let lives = wanted.iter().map(|l| Box::new(l.clone()) as _).collect();
        for mut search in [Search::all(Context::default()), Search::with(lives, Context::default())] {
            for event in &events {
                search.event(event);
                search.message(event, "cfq42S  slice expired t=0");
            }
            let report = search.finish(Reading::default());
            for ns in report.findings.iter().filter_map(|f| f.total_ns) {
                prop_assert!(time_text(ns).len() < 30);
            }
            serde_json::to_string(&report).expect("reports have no keys but texts");
        }
        for life in wanted.iter().flat_map(Lives::take) {
            serde_json::to_string(&life).expect("lives have no keys but texts");
        }
    }

    /// Whatever other parts of the kernel say, in whatever order.
    #[test]
    fn findings_beside_anything_can_be_shown(
        said in prop::collection::vec(
            (0..POINTS.len() + 4, any::<i64>(), 0..4_u64, 0..4_u64, 0..3_000_000_u64),
            0..200,
        ),
    ) {
        let mut us = 0;
        let mut text = String::new();
        for (place, n, m, k, step) in said {
            us += step;
            let what = match POINTS.get(place) {
                Some(point) => format!("{}: {}", point.name, all_fields(n, m, k)),
                None => {
                    let name = ["insert", "issue", "complete", "requeue"][place - POINTS.len()];
                    let bytes = if place < POINTS.len() + 2 { "4096 ()" } else { "()" };
                    format!("block_rq_{name}: 8,0 FWFS {bytes} {m} + 8 [0]")
                }
            };
            text += &format!("a-{k} [000] ..... {}.{:06}: {what}\n", us / 1_000_000, us % 1_000_000);
        }
        let lives = Lives::new(Which::Slowest(3));
        let kinds = Search::all(Context::default());
        let one = Search::with(vec![Box::new(lives.clone())], Context::default());
        for mut search in [kinds, one] {
            let mut reader = FtraceReader::new(text.as_bytes(), "text");
            reader.send_all(&mut search).expect("a trace");
            prop_assert_eq!(reader.counts().damaged, 0, "{:?}", reader.counts().examples);
            let report = search.finish(Reading::default());
            serde_json::to_string(&report).expect("reports have no keys but texts");
        }
        serde_json::to_string(&lives.take()).expect("lives have no keys but texts");
    }
}

/// Every field that an event has: any number, and small ones where events are put together
/// by them.
fn all_fields(n: i64, m: u64, k: u64) -> String {
    let any = "wait locked flushing logging handle_count blocks_logged written sync \
               dirtied_blocks stall_ms datasync ret nr_to_write nblks reason pause dirtied dirty \
               limit task_ratelimit nr_pages lat rmin rmean rsamples wsamples window background \
               normal max status inflight retries rtn result step rq_wait_pct lagging shortages \
               hweight state cmd_opcode cmd_arg blocks block_size data_flags cmd_err data_err";
    let some = "transaction tid ino cid slba tag lba prev_pid lsn";
    let mut text = format!(
        "[sda:/g{k}] dev 8,0 bdi 8:0: inuse={n}->{m} vrate={n}->{m} missed_ppm={n}:{m} \
         delay={n}->{m} ctrl_id=0 qid=1 opcode=2 host_no=0 channel=0 id=0 lun=0 str_t={} \
         next_pid={k} pid={k} name=mmc0 prev_state=D raw=28 00 00 00 00 0{m} 00 00 08 00",
        m % 2
    );
    for name in any.split(' ') {
        text += &format!(" {name}={n}");
    }
    for name in some.split(' ') {
        text += &format!(" {name}={m}");
    }
    text
}
