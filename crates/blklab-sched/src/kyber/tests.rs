// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vector that needs another token count than the default.

use super::domain::WRITE;
use super::{Features as KyberFeatures, Kyber, Settings, Tokens};
use blklab_block::mq::{Core, Elevator, Features, Limits, TagRules};
use blklab_block::{Cx, QueueNo, RqId, Running, TaskTable};
use blklab_engine::Timers;
use blklab_kernel::KernelVersion;
use blklab_trace::{NullSink, Tracer};
use blklab_types::{Bio, BioFlags, Dev, Hz, IoPrio, Jiffies, Op, Time};

/// A scheduler on its own: no queue, no clock.
struct Bare {
    kyber: Kyber,
    core: Core,
    timers: Timers,
    tasks: TaskTable,
}

impl Bare {
    fn new() -> Bare {
        let hz = Hz(1000);
        let mut timers = Timers::new(hz);
        let timer = timers.register("kyber_timer");
        let mut tasks = TaskTable::default();
        tasks.add(100, IoPrio::default());
        let kernel = KernelVersion::new(6, 12);
        let feat = Features::of(kernel);
        let core = Core::new(Dev::default(), feat, Limits::default(), true, hz);
        let set = Settings {
            targets_ns: [2_000_000, 10_000_000],
            async_depth: None,
        };
        let mut kyber = Kyber::new(KyberFeatures::of(kernel), set, timer);
        kyber.depth_updated(&core);
        Bare {
            kyber,
            core,
            timers,
            tasks,
        }
    }

    fn enter<R>(&mut self, f: impl FnOnce(&mut Kyber, &mut Core, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx {
            queue: QueueNo::FIRST,
            now: Time::ZERO,
            jiffies: Jiffies(0),
            running: Running::INTERRUPT,
            timers: &mut self.timers,
            tasks: &mut self.tasks,
            trace: &mut Tracer::new(Box::new(NullSink)),
            truth: None,
            effects: &mut Vec::new(),
        };
        f(&mut self.kyber, &mut self.core, &mut cx)
    }

    fn insert(&mut self, op: Op) -> RqId {
        self.enter(|kyber, core, cx| {
            let bio = Bio {
                op,
                ..Bio::default()
            };
            let rq = core.rqs.alloc(op, BioFlags::NONE, bio.task, cx.jiffies);
            core.rqs.fill(rq, &blklab_block::Pending::new(bio, cx.now));
            kyber.prepare(core, cx, rq);
            kyber.add(core, cx, rq, false);
            rq
        })
    }

    fn dispatch(&mut self) -> Option<RqId> {
        self.enter(|kyber, core, cx| kyber.dispatch(core, cx, 0))
    }

    fn finish(&mut self, rq: RqId) {
        self.enter(|kyber, core, cx| {
            kyber.completed(core, cx, rq);
            kyber.finished(core, cx, rq);
        });
    }
}

/// K9: one write at a time beside free slots; and a requeued write takes a
/// token anew.
#[test]
fn tokens_bound_what_is_at_the_device() {
    let mut b = Bare::new();
    b.kyber.tokens[WRITE].resize(1);
    let reads = [Op::Read; 2].map(|op| b.insert(op));
    let writes = [Op::Write; 4].map(|op| b.insert(op));
    for rq in [reads[0], reads[1], writes[0]] {
        assert_eq!(b.dispatch(), Some(rq));
    }
    assert_eq!(b.dispatch(), None);
    assert!(b.kyber.has_work(&b.core, 0));
    for rq in reads {
        b.finish(rq);
        assert_eq!(b.dispatch(), None);
    }
    for pair in writes.windows(2) {
        b.finish(pair[0]);
        assert_eq!(b.dispatch(), Some(pair[1]));
        assert_eq!(b.dispatch(), None);
    }
    b.finish(writes[3]);
    assert!(!b.kyber.has_work(&b.core, 0));

    let writes = [Op::Write; 2].map(|op| b.insert(op));
    assert_eq!(b.dispatch(), Some(writes[0]));
    b.enter(|kyber, core, cx| {
        kyber.requeued(core, cx, writes[0]);
        kyber.add(core, cx, writes[0], true);
    });
    assert_eq!(b.dispatch(), Some(writes[1]), "moved out before");
    b.finish(writes[1]);
    assert_eq!(b.dispatch(), Some(writes[0]));
}

/// With fewer tokens than are out, one is free as soon as its number is.
#[test]
fn numbers_above_the_depth_are_not_given_out() {
    let mut t = tokens(16);
    let held: Vec<u16> = (0..16).map(|_| t.take(0, 0).expect("a token")).collect();
    assert_eq!(held, (0..16).collect::<Vec<u16>>());
    t.resize(2);
    t.release(9, 0, |_| {});
    assert_eq!(t.take(0, 0), None);
    t.release(1, 0, |_| {});
    assert_eq!(t.take(0, 0), Some(1));
}

/// After every eighth of the tokens freed one wait queue is woken.
#[test]
fn hardware_queues_are_woken_in_batches() {
    let mut t = tokens(64);
    let held: Vec<u16> = (0..64).map(|_| t.take(0, 0).expect("a token")).collect();
    let freed = |t: &mut Tokens, range: std::ops::Range<usize>| {
        let mut woken = Vec::new();
        for (i, &n) in held[range].iter().enumerate() {
            t.release(n, 0, |hctx| woken.push((i, hctx)));
        }
        woken
    };
    assert_eq!(t.take(1, 0), None);
    assert_eq!(t.take(1, 0), None, "waits once");
    assert_eq!(freed(&mut t, 0..16), [(7, 1)]);
    // The others now wait in turn: each on the first wait queue, 1 on its second.
    while t.take(0, 0).is_some() {}
    for hctx in [1, 2] {
        assert_eq!(t.take(hctx, 0), None);
    }
    let woken = freed(&mut t, 16..48);
    assert_eq!(woken.iter().map(|w| w.0).collect::<Vec<_>>()[0], 7);
    let mut hctxs: Vec<u16> = woken.iter().map(|w| w.1).collect();
    hctxs.sort_unstable();
    assert_eq!(hctxs, [0, 1, 2]);
}

fn tokens(depth: u32) -> Tokens {
    let feat = Features::of(KernelVersion::new(6, 12));
    Tokens::new(depth, 1, 3, TagRules::new(&feat))
}
