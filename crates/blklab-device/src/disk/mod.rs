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
//! and ends when all that was there before is on the medium. What a drive with
//! shingled recording does beside that is in [`shingles`].
//!
//! Sources: sections on disks in the literature cited in [`seek`]; DiskSim 4.0
//! for the parts of the controller. Left out: media errors and remapping,
//! thermal recalibration, power states, and spindle speed variation.

mod bus;
mod dirty;
pub(crate) mod disksim;
mod geometry;
mod mechanism;
mod overheads;
mod params;
pub(crate) mod presets;
mod read_cache;
mod seek;
mod select;
mod shingles;
mod spares;
#[cfg(test)]
mod tests;
mod write_cache;

pub(crate) use params::{PARAMS, build};

use crate::device::{Command, Device, DeviceCx, EIO};
use blklab_types::{BioFlags, Op, Slab, Span, Time};
use bus::{Bus, Incoming};
use dirty::DirtySet;
use mechanism::{Access, Mechanism, Wanted};
use overheads::{Arrival, ExtraDisconnect, Overheads};
use read_cache::{Lookup, ReadCache};
use select::{Queued, Selection, Situation};
use shingles::Shingles;
use std::collections::VecDeque;
use write_cache::{Next, WriteCache};

/// Kinds of wake-ups, in the upper half of the token; below is the slot.
const READY: u64 = 0;
const BUS: u64 = 1 << 32;
const MECHANISM: u64 = 2 << 32;
const IDLE: u64 = 3 << 32;

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Slot {
    cmd: Command,
    started: Time,
    /// A write that goes to the cache.
    cached: bool,
    /// The command before was a write.
    after_write: bool,
    /// The mechanism begins no earlier than this for it.
    mechanism_from: Time,
    /// A write that lets go of the bus before its data come.
    extra: Option<ExtraDisconnect>,
}

/// What the mechanism is busy with.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// A command; the media part ends with the job, the bus maybe later.
    Command {
        slot: u32,
        bus_end: Time,
        /// Its first sector that was not in the buffer.
        from: u64,
    },
    /// A read that waits for the medium running on to its end.
    Coming { slot: u32, read: Incoming },
    /// Dirty sectors on their way to the medium.
    Destage,
    /// Read-ahead that must not be interrupted yet.
    Prefetch,
    /// Cleaning of a band.
    Clean,
}

/// What a disk consists of.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) mech: Mechanism,
    pub(crate) overheads: Overheads,
    pub(crate) bus: Bus,
    pub(crate) selection: Selection,
    pub(crate) cache: ReadCache,
    pub(crate) prefetch_min_sectors: u64,
    pub(crate) resume_read_ahead: bool,
    /// Least time of the move to a write that does not continue the one before.
    pub(crate) least_write_move_ns: u64,
    pub(crate) writes: WriteCache,
    pub(crate) shingles: Option<Shingles>,
}

impl Parts {
    /// What the host sees; a media cache lies behind it.
    fn capacity_sectors(&self) -> u64 {
        self.shingles.as_ref().map_or_else(
            || self.mech.geometry.capacity_sectors(),
            Shingles::capacity_sectors,
        )
    }
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
    /// The command handed over last was a write.
    after_write: bool,
    /// Sector after the last one accessed.
    position: u64,
}

impl Device for Disk {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.parts.capacity_sectors()) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let n = u64::from(cmd.nr_sectors);
        let cached =
            cmd.op == Op::Write && !cmd.flags.has(BioFlags::FUA) && self.parts.writes.takes(n);
        let extra = self.extra_disconnect(cmd, cached);
        let [overhead_ns, mechanism_ns] = match extra {
            Some(extra) => [extra.mechanism_ns; 2],
            None => self.parts.overheads.ns(&self.arrival(cx.now, cmd, cached)),
        };
        let slot = self.slots.insert(Slot {
            cmd: *cmd,
            started: cx.now,
            cached,
            after_write: self.after_write,
            mechanism_from: cx.now + Span(mechanism_ns),
            extra,
        });
        self.after_write = cmd.op != Op::Read;
        self.note_work(cx.now);
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
            IDLE => self.looked_for_idleness(),
            _ => self.job_done(cx),
        }
        self.start_next(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.parts.capacity_sectors())
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
            after_write: false,
            position: 0,
        }
    }

    fn finish(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let Slot {
            cmd: Command { id, .. },
            started,
            ..
        } = *self.slots.remove(slot);
        self.note_work(cx.now);
        cx.finish(id, started);
    }

    fn arrival(&self, now: Time, cmd: &Command, cached: bool) -> Arrival {
        let found = match cmd.op {
            Op::Read => self.look_up(now, cmd),
            _ => Lookup::Miss,
        };
        Arrival {
            op: cmd.op,
            hit: cached || found != Lookup::Miss,
            partial: matches!(found, Lookup::Partial(_)),
            after_write: self.after_write,
            alone: self.slots.is_empty(),
        }
    }

    /// Whether a write lets go of the bus before its data come: it does behind a
    /// write that it does not continue.
    fn extra_disconnect(&self, cmd: &Command, cached: bool) -> Option<ExtraDisconnect> {
        let elsewhere = cmd.op == Op::Write && self.after_write && cmd.sector != self.position;
        self.parts.overheads.extra.filter(|_| elsewhere && !cached)
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
            Lookup::Coming(_) | Lookup::Partial(_) | Lookup::Miss => self.enqueue(cx.now, slot),
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
        let Slot {
            cmd, after_write, ..
        } = self.slots[slot];
        let (geometry, n) = (&self.parts.mech.geometry, u64::from(cmd.nr_sectors));
        let there = self.parts.cache.run_over(geometry, cmd.sector, cx.now.ns());
        let there = there.min(n.saturating_sub(1));
        let rest_ns = geometry.transfer_ns(cmd.sector + there, n - there);
        let next_ns = geometry.transfer_ns(cmd.sector + there, 1);
        let read = Incoming {
            from: cx.now,
            n,
            there,
            next: Time((end_ns + next_ns).saturating_sub(rest_ns)),
            last: Time(end_ns),
            disconnected: false,
            after_write,
        };
        self.job = Some(Job::Coming { slot, read });
        cx.wake_at(Time(end_ns), MECHANISM);
    }

    fn over_bus(&mut self, cx: &mut DeviceCx<'_>, slot: u32) {
        let Slot { cmd, started, .. } = &mut self.slots[slot];
        *started = cx.now;
        let write = cmd.op == Op::Write;
        let end = self
            .parts
            .bus
            .transfer(cx.now, u64::from(cmd.nr_sectors), write);
        cx.wake_at(end, BUS | u64::from(slot));
    }

    /// Lets waiting writes into the cache while there is room.
    fn admit(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(&slot) = self.waiting.front() {
            let cmd = self.slots[slot].cmd;
            if !self.parts.writes.reserve(u64::from(cmd.nr_sectors)) {
                return;
            }
            self.waiting.pop_front();
            self.parts.cache.write(cmd.sector, cmd.end());
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
            Some(Job::Command {
                slot,
                bus_end,
                from,
            }) => {
                let cmd = self.slots[slot].cmd;
                if cmd.op == Op::Read {
                    self.parts
                        .cache
                        .read(&self.parts.mech.geometry, from, cmd.end(), now_ns);
                }
                self.finish_after_bus(cx, slot, bus_end);
            }
            Some(Job::Coming { slot, read }) => {
                let end = self.slots[slot].cmd.end();
                self.parts
                    .cache
                    .ran_to(&self.parts.mech.geometry, end, now_ns);
                self.parts.mech.moved_to(end);
                self.position = end;
                let bus_end = self.parts.bus.read_end(&read);
                self.finish_after_bus(cx, slot, bus_end);
            }
            Some(Job::Destage) => {
                self.parts.writes.destaged();
                self.admit(cx);
            }
            Some(Job::Prefetch | Job::Clean) | None => {}
        }
    }

    /// Gives the free mechanism something to do, and ends a flush that has
    /// nothing left to wait for.
    fn start_next(&mut self, cx: &mut DeviceCx<'_>) {
        while self.job.is_none() {
            if self.queue.is_empty() && self.parts.writes.dirty().is_empty() {
                if !self.end_flush(cx) {
                    self.clean_when_idle(cx);
                    return;
                }
                continue;
            }
            if self.make_room(cx) {
                return;
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
        let (mut start, end, mut place) = (queued.start, queued.end, queued.place);
        if !queued.write {
            // Read-ahead may have caught up with it in the meantime.
            match self.look_up(cx.now, &self.slots[slot].cmd) {
                Lookup::Hit => return self.serve_hit(cx, slot),
                Lookup::Coming(end_ns) => return self.serve_coming(cx, slot, end_ns),
                Lookup::Partial(from) => {
                    start = from;
                    place = self.parts.mech.geometry.place(from);
                }
                Lookup::Miss => {}
            }
        }
        self.leave_run(cx.now);
        if queued.write {
            self.parts.cache.write(start, end);
            self.parts.writes.overwrite(&self.parts.mech, start, end);
        }
        let (at, n) = if queued.write {
            self.write_place(start, end)
        } else {
            (start, end - start)
        };
        if at != start {
            place = self.parts.mech.geometry.place(at);
        }
        let extra = self.slots[slot].extra;
        let wanted = Wanted {
            place,
            sector: at,
            n,
            write: queued.write,
            data_ns: match extra {
                _ if !queued.write => 0,
                Some(extra) => extra.data_ns + self.parts.bus.write_data_ns(end - start),
                None => self.parts.bus.write_data_ns(end - start),
            },
            least_move_ns: if queued.write && start != self.position {
                self.parts.least_write_move_ns
            } else {
                0
            },
        };
        let begin = self.slots[slot].mechanism_from.max(cx.now);
        let access = self.parts.mech.access(begin.ns(), &wanted);
        let media_end = Time(access.end_ns + self.refill_ns(&wanted, &access));
        self.position = end;
        self.slots[slot].started = cx.now;
        let bus_end = if queued.write {
            let reselect_ns = extra.map(|e| e.reselect_ns);
            self.parts.bus.write_end(media_end, reselect_ns)
        } else {
            let next = Time(access.first_ns) + Span((access.end_ns - access.first_ns) / n);
            self.parts.bus.read_end(&Incoming {
                from: cx.now,
                n: end - queued.start,
                there: start - queued.start,
                next,
                last: media_end,
                disconnected: start == queued.start,
                after_write: self.slots[slot].after_write,
            })
        };
        self.job = Some(Job::Command {
            slot,
            bus_end,
            from: start,
        });
        cx.wake_at(media_end, MECHANISM);
    }

    /// What a write loses that is larger than its segment: the bus brings the rest
    /// while the medium takes it.
    fn refill_ns(&self, wanted: &Wanted, access: &Access) -> u64 {
        if !wanted.write {
            return 0;
        }
        let late_ns = self
            .parts
            .bus
            .refill_late_ns(wanted.n, access.end_ns - access.first_ns);
        let revolution_ns = u64::from(self.parts.mech.revolution_ns);
        late_ns.div_ceil(revolution_ns) * revolution_ns
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
        let (start, end, mut place) = self.parts.writes.take(&self.parts.mech, i);
        let (at, n) = self.write_place(start, end);
        if at != start {
            place = self.parts.mech.geometry.place(at);
        }
        let wanted = Wanted {
            place,
            sector: at,
            n,
            write: true,
            data_ns: 0,
            least_move_ns: 0,
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
