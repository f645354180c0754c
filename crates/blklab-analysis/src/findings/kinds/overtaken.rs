// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request stays in the scheduler while others of its own direction that came later go
//! to the device, far beyond what an order by sector or by process is good for.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{is_longer, is_most};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use crate::spread::percentile;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "overtaken",
    what: "a request waits in the scheduler while many of its own direction that came later go \
           first",
    rule: Rule {
        condition: "a request that a process waits for waits from I to D while others that were \
                    inserted later go to the device first",
        threshold: "100 ms or more, and 10 times what half of those of its direction wait; 64 or \
                    more of its direction, 9 of 10 of all that go first",
        exception: "the scheduler is cfq or bfq, whose order is by process",
    },
    explains: &["behind-other"],
    remedies: &[
        READ_EXPIRY,
        SHORTER_BATCHES,
        FEWER,
        WRITE_EXPIRY,
        NO_ANTICIPATION,
    ],
    rests_on_absence: false,
    detector: || Box::new(Overtaken::default()),
};

const READ_EXPIRY: Remedy = Remedy::set(
    "shorter-read-expiry",
    "queue/iosched/read_expire",
    "100",
    "what is older goes first, at the next batch",
);

const SHORTER_BATCHES: Remedy = Remedy::set(
    "shorter-batches",
    "queue/iosched/fifo_batch",
    "",
    "shorter batches, so that expiry is looked at more often",
);

const NO_ANTICIPATION: Remedy = Remedy::set(
    "no-anticipation",
    "queue/iosched/antic_expire",
    "0",
    "it waits for no process then, and seeks more",
);

const FEWER: Remedy = Remedy::act(
    "fewer-at-a-time",
    Act::Fewer,
    "fewer requests at a time in the process that overtakes",
);

const WRITE_EXPIRY: Remedy = Remedy::set(
    "shorter-write-expiry",
    "queue/iosched/write_expire",
    "100",
    "what is older goes first, at the next batch",
);

/// Who waits for less than this is not starved.
const WAIT_NS: u64 = 100_000_000;

/// How many times what others wait is beyond reason.
const FACTOR: u64 = 10;

/// Requests that overtake one.
const OVERTAKERS_MIN: u64 = 64;

/// Of those that go first, the part that came later, in per cent.
const LATER_PERCENT: u64 = 90;

#[derive(Debug, Default)]
struct Overtaken {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    overtakers: u64,
    /// Of those that were overtaken, the ones that read.
    reads: u64,
    median_ns: u64,
}

impl Detector for Overtaken {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            if matches!(disk.scheduler(context), Some("cfq" | "bfq")) {
                continue;
            }
            for is_read in [true, false] {
                self.direction(section, disk, is_read);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// From I to D.
fn i2d(r: &Request) -> Option<u64> {
    Some(r.life.issue?.since(r.life.insert?).0)
}

impl Overtaken {
    fn direction(&mut self, section: &Section, disk: &Disk, is_read: bool) {
        let is_own = |r: &Request| r.is_read() == is_read && (r.is_read() || r.is_write());
        let waits: Vec<u64> = disk
            .issued()
            .iter()
            .filter(|r| is_own(r))
            .filter_map(i2d)
            .collect();
        if !waits.iter().any(|ns| *ns >= WAIT_NS) {
            return;
        }
        let Some(median_ns) = percentile(50, waits) else {
            return;
        };
        let is_long = |ns: u64| ns >= WAIT_NS && is_longer(ns, FACTOR, median_ns);
        let victims = disk.issued().iter().filter(|r| r.is_sync && is_own(r));
        for r in victims {
            let Some(ns) = i2d(r).filter(|ns| is_long(*ns)) else {
                continue;
            };
            let (Some(insert), Some(issue)) = (r.life.insert, r.life.issue) else {
                continue;
            };
            let first = disk.issued_between(insert, issue);
            let (mut all, mut later) = (0, 0);
            let mut last = None;
            let mut by: BTreeMap<Pid, u64> = BTreeMap::new();
            for other in first.map(|i| &disk.requests[i]) {
                all += 1;
                if is_own(other) && other.life.insert > Some(insert) {
                    later += 1;
                    *by.entry(other.pid).or_default() += 1;
                    last = Some(other);
                }
            }
            if later < OVERTAKERS_MIN || later * 100 < all * LATER_PERCENT {
                continue;
            }
            let sum = self.disks.entry(disk.dev).or_default();
            sum.overtakers += later;
            sum.reads += u64::from(is_read);
            sum.median_ns = sum.median_ns.max(median_ns);
            for (pid, n) in by {
                sum.harm.blame(pid, n);
            }
            sum.harm.add(r.pid, ns, || {
                let mut evidence = section.of_request(r);
                evidence.extend(last.iter().flat_map(|other| section.of_request(other)));
                in_order(&mut evidence);
                Instance {
                    time: insert,
                    delay_ns: Some(ns),
                    evidence,
                }
            });
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let are_reads = is_most(self.reads, self.harm.count());
        let each = self.overtakers / self.harm.count().max(1);
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.what = format!(
            "{} wait{} {} on average in the scheduler while about {each} requests of the same \
             direction that came later go first, from {}; half of all wait less than {}.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            f.cause_names(),
            time_text(self.median_ns)
        );
        let name = whole.scheduler(dev);
        f.how = match name {
            Some(name @ ("deadline" | "mq-deadline")) => format!(
                "{name} goes on upwards from sector to sector; it turns back for a request that \
                 is older than its expiry only between batches."
            ),
            Some("anticipatory") => "anticipatory waits for the next read of a process that has \
                                     just read and goes on with it for up to read_batch_expire; \
                                     who thinks between its reads is not waited for."
                .to_owned(),
            _ => "The order in which requests are chosen has no bound on how often one is passed \
                  over, or a far one."
                .to_owned(),
        };
        match name {
            Some("deadline" | "mq-deadline") => {
                f.remedies
                    .push(if are_reads { READ_EXPIRY } else { WRITE_EXPIRY });
                f.remedies.push(SHORTER_BATCHES.to(16));
            }
            Some("anticipatory") => f.remedies.push(NO_ANTICIPATION),
            Some(_) => {}
            None => f.doubt(
                Confidence::Possible,
                "which scheduler it is: under cfq and bfq the other process has its slice",
            ),
        }
        f.remedies.push(FEWER);
        f.figures = vec![("requests that went first, each", each as f64, "")];
        Some(f)
    }
}
