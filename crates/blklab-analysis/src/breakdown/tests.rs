// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes and queues of a small trace.

use super::*;
use blklab_trace::Rwbs;

struct Trace(DetailCollector);

impl Trace {
    fn new(by: &[By]) -> Trace {
        Trace(DetailCollector::new(&Wanted {
            by: by.to_vec(),
            queues: true,
        }))
    }

    fn event(&mut self, us: u64, action: Action, pid: Pid, rwbs: Rwbs, place: (u64, u32)) {
        self.0.event(&Event {
            time: Time(us * 1000),
            sector: place.0,
            arg: 0,
            bytes: place.1 * 512,
            pid,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs,
            action,
        });
    }

    /// Q, G, I, then D and C at these times.
    fn io(&mut self, pid: Pid, rwbs: Rwbs, place: (u64, u32), at: [u64; 3]) {
        for action in [Action::Queue, Action::GetRequest, Action::Insert] {
            self.event(at[0], action, pid, rwbs, place);
        }
        self.event(at[1], Action::Issue, pid, rwbs, place);
        self.event(at[2], Action::Complete, 0, rwbs, place);
    }
}

const SYNC: Rwbs = Rwbs(Rwbs::WRITE.0 | Rwbs::SYNC.0);

fn rows(details: &Details, table: usize) -> Vec<(String, u64, u64)> {
    let rows = details.by[table].rows.iter();
    rows.map(|r| (r.name.clone(), r.queued.count, r.phases.q2c.max() / 1000))
        .collect()
}

#[test]
fn bios_are_told_apart() {
    let mut t = Trace::new(&[By::Process, By::Direction, By::Size, By::Window(1_000_000)]);
    t.0.process(Time::ZERO, 7, "cat");
    t.io(7, Rwbs::READ, (0, 8), [0, 10, 30]);
    t.io(7, Rwbs::READ, (8, 8), [40, 50, 60]);
    t.io(9, SYNC, (1000, 9), [500, 600, 700]);
    t.io(9, Rwbs::WRITE, (3000, 64), [2500, 2510, 2600]);
    let (_, details) = t.0.finish();
    let row = |name: &str, n, q2c| (name.to_owned(), n, q2c);
    assert_eq!(
        rows(&details, 0),
        [row("cat (7)", 2, 30), row("(9)", 2, 200)]
    );
    assert_eq!(
        rows(&details, 1),
        [
            row("read", 2, 30),
            row("sync write", 1, 200),
            row("write", 1, 100)
        ]
    );
    assert_eq!(
        rows(&details, 2),
        [
            row("to 4 KiB", 2, 30),
            row("to 8 KiB", 1, 200),
            row("to 32 KiB", 1, 100)
        ]
    );
    assert_eq!(
        rows(&details, 3),
        [row("0.000 s", 3, 200), row("0.002 s", 1, 100)]
    );
    // The second read lies behind the first; the first counts from sector 0.
    let seeks = &details.by[0].rows[0].seeks;
    assert_eq!((seeks.distances.count(), seeks.nr_sequential), (2, 2));
    assert_eq!(details.by[0].rows[1].seeks.distances.max(), 3000 - 1009);
    for line in render_classes(&details).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// A trace of more windows than there may be has longer ones, and loses none.
#[test]
fn windows_grow() {
    let mut t = Trace::new(&[By::Window(1000)]);
    for k in 0..10_000 {
        t.io(1, Rwbs::READ, (k * 8, 8), [10 * k, 10 * k + 1, 10 * k + 2]);
    }
    let (_, details) = t.0.finish();
    let table = &details.by[0];
    let window_ns = table.window_ns.expect("windows");
    assert!(
        window_ns > 1000 && window_ns.is_multiple_of(1000),
        "{window_ns}"
    );
    assert!(table.rows.len() <= 4096);
    assert_eq!(
        table.rows.iter().map(|r| r.queued.count).sum::<u64>(),
        10_000
    );
    let begins: Vec<u64> = table.rows.iter().map(|r| r.key).collect();
    assert!(begins.is_sorted() && begins.iter().all(|b| b.is_multiple_of(window_ns)));
}

#[test]
fn depths_pauses_and_flushes() {
    let mut t = Trace::new(&[]);
    // Two at a time, then a pause of 300 us with a bio waiting.
    for sector in [0, 8] {
        for action in [Action::Queue, Action::GetRequest, Action::Insert] {
            t.event(0, action, 1, Rwbs::READ, (sector, 8));
        }
        t.event(10, Action::Issue, 1, Rwbs::READ, (sector, 8));
    }
    for action in [Action::Queue, Action::GetRequest, Action::Insert] {
        t.event(50, action, 1, SYNC, (100, 8));
    }
    t.event(100, Action::Complete, 0, Rwbs::READ, (0, 8));
    t.event(100, Action::Complete, 0, Rwbs::READ, (8, 8));
    t.event(400, Action::Issue, 1, SYNC, (100, 8));
    t.event(500, Action::Complete, 0, SYNC, (100, 8));
    t.io(1, Rwbs::FLUSH.with(Rwbs::WRITE), (0, 0), [600, 600, 1600]);
    let (_, details) = t.0.finish();
    let q = &details.queues[0];
    assert_eq!((q.depth_at_q.count(), q.depth_at_q.max()), (4, 2));
    assert_eq!((q.depth_at_d.count(), q.depth_at_d.max()), (4, 1));
    let pauses = &q.idle_with_work.pauses;
    // Before the first D, and before that of the write.
    assert_eq!((pauses.count(), pauses.sum()), (2, 310_000));
    assert_eq!(q.flushes.empty_q2c.max(), 1_000_000);
    assert_eq!(q.flushes.commands_d2c.count(), 1);
    let text = render_queues(&details);
    assert!(text.contains("empty, Q to C"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
}

#[test]
fn histograms_are_by_powers_of_two() {
    let mut values = Distribution::default();
    for value in [0, 1, 2, 3, 100, 127] {
        values.add(value);
    }
    let rows = histogram(&values);
    assert_eq!(rows[..3], [(0, 1, 1), (1, 2, 1), (2, 4, 2)]);
    assert_eq!(rows.last(), Some(&(64, 128, 2)));
    assert_eq!(rows.iter().map(|r| r.2).sum::<u64>(), values.count());
    assert!(histogram(&Distribution::default()).is_empty());
    values.add(u64::MAX);
    assert_eq!(histogram(&values).iter().map(|r| r.2).sum::<u64>(), 7);
}
