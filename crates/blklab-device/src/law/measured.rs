// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `measured`: service times that have the distribution of those of a recorded device.
//!
//! ```text
//! end = begin + quantile of its kind + sectors * ns_per_sector + b * sqrt(distance)
//! ```
//!
//! The kind of a command is its direction and, for reads and writes, whether it begins where
//! one of the last `streams` commands ended. So many `channels` serve a command each; the next
//! one is the oldest that waits, or the nearest to the end of the one that was begun last.
//!
//! Nothing is drawn at random: 1024 commands of a kind take each 1024th part of the
//! distribution once, in an order without a pattern (every second command, those of one of two
//! processes, has the whole distribution, too), and the next 1024 others of each part. So a run
//! has the recorded median, tail and, if it is as long as the recording, maximum.

use super::order::{ORDER, Order};
use super::parallel::InFlight;
use crate::device::{Command, Device, DeviceCx};
use crate::error::DeviceError;
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values, param, parse_time_ns};
use blklab_types::{DiscardLimits, Op, Span, Time, Unit};
use std::collections::VecDeque;

/// Longest time in a list of quantiles, an hour.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Most ends of commands that a sequential one may go on from.
const STREAMS_MAX: u64 = 64;

/// What a list of quantiles looks like.
const QUANTILES: &str = "a time, or PERCENT:TIME joined by / with rising percents and times \
                         up to 3600s, as in 0:50us/50:54us/99:1ms/100:3ms";

const STREAMS: Kind = Kind::Count {
    min: 1,
    max: STREAMS_MAX,
};
const CHANNELS: Kind = Kind::Count {
    min: 1,
    max: 65_536,
};
const PER_SECTOR: Kind = Kind::Time {
    unit_ns: 1,
    max_ns: 1_000_000_000,
};
const SEEK: Kind = Kind::Real { min: 0.0, max: 1e9 };

/// Parameters of the law.
#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("channels", CHANNELS, "1", "commands that are served at a time"),
    ORDER,
    param("read", Kind::Text, "100us", "time of a read: one, or quantiles, as in 0:50us/50:54us/99:1ms/100:3ms"),
    param("read_sequential", Kind::Text, "", "that of a read behind one of the last commands; as read if not given"),
    param("write", Kind::Text, "", "that of a write; as read if not given"),
    param("write_sequential", Kind::Text, "", "that of a write behind one of the last commands; as write if not given"),
    param("flush", Kind::Text, "0", "that of a flush"),
    param("discard", Kind::Text, "0", "that of a discard"),
    param("read_ns_per_sector", PER_SECTOR, "0", "added for each sector of a read"),
    param("write_ns_per_sector", PER_SECTOR, "0", "added for each sector of a write"),
    param("b_ns_per_sqrt_sector", SEEK, "0", "added to reads and writes that are not sequential for each unit of the square root of the distance in sectors").in_unit(Unit::Ns),
    param("streams", STREAMS, "1", "commands begun last behind which a command is sequential"),
];

pub(crate) const LIMITS: DeviceLimits = DeviceLimits {
    discard: Some(DiscardLimits::ANY),
    ..DeviceLimits::NONE
};

/// A distribution of times.
#[derive(Clone, Debug, PartialEq)]
struct Quantiles {
    /// Parts of 2^32 and the time there, rising.
    knots: Vec<(u64, u64)>,
    /// Commands so far.
    nr: u32,
}

impl Quantiles {
    fn parse(text: &str) -> Option<Quantiles> {
        let mut knots: Vec<(u64, u64)> = Vec::new();
        for part in text.split('/') {
            let (percent, time) = match part.split_once(':') {
                Some((percent, time)) => (percent.trim().parse::<f64>().ok()?, time),
                None if !text.contains('/') => (50.0, part),
                None => return None,
            };
            if !(0.0..=100.0).contains(&percent) {
                return None;
            }
            let at = (percent / 100.0 * TWO_32 as f64) as u64;
            let time = parse_time_ns(time.trim()).filter(|ns| *ns <= TIME_MAX_NS)?;
            if knots.last().is_some_and(|(a, t)| at <= *a || time < *t) {
                return None;
            }
            knots.push((at, time));
        }
        Some(Quantiles { knots, nr: 0 })
    }

    /// The time of the next command.
    fn next(&mut self) -> u64 {
        let at = place(self.nr);
        self.nr = self.nr.wrapping_add(1);
        self.at(at)
    }

    /// Straight lines between the knots, and what the ends say beyond them.
    fn at(&self, at: u64) -> u64 {
        let i = self.knots.partition_point(|(a, _)| *a <= at);
        match (i.checked_sub(1).map(|i| self.knots[i]), self.knots.get(i)) {
            (Some((a, low)), Some(&(b, high))) => {
                let part = u128::from(high - low) * u128::from(at - a) / u128::from(b - a);
                low + part as u64
            }
            (Some((_, time)), None) | (None, Some(&(_, time))) => time,
            (None, None) => unreachable!("a list has a knot"),
        }
    }
}

const TWO_32: u64 = 1 << 32;

/// Where in the distribution the `nr`-th command of a kind lies, in parts of 2^32.
fn place(nr: u32) -> u64 {
    // An odd factor and a shift to the right are each a permutation of ten bits.
    const MASK: u32 = (1 << 10) - 1;
    let round = nr >> 10;
    let mut part = nr.wrapping_add(round.wrapping_mul(0x9e37)) & MASK;
    for factor in [0x2c5, 0x1b3, 0x38d] {
        part = part.wrapping_mul(factor) & MASK;
        part ^= part >> 5;
    }
    // Within the part by the golden section, which leaves no large gap.
    let within = round.wrapping_mul(0x9e37_79b9) >> 10;
    u64::from(part << 22 | within)
}

/// Times of reads, or of writes.
#[derive(Clone)]
struct Direction {
    anywhere: Quantiles,
    sequential: Option<Quantiles>,
    ns_per_sector: u64,
}

#[derive(Clone)]
struct Measured {
    channels: usize,
    order: Order,
    read: Direction,
    write: Direction,
    flush: Quantiles,
    discard: Quantiles,
    b_ns_per_sqrt_sector: f64,
    /// Where the commands that were begun last ended, as a ring.
    ends: Vec<u64>,
    oldest: usize,
    /// Handed over and not begun, oldest first.
    waiting: VecDeque<Command>,
    nr_served: usize,
    in_service: InFlight,
}

impl Measured {
    fn time(&mut self, cmd: &Command) -> Span {
        let direction = match cmd.op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Flush => return Span(self.flush.next()),
            Op::Discard => return Span(self.discard.next()),
        };
        let is_sequential = self.ends.contains(&cmd.sector);
        let (quantiles, distance) = match &mut direction.sequential {
            Some(sequential) if is_sequential => (sequential, 0),
            _ if is_sequential => (&mut direction.anywhere, 0),
            _ => (
                &mut direction.anywhere,
                cmd.sector.abs_diff(self.order.head),
            ),
        };
        // IEEE square root and product are the same on every machine.
        let seek = (self.b_ns_per_sqrt_sector * (distance as f64).sqrt()).floor() as u64;
        let transfer = u64::from(cmd.nr_sectors) * direction.ns_per_sector;
        self.order.head = cmd.end();
        self.ends[self.oldest] = cmd.end();
        self.oldest = (self.oldest + 1) % self.ends.len();
        Span(quantiles.next() + seek + transfer)
    }

    fn start(&mut self, cx: &mut DeviceCx<'_>) {
        while self.nr_served < self.channels && !self.waiting.is_empty() {
            let i = self.order.choose(&self.waiting);
            let cmd = self.waiting.remove(i).expect("a place of the queue");
            let end: Time = cx.now + self.time(&cmd);
            self.nr_served += 1;
            self.in_service.push(cx, cmd.id, cx.now, end);
        }
    }
}

impl Device for Measured {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        self.waiting.push_back(*cmd);
        self.start(cx);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_service.pop(cx);
        self.nr_served -= 1;
        self.start(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let list = |name: &'static str| match values.text(name) {
        "" => Ok(None),
        text => match Quantiles::parse(text) {
            Some(list) => Ok(Some(list)),
            None => Err(values.bad(name, QUANTILES.to_owned())),
        },
    };
    let or_none = |list: Option<Quantiles>| {
        list.unwrap_or(Quantiles {
            knots: vec![(0, 0)],
            nr: 0,
        })
    };
    let read = or_none(list("read")?);
    let write = list("write")?.unwrap_or_else(|| read.clone());
    Ok(Box::new(Measured {
        channels: values.count("channels") as usize,
        order: Order::from_values(values),
        read: Direction {
            anywhere: read,
            sequential: list("read_sequential")?,
            ns_per_sector: values.int("read_ns_per_sector"),
        },
        write: Direction {
            anywhere: write,
            sequential: list("write_sequential")?,
            ns_per_sector: values.int("write_ns_per_sector"),
        },
        flush: or_none(list("flush")?),
        discard: or_none(list("discard")?),
        b_ns_per_sqrt_sector: values.real("b_ns_per_sqrt_sector"),
        ends: vec![0; values.count("streams") as usize],
        oldest: 0,
        waiting: VecDeque::with_capacity(depth as usize),
        nr_served: 0,
        in_service: InFlight::with_depth(depth),
    }))
}
