// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing starves beyond what the scheduler permits: closed loops of readers
//! and writers that never let the queue run dry, default tunables, and a
//! bound on the wait between insertion and hand-over.
//!
//! What the schedulers permit, with N requests that wait:
//!
//! * noop: nobody overtakes.
//! * deadline: a request expires after 500 ms (reads) or 5 s (writes); from
//!   then on it is behind at most N that expired earlier, and each of them is
//!   the start of a batch, with at most two batches of reads before a batch
//!   of writes: three batches of 16 requests per place.
//! * anticipatory: the same with 125 and 250 ms, and batches by time: 500 ms
//!   of reads, 125 ms of writes, and the wait for the old batch to finish.
//! * CFQ: every queue that waits gets its slice before any other of its level
//!   gets two. A slice is at most 180 ms, its last round of requests, and the
//!   wait at its end. A request of a queue is served in the first slice whose
//!   FIFO look finds it expired, if not before. Levels: the round-robin lists
//!   come to level 7 once in 36 visits; the trees put a queue behind the
//!   others by at most 140 ms for each of them.
//!   No bound: the idle class while others are busy, and others beside real
//!   time (both are left out here). From 2.6.22 async requests wait as long as
//!   sync ones are at the device. From 3.0 a queue preempts an active one that
//!   is empty and not idled on, so that processes that seek can preempt each
//!   other for ever while a third waits. Where readers leave the device alone
//!   now and then, the bounds hold for everybody.

use crate::load::{pairs, version};
use crate::rig::{Rig, Setup};
use blklab_block::sq::{Fetch, Limits, Queue};
use blklab_engine::Stream;
use blklab_kernel::KernelVersion;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioKey, Completion, IoPrio, Op, PrioClass, Span, TaskId, Time};

/// Service time of every request.
const SERVICE: Span = Span::from_ms(2);

/// One process: what it keeps outstanding, and how long it thinks.
#[derive(Clone, Copy, Debug)]
struct Worker {
    op: Op,
    outstanding: u32,
    level: u8,
    think_us: u64,
}

const fn reader(level: u8, think_us: u64) -> Worker {
    Worker {
        op: Op::Read,
        outstanding: 1,
        level,
        think_us,
    }
}

const fn writer(level: u8) -> Worker {
    Worker {
        op: Op::Write,
        outstanding: 8,
        level,
        think_us: 0,
    }
}

/// Readers that leave the device alone most of the time.
const CALM: &[Worker] = &[
    reader(4, 20_000),
    reader(4, 35_000),
    writer(4),
    writer(4),
    writer(4),
    writer(4),
];

const EQUALS: &[Worker] = &[
    reader(4, 0),
    reader(4, 500),
    reader(4, 1500),
    reader(4, 3000),
    writer(4),
    writer(4),
];

const LEVELS: &[Worker] = &[
    reader(0, 0),
    reader(2, 500),
    reader(5, 1500),
    reader(7, 3000),
    writer(0),
    writer(7),
];

/// Longest wait that is permitted, reads and writes; none if there is no
/// bound.
fn bounds_ms(sched: &str, kernel: &str, workers: &[Worker]) -> [Option<u64>; 2] {
    let service_ms = SERVICE.0 / 1_000_000;
    match sched {
        // As many requests are ahead of a new one at most.
        "noop" => {
            let ahead: u32 = workers.iter().map(|w| w.outstanding).sum();
            [Some(u64::from(ahead + 4) * service_ms); 2]
        }
        "deadline" => {
            let batches = 3 * 16 * service_ms;
            [Some(500 + 4 * batches), Some(5000 + 16 * batches)]
        }
        "anticipatory" => {
            let batches = 500 + 125 + 50;
            [Some(125 + 4 * batches), Some(250 + 16 * batches)]
        }
        _ => cfq_bounds_ms(version(kernel), workers),
    }
}

/// Six queues, each with at most 180 + 8 ms and a round of 8 requests. The
/// FIFO look comes at the second slice if not at the first.
fn cfq_bounds_ms(v: KernelVersion, workers: &[Worker]) -> [Option<u64>; 2] {
    let slice = 180 + 8 + 8 * SERVICE.0 / 1_000_000;
    let one_level = workers.iter().all(|w| w.level == workers[0].level);
    let [reads, writes] = if one_level {
        [2 * 6 * slice, 6 * 6 * slice]
    } else {
        [36 * slice, 2 * 36 * slice]
    };
    let calm = workers
        .iter()
        .all(|w| w.op == Op::Write || w.think_us >= 20_000);
    [
        (calm || v < KernelVersion::new(3, 0)).then_some(reads),
        (calm || v < KernelVersion::v2_6(22)).then_some(writes),
    ]
}

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    inserted: Time,
    order: u64,
}

/// What came of a load.
struct Outcome {
    /// Longest waits: reads, writes.
    longest: [Span; 2],
    /// Requests that were handed over before older ones.
    overtakings: u64,
    completed: u64,
}

struct Loop {
    r: Rig,
    s: Stream,
    workers: Vec<(TaskId, Worker)>,
    /// Submissions to come: when, who.
    due: Vec<(Time, usize)>,
    /// When the device is done with its oldest request.
    busy_until: Time,
    /// By request slot.
    waiting: Vec<Option<Waiting>>,
    nr_inserted: u64,
    nr_handed_over: u64,
    outcome: Outcome,
}

impl Loop {
    fn new(
        kernel: &'static str,
        sched: &'static str,
        workers: &[Worker],
        (depth, fetch): (u32, Fetch),
    ) -> Loop {
        let setup = Setup {
            kernel,
            sched,
            limits: |l: &mut Limits| l.queue.max_segments = 1,
            ..Setup::default()
        };
        let mut r = setup.rig_with(|l| {
            l.queue_depth = depth;
            l.fetch = fetch;
        });
        let workers: Vec<_> = workers
            .iter()
            .map(|w| {
                let task = r.task();
                r.io_context(task).ioprio = IoPrio {
                    class: PrioClass::BestEffort,
                    level: w.level,
                };
                (task, *w)
            })
            .collect();
        let due = (0..workers.len())
            .flat_map(|i| (0..workers[i].1.outstanding).map(move |_| (Time::ZERO, i)))
            .collect();
        Loop {
            r,
            s: Stream::named(1, kernel),
            workers,
            due,
            busy_until: Time::MAX,
            waiting: Vec::new(),
            nr_inserted: 0,
            nr_handed_over: 0,
            outcome: Outcome {
                longest: [Span::ZERO; 2],
                overtakings: 0,
                completed: 0,
            },
        }
    }

    fn run(mut self, end: Time) -> Outcome {
        loop {
            let next = self.due.iter().map(|d| d.0).min();
            let next = next.unwrap_or(Time::MAX).min(self.busy_until);
            let now = self.r.agenda.now();
            // Timers may have more to say while nothing else happens.
            let next = next.min(now + Span::from_ms(5)).max(now);
            if next >= end {
                break;
            }
            self.r.until(next);
            self.look();
            if self.busy_until == next {
                self.complete();
            }
            while let Some(at) = self.due.iter().position(|d| d.0 <= next) {
                let (_, i) = self.due.remove(at);
                self.submit(i);
            }
        }
        for i in 0..self.waiting.len() {
            if let Some(w) = self.waiting[i] {
                let waited = end.since(w.inserted);
                let dir = self.r.core().rqs[blklab_block::RqId(i as u32)].data_dir();
                self.outcome.longest[dir] = self.outcome.longest[dir].max(waited);
            }
        }
        self.outcome
    }

    fn submit(&mut self, i: usize) {
        let (task, worker) = self.workers[i];
        let bio = Bio {
            op: worker.op,
            // Far from each other, so that nothing merges.
            sector: self.s.below(1 << 20) * 64,
            nr_sectors: 8,
            segments: 1,
            task,
            completion: Completion::Submitter(BioKey::new(i as u64)),
            ..Bio::default()
        };
        assert!(self.r.submit_bio(bio), "pools are large enough");
        self.r.enter(Queue::unplug);
        self.r.settle();
        self.look();
    }

    fn complete(&mut self) {
        let now = self.r.agenda.now();
        self.r.complete_first();
        self.r.settle();
        self.busy_until = if self.r.at_device.is_empty() {
            Time::MAX
        } else {
            now + SERVICE
        };
        for key in std::mem::take(&mut self.r.done) {
            let i = key as usize;
            let think = Span::from_us(self.workers[i].1.think_us);
            self.due.push((now + think, i));
            self.outcome.completed += 1;
        }
        self.look();
    }

    /// Takes note of insertions and hand-overs.
    fn look(&mut self) {
        let now = self.r.agenda.now();
        for record in self.r.truths() {
            let slot = record.request as usize;
            match record.kind {
                Kind::Insert => {
                    self.waiting.resize(self.waiting.len().max(slot + 1), None);
                    self.nr_inserted += 1;
                    self.waiting[slot] = Some(Waiting {
                        inserted: record.time,
                        order: self.nr_inserted,
                    });
                }
                Kind::HandOver => {
                    let w = self.waiting[slot].take().expect("it was inserted");
                    let (dir, waited) = (record.op.data_dir(), record.time.since(w.inserted));
                    self.outcome.longest[dir] = self.outcome.longest[dir].max(waited);
                    self.nr_handed_over += 1;
                    self.outcome.overtakings += u64::from(w.order != self.nr_handed_over);
                }
                _ => {}
            }
        }
        if self.busy_until == Time::MAX && !self.r.at_device.is_empty() {
            self.busy_until = now + SERVICE;
        }
    }
}

/// Depths and kinds of drivers.
const DEVICES: [(u32, Fetch); 3] = [
    (1, Fetch::CheckThenPeek),
    (1, Fetch::PeekThenCheck),
    (4, Fetch::PeekThenCheck),
];

fn check_bounds(workers: &[Worker]) {
    for (sched, kernel) in pairs() {
        let bounds = bounds_ms(sched.name, kernel, workers);
        // Long enough for a wait to become too long.
        let longest_ms = bounds.into_iter().flatten().max().unwrap_or(0);
        let run_ms = longest_ms + 2000;
        for device in DEVICES {
            let end = Time::ZERO + Span::from_ms(run_ms);
            let outcome = Loop::new(kernel, sched.name, workers, device).run(end);
            let what = format!("{} {kernel} {device:?}", sched.name);
            for (longest, bound) in outcome.longest.into_iter().zip(bounds) {
                let bound = bound.map_or(Span(u64::MAX), Span::from_ms);
                assert!(longest <= bound, "{what}: {longest:?} > {bound:?}");
            }
            // The device is never idle for most of the time.
            let least = run_ms * 1_000_000 / SERVICE.0 / 4;
            assert!(outcome.completed > least, "{what}: {}", outcome.completed);
            if sched.name == "noop" {
                assert_eq!(outcome.overtakings, 0, "{what}");
            }
        }
    }
}

#[test]
fn nobody_starves_among_equals() {
    check_bounds(EQUALS);
}

#[test]
fn nobody_starves_behind_better_levels() {
    check_bounds(LEVELS);
}

#[test]
fn nobody_starves_beside_calm_readers() {
    check_bounds(CALM);
}
