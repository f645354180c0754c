// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kyber: tokens per kind of request, scaled by measured latencies.
//!
//! Source: block/kyber-iosched.c of 5.10 to 7.3. Requests are of four domains:
//! reads, writes, discards, others. Each hardware queue serves the domains in
//! turn, in batches, oldest first. A request at the device holds a token of its
//! domain; ten times a second the number of tokens is scaled by the latencies
//! of reads, writes and discards against their targets. Bios merge only in the
//! list of their CPU.

mod dispatch;
mod domain;
mod features;
mod latency;
mod queues;
mod tokens;

#[cfg(test)]
mod tests;

use crate::{Build, Make, ProcessorTime, Scheduler, async_depth};
use blklab_block::mq::{Core, Elevator, TagRules};
use blklab_block::{Cx, List, RqId};
use blklab_engine::TimerId;
use blklab_kernel::{KernelVersion, Tunable, Unit};
use blklab_types::{Bio, BioFlags, IdVec, Jiffies};
use domain::{DOMAINS, MAX_DEPTH, domain_of};
use features::Features;
use latency::{Kind, Latencies};
use queues::Queues;
use tokens::Tokens;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "kyber",
    summary: "tokens for reads, writes and discards, scaled to meet latency targets",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: TUNABLES,
    changes: &[features::CHANGES],
    processor_time: ProcessorTime::KYBER,
    make: Make::Mq(|b: &mut Build<'_>| {
        let targets = ["read_lat_nsec", "write_lat_nsec"];
        let set = Settings {
            targets_ns: targets.map(|name| b.tunables.get(name).unsigned_abs()),
            async_depth: async_depth::written(b),
        };
        let timer = b.timers.register("kyber_timer");
        Box::new(Kyber::new(Features::of(b.version), set, timer))
    }),
};

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "read_lat_nsec",
        unit: Unit::Ns,
        default: 2_000_000,
        range: (0, i64::MAX),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "latency aimed at for reads",
    },
    Tunable {
        name: "write_lat_nsec",
        unit: Unit::Ns,
        default: 10_000_000,
        range: (0, i64::MAX),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "latency aimed at for writes",
    },
    async_depth::THREE_QUARTERS,
];

/// Percent of the scheduler tags that async requests may take.
const ASYNC_PERCENT: u32 = 75;

/// What was set.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    /// Targets of reads and writes.
    targets_ns: [u64; 2],
    /// If written.
    async_depth: Option<u32>,
}

/// The scheduler's state.
#[derive(Debug)]
struct Kyber {
    feat: Features,
    /// `queue/async_depth` if written.
    written_depth: Option<u32>,
    queues: Queues,
    /// By domain, once the number of CPUs is known.
    tokens: Vec<Tokens>,
    latencies: Latencies,
    timer: TimerId,
    /// Tokens that requests hold.
    held: IdVec<RqId, Option<u16>>,
}

impl Kyber {
    fn new(feat: Features, set: Settings, timer: TimerId) -> Kyber {
        Kyber {
            feat,
            written_depth: set.async_depth,
            queues: Queues::default(),
            tokens: Vec::with_capacity(DOMAINS),
            latencies: Latencies::new(set.targets_ns),
            timer,
            held: IdVec::default(),
        }
    }

    /// `kyber_depth_updated`.
    fn async_depth(&self, q: &Core) -> u32 {
        if self.feat.limit_is_of_queue {
            return async_depth::of_queue(q, self.written_depth, Kyber::share);
        }
        let all = if q.shallow_depth_is_total() {
            q.told_nr_requests()
        } else {
            q.tags_per_word()
        };
        Kyber::share(all)
    }

    /// Of so many tags those that async requests may take.
    fn share(all: u32) -> u32 {
        all * ASYNC_PERCENT / 100
    }

    /// Whether a bio's request is limited.
    fn limits(&self, bio: &Bio) -> bool {
        if self.feat.limit_is_of_queue {
            return async_depth::limits(bio);
        }
        !bio.is_sync() && !bio.flags.any(BioFlags::FLUSH | BioFlags::FUA)
    }

    /// Gives a request's token back (`rq_clear_domain_token`).
    fn release(&mut self, q: &mut Core, rq: RqId) {
        if let Some(token) = self.held[rq].take() {
            let (d, cpu) = (domain_of(q.rqs[rq].op), q.rqs[rq].cpu);
            self.tokens[d].release(token, cpu, |hctx| q.run_hctx(hctx));
        }
    }
}

impl Elevator for Kyber {
    fn name(&self) -> &'static str {
        "kyber"
    }

    fn limit_depth(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        // Three quarters of one tag are no limit.
        let depth = self.async_depth(q);
        (self.limits(bio) && depth > 0).then_some(depth)
    }

    fn min_shallow_depth(&self, q: &Core) -> Option<u32> {
        Some(self.async_depth(q))
    }

    fn depth_updated(&mut self, q: &Core) {
        if self.tokens.is_empty() {
            let (cpus, hctxs) = (q.limits.nr_cpus, q.limits.nr_hw_queues);
            let rules = TagRules::new(&q.feat);
            let tokens = MAX_DEPTH.map(|n| Tokens::new(n, cpus, hctxs, rules));
            self.tokens.extend(tokens);
        }
    }

    fn prepare(&mut self, _: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        *self.held.entry(rq) = None;
    }

    fn merges_by_hash(&self) -> bool {
        false
    }

    fn add(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, at_head: bool) {
        self.queues.insert(q, rq, at_head);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, hctx: u16) -> Option<RqId> {
        self.next_request(q, cx, hctx)
    }

    fn has_work(&self, _: &Core, hctx: u16) -> bool {
        self.queues.has_work(hctx)
    }

    fn software_list(&self, ctx: u16, bio: &Bio) -> Option<List> {
        self.queues.software_list(ctx, domain_of(bio.op))
    }

    fn check_conservation(&self) {
        assert!(self.queues.is_empty(), "a request is gone that waits");
        let busy = self.tokens.iter().map(Tokens::busy);
        assert_eq!(busy.sum::<u32>(), 0, "a token is lost");
    }

    fn requeued(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        self.release(q, rq);
    }

    fn completed(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let r = &q.rqs[rq];
        let d = domain_of(r.op);
        if d >= domain::MEASURED {
            return;
        }
        let total = cx.now.since(r.allocated);
        let io = cx.now.since(r.handed_over);
        self.latencies.sample(d, Kind::Total, total);
        self.latencies.sample(d, Kind::Io, io);
        if !cx.timers.is_pending(self.timer) {
            cx.timers
                .arm(self.timer, cx.jiffies.plus(u64::from(q.hz.0 / 10)));
        }
    }

    fn finished(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        self.release(q, rq);
    }

    fn timer(&mut self, q: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        if timer != self.timer {
            return false;
        }
        self.scale(cx.jiffies, u64::from(q.hz.0));
        true
    }

    fn is_single_queue(&self) -> bool {
        false
    }
}

impl Kyber {
    /// Ten times a second: token counts follow the latencies (`kyber_timer_fn`).
    fn scale(&mut self, now: Jiffies, hz: u64) {
        let mut depths = MAX_DEPTH;
        for (depth, tokens) in depths.iter_mut().zip(&self.tokens) {
            *depth = tokens.depth();
        }
        let scaled = self.latencies.scale(depths, now, hz);
        for (tokens, depth) in self.tokens.iter_mut().zip(scaled) {
            tokens.resize(depth);
        }
    }
}
