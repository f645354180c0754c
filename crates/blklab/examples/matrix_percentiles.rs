// SPDX-License-Identifier: MIT OR Apache-2.0
//! One job on several kernels under several schedulers: percentiles of the completion
//! latency, medians over three seeds.
//!
//!     cargo run -p blklab --example matrix_percentiles

use blklab::analysis::Spread;
use blklab::experiment::{DeviceSpec, Experiment, Workload};
use blklab::fio::Ddir;
use blklab::matrix::{Cell, Overrides, expand, plans};
use blklab::metric::{self, Metric, Numbers};
use blklab::parallel::{cores, map};
use blklab::run::{RunOptions, RunOutput, run};
use blklab::targets::{Planner, Sim};

const JOB: &str = "\
[global]
direct=1
ioengine=libaio
iodepth=16
size=1g
io_size=2m
[reader]
rw=randread
[writer]
rw=randwrite
";

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workload = Workload::Fio {
        name: "mixed.fio".to_owned(),
        text: JOB.to_owned(),
    };
    let overrides = Overrides {
        kernels: ["5.4", "6.18"].map(str::to_owned).to_vec(),
        schedulers: ["none", "mq-deadline", "kyber", "bfq"]
            .map(str::to_owned)
            .to_vec(),
        devices: vec![DeviceSpec {
            name: "sata-ssd".to_owned(),
            params: Vec::new(),
        }],
        repeat: 3,
        ..Overrides::default()
    };
    // Every combination, repetitions innermost.
    let planner = Planner::new(Sim::default());
    let experiment = Experiment::new("mixed", workload);
    let cells = expand(&[experiment], &overrides, &planner)?;
    let plans = plans(&cells, &overrides, &planner)?;
    let outputs = map(&plans, cores(), |plan| run(plan, &RunOptions::default()));
    let outputs: Vec<RunOutput> = outputs.into_iter().collect::<Result<_, _>>()?;
    let runs: Vec<(&Cell, &RunOutput)> = cells.iter().zip(&outputs).collect();

    println!(
        "{:<28} {:>9} {:>9} {:>9}",
        "reads, us", "50 %", "99 %", "99.9 %"
    );
    for repetitions in runs.chunk_by(|a, b| a.0.label == b.0.label) {
        let percentile =
            |key: &str| microseconds(repetitions, metric::named(key).expect("a metric"));
        println!(
            "{:<28} {:>9.1} {:>9.1} {:>9.1}",
            repetitions[0].0.name(),
            percentile("clat_p50"),
            percentile("clat_p99"),
            percentile("clat_p999"),
        );
    }
    Ok(())
}

/// Median over the repetitions of a metric of the reads.
fn microseconds(repetitions: &[(&Cell, &RunOutput)], metric: &Metric) -> f64 {
    let reads = |run: &RunOutput| Numbers::new(&run.jobs, Some(Ddir::Read));
    let values = repetitions
        .iter()
        .filter_map(|(_, run)| metric.of_jobs(&reads(run)));
    Spread::new(values.collect()).median / 1e3
}
