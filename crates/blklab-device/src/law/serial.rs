// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `serial`: a fixed time per command plus a time per sector, one command
//! at a time.
//!
//! ```text
//! end = begin + (read_ns or write_ns) + sectors * ns_per_sector
//! ```
//!
//! `order` says which of the commands handed over is next, as for `seek`;
//! distance costs nothing here.

use super::order::{ORDER, Order};
use super::server::{Server, Service};
use crate::device::{Command, Device};
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Op, Span, Time};
use std::collections::VecDeque;

/// Parameters of the law `serial`.
pub(crate) const PARAMS: &[ParamInfo] = &[READ, WRITE, PER_SECTOR, ORDER];

/// Parameters of the law `parallel`: the same times; nothing ever waits, so
/// the only order is that of hand-over.
pub(crate) const PARALLEL_PARAMS: &[ParamInfo] = &[
    READ,
    WRITE,
    PER_SECTOR,
    param(
        "order",
        Kind::Choice(&["fifo"]),
        "fifo",
        "no command waits for another",
    ),
];

const READ: ParamInfo = param(
    "read_ns",
    Kind::Time {
        unit_ns: 1,
        max_ns: 3_600_000_000_000,
    },
    "4000000",
    "time of a read, whatever its size",
);

const WRITE: ParamInfo = param(
    "write_ns",
    Kind::Time {
        unit_ns: 1,
        max_ns: 3_600_000_000_000,
    },
    "",
    "time of a write, whatever its size; as read_ns if not given",
);

const PER_SECTOR: ParamInfo = param(
    "ns_per_sector",
    Kind::Time {
        unit_ns: 1,
        max_ns: 1_000_000_000,
    },
    "0",
    "added for each sector",
);

/// Service time by direction and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandTime {
    pub(crate) read_ns: u64,
    pub(crate) write_ns: u64,
    pub(crate) ns_per_sector: u64,
}

impl CommandTime {
    pub(crate) fn from_values(values: &Values) -> CommandTime {
        let read_ns = values.int("read_ns");
        CommandTime {
            read_ns,
            write_ns: values.opt("write_ns").unwrap_or(read_ns),
            ns_per_sector: values.int("ns_per_sector"),
        }
    }

    /// The service time of a read or write; flushes and discards take none.
    pub(crate) fn service_time(&self, cmd: &Command) -> Span {
        let fixed = match cmd.op {
            Op::Read => self.read_ns,
            Op::Write => self.write_ns,
            Op::Flush | Op::Discard => return Span::ZERO,
        };
        Span(fixed + u64::from(cmd.nr_sectors) * self.ns_per_sector)
    }
}

#[derive(Clone)]
struct Serial {
    time: CommandTime,
    order: Order,
}

impl Service for Serial {
    fn choose(&self, _now: Time, waiting: &VecDeque<Command>) -> usize {
        self.order.choose(waiting)
    }

    fn serve(&mut self, now: Time, cmd: &Command) -> Time {
        self.order.head = cmd.end();
        now + self.time.service_time(cmd)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let law = Serial {
        time: CommandTime::from_values(values),
        order: Order::from_values(values),
    };
    Ok(Box::new(Server::new(law, depth)))
}
