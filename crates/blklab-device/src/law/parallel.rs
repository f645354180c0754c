// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `parallel`: the times of `serial`, counted from hand-over; all commands
//! progress at once. Commands that end at the same instant finish in order of
//! hand-over.

use super::serial::CommandTime;
use crate::device::{CmdId, Command, Device, DeviceCx};
use crate::error::DeviceError;
use crate::param::Values;
use blklab_types::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Commands in progress by end and order of hand-over.
///
/// There is one wake-up for each command, and each wake-up finishes the one
/// command that is first in line, so the order does not depend on how the
/// caller orders wake-ups of the same instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    heap: BinaryHeap<Reverse<(Time, u64, CmdId, Time)>>,
    handed_over: u64,
}

impl InFlight {
    pub(crate) fn with_depth(depth: u32) -> InFlight {
        InFlight {
            heap: BinaryHeap::with_capacity(depth as usize),
            handed_over: 0,
        }
    }

    /// Lets a command run from `started` to `end`.
    pub(crate) fn push(&mut self, cx: &mut DeviceCx<'_>, id: CmdId, started: Time, end: Time) {
        self.heap
            .push(Reverse((end, self.handed_over, id, started)));
        self.handed_over += 1;
        cx.wake_at(end, 0);
    }

    /// Finishes the command whose turn it is.
    pub(crate) fn pop(&mut self, cx: &mut DeviceCx<'_>) {
        if let Some(Reverse((_, _, id, started))) = self.heap.pop() {
            cx.finish(id, started);
        }
    }
}

#[derive(Clone)]
struct Parallel {
    time: CommandTime,
    in_flight: InFlight,
}

impl Device for Parallel {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        let end = cx.now + self.time.service_time(cmd);
        self.in_flight.push(cx, cmd.id, cx.now, end);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let time = CommandTime::from_values(values);
    Ok(Box::new(Parallel {
        time,
        in_flight: InFlight::with_depth(depth),
    }))
}
