// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of data that lie around a block of metadata wait until that has been read.
//!
//! A block that maps a file (an indirect block of ext2, a node of an extent tree) lies
//! among the data that it maps. Who needs it to know where the data go on reads it by
//! itself, waits, and then reads the data on both sides: the order on the disk is lost,
//! and nothing merges.

use crate::findings::disk::Request;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "dependent-read",
    what: "a process waits for a small read and only then reads what lies on both sides of it",
    rule: Rule {
        condition: "a small read ends, and then its process queues one read that ends where it \
                    begins and one that begins where it ends",
        threshold: "4 KiB or less; within 1 ms",
        exception: "",
    },
    explains: &["missed-merge"],
    remedies: &[SUBMIT_FIRST],
    rests_on_absence: false,
    detector: || Box::new(DependentReads::default()),
};

const SUBMIT_FIRST: Remedy = Remedy::kernel(
    "submit-before-next-map",
    Act::Outside(Outside::Kernel),
    "submit what is mapped before reading the next block of the map (or read it ahead)",
);

const SMALL_SECTORS: u64 = 8;
const NEAR_NS: u64 = 1_000_000;

/// Reads that are looked at behind a small one.
const THEN_SEEN: usize = 16;

/// Whether a read is a small one with something on both sides.
fn may_be_first(r: &Request) -> bool {
    r.is_behind && r.is_followed && r.sectors() <= SMALL_SECTORS
}

#[derive(Debug, Default)]
struct DependentReads {
    disks: BTreeMap<Dev, Harm>,
}

impl Detector for DependentReads {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let reads = || {
                let all = disk.requests.iter();
                all.filter(|r| r.is_read() && r.queue.is_some())
            };
            let who = reads().filter(|r| may_be_first(r)).map(|r| r.pid);
            let mut of_pid: BTreeMap<Pid, Vec<&Request>> = who.map(|p| (p, Vec::new())).collect();
            if of_pid.is_empty() {
                continue;
            }
            for r in reads() {
                if let Some(own) = of_pid.get_mut(&r.pid) {
                    own.push(r);
                }
            }
            for (pid, mut reads) in of_pid {
                reads.sort_by_key(|r| (r.queue, r.life.number));
                for (i, first) in reads.iter().enumerate() {
                    let Some(end) = first.life.complete else {
                        continue;
                    };
                    if !may_be_first(first) {
                        continue;
                    }
                    let queued = |r: &Request| r.queue.unwrap_or_default();
                    let later = &reads[i + 1..];
                    let from = later.partition_point(|r| queued(r) < end);
                    let then = later[from..].iter().take(THEN_SEEN);
                    let then = then.take_while(|r| queued(r).since(end).0 <= NEAR_NS);
                    let before = then.clone().find(|r| r.end() == first.life.sector);
                    let behind = then.clone().find(|r| r.life.sector == first.end());
                    let (Some(before), Some(behind)) = (before, behind) else {
                        continue;
                    };
                    let ns = first.whole().unwrap_or(0);
                    self.disks.entry(disk.dev).or_default().add(pid, ns, || {
                        let mut evidence = Vec::new();
                        for r in [first, before, behind] {
                            evidence.extend(section.of_request(r));
                        }
                        in_order(&mut evidence);
                        Instance {
                            time: first.queue.unwrap_or_default(),
                            delay_ns: Some(ns),
                            evidence,
                        }
                    });
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |harm, dev| {
            let mut f = Finding::new(KIND.name, dev, "");
            harm.fill(&mut f, whole);
            f.extra_commands = Some(2 * harm.count());
            f.what = format!(
                "{} waits {} for a small read, then reads what lies right before and right behind \
                 it: three commands and two waits instead of one.",
                f.victim_names(),
                time_text(harm.total_ns() / harm.count())
            );
            f.how = "So does a file whose map (an indirect block, a node of its extent tree) lies \
                     among its data: the data that are known already are not submitted before the \
                     process waits for the map."
                .to_owned();
            f.doubt(
                Confidence::Likely,
                "the filesystem's own events, which show that the small read is the file's map",
            );
            f.remedies = vec![SUBMIT_FIRST];
            Some(f)
        })
    }
}
