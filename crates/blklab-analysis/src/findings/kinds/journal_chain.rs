// SPDX-License-Identifier: MIT OR Apache-2.0
//! fsync as a chain of writes that wait for each other: the data, then the journal's,
//! each as long as the device takes for one.

use super::flush;
use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, percent};
use crate::findings::tasks::Tasks;
use crate::findings::threads::is_journal;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "journal-chain",
    what: "fsync is a chain of writes that wait for each other: the data, then the journal's",
    rule: Rule {
        condition: "a write of the journal's thread (jbd2, kjournald) is queued right after a \
                    sync write of another process ends",
        threshold: "at most 200 us after it; that write took 1 ms or more at the device, and that \
                    is 20 % of the process's waiting or more",
        exception: "",
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
            let who = f.victim_names();
            let percent = percent(sum.in_device_ns, sum.first_ns);
            let mean = |ns: u64| time_text(ns / sum.harm.count());
            f.what = format!(
                "Each fsync of {who} is a chain: its write ({} on average, {percent} % of it at the \
                 device), and only then the journal's of {} ({} until its last write ends).",
                mean(sum.first_ns),
                f.cause_names(),
                mean(sum.harm.total_ns().saturating_sub(sum.first_ns)),
            );
            f.how = "The time is the device's: a disk that rotates takes about a revolution for \
                     each write of a chain. Scheduler and queue have no part in it."
                .to_owned();
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

/// When the last of a journal's writes ends that follow each other from `first` on.
fn last_of(first: &Request, then: &[&Request]) -> Option<Time> {
    let mut until = first.life.complete?;
    for n in then.iter().filter(|n| n.pid == first.pid) {
        let is_next = n
            .start()
            .is_some_and(|t| t.0 <= until.0.saturating_add(SOON_NS));
        match n.life.complete.filter(|_| is_next) {
            Some(end) => until = until.max(end),
            None => break,
        }
    }
    Some(until)
}

impl JournalChain {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let mut begun: Vec<&Request> = disk.requests.iter().filter(|r| r.is_write()).collect();
        begun.sort_by_key(|r| (r.start(), r.life.number));
        for r in begun
            .iter()
            .filter(|r| r.is_sync && !self.journals.has(r.pid))
        {
            let (Some(end), Some(took)) = (r.life.complete, r.d2c()) else {
                continue;
            };
            if took < flush::SLOW_NS {
                continue;
            }
            let next = begun.partition_point(|n| n.start() < Some(end));
            let soon = |n: &&&Request| n.start().is_some_and(|t| t.since(end).0 <= SOON_NS);
            let mut then = begun[next..].iter().take_while(soon);
            let Some(place) = then.position(|n| self.journals.has(n.pid)) else {
                continue;
            };
            let journal = begun[next + place];
            let sum = self.disks.entry(disk.dev).or_default();
            let first_ns = r.whole().unwrap_or(took);
            add(&mut sum.first_ns, first_ns);
            add(&mut sum.in_device_ns, took);
            let until = last_of(journal, &begun[next + place..]).unwrap_or(end);
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
