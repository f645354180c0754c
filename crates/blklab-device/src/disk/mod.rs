// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rotating disk with its controller: overhead, queue, buffer, mechanism.
//!
//! ```text
//! submit ─overhead─► ready ─┬─ read in the buffer ──────────► bus ─► done
//!                           ├─ write, cache on, room ───────► bus ─► done, dirty
//!                           ├─ write, cache on, full ─► waits for destaging
//!                           └─ everything else ─► queue ─► mechanism ─► done
//! ```
//!
//! Overheads of different commands overlap; bus and mechanism serve one at a
//! time. When the mechanism is free it takes a queued command (by the selection
//! policy) or a dirty range (by shortest positioning time); which of the two is
//! the read priority's decision. After a read, and while it has nothing to do,
//! it reads ahead. A flush holds back everything that becomes ready after it,
//! and ends when all that was there before is on the medium.
//!
//! Sources: sections on disks in the literature cited in [`seek`]; DiskSim 4.0
//! for the parts of the controller. Left out: media errors and remapping,
//! thermal recalibration, power states, and spindle speed variation.

mod dirty;
pub(crate) mod disksim;
mod geometry;
mod mechanism;
mod params;
pub(crate) mod presets;
mod read_cache;
mod seek;
mod select;
mod spares;
#[cfg(test)]
mod tests;
mod write_cache;

pub(crate) use params::{PARAMS, build};

use crate::device::{Command, Device, DeviceCx, EIO};
use blklab_types::{BioFlags, Op, Slab, Span, Time};
use dirty::DirtySet;
use mechanism::{Mechanism, Wanted};
use read_cache::{Lookup, ReadCache};
use select::{Queued, Selection, Situation};
use std::collections::VecDeque;
use write_cache::{Next, WriteCache};

/// Time from hand-over until a command is ready, by kind of command and kind of
/// the command before it (read, write).
///
/// The kind before counts for commands that follow closely. After a pause each
/// kind takes what it takes after the other one: so it is on the four disks
/// with validation traces whose figures differ enough to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overheads {
    pub(crate) read_hit_ns: [u64; 2],
    pub(crate) read_miss_ns: [u64; 2],
    pub(crate) write_hit_ns: [u64; 2],
    pub(crate) write_miss_ns: [u64; 2],
}

/// A command that comes later than this after the end of the one before does
/// not follow it closely. The pauses of the validation traces are 5 ms or more.
const FOLLOWS_NS: u64 = 1_000_000;

/// Kinds of wake-ups, in the upper half of the token; below is the slot.
const READY: u64 = 0;
const BUS: u64 = 1 << 32;
const MECHANISM: u64 = 2 << 32;

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Slot {
    cmd: Command,
    started: Time,
    /// A write that goes to the cache.
    cached: bool,
}

/// What the mechanism is busy with.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// A command; the media part ends with the job, the bus maybe later.
    Command { slot: u32, bus_end: Time },
    /// A read that waits for the medium running on to its end.
    Coming { slot: u32 },
    /// Dirty sectors on their way to the medium.
    Destage,
    /// Read-ahead that must not be interrupted yet.
    Prefetch,
}

/// What a disk consists of.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) mech: Mechanism,
    pub(crate) overheads: Overheads,
    /// Bus time of one sector.
    pub(crate) bus_ns: u64,
    pub(crate) selection: Selection,
    pub(crate) cache: ReadCache,
    pub(crate) prefetch_min_sectors: u64,
    pub(crate) resume_read_ahead: bool,
    pub(crate) writes: WriteCache,
}

/// The disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    parts: Parts,
    slots: Slab<u32, Slot>,
    /// Ready for the mechanism, oldest first.
    queue: Vec<Queued>,
    /// Ready writes without room in the cache, oldest first.
    waiting: VecDeque<u32>,
    /// Ready after a flush, oldest first.
    held: VecDeque<u32>,
    flush: Option<u32>,
    job: Option<Job>,
    bus_free: Time,
    /// The command handed over last was a write.
    after_write: bool,
    /// When a command ended last.
    last_end: Time,
    /// Sector after the last one accessed.
    position: u64,
}

impl Device for Disk {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.parts.mech.geometry.capacity_sectors()) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let n = u64::from(cmd.nr_sectors);
        let cached =
            cmd.op == Op::Write && !cmd.flags.has(BioFlags::FUA) && self.parts.writes.takes(n);
        let overhead_ns = self.overhead_ns(cx.now, cmd, cached);
        let slot = self.slots.insert(Slot {
            cmd: *cmd,
            started: cx.now,
            cached,
        });
        self.after_write = cmd.op != Op::Read;
        if overhead_ns == 0 {
            self.ready(cx, slot);
            self.start_next(cx);
        } else {
            cx.wake_at(cx.now + Span(overhead_ns), READY | u64::from(slot));
        }
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        let slot = token as u32;
        match token & !u64::from(u32::MAX) {
            READY => self.ready(cx, slot),
            BUS => self.bus_done(cx, slot),
            _ => self.job_done(cx),
        }
        self.start_next(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.parts.mech.geometry.capacity_sectors())
    }
}

impl Disk {
    pub(crate) fn new(parts: Parts, depth: u32) -> Disk {
        let depth = depth as usize;
        Disk {
            parts,
            slots: Slab::with_capacity(depth),
            queue: Vec::with_capacity(depth),
            waiting: VecDeque::with_capacity(depth),
            held: VecDeque::with_capacity(depth),
            flush: None,
            job: None,
            bus_free: Time::ZERO,
            after_write: false,
            last_end: Time::ZERO,
            position: 0,
        }
    }

    fn finish(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let Slot {
            cmd: Command { id, .. },
            started,
            ..
        } = *self.slots.remove(slot);
        self.last_end = cx.now;
        cx.finish(id, started);
    }

    fn overhead_ns(&self, now: Time, cmd: &Command, cached: bool) -> u64 {
        let by_kind = match cmd.op {
            Op::Read => match self.look_up(now, cmd) {
                Lookup::Miss => &self.parts.overheads.read_miss_ns,
                Lookup::Hit | Lookup::Coming(_) => &self.parts.overheads.read_hit_ns,
            },
            Op::Write if !cached => &self.parts.overheads.write_miss_ns,
            Op::Write | Op::Discard | Op::Flush => &self.parts.overheads.write_hit_ns,
        };
        let alone = self.slots.is_empty();
        let follows = !alone || now.since(self.last_end).ns() < FOLLOWS_NS;
        let after_write = if follows {
            self.after_write
        } else {
            cmd.op == Op::Read
        };
        by_kind[usize::from(after_write)]
    }

    fn look_up(&self, now: Time, cmd: &Command) -> Lookup {
        if self.parts.writes.holds(cmd.sector, cmd.end()) {
            return Lookup::Hit;
        }
        self.parts
            .cache
            .lookup(&self.parts.mech.geometry, cmd.sector, cmd.end(), now.ns())
    }

    /// A command's overhead is over.
    fn ready(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        if self.flush.is_some() {
            self.held.push_back(slot);
            return;
        }
        let Slot { cmd, cached, .. } = self.slots[slot];
        match cmd.op {
            _ if cmd.op != Op::Flush && cmd.nr_sectors == 0 => self.finish(cx, slot),
            Op::Discard => self.finish(cx, slot),
            Op::Flush => self.flush = Some(slot),
            Op::Read => self.ready_read(cx, slot),
            Op::Write if cached => {
                self.waiting.push_back(slot);
                self.admit(cx);
            }
            Op::Write => self.enqueue(cx.now, slot),
        }
    }

    fn ready_read(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let cmd = self.slots[slot].cmd;
        match self.look_up(cx.now, &cmd) {
            Lookup::Hit => self.serve_hit(cx, slot),
            Lookup::Coming(end_ns) if self.job.is_none() => self.serve_coming(cx, slot, end_ns),
            Lookup::Coming(_) | Lookup::Miss => self.enqueue(cx.now, slot),
        }
    }

    fn enqueue(&mut self, now: Time, slot: u32) {
        let cmd = &self.slots[slot].cmd;
        self.queue.push(Queued {
            slot,
            write: cmd.op == Op::Write,
            start: cmd.sector,
            end: cmd.end(),
            since: now,
            place: self.parts.mech.geometry.place(cmd.sector),
        });
    }

    /// A read from the buffer: over the bus.
    fn serve_hit(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let cmd = self.slots[slot].cmd;
        let (geometry, now_ns) = (&self.parts.mech.geometry, cx.now.ns());
        self.parts
            .cache
            .hit(geometry, cmd.sector, cmd.end(), now_ns);
        if self.parts.resume_read_ahead && self.job.is_none() && self.queue.is_empty() {
            let resume = self
                .parts
                .cache
                .resume_at(geometry, cmd.sector, cmd.end(), now_ns);
            if let Some(from) = resume.filter(|&from| from < geometry.capacity_sectors()) {
                let place = geometry.place(from);
                let moment = self.parts.mech.moment(now_ns);
                let wait_ns = self.parts.mech.positioning_ns(moment, &place, false);
                self.parts
                    .cache
                    .resume(geometry, cmd.end(), now_ns + u64::from(wait_ns));
                self.parts.mech.moved_to(from + 1);
            }
        }
        self.over_bus(cx, slot);
    }

    fn serve_coming(&mut self, cx: &mut DeviceCx<'_>, slot: u32, end_ns: u64) {
        self.slots[slot].started = cx.now;
        self.job = Some(Job::Coming { slot });
        cx.wake_at(Time(end_ns), MECHANISM);
    }

    fn over_bus(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let begin = self.bus_free.max(cx.now);
        let Slot { cmd, started, .. } = &mut self.slots[slot];
        *started = cx.now;
        self.bus_free = begin + Span(u64::from(cmd.nr_sectors) * self.parts.bus_ns);
        cx.wake_at(self.bus_free, BUS | u64::from(slot));
    }

    /// Lets waiting writes into the cache while there is room.
    fn admit(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(&slot) = self.waiting.front() {
            let cmd = self.slots[slot].cmd;
            if !self.parts.writes.reserve(u64::from(cmd.nr_sectors)) {
                return;
            }
            self.waiting.pop_front();
            self.parts.cache.invalidate(cmd.sector, cmd.end());
            self.over_bus(cx, slot);
        }
    }

    fn bus_done(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let Slot { cmd, cached, .. } = self.slots[slot];
        self.finish(cx, slot);
        if cached {
            self.parts
                .writes
                .fill(&self.parts.mech, cmd.sector, cmd.end(), cx.now);
            self.admit(cx);
        }
    }

    fn job_done(&mut self, cx: &mut DeviceCx<'_>) {
        let now_ns = cx.now.ns();
        match self.job.take() {
            Some(Job::Command { slot, bus_end }) => {
                let cmd = self.slots[slot].cmd;
                if cmd.op == Op::Read {
                    self.parts
                        .cache
                        .read(&self.parts.mech.geometry, cmd.sector, cmd.end(), now_ns);
                }
                self.finish_after_bus(cx, slot, bus_end);
            }
            Some(Job::Coming { slot }) => {
                let end = self.slots[slot].cmd.end();
                self.parts
                    .cache
                    .ran_to(&self.parts.mech.geometry, end, now_ns);
                self.parts.mech.moved_to(end);
                self.position = end;
                let Slot { cmd, started, .. } = self.slots[slot];
                let bus_end = self.bus_end(started, cx.now, u64::from(cmd.nr_sectors));
                self.finish_after_bus(cx, slot, bus_end);
            }
            Some(Job::Destage) => {
                self.parts.writes.destaged();
                self.admit(cx);
            }
            Some(Job::Prefetch) | None => {}
        }
    }

    /// Gives the free mechanism something to do, and ends a flush that has
    /// nothing left to wait for.
    fn start_next(&mut self, cx: &mut DeviceCx<'_>) {
        while self.job.is_none() {
            if self.queue.is_empty() && self.parts.writes.dirty().is_empty() {
                if !self.end_flush(cx) {
                    return;
                }
                continue;
            }
            if self.keep_prefetching(cx) {
                return;
            }
            self.start_one(cx);
        }
    }

    /// Read-ahead that something waits for, but that has its minimum to do.
    fn keep_prefetching(&mut self, cx: &mut DeviceCx<'_>) -> bool {
        if self.parts.prefetch_min_sectors == 0 {
            return false;
        }
        let until = self
            .parts
            .cache
            .run_time_ns(&self.parts.mech.geometry, self.parts.prefetch_min_sectors);
        let Some(until) = until.map(Time).filter(|&until| until > cx.now) else {
            return false;
        };
        self.job = Some(Job::Prefetch);
        cx.wake_at(until, MECHANISM);
        true
    }

    fn start_one(&mut self, cx: &mut DeviceCx<'_>) {
        let at = Situation {
            mech: &self.parts.mech,
            moment: self.parts.mech.moment(cx.now.ns()),
            now: cx.now,
            passed: self
                .parts
                .cache
                .passed(&self.parts.mech.geometry, cx.now.ns()),
            position: self.position,
        };
        let flushing = self.flush.is_some();
        match self
            .parts
            .writes
            .next(&self.queue, &self.parts.selection, &at, flushing)
        {
            Some(Next::Command(i)) => self.start_command(cx, i),
            Some(Next::Destage(i)) => self.start_destage(cx, i),
            None => {}
        }
    }

    fn start_command(&mut self, cx: &mut DeviceCx<'_>, i: usize) {
        let queued = self.queue.remove(i);
        let slot = queued.slot;
        if !queued.write {
            // Read-ahead may have caught up with it in the meantime.
            match self.look_up(cx.now, &self.slots[slot].cmd) {
                Lookup::Hit => return self.serve_hit(cx, slot),
                Lookup::Coming(end_ns) => return self.serve_coming(cx, slot, end_ns),
                Lookup::Miss => {}
            }
        }
        self.leave_run(cx.now);
        let (start, end) = (queued.start, queued.end);
        if queued.write {
            self.parts.cache.invalidate(start, end);
            self.parts.writes.overwrite(&self.parts.mech, start, end);
        }
        let bus_ns = (end - start) * self.parts.bus_ns;
        let wanted = Wanted {
            place: queued.place,
            sector: start,
            n: end - start,
            write: queued.write,
            data_ns: if queued.write { bus_ns } else { 0 },
        };
        let access = self.parts.mech.access(cx.now.ns(), &wanted);
        self.position = end;
        self.slots[slot].started = cx.now;
        let media_end = Time(access.end_ns);
        let bus_end = if queued.write {
            media_end
        } else {
            let first =
                Time(access.first_ns) + Span((access.end_ns - access.first_ns) / (end - start));
            self.bus_end(first, media_end, end - start)
        };
        self.job = Some(Job::Command { slot, bus_end });
        cx.wake_at(Time(access.end_ns), MECHANISM);
    }

    /// When a read of `n` sectors has crossed the bus, of which the medium has
    /// passed the first and the last at the times given. A bus faster than the
    /// medium follows the head sector by sector and ends with it; its own last
    /// sector is neglected.
    fn bus_end(&mut self, first: Time, media_end: Time, n: u64) -> Time {
        let bus_end = self.bus_free.max(first) + Span(n * self.parts.bus_ns);
        if bus_end <= media_end + Span(self.parts.bus_ns) {
            return media_end;
        }
        self.bus_free = bus_end;
        bus_end
    }

    fn finish_after_bus(&mut self, cx: &mut DeviceCx<'_>, slot: u32, bus_end: Time) {
        if bus_end > cx.now {
            cx.wake_at(bus_end, BUS | u64::from(slot));
        } else {
            self.finish(cx, slot);
        }
    }

    fn start_destage(&mut self, cx: &mut DeviceCx<'_>, i: usize) {
        self.leave_run(cx.now);
        let (start, end, place) = self.parts.writes.take(&self.parts.mech, i);
        let wanted = Wanted {
            place,
            sector: start,
            n: end - start,
            write: true,
            data_ns: 0,
        };
        let access = self.parts.mech.access(cx.now.ns(), &wanted);
        self.position = end;
        self.job = Some(Job::Destage);
        cx.wake_at(Time(access.end_ns), MECHANISM);
    }

    /// Ends read-ahead; the head is where it got to.
    fn leave_run(&mut self, now: Time) {
        if let Some(end) = self
            .parts
            .cache
            .stop_running(&self.parts.mech.geometry, now.ns())
        {
            self.parts.mech.moved_to(end);
        }
    }

    /// Ends a flush if everything before it is done, and lets in what it held
    /// back. Returns whether anything may have become ready.
    fn end_flush(&mut self, cx: &mut DeviceCx<'_>) -> bool {
        let Some(slot) = self.flush else { return false };
        if !self.parts.writes.is_clean() || !self.waiting.is_empty() {
            return false;
        }
        self.flush = None;
        self.finish(cx, slot);
        while self.flush.is_none() {
            let Some(slot) = self.held.pop_front() else {
                break;
            };
            self.ready(cx, slot);
        }
        true
    }
}
