// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams made by hand, and where they part.

use super::*;
use blklab_trace::Rwbs;

const DISK: Dev = Dev { major: 8, minor: 0 };

/// `us letters pid sector sectors`, one a line.
fn stream(text: &str) -> Vec<Event> {
    let event = |line: &str| {
        let w: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| w[i].parse::<u64>().expect("a number");
        Event {
            time: Time(number(0) * 1000),
            sector: number(3),
            arg: 0,
            bytes: number(4) as u32 * 512,
            pid: number(2) as u32,
            dev: DISK,
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action: Action::from_letters(w[1]).expect("an action"),
        }
    };
    text.lines().map(event).collect()
}

fn compared(first: &str, second: &str) -> Comparison {
    let [first, second] = [stream(first), stream(second)];
    let side = |name, events| Side {
        name,
        events,
        devices: &[DISK],
    };
    let mut all = compare([side("kernel", &first), side("sim", &second)]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// One bio all the way, so many us after another time.
fn life(at: u64, pid: u32, sector: u64) -> String {
    let steps = [("Q", 0), ("G", 1), ("I", 2), ("D", 3), ("C", 100)];
    let line = |(letters, us): (&str, u64)| format!("{} {letters} {pid} {sector} 8\n", at + us);
    steps.map(line).concat()
}

#[test]
fn streams_that_begin_at_other_times_may_be_identical() {
    let first = life(1000, 1, 8) + &life(2000, 1, 16);
    let second = life(5, 7, 8) + &life(905, 7, 16);
    let c = compared(&first, &second);
    assert!(c.is_identical() && c.is_prefix());
    assert_eq!((c.same, c.common, c.dispatches), (2, Some(1.0), [2, 2]));
    assert_eq!(c.to_string(), "identical over 2 dispatches");
}

#[test]
fn a_stream_that_ends_first_is_a_beginning() {
    let first = life(0, 1, 8) + &life(1000, 1, 16);
    let c = compared(&first, &life(0, 1, 8));
    assert!(!c.is_identical() && c.is_prefix());
    assert_eq!(c.common, Some(0.5));
    let d = c.first.unwrap();
    assert_eq!((d.index, d.kind), (1, Kind::Ends(1)));
    assert_eq!(
        d.sentence,
        "dispatch 2: kernel issues R 16+8 at 1.003000 ms, sim nothing; kernel has 1 more"
    );
}

#[test]
fn a_bio_that_comes_later_is_told_from_a_tie_and_from_a_start() {
    let begin = life(0, 1, 800) + &life(0, 2, 900);
    // Process 2 thinks 5 us longer on the second side; both woke at other times.
    let first = life(0, 1, 800) + &life(20, 2, 900) + &life(200, 2, 16) + &life(210, 1, 8);
    let second = life(0, 1, 800) + &life(20, 2, 900) + &life(210, 1, 8) + &life(220, 2, 16);
    let d = compared(&first, &second).first.unwrap();
    assert_eq!(d.kind, Kind::Later(1));
    assert_eq!(
        d.sentence,
        "dispatch 3: kernel issues R 16+8 at 203.000 us, sim issues R 8+8 at 213.000 us; \
         R 16+8 comes 20.000 us later in sim"
    );
    // Here both woke at once, and another one is first.
    let first = begin.clone() + &life(200, 2, 16) + &life(210, 1, 8);
    let second = begin + &life(200, 1, 8) + &life(210, 2, 16);
    let d = compared(&first, &second).first.unwrap();
    assert_eq!(d.kind, Kind::Tie, "{}", d.sentence);
    // A process that has done nothing before.
    let first = life(0, 1, 8) + &life(200, 2, 16) + &life(210, 1, 24);
    let second = life(0, 1, 8) + &life(200, 1, 24) + &life(210, 2, 16);
    let d = compared(&first, &second).first.unwrap();
    assert_eq!(d.kind, Kind::Starts(1), "{}", d.sentence);
    // Two that begin together.
    let first = life(0, 1, 8) + &life(20, 2, 16);
    let second = life(0, 2, 16) + &life(20, 1, 8);
    let d = compared(&first, &second).first.unwrap();
    assert_eq!(d.kind, Kind::Begin, "{}", d.sentence);
    assert!(d.kind.is_chance());
}

#[test]
fn merges_of_one_side_and_splits_are_told_apart() {
    let merged = "0 Q 1 8 8\n1 G 1 8 8\n2 Q 1 16 8\n3 M 1 16 8\n4 I 1 8 16\n5 D 1 8 16\n";
    let apart = life(0, 1, 8) + &life(10, 1, 16);
    let d = compared(merged, &apart).first.unwrap();
    assert_eq!(d.kind, Kind::Merged(0), "{}", d.sentence);
    let d = compared(&apart, merged).first.unwrap();
    assert_eq!(d.kind, Kind::Merged(1), "{}", d.sentence);
    assert!(d.sentence.ends_with("sim merges 1 bios into it, kernel 0"));
    let whole = "0 Q 1 8 16\n1 G 1 8 16\n4 I 1 8 16\n5 D 1 8 16\n";
    let halves = "0 Q 1 8 16\n0 X 1 8 16\n1 G 1 8 8\n2 G 1 16 8\n4 I 1 8 8\n4 I 1 16 8\n\
                  5 D 1 8 8\n6 D 1 16 8\n";
    let d = compared(whole, halves).first.unwrap();
    assert_eq!(d.kind, Kind::Split, "{}", d.sentence);
}

#[test]
fn what_the_other_request_was_doing_is_the_kind() {
    // Both are in the scheduler on both sides.
    let both = "0 Q 1 8 8\n1 G 1 8 8\n2 I 1 8 8\n3 Q 2 16 8\n4 G 2 16 8\n5 I 2 16 8\n";
    let first = format!("{both}9 D 1 8 8\n10 D 2 16 8\n");
    let second = format!("{both}9 D 2 16 8\n12 D 1 8 8\n");
    let d = compared(&first, &second).first.unwrap();
    assert_eq!(d.kind, Kind::Chosen);
    assert_eq!(
        d.sentence,
        "dispatch 1: kernel issues R 8+8 at 9.000 us, sim issues R 16+8 at 9.000 us; both have \
         both; kernel issues the other 1.000 us later, sim 3.000 us later"
    );
    let plugged = "0 Q 1 8 8\n1 G 1 8 8\n3 Q 2 16 8\n4 G 2 16 8\n5 I 2 16 8\n9 D 2 16 8\n\
                   10 I 1 8 8\n12 D 1 8 8\n";
    let d = compared(&first, plugged).first.unwrap();
    assert_eq!(d.kind, Kind::Plugged(1));
    let starved = "0 Q 1 8 8\n3 Q 2 16 8\n4 G 2 16 8\n5 I 2 16 8\n9 D 2 16 8\n10 G 1 8 8\n\
                   10 I 1 8 8\n12 D 1 8 8\n";
    let d = compared(&first, starved).first.unwrap();
    assert_eq!(d.kind, Kind::NoRequest(1));
    let d = compared(&life(0, 1, 8), &life(0, 1, 64)).first.unwrap();
    assert_eq!(d.kind, Kind::Only(0));
}

#[test]
fn devices_are_compared_one_by_one_and_phases_by_their_means() {
    let other = Dev {
        major: 254,
        minor: 0,
    };
    let first = stream(&life(0, 1, 8));
    let mut second = stream(&life(50, 1, 8));
    for e in &mut second {
        e.dev = other;
    }
    let sides = [
        Side {
            name: "a",
            events: &first,
            devices: &[DISK],
        },
        Side {
            name: "b",
            events: &second,
            devices: &[other],
        },
    ];
    assert!(compare(sides)[0].is_identical());
    let phases = |ns: u64| {
        let mut phases = Phases::default();
        phases.d2c.add(ns);
        phases
    };
    let [a, b] = [phases(1000), phases(1500)];
    let errors = phase_errors([&a, &b]);
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].name, errors[0].relative()), ("D2C", Some(0.5)));
    assert!((errors[0].difference_ns() - 500.0).abs() < 1e-9);
}
