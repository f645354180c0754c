// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each event does to the bios and requests of its device. The methods
//! say whether the event fits anything.

use super::position::Kind;
use super::slab::Slot;
use super::table::{Bio, Device, Out, Range};
use super::{BioLife, LifeSink, Merge, REQUEST_BIOS_MAX};
use blklab_trace::{Action, Event, Rwbs};

impl Device {
    /// Takes an event of this device.
    #[inline(always)]
    pub(super) fn event<S: LifeSink>(&mut self, e: &Event, out: &mut Out<S>) {
        let range = Range::new(e);
        let matched = match e.action {
            Action::Queue => self.queue(e, range),
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
                .depth(e.time, self.dev, self.nr_bios, self.nr_issued);
        }
    }

    #[inline(always)]
    fn queue(&mut self, e: &Event, range: Range) -> bool {
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

    fn sleep(&mut self, e: &Event, range: Range) -> bool {
        let Some(slot) = self.find_queued(range) else {
            return false;
        };
        let life = &mut self.bio(slot).life;
        life.sleep.get_or_insert(e.time);
        true
    }

    /// The event shows the front part and where the other begins.
    fn split(&mut self, e: &Event, range: Range) -> bool {
        let Some(slot) = self.find_queued(range) else {
            return false;
        };
        let io = self.ios.get(slot);
        if e.arg <= io.start || e.arg >= io.end {
            return false;
        }
        let rest = Range {
            class: range.class,
            start: e.arg,
            end: io.end,
        };
        let front_bytes = ((e.arg - io.start) * blklab_types::SECTOR_BYTES) as u32;
        io.end = e.arg;
        let bio = self.bio(slot);
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

    #[inline(always)]
    fn get<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let queued = self.find_queued(range);
        if e.rwbs == Rwbs::NONE && e.bytes == 0 {
            // That of a command passed through has no bio.
            let own = queued.filter(|slot| self.bio(*slot).life.rwbs == e.rwbs);
            if own.is_none() {
                out.unmatched.passed_through += 1;
                return true;
            }
        }
        if let Some(slot) = queued {
            let io = self.begin_request_of(slot, e, range, out);
            io.request().life.get = Some(e.time);
            io.bio().life.get = Some(e.time);
            return true;
        }
        let slot = self.begin_request(e, range, out);
        self.request(slot).life.get = Some(e.time);
        false
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
            .filter(|s| self.ios.get(*s).end == range.end);
        let Some(slot) = bio else {
            return self.merge_requests(range);
        };
        let mut bio = self.take_queued(slot);
        bio.life.merge = Some((e.time, kind));
        let target = match kind {
            Merge::Back => self.ending_at(range.class, range.start, None),
            Merge::Front => {
                let starts = &mut self.starts[range.class];
                starts.find(Kind::Waiting, range.end, |_| true)
            }
        };
        let target = target.filter(|t| self.nr_bios_of(*t) < REQUEST_BIOS_MAX);
        let Some(target) = target else {
            // Its request was not seen; D will show where it belongs.
            let request = self.begin_request(e, range, out);
            self.join(request, bio);
            return false;
        };
        self.join(target, bio);
        let io = self.ios.get(target);
        let (start, end) = (io.start.min(range.start), io.end.max(range.end));
        let life = &mut self.request(target).life;
        match kind {
            Merge::Back => life.nr_back_merges += 1,
            Merge::Front => life.nr_front_merges += 1,
        }
        self.resize(target, start, end);
        true
    }

    #[inline(always)]
    fn insert<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        let io = self.ios.get(slot);
        let rq = io.request();
        rq.life.insert = Some(e.time);
        rq.life.rwbs = e.rwbs;
        if rq.arrival.is_none() {
            rq.arrival = Some(self.scheduler.arrive());
        }
        // The bio that began the request.
        if let Some(first) = &mut io.bio
            && first.life.get.is_some()
        {
            first.life.insert = Some(e.time);
        }
        let nr_waiting = self.scheduler.nr_waiting;
        out.sink.in_scheduler(self.dev, nr_waiting, false);
        found.is_some()
    }

    #[inline(always)]
    fn issue<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        let rq = self.issue_waiting(slot).request();
        rq.life.issue = Some(e.time);
        rq.life.rwbs = e.rwbs;
        let arrival = rq.arrival.take();
        let overtaken = self.scheduler.issue(arrival);
        self.each_bio(slot, |life| life.issue = Some(e.time));
        self.nr_issued += 1;
        let nr_waiting = self.scheduler.nr_waiting;
        out.sink.in_scheduler(self.dev, nr_waiting, overtaken);
        found.is_some()
    }

    fn requeue(&mut self, range: Range) -> bool {
        let Some(slot) = self.find_issued(range) else {
            return false;
        };
        let life = &mut self.request(slot).life;
        life.issue = None;
        life.nr_requeues += 1;
        self.each_bio(slot, |life| life.issue = None);
        self.nr_issued -= 1;
        self.wait_again(slot);
        true
    }

    #[inline(always)]
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
        self.complete_bios(e, range, out) || self.complete_piece(e, range, out)
    }

    /// A bio that was cut into several may end with a C for each piece that has the sectors
    /// of all that have ended: the piece is the one that ends there.
    #[cold]
    fn complete_piece<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        let ios = &mut self.ios;
        let Range { class, start, end } = range;
        self.starts[class].within(Kind::Issued, start, end, &mut found, |slot| {
            ios.get(slot).end == end
        });
        let piece = found.first().copied();
        self.scratch = found;
        if let Some(slot) = piece {
            let io = self.ios.get(slot);
            self.starts[range.class].remove(io.start, slot);
            self.nr_issued -= 1;
            self.end_request(slot, e, out);
        }
        piece.is_some()
    }

    #[inline(always)]
    fn complete_request<S: LifeSink>(
        &mut self,
        slot: Slot,
        e: &Event,
        range: Range,
        out: &mut Out<S>,
    ) {
        let io = self.ios.get(slot);
        let starts = &mut self.starts[range.class];
        starts.remove(io.start, slot);
        if range.end >= io.end {
            self.nr_issued -= 1;
            self.end_request(slot, e, out);
            return;
        }
        // A part in front: bios that end in it are done.
        io.start = range.end;
        starts.insert(Kind::Issued, io.start, slot);
        let life = &mut self.request(slot).life;
        if life.error == 0 {
            life.error = e.error;
        }
        self.end_bios_before(slot, range.end, e, out);
    }

    /// Ends the bios of a request that do not go beyond `end`.
    fn end_bios_before<S: LifeSink>(&mut self, slot: Slot, end: u64, e: &Event, out: &mut Out<S>) {
        if let Some(bio) = self.take_first_if(slot, |bio| bio.end <= end) {
            self.end_bio(bio, e, out);
        }
        let mut next = self.take_rest(slot);
        while let Some(at) = next {
            let bio = self.rest.get(at);
            next = bio.next;
            if bio.end <= end {
                let bio = self.rest.remove(at);
                self.end_bio(bio, e, out);
            } else {
                self.append(slot, at);
            }
        }
        self.fill_first(slot);
    }

    #[inline(always)]
    fn end_request<S: LifeSink>(&mut self, slot: Slot, e: &Event, out: &mut Out<S>) {
        let io = self.ios.get(slot);
        if let Some(first) = &mut io.bio {
            end_life(&mut first.life, e, out);
            self.nr_bios -= 1;
        }
        let rq = io.request();
        while let Some(at) = rq.rest {
            let mut bio = self.rest.remove(at);
            rq.rest = bio.next;
            end_life(&mut bio.life, e, out);
            self.nr_bios -= 1;
        }
        rq.life.complete = Some(e.time);
        if rq.life.error == 0 {
            rq.life.error = e.error;
        }
        out.sink.request(&rq.life);
        self.scheduler.leave(rq.arrival);
        self.forget(slot);
    }

    fn end_bio<S: LifeSink>(&mut self, mut bio: Bio, e: &Event, out: &mut Out<S>) {
        end_life(&mut bio.life, e, out);
        self.nr_bios -= 1;
    }

    /// Bios of a device without requests.
    fn complete_bios<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let exact = self
            .find_queued(range)
            .filter(|s| self.ios.get(*s).end == range.end);
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        found.extend(exact);
        if exact.is_none() {
            let ios = &mut self.ios;
            let Range { class, start, end } = range;
            self.starts[class].within(Kind::Queued, start, end, &mut found, |slot| {
                ios.get(slot).end <= end
            });
        }
        for slot in &found {
            let bio = self.take_queued(*slot);
            self.end_bio(bio, e, out);
        }
        let matched = !found.is_empty();
        self.scratch = found;
        matched
    }
}

/// A bio completes.
#[inline]
fn end_life<S: LifeSink>(life: &mut BioLife, e: &Event, out: &mut Out<S>) {
    life.complete = Some(e.time);
    life.error = e.error;
    out.sink.bio(life);
}
