// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of the commands handed over is served next: the oldest, or the one
//! with the smallest distance from the end of the command served before, the
//! earlier one of equals.

use crate::device::Command;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::Op;
use std::collections::VecDeque;

/// The parameter `order`.
pub(crate) const ORDER: ParamInfo = param(
    "order",
    Kind::Choice(&["fifo", "nearest"]),
    "fifo",
    "which waiting command is next: the oldest, or the one with the shortest distance",
);

/// The rule and the position it starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    nearest: bool,
    /// Sector after the end of the command served last.
    pub(crate) head: u64,
}

impl Order {
    pub(crate) fn from_values(values: &Values) -> Order {
        Order {
            nearest: values.int("order") == 1,
            head: 0,
        }
    }

    /// Place of the next command among those that wait.
    pub(crate) fn choose(&self, waiting: &VecDeque<Command>) -> usize {
        if !self.nearest {
            return 0;
        }
        let distance = |cmd: &Command| match cmd.op {
            Op::Read | Op::Write => cmd.sector.abs_diff(self.head),
            Op::Flush | Op::Discard => 0,
        };
        cheapest(waiting, distance).expect(SOME_WAITS)
    }
}

/// A law is asked for the next command when it may begin one.
pub(crate) const SOME_WAITS: &str = "a command waits";

/// Place of the command that costs least, the earlier one of equals.
pub(crate) fn cheapest(
    waiting: &VecDeque<Command>,
    cost: impl Fn(&Command) -> u64,
) -> Option<usize> {
    let costs = waiting.iter().map(cost).enumerate();
    costs.min_by_key(|(_, cost)| *cost).map(|(i, _)| i)
}
