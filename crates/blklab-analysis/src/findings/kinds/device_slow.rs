// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that the device takes long for by itself: nobody else's are there to
//! explain it. If all of them take the same time, something below limits the rate.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, LONG_NS, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::sums::{is_longer, is_most};
use crate::findings::waits::{LONG_FACTOR, Reason};
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted, time_text,
};
use crate::spread::percentile;
use blklab_trace::Rwbs;
use blklab_types::{Dev, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const SLOW: Kind = Kind {
    name: "device-slow",
    what: "the device takes long for single requests, by itself",
    rule: Rule {
        condition: "a request that a process waits for takes longer from D to C than if the device \
                    served all that it has one after the other",
        threshold: "more than 4 times that, 10 ms or more, and 4 times what 9 of 10 requests do \
                    not exceed, or 100 ms or more and 20 times what half of them do not exceed; \
                    20 requests or more are shown, or 4 or more of which it takes 20 times what \
                    half of them do not exceed; of fewer, one that the device has for itself for \
                    30 ms or more (a seek and a revolution of a disk) and 20 times the shortest, \
                    or the only one; 20 % of its process's waiting or more",
        exception: "it takes less than 30 ms, and the device is known to rotate",
    },
    explains: &["behind-other", "deep-queue"],
    remedies: &[FEWER_COMMANDS, READ_LOGS, FREE_SPACE],
    rests_on_absence: false,
    detector: || Box::new(Slow::new(false)),
};

/// The row of [`super::ALL`].
pub const CAPPED: Kind = Kind {
    name: "rate-capped",
    what: "all slow requests take the same time: something below the kernel limits the rate",
    rule: Rule {
        condition: "requests take longer from D to C than the fastest, times the requests that \
                    the device has, and all of them about the same; if they are all reads or all \
                    writes, the fastest of these",
        threshold: "5 requests or more, a quarter of all; more than 4 times as long; 9 of 10 of \
                    them within 2 % of their median",
        exception: "most of them go on where another ended, they take less than 30 ms (a seek and \
                    a revolution of a disk), and the device is known to rotate",
    },
    explains: &[
        "device-slow",
        "deep-queue",
        "behind-other",
        "reads-behind-writes",
        "writes-starved",
    ],
    remedies: &[LARGER_LIMIT, FEWER_OR_LARGER],
    rests_on_absence: false,
    detector: || Box::new(Slow::new(true)),
};

const LARGER_LIMIT: Remedy = Remedy::outside(
    "larger-limit",
    Outside::Device,
    "a larger limit of the disk (IOPS, bandwidth, instance size)",
);

const FEWER_OR_LARGER: Remedy = Remedy::outside(
    "fewer-or-larger",
    Outside::Applications,
    "fewer or larger I/Os, so that the limit is not reached",
);

const FEWER_COMMANDS: Remedy = Remedy::act(
    "fewer-commands",
    Act::FewerCommands,
    "a smaller queue depth of the device, so that the scheduler chooses",
);

const READ_LOGS: Remedy = Remedy::outside(
    "read-logs",
    Outside::Nowhere,
    "look at the device's health and the kernel's log",
);

const FREE_SPACE: Remedy = Remedy::outside(
    "free-space",
    Outside::Device,
    "free space and discards on flash, so that it has less to clean up",
);

/// A single request that takes less is not worth a word.
const SLOW_NS: u64 = 10_000_000;

/// Requests so many, so that 9 of 10 of them mean something.
const REQUESTS_MIN: usize = 20;

/// Of fewer, so many at least, and so far beyond half of them.
const FEW_MIN: usize = 4;
const FEW_FACTOR: u64 = 20;

/// One alone is long if it takes more than any seek and revolution of a disk.
const SINGLE_NS: u64 = 30_000_000;

/// Seen once among fewer than this, it may be an accident, or nothing unusual.
const TIMES_MIN: u64 = 2;
const ONCE_AMONG: u64 = 100;

/// So many others that came later end before one that the device passes over.
const PASSED_MIN: u64 = 8;

/// As many as lie within [`NARROW`] of the median.
const NARROW_SHARE: f64 = 0.9;

/// So near to the median.
const NARROW: f64 = 0.02;

/// So many, and this part of all.
const CAPPED_MIN: usize = 5;
const CAPPED_SHARE: f64 = 0.25;

#[derive(Debug)]
struct Slow {
    capped: bool,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    when: Vec<Time>,
    d2c: Vec<u64>,
    reads: u64,
    /// Those that begin where another one ended.
    in_streams: u64,
    all: u64,
    /// Whether so many are shown that it is known how often it is.
    are_many: bool,
    /// Others that went to the device later than one of them and ended before it.
    passed_by: u64,
    /// Of how many of them the driver's own events are there.
    nr_timed: u64,
    /// How many of those the driver had for most of the time.
    nr_in_driver: u64,
}

impl Slow {
    fn new(capped: bool) -> Slow {
        Slow {
            capped,
            disks: BTreeMap::new(),
        }
    }
}

impl Detector for Slow {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            let ended = disk
                .issued()
                .iter()
                .filter(|r| r.life.complete.is_some())
                .count();
            let sum = self.disks.entry(disk.dev).or_default();
            sum.all += ended as u64;
            let limited = capped(disk, ended);
            if self.capped && !limited.is_empty() {
                let ends: BTreeSet<u64> = disk.issued().iter().map(Request::end).collect();
                for i in limited {
                    let (r, took) = (&disk.requests[i], disk.requests[i].d2c().unwrap_or(0));
                    sum.in_streams += u64::from(ends.contains(&r.life.sector));
                    sum.d2c.push(took);
                    sum.reads += u64::from(r.is_read());
                    sum.harm
                        .add(r.pid, took, || section.instance(r, Some(took)));
                }
                continue;
            }
            if self.capped {
                continue;
            }
            if ended < FEW_MIN {
                sum.single(section, disk);
                continue;
            }
            if !limited.is_empty() {
                continue;
            }
            let are_few = ended < REQUESTS_MIN;
            let by_itself = disk.long_waits_for().filter(|(r, w)| {
                let mut reasons = w.behind_others(r);
                r.life.bytes > 0 && reasons.any(|(why, ..)| why == Reason::Device)
            });
            let all = disk.issued().iter().filter(|r| r.life.bytes > 0);
            let all: Vec<u64> = all.filter_map(Request::d2c).collect();
            let beyond_half = percentile(50, all).unwrap_or(0).saturating_mul(FEW_FACTOR);
            let beyond_most = disk.service.p90_ns.unwrap_or(0).saturating_mul(4);
            for (r, w) in by_itself {
                let took = r.d2c().unwrap_or(0);
                // One in ten may be slow, as long as half are not.
                let is_noticed = took >= LONG_NS && took > beyond_half;
                let is_far = if are_few {
                    took > beyond_half
                } else {
                    took > beyond_most || is_noticed
                };
                let least = if context.rotates() == Some(true) {
                    SINGLE_NS
                } else {
                    SLOW_NS
                };
                if took < least || !is_far {
                    continue;
                }
                sum.are_many |= !are_few;
                sum.passed_by += passed_by(disk, r);
                sum.d2c.push(took);
                sum.when.extend(r.life.issue);
                sum.reads += u64::from(r.is_read());
                if let Some(ns) = section.in_driver(r) {
                    sum.nr_timed += 1;
                    sum.nr_in_driver += u64::from(is_most(ns, took));
                }
                sum.harm.add(r.pid, w.behind_ns, || {
                    section.instance(r, Some(w.behind_ns))
                });
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| {
            sum.finding(dev, self.capped, whole)
        })
    }
}

/// How many went to the device after a request and ended before it.
fn passed_by(disk: &Disk, r: &Request) -> u64 {
    let (Some(issue), Some(complete)) = (r.life.issue, r.life.complete) else {
        return 0;
    };
    let later = disk.issued_between(issue, complete);
    let ended = later.filter(|i| {
        disk.requests[*i]
            .life
            .complete
            .is_some_and(|c| c < complete)
    });
    ended.count() as u64
}

/// The places of requests that all take the same time, far more than the device needs
/// for those that it has; none if there are no such.
fn capped(disk: &Disk, ended: usize) -> Vec<usize> {
    let data = |i: &usize| {
        let (r, w) = (&disk.requests[*i], &disk.waits[*i]);
        r.life.bytes > 0 && r.d2c().is_some() && w.flush_ns == 0
    };
    let all: Vec<usize> = (0..disk.nr_issued).filter(data).collect();
    let took = |i: &usize| disk.requests[*i].d2c().unwrap_or(0);
    let best = |reads: Option<bool>| {
        let of = all
            .iter()
            .filter(|i| reads.is_none_or(|w| w == disk.requests[**i].is_read()));
        of.map(took).min().unwrap_or(0)
    };
    let far = |best: u64, i: &usize| {
        let waiting = u64::from(disk.depth_at_issue[*i]) + 1;
        is_longer(took(i), LONG_FACTOR * waiting, best)
    };
    let any = best(None);
    let mut slow: Vec<usize> = all.iter().copied().filter(|i| far(any, i)).collect();
    let reads = slow.iter().filter(|i| disk.requests[**i].is_read()).count();
    // One direction alone may be slower than the other by nature.
    if reads == 0 || reads == slow.len() {
        let own = best(Some(reads > 0));
        slow.retain(|i| far(own, i));
    }
    let d2c: Vec<u64> = slow.iter().map(took).collect();
    let enough = slow.len() >= CAPPED_MIN && slow.len() as f64 >= CAPPED_SHARE * ended as f64;
    if enough && is_narrow(&d2c) {
        slow
    } else {
        Vec::new()
    }
}

fn is_narrow(d2c: &[u64]) -> bool {
    let Some(median) = percentile(50, d2c.to_vec()) else {
        return false;
    };
    let near = |ns: &&u64| ns.abs_diff(median) as f64 <= NARROW * median as f64;
    d2c.iter().filter(near).count() as f64 >= NARROW_SHARE * d2c.len() as f64
}

impl Sum {
    /// Of very few requests, one that the device has for itself, for a time that people notice.
    fn single(&mut self, section: &Section, disk: &Disk) {
        let best = disk.service.best_ns.unwrap_or(0);
        let alone = disk.issued().iter().zip(&disk.depth_at_issue);
        let alone = alone.filter_map(|(r, depth)| (*depth == 0).then_some(r));
        for r in alone.filter(|r| r.is_sync && !r.is_flush()) {
            let (Some(issue), Some(complete)) = (r.life.issue, r.life.complete) else {
                continue;
            };
            let took = complete.since(issue).0;
            let is_far = took == best || is_longer(took, FEW_FACTOR, best);
            let is_alone = disk.issued_between(issue, complete).is_empty()
                && disk.nr_unknown_ends(issue, complete) == 0;
            if took >= SINGLE_NS && is_far && is_alone && !r.flags.has(Rwbs::DISCARD) {
                self.d2c.push(took);
                self.reads += u64::from(r.is_read());
                self.harm
                    .add(r.pid, took, || section.instance(r, Some(took)));
            }
        }
    }

    fn finding(mut self, dev: Dev, capped: bool, whole: &Whole<'_>) -> Option<Finding> {
        if !capped {
            self.harm.keep_who_suffers(dev, whole);
        }
        if self.harm.is_empty() {
            return None;
        }
        self.d2c.sort_unstable();
        let median = self.d2c[self.d2c.len() / 2];
        let are_seeks = median < SINGLE_NS && whole.context.rotates() == Some(true);
        if capped && are_seeks && is_most(self.in_streams, self.d2c.len() as u64) {
            // Streams take turns: what a turn takes may be alike.
            return None;
        }
        let mut f = Finding::new(if capped { CAPPED.name } else { SLOW.name }, dev, "");
        self.harm.fill(&mut f, whole);
        let who = f.victim_names();
        let n = self.d2c.len() as u64;
        if capped {
            f.what = format!(
                "{n} of {} requests of {who} take {} to {} at the device, the same for {}, wherever \
                 they are.",
                self.all,
                time_text(self.d2c[0]),
                time_text(self.d2c[self.d2c.len() - 1]),
                match (self.reads, n - self.reads) {
                    (0, _) => "all writes",
                    (_, 0) => "all reads",
                    _ => "reads and writes",
                }
            );
            f.how = "Neither seeks nor a device's own work make all requests equally slow: a rate \
                     limit below this kernel does (a hypervisor's, a cloud disk's, an array's). \
                     The queue above is not what they wait in."
                .to_owned();
            f.cause = Some("a rate limit below the kernel".to_owned());
            f.doubt(
                Confidence::Likely,
                "the disk's limit, and a longer series: a limit shows as a constant rate",
            );
            f.remedies = vec![LARGER_LIMIT, FEWER_OR_LARGER];
        } else {
            let alone = whole.disk(dev).alone_ns.iter().flatten().max().copied();
            let alone = alone
                .filter(|ns| *ns < median)
                .map_or_else(String::new, |ns| {
                    format!("; alone one takes {}", time_text(ns))
                });
            f.what = match n {
                1 => format!(
                    "The device takes {} for a single request of {who}{alone}.",
                    time_text(median)
                ),
                _ => format!(
                    "The device takes {} (median of {n}) for single requests of {who}, {} the \
                     longest{alone}.",
                    time_text(median),
                    time_text(self.harm.worst_ns()),
                ),
            };
            f.how = if self.passed_by >= PASSED_MIN * n {
                format!(
                    "Meanwhile it ended about {} that came later: it chooses among those that it \
                     has (NCQ) and passes these over, or tries them again.",
                    counted(self.passed_by / n, "others")
                )
            } else {
                "It had too little to do to explain it: work of its own (garbage collection, \
                 retries, error recovery, power states, writing a full cache to disk)."
                    .to_owned()
            };
            if let Some(period) = period(&mut self.when) {
                f.how += &format!(" It comes about every {}.", time_text(period));
            }
            f.cause = Some("the device itself".to_owned());
            // The driver's own events rule the kernel out, both before and behind the device.
            if self.nr_timed > 0 && self.nr_in_driver == self.nr_timed {
                f.how += &format!(
                    " The driver's own events say the same of {}.",
                    counted(self.nr_timed, "requests")
                );
                f.missing
                    .push("what the device did: SMART, the kernel's log".to_owned());
            } else {
                f.doubt(
                    Confidence::Likely,
                    "what the device did: SMART, the kernel's log",
                );
            }
            if n < TIMES_MIN && self.all < ONCE_AMONG {
                f.doubt(
                    Confidence::Possible,
                    format!(
                        "it is seen once among {}: how often the device takes so long",
                        counted(self.all, "requests")
                    ),
                );
            } else if !self.are_many {
                f.doubt(
                    Confidence::Possible,
                    "more requests: how often the device takes so long",
                );
            }
            if self.passed_by >= PASSED_MIN * n {
                f.remedies.push(FEWER_COMMANDS);
            }
            f.remedies.extend([READ_LOGS, FREE_SPACE]);
        }
        f.figures = vec![("median at the device", median as f64, "ns")];
        Some(f)
    }
}

/// The time between one and the next, if it is nearly the same.
fn period(when: &mut [Time]) -> Option<u64> {
    when.sort_unstable();
    let gaps: Vec<u64> = when.windows(2).map(|w| w[1].since(w[0]).0).collect();
    let median = percentile(50, gaps.clone())?;
    let near = gaps.iter().filter(|g| g.abs_diff(median) <= median / 5);
    let is_regular = gaps.len() >= 4 && near.count() * 10 >= gaps.len() * 8;
    is_regular.then(|| gaps.iter().sum::<u64>() / gaps.len() as u64)
}
