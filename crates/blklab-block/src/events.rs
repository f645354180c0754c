// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both block paths write to the trace and the truth stream.

use crate::{Cx, Request, RqId};
use blklab_trace::truth::{Kind, NO_REQUEST, Truth};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Bio, BioFlags, Dev, Op, SECTOR_BYTES, Time};

/// Emits a bio event and its truth record.
#[inline]
pub(crate) fn bio_event(dev: Dev, cx: &mut Cx<'_>, action: Action, kind: Kind, bio: &Bio) {
    if cx.wants_events() {
        let rwbs = Rwbs::of_bio(bio.op, bio.flags);
        cx.event(dev, event(action, rwbs, bio.sector, bio.nr_sectors));
    }
    bio_truth(cx, kind, bio, 0);
}

/// A bio ends without a request (C), since its submitter does not sleep.
pub(crate) fn refused_event(dev: Dev, cx: &mut Cx<'_>, bio: &Bio) {
    let rwbs = Rwbs::of_bio(bio.op, bio.flags);
    let event = event(Action::Complete, rwbs, bio.sector, bio.nr_sectors);
    cx.event(dev, event.refused());
}

/// Emits a truth record about a bio alone.
#[inline]
pub(crate) fn bio_truth(cx: &mut Cx<'_>, kind: Kind, bio: &Bio, arg: u64) {
    if !cx.wants_truth() {
        return;
    }
    let record = Truth {
        time: cx.now,
        kind,
        pid: cx.tasks.get(bio.task).pid,
        op: bio.op,
        sync: bio.is_sync(),
        sector: bio.sector,
        nr_sectors: bio.nr_sectors,
        arg,
        request: NO_REQUEST,
    };
    cx.truth(record, "");
}

/// A bio takes its place on the disk (A): from the first partition's own
/// sector to the disk's.
pub(crate) fn partition_event(dev: Dev, cx: &mut Cx<'_>, bio: &Bio, start: u64) {
    if bio.nr_sectors == 0 {
        // A flush has no place (`blk_partition_remap`).
        return;
    }
    let partition = Dev {
        minor: dev.minor + 1,
        ..dev
    };
    remap_event(dev, cx, bio, partition, bio.sector.saturating_sub(start));
}

/// A bio comes from a sector of another device (A).
pub(crate) fn remap_event(dev: Dev, cx: &mut Cx<'_>, bio: &Bio, from_dev: Dev, sector: u64) {
    let rwbs = Rwbs::of_bio(bio.op, bio.flags);
    let mut event = event(Action::Remap, rwbs, bio.sector, bio.nr_sectors);
    event.arg = sector;
    event.from_dev = from_dev;
    cx.event(dev, event);
}

/// A bio is split (X): its front part goes on, the rest starts at a sector.
pub(crate) fn split_event(dev: Dev, cx: &mut Cx<'_>, front: &Bio, rest_sector: u64) {
    let rwbs = Rwbs::of_bio(front.op, front.flags);
    let mut event = event(Action::Split, rwbs, front.sector, front.nr_sectors);
    event.arg = rest_sector;
    cx.event(dev, event);
}

/// Emits a request event alone; `flags` are those it shows.
#[inline]
pub(crate) fn rq_trace(
    dev: Dev,
    cx: &mut Cx<'_>,
    action: Action,
    rq: &Request,
    flags: BioFlags,
    error: u16,
) {
    if !cx.wants_events() {
        return;
    }
    let op = match rq.op {
        // A flush was once an empty write that asks for it.
        Op::Flush if flags.has(BioFlags::FLUSH) => Op::Write,
        op => op,
    };
    let mut event = event(action, Rwbs::of_bio(op, flags), rq.sector, rq.nr_sectors);
    event.error = error;
    cx.event(dev, event);
}

/// Emits a request's truth record alone.
#[inline]
pub(crate) fn rq_truth(cx: &mut Cx<'_>, kind: Kind, id: RqId, rq: &Request, arg: u64) {
    if !cx.wants_truth() {
        return;
    }
    let record = Truth {
        time: cx.now,
        kind,
        pid: cx.tasks.get(rq.task).pid,
        op: rq.op,
        sync: rq.is_sync(),
        sector: rq.sector,
        nr_sectors: rq.nr_sectors,
        arg,
        request: id.0,
    };
    cx.truth(record, "");
}

/// Emits an event about the queue rather than a bio.
pub(crate) fn queue_event(dev: Dev, cx: &mut Cx<'_>, action: Action, arg: u64) {
    let mut event = event(action, Rwbs::NONE, 0, 0);
    event.arg = arg;
    cx.event(dev, event);
}

/// A message of a scheduler, as blktrace's `m` events, if anybody reads it: at
/// most [`MESSAGE_MAX`] bytes, the rest is cut off.
#[inline]
pub(crate) fn message(dev: Dev, cx: &mut Cx<'_>, text: std::fmt::Arguments<'_>) {
    if cx.wants_messages() {
        write_message(dev, cx, text);
    }
}

#[cold]
fn write_message(dev: Dev, cx: &mut Cx<'_>, text: std::fmt::Arguments<'_>) {
    let mut line = Line {
        bytes: [0; MESSAGE_MAX],
        len: 0,
    };
    // A full line is no error: the kernel cuts messages too.
    let _ = std::fmt::Write::write_fmt(&mut line, text);
    let text = std::str::from_utf8(&line.bytes[..line.len]).unwrap_or_default();
    let mut event = event(Action::Message, Rwbs::NONE, 0, 0);
    event.time = cx.now;
    event.cpu = cx.running.cpu;
    event.dev = dev;
    cx.trace.message(&event, text);
    cx.truth_note(Kind::Message, 0, text);
}

/// Longest message in bytes (`BLK_TN_MAX_MSG`, include/linux/blktrace_api.h).
pub const MESSAGE_MAX: usize = 128;

/// A message on its way, without the heap.
struct Line {
    bytes: [u8; MESSAGE_MAX],
    len: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let mut n = s.len().min(room.len());
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        room[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        if n < s.len() {
            Err(std::fmt::Error)
        } else {
            Ok(())
        }
    }
}

#[inline]
fn event(action: Action, rwbs: Rwbs, sector: u64, nr_sectors: u32) -> Event {
    Event {
        time: Time::ZERO,
        sector,
        arg: 0,
        bytes: nr_sectors.saturating_mul(SECTOR_BYTES as u32),
        pid: 0,
        dev: Dev::default(),
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs,
        action,
    }
}
