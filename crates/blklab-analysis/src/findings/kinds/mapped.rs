// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O to a device that maps bios to others (dm, md, bcache) and that spends its time there,
//! while the devices below have nothing to do.
//!
//! Most mappings hand a bio down at once. Some do not: dm-crypt has its threads encrypt
//! (`kcryptd_queue_crypt`, drivers/md/dm-crypt.c), dm-thin and dm-cache read metadata first, md
//! notes in a bitmap what it is about to write (`bitmap_startwrite`, drivers/md/md-bitmap.c), or
//! collects writes.

use crate::findings::disk::Disk;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spans::Spans;
use crate::findings::sums::{add, is_longer, is_most};
use crate::findings::waits::LONG_FACTOR;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use crate::lifecycle::BioLife;
use blklab_trace::Action;
use blklab_types::{Dev, Pid, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "mapping-slow",
    what: "a device that maps bios to others (dm, md, bcache) keeps them while those are idle",
    rule: Rule {
        condition: "a bio that a process waits for, of a device without requests, takes longer \
                    than requests below, and for most of that no other device of the trace has \
                    anything",
        threshold: "1 ms or more and 4 times what requests below take on average; 2 times or \
                    more, and for a quarter of its bios",
        exception: "",
    },
    explains: &[],
    remedies: &[NO_WORKQUEUES, FAST_METADATA],
    rests_on_absence: true,
    detector: || Box::new(Mapped::default()),
};

const NO_WORKQUEUES: Remedy = Remedy::outside(
    "no-workqueues",
    Outside::Machine,
    "dm-crypt: no_read_workqueue and no_write_workqueue (from 5.9 on)",
);

const FAST_METADATA: Remedy = Remedy::outside(
    "fast-metadata",
    Outside::Machine,
    "dm-thin, dm-cache, bcache: their metadata on a fast device; md: a larger chunk of \
     the bitmap (mdadm --bitmap-chunk)",
);

/// Less is no wait.
const SLOW_NS: u64 = 1_000_000;

/// So often at least, and for so large a part of its bios.
const TIMES_MIN: u64 = 2;
const SHARE_MIN: f64 = 0.25;

/// Devices below that a finding names.
const NAMED_MAX: usize = 8;

#[derive(Debug, Default)]
struct Mapped {
    disks: BTreeMap<Dev, Sum>,
    /// The devices below in a section, and the same in those around it.
    below: Rc<BTreeSet<Dev>>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    bios: u64,
    /// Time above the devices below, before the first of them gets something, and after the
    /// last has ended.
    before_ns: u64,
    after_ns: u64,
    /// Each set once in a row: all upper devices of a section share it.
    below: Vec<Rc<BTreeSet<Dev>>>,
    /// Mean time of a request below.
    below_ns: u64,
}

/// The devices that have requests, while others have none.
struct Below<'a> {
    disks: Vec<&'a Disk>,
    busy: Spans,
    mean_ns: u64,
    /// When each of them got something, by whom, in order.
    starts: Vec<(Time, Pid)>,
}

impl<'a> Below<'a> {
    fn new(section: &'a Section) -> Below<'a> {
        let with_requests = |d: &&Disk| d.nr_issued > 0;
        let disks: Vec<&Disk> = section.disks.iter().filter(with_requests).collect();
        let requests = || disks.iter().flat_map(|d| &d.requests);
        let life = |start: Option<Time>, end: Option<Time>| Some([start?, end?]);
        let requests_busy = requests().filter_map(|r| life(r.start(), r.life.complete));
        let bios = disks.iter().flat_map(|d| &d.bios);
        let bios_busy = bios.filter_map(|b| life(Some(b.queue), b.complete));
        let busy = Spans::new(requests_busy.chain(bios_busy));
        let (mut nr, mut sum) = (0_u64, 0);
        for ns in requests().filter_map(|r| Some(r.life.complete?.since(r.start()?).0)) {
            nr += 1;
            add(&mut sum, ns);
        }
        let mut starts: Vec<(Time, Pid)> = requests()
            .filter_map(|r| Some((r.start()?, r.pid)))
            .collect();
        starts.sort_unstable();
        Below {
            mean_ns: sum / nr.max(1),
            disks,
            busy,
            starts,
        }
    }
}

impl Detector for Mapped {
    fn section(&mut self, section: &Section, _: &Context) {
        let maps = |d: &&Disk| d.nr_issued == 0 && d.bios.iter().any(|b| b.complete.is_some());
        let upper: Vec<&Disk> = section.disks.iter().filter(maps).collect();
        if upper.is_empty() {
            return;
        }
        let below = Below::new(section);
        if below.starts.is_empty() {
            return;
        }
        let devs: BTreeSet<Dev> = below.disks.iter().map(|d| d.dev).collect();
        if *self.below != devs {
            self.below = Rc::new(devs);
        }
        for disk in upper {
            let sum = self.disks.entry(disk.dev).or_default();
            if sum.below.last().is_none_or(|b| !Rc::ptr_eq(b, &self.below)) {
                sum.below.push(Rc::clone(&self.below));
            }
            sum.below_ns = sum.below_ns.max(below.mean_ns);
            for bio in disk.bios.iter().filter(|b| b.is_waited_for()) {
                sum.bio(section, bio, &below);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn bio(&mut self, section: &Section, bio: &BioLife, below: &Below<'_>) {
        let Some(complete) = bio.complete else {
            return;
        };
        self.bios += 1;
        let life_ns = complete.since(bio.queue).0;
        let above_ns = life_ns - below.busy.within(bio.queue, complete);
        let is_slow = life_ns >= SLOW_NS && is_longer(life_ns, LONG_FACTOR, below.mean_ns);
        // A cache that has it answers without the devices below.
        let first = below.starts.partition_point(|(t, _)| *t < bio.queue);
        let started = below.starts.get(first).filter(|(t, _)| *t <= complete);
        let (Some((start, pid)), true) = (started, is_slow && is_most(above_ns, life_ns)) else {
            return;
        };
        let before_ns = start.since(bio.queue).0.min(above_ns);
        add(&mut self.before_ns, before_ns);
        add(&mut self.after_ns, above_ns - before_ns);
        if *pid != bio.pid {
            self.harm.blame(*pid, 1);
        }
        self.harm.add(bio.pid, above_ns, || {
            let sectors = [
                bio.sector,
                bio.sector
                    .saturating_add(u64::from(bio.bytes) / SECTOR_BYTES),
            ];
            let at = |action, time| section.find(action, bio.dev, time, sectors);
            let mut evidence: Vec<_> =
                [at(Action::Queue, bio.queue), at(Action::Complete, complete)]
                    .into_iter()
                    .flatten()
                    .collect();
            let then = section
                .places_from(*start)
                .take_while(|(_, e)| e.time == *start);
            let mut then = then.filter(|(_, e)| e.dev != bio.dev);
            evidence.extend(then.next().map(|(place, _)| section.evidence(place)));
            in_order(&mut evidence);
            Instance {
                time: bio.queue,
                delay_ns: Some(above_ns),
                evidence,
            }
        });
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        if count < TIMES_MIN || (count as f64) < SHARE_MIN * self.bios as f64 {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "bios";
        let mut threads = f.causes.iter().filter_map(|p| p.comm.as_deref());
        let crypts = threads.any(|comm| comm.contains("crypt"));
        let below: BTreeSet<Dev> = self.below.iter().flat_map(|b| b.iter().copied()).collect();
        f.what = format!(
            "{dev} keeps {count} of {} bios of {} for {} on average while {} below it {} idle.",
            self.bios,
            f.victim_names(),
            time_text(self.harm.total_ns() / count),
            names(&below),
            if below.len() == 1 { "is" } else { "are" },
        );
        let before = is_most(self.before_ns, self.harm.total_ns());
        f.how = format!(
            "Most of that is {}; a request below takes {} on average.",
            if before {
                "before anything of it is handed down"
            } else {
                "behind the last that is handed down"
            },
            time_text(self.below_ns)
        );
        f.cause = Some(
            if crypts {
                "dm-crypt: bios wait for its threads and for their processors"
            } else {
                "what the mapping does between: encryption, its metadata, a bitmap, or threads of its \
                 own that do not run at once"
            }
            .to_owned(),
        );
        f.remedies = vec![NO_WORKQUEUES];
        if !crypts {
            f.doubt(
                Confidence::Likely,
                "what the mapping is (dmsetup table, /proc/mdstat)",
            );
            f.remedies.push(FAST_METADATA);
        }
        Some(f)
    }
}

/// The first devices of a set, and how many more there are.
fn names(devs: &BTreeSet<Dev>) -> String {
    let mut words: Vec<String> = devs.iter().take(NAMED_MAX).map(Dev::to_string).collect();
    if let Some(others @ 1..) = devs.len().checked_sub(NAMED_MAX) {
        words.push(format!("{others} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_devices_are_named_and_the_others_counted() {
        let all = |nr| {
            (0..nr)
                .map(|minor| Dev { major: 8, minor })
                .collect::<BTreeSet<Dev>>()
        };
        assert_eq!(names(&all(2)), "8,0, 8,1");
        assert!(names(&all(8)).ends_with("8,7"));
        assert!(names(&all(10_000)).ends_with("8,7, 9992 more"));
    }
}
