// SPDX-License-Identifier: MIT OR Apache-2.0
//! What queues ask kblockd for, and processors each other.

use blklab_block::QueueNo;
use blklab_engine::WorkId;

/// One kind of deferred work of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// To remove the plug.
    Unplug(QueueNo),
    /// To call the driver.
    Run(QueueNo),
    /// To end the requests that were sent on to a processor: an interrupt, not kblockd.
    End(u16),
    /// A processor returns from its interrupts.
    Return(u16),
}

/// The first number that is no queue's.
const BEYOND_QUEUES: u32 = 2 * (QueueNo::ARRAY.0 + 1);

impl Work {
    /// Its number in the agenda.
    pub(super) fn id(self) -> WorkId {
        match self {
            Work::Unplug(no) => WorkId(2 * no.0),
            Work::Run(no) => WorkId(2 * no.0 + 1),
            Work::End(cpu) => WorkId(BEYOND_QUEUES + 2 * u32::from(cpu)),
            Work::Return(cpu) => WorkId(BEYOND_QUEUES + 2 * u32::from(cpu) + 1),
        }
    }

    /// The work of that number.
    pub(super) fn from_id(id: WorkId) -> Work {
        if let Some(beyond) = id.0.checked_sub(BEYOND_QUEUES) {
            let cpu = (beyond / 2) as u16;
            return if beyond.is_multiple_of(2) {
                Work::End(cpu)
            } else {
                Work::Return(cpu)
            };
        }
        let no = QueueNo(id.0 / 2);
        if id.0.is_multiple_of(2) {
            Work::Unplug(no)
        } else {
            Work::Run(no)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_work_apart() {
        for no in [QueueNo::FIRST, QueueNo(1), QueueNo::ARRAY] {
            for work in [Work::Unplug(no), Work::Run(no)] {
                assert_eq!(Work::from_id(work.id()), work);
            }
        }
        for work in [
            Work::End(0),
            Work::End(63),
            Work::Return(0),
            Work::Return(63),
        ] {
            assert_eq!(Work::from_id(work.id()), work);
        }
    }
}
