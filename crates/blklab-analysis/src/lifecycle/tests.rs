// SPDX-License-Identifier: MIT OR Apache-2.0
//! One check per rule. Events are written as in blkparse: microseconds,
//! process, action, flags, sector + sectors.

use super::{BioLife, Lifecycles, Merge, RequestLife, Unmatched};
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};

fn event(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |idx: usize| words.get(idx).map_or(0, |w| w.parse().unwrap());
    let has = |letter| words[3].contains(letter);
    let mut rwbs = match words[3].trim_start_matches('F').as_bytes()[0] {
        b'R' => Rwbs::READ,
        b'W' => Rwbs::WRITE,
        b'D' => Rwbs::DISCARD,
        _ => Rwbs::FLUSH,
    };
    if has('S') {
        rwbs = rwbs.with(Rwbs::SYNC);
    }
    let action = Action::from_letters(words[2]).unwrap();
    let is_split = action == Action::Split;
    Event {
        time: Time(number(0) * 1000),
        pid: number(1) as u32,
        action,
        rwbs,
        sector: number(4),
        arg: if is_split { number(6) } else { 0 },
        bytes: if is_split {
            (number(6) - number(4)) as u32 * 512
        } else {
            number(6) as u32 * 512
        },
        dev: Dev { major: 8, minor: 0 },
        from_dev: Dev::default(),
        error: number(8) as u16,
        cpu: 0,
    }
}

fn track(lines: &str) -> (Vec<BioLife>, Vec<RequestLife>, Unmatched) {
    let mut tracker = Lifecycles::new((Vec::new(), Vec::new()));
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        tracker.event(&event(line));
    }
    let ((bios, requests), unmatched) = tracker.finish();
    (bios, requests, unmatched)
}

fn us(time: u64) -> Option<Time> {
    Some(Time(time * 1000))
}

#[test]
fn a_read_alone() {
    let (bios, requests, unmatched) = track(
        "0 9 Q R 100 + 8
         1 9 S R 100 + 8
         5 9 G R 100 + 8
         6 9 I R 100 + 8
         9 0 D R 100 + 8
        20 0 C R 100 + 8 error 5",
    );
    assert_eq!(unmatched, Unmatched::default());
    let bio = bios[0];
    assert_eq!(
        (bio.queue, bio.sleep, bio.get, bio.insert),
        (Time(0), us(1), us(5), us(6))
    );
    assert_eq!(
        (bio.issue, bio.complete, bio.error, bio.pid),
        (us(9), us(20), 5, 9)
    );
    assert!(bio.is_sync() && !bio.is_part && bio.merge.is_none());
    let rq = requests[0];
    assert_eq!(
        (rq.get, rq.insert, rq.issue, rq.complete),
        (us(5), us(6), us(9), us(20))
    );
    assert_eq!(
        (rq.sector, rq.bytes, rq.nr_bios, rq.error),
        (100, 4096, 1, 5)
    );
    assert_eq!(bio.request, Some(rq.number));
    assert_eq!((bios.len(), requests.len()), (1, 1));
}

#[test]
fn bios_merge_behind_and_in_front() {
    let (bios, requests, unmatched) = track(
        "0 9 Q W 100 + 8
         1 9 G W 100 + 8
         2 9 I W 100 + 8
         3 9 Q W 108 + 8
         4 9 M W 108 + 8
         5 7 Q WS 92 + 8
         6 7 F WS 92 + 8
         7 0 D W 92 + 24
         8 0 C W 92 + 24",
    );
    assert_eq!(unmatched, Unmatched::default());
    let merges: Vec<_> = bios.iter().map(|b| (b.sector, b.merge)).collect();
    let at = |t: u64, kind| Some((Time(t * 1000), kind));
    assert_eq!(
        merges,
        [
            (100, None),
            (108, at(4, Merge::Back)),
            (92, at(6, Merge::Front))
        ]
    );
    assert!(bios.iter().all(|b| b.issue == us(7) && b.complete == us(8)));
    assert_eq!(bios[1].insert, None);
    let rq = requests[0];
    assert_eq!((rq.sector, rq.bytes, rq.nr_bios), (92, 12_288, 3));
    assert_eq!(
        (rq.nr_back_merges, rq.nr_front_merges, rq.nr_absorbed),
        (1, 1, 0)
    );
}

#[test]
fn a_request_vanishes_without_an_event() {
    let (bios, requests, unmatched) = track(
        "0 9 Q W 100 + 8
         1 9 G W 100 + 8
         2 9 I W 100 + 8
         3 9 Q W 116 + 8
         4 9 G W 116 + 8
         5 9 I W 116 + 8
         6 9 Q W 108 + 8
         7 9 M W 108 + 8
         8 0 D W 100 + 24
         9 0 C W 100 + 24",
    );
    assert_eq!(unmatched, Unmatched::default());
    assert_eq!((bios.len(), requests.len()), (3, 1));
    assert!(
        bios.iter()
            .all(|b| b.complete == us(9) && b.request == Some(0))
    );
    assert_eq!(
        (requests[0].nr_absorbed, requests[0].nr_silent_merges),
        (1, 1)
    );
    assert_eq!(bios.iter().filter(|b| b.insert.is_some()).count(), 2);
}

#[test]
fn a_request_vanishes_with_an_event() {
    let (bios, requests, unmatched) = track(
        "0 9 Q W 100 + 8
         1 9 G W 100 + 8
         3 9 Q W 108 + 8
         4 9 G W 108 + 8
         5 9 M W 108 + 8
         8 0 D W 100 + 16
         9 0 C W 100 + 16",
    );
    assert_eq!(unmatched, Unmatched::default());
    assert_eq!((bios.len(), requests.len()), (2, 1));
    assert_eq!(
        (requests[0].nr_absorbed, requests[0].nr_silent_merges),
        (1, 0)
    );
    assert!(bios.iter().all(|b| b.merge.is_none() && b.get.is_some()));
}

#[test]
fn directions_do_not_mix() {
    let (bios, requests, _) = track(
        "0 9 Q W 100 + 8
         1 9 G W 100 + 8
         2 7 Q R 108 + 8
         3 7 G R 108 + 8
         4 7 Q R 100 + 8
         5 7 F R 100 + 8
         6 0 D R 100 + 16
         7 0 D W 100 + 8
         8 0 C W 100 + 8
         9 0 C R 100 + 16",
    );
    assert_eq!(
        requests.iter().map(|r| r.nr_bios).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(
        bios.iter().map(|b| b.complete).collect::<Vec<_>>(),
        [us(8), us(9), us(9)]
    );
}

#[test]
fn a_split_bio_lives_on_in_parts() {
    let (bios, requests, unmatched) = track(
        "0 9 Q W 0 + 24
         1 9 X W 0 / 8
         2 9 G W 0 + 8
         3 9 X W 8 / 16
         4 9 G W 8 + 8
         5 9 G W 16 + 8
         6 0 D W 0 + 8
         7 0 D W 8 + 8
         8 0 D W 16 + 8
         9 0 C W 0 + 8
        10 0 C W 16 + 8
        11 0 C W 8 + 8",
    );
    assert_eq!(unmatched, Unmatched::default());
    assert_eq!(requests.len(), 3);
    assert!(
        bios.iter()
            .all(|b| b.is_part && b.queue == Time(0) && b.bytes == 4096)
    );
    assert_eq!(
        bios.iter().map(|b| b.sector).collect::<Vec<_>>(),
        [0, 16, 8]
    );
}

#[test]
fn requeue_and_completion_in_parts() {
    let (bios, requests, unmatched) = track(
        "0 9 Q R 0 + 8
         1 9 G R 0 + 8
         2 9 I R 0 + 8
         3 9 Q R 8 + 8
         4 9 M R 8 + 8
         5 0 D R 0 + 16
         6 0 R R 0 + 16
         7 0 D R 0 + 16
         8 0 C R 0 + 8
         9 0 C R 8 + 8",
    );
    assert_eq!(unmatched, Unmatched::default());
    assert_eq!(
        bios.iter()
            .map(|b| (b.issue, b.complete))
            .collect::<Vec<_>>(),
        [(us(7), us(8)), (us(7), us(9))]
    );
    let rq = requests[0];
    assert_eq!(
        (rq.nr_requeues, rq.nr_bios, rq.bytes, rq.complete),
        (1, 2, 8192, us(9))
    );
}

#[test]
fn no_scheduler_no_requests_no_data() {
    // none: no I. Flush: no data, another sector. md: Q and C alone.
    let (bios, requests, unmatched) = track(
        "0 9 Q R 0 + 8
         1 9 G R 0 + 8
         2 9 D R 0 + 8
         3 0 C R 0 + 8
         4 9 Q FN 0 + 0
         5 9 G FN 0 + 0
         6 9 D FN 18446744073709551615 + 0
         7 0 C FN 0 + 0
         8 9 Q W 64 + 8
         9 0 C W 64 + 8",
    );
    assert_eq!(unmatched, Unmatched::default());
    assert_eq!((bios.len(), requests.len()), (3, 2));
    assert_eq!(
        bios.iter().map(|b| b.issue).collect::<Vec<_>>(),
        [us(2), us(6), None]
    );
}

#[test]
fn a_trace_that_begins_late_and_ends_early() {
    let (bios, requests, unmatched) = track(
        "0 0 C R 900 + 8
         1 9 G R 0 + 8
         2 9 I R 0 + 8
         3 9 D R 0 + 8
         4 9 D W 64 + 8
         5 0 C W 64 + 8
         6 9 Q R 128 + 8
         7 9 M R 200 + 8
         8 9 X R 300 / 308",
    );
    let count = |action| unmatched.events(action);
    assert_eq!((count(Action::Complete), count(Action::GetRequest)), (1, 1));
    assert_eq!(
        (
            count(Action::Issue),
            count(Action::BackMerge),
            count(Action::Split)
        ),
        (1, 1, 1)
    );
    assert_eq!(unmatched.nr_events(), 5);
    assert_eq!(
        (unmatched.unfinished_bios, unmatched.unfinished_requests),
        (1, 1)
    );
    assert_eq!(bios[0].complete, None);
    assert_eq!(
        requests.iter().map(|r| r.complete).collect::<Vec<_>>(),
        [us(5), None]
    );
}

#[test]
fn depth_is_told() {
    #[derive(Default)]
    struct Depth(Vec<(u32, u32)>);
    impl super::LifeSink for Depth {
        fn depth(&mut self, _: Time, _: Dev, nr_bios: u32, nr_issued: u32) {
            self.0.push((nr_bios, nr_issued));
        }
    }
    let mut tracker = Lifecycles::new(Depth::default());
    for line in [
        "0 9 Q R 0 + 8",
        "1 9 G R 0 + 8",
        "2 9 D R 0 + 8",
        "3 9 Q R 8 + 8",
        "4 0 C R 0 + 8",
    ] {
        tracker.event(&event(line));
    }
    let (depth, _) = tracker.finish();
    assert_eq!(depth.0, [(1, 0), (1, 1), (2, 1), (1, 0), (0, 0)]);
}

#[test]
fn who_is_in_the_scheduler_is_told() {
    #[derive(Default)]
    struct Scheduler(Vec<(u32, bool)>);
    impl super::LifeSink for Scheduler {
        fn in_scheduler(&mut self, _: Dev, nr_waiting: u32, overtaken: bool) {
            self.0.push((nr_waiting, overtaken));
        }
    }
    let mut tracker = Lifecycles::new(Scheduler::default());
    for line in [
        "0 9 I R 0 + 8",
        "0 9 I R 8 + 8",
        "0 9 I W 64 + 8",
        "0 9 I R 32 + 8",
        // The first two are one by now.
        "1 9 D R 0 + 16",
        "2 9 D R 32 + 8",
        "3 9 D W 64 + 8",
        // Given back, and issued without I.
        "4 9 R W 64 + 8",
        "5 9 D W 64 + 8",
        // Never shown to the scheduler.
        "6 9 D R 96 + 8",
    ] {
        tracker.event(&event(line));
    }
    let (scheduler, _) = tracker.finish();
    let expected = [
        (1, false),
        (2, false),
        (3, false),
        (4, false),
        (2, false),
        (1, false),
        (0, true),
        (0, false),
        (0, false),
    ];
    assert_eq!(scheduler.0, expected);
}

/// A discard that was cut into pieces: each C has the sectors of all that have ended.
#[test]
fn each_completion_of_a_cut_discard_ends_a_piece() {
    let (_, requests, unmatched) = track(
        "0 9 D D 0 + 4
         1 9 D D 4 + 4
         2 9 D D 8 + 4
         10 0 C D 0 + 4
         20 0 C D 0 + 8
         30 0 C D 0 + 12
         40 0 C D 0 + 16",
    );
    let ends: Vec<_> = requests.iter().map(|r| (r.sector, r.complete)).collect();
    assert_eq!(ends, [(0, us(10)), (4, us(20)), (8, us(30))]);
    assert_eq!(unmatched.events(Action::Complete), 1);
}

/// What another recording shows is about other I/Os.
#[test]
fn a_completion_of_another_recording() {
    let mut tracker = Lifecycles::new((Vec::<BioLife>::new(), Vec::<RequestLife>::new()));
    for line in ["0 9 Q R 100 + 8", "5 9 G R 100 + 8", "9 0 D R 100 + 8"] {
        tracker.event(&event(line));
    }
    tracker.new_recording();
    tracker.event(&event("4 0 C R 100 + 8"));
    let ((bios, requests), unmatched) = tracker.finish();
    assert_eq!((bios[0].complete, requests[0].complete), (None, None));
    assert_eq!((bios.len(), requests.len()), (1, 1));
    assert_eq!(
        (
            unmatched.unfinished_bios,
            unmatched.events(Action::Complete)
        ),
        (1, 1)
    );
}
