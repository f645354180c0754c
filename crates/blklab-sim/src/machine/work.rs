// SPDX-License-Identifier: MIT OR Apache-2.0
//! What queues ask kblockd for.

use blklab_block::QueueNo;
use blklab_engine::WorkId;

/// One kind of deferred work of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// To remove the plug.
    Unplug(QueueNo),
    /// To call the driver.
    Run(QueueNo),
}

impl Work {
    /// Its number in the agenda.
    pub(super) fn id(self) -> WorkId {
        match self {
            Work::Unplug(no) => WorkId(2 * no.0),
            Work::Run(no) => WorkId(2 * no.0 + 1),
        }
    }

    /// The work of that number.
    pub(super) fn from_id(id: WorkId) -> Work {
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
    }
}
