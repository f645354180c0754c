// SPDX-License-Identifier: MIT OR Apache-2.0
//! fsync as a chain of writes that wait for each other: the data, then the journal's,
//! each as long as the device takes for one.

use super::chains;
use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, percent};
use crate::findings::tasks::Tasks;
use crate::findings::threads::is_journal;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_types::{Dev, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "journal-chain",
    what: "fsync is a chain of writes that wait for each other: the data, then the journal's",
    rule: Rule {
        condition: "a write of the journal's thread (jbd2, kjournald) is queued right after a \
                    sync write of another process ends",
        threshold: "at most 200 us after it, and the process begins nothing until it ends; the chain from that write to the journal's last takes \
                    1 ms or more on average (below that it is a note), and 20 % of the process's \
                    waiting or more",
        exception: "the device takes long for one of these by itself",
    },
    explains: &[],
    remedies: &[FEWER_FSYNCS, ALLOCATED, OTHER_JOURNAL],
    rests_on_absence: false,
    detector: || Box::new(JournalChain::default()),
};

const FEWER_FSYNCS: Remedy = Remedy::outside(
    "fewer-fsyncs",
    Outside::Applications,
    "fewer fsyncs: group commits, several writes before each",
);

const ALLOCATED: Remedy = Remedy::outside(
    "allocated-blocks",
    Outside::Applications,
    "write into allocated blocks (no change of the map: fdatasync, \
     fallocate), so that the journal has nothing to write",
);

const OTHER_JOURNAL: Remedy = Remedy::outside(
    "journal-elsewhere",
    Outside::Storage,
    "the journal on another device, or one with a protected cache",
);

/// The journal's thread begins so soon after what it waits for.
const SOON_NS: u64 = 200_000;

#[derive(Debug, Default)]
struct JournalChain {
    journals: Tasks,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    /// The whole chains.
    harm: Harm,
    /// Their first writes, and what of that is at the device.
    first_ns: u64,
    in_device_ns: u64,
    /// Writes and flushes in all chains.
    nr_ios: u64,
}

impl Detector for JournalChain {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.journals.named(pid, is_journal(comm));
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            self.disk(section, disk);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut sum, dev| {
            let mut f = sum.harm.finding(&KIND, dev, whole)?;
            f.of = "writes with the journal behind them";
            if sum.harm.total_ns() / sum.harm.count() < chains::SLOW_NS {
                f.weight = Weight::Note;
            }
            let who = f.victim_names();
            let percent = percent(sum.in_device_ns, sum.first_ns);
            let mean = |ns: u64| time_text(ns / sum.harm.count());
            f.what = format!(
                "Each fsync of {who} is a chain of {:.1} I/Os that wait for each other, and their \
                 times add up to {} on average: its write ({}, {percent} % of it at the device), \
                 and only then the journal's of {} ({} until its last write ends).",
                sum.nr_ios as f64 / sum.harm.count() as f64,
                mean(sum.harm.total_ns()),
                mean(sum.first_ns),
                f.cause_names(),
                mean(sum.harm.total_ns().saturating_sub(sum.first_ns)),
            );
            f.how =
                "The time is the device's, once for each I/O of a chain, however fast it is (a \
                     disk that rotates takes about a revolution for each). Scheduler and queue \
                     have no part in it."
                    .to_owned();
            f.figures = vec![(
                "I/Os of an fsync",
                sum.nr_ios as f64 / sum.harm.count() as f64,
                "",
            )];
            if whole.context.has_write_cache().is_none() {
                let flushes = whole.disk(dev).flushes.0 + whole.disk(dev).forced.0;
                f.doubt(
                    Confidence::Likely,
                    match flushes {
                        0 => {
                            "queue/write_cache: no flush is shown, so the cache may be off or safe"
                        }
                        _ => "queue/write_cache of the device",
                    },
                );
            }
            f.remedies = vec![FEWER_FSYNCS, ALLOCATED, OTHER_JOURNAL];
            Some(f)
        })
    }
}

/// When the last of a journal's writes ends that follow each other from `first` on, and how many
/// they are.
fn last_of(first: &Request, then: &[&Request]) -> Option<(Time, u64)> {
    let mut until = first.life.complete?;
    let mut nr = 0;
    for n in then.iter().filter(|n| n.pid == first.pid) {
        let is_next = n
            .start()
            .is_some_and(|t| t.0 <= until.0.saturating_add(SOON_NS));
        match n.life.complete.filter(|_| is_next) {
            Some(end) => {
                until = until.max(end);
                nr += 1;
            }
            None => break,
        }
    }
    Some((until, nr))
}

/// When processes began requests.
struct Starts(BTreeMap<Pid, Vec<Time>>);

impl Starts {
    fn new(disk: &Disk) -> Starts {
        let mut of_pid: BTreeMap<Pid, Vec<Time>> = BTreeMap::new();
        for r in &disk.requests {
            of_pid.entry(r.pid).or_default().extend(r.start());
        }
        of_pid
            .values_mut()
            .for_each(|starts| starts.sort_unstable());
        Starts(of_pid)
    }

    /// Whether a process begins a request within a time: then it waits for nothing there.
    fn between(&self, pid: Pid, from: Time, to: Time) -> bool {
        let starts = self.0.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let first = starts.partition_point(|t| *t <= from);
        starts.get(first).is_some_and(|t| *t < to)
    }
}

impl JournalChain {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let is_journals = |r: &Request| self.journals.has(r.pid);
        if !disk.requests.iter().any(is_journals) {
            return;
        }
        let goes_on = Starts::new(disk);
        let long = disk.long_waits().filter(|(_, w)| w.is_device_slow);
        let slow: BTreeSet<u64> = long.map(|(r, _)| r.life.number).collect();
        let mut begun: Vec<&Request> = disk.requests.iter().filter(|r| r.is_write()).collect();
        begun.sort_by_key(|r| (r.start(), r.life.number));
        for r in begun
            .iter()
            .filter(|r| r.is_sync && !self.journals.has(r.pid))
        {
            let (Some(end), Some(took)) = (r.life.complete, r.d2c()) else {
                continue;
            };
            let next = begun.partition_point(|n| n.start() < Some(end));
            let soon = |n: &&&Request| n.start().is_some_and(|t| t.since(end).0 <= SOON_NS);
            let mut then = begun[next..].iter().take_while(soon);
            let Some(place) = then.position(|n| self.journals.has(n.pid)) else {
                continue;
            };
            let journal = begun[next + place];
            let first_ns = r.whole().unwrap_or(took);
            let (until, nr) = last_of(journal, &begun[next + place..]).unwrap_or((end, 1));
            let of_journal = begun[next + place..]
                .iter()
                .filter(|n| n.pid == journal.pid)
                .take(nr as usize);
            let is_slow = |n: &Request| slow.contains(&n.life.number);
            // What the device takes long for by itself is no chain's fault.
            let has_slow = is_slow(r) || of_journal.into_iter().any(|n| is_slow(n));
            if has_slow || goes_on.between(r.pid, end, until) {
                continue;
            }
            let sum = self.disks.entry(disk.dev).or_default();
            add(&mut sum.first_ns, first_ns);
            add(&mut sum.in_device_ns, took);
            sum.nr_ios += 1 + nr;
            let whole = first_ns.saturating_add(until.since(end).0);
            sum.harm.blame(journal.pid, 1);
            sum.harm.add(r.pid, whole, || {
                let mut evidence = section.of_request(r);
                evidence.extend(section.of_request(journal));
                in_order(&mut evidence);
                Instance {
                    time: r.start().unwrap_or_default(),
                    delay_ns: Some(whole),
                    evidence,
                }
            });
        }
    }
}
