// SPDX-License-Identifier: MIT OR Apache-2.0
//! Class and level of a queue.

use blklab_block::{CpuPolicy, IoContext};
use blklab_types::{IoPrio, PrioClass};

/// The level of best effort that nice 0 and an unset priority have
/// (`IOPRIO_NORM`, include/linux/ioprio.h).
pub(crate) const NORM: u8 = 4;

/// Nice -20 to 19 as level 0 to 7 (`task_nice_ioprio`).
pub(crate) fn nice_level(nice: i8) -> u8 {
    ((i16::from(nice) + 20) / 5).clamp(0, 7) as u8
}

/// Class and level of the sync queue of a task (`cfq_init_prio_data`). `policy_counts`: an unset
/// class follows the CPU policy (from 2.6.25); before, it is best effort.
pub(crate) fn of_task(ioc: &IoContext, policy_counts: bool) -> IoPrio {
    match ioc.ioprio.class {
        PrioClass::None => IoPrio {
            class: match ioc.policy {
                CpuPolicy::Idle if policy_counts => PrioClass::Idle,
                CpuPolicy::RealTime if policy_counts => PrioClass::RealTime,
                _ => PrioClass::BestEffort,
            },
            level: nice_level(ioc.nice),
        },
        PrioClass::Idle => IoPrio {
            class: PrioClass::Idle,
            level: 7,
        },
        _ => ioc.ioprio,
    }
}

/// Place of the async queue of a class and level (`cfq_async_queue_prio`).
pub(crate) fn async_slot(prio: IoPrio) -> usize {
    let level = usize::from(prio.level.min(7));
    match prio.class {
        PrioClass::RealTime => level,
        PrioClass::BestEffort | PrioClass::None => 8 + level,
        PrioClass::Idle => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_values_become_levels() {
        let levels: Vec<u8> = [-20, -16, -15, 0, 4, 5, 19].map(nice_level).to_vec();
        assert_eq!(levels, [0, 0, 1, 4, 4, 5, 7]);
    }
}
