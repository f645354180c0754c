// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver gives requests back: it or its device has no room for them.
//!
//! A driver that cannot take a request returns it (`BLK_STS_RESOURCE`,
//! `BLK_STS_DEV_RESOURCE`; before blk-mq `blk_requeue_request`). It goes again when one of
//! the device's requests ends, and where it has none, when the queue is run again: after
//! 3 ms in blk-mq (`BLK_MQ_RESOURCE_DELAY`, include/linux/blk-mq.h).

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::{Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text};
use blklab_trace::Action;
use blklab_types::{Dev, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "requeued",
    what: "the driver gives requests back, and they wait until they go to it again",
    rule: Rule {
        condition: "a request is requeued (R after D)",
        threshold: "its last D is 1 ms or more behind its first R; 20 % of its process's waiting \
                    or more",
        exception: "",
    },
    explains: &["held-back", "idling", "deep-queue", "behind-other"],
    remedies: &[TRUE_DEPTH, READ_LOGS],
    rests_on_absence: false,
    detector: || Box::new(Requeued::default()),
};

const TRUE_DEPTH: Remedy = Remedy::outside(
    "true-queue-depth",
    Outside::Device,
    "a device/queue_depth, or can_queue of the host, that the device really takes",
);

const READ_LOGS: Remedy = Remedy::outside(
    "read-logs",
    Outside::Nowhere,
    "look at the kernel's log for resets, busy states and lack of memory",
);

/// Less than this is what it takes to run a queue again.
const AGAIN_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Requeued {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    requeues: u64,
    /// Of the delay, how long the device had nothing to do.
    idle_ns: u64,
}

impl Detector for Requeued {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if disk.has(Action::Requeue) {
                self.disk(section, disk);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// When a request was given back for the first time.
fn given_back(back: &BTreeMap<u64, Vec<Time>>, r: &Request) -> Option<Time> {
    let times = back.get(&r.life.sector)?;
    let first = times.get(times.partition_point(|t| Some(*t) < r.start()))?;
    (Some(*first) <= r.life.issue).then_some(*first)
}

impl Requeued {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        if !disk.has(Action::Requeue) {
            return;
        }
        let mut back: BTreeMap<u64, Vec<Time>> = BTreeMap::new();
        let of_dev = |a| move |e: &&blklab_trace::Event| e.dev == disk.dev && e.action == a;
        for e in section.events().iter().filter(of_dev(Action::Requeue)) {
            back.entry(e.sector).or_default().push(e.time);
        }
        back.values_mut().for_each(|times| times.sort_unstable());
        for r in disk.issued().iter().filter(|r| r.life.nr_requeues > 0) {
            let (Some(from), Some(to)) = (given_back(&back, r), r.life.issue) else {
                continue;
            };
            let ns = to.since(from).0;
            if ns < AGAIN_NS || !r.is_sync {
                continue;
            }
            let sum = self.disks.entry(disk.dev).or_default();
            sum.requeues += u64::from(r.life.nr_requeues);
            sum.idle_ns = sum.idle_ns.saturating_add(disk.idle_within(from, to));
            sum.harm.add(r.pid, ns, || {
                let mut evidence = section.of_request(r);
                let sectors = [r.life.sector, r.end()];
                for action in [Action::Issue, Action::Requeue] {
                    evidence.extend(section.find(action, disk.dev, from, sectors));
                }
                in_order(&mut evidence);
                Instance {
                    time: from,
                    delay_ns: Some(ns),
                    evidence,
                }
            });
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let (all, requeues) = (self.harm.count().max(1), self.requeues);
        let was_idle = self.idle_ns > self.harm.total_ns() / 2;
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.what = format!(
            "The driver gives requests of {} back (R), {:.1} times each: they wait {} on average \
             until they go to it for good.",
            f.victim_names(),
            requeues as f64 / all as f64,
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        f.how = if was_idle {
            "The device has nothing to do meanwhile, so that no completion runs the queue again: \
             blk-mq does after 3 ms."
        } else {
            "It or its device had no room for them."
        }
        .to_owned();
        f.cause = Some("the driver, or the device behind it, that was busy".to_owned());
        f.missing
            .push("why it refuses: the kernel's log, the driver's own limits".to_owned());
        f.remedies = vec![TRUE_DEPTH, READ_LOGS];
        f.figures = vec![("requeues", requeues as f64, "")];
        Some(f)
    }
}
