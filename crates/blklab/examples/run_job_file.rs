// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a job file on the kernel's block layer and prints what came of it.
//!
//!     cargo run -p blklab --example run_job_file [JOB.fio]

use blklab::experiment::load;
use blklab::job_rows::job_rows;
use blklab::metric;
use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab::types::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Error> {
    let job = std::env::args_os()
        .nth(1)
        .map_or_else(sample, PathBuf::from);
    run_file(&job)
}

/// Runs one job file.
pub(crate) fn run_file(job: &Path) -> Result<(), Error> {
    // A job file alone runs on blklab's default kernel, scheduler and device.
    let planner = Planner::new(Sim::default());
    let mut experiment = load(job, planner.catalogue())?;
    experiment.choose_kernel("6.1".parse()?, planner.catalogue());
    experiment.choose_scheduler("mq-deadline", planner.catalogue())?;
    experiment.set("queue_depth", "32", planner.catalogue())?;
    let plan = planner.plan(&experiment)?;
    let output = run(&plan, &RunOptions::default())?;

    for row in job_rows(&output) {
        let value = |key: &str| {
            metric::named(key)
                .and_then(|m| m.of_jobs(&row.numbers))
                .unwrap_or(0.0)
        };
        println!(
            "{:>10} {:5}  {:>7.0} IOPS  99 % within {:>6.0} us",
            row.job.as_deref().unwrap_or("all"),
            row.direction,
            value("iops"),
            value("clat_p99") / 1e3,
        );
    }
    println!(
        "{} events in {} s of virtual time, digest {:016x}",
        output.digest.nr_events(),
        output.end,
        output.digest.value()
    );
    for note in &output.notes {
        println!("note: {note}");
    }
    Ok(())
}

/// The sample of the repository.
pub(crate) fn sample() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/random-read.fio"
    ))
}
