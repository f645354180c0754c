// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that were made by rules that are known, and what is found of the rules.

use crate::{CannotRepeat, Collector, Marks, Process, Recorded, Waiting};
use blklab_trace::{Action, Actions, Event, Rwbs, TraceSink as _};
use blklab_types::{Dev, Span, Time};

/// A trace in the making: events in any order.
#[derive(Default)]
pub(crate) struct Trace(Vec<Event>);

impl Trace {
    pub(crate) fn event(
        &mut self,
        time_us: u64,
        action: Action,
        pid: u32,
        rwbs: Rwbs,
        sector: u64,
        n: u32,
    ) {
        self.0.push(Event {
            time: Time(time_us * 1000),
            sector,
            arg: 0,
            bytes: n * 512,
            pid,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs,
            action,
        });
    }

    /// A bio of 8 sectors from Q to C.
    fn bio(&mut self, pid: u32, rwbs: Rwbs, sector: u64, from_us: u64, to_us: u64) {
        self.sized(pid, rwbs, (sector, 8), from_us, to_us);
    }

    /// The same, of another length.
    pub(crate) fn sized(
        &mut self,
        pid: u32,
        rwbs: Rwbs,
        (sector, n): (u64, u32),
        from_us: u64,
        to_us: u64,
    ) {
        for action in [Action::Queue, Action::GetRequest, Action::Issue] {
            self.event(from_us, action, pid, rwbs, sector, n);
        }
        self.event(to_us, Action::Complete, 0, rwbs, sector, n);
    }

    pub(crate) fn finish(mut self) -> Result<Recorded, CannotRepeat> {
        self.0.sort_by_key(|e| e.time);
        let mut collector = Collector::default();
        collector.process(Time::ZERO, 7, "seven");
        self.0.iter().for_each(|e| collector.event(e));
        collector.finish(Actions::ALL, None)
    }

    fn process(self) -> Process {
        let mut recorded = self.finish().expect("bios");
        assert_eq!(recorded.processes.len(), 1);
        recorded.processes.remove(0)
    }
}

/// Numbers without a pattern, below `n`.
pub(crate) fn noise(seed: u64, n: u64) -> u64 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % n
}

const READ: Rwbs = Rwbs::READ;
const WRITE: Rwbs = Rwbs::WRITE;

#[test]
fn a_synchronous_reader_waits_for_each_bio_and_then_thinks() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..40 {
        let done = now + 1000 + noise(i, 9000);
        trace.bio(7, READ, 100_000 - 8 * i, now, done);
        now = done + 250;
    }
    let p = trace.process();
    assert_eq!(p.name.as_deref(), Some("seven"));
    assert_eq!(p.waiting, Waiting::Until);
    for b in &p.bios[1..] {
        assert_eq!((b.room, b.think), (1, Span::from_us(250)));
        assert!(b.marks.has(Marks::AWAITED.with(Marks::WOKE)));
    }
    assert_eq!(
        p.bios[0].latency(),
        Some(Span::from_us(1000 + noise(0, 9000)))
    );
}

#[test]
fn a_process_that_keeps_four_under_way_is_known_by_its_depth() {
    let mut trace = Trace::default();
    // Four slots; each is filled again 3 us after its bio has ended.
    let mut slots = [0_u64, 1, 2, 3];
    for i in 0..80 {
        let slot = (0..4).min_by_key(|s| slots[*s]).expect("four");
        let begin = slots[slot];
        let done = begin + 500 + noise(i, 4000);
        trace.bio(7, READ, i * 1000, begin, done);
        slots[slot] = done + 3;
    }
    let p = trace.process();
    assert_eq!(p.waiting, Waiting::Depth(4));
    let prompt = p.bios[4..].iter().filter(|b| b.think == Span::from_us(3));
    assert!(prompt.count() > 70, "{:?}", p.bios);
}

#[test]
fn a_flusher_waits_for_nothing() {
    let mut trace = Trace::default();
    for i in 0..100 {
        let begin = i * 1000 + noise(i, 300);
        trace.bio(7, WRITE, i * 8, begin, begin + 1500 + noise(i + 7, 20_000));
    }
    let p = trace.process();
    assert_eq!(p.waiting, Waiting::Free);
    assert!(p.bios.iter().all(|b| b.room == 0));
}

#[test]
fn a_copy_waits_for_its_reads_and_not_for_its_writes() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..60 {
        let done = now + 800 + noise(i, 5000);
        trace.bio(7, READ, i * 8, now, done);
        let write = done + 20;
        trace.bio(
            7,
            WRITE,
            1_000_000 + i * 8,
            write,
            write + 30_000 + noise(i, 90_000),
        );
        now = write + 30;
    }
    let p = trace.process();
    assert_eq!(p.waiting, Waiting::Until);
    for pair in p.bios[2..].chunks(2) {
        let [read, write] = pair else { panic!() };
        // The pause of the write is what follows the end of the read.
        assert_eq!((read.room, read.think), (1, Span::from_us(30)));
        assert_eq!((write.room, write.think), (1, Span::from_us(20)));
        assert!(read.marks.has(Marks::AWAITED) && !write.marks.has(Marks::AWAITED));
    }
}

#[test]
fn starts_at_a_rate_are_told_from_pauses() {
    let mut trace = Trace::default();
    for i in 0..50 {
        let begin = i * 10_000;
        trace.bio(7, READ, i * 800, begin, begin + 500 + noise(i, 8000));
    }
    let p = trace.process();
    assert_eq!(p.waiting, Waiting::Paced);
    assert!(p.bios[1..].iter().all(|b| b.think == Span::from_us(10_000)));
}

#[test]
fn plugs_are_read_where_they_are_shown() {
    let mut trace = Trace::default();
    let mut at = 0;
    let mut next = |trace: &mut Trace, action, rwbs, sector| {
        at += 1;
        trace.event(at, action, 7, rwbs, sector, 8);
    };
    // Three under a plug, then one alone.
    for sector in [0, 80, 160] {
        next(&mut trace, Action::Queue, READ, sector);
        next(&mut trace, Action::GetRequest, READ, sector);
        if sector == 0 {
            next(&mut trace, Action::Plug, Rwbs::NONE, 0);
        }
    }
    next(&mut trace, Action::Unplug, Rwbs::NONE, 0);
    next(&mut trace, Action::Queue, READ, 800);
    next(&mut trace, Action::GetRequest, READ, 800);
    next(&mut trace, Action::Issue, READ, 800);
    next(&mut trace, Action::Queue, READ, 900);
    let p = trace.process();
    let marks = |m: Marks| p.bios.iter().map(|b| b.marks.has(m)).collect::<Vec<_>>();
    assert_eq!(marks(Marks::PLUGGED), [true, true, true, false, false]);
    assert_eq!(marks(Marks::ENDS_PLUG), [false, false, true, true, true]);
    assert_eq!(marks(Marks::UNPLUGS), [false, false, true, true, true]);
}

#[test]
fn without_plugs_bios_at_once_are_a_batch() {
    let mut trace = Trace::default();
    for (sector, from) in [(0, 0), (8, 5), (16, 10), (800, 2000), (900, 4000)] {
        trace.bio(7, READ, sector, from, from + 1500);
    }
    let recorded = trace.finish().expect("bios");
    assert!(!recorded.shows_plugs);
    let p = &recorded.processes[0];
    let marks = |m: Marks| p.bios.iter().map(|b| b.marks.has(m)).collect::<Vec<_>>();
    assert_eq!(marks(Marks::PLUGGED), [true, true, true, false, false]);
    assert_eq!(marks(Marks::ENDS_PLUG), [false, false, true, true, true]);
}

#[test]
fn the_phase_of_ticks_is_kept() {
    let mut trace = Trace::default();
    trace.bio(7, READ, 0, 1_234_567, 1_240_000);
    assert_eq!(trace.process().bios[0].at, Span::from_us(14_567));
}

#[test]
fn what_cannot_be_repeated_says_why() {
    let told = |trace: Trace| trace.finish().expect_err("nothing to repeat").to_string();
    assert_eq!(told(Trace::default()), "nothing to repeat: no events");
    let mut trace = Trace::default();
    trace.event(1, Action::Issue, 7, READ, 0, 8);
    trace.event(2, Action::Complete, 0, READ, 0, 8);
    let text = told(trace);
    assert!(
        text.contains("no Q events (bios that are queued), only D, C"),
        "{text}"
    );
    let mut trace = Trace::default();
    trace.event(1, Action::Queue, 7, READ, 0, 8);
    trace.event(2, Action::Queue, 7, READ, 0, 8);
    trace.0[1].dev.minor = 16;
    let text = told(trace);
    assert!(
        text.contains("several devices: 8,0 (1), 8,16 (1)"),
        "{text}"
    );
    let mut collector = Collector::default();
    let mut trace = Trace::default();
    trace.event(1, Action::Queue, 7, READ, 0, 8);
    collector.event(&trace.0[0]);
    collector.new_recording();
    collector.event(&trace.0[0]);
    let refused = collector.finish(Actions::ALL, None);
    assert_eq!(refused, Err(CannotRepeat::SeveralRecordings(2)));
    let mut trace = Trace::default();
    trace.event(0, Action::Queue, 7, READ, 0, 8);
    trace.event(1, Action::Queue, 7, READ, 0, 8);
    trace.0[1].time = Time(u64::MAX / 2);
    assert!(told(trace).contains("hundred years"));
}

#[test]
fn hostile_numbers_do_no_harm() {
    let mut trace = Trace::default();
    for (i, sector) in [u64::MAX, u64::MAX - 3, 0].into_iter().enumerate() {
        trace.event(9 - i as u64, Action::Queue, 7, READ, sector, 8);
        trace.event(9, Action::Complete, 0, READ, sector, 8);
    }
    trace.event(3, Action::Queue, 7, WRITE.with(Rwbs::FLUSH), 0, 0);
    let recorded = trace.finish().expect("bios");
    assert_eq!(recorded.nr_bios(), 2);
    assert_eq!(recorded.sectors(), Some((0, 8)));
    let told = "2 bios beyond the end of any device are left out";
    assert!(
        recorded.notes.iter().any(|note| note == told),
        "{:?}",
        recorded.notes
    );
}

#[test]
fn a_rate_beside_an_even_device_is_no_queue_of_a_depth() {
    let mut trace = Trace::default();
    for i in 0..200 {
        let begin = i * 1000 + noise(i, 900);
        trace.bio(7, WRITE, i * 800, begin, i * 1000 + 20_000);
    }
    assert_eq!(trace.process().waiting, Waiting::Free);
}
