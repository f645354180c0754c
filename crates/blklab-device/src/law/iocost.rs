// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `iocost`: six numbers of a drive, as the kernel's I/O cost controller uses
//! them.
//!
//! Bytes per second, sequential and random I/Os of 4 KiB per second, of reads and
//! of writes, are all that `io.cost.model` knows of a device. They make a cost of
//! each command (Linux 5.4 and later, block/blk-iocost.c):
//!
//! ```text
//! page = 4096 / bps,  seq = 1 / seqiops - page,  rand = 1 / randiops - page, at least 0
//! cost = (seq or rand) + pages * page
//! ```
//!
//! A command is random if it begins more than 16 MiB from the end of the one
//! before. Here the drive has the cost for its work: one command after another
//! takes its cost, and ends `read_us` or `write_us` later. So each of the six
//! numbers comes out at sufficient depth, what lies between is the model's, and
//! tails are short: those of the drive are not in six numbers.

use super::parallel::InFlight;
use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, TIME_US, Values, param};
use blklab_types::{Op, Span, Time, Unit};

const PER_S: Kind = Kind::Count {
    min: 1,
    max: 1_000_000_000_000,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("capacity_sectors", Kind::Sectors { min: 1_000, max: 1 << 40 }, "1TB", "size"),
    param("rbps", PER_S, "488636629", "bytes per second of large reads").in_unit(Unit::BytesPerS),
    param("rseqiops", PER_S, "8932", "sequential reads of 4 KiB per second").in_unit(Unit::PerS),
    param("rrandiops", PER_S, "8518", "random reads of 4 KiB per second").in_unit(Unit::PerS),
    param("wbps", PER_S, "427891549", "bytes per second of large writes").in_unit(Unit::BytesPerS),
    param("wseqiops", PER_S, "28755", "sequential writes of 4 KiB per second").in_unit(Unit::PerS),
    param("wrandiops", PER_S, "21940", "random writes of 4 KiB per second").in_unit(Unit::PerS),
    param("read_us", TIME_US, "80", "time of a read after its cost, beside other commands"),
    param("write_us", TIME_US, "20", "the same of a write, and of a discard"),
    param("flush_us", TIME_US, "500", "time of a flush, beside other commands"),
];

/// Sectors of a page.
const PAGE_SECTORS: u32 = 8;
/// A command that begins farther from the end of the last one is random.
const FAR_SECTORS: u64 = 4096 * PAGE_SECTORS as u64;

/// Costs of one direction in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Costs {
    fn new(bps: u64, seqiops: u64, randiops: u64) -> Costs {
        const PS: u64 = 1_000_000_000_000;
        let page = (4096 * u128::from(PS) / u128::from(bps)) as u64;
        let more = |iops: u64| (PS / iops).saturating_sub(page);
        Costs {
            page,
            sequential: more(seqiops),
            random: more(randiops),
        }
    }

    fn total_ps(&self, sectors: u32, random: bool) -> u64 {
        let pages = u64::from((sectors / PAGE_SECTORS).max(1));
        let base = if random { self.random } else { self.sequential };
        base + pages * self.page
    }
}

#[derive(Clone)]
struct Iocost {
    capacity_sectors: u64,
    read: Costs,
    write: Costs,
    read_time: Span,
    write_time: Span,
    flush_time: Span,
    /// The sector after the last command.
    cursor: u64,
    /// When the drive has done its work, and picoseconds beyond that.
    free: Time,
    rest_ps: u64,
    in_flight: InFlight,
}

impl Iocost {
    /// Takes the drive for a command; says when its cost is paid.
    fn work(&mut self, now: Time, cmd: &Command) -> Time {
        let random = cmd.sector.abs_diff(self.cursor) > FAR_SECTORS;
        self.cursor = cmd.end();
        let costs = match cmd.op {
            Op::Read => &self.read,
            _ => &self.write,
        };
        let ps = self.rest_ps + costs.total_ps(cmd.nr_sectors, random);
        self.rest_ps = ps % 1000;
        self.free = now.max(self.free) + Span(ps / 1000);
        self.free
    }
}

impl Device for Iocost {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let end = match cmd.op {
            Op::Read => self.work(cx.now, cmd) + self.read_time,
            Op::Write => self.work(cx.now, cmd) + self.write_time,
            Op::Flush => cx.now + self.flush_time,
            Op::Discard => cx.now + self.write_time,
        };
        self.in_flight.push(cx, cmd.id, cx.now, end);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let time = |name| Span(values.int(name));
    let costs = |bps, seq, rand| Costs::new(values.int(bps), values.int(seq), values.int(rand));
    Ok(Box::new(Iocost {
        capacity_sectors: values.int("capacity_sectors"),
        read: costs("rbps", "rseqiops", "rrandiops"),
        write: costs("wbps", "wseqiops", "wrandiops"),
        read_time: time("read_us"),
        write_time: time("write_us"),
        flush_time: time("flush_us"),
        cursor: 0,
        free: Time::ZERO,
        rest_ps: 0,
        in_flight: InFlight::with_depth(depth),
    }))
}
