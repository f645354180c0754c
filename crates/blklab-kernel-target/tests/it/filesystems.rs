// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every filesystem that a kernel has: made, mounted, written and read.

use blklab_experiment::{Experiment, OF_KERNELS, Workload};
use blklab_kernel_target::Kernel;
use blklab_target::{Planner, Sinks};
use blklab_trace::NullSink;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const JOB: &str = "[w]\nrw=write\nbs=16k\nsize=1m\nfsync=16\nioengine=psync\n\
                   [r]\nstonewall\nrw=randread\nbs=4k\nsize=1m\nio_size=64k\nioengine=psync\n";

/// Those that have models, too, and are not said to run elsewhere.
const MODELLED: [&str; 4] = ["ext2", "ext3", "nilfs2", "reiserfs"];

#[test]
fn files_are_written_and_read_on_every_filesystem_that_the_kernel_has() {
    let Some(kernel) = super::kernel() else {
        return;
    };
    let catalogue = blklab_sim::catalogue();
    let of_kernels = OF_KERNELS.iter().map(|(name, _)| *name);
    for name in of_kernels.chain(MODELLED) {
        let workload = Workload::Fio {
            name: "job.fio".to_owned(),
            text: JOB.to_owned(),
        };
        let mut e = Experiment::new("files", workload);
        e.set("target", "kernel", &catalogue).expect("a target");
        e.choose_kernel(kernel.release.parse().expect("a release"), &catalogue);
        e.choose_filesystem(name, &catalogue).expect("it is known");
        // Small: mke2fs writes all inode tables of ext2.
        e.device.name = "null_blk".to_owned();
        e.device.params = vec![("gb".to_owned(), "4".to_owned())];
        let planner = Planner::new(Kernel::with(catalogue.clone()));
        let plan = match planner.plan(&e) {
            Ok(plan) => plan,
            Err(err) if is_without_means(&err.to_string()) => {
                blklab_testkit::skipped(&err.to_string());
                continue;
            }
            Err(err) => panic!("{name}: {err}"),
        };
        let outcome = plan.run(
            Sinks::of_events(Box::new(NullSink)),
            Arc::new(AtomicBool::new(false)),
        );
        let outcome = outcome.unwrap_or_else(|err| panic!("{name}: {err}"));
        let [written, read] = &outcome.jobs[..] else {
            panic!("{name}: there are two jobs");
        };
        assert_eq!(written.outcome.error, 0, "{name}");
        assert_eq!(written.stat.dirs[1].total_ios, 64, "{name}");
        assert_eq!(read.stat.dirs[0].total_ios, 16, "{name}");
    }
}

/// Whether this kernel has it no more or not yet, or this machine has no program for it.
fn is_without_means(why: &str) -> bool {
    why.contains(" has no ") || why.contains("apt-get install")
}
