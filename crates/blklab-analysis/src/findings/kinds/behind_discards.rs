// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O that waits while the device discards.
//!
//! Many devices do nothing else while they work on a discard, or hold back what comes after it
//! (a queued TRIM does not exist on most SATA devices: the queue drains first), and a discard of
//! gigabytes takes them milliseconds to seconds. `fstrim` and the mount option `discard` send
//! them beside other I/O.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, is_longer, is_most};
use crate::findings::waits::LONG_FACTOR;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, counted, time_text,
};
use crate::spread::percentile;
use blklab_trace::Rwbs;
use blklab_types::{Dev, Op};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "behind-discards",
    what: "I/O waits while the device discards",
    rule: Rule {
        condition: "a request that a process waits for waits in the queue and at the device, and \
                    for most of that the device has a discard",
        threshold: "more than 4 times what the device takes for one; 20 % of its process's \
                    waiting or more",
        exception: "8 or more come while the device has no discard, and not half of those take \
                    less than a quarter as long",
    },
    explains: &[
        "behind-other",
        "deep-queue",
        "device-slow",
        "overtaken",
        "reads-behind-writes",
    ],
    remedies: &[DISCARD_LATER, SMALLER_DISCARDS],
    rests_on_absence: false,
    detector: || Box::new(BehindDiscards::default()),
};

const DISCARD_LATER: Remedy = Remedy::outside(
    "discard-later",
    Outside::Storage,
    "fstrim when no process waits, in place of the mount option discard",
);

const SMALLER_DISCARDS: Remedy = Remedy::act(
    "smaller-discards",
    Act::SmallerDiscards,
    "a smaller queue/discard_max_bytes, so that other I/O comes between",
);

/// So many requests beside no discard tell what they take then.
const APART_MIN: usize = 8;

/// Requests beside no discard of which the times are kept.
const APART_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
struct BehindDiscards {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// What requests take from their hand-over to their end while the device has no discard.
    apart_ns: Vec<u64>,
    discards: u64,
    sectors: u64,
    discarding_ns: u64,
    in_device_ns: u64,
}

fn discards(r: &Request) -> bool {
    r.op() == Some(Op::Discard)
}

impl Detector for BehindDiscards {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if disk.shown.flags.has(Rwbs::DISCARD) {
                self.disks.entry(disk.dev).or_default().disk(section, disk);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let discarding = disk.commands_of(discards);
        if discarding.is_empty() {
            return;
        }
        for r in disk.issued().iter().filter(|r| discards(r)) {
            let Some(d2c) = r.d2c() else { continue };
            self.discards += 1;
            self.sectors += r.end() - r.life.sector;
            add(&mut self.discarding_ns, d2c);
        }
        for (r, w) in disk.waited_for().filter(|(r, _)| !discards(r)) {
            let (Some(from), Some(to)) = (r.handed_over().or(r.start()), r.life.complete) else {
                continue;
            };
            let beside_ns = discarding.within(from, to);
            if beside_ns == 0 {
                if self.apart_ns.len() < APART_MAX {
                    self.apart_ns.push(to.since(from).0);
                }
                continue;
            }
            let alone_ns = disk.service.alone(r.op()).unwrap_or(0);
            let waited_ns = w.ahead_ns.saturating_add(w.behind_ns);
            if !is_longer(waited_ns, LONG_FACTOR, alone_ns.max(1)) || !is_most(beside_ns, waited_ns)
            {
                continue;
            }
            let ns = beside_ns.min(waited_ns);
            add(&mut self.in_device_ns, w.behind_ns.min(ns));
            let last = disk.in_flight_at(r.life.issue.unwrap_or(from));
            let before = disk.in_flight_at(from).chain(last);
            let discard = before.map(|i| &disk.requests[i]).find(|r| discards(r));
            let since = || disk.issued_between(from, to).map(|i| &disk.requests[i]);
            let discard = discard.or_else(|| since().find(|r| discards(r)));
            if let Some(discard) = discard.filter(|d| d.is_owner_known) {
                self.harm.blame(discard.pid, 1);
            }
            self.harm.add(r.pid, ns, || {
                let mut evidence = section.of_request(r);
                evidence.extend(discard.into_iter().flat_map(|d| section.of_request(d)));
                in_order(&mut evidence);
                Instance {
                    time: from,
                    delay_ns: Some(ns),
                    evidence,
                }
            });
        }
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let nr_apart = self.apart_ns.len();
        let apart_ns = percentile(50, std::mem::take(&mut self.apart_ns));
        let mean_ns = self.harm.total_ns() / self.harm.count().max(1);
        let apart_ns = apart_ns.filter(|_| nr_apart >= APART_MIN);
        if apart_ns.is_some_and(|ns| !is_longer(mean_ns, LONG_FACTOR, ns)) {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.what = format!(
            "{} wait{} while the device discards what {} asked for: {} on average.",
            f.victim_names(),
            f.verb_end(),
            f.cause_names(),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        let nr = self.discards.max(1);
        let place = if is_most(self.in_device_ns, self.harm.total_ns()) {
            "The device has both, and works on the discard first"
        } else {
            "They are not handed to the device until the discard is done"
        };
        f.how = format!(
            "{place}: {} of {:.1} MiB each on average, {} each.",
            counted(self.discards, "discards"),
            self.sectors as f64 / 2048.0 / nr as f64,
            time_text(self.discarding_ns / nr)
        );
        match apart_ns {
            Some(ns) => {
                f.how += &format!(" Without one beside it a request takes {}.", time_text(ns));
            }
            None => f.doubt(
                Confidence::Likely,
                "requests while nothing is discarded: how long they take then",
            ),
        }
        f.remedies = vec![DISCARD_LATER, SMALLER_DISCARDS];
        Some(f)
    }
}
