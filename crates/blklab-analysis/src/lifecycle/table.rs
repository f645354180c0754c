// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios and requests of one device that are on their way: where they are,
//! and the few things that can be done with them. `device.rs` says which event
//! does what.

use super::position::{Kind, Positions, UNORDERED_MAX};
use super::slab::{KEPT_MAX, Slab, Slot};
use super::{BioLife, LifeSink, REQUEST_BIOS_MAX, RequestLife, Unmatched};
use blklab_trace::Event;
use blklab_types::{Dev, Op, Time};
use std::ops::{Index, IndexMut};

/// Events of different classes are never about the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Read,
    Write,
    Discard,
    /// Without data; all of them count as at sector 0, since kernels do not agree on
    /// one.
    Empty,
}

const NR_CLASSES: usize = 4;

/// Positions by class.
#[derive(Debug, Default)]
pub(super) struct ByClass([Positions; NR_CLASSES]);

impl Index<Class> for ByClass {
    type Output = Positions;

    #[inline(always)]
    fn index(&self, class: Class) -> &Positions {
        &self.0[class as usize]
    }
}

impl IndexMut<Class> for ByClass {
    #[inline(always)]
    fn index_mut(&mut self, class: Class) -> &mut Positions {
        &mut self.0[class as usize]
    }
}

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
    pub(super) class: Class,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    pub(super) fn new(event: &Event) -> Range {
        let class = match (event.nr_sectors(), event.rwbs.op()) {
            (0, _) => {
                return Range {
                    class: Class::Empty,
                    start: 0,
                    end: 0,
                };
            }
            (_, Some(Op::Write)) => Class::Write,
            (_, Some(Op::Discard)) => Class::Discard,
            _ => Class::Read,
        };
        Range {
            class,
            start: event.sector,
            end: event.end_sector(),
        }
    }
}

/// A bio.
#[derive(Debug)]
pub(super) struct Bio {
    pub(super) life: BioLife,
    /// The sector behind its last.
    pub(super) end: u64,
    /// The next one of its request, behind the first.
    pub(super) next: Option<Slot>,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) life: RequestLife,
    pub(super) is_issued: bool,
    /// Which insertion put it into the scheduler, while it is there.
    pub(super) arrival: Option<u64>,
    /// Its bios but for the first, of which most have no other.
    pub(super) rest: Option<Slot>,
    last: Option<Slot>,
}

/// Something under way: a bio without a request, or a request. A bio that begins a
/// request becomes it where it is.
#[derive(Debug)]
pub(super) struct Io {
    pub(super) class: Class,
    /// What is left of it to complete.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The bio, or the first one of the request.
    pub(super) bio: Option<Bio>,
    /// The request that it is.
    pub(super) request: Option<Request>,
}

impl Io {
    /// The bio that is queued there.
    #[inline]
    pub(super) fn bio(&mut self) -> &mut Bio {
        self.bio.as_mut().expect("what is queued is a bio")
    }

    /// The request that is there.
    #[inline]
    pub(super) fn request(&mut self) -> &mut Request {
        let request = self.request.as_mut();
        request.expect("what waits or is issued is a request")
    }

    /// The number of the request, if it is one that waits.
    fn waiting(&self) -> Option<u64> {
        let request = self.request.as_ref().filter(|r| !r.is_issued)?;
        Some(request.life.number)
    }
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
    pub(super) ios: Slab<Io>,
    /// Bios of requests that have several, but for the first of each.
    pub(super) rest: Slab<Bio>,
    /// Bios without a request, and requests, by first sector.
    pub(super) starts: ByClass,
    /// Requests before D, by the sector behind the last, since they were many
    /// and something was merged.
    pub(super) ends: Option<Box<ByClass>>,
    pub(super) nr_bios: u32,
    pub(super) nr_requests: u32,
    /// Most of them at a time.
    most_requests: u32,
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
            ios: Slab::default(),
            rest: Slab::default(),
            starts: ByClass::default(),
            ends: None,
            nr_bios: 0,
            nr_requests: 0,
            most_requests: 0,
            nr_issued: 0,
            scheduler: InScheduler::default(),
            scratch: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn add_queued(&mut self, range: Range, life: BioLife) {
        let Range { class, start, end } = range;
        let bio = Bio {
            life,
            end,
            next: None,
        };
        let slot = self.ios.insert(Io {
            class,
            start,
            end,
            bio: Some(bio),
            request: None,
        });
        self.nr_bios += 1;
        self.starts[class].insert(Kind::Queued, start, slot);
    }

    /// The bio that is queued there.
    #[inline]
    pub(super) fn bio(&mut self, slot: Slot) -> &mut Bio {
        self.ios.get(slot).bio()
    }

    /// The request that is there.
    #[inline]
    pub(super) fn request(&mut self, slot: Slot) -> &mut Request {
        self.ios.get(slot).request()
    }

    /// The bio queued at `range`: of that length, or else the first there.
    #[inline(always)]
    pub(super) fn find_queued(&mut self, range: Range) -> Option<Slot> {
        let (starts, ios) = (&mut self.starts[range.class], &mut self.ios);
        let of_length = starts.find(Kind::Queued, range.start, |slot| {
            ios.get(slot).end == range.end
        });
        of_length.or_else(|| starts.find(Kind::Queued, range.start, |_| true))
    }

    /// Takes a bio from those without a request.
    pub(super) fn take_queued(&mut self, slot: Slot) -> Bio {
        let io = self.ios.remove(slot);
        self.starts[io.class].remove(io.start, slot);
        io.bio.expect("what is queued is a bio")
    }

    /// A request of the range of `e`, without bios.
    pub(super) fn begin_request<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Slot {
        let Range { class, start, end } = range;
        let request = self.new_request(e, out);
        let slot = self.ios.insert(Io {
            class,
            start,
            end,
            bio: None,
            request: Some(request),
        });
        self.starts[class].insert(Kind::Waiting, start, slot);
        self.add_end(slot);
        slot
    }

    /// A bio begins a request of the range of `e`, where it is.
    #[inline(always)]
    pub(super) fn begin_request_of<S: LifeSink>(
        &mut self,
        slot: Slot,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> &mut Io {
        let mut request = self.new_request(e, out);
        request.life.nr_bios = 1;
        self.starts[range.class].turn(range.start, slot, Kind::Waiting);
        let io = self.ios.get(slot);
        io.bio().life.request = Some(request.life.number);
        io.request = Some(request);
        io.end = range.end;
        self.add_end(slot);
        self.ios.get(slot)
    }

    /// A request without bios.
    #[inline(always)]
    fn new_request<S: LifeSink>(&mut self, e: &Event, out: &mut Out<S>) -> Request {
        let number = out.nr_requests;
        let life = RequestLife {
            number,
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
        self.nr_requests += 1;
        self.most_requests = self.most_requests.max(self.nr_requests);
        Request {
            life,
            is_issued: false,
            arrival: None,
            rest: None,
            last: None,
        }
    }

    /// A request that was issued waits again.
    pub(super) fn wait_again(&mut self, slot: Slot) {
        self.request(slot).is_issued = false;
        let io = self.ios.get(slot);
        self.starts[io.class].turn(io.start, slot, Kind::Waiting);
        self.add_end(slot);
    }

    /// A waiting request is issued.
    #[inline(always)]
    pub(super) fn issue_waiting(&mut self, slot: Slot) -> &mut Io {
        self.remove_end(slot);
        let io = self.ios.get(slot);
        self.starts[io.class].turn(io.start, slot, Kind::Issued);
        io.request().is_issued = true;
        io
    }

    /// Takes a request from those before D.
    pub(super) fn take_waiting(&mut self, slot: Slot) {
        self.remove_end(slot);
        let io = self.ios.get(slot);
        self.starts[io.class].remove(io.start, slot);
    }

    #[inline(always)]
    fn add_end(&mut self, slot: Slot) {
        if let Some(ends) = &mut self.ends {
            let io = self.ios.get(slot);
            ends[io.class].insert(Kind::Waiting, io.end, slot);
        }
    }

    #[inline(always)]
    fn remove_end(&mut self, slot: Slot) {
        if let Some(ends) = &mut self.ends {
            let io = self.ios.get(slot);
            ends[io.class].remove(io.end, slot);
        }
    }

    /// The oldest waiting request, but for one, that ends before `sector`.
    pub(super) fn ending_at(
        &mut self,
        class: Class,
        sector: u64,
        but: Option<Slot>,
    ) -> Option<Slot> {
        if let Some(ends) = self.index_of_ends() {
            return ends[class].find(Kind::Waiting, sector, |slot| Some(slot) != but);
        }
        let ios = self.ios.iter();
        let ending =
            ios.filter(|(slot, io)| io.end == sector && io.class == class && Some(*slot) != but);
        let waiting = ending.filter_map(|(slot, io)| Some((io.waiting()?, slot)));
        waiting.min().map(|(_, slot)| slot)
    }

    /// Waiting requests by their ends, if all are too many to look through.
    fn index_of_ends(&mut self) -> Option<&mut ByClass> {
        if self.most_requests as usize <= UNORDERED_MAX {
            return None;
        }
        if self.ends.is_none() {
            let all = self.ios.iter();
            let waiting = all.filter_map(|(slot, io)| Some((io.waiting()?, slot, io)));
            let mut waiting: Vec<(u64, Slot, &Io)> = waiting.collect();
            waiting.sort_unstable_by_key(|(number, ..)| *number);
            let mut ends: Box<ByClass> = Box::default();
            for (_, slot, io) in waiting {
                ends[io.class].insert(Kind::Waiting, io.end, slot);
            }
            self.ends = Some(ends);
        }
        self.ends.as_deref_mut()
    }

    /// Gives a waiting request another range.
    pub(super) fn resize(&mut self, slot: Slot, start: u64, end: u64) {
        let io = self.ios.get(slot);
        let moves = start != io.start;
        if moves {
            let starts = &mut self.starts[io.class];
            starts.remove(io.start, slot);
            starts.insert(Kind::Waiting, start, slot);
        }
        if let Some(ends) = &mut self.ends
            && end != io.end
        {
            let ends = &mut ends[io.class];
            ends.remove(io.end, slot);
            ends.insert(Kind::Waiting, end, slot);
        }
        (io.start, io.end) = (start, end);
        let life = &mut io.request().life;
        if moves {
            life.sector = start;
        }
        life.bytes = (end - start).saturating_mul(blklab_types::SECTOR_BYTES);
    }

    /// Appends a bio to a request.
    pub(super) fn join(&mut self, slot: Slot, mut bio: Bio) {
        let io = self.ios.get(slot);
        let request = io.request();
        request.life.nr_bios += 1;
        bio.life.request = Some(request.life.number);
        if io.bio.is_none() {
            io.bio = Some(bio);
            return;
        }
        let at = self.rest.insert(bio);
        self.append(slot, at);
    }

    /// Links a bio behind the others of a request that has a first one.
    pub(super) fn append(&mut self, slot: Slot, at: Slot) {
        self.rest.get(at).next = None;
        let request = self.request(slot);
        match request.last.replace(at) {
            Some(before) => self.rest.get(before).next = Some(at),
            None => request.rest = Some(at),
        }
    }

    /// Does something with each bio of a request, in order.
    #[inline]
    pub(super) fn each_bio(&mut self, slot: Slot, mut f: impl FnMut(&mut BioLife)) {
        let io = self.ios.get(slot);
        if let Some(first) = &mut io.bio {
            f(&mut first.life);
        }
        let mut next = io.request().rest;
        while let Some(at) = next {
            let bio = self.rest.get(at);
            f(&mut bio.life);
            next = bio.next;
        }
    }

    /// The first bio of a request leaves it, if it is wanted.
    pub(super) fn take_first_if(
        &mut self,
        slot: Slot,
        wanted: impl FnOnce(&Bio) -> bool,
    ) -> Option<Bio> {
        self.ios.get(slot).bio.take_if(|bio| wanted(bio))
    }

    /// All bios of a request but the first leave it: the first of these.
    #[inline]
    pub(super) fn take_rest(&mut self, slot: Slot) -> Option<Slot> {
        let request = self.request(slot);
        request.last = None;
        request.rest.take()
    }

    /// The next one of bios that have left their request.
    pub(super) fn take_next(&mut self, next: &mut Option<Slot>) -> Option<Bio> {
        let bio = self.rest.remove((*next)?);
        *next = bio.next;
        Some(bio)
    }

    /// If the first bio of a request has left, the next one takes its place.
    pub(super) fn fill_first(&mut self, slot: Slot) {
        let io = self.ios.get(slot);
        let Some(at) = io.request().rest.filter(|_| io.bio.is_none()) else {
            return;
        };
        let bio = self.rest.remove(at);
        let request = io.request();
        request.rest = bio.next;
        request.last = request.last.filter(|_| bio.next.is_some());
        io.bio = Some(bio);
    }

    /// The request of `range` vanishes into the one it touches.
    pub(super) fn merge_requests(&mut self, range: Range) -> bool {
        let Some(victim) = self.find_waiting(range) else {
            return false;
        };
        let nr_bios = self.nr_bios_of(victim);
        let room = REQUEST_BIOS_MAX.saturating_sub(nr_bios);
        let target = self.ending_at(range.class, range.start, Some(victim));
        let target = target.or_else(|| {
            self.starts[range.class].find(Kind::Waiting, range.end, |other| other != victim)
        });
        let target = target.filter(|other| self.nr_bios_of(*other) <= room);
        let Some(target) = target else { return false };
        self.absorb(target, victim);
        true
    }

    /// Bios of a request.
    pub(super) fn nr_bios_of(&mut self, slot: Slot) -> u32 {
        self.request(slot).life.nr_bios
    }

    /// The waiting request of exactly this range.
    #[inline(always)]
    pub(super) fn find_waiting(&mut self, range: Range) -> Option<Slot> {
        let ios = &mut self.ios;
        self.starts[range.class].find(Kind::Waiting, range.start, |slot| {
            ios.get(slot).end == range.end
        })
    }

    /// `target` takes over the bios and the range of `victim`.
    pub(super) fn absorb(&mut self, target: Slot, victim: Slot) {
        self.take_waiting(victim);
        let mut victim = self.ios.remove(victim);
        let gone = victim.request.expect("it waited");
        let mut rest = gone.rest;
        let mut next = victim.bio.take();
        while let Some(bio) = next {
            self.join(target, bio);
            next = self.take_next(&mut rest);
        }
        self.nr_requests -= 1;
        let io = self.ios.get(target);
        let (start, end) = (io.start.min(victim.start), io.end.max(victim.end));
        let rq = io.request();
        match rq.arrival {
            Some(_) => self.scheduler.leave(gone.arrival),
            None => rq.arrival = gone.arrival,
        }
        rq.life.nr_back_merges += gone.life.nr_back_merges;
        rq.life.nr_front_merges += gone.life.nr_front_merges;
        rq.life.nr_absorbed += gone.life.nr_absorbed + 1;
        rq.life.nr_silent_merges += gone.life.nr_silent_merges;
        self.resize(target, start, end);
    }

    /// The waiting request that an I or D of `range` shows. Others inside the
    /// range have silently merged with it; bios inside it that have no request
    /// belong to it if it is too small otherwise.
    #[inline(always)]
    pub(super) fn gather<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Option<Slot> {
        match self.find_waiting(range) {
            Some(slot) => Some(slot),
            None => self.gather_parts(e, range, out),
        }
    }

    /// The same, if none has exactly this range.
    #[cold]
    fn gather_parts<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Option<Slot> {
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        let ios = &mut self.ios;
        let Range { class, start, end } = range;
        self.starts[class].within(Kind::Waiting, start, end, &mut found, |slot| {
            ios.get(slot).end <= end
        });
        let lengths = found.iter().map(|slot| {
            let io = ios.get(*slot);
            io.end - io.start
        });
        let covered = lengths.fold(0_u64, u64::saturating_add);
        let mut request = found.first().copied();
        for victim in found.iter().skip(1) {
            self.absorb(found[0], *victim);
            self.request(found[0]).life.nr_silent_merges += 1;
        }
        if covered < range.end - range.start {
            found.clear();
            let ios = &mut self.ios;
            self.starts[class].within(Kind::Queued, start, end, &mut found, |slot| {
                ios.get(slot).end <= end
            });
            for slot in &found {
                let target = *request.get_or_insert_with(|| self.begin_request(e, range, out));
                let bio = self.take_queued(*slot);
                self.join(target, bio);
            }
        }
        self.scratch = found;
        if class == Class::Empty && request.is_none() {
            request = self.gather_empty(e, range, out);
        }
        // Or a larger one, of which a part is shown.
        let mut larger = || self.starts[class].find(Kind::Waiting, start, |_| true);
        let slot = request.or_else(&mut larger)?;
        let io = self.ios.get(slot);
        let (start, end) = (io.start.min(range.start), io.end.max(range.end));
        self.resize(slot, start, end);
        Some(slot)
    }

    /// A request of nothing whose bio, of the same letters, has none: no G was recorded. The
    /// flush of the flush machinery has other letters than the bios that it is for.
    fn gather_empty<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) -> Option<Slot> {
        let slot = self.find_queued(range)?;
        if self.bio(slot).life.rwbs != e.rwbs {
            return None;
        }
        let request = self.begin_request(e, range, out);
        let bio = self.take_queued(slot);
        self.join(request, bio);
        Some(request)
    }

    /// The issued request at the beginning of `range`, or the one around it.
    #[inline(always)]
    pub(super) fn find_issued(&mut self, range: Range) -> Option<Slot> {
        let starts = &mut self.starts[range.class];
        if let Some(slot) = starts.find(Kind::Issued, range.start, |_| true) {
            return Some(slot);
        }
        let slot = starts.before(Kind::Issued, range.start)?;
        (self.ios.get(slot).end > range.start).then_some(slot)
    }

    /// Bios and requests under way.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.nr_bios as usize + self.nr_requests as usize
    }

    /// Ends the lives of all, unfinished.
    pub(super) fn give_up<S: LifeSink>(&mut self, out: &mut Out<S>) {
        let ios = std::mem::take(&mut self.ios);
        for (_, io) in ios.iter() {
            let mut rest = io.request.as_ref().and_then(|r| r.rest);
            if let Some(first) = &io.bio {
                out.unmatched.unfinished_bios += 1;
                out.sink.bio(&first.life);
            }
            while let Some(bio) = self.take_next(&mut rest) {
                out.unmatched.unfinished_bios += 1;
                out.sink.bio(&bio.life);
            }
            // As of a request that ends: sinks wait for it with its bios alone.
            if let Some(request) = &io.request {
                out.unmatched.unfinished_requests += 1;
                out.sink.request(&request.life);
            }
        }
        (self.nr_bios, self.nr_requests, self.nr_issued) = (0, 0, 0);
        self.most_requests = 0;
        self.starts = ByClass::default();
        self.ends = None;
        self.scheduler = InScheduler::default();
    }

    /// A request is no more.
    #[inline]
    pub(super) fn forget(&mut self, slot: Slot) {
        self.ios.free(slot);
        self.nr_requests -= 1;
        if self.nr_requests == 0 {
            self.all_done();
        }
    }

    /// No request is left: what was kept for many of them goes.
    fn all_done(&mut self) {
        self.ends = None;
        if self.most_requests as usize > KEPT_MAX {
            self.most_requests = 0;
        }
    }

    /// As [`Device::give_up`], at the end of the trace.
    pub(super) fn finish<S: LifeSink>(&mut self, time: Time, out: &mut Out<S>) {
        self.give_up(out);
        out.sink.depth(time, self.dev, 0, 0);
    }
}
