// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios and requests of one device that are on their way.

use super::position::{Place, Positions};
use super::slab::{Slab, Slot};
use super::{BIOS_MAX, BioLife, LifeSink, Merge, RequestLife, Unmatched};
use blklab_trace::{Action, Event};
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
struct Range {
    class: usize,
    start: u64,
    end: u64,
}

impl Range {
    fn of(event: &Event) -> Range {
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
struct Bio {
    life: BioLife,
    start: u64,
    end: u64,
    /// Where it waits for a request, until it has one.
    queued: Place,
    /// The next bio of its request.
    next: Option<Slot>,
}

#[derive(Debug)]
struct Request {
    life: RequestLife,
    class: usize,
    /// What is left of it to complete.
    start: u64,
    end: u64,
    /// Where it is in `waiting` or in `issued`.
    by_start: Place,
    /// Where it is in `ends`, while waiting.
    by_end: Place,
    first: Option<Slot>,
    last: Option<Slot>,
}

/// The state of one device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) dev: Dev,
    bios: Slab<Bio>,
    requests: Slab<Request>,
    /// Bios without a request, by first sector.
    queued: [Positions; NR_CLASSES],
    /// Requests before D, by first sector.
    waiting: [Positions; NR_CLASSES],
    /// The same, by the sector behind the last.
    ends: [Positions; NR_CLASSES],
    /// Requests between D and C, by first sector.
    issued: [Positions; NR_CLASSES],
    nr_issued: u32,
    /// For lists that are needed only during one event.
    scratch: Vec<Slot>,
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
            scratch: Vec::new(),
        }
    }

    /// Takes an event of this device.
    pub(super) fn event<S: LifeSink>(&mut self, e: &Event, out: &mut Out<S>) {
        let range = Range::of(e);
        let matched = match e.action {
            Action::Queue => self.queue(e, range, out),
            Action::SleepRequest => self.sleep(e, range),
            Action::Split => self.split(e, range),
            Action::GetRequest => self.get(e, range, out),
            Action::BackMerge => self.merge(e, range, Merge::Back, out),
            Action::FrontMerge => self.merge(e, range, Merge::Front, out),
            Action::Insert => self.insert(e, range, out),
            Action::Issue => self.issue(e, range, out),
            Action::Requeue => self.requeue(range),
            Action::Complete => self.complete(e, range, out),
            // Nothing happens to a bio or request.
            Action::Plug
            | Action::Unplug
            | Action::UnplugTimer
            | Action::Bounce
            | Action::Remap
            | Action::Message => return,
        };
        if !matched {
            out.unmatched.count(e.action);
        }
        if matches!(
            e.action,
            Action::Queue | Action::Split | Action::Issue | Action::Requeue | Action::Complete
        ) {
            out.sink
                .depth(e.time, self.dev, self.bios.len() as u32, self.nr_issued);
        }
    }

    fn queue<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        if self.bios.len() >= BIOS_MAX {
            self.give_up(out);
        }
        let life = BioLife {
            dev: self.dev,
            pid: e.pid,
            rwbs: e.rwbs,
            sector: e.sector,
            bytes: e.bytes,
            queue: e.time,
            sleep: None,
            get: None,
            merge: None,
            insert: None,
            issue: None,
            complete: None,
            error: 0,
            is_part: false,
            request: None,
        };
        self.add_queued(range, life);
        true
    }

    fn add_queued(&mut self, range: Range, life: BioLife) {
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
    fn find_queued(&mut self, range: Range) -> Option<Slot> {
        let mut first = None;
        for slot in self.queued[range.class].at(range.start) {
            if self.bios.get(slot).end == range.end {
                return Some(slot);
            }
            first = first.or(Some(slot));
        }
        first
    }

    fn sleep(&mut self, e: &Event, range: Range) -> bool {
        let Some(slot) = self.find_queued(range) else {
            return false;
        };
        self.bios.get(slot).life.sleep.get_or_insert(e.time);
        true
    }

    /// The event shows the front part and where the other begins.
    fn split(&mut self, e: &Event, range: Range) -> bool {
        let Some(slot) = self.find_queued(range) else {
            return false;
        };
        let bio = self.bios.get(slot);
        if e.arg <= bio.start || e.arg >= bio.end {
            return false;
        }
        let rest = Range {
            class: range.class,
            start: e.arg,
            end: bio.end,
        };
        let front_bytes = ((e.arg - bio.start) * blklab_types::SECTOR_BYTES) as u32;
        let mut rest_life = BioLife {
            is_part: true,
            ..bio.life
        };
        rest_life.sector = e.arg;
        rest_life.bytes = bio.life.bytes.saturating_sub(front_bytes);
        bio.end = e.arg;
        bio.life.bytes = front_bytes;
        bio.life.is_part = true;
        self.add_queued(rest, rest_life);
        true
    }

    fn get<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let bio = self.find_queued(range);
        let request = self.begin_request(e, range, out);
        let life = &mut self.requests.get(request).life;
        life.get = Some(e.time);
        let Some(slot) = bio else { return false };
        self.bios.get(slot).life.get = Some(e.time);
        self.take_queued(slot, range.class);
        self.join(request, slot);
        true
    }

    fn take_queued(&mut self, slot: Slot, class: usize) {
        let place = self.bios.get(slot).queued;
        self.queued[class].remove(place);
    }

    /// A request of the range of `e`, without bios.
    fn begin_request<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> Slot {
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
        };
        let slot = self.requests.insert(request);
        self.wait(slot);
        slot
    }

    /// Puts a request among those before D.
    fn wait(&mut self, slot: Slot) {
        let request = self.requests.get(slot);
        request.by_start = self.waiting[request.class].insert(request.start, slot);
        request.by_end = self.ends[request.class].insert(request.end, slot);
    }

    /// Takes a request from those before D.
    fn take_waiting(&mut self, slot: Slot) {
        let request = self.requests.get(slot);
        self.waiting[request.class].remove(request.by_start);
        self.ends[request.class].remove(request.by_end);
    }

    /// Gives a waiting request another range.
    fn resize(&mut self, slot: Slot, start: u64, end: u64) {
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
    fn join(&mut self, request: Slot, slot: Slot) {
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

    fn merge<S: LifeSink>(
        &mut self,
        e: &Event,
        range: Range,
        kind: Merge,
        out: &mut Out<S>,
    ) -> bool {
        let bio = self
            .find_queued(range)
            .filter(|s| self.bios.get(*s).end == range.end);
        let Some(slot) = bio else {
            return self.merge_requests(range);
        };
        self.take_queued(slot, range.class);
        self.bios.get(slot).life.merge = Some((e.time, kind));
        let target = match kind {
            Merge::Back => self.ends[range.class].at(range.start).next(),
            Merge::Front => self.waiting[range.class].at(range.end).next(),
        };
        let Some(target) = target else {
            // Its request was not seen; D will show where it belongs.
            let request = self.begin_request(e, range, out);
            self.join(request, slot);
            return false;
        };
        self.join(target, slot);
        let rq = self.requests.get(target);
        match kind {
            Merge::Back => rq.life.nr_back_merges += 1,
            Merge::Front => rq.life.nr_front_merges += 1,
        }
        let (start, end) = (rq.start.min(range.start), rq.end.max(range.end));
        self.resize(target, start, end);
        true
    }

    /// The request of `range` vanishes into the one it touches.
    fn merge_requests(&mut self, range: Range) -> bool {
        let Some(victim) = self.find_waiting(range) else {
            return false;
        };
        let target = self.ends[range.class]
            .at(range.start)
            .chain(self.waiting[range.class].at(range.end))
            .find(|other| *other != victim);
        let Some(target) = target else { return false };
        self.absorb(target, victim);
        true
    }

    /// The waiting request of exactly this range.
    fn find_waiting(&mut self, range: Range) -> Option<Slot> {
        let requests = &mut self.requests;
        self.waiting[range.class]
            .at(range.start)
            .find(|slot| requests.get(*slot).end == range.end)
    }

    /// `target` takes over the bios and the range of `victim`.
    fn absorb(&mut self, target: Slot, victim: Slot) {
        self.take_waiting(victim);
        let gone = self.requests.remove(victim);
        let mut next = gone.first;
        while let Some(slot) = next {
            next = self.bios.get(slot).next;
            self.join(target, slot);
        }
        let rq = self.requests.get(target);
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
    fn gather<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> Option<Slot> {
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

    fn insert<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        let rq = self.requests.get(slot);
        rq.life.insert = Some(e.time);
        rq.life.rwbs = e.rwbs;
        // The bio that began the request.
        if let Some(first) = rq.first {
            let life = &mut self.bios.get(first).life;
            if life.get.is_some() {
                life.insert = Some(e.time);
            }
        }
        found.is_some()
    }

    fn issue<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        self.take_waiting(slot);
        let rq = self.requests.get(slot);
        rq.life.issue = Some(e.time);
        rq.life.rwbs = e.rwbs;
        rq.by_start = self.issued[rq.class].insert(rq.start, slot);
        let mut next = rq.first;
        while let Some(bio) = next {
            let bio = self.bios.get(bio);
            bio.life.issue = Some(e.time);
            next = bio.next;
        }
        self.nr_issued += 1;
        found.is_some()
    }

    /// The issued request at the beginning of `range`, or the one around it.
    fn find_issued(&mut self, range: Range) -> Option<Slot> {
        let issued = &self.issued[range.class];
        if let Some(slot) = issued.at(range.start).next() {
            return Some(slot);
        }
        let slot = issued.before(range.start)?;
        (self.requests.get(slot).end > range.start).then_some(slot)
    }

    fn requeue(&mut self, range: Range) -> bool {
        let Some(slot) = self.find_issued(range) else {
            return false;
        };
        let rq = self.requests.get(slot);
        self.issued[range.class].remove(rq.by_start);
        rq.life.issue = None;
        rq.life.nr_requeues += 1;
        let mut next = rq.first;
        while let Some(bio) = next {
            let bio = self.bios.get(bio);
            bio.life.issue = None;
            next = bio.next;
        }
        self.nr_issued -= 1;
        self.wait(slot);
        true
    }

    fn complete<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        if let Some(slot) = self.find_issued(range) {
            self.complete_request(slot, e, range, out);
            return true;
        }
        if let Some(slot) = self.find_waiting(range) {
            // No D: the driver completed it without being shown it.
            self.take_waiting(slot);
            self.end_request(slot, e, out);
            return true;
        }
        self.complete_bios(e, range, out)
    }

    fn complete_request<S: LifeSink>(
        &mut self,
        slot: Slot,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) {
        let rq = self.requests.get(slot);
        self.issued[range.class].remove(rq.by_start);
        if range.end >= rq.end {
            self.nr_issued -= 1;
            self.end_request(slot, e, out);
            return;
        }
        // A part in front: bios that end in it are done.
        rq.start = range.end;
        rq.by_start = self.issued[range.class].insert(rq.start, slot);
        if rq.life.error == 0 {
            rq.life.error = e.error;
        }
        let mut next = rq.first.take();
        rq.last = None;
        // Those that stay are counted again when they join.
        let nr_bios = rq.life.nr_bios;
        while let Some(bio) = next {
            next = self.bios.get(bio).next;
            if self.bios.get(bio).end <= range.end {
                self.end_bio(bio, e, out);
            } else {
                self.join(slot, bio);
            }
        }
        self.requests.get(slot).life.nr_bios = nr_bios;
    }

    fn end_request<S: LifeSink>(&mut self, slot: Slot, e: &Event, out: &mut Out<S>) {
        let mut rq = self.requests.remove(slot);
        while let Some(bio) = rq.first {
            rq.first = self.bios.get(bio).next;
            self.end_bio(bio, e, out);
        }
        rq.life.complete = Some(e.time);
        if rq.life.error == 0 {
            rq.life.error = e.error;
        }
        out.sink.request(&rq.life);
    }

    fn end_bio<S: LifeSink>(&mut self, slot: Slot, e: &Event, out: &mut Out<S>) {
        let mut life = self.bios.remove(slot).life;
        life.complete = Some(e.time);
        life.error = e.error;
        out.sink.bio(&life);
    }

    /// Bios of a device without requests.
    fn complete_bios<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let exact = self
            .find_queued(range)
            .filter(|s| self.bios.get(*s).end == range.end);
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        found.extend(exact);
        if exact.is_none() {
            let bios = &mut self.bios;
            let inside = self.queued[range.class].within(range.start, range.end);
            found.extend(inside.filter(|slot| bios.get(*slot).end <= range.end));
        }
        for slot in &found {
            self.take_queued(*slot, range.class);
            self.end_bio(*slot, e, out);
        }
        let matched = !found.is_empty();
        self.scratch = found;
        matched
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
    }

    /// As [`Device::give_up`], at the end of the trace.
    pub(super) fn finish<S: LifeSink>(&mut self, time: Time, out: &mut Out<S>) {
        self.give_up(out);
        out.sink.depth(time, self.dev, 0, 0);
    }
}
