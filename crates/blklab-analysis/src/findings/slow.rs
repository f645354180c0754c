// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single requests with their lives: the slowest of a trace, or those at a sector.

use super::disk::{Disk, Request};
use super::finding::Evidence;
use super::section::Section;
use super::spells::{Spell, What};
use super::waits::Wait;
use super::{Context, Detector, Finding, Whole};
use crate::names::Who;
use blklab_types::{Dev, Pid, Time, visible};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// So many, the slowest first.
    Slowest(usize),
    /// Those that have something of a sector, in order of time, so many at most.
    At(u64, usize),
    /// The one of an event, by its number in the trace from 1.
    OfEvent(u64),
}

/// A request and what happened meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// Whose it is.
    pub pid: Pid,
    /// Direction and flags.
    pub rwbs: String,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Bios in it.
    pub bios: u32,
    /// From the beginning to C, if it ended, ns.
    pub whole_ns: Option<u64>,
    /// From Q to G, ns.
    pub get_ns: u64,
    /// On a plug, ns.
    pub plug_ns: u64,
    /// From I to D while the device was idle, ns.
    pub idle_ns: u64,
    /// From I to D while it was busy, ns.
    pub ahead_ns: u64,
    /// From D to C: alone, ns.
    pub alone_ns: u64,
    /// From D to C: the rest, ns.
    pub behind_ns: u64,
    /// While the device emptied its cache, ns.
    pub flush_ns: u64,
    /// Reads and writes that went to the device between its beginning and its D.
    pub issued_before: [u64; 2],
    /// Requests at the device when it got there.
    pub depth_at_issue: Option<u32>,
    /// What other parts of the kernel did meanwhile, that with most time in common first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Its events.
    pub events: Vec<Evidence>,
    #[serde(skip)]
    spells: Vec<Spell>,
    #[serde(skip)]
    start: Time,
    #[serde(skip)]
    rank: Rank,
}

/// Who waits for a request: the slowest are those of the highest rank that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Nobody, as far as is known.
    Nobody,
    /// Whoever has the device's cache emptied.
    Flush,
    /// A process, for data.
    Data,
}

fn rank(r: &Request) -> Rank {
    match r {
        r if r.is_flush() => Rank::Flush,
        r if r.is_sync => Rank::Data,
        _ => Rank::Nobody,
    }
}

/// What another part of the kernel did while a request lived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// In words.
    pub what: String,
    /// How long it was, ns.
    pub ns: u64,
    /// For how long of the request's life, ns; 0 if it was right behind it.
    pub overlap_ns: u64,
}

/// Of so many other things it is said that they went on meanwhile.
const BESIDE_MAX: usize = 6;

/// Whoever waited for a request runs again within this time of its end.
const BEHIND_MAX_NS: u64 = 100_000_000;

/// Gathers lives while a [`Search`](super::Search) goes through a trace.
#[derive(Clone, Debug)]
pub struct Lives {
    which: Which,
    whose: Option<Who>,
    /// The processes of that name, as far as the trace has named them.
    named: BTreeSet<Pid>,
    found: Rc<RefCell<Vec<Life>>>,
}

impl Lives {
    /// None yet.
    pub fn new(which: Which) -> Lives {
        Lives {
            which,
            whose: None,
            named: BTreeSet::new(),
            found: Rc::default(),
        }
    }

    /// None yet; only those of a process.
    pub fn whose(which: Which, who: Who) -> Lives {
        Lives {
            whose: Some(who),
            ..Lives::new(which)
        }
    }

    /// What was found.
    pub fn take(&self) -> Vec<Life> {
        self.found.take()
    }

    fn wants(&self, section: &Section, r: &Request) -> bool {
        let is_theirs = match &self.whose {
            None => true,
            Some(Who::Pid(pid)) => r.pid == *pid,
            Some(Who::Comm(_)) => self.named.contains(&r.pid),
        };
        is_theirs && self.is_asked(section, r)
    }

    fn is_asked(&self, section: &Section, r: &Request) -> bool {
        match self.which {
            Which::Slowest(_) => r.whole().is_some(),
            Which::At(sector, _) => {
                sector == r.life.sector || (r.life.sector..r.end()).contains(&sector)
            }
            Which::OfEvent(number) => {
                section.of_request(r).iter().any(|e| e.number == number)
                    || section.event_is_of(number, r)
            }
        }
    }
}

impl Detector for Lives {
    fn process(&mut self, pid: Pid, comm: &str) {
        if let Some(who @ Who::Comm(_)) = &self.whose {
            if who.means(pid, Some(&visible(comm))) {
                self.named.insert(pid);
            } else {
                self.named.remove(&pid);
            }
        }
    }

    fn section(&mut self, section: &Section, _: &Context) {
        let mut found = self.found.borrow_mut();
        for disk in &section.disks {
            let mut wanted: Vec<usize> = (0..disk.requests.len())
                .filter(|i| self.wants(section, &disk.requests[*i]))
                .collect();
            if let Which::Slowest(n) = self.which {
                let rank = |i: &usize| rank(&disk.requests[*i]);
                let best = wanted.iter().map(rank).max();
                wanted.retain(|i| Some(rank(i)) == best);
                wanted.sort_by_key(|i| std::cmp::Reverse(disk.requests[*i].whole()));
                wanted.truncate(n);
            }
            found.extend(wanted.into_iter().map(|i| life(section, disk, i)));
        }
        match self.which {
            Which::Slowest(n) => {
                let best = found.iter().map(|l| l.rank).max();
                found.retain(|l| Some(l.rank) == best);
                found.sort_by_key(|l| (std::cmp::Reverse(l.whole_ns), l.start));
                found.truncate(n);
            }
            Which::At(_, n) => {
                found.sort_by_key(|l| l.start);
                found.truncate(n);
            }
            Which::OfEvent(_) => found.truncate(1),
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        for life in self.found.borrow_mut().iter_mut() {
            let end = Time(life.start.0.saturating_add(life.whole_ns.unwrap_or(0)));
            let words = |spell: Spell| Beside {
                what: spell.words(&whole.sums.names),
                ns: spell.ns(),
                overlap_ns: spell.within(life.start, end),
            };
            life.beside = life.spells.drain(..).map(words).collect();
        }
        Vec::new()
    }
}

fn life(section: &Section, disk: &Disk, place: usize) -> Life {
    let r = &disk.requests[place];
    let none = Wait::default();
    let w = disk.waits.get(place).unwrap_or(&none);
    let mut before = [0; 2];
    if let (Some(from), Some(to)) = (r.start(), r.life.issue) {
        for other in disk.issued_between(from, to).map(|i| &disk.requests[i]) {
            before[usize::from(!other.is_read())] += 1;
        }
    }
    Life {
        dev: disk.dev,
        pid: r.pid,
        rwbs: r.flags.to_string(),
        sector: r.life.sector,
        sectors: r.sectors(),
        bios: r.life.nr_bios,
        whole_ns: r.whole(),
        get_ns: w.get_ns,
        plug_ns: w.plug_ns,
        idle_ns: w.idle_ns,
        ahead_ns: w.ahead_ns,
        alone_ns: w.alone_ns,
        behind_ns: w.behind_ns,
        flush_ns: w.flush_ns,
        issued_before: before,
        depth_at_issue: disk.depth_at_issue.get(place).copied(),
        beside: Vec::new(),
        events: section.of_request(r),
        spells: beside(section, r),
        start: r.start().unwrap_or_default(),
        rank: rank(r),
    }
}

/// What went on while a request lived, as far as it may have to do with it.
fn beside(section: &Section, r: &Request) -> Vec<Spell> {
    let (Some(start), Some(end)) = (r.start(), r.life.complete) else {
        return Vec::new();
    };
    let concerns = |s: &&Spell| match &s.what {
        What::Wbt(w) if w.step == 0 => false,
        What::Command(c) => c.is_at(r.life.sector),
        What::OffCpu(_) => s.pid == r.pid && s.to >= end && s.to.since(end).0 <= BEHIND_MAX_NS,
        _ => section.disk_of(s.dev) == r.life.dev,
    };
    let meanwhile = section.spells.iter().filter(|s| s.within(start, end) > 0);
    let mut all: Vec<&Spell> = meanwhile.filter(concerns).collect();
    all.sort_by_key(|s| (std::cmp::Reverse(s.within(start, end)), s.from));
    all.truncate(BESIDE_MAX);
    all.into_iter().cloned().collect()
}
