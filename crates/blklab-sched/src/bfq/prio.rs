// SPDX-License-Identifier: MIT OR Apache-2.0
//! From I/O priorities to classes and weights.

use super::entity::{BE, IDLE, RT};
use blklab_block::{CpuPolicy, IoContext};
use blklab_types::PrioClass;

/// Levels of a class.
pub(super) const LEVELS: u32 = 8;
/// Weight per level.
const PER_LEVEL: u32 = 10;
/// The level in the middle, of processes without a priority.
pub(super) const NORM: u32 = 4;
/// The weight that goes with it: only queues of this weight are raised.
pub(super) const NORM_WEIGHT: u32 = weight_of_level(NORM);

pub(super) const fn weight_of_level(level: u32) -> u32 {
    (LEVELS - level) * PER_LEVEL
}

/// `bfq_weight_to_ioprio`.
pub(super) fn level_of_weight(weight: u32) -> u32 {
    LEVELS.saturating_sub(weight / PER_LEVEL)
}

/// Class and level of a process: its own, or else derived from its nice value
/// and policy (`bfq_set_next_ioprio_data`).
pub(super) fn of_task(ioc: &IoContext) -> (usize, u32) {
    let level = u32::from(ioc.ioprio.level).min(LEVELS - 1);
    match ioc.ioprio.class {
        PrioClass::RealTime => (RT, level),
        PrioClass::BestEffort => (BE, level),
        PrioClass::Idle => (IDLE, LEVELS - 1),
        PrioClass::None => {
            let class = match ioc.policy {
                CpuPolicy::Other => BE,
                CpuPolicy::Idle => IDLE,
                CpuPolicy::RealTime => RT,
            };
            (class, u32::from((ioc.nice + 20).unsigned_abs()) / 5)
        }
    }
}

/// Place of the async queue of a process in its group's table
/// (`bfq_async_queue_prio`).
pub(super) fn shared_slot(ioc: &IoContext) -> usize {
    let level = usize::from(ioc.ioprio.level.min(7));
    match ioc.ioprio.class {
        PrioClass::RealTime => level,
        PrioClass::BestEffort => 8 + level,
        PrioClass::None => 8 + NORM as usize,
        PrioClass::Idle => 16,
    }
}
