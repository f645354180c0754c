// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs experiments: plans, targets, and the table of targets, the one place that
//! names them.

pub use blklab_sim::{Sim, catalogue, catalogue_with};
pub use blklab_target::{
    CgroupUse, Failed, Held, JobLog, JobResult, JobText, Moved, Needs, Outcome, Plan, Planner,
    Pressure, RealSurroundings, Sinks, Site, Stall, Target, Work, memory,
};

use blklab_kernel_target::Kernel;
use blklab_sched::Schedulers;
use std::sync::Arc;

/// A target that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct TargetInfo {
    /// Its name: the key `target` of experiments.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Makes it, with these schedulers where it has models of them.
    pub make: fn(Schedulers) -> Arc<dyn Target>,
}

/// All targets. An experiment that names none runs on the first.
pub const TARGETS: &[TargetInfo] = &[
    TargetInfo {
        name: "sim",
        summary: "the models of this repository, in virtual time",
        make: |schedulers| Arc::new(Sim::with(schedulers)),
    },
    TargetInfo {
        name: "kernel",
        summary: "a real kernel that was built for it, in virtual time, on the model of a device",
        make: |schedulers| Arc::new(Kernel::with(catalogue_with(schedulers))),
    },
    TargetInfo {
        name: "qemu",
        summary: "an image of a distribution's kernel, in virtual time, on its own null_blk or scsi_debug",
        make: |schedulers| Arc::new(Kernel::in_qemu(catalogue_with(schedulers))),
    },
    TargetInfo {
        name: "kvm",
        summary: "the same on the processors of this machine and by its clock: no run repeats",
        make: |schedulers| Arc::new(Kernel::in_kvm(catalogue_with(schedulers))),
    },
];

/// A planner for all targets.
pub fn planner(schedulers: Schedulers) -> Planner {
    Planner::for_targets(TARGETS.iter().map(|t| (t.make)(schedulers)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_called_as_their_rows_say() {
        for info in TARGETS {
            assert_eq!((info.make)(Schedulers::default()).name(), info.name);
        }
    }
}
