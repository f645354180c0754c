// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `seek`: the time depends on the distance from the end of the command
//! served before; one command at a time.
//!
//! ```text
//! d   = |first sector - end of the command served last|     (0 at the start)
//! end = begin + (d = 0 ? 0 : floor(a_ns + b * sqrt(d))) + sectors * ns_per_sector
//! ```
//!
//! `order` says which of the commands handed over is next: `fifo`, or `nearest`
//! for the smallest d, the earlier one of equals.

use super::order::{ORDER, Order};
use super::server::{Server, Service};
use crate::device::{Command, Device};
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Span, Time, Unit};
use std::collections::VecDeque;

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("a_ns", Kind::Time { unit_ns: 1, max_ns: 3_600_000_000_000 }, "3000000", "time of any seek"),
    param("b_ns_per_sqrt_sector", Kind::Real { min: 0.0, max: 1e9 }, "300.0", "added for each unit of the square root of the distance in sectors").in_unit(Unit::Ns),
    param("ns_per_sector", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "5000", "time of one sector under the head"),
    ORDER,
];

#[derive(Clone)]
struct Seek {
    a_ns: f64,
    b_ns_per_sqrt_sector: f64,
    ns_per_sector: u64,
    order: Order,
}

impl Seek {
    /// The formula is one of floating-point numbers; IEEE square root, product
    /// and sum are the same on every machine.
    fn seek_ns(&self, distance: u64) -> u64 {
        if distance == 0 {
            return 0;
        }
        (self.a_ns + self.b_ns_per_sqrt_sector * (distance as f64).sqrt()).floor() as u64
    }
}

impl Service for Seek {
    fn choose(&self, _now: Time, waiting: &VecDeque<Command>) -> usize {
        self.order.choose(waiting)
    }

    fn serve(&mut self, now: Time, cmd: &Command) -> Time {
        let seek_ns = self.seek_ns(cmd.sector.abs_diff(self.order.head));
        self.order.head = cmd.end();
        now + Span(seek_ns) + Span(u64::from(cmd.nr_sectors) * self.ns_per_sector)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let law = Seek {
        a_ns: values.int("a_ns") as f64,
        b_ns_per_sqrt_sector: values.real("b_ns_per_sqrt_sector"),
        ns_per_sector: values.int("ns_per_sector"),
        order: Order::from_values(values),
    };
    Ok(Box::new(Server::new(law, depth)))
}
