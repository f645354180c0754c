// SPDX-License-Identifier: MIT OR Apache-2.0
//! Class and level of a queue.

use blklab_block::{CpuPolicy, IoContext};
use blklab_types::{IoPrio, PrioClass};

/// The level of best effort that nice 0 and an unset priority have
/// (`IOPRIO_NORM`, include/linux/ioprio.h).
pub(crate) const NORM: u8 = 4;

/// Class and level of a queue (`ioprio`, `org_ioprio` and their classes in
/// `struct cfq_queue`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueuePrio {
    /// In force.
    pub(crate) now: IoPrio,
    /// Without a boost.
    pub(crate) org: IoPrio,
}

impl QueuePrio {
    /// Without a boost.
    pub(crate) fn new(prio: IoPrio) -> QueuePrio {
        QueuePrio {
            now: prio,
            org: prio,
        }
    }

    pub(crate) fn is_idle_class(&self) -> bool {
        self.now.class == PrioClass::Idle
    }

    pub(crate) fn is_rt(&self) -> bool {
        self.now.class == PrioClass::RealTime
    }

    /// Who holds up others, such as a holder of a file system's exclusive resource, is
    /// best effort at least, level 4 at least; afterwards the queue's own priority is
    /// back (`cfq_prio_boost`, in `cfq_may_queue` from 3.1 on). Whether that changes it.
    pub(crate) fn boost(&mut self, holds_up: bool) -> bool {
        let before = self.now;
        if !holds_up {
            self.now = self.org;
            return self.now != before;
        }
        if self.is_idle_class() {
            self.now.class = PrioClass::BestEffort;
        }
        self.now.level = self.now.level.min(NORM);
        self.now != before
    }
}

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
    fn a_boost_lifts_and_goes() {
        let own = IoPrio {
            class: PrioClass::Idle,
            level: 7,
        };
        let mut prio = QueuePrio::new(own);
        assert!(prio.boost(true));
        let lifted = IoPrio {
            class: PrioClass::BestEffort,
            level: 4,
        };
        assert_eq!((prio.now, prio.org), (lifted, own));
        assert!(!prio.boost(true));
        assert!(prio.boost(false));
        assert_eq!(prio.now, own);
    }

    #[test]
    fn nice_values_become_levels() {
        let levels: Vec<u8> = [-20, -16, -15, 0, 4, 5, 19].map(nice_level).to_vec();
        assert_eq!(levels, [0, 0, 1, 4, 4, 5, 7]);
    }
}
