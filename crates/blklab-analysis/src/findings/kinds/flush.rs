// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for the device to empty its write cache: journal commits, fsync, FUA.
//!
//! A commit of a journal is a chain: the data, the journal's blocks, then the commit
//! record, before which the cache is flushed and which is written with FUA or flushed
//! again (`fs/jbd2/commit.c`, `block/blk-flush.c`). The trace shows the flush as a
//! command without sectors (FN, FF), or only as the time that the commit record takes.
//! Who called fsync waits from its last write to the end of the chain.

use super::chain_waits::{Waited, waiters};
use super::chains::{Chain, NEAR_NS, SLOW_NS, Writers, chains, flushes, instance, shows_flushes};
use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, total};
use crate::findings::threads::is_journal;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_trace::{Action, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "flush",
    what: "fsync, journal commits and other I/O wait while the device empties its write cache",
    rule: Rule {
        condition: "requests that flush (F before the direction, FUA behind it) delay a process: \
                    one whose request ends right before the chain begins and that goes on right \
                    after it has ended, one that queues a flush without data (where no Q is \
                    shown: one whose write ends right before the flush goes to the device), or \
                    one whose request is at the device meanwhile",
        threshold: "1 ms or more, and 20 % of the waiting of those they delay; right before and \
                    after is at most 1 ms, 3 times or more and in half of the pauses of the \
                    process; or process and journal take turns: 9 of 10 pauses have a chain in \
                    them, and 9 of 10 chains are in one",
        exception: "",
    },
    explains: &["deep-queue", "behind-other", "device-slow", "journal-chain"],
    remedies: &[FEWER_FSYNCS, WRITE_THROUGH, OTHER_JOURNAL],
    rests_on_absence: false,
    detector: || Box::new(Flushes::default()),
};

const FEWER_FSYNCS: Remedy = Remedy::outside(
    "fewer-fsyncs",
    Outside::Applications,
    "commit less often: several writes before an fsync, group commit, one fsync for many \
     files",
);

const WRITE_THROUGH: Remedy = Remedy::set(
    "write-through",
    "queue/write_cache",
    "write through",
    "only if the cache survives a loss of power: no flush is sent then",
);

const OTHER_JOURNAL: Remedy = Remedy::outside(
    "journal-elsewhere",
    Outside::Storage,
    "the journal on a device with a protected cache (external journal, logdev)",
);

/// A second C later than this belongs to something else.
const BEHIND_MAX_NS: u64 = 30_000_000_000;

#[derive(Debug, Default)]
struct Flushes {
    writers: Writers,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    /// Who waits for chains, and who is delayed beside them.
    harm: Harm,
    chains: u64,
    chain_ns: u64,
    flush_ns: u64,
    flushes: u64,
    waiters: BTreeSet<Pid>,
    has_fua: bool,
    journals: BTreeSet<Pid>,
    /// Of flushes behind the data.
    behind_ns: u64,
    /// Flushes of which no Q shows who asked for them.
    nr_without_queue: u64,
}

impl Detector for Flushes {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.writers.named(pid, comm);
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if !shows_flushes(disk) {
                continue;
            }
            let chains = chains(disk, &self.writers);
            if !chains.is_empty() || !disk.flushes.is_empty() {
                self.disk(section, disk, &chains);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Flushes {
    fn disk(&mut self, section: &Section, disk: &Disk, chains: &[Chain]) {
        let waiters = waiters(disk, chains, &self.writers);
        let sum = self.disks.entry(disk.dev).or_default();
        sum.chains += chains.len() as u64;
        add(
            &mut sum.chain_ns,
            total(chains.iter().map(|c| c.end.since(c.begin).0)),
        );
        add(&mut sum.flush_ns, total(chains.iter().map(|c| c.flush_ns)));
        sum.flushes += disk.flushes.len() as u64;
        sum.has_fua |= disk.requests.iter().any(|r| r.flags.has(Rwbs::FUA));
        sum.journals.extend(chains.iter().map(|c| c.pid));
        for (pid, waited) in &waiters {
            sum.waiters.insert(*pid);
            // What others keep at the device delays a commit no less, and no flush is why.
            for w in waited.iter().filter(|w| !w.chain.is_behind_others(w.ns)) {
                sum.harm
                    .add(*pid, w.ns, || instance(section, disk, &w.chain, w.ns));
            }
        }
        let own: BTreeSet<Pid> = chains.iter().map(|c| c.pid).collect();
        for (r, w) in disk.waited_for() {
            let is_own = own.contains(&r.pid);
            let is_waiter = waiters.contains_key(&r.pid);
            // Without somebody else who waits, the process flushes for itself.
            let for_itself = is_own && waiters.is_empty() && flushes(r);
            let ns = if for_itself {
                r.whole().unwrap_or(0)
            } else {
                w.flush_ns
            };
            if r.is_flush() || ns < SLOW_NS || (is_own && !for_itself) || is_waiter {
                continue;
            }
            sum.harm.add(r.pid, ns, || section.instance(r, Some(ns)));
        }
        sum.flushes_asked_for(section, disk, &own);
        sum.flushes_without_queue(section, disk, &waiters);
        sum.flushes_behind(section, disk);
    }
}

impl Sum {
    /// A process that flushes and nothing else (a bio without data, as fdatasync of a file
    /// whose map did not change) waits for it itself.
    fn flushes_asked_for(&mut self, section: &Section, disk: &Disk, journals: &BTreeSet<Pid>) {
        let asked_for = disk.divided().filter(|(r, w)| {
            let by_itself = r.is_flush() && r.queue.is_some() && !journals.contains(&r.pid);
            by_itself && w.flush_ns >= SLOW_NS
        });
        for (r, w) in asked_for {
            self.harm
                .add(r.pid, w.flush_ns, || section.instance(r, Some(w.flush_ns)));
        }
    }

    /// Where no Q shows who asks for a flush: whoever's write ended right before it waits for it,
    /// else who sent it. What is part of a commit is waited for with the whole of it.
    fn flushes_without_queue(
        &mut self,
        section: &Section,
        disk: &Disk,
        waiters: &BTreeMap<Pid, Vec<Waited>>,
    ) {
        if disk.has(Action::Queue) {
            return;
        }
        let chains = waiters.values().flatten().map(|w| w.chain);
        let mut chains: Vec<[Time; 2]> = chains.map(|c| [c.begin, c.end]).collect();
        chains.sort_unstable();
        let is_of_commit = |time: Time| {
            let upto = chains.partition_point(|[begin, _]| *begin <= time);
            upto > 0 && time < chains[upto - 1][1]
        };
        let mut writes: Vec<&Request> = disk.requests.iter().filter(|r| r.is_write()).collect();
        writes.retain(|r| r.life.complete.is_some());
        writes.sort_by_key(|r| r.life.complete);
        let flushes = disk.issued().iter().filter(|r| r.is_flush());
        for r in flushes.filter(|r| !r.life.issue.is_some_and(is_of_commit)) {
            let Some(ns) = r.d2c().filter(|ns| *ns >= SLOW_NS) else {
                continue;
            };
            let upto = writes.partition_point(|w| w.life.complete <= r.life.issue);
            let near = |w: &&&Request| {
                let end = w.life.complete.unwrap_or_default();
                r.life
                    .issue
                    .is_some_and(|issue| issue.since(end).0 <= NEAR_NS)
            };
            let before = writes[..upto].last().filter(near);
            self.nr_without_queue += 1;
            self.harm.add(before.map_or(r.pid, |w| w.pid), ns, || {
                let mut instance = section.instance(r, Some(ns));
                instance
                    .evidence
                    .extend(before.into_iter().flat_map(|w| section.of_request(w)));
                in_order(&mut instance.evidence);
                instance
            });
        }
    }

    /// A request that is flushed behind its data ends twice: the second C has no length.
    fn flushes_behind(&mut self, section: &Section, disk: &Disk) {
        let mut of_sector: BTreeMap<u64, Vec<&Request>> = BTreeMap::new();
        for r in disk.requests.iter().filter(|r| flushes(r)) {
            of_sector.entry(r.life.sector).or_default().push(r);
        }
        if of_sector.is_empty() {
            return;
        }
        for (place, e) in section.events().iter().enumerate() {
            if e.action != Action::Complete || e.bytes > 0 || e.dev != disk.dev || e.sector == 0 {
                continue;
            }
            let own = of_sector.get(&e.sector).into_iter().flatten();
            let before = own.filter(|r| r.life.complete.is_some_and(|c| c <= e.time));
            let Some(r) = before.max_by_key(|r| r.life.complete) else {
                continue;
            };
            let ns = e.time.since(r.life.complete.unwrap_or_default()).0;
            if !(SLOW_NS..=BEHIND_MAX_NS).contains(&ns) {
                continue;
            }
            add(&mut self.behind_ns, ns);
            self.harm.add(r.pid, ns, || {
                let mut instance = section.instance(r, Some(ns));
                instance.evidence.push(section.evidence(place));
                instance
            });
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let is_waiter = |pid: &Pid| self.waiters.contains(pid);
        if self.harm.is_empty() || self.harm.total_ns() / self.harm.count() < SLOW_NS {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "waits";
        // Who waits for commits comes before who is delayed beside them.
        f.victims
            .sort_by_key(|p| (!is_waiter(&p.pid), std::cmp::Reverse(p.delay_ns)));
        f.causes = self
            .journals
            .iter()
            .map(|pid| crate::findings::Party {
                pid: *pid,
                comm: whole.comm(*pid),
                requests: self.chains,
                delay_ns: 0,
                writes_for: None,
            })
            .collect();
        let sum = whole.disk(dev);
        let mean = |total: u64, n: u64| time_text(total / n.max(1));
        let waiters = f
            .victims
            .iter()
            .filter(|p| is_waiter(&p.pid))
            .map(|p| p.pid);
        let who = whole.names(waiters);
        f.what = if self.waiters.is_empty() {
            format!(
                "{} wait{} for the device to empty its write cache: {} each on average.",
                f.victim_names(),
                f.verb_end(),
                time_text(self.harm.total_ns() / self.harm.count().max(1))
            )
        } else {
            format!(
                "{who} waits for {} journal commit{} of {}, {} each on average.",
                self.chains,
                if self.chains == 1 { "" } else { "s" },
                whole.names(self.journals.iter().copied()),
                mean(self.chain_ns, self.chains)
            )
        };
        let concerned = f.causes.iter().chain(&f.victims);
        let mut journals = concerned.filter_map(|p| p.comm.as_deref());
        let has_journal = !self.waiters.is_empty() || journals.any(is_journal);
        let (how, with_fua, what) = if has_journal {
            (
                "The data is written, then the journal's blocks, then the commit record, with the \
                 device's cache flushed before it",
                " and FUA on it",
                "The record",
            )
        } else {
            (
                "What it writes is to be safe when it is told so (O_SYNC, O_DSYNC, or a log that it \
                 writes itself): the device's cache is flushed for it",
                ", or it passes that (FUA)",
                "A write",
            )
        };
        f.how = format!("{how}{}.", if self.has_fua { with_fua } else { "" });
        f.how += &match sum.flushes.0 {
            0 => format!(
                " {what} takes {} with its flush.",
                mean(self.flush_ns, self.chains)
            ),
            1 => format!(" The flush takes {}.", mean(sum.flushes.1, 1)),
            n => format!(
                " {n} flushes take {} each on average.",
                mean(sum.flushes.1, n)
            ),
        };
        if self.behind_ns > 0 {
            f.how += &format!(
                " The cache is flushed behind the data, too (a second C without length): {}.",
                time_text(self.behind_ns)
            );
        }
        let beside: Vec<Pid> = f
            .victims
            .iter()
            .map(|p| p.pid)
            .filter(|pid| !is_waiter(pid))
            .collect();
        if !beside.is_empty() && !self.waiters.is_empty() {
            f.how += &format!(
                " Requests of {} are at the device meanwhile and wait too.",
                whole.names(beside)
            );
        }
        f.cause = Some("flushes of the device's write cache".to_owned());
        if self.nr_without_queue > 0 {
            f.doubt(
                Confidence::Likely,
                "the Q of flushes: who waits for them is told by whose write ended right before",
            );
        }
        remedies(&mut f, whole.context);
        f.figures = vec![
            ("commits", self.chains as f64, ""),
            (
                "a commit",
                (self.chain_ns / self.chains.max(1)) as f64,
                "ns",
            ),
            ("flush commands", sum.flushes.0 as f64, ""),
            ("longest flush", sum.flush_worst_ns as f64, "ns"),
        ];
        Some(f)
    }
}

fn remedies(f: &mut Finding, context: &Context) {
    f.remedies.push(FEWER_FSYNCS);
    match context.has_write_cache() {
        Some(true) => f.remedies.push(WRITE_THROUGH),
        Some(false) => f.doubt(
            Confidence::Likely,
            "the queue says that the device has no write cache, yet it gets flushes",
        ),
        None => f.missing.push("queue/write_cache of the device".to_owned()),
    }
    f.remedies.push(OTHER_JOURNAL);
}
