// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes that begin or end inside a block or stripe of the device, which has to read
//! the rest before it can write.

use crate::findings::disk::Disk;
use crate::findings::harm::Harm;
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole,
};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, Pid, SECTOR_BYTES};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "misaligned",
    what: "writes begin or end inside a block or stripe of the device: it reads before it writes",
    rule: Rule {
        condition: "writes are no multiple of physical_block_size (of 4 KiB, if that is not \
                    known, by their length alone), or writes as large as a stripe \
                    (optimal_io_size) begin inside one; on an array (md) whose stripe is not \
                    known, writes of one size begin at multiples of it in one place and inside in \
                    another",
        threshold: "5 % of a device's writes or more, 2 at least",
        exception: "",
    },
    explains: &[],
    remedies: &[ALIGNED_STRIPES, WHOLE_BLOCKS, ALIGNED_FILES],
    rests_on_absence: false,
    detector: || Box::new(Misaligned::default()),
};

const ALIGNED_STRIPES: Remedy = Remedy::outside(
    "aligned-to-stripes",
    Outside::Storage,
    "begin files, partitions and allocation groups at multiples of the stripe (mkfs \
     su/sw or stride, partition start)",
);

const WHOLE_BLOCKS: Remedy = Remedy::outside(
    "whole-blocks",
    Outside::Applications,
    "write whole blocks: pad metadata, align partitions and files",
);

const ALIGNED_FILES: Remedy = Remedy::outside(
    "aligned-files",
    Outside::Storage,
    "begin files and allocation groups at multiples of the stripe (mkfs.xfs su/sw)",
);

/// Less than this part of the writes is not worth a word.
const SHARE_MIN: f64 = 0.05;

/// Writes so often.
const COUNT_MIN: u64 = 2;

/// Sectors of a block of today's disks.
const BLOCK_SECTORS: u64 = 8;

/// Writes of arrays from this size on may fill stripes.
const LARGE_SECTORS: u64 = 128;

/// Major number of md (`Documentation/admin-guide/devices.txt`).
const MD_MAJOR: u16 = 9;

#[derive(Debug, Default)]
struct Misaligned {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    writes: u64,
    block: Harm,
    block_sizes: BTreeMap<(u64, u64), u64>,
    stripe: Harm,
    stripe_sectors: u64,
    /// By size of large writes: those that begin at a multiple of it, the others, with
    /// the place inside of the first, and one of each.
    phases: BTreeMap<u64, Phases>,
}

#[derive(Debug, Default)]
struct Phases {
    aligned: Harm,
    inside: Harm,
    at: u64,
}

impl Detector for Misaligned {
    fn section(&mut self, section: &Section, context: &Context) {
        let block = context
            .queue("physical_block_size")
            .map(|b| b / SECTOR_BYTES);
        let stripe = context.queue("optimal_io_size").map(|b| b / SECTOR_BYTES);
        let stripe = stripe.filter(|s| *s > BLOCK_SECTORS);
        let is_write =
            |e: &Event| e.bytes > 0 && e.rwbs.op() == Some(Op::Write) && !e.rwbs.has(Rwbs::PC);
        for (place, e) in section.events().iter().enumerate() {
            if !matches!(e.action, Action::Issue | Action::Queue) || !is_write(e) {
                continue;
            }
            // What the device gets, if that is shown; else what is queued.
            let disk = section.disk(e.dev);
            let shown = disk.filter(|d| e.action == Action::Issue || !d.has(Action::Issue));
            if let Some(disk) = shown {
                let sum = self.disks.entry(e.dev).or_default();
                sum.add(section, place, e, owner(disk, e), [block, stripe]);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let all = std::mem::take(&mut self.disks);
        let found = all
            .into_iter()
            .flat_map(|(dev, sum)| sum.findings(dev, whole));
        found.collect()
    }
}

/// Who wrote: of a D, who queued its request, if that is shown.
fn owner(disk: &Disk, e: &Event) -> Pid {
    let issued = disk.issued();
    let first = issued.partition_point(|r| r.life.issue < Some(e.time));
    let mut then = issued[first..]
        .iter()
        .take_while(|r| r.life.issue == Some(e.time));
    let own = then.find(|r| r.life.sector == e.sector && r.is_owner_known);
    own.map_or(e.pid, |r| r.pid)
}

fn shows(section: &Section, place: usize, e: &Event) -> Instance {
    Instance {
        time: e.time,
        delay_ns: None,
        evidence: vec![section.evidence(place)],
    }
}

impl Sum {
    fn add(
        &mut self,
        section: &Section,
        place: usize,
        e: &Event,
        pid: Pid,
        [block, stripe]: [Option<u64>; 2],
    ) {
        let (sector, length) = (e.sector, e.nr_sectors());
        let instance = || shows(section, place, e);
        self.writes += 1;
        let own = block.unwrap_or(BLOCK_SECTORS).max(1);
        let begins_inside = block.is_some() && sector % own != 0;
        if length % own != 0 || begins_inside {
            self.block.add(pid, 0, instance);
            *self.block_sizes.entry((sector, length)).or_default() += 1;
            if self.block_sizes.len() > 64 {
                self.block_sizes.pop_last();
            }
        }
        if let Some(stripe) = stripe {
            self.stripe_sectors = stripe;
            if length >= stripe && sector % stripe != 0 {
                self.stripe.add(pid, 0, instance);
            }
        } else if e.dev.major == MD_MAJOR && length >= LARGE_SECTORS && length.is_power_of_two() {
            let phases = self.phases.entry(length).or_default();
            match sector % length {
                0 => phases.aligned.add(pid, 0, instance),
                at => {
                    phases.at = at;
                    phases.inside.add(pid, 0, instance);
                }
            }
        }
    }

    fn findings(self, dev: Dev, whole: &Whole<'_>) -> Vec<Finding> {
        let enough = |n: u64| n >= COUNT_MIN && n as f64 >= SHARE_MIN * self.writes as f64;
        let mut found = Vec::new();
        if enough(self.block.count()) {
            found.push(self.of_block(dev, whole));
        }
        if enough(self.stripe.count()) {
            let mut f = finding(dev, &self.stripe, whole);
            f.what = format!(
                "{} of {} writes of {} are as large as a stripe and begin inside one.",
                self.stripe.count(),
                self.writes,
                f.victim_names()
            );
            f.how = format!(
                "A stripe has {} sectors (optimal_io_size). Each such write fills two in part, and \
                 an array with parity reads what is missing before it writes.",
                self.stripe_sectors
            );
            f.remedies = vec![ALIGNED_STRIPES];
            found.push(f);
        }
        for (size, p) in &self.phases {
            if enough(p.inside.count()) && p.aligned.count() >= COUNT_MIN {
                found.push(phase(dev, *size, p, whole));
            }
        }
        found
    }

    fn of_block(&self, dev: Dev, whole: &Whole<'_>) -> Finding {
        let mut f = finding(dev, &self.block, whole);
        let who = f.victim_names();
        let mut places: Vec<(&(u64, u64), &u64)> = self.block_sizes.iter().collect();
        places.sort_by_key(|(place, n)| (std::cmp::Reverse(**n), **place));
        let shown = places
            .iter()
            .take(3)
            .map(|((sector, n), times)| match times {
                1 => format!("{sector} + {n}"),
                times => format!("{sector} + {n} ({times} times)"),
            });
        f.what = format!(
            "{} of {} writes are no multiple of a block: {}, by {who}.",
            self.block.count(),
            self.writes,
            shown.collect::<Vec<_>>().join(", ")
        );
        let known = whole.context.queue("physical_block_size");
        f.how = format!(
            "A device with blocks of {} bytes reads the block, changes it and writes it back, \
             which costs a disk a revolution.",
            known.unwrap_or(BLOCK_SECTORS * SECTOR_BYTES)
        );
        if known.is_none() {
            f.doubt(
                Confidence::Possible,
                "physical_block_size of the device: with blocks of 512 bytes nothing is wrong",
            );
        }
        if whole.disk(dev).nr(Action::Complete) == 0 {
            f.missing
                .push("completions (C): what it costs is not shown".to_owned());
        }
        f.remedies = vec![WHOLE_BLOCKS];
        f
    }
}

fn finding(dev: Dev, harm: &Harm, whole: &Whole<'_>) -> Finding {
    let mut f = Finding::new(KIND.name, dev, "");
    harm.fill(&mut f, whole);
    (f.total_ns, f.worst_ns, f.worst) = (None, None, None);
    f.of = "writes";
    f.confidence = Confidence::Likely;
    f
}

fn phase(dev: Dev, size: u64, p: &Phases, whole: &Whole<'_>) -> Finding {
    let mut f = finding(dev, &p.inside, whole);
    f.what = format!(
        "Writes of {} KiB begin at multiples of their size in one place ({} of them) and {} \
         sectors inside in another ({}).",
        size / 2,
        p.aligned.count(),
        p.at,
        p.inside.count()
    );
    f.how = "If that size is a stripe of the array, the latter fill two stripes in part each, and \
             an array with parity reads what is missing before it writes."
        .to_owned();
    f.doubt(
        Confidence::Possible,
        "the stripe of the array (optimal_io_size in the context)",
    );
    f.missing
        .push("the members' traces: reads there while only writes come here".to_owned());
    f.remedies = vec![ALIGNED_FILES];
    f
}
