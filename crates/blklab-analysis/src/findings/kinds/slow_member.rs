// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O to an array that waits for one of its members, which takes far longer than the others.
//!
//! An array ends a bio when the last member has ended its part (`raid_end_bio_io`,
//! drivers/md/raid1.c; RAID 0, 5, 10 likewise for what lies on several). Remaps (A) say which
//! devices are the members.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{is_longer, is_most};
use crate::findings::waits::LONG_FACTOR;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use crate::lifecycle::BioLife;
use crate::spread::percentile;
use blklab_trace::Action;
use blklab_types::{Dev, Op, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "slow-member",
    what: "an array waits for one of its members, which takes longer than the others",
    rule: Rule {
        condition: "a bio that a process waits for, of a device that is remapped (A) to several, ends \
                    right behind a request of one of these, which takes longer for reads or for \
                    writes than each of the others",
        threshold: "4 times as long as the next, and 1 ms longer (the medians of 16 requests of each \
                    or more); at most 1 ms behind it; half of the bios that it has a part of",
        exception: "",
    },
    explains: &[],
    remedies: &[REPLACE_MEMBER, WRITE_MOSTLY],
    rests_on_absence: false,
    detector: || Box::new(Members::default()),
};

const REPLACE_MEMBER: Remedy = Remedy::outside(
    "replace-member",
    Outside::Device,
    "look at that member (its SMART log, its link, what else uses it), and replace it",
);

const WRITE_MOSTLY: Remedy = Remedy::outside(
    "write-mostly",
    Outside::Storage,
    "RAID 1: mark it write-mostly, with write-behind if a bitmap is there \
     (mdadm --write-mostly --write-behind)",
);

/// Requests of each member that its median is of.
const REQUESTS_MIN: usize = 16;

/// A member is no slower by less.
const SLOWER_NS: u64 = 1_000_000;

/// An array ends a bio within this time of its last part.
const BEHIND_NS: u64 = 1_000_000;

/// Members that are looked at of an array.
const MEMBERS_MAX: usize = 64;

#[derive(Debug, Default)]
struct Members {
    arrays: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Bios of the array of which the slow member had a part.
    bios: u64,
    /// The slow members, with how often bios waited for each, what it takes and the others take.
    slow: BTreeMap<Dev, Slow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    bios: u64,
    own_ns: u64,
    others_ns: u64,
}

impl Detector for Members {
    fn section(&mut self, section: &Section, _: &Context) {
        for (array, members) in members_of(section) {
            let Some(upper) = section.disk(array).filter(|d| d.nr_issued == 0) else {
                continue;
            };
            let members: Vec<&Disk> = members.iter().filter_map(|m| section.disk(*m)).collect();
            let slow = [Op::Read, Op::Write].map(|op| slowest(&members, op));
            if slow.iter().any(Option::is_some) {
                let sum = self.arrays.entry(array).or_default();
                sum.bios(section, upper, &members, slow);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.arrays, |sum, dev| sum.finding(dev, whole))
    }
}

/// The devices to which each device is remapped, where these are several with requests.
fn members_of(section: &Section) -> BTreeMap<Dev, BTreeSet<Dev>> {
    let mut all: BTreeMap<Dev, BTreeSet<Dev>> = BTreeMap::new();
    if !section.disks.iter().any(|d| d.has(Action::Remap)) {
        return all;
    }
    let remaps = section
        .events()
        .iter()
        .filter(|e| e.action == Action::Remap);
    for e in remaps {
        // A partition lies on one disk; what it is of lies below.
        let lower = section.disk_of(e.dev);
        let members = all.entry(e.from_dev).or_default();
        if members.len() < MEMBERS_MAX && section.disk(lower).is_some_and(|d| d.nr_issued > 0) {
            members.insert(lower);
        }
    }
    all.retain(|_, members| members.len() > 1);
    all
}

/// A member that takes longer than the others, what it takes, and what the next takes, ns.
type Slowest = (Dev, u64, u64);

fn slowest(members: &[&Disk], op: Op) -> Option<Slowest> {
    let median = |d: &&Disk| {
        let own = d
            .requests
            .iter()
            .filter(|r| r.op() == Some(op) && r.life.bytes > 0);
        let times: Vec<u64> = own.filter_map(Request::whole).collect();
        if times.len() < REQUESTS_MIN {
            return None;
        }
        Some((percentile(50, times)?, d.dev))
    };
    let mut medians: Vec<(u64, Dev)> = members.iter().filter_map(median).collect();
    medians.sort_unstable();
    let [.., (next, _), (most, dev)] = medians[..] else {
        return None;
    };
    let is_slow = is_longer(most, LONG_FACTOR, next) && most - next >= SLOWER_NS;
    is_slow.then_some((dev, most, next))
}

/// When the requests of a member ended, in order of time, with when they began.
fn ends(disk: &Disk) -> Vec<(Time, Time)> {
    let lives = disk.requests.iter();
    let mut ends: Vec<(Time, Time)> = lives
        .filter_map(|r| Some((r.life.complete?, r.start()?)))
        .collect();
    ends.sort_unstable();
    ends
}

impl Sum {
    fn bios(
        &mut self,
        section: &Section,
        upper: &Disk,
        members: &[&Disk],
        slow: [Option<Slowest>; 2],
    ) {
        let ends: BTreeMap<Dev, Vec<(Time, Time)>> =
            members.iter().map(|d| (d.dev, ends(d))).collect();
        for bio in upper.bios.iter().filter(|b| b.is_waited_for()) {
            let (Some(complete), Some(op)) = (bio.complete, bio.op()) else {
                continue;
            };
            let Some((dev, own_ns, others_ns)) = slow[usize::from(op != Op::Read)] else {
                continue;
            };
            // The last that this member ended before the bio did, if it began behind it.
            let last = |dev: &Dev| {
                let ends = &ends[dev];
                let before = ends.partition_point(|(end, _)| *end <= complete);
                let (end, start) = *ends.get(before.checked_sub(1)?)?;
                (start >= bio.queue).then_some(end)
            };
            let Some(end) = last(&dev) else {
                continue;
            };
            self.bios += 1;
            if complete.since(end).0 > BEHIND_NS {
                continue;
            }
            let others = ends.keys().filter(|d| **d != dev).filter_map(last).max();
            let otherwise = others.unwrap_or(Time(bio.queue.0.saturating_add(others_ns)));
            let delay_ns = end.0.saturating_sub(otherwise.0);
            if delay_ns < SLOWER_NS {
                continue;
            }
            let known = self.slow.entry(dev).or_default();
            known.bios += 1;
            known.own_ns = known.own_ns.max(own_ns);
            known.others_ns = known.others_ns.max(others_ns);
            self.harm.add(bio.pid, delay_ns, || {
                instance(section, bio, dev, (end, delay_ns))
            });
        }
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        let (member, slow) = self.slow.iter().max_by_key(|(_, s)| s.bios)?;
        if !is_most(slow.bios, self.bios) {
            return None;
        }
        let (member, slow) = (*member, *slow);
        let total_ns = self.harm.total_ns();
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "bios";
        f.what = format!(
            "{count} of {} bios of {} on {dev} end only when its member {member} has ended its part, {} \
             later on average than the other members.",
            self.bios,
            f.victim_names(),
            time_text(total_ns / count.max(1)),
        );
        f.how = format!(
            "Half of the requests on {member} take {} or more, and on the next {}; an array ends a bio \
             with the last of its members.",
            time_text(slow.own_ns),
            time_text(slow.others_ns)
        );
        f.cause = Some(format!(
            "the member {member}, which takes longer than the others"
        ));
        f.doubt(
            Confidence::Likely,
            "whether the member is slow by itself or by what others ask of it",
        );
        f.remedies = vec![REPLACE_MEMBER, WRITE_MOSTLY];
        Some(f)
    }
}

/// The bio's Q and C, and the end of the slow member's part between them.
fn instance(
    section: &Section,
    bio: &BioLife,
    member: Dev,
    (end, delay_ns): (Time, u64),
) -> Instance {
    let sectors = u64::from(bio.bytes) / SECTOR_BYTES;
    let range = [bio.sector, bio.sector.saturating_add(sectors)];
    let complete = bio.complete.unwrap_or(end);
    let own = [(Action::Queue, bio.queue), (Action::Complete, complete)];
    let mut evidence: Vec<_> = own
        .into_iter()
        .filter_map(|(action, time)| section.find(action, bio.dev, time, range))
        .collect();
    let then = section.places_from(end).take_while(|(_, e)| e.time == end);
    let mut of_member = then.filter(|(_, e)| e.dev == member && e.action == Action::Complete);
    evidence.extend(of_member.next().map(|(place, _)| section.evidence(place)));
    in_order(&mut evidence);
    Instance {
        time: bio.queue,
        delay_ns: Some(delay_ns),
        evidence,
    }
}
