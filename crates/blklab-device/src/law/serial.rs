// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `serial`: a fixed time per command plus a time per sector, one command
//! at a time, in order of hand-over.
//!
//! ```text
//! end = begin + (read_ns or write_ns) + sectors * ns_per_sector
//! ```

use super::server::{Server, Service};
use crate::device::{Command, Device};
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, Values};
use blklab_types::{Op, Span, Time};

/// Parameters of the laws with a time per command and one per sector.
pub(crate) const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "read_ns",
        kind: Kind::Time {
            unit_ns: 1,
            max_ns: 3_600_000_000_000,
        },
        default: "4000000",
        help: "time of a read, whatever its size",
    },
    ParamInfo {
        name: "write_ns",
        kind: Kind::Time {
            unit_ns: 1,
            max_ns: 3_600_000_000_000,
        },
        default: "",
        help: "time of a write, whatever its size; as read_ns if not given",
    },
    ParamInfo {
        name: "ns_per_sector",
        kind: Kind::Time {
            unit_ns: 1,
            max_ns: 1_000_000_000,
        },
        default: "0",
        help: "added for each sector",
    },
];

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
    pub(crate) fn of(&self, cmd: &Command) -> Span {
        let fixed = match cmd.op {
            Op::Read => self.read_ns,
            Op::Write => self.write_ns,
            Op::Flush | Op::Discard => return Span::ZERO,
        };
        Span(fixed + u64::from(cmd.nr_sectors) * self.ns_per_sector)
    }
}

impl Service for CommandTime {
    fn serve(&mut self, now: Time, cmd: &Command) -> Time {
        now + self.of(cmd)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(Server::new(
        CommandTime::from_values(values),
        depth,
    )))
}
