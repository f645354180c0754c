// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array with parity reads old data before it writes a part of a stripe.
//!
//! To write less than a stripe, RAID 4, 5 and 6 need the old data and parity, or the rest
//! of the stripe: their thread reads from the members first (`handle_stripe_dirtying`,
//! drivers/md/raid5.c), and what was a write is a read and then a write. The array says so in
//! messages, for each stripe that it has to read for.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::Harm;
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::tasks::Tasks;
use crate::findings::{
    Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Rule, Whole, counted, time_text,
};
use crate::lifecycle::BioLife;
use blklab_trace::Event;
use blklab_types::{Dev, Op, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "read-modify-write",
    what: "an array with parity reads old data before it writes part of a stripe",
    rule: Rule {
        condition: "the thread of an array (mdN_raid4, 5 or 6) reads from a member, and after \
                    that has ended writes to the same sectors; or the array says in messages that \
                    it reads ('raid5 rmw', 'raid5 rcw') while its writes are under way",
        threshold: "at most 20 ms from the end of the read to the write; 2 times or more, and for \
                    a quarter of its writes",
        exception: "",
    },
    explains: &["misaligned"],
    remedies: &[WHOLE_STRIPES, OTHER_LAYOUT],
    rests_on_absence: false,
    detector: || Box::new(ArrayRmw::default()),
};

const WHOLE_STRIPES: Remedy = Remedy::outside(
    "whole-stripes",
    Outside::Applications,
    "write whole stripes: aligned, in multiples of queue/optimal_io_size",
);

const OTHER_LAYOUT: Remedy = Remedy::outside(
    "other-layout",
    Outside::Storage,
    "a smaller chunk, more of md's stripe cache (md/stripe_cache_size) for sequential \
     writes, or RAID 10 for small ones",
);

/// The write follows the read so soon: other members may take longer.
const SOON_NS: u64 = 20_000_000;

/// Times at least.
const TIMES_MIN: u64 = 2;

/// Of the thread's writes, the part that is preceded by a read.
const SHARE_MIN: f64 = 0.25;

#[derive(Debug, Default)]
struct ArrayRmw {
    /// The threads of arrays.
    threads: Tasks,
    /// The arrays that they are named after.
    named: BTreeMap<Pid, Dev>,
    arrays: BTreeMap<Pid, Sum>,
    /// What arrays said of stripes in this section.
    messages: BTreeMap<Dev, Vec<Evidence>>,
    said: BTreeMap<Dev, Said>,
}

/// What an array says of its writes.
#[derive(Debug, Default)]
struct Said {
    harm: Harm,
    /// Stripes read for old data and parity, and for the rest of the stripe.
    stripes: [u64; 2],
    writes: u64,
}

/// What the thread of an array reads from members.
#[derive(Debug, Default)]
struct Reads {
    number: u64,
    total_ns: u64,
    members: BTreeSet<Dev>,
}

/// How the messages of both ways begin.
const SAYINGS: [&str; 2] = ["raid5 rmw ", "raid5 rcw "];

/// Messages of a device in a section that are kept: more do not make it surer.
const MESSAGES_MAX: usize = 1 << 16;

/// What the thread of an array does.
#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// The array, if it is in the trace.
    array: Option<Dev>,
    members: BTreeSet<Dev>,
    reads: Reads,
    writes: u64,
    after_read: u64,
}

/// Whether a thread by its name is that of an array with parity.
fn has_parity(comm: &str) -> bool {
    let of_array = comm
        .strip_prefix("md")
        .and_then(|rest| rest.split_once("_raid"));
    of_array.is_some_and(|(_, level)| matches!(level, "4" | "5" | "6"))
}

/// The array that a thread is named after: `md0_raid5`.
fn array_of(comm: &str) -> Option<Dev> {
    let number = comm.strip_prefix("md")?.split('_').next()?;
    Some(Dev {
        major: MD_MAJOR,
        minor: number.parse().ok()?,
    })
}

/// The major number of md's devices.
const MD_MAJOR: u16 = 9;

impl Detector for ArrayRmw {
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        let Some(way) = SAYINGS.iter().position(|s| text.starts_with(s)) else {
            return;
        };
        self.said.entry(event.dev).or_default().stripes[way] += 1;
        let messages = self.messages.entry(event.dev).or_default();
        if messages.len() < MESSAGES_MAX {
            messages.push(Evidence::message(number, event, text));
        }
    }

    fn process(&mut self, pid: Pid, comm: &str) {
        self.threads.named(pid, has_parity(comm));
        if let Some(dev) = array_of(comm).filter(|_| has_parity(comm)) {
            self.named.insert(pid, dev);
        }
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for pid in self.threads.all() {
            let sum = self.arrays.entry(pid).or_default();
            let mut pairs: Vec<(&Request, &Request)> = Vec::new();
            for disk in &section.disks {
                sum.reads.add(disk, pid);
                let found = sum.pairs(disk, pid);
                if !found.is_empty() {
                    sum.members.insert(disk.dev);
                }
                pairs.extend(found);
            }
            sum.after_read += pairs.len() as u64;
            // Members are read side by side: of those the one that ends last counts.
            pairs.sort_by_key(|(read, _)| (read.start(), read.life.complete));
            let begins = |a: &(&Request, &Request), b: &(&Request, &Request)| {
                b.0.start() < a.0.life.complete
            };
            for together in pairs.chunk_by(begins) {
                sum.add(section, together);
            }
        }
        for (dev, messages) in std::mem::take(&mut self.messages) {
            if let Some(disk) = section.disk(dev) {
                self.said.entry(dev).or_default().add(disk, &messages);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let mut reads: BTreeMap<Dev, Reads> = BTreeMap::new();
        let mut all: Vec<Finding> = Vec::new();
        for (pid, mut sum) in std::mem::take(&mut self.arrays) {
            if let Some(dev) = self.named.get(&pid) {
                reads.insert(*dev, std::mem::take(&mut sum.reads));
            }
            all.extend(sum.finding(whole));
        }
        // What the members show says more.
        let seen: Vec<Dev> = all.iter().map(|f| f.dev).collect();
        let said = std::mem::take(&mut self.said).into_iter();
        let unseen = said.filter(|(dev, _)| !seen.contains(dev));
        all.extend(unseen.filter_map(|(dev, said)| said.finding(dev, reads.get(&dev), whole)));
        all
    }
}

impl Reads {
    fn add(&mut self, disk: &Disk, pid: Pid) {
        let own = disk.requests.iter().filter(|r| r.pid == pid && r.is_read());
        for read in own {
            let (Some(start), Some(end)) = (read.start(), read.life.complete) else {
                continue;
            };
            self.number += 1;
            self.total_ns += end.since(start).0;
            self.members.insert(disk.dev);
        }
    }
}

impl Said {
    /// Adds the writes of an array that were under way when it said that it reads.
    fn add(&mut self, disk: &Disk, messages: &[Evidence]) {
        let writes = disk.bios.iter().filter(|b| b.op() == Some(Op::Write));
        for bio in writes {
            let Some(complete) = bio.complete else {
                continue;
            };
            self.writes += 1;
            let first = messages.partition_point(|m| m.event.time < bio.queue);
            let Some(message) = messages.get(first).filter(|m| m.event.time < complete) else {
                continue;
            };
            let ns = complete.since(bio.queue).0;
            self.harm.add(bio.pid, ns, || Instance {
                time: bio.queue,
                delay_ns: Some(ns),
                evidence: vec![message.clone()],
            });
        }
    }

    fn finding(self, dev: Dev, reads: Option<&Reads>, whole: &Whole<'_>) -> Option<Finding> {
        let [rmw, rcw] = self.stripes;
        let count = self.harm.count();
        let rare = (count as f64) < SHARE_MIN * self.writes as f64;
        if rmw + rcw < TIMES_MIN || count < TIMES_MIN || rare {
            return None;
        }
        let mut f = self.harm.without_delay(&KIND, dev, whole);
        f.of = "writes that it reads for";
        f.what = format!(
            "The array reads what is there before it writes, as it says itself: old data and parity \
             of {}, the rest of {}, while {count} of {} are under way, {} each on average.",
            counted(rmw, "stripes"),
            counted(rcw, "stripes"),
            counted(self.writes, "writes"),
            time_text(self.harm.total_ns() / count)
        );
        explain(&mut f);
        match reads.filter(|r| r.number > 0) {
            Some(reads) => {
                let members = counted(reads.members.len() as u64, "members");
                f.what += &format!(
                    " Its thread reads {} times from {members}, {} each on average.",
                    reads.number,
                    time_text(reads.total_ns / reads.number)
                );
            }
            None => f
                .missing
                .push("the traces of its members: how long the reads take".to_owned()),
        }
        Some(f)
    }
}

/// The mechanism and what to change.
fn explain(f: &mut Finding) {
    f.how =
        "A write of part of a stripe changes its parity, for which old data and parity, or the \
             rest of the stripe, are needed."
            .to_owned();
    f.cause = Some("writes that do not fill stripes".to_owned());
    f.remedies = vec![WHOLE_STRIPES, OTHER_LAYOUT];
}

/// The bio of an array's user that is under way from before the read until behind the
/// write: its data is what is written.
fn written<'a>(section: &'a Section, read: &Request, write: &Request) -> Option<&'a BioLife> {
    let arrays = section.disks.iter().filter(|d| d.nr_issued == 0);
    let is_under_way = |b: &&BioLife| {
        b.op() == Some(Op::Write)
            && Some(b.queue) <= read.start()
            && b.complete.is_none_or(|c| Some(c) >= write.life.complete)
    };
    arrays.flat_map(|d| &d.bios).find(is_under_way)
}

impl Sum {
    /// Reads of a thread from a member with the write to the same sectors that follows each.
    fn pairs<'a>(&mut self, disk: &'a Disk, pid: Pid) -> Vec<(&'a Request, &'a Request)> {
        let mut pairs = Vec::new();
        let mut reads: BTreeMap<u64, &Request> = BTreeMap::new();
        let mut begun: Vec<&Request> = disk.requests.iter().filter(|r| r.pid == pid).collect();
        begun.sort_by_key(|r| (r.start(), r.life.number));
        for r in begun {
            if r.is_read() {
                reads.insert(r.life.sector, r);
            } else if r.is_write() {
                self.writes += 1;
                let Some(read) = reads.remove(&r.life.sector) else {
                    continue;
                };
                let (Some(end), Some(start)) = (read.life.complete, r.start()) else {
                    continue;
                };
                if end <= start && start.since(end).0 <= SOON_NS {
                    pairs.push((read, r));
                }
            }
        }
        pairs
    }

    /// Adds reads that run side by side.
    fn add(&mut self, section: &Section, together: &[(&Request, &Request)]) {
        let (first, write) = together[0];
        let begin = first.start().unwrap_or_default();
        let end = together
            .iter()
            .filter_map(|(read, _)| read.life.complete)
            .max();
        let ns = end.map_or(0, |end| end.since(begin).0);
        let bio = written(section, first, write);
        self.array = self.array.or(bio.map(|b| b.dev));
        let victim = bio.map_or(first.pid, |b| b.pid);
        self.harm.add(victim, ns, || {
            let mut evidence = section.of_request(first);
            evidence.extend(section.of_request(write));
            in_order(&mut evidence);
            Instance {
                time: begin,
                delay_ns: Some(ns),
                evidence,
            }
        });
    }

    fn finding(self, whole: &Whole<'_>) -> Option<Finding> {
        let rare = (self.after_read as f64) < SHARE_MIN * self.writes as f64;
        if self.after_read < TIMES_MIN || rare {
            return None;
        }
        let member = self.members.first().copied()?;
        let mut f = Finding::new(KIND.name, self.array.unwrap_or(member), "");
        self.harm.fill(&mut f, whole);
        f.of = "times that it reads first";
        let members = counted(self.members.len() as u64, "members");
        f.what = format!(
            "The array reads what is there before it writes: {} of its {} had a read of the same \
             sectors before, {} on average.",
            self.after_read,
            counted(self.writes, &format!("writes to {members}")),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        explain(&mut f);
        if self.array.is_none() {
            f.missing
                .push("the trace of the array itself: whose writes they are".to_owned());
        }
        Some(f)
    }
}
