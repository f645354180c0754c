// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios and requests of one device that are on their way: where they are,
//! and the few things that can be done with them. `device.rs` says which event
//! does what.

use super::position::{Kind, Place, Positions, UNORDERED_MAX};
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
    /// Where it is while it has no request.
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
    /// Where it is.
    pub(super) by_start: Place,
    /// Where it is in `ends`, while waiting.
    pub(super) by_end: Place,
    pub(super) is_issued: bool,
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
    /// Bios without a request, and requests, by first sector.
    pub(super) starts: [Positions; NR_CLASSES],
    /// Requests before D, by the sector behind the last, since they were many
    /// and something was merged.
    pub(super) ends: Option<Box<[Positions; NR_CLASSES]>>,
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
            starts: Default::default(),
            ends: None,
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
        self.bios.get(slot).queued = self.starts[class].insert(Kind::Queued, start, slot);
    }

    /// The bio queued at `range`: of that length, or else the first there.
    pub(super) fn find_queued(&mut self, range: Range) -> Option<Slot> {
        let mut first = None;
        for slot in self.starts[range.class].at(Kind::Queued, range.start) {
            if self.bios.get(slot).end == range.end {
                return Some(slot);
            }
            first = first.or(Some(slot));
        }
        first
    }

    pub(super) fn take_queued(&mut self, slot: Slot, class: usize) {
        let place = self.bios.get(slot).queued;
        self.starts[class].remove(place);
    }

    /// A request of the range of `e`, without bios.
    pub(super) fn begin_request<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Slot {
        let slot = self.new_request(e, range, out);
        let by_start = self.starts[range.class].insert(Kind::Waiting, range.start, slot);
        self.requests.get(slot).by_start = by_start;
        self.add_end(slot);
        slot
    }

    /// The same, in the place of a bio that begins there.
    pub(super) fn begin_request_of<S: LifeSink>(
        &mut self,
        bio: Slot,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Slot {
        let slot = self.new_request(e, range, out);
        let place = self.bios.get(bio).queued;
        self.starts[range.class].turn(place, Kind::Waiting, slot);
        self.requests.get(slot).by_start = place;
        self.add_end(slot);
        slot
    }

    fn new_request<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> Slot {
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
            is_issued: false,
            first: None,
            last: None,
            arrival: None,
        };
        self.requests.insert(request)
    }

    /// A request that was issued waits again.
    pub(super) fn wait_again(&mut self, slot: Slot) {
        let request = self.requests.get(slot);
        request.is_issued = false;
        self.starts[request.class].turn(request.by_start, Kind::Waiting, slot);
        self.add_end(slot);
    }

    /// A waiting request is issued.
    pub(super) fn issue_waiting(&mut self, slot: Slot) {
        self.remove_end(slot);
        let request = self.requests.get(slot);
        request.is_issued = true;
        self.starts[request.class].turn(request.by_start, Kind::Issued, slot);
    }

    /// Takes a request from those before D.
    pub(super) fn take_waiting(&mut self, slot: Slot) {
        self.remove_end(slot);
        let request = self.requests.get(slot);
        self.starts[request.class].remove(request.by_start);
    }

    #[inline]
    fn add_end(&mut self, slot: Slot) {
        if let Some(ends) = &mut self.ends {
            let request = self.requests.get(slot);
            request.by_end = ends[request.class].insert(Kind::Waiting, request.end, slot);
        }
    }

    #[inline]
    fn remove_end(&mut self, slot: Slot) {
        if let Some(ends) = &mut self.ends {
            let request = self.requests.get(slot);
            ends[request.class].remove(request.by_end);
        }
    }

    /// The oldest waiting request, but for one, that ends before `sector`.
    pub(super) fn ending_at(
        &mut self,
        class: usize,
        sector: u64,
        but: Option<Slot>,
    ) -> Option<Slot> {
        if let Some(ends) = self.index_of_ends() {
            let mut ending = ends[class].at(Kind::Waiting, sector);
            return ending.find(|slot| Some(*slot) != but);
        }
        let mut oldest: Option<(u64, Slot)> = None;
        self.requests.each(|slot, rq| {
            let ends = rq.end == sector && rq.class == class && !rq.is_issued;
            let number = rq.life.number;
            if ends && Some(slot) != but && oldest.is_none_or(|(before, _)| number < before) {
                oldest = Some((number, slot));
            }
        });
        oldest.map(|(_, slot)| slot)
    }

    /// Waiting requests by their ends, if all are too many to look through.
    fn index_of_ends(&mut self) -> Option<&mut [Positions; NR_CLASSES]> {
        if self.requests.nr_places() <= UNORDERED_MAX {
            return None;
        }
        if self.ends.is_none() {
            let mut waiting: Vec<(u64, Slot)> = Vec::new();
            self.requests.each(|slot, rq| {
                if !rq.is_issued {
                    waiting.push((rq.life.number, slot));
                }
            });
            waiting.sort_unstable();
            let mut ends: Box<[Positions; NR_CLASSES]> = Box::default();
            for (_, slot) in waiting {
                let rq = self.requests.get(slot);
                rq.by_end = ends[rq.class].insert(Kind::Waiting, rq.end, slot);
            }
            self.ends = Some(ends);
        }
        self.ends.as_deref_mut()
    }

    /// Gives a waiting request another range.
    pub(super) fn resize(&mut self, slot: Slot, start: u64, end: u64) {
        let request = self.requests.get(slot);
        if start != request.start {
            let starts = &mut self.starts[request.class];
            starts.remove(request.by_start);
            request.by_start = starts.insert(Kind::Waiting, start, slot);
            request.life.sector = start;
        }
        if let Some(ends) = &mut self.ends
            && end != request.end
        {
            let ends = &mut ends[request.class];
            ends.remove(request.by_end);
            request.by_end = ends.insert(Kind::Waiting, end, slot);
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
        let target = self.ending_at(range.class, range.start, Some(victim));
        let target = target.or_else(|| {
            let mut starting = self.starts[range.class].at(Kind::Waiting, range.end);
            starting.find(|other| *other != victim)
        });
        let target = target.filter(|other| self.requests.get(*other).life.nr_bios <= room);
        let Some(target) = target else { return false };
        self.absorb(target, victim);
        true
    }

    /// The waiting request of exactly this range.
    pub(super) fn find_waiting(&mut self, range: Range) -> Option<Slot> {
        let requests = &mut self.requests;
        self.starts[range.class]
            .at(Kind::Waiting, range.start)
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
        let Range { class, start, end } = range;
        self.starts[class].within(Kind::Waiting, start, end, &mut found, |slot| {
            requests.get(slot).end <= end
        });
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
            self.starts[class].within(Kind::Queued, start, end, &mut found, |slot| {
                bios.get(slot).end <= end
            });
            for bio in &found {
                let target = *request.get_or_insert_with(|| self.begin_request(e, range, out));
                self.take_queued(*bio, range.class);
                self.join(target, *bio);
            }
        }
        self.scratch = found;
        // Or a larger one, of which a part is shown.
        let mut larger = || self.starts[class].at(Kind::Waiting, start).next();
        let slot = request.or_else(&mut larger)?;
        let rq = self.requests.get(slot);
        let (start, end) = (rq.start.min(range.start), rq.end.max(range.end));
        self.resize(slot, start, end);
        Some(slot)
    }

    /// The issued request at the beginning of `range`, or the one around it.
    pub(super) fn find_issued(&mut self, range: Range) -> Option<Slot> {
        let starts = &mut self.starts[range.class];
        if let Some(slot) = starts.at(Kind::Issued, range.start).next() {
            return Some(slot);
        }
        let slot = starts.before(Kind::Issued, range.start)?;
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
        let ends = self.ends.iter_mut().flat_map(|ends| ends.iter_mut());
        self.starts
            .iter_mut()
            .chain(ends)
            .for_each(Positions::clear);
        self.nr_issued = 0;
        self.scheduler = InScheduler::default();
    }

    /// As [`Device::give_up`], at the end of the trace.
    pub(super) fn finish<S: LifeSink>(&mut self, time: Time, out: &mut Out<S>) {
        self.give_up(out);
        out.sink.depth(time, self.dev, 0, 0);
    }
}
