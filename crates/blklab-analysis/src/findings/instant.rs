// SPDX-License-Identifier: MIT OR Apache-2.0
//! A moment of a trace: what was under way then, and what it waited for.

use super::finding::{counted, listed};
use super::section::Section;
use super::spells::{Spell, What};
use super::{Context, Detector, Finding, Whole};
use crate::findings::disk::{Disk, Request};
use crate::lifecycle::BioLife;
use blklab_types::{Dev, Pid, Time};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Things under way at a moment that are kept; of more, the first.
const KEPT_MAX: usize = 1 << 16;

/// Of so many it is told what they waited for.
const TOLD_MAX: usize = 100;

/// Processes that are named of those whose requests the device has.
const OWNERS_NAMED: usize = 3;

/// What was under way at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Instant {
    /// The moment, ns, as it was asked for: from the beginning of the trace, or by its clock.
    pub at_ns: u64,
    /// How many requests, and bios without one, were where.
    pub places: Vec<(Place, u64)>,
    /// Those that were under way longest, a hundred at most, the longest first.
    pub requests: Vec<Held>,
    /// What other parts of the kernel did then: calls, commits, pauses.
    pub calls: Vec<Call>,
    /// How long before the last request or bio ended that did end before, ns.
    pub last_end_ns: Option<u64>,
    /// How long after the next one begins, ns.
    pub next_begin_ns: Option<u64>,
}

/// A request or bio that was under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
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
    /// For how long it was under way by then, ns.
    pub since_ns: u64,
    /// For how long it went on, if its end is shown, ns.
    pub left_ns: Option<u64>,
    /// Where it was.
    pub place: Place,
    /// What it waited for there, in words.
    pub what: String,
}

/// Where a request is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// It has no request or tag yet (Q to G).
    BeforeRequest,
    /// On a plug (G to I).
    Plug,
    /// In the scheduler, or the list in its place (I to D).
    Scheduler,
    /// At the device (D to C).
    Device,
    /// A bio on a device without requests, which hands it on (Q to C).
    Mapped,
}

impl Place {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Place::BeforeRequest => "without a request or tag (Q-G)",
            Place::Plug => "on a plug (G-I)",
            Place::Scheduler => "in the scheduler (I-D)",
            Place::Device => "at the device (D-C)",
            Place::Mapped => "on a device without requests (Q-C)",
        }
    }
}

/// What another part of the kernel did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// In words.
    pub what: String,
    /// For how long it was under way by then, ns.
    pub since_ns: u64,
    /// For how long it went on, ns.
    pub left_ns: u64,
}

/// A request or bio as it was found.
#[derive(Clone, Debug)]
struct Found {
    dev: Dev,
    pid: Pid,
    rwbs: String,
    is_read: bool,
    sector: u64,
    sectors: u64,
    start: Time,
    complete: Option<Time>,
    place: Place,
    is_write_back: bool,
}

/// What a section adds, before names are known.
#[derive(Debug, Default)]
struct Gathered {
    start: Time,
    held: Vec<Found>,
    spells: Vec<Spell>,
    last_end: Option<Time>,
    next_begin: Option<Time>,
    first: Option<Time>,
    last: Option<Time>,
    done: Instant,
}

/// Looks at a moment while a [`Search`](super::Search) goes through a trace.
#[derive(Clone, Debug)]
pub struct Moment {
    at_ns: u64,
    /// Whether it counts from where the clock of the trace is zero, not from its beginning.
    is_of_clock: bool,
    gathered: Rc<RefCell<Gathered>>,
}

impl Moment {
    /// The moment so long after the trace began.
    pub fn after_start(at_ns: u64) -> Moment {
        Moment {
            at_ns,
            is_of_clock: false,
            gathered: Rc::default(),
        }
    }

    /// The moment at which the clock of the trace shows this time.
    pub fn of_clock(at_ns: u64) -> Moment {
        Moment {
            is_of_clock: true,
            ..Moment::after_start(at_ns)
        }
    }

    /// What was under way.
    ///
    /// # Errors
    /// If the trace does not reach there: from when to when it goes, as the moment was given, ns.
    pub fn take(&self) -> Result<Instant, [u64; 2]> {
        let mut g = self.gathered.borrow_mut();
        let is_within = g.first <= Some(self.at(g.start)) && Some(self.at(g.start)) <= g.last;
        if is_within {
            return Ok(std::mem::take(&mut g.done));
        }
        let origin = if self.is_of_clock { Time(0) } else { g.start };
        let shown = |t: Option<Time>| t.unwrap_or_default().0.saturating_sub(origin.0);
        Err([shown(g.first), shown(g.last)])
    }

    fn at(&self, start: Time) -> Time {
        if self.is_of_clock {
            Time(self.at_ns)
        } else {
            Time(start.0.saturating_add(self.at_ns))
        }
    }
}

impl Gathered {
    fn span(&mut self, start: Time, complete: Option<Time>, at: Time) {
        if start > at && self.next_begin.is_none_or(|t| start < t) {
            self.next_begin = Some(start);
        }
        let ended = complete.filter(|c| *c <= at);
        self.last_end = self.last_end.max(ended);
    }

    fn add(&mut self, found: impl FnOnce() -> Found) {
        if self.held.len() < KEPT_MAX {
            self.held.push(found());
        }
    }

    fn disk(&mut self, disk: &Disk, at: Time) {
        for r in &disk.requests {
            let Some(start) = r.start() else { continue };
            self.span(start, r.life.complete, at);
            if is_under_way(start, r.life.complete, at) {
                self.add(|| request(r, start, at));
            }
        }
        for b in &disk.bios {
            self.span(b.queue, b.complete, at);
            if is_under_way(b.queue, b.complete, at) {
                self.add(|| bio(b, disk.nr_issued > 0));
            }
        }
    }
}

fn is_under_way(start: Time, complete: Option<Time>, at: Time) -> bool {
    start <= at && complete.is_none_or(|c| c > at)
}

fn request(r: &Request, start: Time, at: Time) -> Found {
    let has = |time: Option<Time>| time.is_some_and(|t| t <= at);
    let place = match &r.life {
        life if has(life.issue) => Place::Device,
        life if has(life.insert) => Place::Scheduler,
        life if has(life.get) => Place::Plug,
        _ => Place::BeforeRequest,
    };
    Found {
        dev: r.life.dev,
        pid: r.pid,
        rwbs: r.flags.to_string(),
        is_read: r.is_read(),
        sector: r.life.sector,
        sectors: r.sectors(),
        start,
        complete: r.life.complete,
        place,
        is_write_back: !r.is_sync,
    }
}

fn bio(b: &BioLife, has_requests: bool) -> Found {
    Found {
        dev: b.dev,
        pid: b.pid,
        rwbs: b.rwbs.to_string(),
        is_read: b.op() == Some(blklab_types::Op::Read),
        sector: b.sector,
        sectors: u64::from(b.bytes) / blklab_types::SECTOR_BYTES,
        start: b.queue,
        complete: b.complete,
        place: if has_requests {
            Place::BeforeRequest
        } else {
            Place::Mapped
        },
        is_write_back: !b.is_sync(),
    }
}

impl Detector for Moment {
    fn section(&mut self, section: &Section, _: &Context) {
        let at = self.at(section.start);
        let mut g = self.gathered.borrow_mut();
        g.start = section.start;
        let [first, last] = section.span();
        if g.first.is_none() {
            g.first = Some(first);
        }
        g.last = g.last.max(Some(last));
        for disk in &section.disks {
            g.disk(disk, at);
        }
        let then = section.spells.iter().filter(|s| s.from <= at && s.to > at);
        let room = KEPT_MAX.saturating_sub(g.spells.len());
        g.spells.extend(then.take(room).cloned());
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let mut g = self.gathered.borrow_mut();
        let at = self.at(g.start);
        let mut held = std::mem::take(&mut g.held);
        held.sort_by_key(|f| (f.start, f.dev, f.sector));
        let mut places: BTreeMap<Place, u64> = BTreeMap::new();
        for f in &held {
            *places.entry(f.place).or_default() += 1;
        }
        let longest = held.iter().take(TOLD_MAX);
        let requests = longest.map(|f| told(f, &held, at, whole)).collect();
        let mut spells = std::mem::take(&mut g.spells);
        spells.sort_by_key(|s| s.from);
        let calls = spells.iter().map(|s| call(s, at, whole)).collect();
        g.done = Instant {
            at_ns: self.at_ns,
            places: places.into_iter().collect(),
            requests,
            calls,
            last_end_ns: g.last_end.map(|t| at.since(t).0),
            next_begin_ns: g.next_begin.map(|t| t.since(at).0),
        };
        Vec::new()
    }
}

fn call(spell: &Spell, at: Time, whole: &Whole<'_>) -> Call {
    // Of a task that sleeps it is not known at the moment who will wake it.
    let what = match &spell.what {
        What::OffCpu(o) if o.woken > at => format!("{} sleeps", whole.who(spell.pid)),
        _ => spell.words(&whole.sums.names),
    };
    Call {
        what,
        since_ns: at.since(spell.from).0,
        left_ns: spell.to.since(at).0,
    }
}

fn told(f: &Found, all: &[Found], at: Time, whole: &Whole<'_>) -> Held {
    let others = |place: Place| {
        let is_other = move |o: &&Found| o.dev == f.dev && o.place == place;
        all.iter()
            .filter(is_other)
            .filter(move |o| !std::ptr::eq(*o, f))
    };
    let at_device = || composed(others(Place::Device), whole);
    let what = match f.place {
        Place::BeforeRequest => {
            let in_use = [Place::Plug, Place::Scheduler, Place::Device];
            let nr: usize = in_use.into_iter().map(|p| others(p).count()).sum();
            match nr {
                0 => "waits for a request or tag (Q-G), though the trace shows none in use"
                    .to_owned(),
                nr => format!(
                    "waits for a request or tag (Q-G): {} in use, and {} more without one",
                    counted(nr as u64, "requests"),
                    others(Place::BeforeRequest).count()
                ),
            }
        }
        Place::Plug => "waits on a plug (G-I) for its process to submit what it gathers".to_owned(),
        Place::Scheduler => match at_device() {
            None => "waits in the scheduler (I-D) while the device has nothing to do".to_owned(),
            Some(text) => format!("waits in the scheduler (I-D): the device has {text}"),
        },
        Place::Device => match at_device() {
            None => "is at the device (D-C), which has nothing else".to_owned(),
            Some(text) => format!("is at the device (D-C), which also has {text}"),
        },
        Place::Mapped => "waits for what lies below this device (Q-C)".to_owned(),
    };
    Held {
        dev: f.dev,
        pid: f.pid,
        rwbs: f.rwbs.clone(),
        sector: f.sector,
        sectors: f.sectors,
        since_ns: at.since(f.start).0,
        left_ns: f.complete.map(|c| c.since(at).0),
        place: f.place,
        what,
    }
}

/// Requests in words: how many read and write, and whose most are. None if there are none.
fn composed<'a>(all: impl Iterator<Item = &'a Found>, whole: &Whole<'_>) -> Option<String> {
    let (mut reads, mut writes, mut write_back) = (0, 0, 0);
    let mut owners: BTreeMap<Pid, u64> = BTreeMap::new();
    for f in all {
        if f.is_read {
            reads += 1;
        } else if f.is_write_back {
            write_back += 1;
        } else {
            writes += 1;
        }
        *owners.entry(f.pid).or_default() += 1;
    }
    let kinds = [
        (reads, "reads"),
        (writes, "sync writes"),
        (write_back, "writes nobody waits for"),
    ];
    let kinds = kinds.into_iter().filter(|(n, _)| *n > 0);
    let kinds: Vec<String> = kinds.map(|(n, what)| counted(n, what)).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut owners: Vec<(Pid, u64)> = owners.into_iter().collect();
    owners.sort_by_key(|(pid, n)| (std::cmp::Reverse(*n), *pid));
    let named = owners.iter().take(OWNERS_NAMED);
    let mut named: Vec<String> = named
        .map(|(pid, n)| format!("{n} of {}", whole.who(*pid)))
        .collect();
    let rest: u64 = owners.iter().skip(OWNERS_NAMED).map(|(_, n)| n).sum();
    if rest > 0 {
        named.push(format!("{rest} of others"));
    }
    let kinds = listed(kinds.into_iter());
    Some(format!("{kinds} ({})", named.join(", ")))
}
