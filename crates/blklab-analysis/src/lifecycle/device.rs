// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each event does to the bios and requests of its device. The methods
//! say whether the event fits anything.

use super::position::Kind;
use super::slab::Slot;
use super::table::{Device, Out, Range};
use super::{BioLife, LifeSink, Merge, REQUEST_BIOS_MAX};
use blklab_trace::{Action, Event};

impl Device {
    /// Takes an event of this device.
    pub(super) fn event<S: LifeSink>(&mut self, e: &Event, out: &mut Out<S>) {
        let range = Range::of(e);
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
                .depth(e.time, self.dev, self.bios.len() as u32, self.nr_issued);
        }
    }

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
        let request = match bio {
            Some(bio) => self.begin_request_of(bio, e, range, out),
            None => self.begin_request(e, range, out),
        };
        self.requests.get(request).life.get = Some(e.time);
        let Some(bio) = bio else { return false };
        self.bios.get(bio).life.get = Some(e.time);
        self.join(request, bio);
        true
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
            Merge::Back => self.ending_at(range.class, range.start, None),
            Merge::Front => {
                let starts = &mut self.starts[range.class];
                starts.at(Kind::Waiting, range.end).next()
            }
        };
        let target = target.filter(|t| self.requests.get(*t).life.nr_bios < REQUEST_BIOS_MAX);
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

    fn insert<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        let rq = self.requests.get(slot);
        rq.life.insert = Some(e.time);
        rq.life.rwbs = e.rwbs;
        rq.arrival.get_or_insert_with(|| self.scheduler.arrive());
        // The bio that began the request.
        if let Some(first) = rq.first {
            let life = &mut self.bios.get(first).life;
            if life.get.is_some() {
                life.insert = Some(e.time);
            }
        }
        let nr_waiting = self.scheduler.nr_waiting;
        out.sink.in_scheduler(self.dev, nr_waiting, false);
        found.is_some()
    }

    fn issue<S: LifeSink>(&mut self, e: &Event, range: Range, out: &mut Out<S>) -> bool {
        let found = self.gather(e, range, out);
        let slot = found.unwrap_or_else(|| self.begin_request(e, range, out));
        self.issue_waiting(slot);
        let rq = self.requests.get(slot);
        rq.life.issue = Some(e.time);
        rq.life.rwbs = e.rwbs;
        let overtaken = self.scheduler.issue(rq.arrival.take());
        let mut next = rq.first;
        while let Some(bio) = next {
            let bio = self.bios.get(bio);
            bio.life.issue = Some(e.time);
            next = bio.next;
        }
        self.nr_issued += 1;
        let nr_waiting = self.scheduler.nr_waiting;
        out.sink.in_scheduler(self.dev, nr_waiting, overtaken);
        found.is_some()
    }

    fn requeue(&mut self, range: Range) -> bool {
        let Some(slot) = self.find_issued(range) else {
            return false;
        };
        let rq = self.requests.get(slot);
        rq.life.issue = None;
        rq.life.nr_requeues += 1;
        let mut next = rq.first;
        while let Some(bio) = next {
            let bio = self.bios.get(bio);
            bio.life.issue = None;
            next = bio.next;
        }
        self.nr_issued -= 1;
        self.wait_again(slot);
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
        let starts = &mut self.starts[range.class];
        starts.remove(rq.by_start);
        if range.end >= rq.end {
            self.nr_issued -= 1;
            self.end_request(slot, e, out);
            return;
        }
        // A part in front: bios that end in it are done.
        rq.start = range.end;
        rq.by_start = starts.insert(Kind::Issued, rq.start, slot);
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
        let rq = self.requests.get(slot);
        self.scheduler.leave(rq.arrival);
        rq.life.complete = Some(e.time);
        if rq.life.error == 0 {
            rq.life.error = e.error;
        }
        let mut next = rq.first;
        while let Some(bio) = next {
            next = self.bios.get(bio).next;
            self.end_bio(bio, e, out);
        }
        out.sink.request(&self.requests.get(slot).life);
        self.requests.free(slot);
        if self.requests.len() == 0 {
            self.ends = None;
        }
    }

    fn end_bio<S: LifeSink>(&mut self, slot: Slot, e: &Event, out: &mut Out<S>) {
        let life = &mut self.bios.get(slot).life;
        life.complete = Some(e.time);
        life.error = e.error;
        out.sink.bio(life);
        self.bios.free(slot);
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
            let Range { class, start, end } = range;
            self.starts[class].within(Kind::Queued, start, end, &mut found, |slot| {
                bios.get(slot).end <= end
            });
        }
        for slot in &found {
            self.take_queued(*slot, range.class);
            self.end_bio(*slot, e, out);
        }
        let matched = !found.is_empty();
        self.scratch = found;
        matched
    }
}
