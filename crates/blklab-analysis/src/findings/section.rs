// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stretch of a trace, taken apart: what detectors look at.
//!
//! A trace is looked at in sections, so that memory is bound whatever its length. A
//! section ends when it is full and where time goes back, which is where whoever put
//! the trace together began another capture.

use super::context::scheduler_of_message;
use super::disk::{Disk, Request, Shown};
use super::divide::divide;
use super::finding::{Evidence, Instance};
use super::spells::{Spell, Tracker, What};
use super::stacks::Stacks;
use super::threads::is_flusher;
use super::who_waits::{self, Told};
use crate::lifecycle::{BioLife, RequestLife};
use crate::names::Names;
use blklab_trace::{Action, Event, KernelEvent, Rwbs};
use blklab_types::{Dev, Op, Pid, Time};
use std::collections::BTreeMap;

/// Events of a section.
pub(super) const EVENTS_MAX: usize = 1 << 19;

/// Time that goes back by more than this begins another capture; less is the disorder
/// of processors whose buffers were printed one after the other.
pub(super) const ANOTHER_CAPTURE_NS: u64 = 5_000_000;

/// Devices whose disk is noted.
const DEVICES_MAX: usize = 4096;

/// A section.
#[derive(Debug, Default)]
pub struct Section {
    /// When the trace began.
    pub start: Time,
    /// Number of its first event, from 0.
    first: u64,
    events: Vec<Event>,
    /// Places of the events in order of time, where they are not.
    order: Option<Vec<u32>>,
    /// How tasks came to their Q.
    stacks: Stacks,
    /// The devices, by number.
    pub disks: Vec<Disk>,
    /// What other parts of the kernel did, in order of its end.
    pub spells: Vec<Spell>,
    /// The disk of each partition, as far as the trace shows it.
    disk_of: BTreeMap<Dev, Dev>,
}

impl Section {
    /// Its events, in the order of the trace.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The device of a number.
    pub fn disk(&self, dev: Dev) -> Option<&Disk> {
        let place = self.disks.binary_search_by_key(&dev, |d| d.dev).ok()?;
        Some(&self.disks[place])
    }

    /// The device whose requests those of another are: of a partition, its disk. File systems
    /// and the page cache call a device by the one that is mounted.
    pub fn disk_of(&self, dev: Dev) -> Dev {
        let has_requests = |dev: Dev| self.disk(dev).is_some_and(|d| d.nr_issued > 0);
        match self.disk_of.get(&dev) {
            Some(disk) if !has_requests(dev) => *disk,
            _ => dev,
        }
    }

    /// Whether the stack of any Q is known.
    pub fn has_stacks(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// Through which functions a task came to queue the first bio of a request, if that is known.
    pub fn stack_of(&self, r: &Request) -> Option<&str> {
        let sectors = [r.life.sector, r.end()];
        let place = self.find_place(Action::Queue, r.life.dev, r.queue?, sectors)?;
        self.stacks.at(place)
    }

    /// From the first event to the last.
    pub fn span(&self) -> [Time; 2] {
        let times = || self.events.iter().map(|e| e.time);
        [times().min(), times().max()].map(Option::unwrap_or_default)
    }

    /// The event at a place among [`Section::events`].
    pub fn evidence(&self, place: usize) -> Evidence {
        Evidence {
            number: self.first + place as u64 + 1,
            event: self.events[place],
            text: None,
            stack: self.stacks.at(place).map(str::to_owned),
        }
    }

    /// The event of this kind that happened on a device at a time and has something
    /// of the sectors from `begin` to before `end`.
    pub fn find(
        &self,
        action: Action,
        dev: Dev,
        time: Time,
        sectors: [u64; 2],
    ) -> Option<Evidence> {
        let place = self.find_place(action, dev, time, sectors)?;
        Some(self.evidence(place))
    }

    fn find_place(
        &self,
        action: Action,
        dev: Dev,
        time: Time,
        [begin, end]: [u64; 2],
    ) -> Option<usize> {
        let mut then = self.places_from(time).take_while(|(_, e)| e.time == time);
        let found = then.find(|(_, e)| {
            let is_there = overlap([e.sector, e.end_sector()], [begin, end]);
            e.action == action && e.dev == dev && is_there
        });
        found.map(|(place, _)| place)
    }

    /// The events from a time on, in order of time, each with its place among
    /// [`Section::events`].
    pub fn places_from(&self, time: Time) -> impl Iterator<Item = (usize, &Event)> {
        let place = |i: usize| self.order.as_ref().map_or(i, |order| order[i] as usize);
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.events[place(middle)].time < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let places = (low..self.events.len()).map(place);
        places.map(|place| (place, &self.events[place]))
    }

    /// The events of a request that show where its time went: Q or G, S, I, D, C.
    pub fn of_request(&self, r: &Request) -> Vec<Evidence> {
        let life = &r.life;
        let sectors = [life.sector, r.end()];
        let mut all = Vec::new();
        let mut add = |action, time: Option<Time>| {
            all.extend(time.and_then(|t| self.find(action, life.dev, t, sectors)));
        };
        add(Action::Queue, r.queue);
        add(Action::SleepRequest, r.sleep);
        if r.queue.is_none() || r.sleep.is_some() {
            add(Action::GetRequest, life.get);
        }
        add(Action::Insert, life.insert);
        add(Action::Issue, life.issue);
        add(Action::Complete, life.complete);
        in_order(&mut all);
        all
    }

    /// How long the driver had a request, as its own events say, ns.
    pub fn in_driver(&self, r: &Request) -> Option<u64> {
        let (issue, complete) = (r.life.issue?, r.life.complete?);
        let first = self.spells.partition_point(|s| s.to < issue);
        let meanwhile = self.spells[first..].iter().take_while(|s| s.to <= complete);
        let own =
            meanwhile.filter(|s| matches!(&s.what, What::Command(c) if c.is_at(r.life.sector)));
        own.map(|s| s.within(issue, complete)).max()
    }

    /// Whether the event of a number, from 1, is one of a request: on its device, in its
    /// sectors, in its time.
    pub fn event_is_of(&self, number: u64, r: &Request) -> bool {
        let place = number.checked_sub(self.first + 1).map(|n| n as usize);
        let Some(e) = place.and_then(|place| self.events.get(place)) else {
            return false;
        };
        e.dev == r.life.dev
            && r.life.sector <= e.sector
            && e.sector < r.end()
            && r.start() <= Some(e.time)
            && r.life.complete.is_none_or(|c| e.time <= c)
    }

    /// An instance that the events of a request show.
    pub fn instance(&self, r: &Request, delay_ns: Option<u64>) -> Instance {
        Instance {
            time: r.start().unwrap_or_default(),
            delay_ns,
            evidence: self.of_request(r),
        }
    }
}

/// When completions at these places were, in order.
fn ends_of(places: &[usize], events: &[Event]) -> Vec<Time> {
    let mut ends: Vec<Time> = places.iter().map(|i| events[*i].time).collect();
    ends.sort_unstable();
    ends
}

/// Whether two stretches of sectors have one in common; what is empty counts as its first.
fn overlap(a: [u64; 2], b: [u64; 2]) -> bool {
    let last = |[begin, end]: [u64; 2]| end.saturating_sub(1).max(begin);
    a[0] <= last(b) && b[0] <= last(a)
}

/// Brings evidence into the trace's order, each event once.
pub fn in_order(evidence: &mut Vec<Evidence>) {
    // What other parts of the kernel say has the number of the next event.
    evidence.sort_by_key(|e| (e.number, e.text.is_none(), e.event.time));
    evidence.dedup();
}

/// Gathers what becomes a section.
#[derive(Debug, Default)]
pub(super) struct Gatherer {
    first: u64,
    events: Vec<Event>,
    stacks: Stacks,
    devices: BTreeMap<Dev, Gathered>,
    is_sorted: bool,
    tracker: Tracker,
    spells: Vec<Spell>,
    disk_of: BTreeMap<Dev, Dev>,
    /// The schedulers of devices, as far as messages tell them.
    told: BTreeMap<Dev, &'static str>,
}

#[derive(Debug, Default)]
struct Gathered {
    requests: Vec<Request>,
    /// Bios of the request that is about to end, then those of none.
    bios: Vec<BioLife>,
    alone: Vec<BioLife>,
    nr_events: [u64; 17],
    shown: Shown,
    busy_until: Option<Time>,
    unknown_completions: Vec<usize>,
    span: Option<[Time; 2]>,
}

impl Gatherer {
    pub(super) fn new(first: u64) -> Gatherer {
        Gatherer {
            first,
            is_sorted: true,
            ..Gatherer::default()
        }
    }

    /// Takes over the memory of a section that was looked at: given back, the kernel would
    /// have to clear it again for the next one.
    pub(super) fn reuse(&mut self, section: Section) {
        let mut events = section.events;
        events.clear();
        events.append(&mut self.events);
        self.events = events;
    }

    /// Takes an event; returns its number.
    pub(super) fn event(&mut self, event: &Event) -> u64 {
        self.is_sorted &= self.events.last().is_none_or(|e| e.time <= event.time);
        let number = self.first + self.events.len() as u64;
        self.events.push(*event);
        if event.action == Action::Remap && self.disk_of.get(&event.from_dev) != Some(&event.dev) {
            self.remapped(event);
        }
        let device = self.devices.entry(event.dev).or_default();
        device.nr_events[event.action as usize] += 1;
        device.shown.event(event);
        let span = device.span.get_or_insert([event.time; 2]);
        span[0] = span[0].min(event.time);
        span[1] = span[1].max(event.time);
        number
    }

    /// Notes on which device another one lies.
    #[cold]
    fn remapped(&mut self, event: &Event) {
        if self.disk_of.len() < DEVICES_MAX {
            self.disk_of.insert(event.from_dev, event.dev);
        }
    }

    /// Takes a message of the kernel.
    pub(super) fn message(&mut self, event: &Event, text: &str) {
        let name = scheduler_of_message(text).filter(|_| self.told.len() < DEVICES_MAX);
        if let Some(name) = name {
            self.told.insert(event.dev, name);
        }
    }

    /// Whether the event belongs to another capture than the latest.
    pub(super) fn begins_capture(&self, event: &Event) -> bool {
        let last = self.events.last();
        last.is_some_and(|last| last.time.0.saturating_sub(event.time.0) > ANOTHER_CAPTURE_NS)
    }

    pub(super) fn is_full(&self) -> bool {
        self.events.len().max(self.spells.len()) >= EVENTS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.spells.is_empty()
    }

    /// Takes an event of another part of the kernel.
    pub(super) fn kernel_event(&mut self, event: &KernelEvent) {
        let number = self.next() + 1;
        self.tracker.event(number, event, &mut self.spells);
    }

    /// Takes the stack of a task, which is of its last Q.
    pub(super) fn stack(&mut self, pid: Pid, functions: &str) {
        self.stacks.add(&self.events, pid, functions);
    }

    /// The number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// A completion that fits no request: the device had it before the section began.
    pub(super) fn unknown_completion(&mut self, event: &Event) {
        let place = self.events.len() - 1;
        let device = self.devices.entry(event.dev).or_default();
        device.unknown_completions.push(place);
        device.busy_until = device.busy_until.max(Some(event.time));
    }

    pub(super) fn bio(&mut self, bio: &BioLife) {
        let device = self.devices.entry(bio.dev).or_default();
        match bio.request {
            Some(_) => device.bios.push(*bio),
            None => device.alone.push(*bio),
        }
    }

    pub(super) fn request(&mut self, life: &RequestLife) {
        let device = self.devices.entry(life.dev).or_default();
        let mut request = Request::new(life);
        let own = |b: &BioLife| b.request == Some(life.number);
        for bio in device.bios.iter().filter(|b| own(b)) {
            request.flags = request.flags.with(bio.rwbs);
            request.last_queue = request.last_queue.max(Some(bio.queue));
            if request.queue.is_none_or(|q| bio.queue < q) {
                request.queue = Some(bio.queue);
                request.pid = bio.pid;
            }
            if bio.get.is_some() {
                request.sleep = bio.sleep;
            }
        }
        device.bios.retain(|b| !own(b));
        let op = request.flags.op();
        request.is_sync = matches!(op, Some(Op::Read | Op::Flush))
            || request.flags.has(Rwbs::SYNC)
            || request.flags.has(Rwbs::FLUSH);
        device.shown.flags = device.shown.flags.with(request.flags);
        device.requests.push(request);
    }

    /// The section, and what the next one is gathered in. Who waits for writes is inferred if
    /// their flags do not say it.
    pub(super) fn finish(self, names: &Names, are_flags_said: bool) -> (Section, Gatherer) {
        let mut next = Gatherer::new(self.next());
        let mut spells = self.spells;
        next.tracker = self.tracker;
        if let Some(last) = self.events.last() {
            next.tracker.cut(last.time, &mut spells);
        }
        next.disk_of.clone_from(&self.disk_of);
        next.told.clone_from(&self.told);
        let order = (!self.is_sorted).then(|| {
            let mut order: Vec<u32> = (0..self.events.len() as u32).collect();
            order.sort_by_key(|i| self.events[*i as usize].time);
            order
        });
        spells.sort_by_key(|s| s.to);
        let disk = |(dev, mut g): (Dev, Gathered)| {
            let who_waits = if are_flags_said {
                Told::default()
            } else {
                who_waits::mark(&mut g.requests, names)
            };
            for r in &mut g.requests {
                let is_flushers = names.get(r.pid).is_some_and(is_flusher);
                r.is_write_back = is_flushers && r.is_write() && !r.is_sync;
            }
            let mut bios = g.alone;
            bios.extend(g.bios);
            let span = g.span.unwrap_or_default();
            let mut disk = Disk::new(dev, g.requests, bios, g.nr_events, g.busy_until, span);
            disk.unknown_ends = ends_of(&g.unknown_completions, &self.events);
            disk.unknown_completions = g.unknown_completions;
            disk.shown = g.shown;
            disk.told = self.told.get(&dev).copied();
            disk.who_waits = who_waits;
            let waits = divide(&disk);
            disk.set_waits(waits);
            disk
        };
        let disks = self.devices.into_iter().map(disk).collect();
        let section = Section {
            start: Time::default(),
            first: self.first,
            events: self.events,
            stacks: self.stacks,
            order,
            disks,
            spells,
            disk_of: self.disk_of,
        };
        (section, next)
    }
}
