// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs experiments: plans, targets, and the table of targets, the one place that
//! names them.

pub use blklab_sim::{Sim, catalogue, catalogue_with};
pub use blklab_target::{
    CgroupUse, Failed, Held, JobLog, JobResult, JobText, Moved, Needs, Outcome, Plan, Planner,
    Pressure, RealSurroundings, Sinks, Site, Stall, Target, Work, memory,
};

use blklab_experiment::{Catalogue, Experiment};
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

/// Changes of releases that kernels for arch/um do not have: it has neither lazy preemption
/// (no `ARCH_HAS_PREEMPT_LAZY` in arch/um/Kconfig of 7.3) nor slices that end on time (no
/// `HRTIMER_REARM_DEFERRED`).
const NOT_ON_UM: [&str; 2] = ["processor:7.0", "processor:7.1"];

/// The models of what an experiment runs on, be that a kernel.
pub fn models_of(e: &Experiment, catalogue: &Catalogue) -> Experiment {
    let mut models = Experiment {
        target: TARGETS[0].name.to_owned(),
        ..e.clone()
    };
    if e.target == "kernel" {
        let has = |name: &&str| e.clone().choose_without(name, catalogue).is_ok();
        let absent = NOT_ON_UM.iter().copied().filter(has).map(str::to_owned);
        let left_out: Vec<String> = e.without.iter().cloned().chain(absent).collect();
        let chosen = models.choose_without(&left_out.join("+"), catalogue);
        chosen.expect("each of them can be left out");
    }
    models
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_experiment::Workload;

    #[test]
    fn kernels_for_um_preempt_as_their_models() {
        let catalogue = catalogue();
        let left_out = |kernel: &str, target: &str| {
            let mut e = Experiment::new("x", Workload::Processes(Vec::new()));
            e.choose_kernel(kernel.parse().expect("a release"), &catalogue);
            e.target = target.to_owned();
            models_of(&e, &catalogue).without.len()
        };
        assert_eq!(left_out("7.3", "kernel"), 2);
        assert_eq!(left_out("7.3", "qemu"), 0);
        assert_eq!(left_out("6.12", "kernel"), 0);
    }

    #[test]
    fn targets_are_called_as_their_rows_say() {
        for info in TARGETS {
            assert_eq!((info.make)(Schedulers::default()).name(), info.name);
        }
    }
}
