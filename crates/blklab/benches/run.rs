// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path that users take: `blklab run` of a job file, from its text to all
//! statistics. Two jobs of random 4 KiB reads, 32 in flight each, on a serial
//! device.

use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab_experiment::{DeviceSpec, Experiment, Workload};
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const IOS_PER_JOB: u64 = 20_000;

fn experiment(kernel: &str, scheduler: &str) -> Experiment {
    let text = format!(
        "[global]\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\niodepth=32\n\
         filename=/dev/sda\nsize=1g\nnumber_ios={IOS_PER_JOB}\n[a]\n[b]\n"
    );
    let workload = Workload::Fio {
        name: "two.fio".into(),
        text,
    };
    let mut e = Experiment::new("bench", workload);
    e.kernel = kernel.parse().expect("a version");
    e.scheduler = scheduler.to_owned();
    e.device = DeviceSpec {
        name: "serial".to_owned(),
        params: Vec::new(),
    };
    e
}

#[divan::bench(args = [
    ("2.6.28", "noop"),
    ("2.6.28", "cfq"),
    ("6.1", "none"),
    ("6.1", "bfq"),
])]
fn two_jobs(bencher: divan::Bencher<'_, '_>, (kernel, scheduler): (&str, &str)) {
    let e = experiment(kernel, scheduler);
    bencher
        .counter(ItemsCount::new(2 * IOS_PER_JOB))
        .bench_local(|| {
            let planner = Planner::new(Sim::default());
            let plan = planner.plan(&e).expect("a plan");
            let output = run(&plan, &RunOptions::default()).expect("a run");
            assert_eq!(output.stats.all.q2c.count(), 2 * IOS_PER_JOB);
        });
}
