// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that no kernel recorded: refused or re-enacted, but nothing panics.

use blklab_analysis::findings::Context;
use blklab_explain::{Options, ReEnactment, Stack, Survey, candidates};
use blklab_sched::Schedulers;
use blklab_trace::{Action, Event, Rwbs, TraceSink as _};
use blklab_types::{Dev, Time};

/// A small generator: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Events in any order at places that meet now and then.
fn events(seed: u64) -> Vec<Event> {
    let mut r = Random(0x9e37_79b9_7f4a_7c15 ^ (seed + 1));
    let mut time = r.below(1 << 40);
    let n = 50 + r.below(400);
    let directions = [
        Rwbs::READ,
        Rwbs::WRITE,
        Rwbs::WRITE.with(Rwbs::SYNC),
        Rwbs::READ.with(Rwbs::AHEAD),
        Rwbs::WRITE.with(Rwbs::FLUSH),
        Rwbs::WRITE.with(Rwbs::FUA).with(Rwbs::FLUSH),
        Rwbs::WRITE.with(Rwbs::BARRIER),
        Rwbs::DISCARD,
        Rwbs::FLUSH,
        Rwbs::NONE,
        Rwbs::READ.with(Rwbs::PC),
    ];
    let event = |r: &mut Random, time: u64| Event {
        time: Time(time),
        sector: match r.below(50) {
            0 => u64::MAX - r.below(10),
            1 => r.below(1 << 54),
            _ => 8 * r.below(40),
        },
        arg: r.below(4),
        bytes: match r.below(20) {
            0 => u32::MAX,
            1 => 0,
            2 => 511,
            _ => 4096 * (1 + r.below(5)) as u32,
        },
        pid: r.below(6) as u32,
        dev: Dev::default(),
        from_dev: Dev::default(),
        error: r.below(3) as u16,
        cpu: r.below(3) as u16,
        rwbs: directions[r.below(directions.len() as u64) as usize],
        action: Action::ALL[r.below(Action::ALL.len() as u64) as usize],
    };
    let mut all = Vec::new();
    for _ in 0..n {
        time += [0, 1, 5_000, 4_000_000, 2_000_000_000][r.below(5) as usize];
        let mut e = event(&mut r, time);
        // Half of them take a way that a request could have.
        if r.below(2) == 0 {
            e.sector = 8 * r.below(40);
            e.bytes = 4096;
            e.rwbs = directions[r.below(4) as usize];
            for action in [
                Action::Queue,
                Action::GetRequest,
                Action::Insert,
                Action::Issue,
            ] {
                e.action = action;
                all.push(e);
            }
            e.action = Action::Complete;
            e.time = Time(time + r.below(1_000_000));
            time = e.time.0;
        }
        all.push(e);
    }
    all
}

fn re_enact(events: &[Event], kernel: &str, set: &[(&str, &str)]) -> (u32, u32) {
    let mut survey = Survey::default();
    for e in events {
        survey.event(e);
    }
    let mut context = Context::default();
    context.set("kernel", kernel).expect("a release");
    for (key, value) in set {
        context.set(key, value).expect("sound");
    }
    let Ok((dev, disk)) = survey.disk(0) else {
        return (0, 1);
    };
    let mut done = 0;
    for name in candidates(&context, Schedulers::default(), true).expect("the kernel is known") {
        let stack = Stack::of_context(&context, name, Schedulers::default(), disk);
        let Ok(stack) = stack else { continue };
        let options = Options {
            direct: events.len().is_multiple_of(2),
            worst: 3,
            wanted: (1..50).collect(),
            ..Options::default()
        };
        let mut again = ReEnactment::new(stack, &survey, (dev, disk), options).expect("possible");
        for e in events {
            again.event(e);
        }
        let came = again.finish().expect("few processes");
        assert!(came.agreement.same <= came.agreement.dispatches);
        done += 1;
    }
    (done, 0)
}

#[test]
fn nothing_panics() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..60 {
        let all = events(seed);
        // Sectors beyond every device are refused as a whole.
        let few: Vec<Event> = all.iter().filter(|e| e.sector < 1 << 55).copied().collect();
        for events in [&all, &few] {
            for (kernel, set) in [
                ("2.6.18", &[][..]),
                ("2.6.28", &[("device/queue_depth", "1")][..]),
                ("2.6.33", &[("queue/rotational", "0")][..]),
                ("3.10", &[][..]),
                ("4.19", &[("queue/nr_requests", "1")][..]),
                ("5.4", &[("queue/nr_requests", "4")][..]),
                ("6.12", &[("queue/write_cache", "write back")][..]),
            ] {
                let (n, m) = re_enact(events, kernel, set);
                done += n;
                refused += m;
            }
        }
    }
    assert!(done > 200, "{done} done");
    assert!(refused > 40, "{refused} refused");
}

fn event(ms: u64, action: Action, sector: u64) -> Event {
    Event {
        time: Time(1_000_000 * ms),
        sector,
        arg: 0,
        bytes: 4096,
        pid: 7,
        dev: Dev::default(),
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs: Rwbs::READ,
        action,
    }
}

/// What a survey says of events.
fn refusal(events: &[Event], lost: u64, joined: bool) -> String {
    let mut survey = Survey::default();
    for e in events {
        survey.event(e);
    }
    if joined {
        survey.new_recording();
    }
    survey.disk(lost).expect_err("it is refused").what
}

#[test]
fn what_cannot_be_re_enacted_is_refused_with_the_reason() {
    use Action::{Complete, Issue, Queue};
    let whole = [
        event(0, Queue, 8),
        event(1, Issue, 8),
        event(2, Complete, 8),
    ];
    assert!(refusal(&whole, 3, false).contains("3 events are missing"));
    assert!(refusal(&whole, 0, true).contains("several captures"));
    assert!(refusal(&[], 0, false).contains("no D event"));
    assert!(refusal(&whole[1..], 0, false).contains("no Q event"));
    assert!(refusal(&whole[..2], 0, false).contains("no C event"));
    let back = [whole[0], whole[2], whole[1]];
    assert!(refusal(&back, 0, false).contains("time goes back"));
    let jump = [
        whole[0],
        event(8_000_000, Issue, 8),
        event(8_000_001, Complete, 8),
    ];
    assert!(refusal(&jump, 0, false).contains("jump"));
    let far = [whole[0], whole[1], whole[2], event(3, Queue, u64::MAX - 7)];
    assert!(refusal(&far, 0, false).contains("sector"));
    let mut unqueued = whole.to_vec();
    for i in 0..3000 {
        unqueued.push(event(3, Issue, 800 + 8 * i));
    }
    assert!(refusal(&unqueued, 0, false).contains("never queued"));
}
