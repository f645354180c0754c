// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts about runs of a simulated machine.

use super::figures::Source;
use super::{Options, RowChange, Verdict, rows};
use crate::matrix::Cell;
use crate::record::RunRecord;
use crate::run::{RunOptions, run};
use crate::targets::{Planner, Sim};
use blklab_experiment::{Experiment, Workload};

/// Two readers whose offsets depend on the seed, beside a stream of writes.
const JOB: &str = "[global]\ndirect=1\nrandrepeat=0\nsize=1g\n\
    [reader]\nrw=randread\nio_size=120k\nnumjobs=2\nthinktime=200us\n\
    [writer]\nrw=write\nbs=64k\nio_size=4m\nioengine=libaio\niodepth=32\n";

/// The numbers of runs with these seeds.
fn samples(scheduler: &str, seeds: std::ops::Range<u64>) -> Vec<Source> {
    let workload = Workload::Fio {
        name: "mixed.fio".into(),
        text: JOB.into(),
    };
    let planner = Planner::new(Sim::default());
    let mut experiment = Experiment::new("mixed", workload);
    experiment.choose_kernel("4.19".parse().expect("a kernel"), planner.catalogue());
    experiment
        .choose_scheduler(scheduler, planner.catalogue())
        .expect("of 4.19");
    experiment
        .set("queue_depth", "1", planner.catalogue())
        .expect("a depth");
    let one = |seed| {
        let mut experiment = experiment.clone();
        experiment.seed = seed;
        let plan = planner.plan(&experiment).expect("a plan");
        let output = run(&plan, &RunOptions::default()).expect("it runs");
        let cell = Cell {
            label: Vec::new(),
            file_idx: 0,
            place: 0,
            repetition: 0,
            experiment,
        };
        Source::of_run(&RunRecord::new(&cell, &output).metrics)
    };
    seeds.map(one).collect()
}

fn compared(before: &[Source], after: &[Source], paired: bool) -> Vec<RowChange> {
    rows([before, after], paired, &Options::default())
}

fn verdicts(rows: &[RowChange]) -> impl Iterator<Item = Verdict> {
    rows.iter().flat_map(|r| &r.changes).map(|c| c.verdict)
}

#[test]
fn other_seeds_are_no_difference_in_24_of_25_trials() {
    const RUNS: u64 = 5;
    const TRIALS: u64 = 25;
    let all = samples("noop", 0..2 * RUNS * TRIALS);
    let is_quiet = |pair: &&[Source]| {
        let (before, after) = pair.split_at(RUNS as usize);
        let rows = compared(before, after, false);
        assert!(verdicts(&rows).count() >= 10, "{rows:?}");
        verdicts(&rows).all(|v| matches!(v, Verdict::NoDifference | Verdict::Same))
    };
    let quiet = all.chunks(2 * RUNS as usize).filter(is_quiet).count();
    assert!(quiet >= 24, "{quiet} of {TRIALS}");
}

#[test]
fn cfq_serves_readers_better_than_noop() {
    let [noop, cfq] = ["noop", "cfq"].map(|name| samples(name, 0..6));
    let rows = compared(&noop, &cfq, true);
    let reader = rows.iter().find(|r| r.who == "reader").expect("readers");
    let change = |metric: &str| {
        let found = reader.changes.iter().find(|c| c.metric == metric);
        found.expect("a metric of jobs")
    };
    let mean = change("clat_mean_ns");
    assert_eq!(mean.verdict, Verdict::Better, "{mean:?}");
    let [low, high] = mean.change.interval.expect("six runs");
    let ratio = mean.change.ratio.expect("latencies");
    assert!(low <= ratio && ratio <= high && high < 1.0, "{mean:?}");
    assert_eq!(change("bandwidth_bytes_per_s").verdict, Verdict::Better);
    let worse = compared(&cfq, &noop, true);
    assert!(verdicts(&worse).any(|v| v == Verdict::Worse));
}
