// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash drives: channels, dies, a write buffer, garbage collection.
//!
//! ```text
//!          controller        link          buffer         channel      die
//! write ─► one at a time ─► data in ─► slots of 4 KiB ┄┄► unit in ─► program
//!                                          └► done
//! read  ─► one at a time ─► firmware ─► die ─► channel ─► link out ─► done
//! ```
//!
//! Every command takes `command_us` of the controller, in order. A read then
//! takes its firmware time, beside any number of others, and asks the die of each
//! of its pages; parts leave over the link as they come, and it is done with the
//! last. Pages that are all in the buffer come from there. Pages go round the
//! channels, then ways, then dies.
//!
//! A read of more than 4 KiB has a firmware time of its own, takes more of the
//! cells and shares a path inside the drive with others of its kind; the drive
//! works on `read_slots` reads at a time. With `layout=scattered`, which is what
//! random writes leave behind, each 4 KiB come from a die of their own.
//!
//! A write takes the link, then slots of the buffer (writes without room wait in
//! order), then its firmware time. Slots gather into units that one die programs
//! at once; units go round the dies, whatever their addresses, one by one or in
//! [stripes](stripe) over several dies. What garbage collection adds is in [`gc`],
//! when it is collected in [`collect`], what dies do in which order in [`nand`].
//!
//! Units may go into a part with one bit per cell first ([`slc`]).
//!
//! With power-loss protection a flush costs its firmware time. Without, the unit
//! that is being filled is programmed as it is, and the flush is done
//! `flush_overhead_us` after all units begun before it are in the flash. A FUA
//! write without protection is done when its own units are.
//!
//! Example: `nvme-consumer`, one read of 4 KiB at sector 0 of an idle drive:
//! controller 2 us, firmware 21.5 us, cells 29.8 us, channel 4096 B at 800 MB/s
//! 5.12 us, link at 3360 MB/s 1.219 us: 59.639 us.
//!
//! Left out: the mapping table and its cache (pages are read where their address
//! says, not where they were written, and there is always a mapping to read),
//! caches of reads, reads and programs of single
//! planes beside others, read retries, wear, power states, heat.

mod alone;
mod buffer;
mod collect;
mod gc;
pub(crate) mod mobile;
mod nand;
mod pages;
mod params;
pub(crate) mod presets;
mod queue;
mod slc;
mod stripe;

#[cfg(test)]
mod figures;
#[cfg(test)]
mod loads;
#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;

pub(crate) use params::PARAMS;

use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::param::Values;
use alone::Alone;
use blklab_types::{BioFlags, Op, SECTOR_BYTES, Time, split_mix64};
use buffer::{Buffer, Ready};
use gc::{Cost, Streams};
use nand::{Nand, Outcome, PageRead, UnitWrite};
use params::{SLOT_BYTES, SLOT_SECTORS, Spec};
use slc::{Goes, Slc};
use std::collections::VecDeque;
use std::ops::Range;
use stripe::Stripe;

/// What the next wake-up of a command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The controller (of a read: and the firmware) has looked at it.
    Begun,
    /// Its data have come over the link.
    Received,
    /// It is done.
    Done,
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Active {
    cmd: Command,
    submitted: Time,
    stage: Stage,
    /// Of a read: pages to come. Of a write: slots without room.
    pending: u32,
    /// Of a read: when the last part that came is over the link.
    passed: Time,
    /// Of a write: it continues a stream.
    sequential: bool,
    /// Of a write: number of the first unit that it is in.
    first_unit: u64,
}

/// A command that waits until units are in the flash.
#[derive(Clone, Debug)]
struct Waiting {
    cmd: u32,
    /// Numbers of the units.
    of: Range<u64>,
    /// Those of them that are still to come.
    units: u32,
}

#[derive(Clone, Debug)]
struct Flash {
    spec: Spec,
    /// Commands by the driver's name for them.
    active: Vec<Active>,
    /// If flushes are not queued.
    alone: Option<Alone>,
    controller_free: Time,
    /// The controller's part that replaces data, if writes have one of their own.
    replacer_free: Time,
    /// Reads that the drive works on, and those that wait until it does.
    reads_taken: u32,
    reads_left: VecDeque<u32>,
    /// What reads of more than 4 KiB share.
    large_free: Time,
    /// The link towards the drive and towards the host; half duplex: the first.
    link_free: [Time; 2],
    nand: Nand,
    buffer: Buffer,
    /// Writes that are not all in the buffer, oldest first.
    entering: VecDeque<u32>,
    waiting: Vec<Waiting>,
    streams: Streams,
    slc: Slc,
    /// Units that wait for others.
    stripe: Stripe,
    /// The die of the next unit.
    next_die: usize,
    /// Slots that can be written before garbage has to be collected.
    credit_slots: u64,
}

/// The token of the wake-up that looks for idle time; names of commands have 32
/// bits.
const IDLE: u64 = 1 << 62;

const IN: usize = 0;
const OUT: usize = 1;

impl Flash {
    fn stage(&mut self, cx: &mut DeviceCx<'_>, cmd: u32, stage: Stage, time: Time) {
        self.active[cmd as usize].stage = stage;
        cx.wake_at(time, u64::from(cmd));
    }

    /// Takes the link for so many bytes; says when they have passed.
    fn pass_link(&mut self, now: Time, way: usize, bytes: u64) -> Time {
        let way = if self.spec.half_duplex { IN } else { way };
        let free = &mut self.link_free[way];
        *free = now.max(*free) + self.spec.link.time(bytes);
        *free
    }

    /// Begins with a command, or lets a read wait until another is done.
    fn take(&mut self, cx: &mut DeviceCx<'_>, no: u32) {
        let cmd = self.active[no as usize].cmd;
        if cmd.op == Op::Read {
            if self.reads_taken == self.spec.read_slots {
                self.reads_left.push_back(no);
                return;
            }
            self.reads_taken += 1;
        }
        let begun = self.look_at(cx.now, &cmd);
        self.stage(cx, no, Stage::Begun, begun);
    }

    /// A command is done; one that waits for that may begin.
    fn finish(&mut self, cx: &mut DeviceCx<'_>, no: u32) {
        let Active { cmd, submitted, .. } = self.active[no as usize];
        cx.finish(cmd.id, submitted);
        if cmd.op == Op::Read {
            self.reads_taken -= 1;
            if let Some(next) = self.reads_left.pop_front() {
                self.take(cx, next);
            }
        }
        if let Some(alone) = &mut self.alone {
            alone.ended();
        }
        while let Some(next) = self.alone.as_mut().and_then(Alone::next) {
            self.take(cx, next);
        }
    }

    /// Takes the controller for a command; says when it, and of a read the
    /// firmware, has looked at it.
    fn look_at(&mut self, now: Time, cmd: &Command) -> Time {
        if let (Op::Write, Some(time)) = (cmd.op, self.spec.write_command) {
            self.replacer_free = now.max(self.replacer_free) + time;
            return self.replacer_free;
        }
        self.controller_free = now.max(self.controller_free) + self.spec.command;
        match cmd.op {
            Op::Read => self.controller_free + self.spec.read_overhead[usize::from(is_large(cmd))],
            _ => self.controller_free,
        }
    }

    fn begin(&mut self, cx: &mut DeviceCx<'_>, no: u32) {
        let cmd = self.active[no as usize].cmd;
        match cmd.op {
            Op::Read => self.begin_read(cx, no, &cmd),
            Op::Write => {
                let bytes = u64::from(cmd.nr_sectors) * SECTOR_BYTES;
                let end = self.pass_link(cx.now, IN, bytes);
                self.stage(cx, no, Stage::Received, end);
            }
            Op::Flush if !self.spec.protected => self.write_out(cx, no, 0),
            Op::Flush => self.stage(cx, no, Stage::Done, cx.now + self.spec.flush_overhead),
            Op::Discard => {
                let whole =
                    (cmd.end() / SLOT_SECTORS).saturating_sub(cmd.sector.div_ceil(SLOT_SECTORS));
                self.credit_slots = (self.credit_slots + whole).min(self.spec.flash_slots);
                self.stage(cx, no, Stage::Done, cx.now + self.spec.discard_overhead);
            }
        }
    }

    fn begin_read(&mut self, cx: &mut DeviceCx<'_>, no: u32, cmd: &Command) {
        let (mut sector, end) = (cmd.sector, cmd.end());
        let size = if self.spec.scattered {
            SLOT_SECTORS
        } else {
            self.spec.page_sectors
        };
        let (mut pending, mut passed) = (0, cx.now);
        while sector < end {
            let page = sector / size;
            let part_end = end.min((page + 1) * size);
            let bytes = (part_end - sector) * SECTOR_BYTES;
            let mut slots = sector / SLOT_SECTORS..part_end.div_ceil(SLOT_SECTORS);
            if slots.all(|slot| self.buffer.holds(slot)) {
                passed = self.pass_link(cx.now, OUT, bytes);
            } else {
                let (die, kind) = self.place(page);
                let read = PageRead {
                    cmd: no,
                    bytes: bytes as u32,
                    large: is_large(cmd),
                    since: cx.now,
                    kind,
                };
                self.nand.read(cx, die, read);
                pending += 1;
            }
            sector = part_end;
        }
        self.active[no as usize].pending = pending;
        self.active[no as usize].passed = passed;
        if pending == 0 {
            self.stage(cx, no, Stage::Done, passed);
        }
    }

    /// The die of a page (of a slot, where they are scattered), and its kind.
    fn place(&self, page: u64) -> (usize, u8) {
        let (dies, kinds) = (self.nand.nr_dies() as u64, self.spec.timing.kinds);
        if !self.spec.scattered {
            return ((page % dies) as usize, (page / dies % kinds) as u8);
        }
        // Slots that follow each other were on their way to the flash together and
        // lie on different dies.
        let turn = split_mix64(page / dies) >> 32;
        (
            ((page + turn) % dies) as usize,
            (split_mix64(page) % kinds) as u8,
        )
    }

    /// Part of a page has come out of the flash.
    fn page_read(&mut self, cx: &mut DeviceCx<'_>, read: &PageRead) {
        let mut passed = self.pass_link(cx.now, OUT, u64::from(read.bytes));
        if let Some(rate) = self.spec.read_large.filter(|_| read.large) {
            self.large_free = cx.now.max(self.large_free) + rate.time(u64::from(read.bytes));
            passed = passed.max(self.large_free);
        }
        let active = &mut self.active[read.cmd as usize];
        active.passed = passed.max(active.passed);
        active.pending -= 1;
        if active.pending == 0 {
            let end = active.passed;
            self.stage(cx, read.cmd, Stage::Done, end);
        }
    }

    /// The data of a write are there and want into the buffer.
    fn received(&mut self, cx: &mut DeviceCx<'_>, no: u32) {
        if let Some(later) = self.slc.written(cx.now) {
            cx.wake_at(later, IDLE);
        }
        if !self.slc.is_waited_for() {
            self.nand.fold(cx, false);
        }
        let active = &mut self.active[no as usize];
        let cmd = active.cmd;
        let slots = cmd.end().div_ceil(SLOT_SECTORS) - cmd.sector / SLOT_SECTORS;
        active.pending = slots as u32;
        active.first_unit = u64::MAX;
        active.sequential = self.streams.continues(cmd.sector, cmd.end());
        self.entering.push_back(no);
        self.fill_buffer(cx);
    }

    /// Gives free slots to the writes that wait for them, the oldest first.
    fn fill_buffer(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(&no) = self.entering.front() {
            let Active {
                cmd,
                pending,
                sequential,
                first_unit,
                ..
            } = self.active[no as usize];
            let end = cmd.end().div_ceil(SLOT_SECTORS);
            let n = pending.min(self.buffer.free_slots());
            let first = first_unit.min(self.buffer.next_no());
            for i in 0..n {
                let page = end - u64::from(pending - i);
                if let Some(ready) = self.buffer.put(page, !sequential) {
                    self.full(cx, ready);
                }
            }
            let active = &mut self.active[no as usize];
            active.pending -= n;
            active.first_unit = first;
            if active.pending > 0 {
                return;
            }
            self.entering.pop_front();
            if cmd.flags.has(BioFlags::FUA) && !self.spec.protected {
                self.write_out(cx, no, first);
            } else {
                self.stage(cx, no, Stage::Done, cx.now + self.spec.write_overhead);
            }
        }
    }

    /// Lets a command wait until the units from number `first` on that have been
    /// begun are in the flash.
    fn write_out(&mut self, cx: &mut DeviceCx<'_>, no: u32, first: u64) {
        if let Some(ready) = self.buffer.close() {
            self.stripe.add(ready);
        }
        self.program_stripe(cx);
        let of = first..self.buffer.next_no();
        match self.buffer.count(&of) {
            0 => self.written_out(cx, no),
            units => self.waiting.push(Waiting { cmd: no, of, units }),
        }
    }

    fn written_out(&mut self, cx: &mut DeviceCx<'_>, no: u32) {
        let overhead = match self.active[no as usize].cmd.op {
            Op::Flush => self.spec.flush_overhead,
            _ => self.spec.write_overhead,
        };
        self.stage(cx, no, Stage::Done, cx.now + overhead);
    }

    /// Lets a unit that is full wait for the rest of its stripe, or sends them all.
    fn full(&mut self, cx: &mut DeviceCx<'_>, ready: Ready) {
        if self.stripe.add(ready) {
            self.program_stripe(cx);
        }
    }

    /// Sends the units that wait for others, complete stripe or not.
    fn program_stripe(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(ready) = self.stripe.take() {
            self.program(cx, ready);
        }
    }

    /// Sends a unit to the flash, or lets it wait for room in the SLC cache.
    fn program(&mut self, cx: &mut DeviceCx<'_>, ready: Ready) {
        match self.slc.place(ready) {
            Goes::Slc => self.program_on_next(cx, ready, true),
            Goes::Past => self.program_on_next(cx, ready, false),
            Goes::Waits => self.nand.fold(cx, true),
        }
    }

    /// Sends a unit to the next die, with what it costs there later.
    fn program_on_next(&mut self, cx: &mut DeviceCx<'_>, ready: Ready, slc: bool) {
        let size = u64::from(self.spec.unit_slots);
        let cost = match self.credit_slots {
            0 => Cost {
                moves: self.spec.moves * u64::from(ready.random) / size,
                erases: true,
            },
            _ => Cost::default(),
        };
        self.credit_slots = self.credit_slots.saturating_sub(size);
        let write = UnitWrite {
            unit: ready.unit,
            bytes: ready.slots * SLOT_BYTES as u32,
            since: cx.now,
            slc,
            cost,
        };
        let die = self.next_die;
        self.next_die = (die + 1) % self.nand.nr_dies();
        self.nand.program(cx, die, write);
    }

    /// A unit has been folded: the next one that waits goes into its place.
    fn folded(&mut self, cx: &mut DeviceCx<'_>) {
        if let Some(ready) = self.slc.folded() {
            self.program_on_next(cx, ready, true);
            if !self.slc.is_waited_for() {
                self.nand.fold(cx, false);
            }
        }
    }

    /// It is time to see whether the drive has been idle for so long that it folds.
    fn look_for_idle(&mut self, cx: &mut DeviceCx<'_>) {
        match self.slc.is_idle(cx.now) {
            Ok(()) => self.nand.fold(cx, true),
            Err(later) => cx.wake_at(later, IDLE),
        }
    }

    /// A unit is in the flash.
    fn programmed(&mut self, cx: &mut DeviceCx<'_>, unit: u32) {
        let no = self.buffer.programmed(unit);
        let mut i = 0;
        while i < self.waiting.len() {
            let w = &mut self.waiting[i];
            w.units -= u32::from(w.of.contains(&no));
            if w.units > 0 {
                i += 1;
                continue;
            }
            let cmd = self.waiting.remove(i).cmd;
            self.written_out(cx, cmd);
        }
        self.fill_buffer(cx);
    }
}

/// Whether a command is larger than what a drive looks up at a time.
fn is_large(cmd: &Command) -> bool {
    u64::from(cmd.nr_sectors) > SLOT_SECTORS
}

impl Device for Flash {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.spec.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        if cmd.nr_sectors == 0 && cmd.op != Op::Flush {
            cx.finish(cmd.id, cx.now);
            return;
        }
        let no = cmd.id.0;
        let active = Active {
            cmd: *cmd,
            submitted: cx.now,
            stage: Stage::Begun,
            pending: 0,
            passed: cx.now,
            sequential: false,
            first_unit: 0,
        };
        if self.active.len() <= no as usize {
            self.active.resize(no as usize + 1, active);
        }
        self.active[no as usize] = active;
        let alone = self.alone.as_mut();
        if alone.is_none_or(|a| a.admits(no, cmd.op == Op::Flush)) {
            self.take(cx, no);
        }
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        if nand::is_die_token(token) {
            match self.nand.wake(cx, token) {
                Some(Outcome::Read(read)) => self.page_read(cx, &read),
                Some(Outcome::Programmed(unit)) => self.programmed(cx, unit),
                Some(Outcome::Folded) => self.folded(cx),
                None => {}
            }
            return;
        }
        if token == IDLE {
            self.look_for_idle(cx);
            return;
        }
        let no = token as u32;
        match self.active[no as usize].stage {
            Stage::Begun => self.begin(cx, no),
            Stage::Received => self.received(cx, no),
            Stage::Done => self.finish(cx, no),
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.spec.capacity_sectors)
    }
}

fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let spec = Spec::from_values(values)?;
    let depth = depth as usize;
    Ok(Box::new(Flash {
        active: Vec::with_capacity(depth),
        alone: (!spec.flush_queued).then(|| Alone::new(depth)),
        controller_free: Time::ZERO,
        replacer_free: Time::ZERO,
        reads_taken: 0,
        reads_left: VecDeque::with_capacity(depth),
        large_free: Time::ZERO,
        link_free: [Time::ZERO; 2],
        nand: Nand::new(&spec, depth),
        buffer: Buffer::new(spec.buffer_slots, spec.unit_slots),
        entering: VecDeque::with_capacity(depth),
        waiting: Vec::with_capacity(depth),
        streams: Streams::new(spec.streams),
        slc: Slc::new(spec.slc, (spec.buffer_slots / spec.unit_slots) as usize + 1),
        stripe: Stripe::over(spec.stripe_dies),
        next_die: 0,
        credit_slots: spec.credit_slots,
        spec,
    }))
}
