// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of other parts of the kernel than the block layer: what the journal, write-back,
//! throttling, drivers and the CPU scheduler did beside the I/O.
//!
//! Only what something is concluded from is kept. [`POINTS`] says of each event what it is,
//! in which file of the kernel it is raised, and from which release on it is there. Both are
//! made of the rows in `table.rs`, which also say what the fields are and how they are shown;
//! the types of fields are in a module for each part.

mod jbd2;
mod mmc;
mod nvme;
mod sched;
mod scsi;
mod table;
mod wbt;
mod writeback;
mod xfs;

pub use jbd2::CommitStep;
pub use mmc::MmcRequest;
pub use nvme::NvmeCommand;
pub use sched::TaskState;
pub use scsi::{ScsiCommand, ScsiResult};
pub use table::{POINTS, Part, Point, Tracepoint};
pub use wbt::WbtStatus;
pub use writeback::{WritebackReason, WritebackStep};
pub use xfs::IclogStep;

use blklab_types::{Dev, Pid, Time};

/// An event of another part of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// When.
    pub time: Time,
    /// Task in whose context it happened; 0 in interrupts of an idle CPU.
    pub pid: Pid,
    /// The device that it names, of a file system often a partition; 0,0 if it names none.
    pub dev: Dev,
    /// CPU on which it happened.
    pub cpu: u16,
    /// What happened.
    pub point: Tracepoint,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_by_name() {
        let steps = [CommitStep::Start, CommitStep::End];
        let shown = steps.map(|step| Tracepoint::Commit { step, tid: 7 }.to_string());
        assert_eq!(
            shown,
            [
                "jbd2_start_commit: transaction 7",
                "jbd2_end_commit: transaction 7"
            ]
        );
        let result = ScsiResult {
            host: 3,
            status: 0x28,
        };
        assert_eq!(result.to_string(), "DID_TIME_OUT SAM_STAT_TASK_SET_FULL");
        assert!(!result.is_good());
    }

    #[test]
    fn names_belong_to_their_part() {
        for (i, point) in POINTS.iter().enumerate() {
            let begins = [point.part.name(), "balance_dirty_pages", "xlog_iclog"];
            assert!(
                begins.iter().any(|b| point.name.starts_with(b)),
                "{}",
                point.name
            );
            let first = POINTS.iter().position(|p| p.name == point.name);
            assert_eq!(first, Some(i), "{}", point.name);
        }
    }

    /// Items of a trace are handed over by value.
    #[test]
    fn an_event_is_small() {
        assert!(
            size_of::<KernelEvent>() <= 72,
            "{}",
            size_of::<KernelEvent>()
        );
    }
}
