// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that the block layer cuts into many, since a limit of the queue or the
//! geometry of the device forbids larger ones.

use crate::findings::harm::{of_disks, parties};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::sums::{add, is_most};
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Rule, Whole, counted,
    time_text,
};
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Pid, SECTOR_BYTES, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "split",
    what: "bios are cut into many commands, by a limit or by the geometry of the device",
    rule: Rule {
        condition: "bios are cut (X)",
        threshold: "10 % of a device's bios or more, into 4 pieces or more on average; or half of \
                    them or more, of which most leave a rest of an eighth of the piece before it \
                    or less",
        exception: "",
    },
    explains: &[
        "deep-queue",
        "no-request-free",
        "missed-merge",
        "behind-other",
        "device-slow",
    ],
    remedies: &[LARGER_COMMANDS, SMALLER_IO, RAISE_LIMIT],
    rests_on_absence: false,
    detector: || Box::new(Splits::default()),
};

const LARGER_COMMANDS: Remedy = Remedy::set(
    "larger-commands",
    "queue/max_sectors_kb",
    "",
    "one command for an I/O",
);

const SMALLER_IO: Remedy = Remedy::outside(
    "smaller-ios",
    Outside::Applications,
    "smaller I/Os: the device takes no larger ones",
);

const RAISE_LIMIT: Remedy = Remedy::act(
    "raise-limit",
    Act::LargestRequests,
    "raise the limit that cuts (max_sectors_kb up to max_hw_sectors_kb), or begin I/Os at \
     multiples of the device's chunk",
);

/// Pieces of a bio on average, below which nobody needs to hear of it: a large direct
/// I/O is cut in two or three by any limit.
const PIECES_MIN: f64 = 4.0;

/// Less than this part of the bios is not worth a word.
const SHARE_MIN: f64 = 0.1;

/// The last piece is a mere rest if it is so many times smaller than the one before.
const REST_FACTOR: u64 = 8;

/// Of the bios so large a part, where each costs a command for a rest.
const REST_SHARE_MIN: f64 = 0.5;

#[derive(Debug, Default)]
struct Splits {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    bios: u64,
    cut: u64,
    pieces: u64,
    /// Bios that leave a rest, and the sectors of all rests.
    rests: (u64, u64),
    victims: BTreeMap<Pid, (u64, u64)>,
    /// How large pieces are, and how often; the last ones of bios are left out.
    sizes: BTreeMap<u64, u64>,
    /// What the places of cuts have in common: the largest power of two that divides.
    boundary: Option<u64>,
    cuts: u64,
    first: Option<Instance>,
    took_ns: u64,
    worst_ns: u64,
    costs: bool,
}

/// A bio that is being cut.
#[derive(Debug)]
struct Cut {
    begin: u64,
    end: u64,
    at: Vec<u64>,
    queue: Time,
    pid: Pid,
    evidence: Vec<usize>,
}

impl Cut {
    /// The sectors of the last piece, and of the one before it.
    fn last_two(&self) -> [u64; 2] {
        let mut ends = self.at.iter().rev().copied();
        let last = ends.next().unwrap_or(self.end);
        [self.end - last, last - ends.next().unwrap_or(self.begin)]
    }
}

impl Detector for Splits {
    fn section(&mut self, section: &Section, _: &Context) {
        let mut open: BTreeMap<(Dev, Pid), Cut> = BTreeMap::new();
        for disk in &section.disks {
            if disk.shown.nr_data_queued > 0 {
                self.disks.entry(disk.dev).or_default().bios += disk.shown.nr_data_queued;
            }
        }
        if !section.disks.iter().any(|d| d.has(Action::Split)) {
            return;
        }
        for (place, e) in section.events().iter().enumerate() {
            match e.action {
                Action::Queue if e.bytes > 0 => {
                    let cut = Cut {
                        begin: e.sector,
                        end: e.end_sector(),
                        at: Vec::new(),
                        queue: e.time,
                        pid: e.pid,
                        evidence: vec![place],
                    };
                    if let Some(cut) = open.insert((e.dev, e.pid), cut) {
                        self.end(section, e.dev, cut);
                    }
                }
                Action::Split => {
                    if let Some(cut) = open.get_mut(&(e.dev, e.pid)) {
                        note(cut, place, e);
                    }
                }
                _ => {}
            }
        }
        for ((dev, _), cut) in open {
            self.end(section, dev, cut);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

fn note(cut: &mut Cut, place: usize, e: &Event) {
    if cut.begin < e.arg && e.arg < cut.end && cut.at.last().is_none_or(|at| *at < e.arg) {
        cut.at.push(e.arg);
        if cut.evidence.len() < 5 {
            cut.evidence.push(place);
        }
    }
}

impl Splits {
    fn end(&mut self, section: &Section, dev: Dev, cut: Cut) {
        if cut.at.is_empty() {
            return;
        }
        let sum = self.disks.entry(dev).or_default();
        let pieces = cut.at.len() as u64 + 1;
        sum.cut += 1;
        sum.pieces += pieces;
        let mut before = cut.begin;
        for at in &cut.at {
            *sum.sizes.entry(at - before).or_default() += 1;
            before = *at;
            let own = 1 << at.trailing_zeros().min(40);
            sum.boundary = Some(sum.boundary.map_or(own, |b| b.min(own)));
            sum.cuts += 1;
        }
        let [rest, before_it] = cut.last_two();
        if rest * REST_FACTOR <= before_it {
            sum.rests.0 += 1;
            sum.rests.1 += rest;
        }
        // It ends with the last of its pieces.
        let disk = section.disk(dev);
        let last = disk.into_iter().flat_map(|d| {
            let upto = d
                .issued()
                .partition_point(|r| r.life.issue < Some(cut.queue));
            let then = d.issued()[upto..].iter().take(4 * pieces as usize);
            then.filter(|r| r.queue == Some(cut.queue) && r.pid == cut.pid)
                .filter_map(|r| r.life.complete)
        });
        // Or with the last bio, where the device takes them as they are.
        let bios = disk.into_iter().flat_map(|d| {
            let from = d.bios.partition_point(|b| b.queue < cut.queue);
            let then = d.bios[from..].iter().take_while(|b| b.queue == cut.queue);
            then.filter(|b| b.pid == cut.pid).filter_map(|b| b.complete)
        });
        let took = last.chain(bios).max().map(|c| c.since(cut.queue).0);
        sum.costs |= took.is_some();
        add(&mut sum.took_ns, took.unwrap_or(0));
        sum.worst_ns = sum.worst_ns.max(took.unwrap_or(0));
        let (n, ns) = sum.victims.entry(cut.pid).or_default();
        *n += 1;
        add(ns, took.unwrap_or(0));
        let evidence = || -> Vec<Evidence> {
            cut.evidence
                .iter()
                .map(|place| section.evidence(*place))
                .collect()
        };
        sum.first.get_or_insert_with(|| Instance {
            time: cut.queue,
            delay_ns: took,
            evidence: evidence(),
        });
    }
}

impl Sum {
    fn finding(self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mean = self.pieces as f64 / self.cut.max(1) as f64;
        let is_part = |n: u64, share: f64| n as f64 >= share * self.bios as f64;
        let leave_rests = is_most(self.rests.0, self.cut) && is_part(self.cut, REST_SHARE_MIN);
        if !leave_rests && (mean < PIECES_MIN || !is_part(self.cut, SHARE_MIN)) {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        f.count = self.cut;
        f.of = "bios cut";
        f.extra_commands = Some(self.pieces - self.cut);
        if self.costs {
            (f.total_ns, f.worst_ns) = (Some(self.took_ns), Some(self.worst_ns));
        } else {
            f.missing
                .push("completions (C): what it costs is not shown".to_owned());
        }
        f.victims = parties(&self.victims, whole);
        f.first = self.first.clone();
        let who = f.victim_names();
        let (size, times) = self.sizes.iter().max_by_key(|(_, n)| **n)?;
        let (size, times) = (*size, *times);
        f.what = format!(
            "Each I/O of {who} is cut into {mean:.1} commands, mostly of {size} sectors \
             ({:.0} KiB): {}.",
            (size * SECTOR_BYTES) as f64 / 1024.0,
            counted(self.pieces - self.cut, "commands more than I/Os")
        );
        if leave_rests {
            f.what += &format!(
                " {} leave a rest of {} sectors on average, which costs a command of its own.",
                counted(self.rests.0, "I/Os"),
                self.rests.1 / self.rests.0.max(1)
            );
        }
        let odd: u64 = self.sizes.values().sum::<u64>() - times;
        self.explain(&mut f, whole.context, size, odd);
        f.figures = vec![
            ("commands of an I/O", mean, ""),
            ("size of most pieces", size as f64, "sectors"),
            ("pieces of another size", odd as f64, ""),
        ];
        Some(f)
    }

    fn explain(&self, f: &mut Finding, context: &Context, size: u64, odd: u64) {
        if let Some(took) = f.total_ns {
            f.how = format!(
                "An I/O takes {} with all its pieces. ",
                time_text(took / self.cut)
            );
        }
        let is_limit = context.sectors_max() == Some(size);
        let chunk = context.queue("chunk_sectors").filter(|n| *n > 0);
        let boundary = self.boundary.filter(|b| *b >= 8 && *b == size);
        if let (true, Some(hw)) = (is_limit, context.queue("max_hw_sectors_kb")) {
            let kb = size / 2;
            f.cause = Some(format!("max_sectors_kb = {kb}"));
            f.how += &format!(
                "max_sectors_kb is {kb}; the device takes {hw} KiB at a time (max_hw_sectors_kb)."
            );
            if hw > kb {
                f.remedies.push(LARGER_COMMANDS.to(hw));
            } else {
                f.remedies.push(SMALLER_IO);
            }
            return;
        }
        match (chunk, boundary) {
            (Some(chunk), _) if chunk == size => {
                f.cause = Some(format!("chunk_sectors = {chunk}"));
                f.how += &format!("No command may cross a multiple of {chunk} sectors.");
            }
            (_, Some(b)) => {
                f.cause = Some(format!("a limit of the device at multiples of {b} sectors"));
                f.how += &format!(
                    "Every cut is at a multiple of {b} sectors{}: a chunk or stripe of the device, \
                     or a limit of that size.",
                    match odd {
                        0 => "",
                        _ =>
                            ", and the first piece of an I/O that does not begin at one is shorter",
                    }
                );
            }
            _ => {
                f.cause = Some(format!("a limit of {size} sectors"));
                f.how += &format!(
                    "Pieces are counted from the beginning of the I/O: a limit of size or \
                     segments, {size} sectors."
                );
            }
        }
        f.doubt(
            Confidence::Likely,
            "the limits of the queue: max_sectors_kb, max_segments, chunk_sectors",
        );
        f.remedies.push(RAISE_LIMIT);
    }
}
