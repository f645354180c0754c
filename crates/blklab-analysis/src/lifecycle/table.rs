// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios and requests of one device that are on their way: where they are,
//! and the few things that can be done with them. `device.rs` says which event
//! does what.

use super::position::{Place, Positions};
use super::slab::{Slab, Slot};
use super::{BioLife, LifeSink, REQUEST_BIOS_MAX, RequestLife, Unmatched};
use blklab_trace::Event;
use blklab_types::{Dev, Op, Time};

/// Reads, writes, discards, and events without data.
const NR_CLASSES: usize = 4;
/// The class of events without data; all of them count as at sector 0, since
/// kernels do not agree on one.
const EMPTY: usize = 3;

/// What all devices share.
#[derive(Debug)]
pub(super) struct Out<S> {
    pub(super) sink: S,
    pub(super) unmatched: Unmatched,
    pub(super) nr_requests: u64,
}

/// Where an event is.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) class: usize,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    pub(super) fn of(event: &Event) -> Range {
        let class = match (event.nr_sectors(), event.rwbs.op()) {
            (0, _) => {
                return Range {
                    class: EMPTY,
                    start: 0,
                    end: 0,
                };
            }
            (_, Some(Op::Write)) => 1,
            (_, Some(Op::Discard)) => 2,
            _ => 0,
        };
        let end = event.sector.saturating_add(event.nr_sectors());
        Range {
            class,
            start: event.sector,
            end,
        }
    }
}

#[derive(Debug)]
pub(super) struct Bio {
    pub(super) life: BioLife,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where it waits for a request, until it has one.
    pub(super) queued: Place,
    /// The next bio of its request.
    pub(super) next: Option<Slot>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) life: RequestLife,
    pub(super) class: usize,
    /// What is left of it to complete.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where it is in `waiting` or in `issued`.
    pub(super) by_start: Place,
    /// Where it is in `ends`, while waiting.
    pub(super) by_end: Place,
    pub(super) first: Option<Slot>,
    pub(super) last: Option<Slot>,
    /// Which insertion put it into the scheduler, while it is there.
    pub(super) arrival: Option<u64>,
}

/// Requests between I and D.
#[derive(Debug, Default)]
pub(super) struct InScheduler {
    /// How many there are.
    pub(super) nr_waiting: u32,
    nr_arrived: u64,
    /// The latest arrival among those that have left.
    latest_issued: u64,
}

impl InScheduler {
    /// Another one arrives: its number.
    pub(super) fn arrive(&mut self) -> u64 {
        self.nr_waiting += 1;
        self.nr_arrived += 1;
        self.nr_arrived
    }

    /// One leaves without D, if it was there.
    pub(super) fn leave(&mut self, arrival: Option<u64>) {
        self.nr_waiting -= u32::from(arrival.is_some());
    }

    /// One leaves with D, if it was there: whether a later one did before.
    pub(super) fn issue(&mut self, arrival: Option<u64>) -> bool {
        self.leave(arrival);
        let Some(number) = arrival else { return false };
        let overtaken = number < self.latest_issued;
        self.latest_issued = self.latest_issued.max(number);
        overtaken
    }
}

/// The state of one device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) dev: Dev,
    pub(super) bios: Slab<Bio>,
    pub(super) requests: Slab<Request>,
    /// Bios without a request, by first sector.
    pub(super) queued: [Positions; NR_CLASSES],
    /// Requests before D, by first sector.
    pub(super) waiting: [Positions; NR_CLASSES],
    /// The same, by the sector behind the last.
    pub(super) ends: [Positions; NR_CLASSES],
    /// Requests between D and C, by first sector.
    pub(super) issued: [Positions; NR_CLASSES],
    pub(super) nr_issued: u32,
    /// Who is in the scheduler, and in which order they came and went.
    pub(super) scheduler: InScheduler,
    /// For lists that are needed only during one event.
    pub(super) scratch: Vec<Slot>,
}

impl Device {
    pub(super) fn new(dev: Dev) -> Device {
        Device {
            dev,
            bios: Slab::default(),
            requests: Slab::default(),
            queued: Default::default(),
            waiting: Default::default(),
            ends: Default::default(),
            issued: Default::default(),
            nr_issued: 0,
            scheduler: InScheduler::default(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn add_queued(&mut self, range: Range, life: BioLife) {
        let Range { class, start, end } = range;
        let bio = Bio {
            life,
            start,
            end,
            queued: Place::default(),
            next: None,
        };
        let slot = self.bios.insert(bio);
        self.bios.get(slot).queued = self.queued[class].insert(start, slot);
    }

    /// The bio queued at `range`: of that length, or else the first there.
    pub(super) fn find_queued(&mut self, range: Range) -> Option<Slot> {
        let mut first = None;
        for slot in self.queued[range.class].at(range.start) {
            if self.bios.get(slot).end == range.end {
                return Some(slot);
            }
            first = first.or(Some(slot));
        }
        first
    }

    pub(super) fn take_queued(&mut self, slot: Slot, class: usize) {
        let place = self.bios.get(slot).queued;
        self.queued[class].remove(place);
    }

    /// A request of the range of `e`, without bios.
    pub(super) fn begin_request<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Slot {
        let life = RequestLife {
            number: out.nr_requests,
            dev: self.dev,
            pid: e.pid,
            rwbs: e.rwbs,
            sector: e.sector,
            bytes: e.bytes.into(),
            get: None,
            insert: None,
            issue: None,
            complete: None,
            error: 0,
            nr_bios: 0,
            nr_back_merges: 0,
            nr_front_merges: 0,
            nr_absorbed: 0,
            nr_silent_merges: 0,
            nr_requeues: 0,
        };
        out.nr_requests += 1;
        let Range { class, start, end } = range;
        let request = Request {
            life,
            class,
            start,
            end,
            by_start: Place::default(),
            by_end: Place::default(),
            first: None,
            last: None,
            arrival: None,
        };
        let slot = self.requests.insert(request);
        self.wait(slot);
        slot
    }

    /// Puts a request among those before D.
    pub(super) fn wait(&mut self, slot: Slot) {
        let request = self.requests.get(slot);
        request.by_start = self.waiting[request.class].insert(request.start, slot);
        request.by_end = self.ends[request.class].insert(request.end, slot);
    }

    /// Takes a request from those before D.
    pub(super) fn take_waiting(&mut self, slot: Slot) {
        let request = self.requests.get(slot);
        self.waiting[request.class].remove(request.by_start);
        self.ends[request.class].remove(request.by_end);
    }

    /// Gives a waiting request another range.
    pub(super) fn resize(&mut self, slot: Slot, start: u64, end: u64) {
        let request = self.requests.get(slot);
        if start != request.start {
            self.waiting[request.class].remove(request.by_start);
            request.by_start = self.waiting[request.class].insert(start, slot);
            request.life.sector = start;
        }
        if end != request.end {
            self.ends[request.class].remove(request.by_end);
            request.by_end = self.ends[request.class].insert(end, slot);
        }
        (request.start, request.end) = (start, end);
        request.life.bytes = (end - start).saturating_mul(blklab_types::SECTOR_BYTES);
    }

    /// Appends a bio to a request.
    pub(super) fn join(&mut self, request: Slot, slot: Slot) {
        let rq = self.requests.get(request);
        rq.life.nr_bios += 1;
        let bio = self.bios.get(slot);
        bio.life.request = Some(rq.life.number);
        bio.next = None;
        let before = rq.last.replace(slot);
        match before {
            Some(before) => self.bios.get(before).next = Some(slot),
            None => rq.first = Some(slot),
        }
    }

    /// The request of `range` vanishes into the one it touches.
    pub(super) fn merge_requests(&mut self, range: Range) -> bool {
        let Some(victim) = self.find_waiting(range) else {
            return false;
        };
        let nr_bios = self.requests.get(victim).life.nr_bios;
        let room = REQUEST_BIOS_MAX.saturating_sub(nr_bios);
        let target = self.ends[range.class]
            .at(range.start)
            .chain(self.waiting[range.class].at(range.end))
            .find(|other| *other != victim)
            .filter(|other| self.requests.get(*other).life.nr_bios <= room);
        let Some(target) = target else { return false };
        self.absorb(target, victim);
        true
    }

    /// The waiting request of exactly this range.
    pub(super) fn find_waiting(&mut self, range: Range) -> Option<Slot> {
        let requests = &mut self.requests;
        self.waiting[range.class]
            .at(range.start)
            .find(|slot| requests.get(*slot).end == range.end)
    }

    /// `target` takes over the bios and the range of `victim`.
    pub(super) fn absorb(&mut self, target: Slot, victim: Slot) {
        self.take_waiting(victim);
        let gone = self.requests.remove(victim);
        let mut next = gone.first;
        while let Some(slot) = next {
            next = self.bios.get(slot).next;
            self.join(target, slot);
        }
        let rq = self.requests.get(target);
        match rq.arrival {
            Some(_) => self.scheduler.leave(gone.arrival),
            None => rq.arrival = gone.arrival,
        }
        rq.life.nr_back_merges += gone.life.nr_back_merges;
        rq.life.nr_front_merges += gone.life.nr_front_merges;
        rq.life.nr_absorbed += gone.life.nr_absorbed + 1;
        rq.life.nr_silent_merges += gone.life.nr_silent_merges;
        let (start, end) = (rq.start.min(gone.start), rq.end.max(gone.end));
        self.resize(target, start, end);
    }

    /// The waiting request that an I or D of `range` shows. Others inside the
    /// range have silently merged with it; bios inside it that have no request
    /// belong to it if it is too small otherwise.
    pub(super) fn gather<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Option<Slot> {
        if let Some(slot) = self.find_waiting(range) {
            return Some(slot);
        }
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        let requests = &mut self.requests;
        let inside = self.waiting[range.class].within(range.start, range.end);
        found.extend(inside.filter(|slot| requests.get(*slot).end <= range.end));
        let lengths = found.iter().map(|slot| {
            let request = requests.get(*slot);
            request.end - request.start
        });
        let covered = lengths.fold(0_u64, u64::saturating_add);
        let mut request = found.first().copied();
        for victim in found.iter().skip(1) {
            self.absorb(found[0], *victim);
            self.requests.get(found[0]).life.nr_silent_merges += 1;
        }
        if covered < range.end - range.start {
            found.clear();
            let bios = &mut self.bios;
            let inside = self.queued[range.class].within(range.start, range.end);
            found.extend(inside.filter(|slot| bios.get(*slot).end <= range.end));
            for bio in &found {
                let target = *request.get_or_insert_with(|| self.begin_request(e, range, out));
                self.take_queued(*bio, range.class);
                self.join(target, *bio);
            }
        }
        self.scratch = found;
        // Or a larger one, of which a part is shown.
        let larger = || self.waiting[range.class].at(range.start).next();
        let slot = request.or_else(larger)?;
        let rq = self.requests.get(slot);
        let (start, end) = (rq.start.min(range.start), rq.end.max(range.end));
        self.resize(slot, start, end);
        Some(slot)
    }

    /// The issued request at the beginning of `range`, or the one around it.
    pub(super) fn find_issued(&mut self, range: Range) -> Option<Slot> {
        let issued = &self.issued[range.class];
        if let Some(slot) = issued.at(range.start).next() {
            return Some(slot);
        }
        let slot = issued.before(range.start)?;
        (self.requests.get(slot).end > range.start).then_some(slot)
    }

    /// Bios and requests under way.
    pub(super) fn in_flight(&self) -> usize {
        self.bios.len() + self.requests.len()
    }

    /// Ends the lives of all, unfinished.
    pub(super) fn give_up<S: LifeSink>(&mut self, out: &mut Out<S>) {
        for bio in self.bios.drain() {
            out.unmatched.unfinished_bios += 1;
            out.sink.bio(&bio.life);
        }
        for request in self.requests.drain() {
            out.unmatched.unfinished_requests += 1;
            out.sink.request(&request.life);
        }
        for positions in [
            &mut self.queued,
            &mut self.waiting,
            &mut self.ends,
            &mut self.issued,
        ] {
            positions.iter_mut().for_each(Positions::clear);
        }
        self.nr_issued = 0;
        self.scheduler = InScheduler::default();
    }

    /// As [`Device::give_up`], at the end of the trace.
    pub(super) fn finish<S: LifeSink>(&mut self, time: Time, out: &mut Out<S>) {
        self.give_up(out);
        out.sink.depth(time, self.dev, 0, 0);
    }
}
