// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a job file for the figures of its jobs alone, as sweeps do that leave the events
//! out, and prints its IOPS. `scripts/instructions.sh` counts what that takes per I/O.
//!
//!     cargo run -p blklab --example metrics_alone -- JOB.fio [KERNEL SCHEDULER DEVICE]

use blklab::experiment::{DeviceSpec, load};
use blklab::job_rows::job_rows;
use blklab::metric;
use blklab::run::{Collect, RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab::types::Error;

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    run_words(&words)
}

/// Runs what the words of a command line say.
pub(crate) fn run_words(words: &[String]) -> Result<(), Error> {
    let word = |place: usize, otherwise: &str| match words.get(place) {
        Some(word) => word.clone(),
        None => otherwise.to_owned(),
    };
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/random-read.fio"
    );
    let planner = Planner::new(Sim::default());
    let catalogue = planner.catalogue();
    let mut experiment = load(word(0, sample).as_ref(), catalogue)?;
    experiment.choose_kernel(word(1, "6.1").parse()?, catalogue);
    experiment.choose_scheduler(&word(2, "none"), catalogue)?;
    let device = DeviceSpec {
        name: word(3, "serial"),
        params: Vec::new(),
    };
    experiment.choose_device(device, catalogue)?;
    let options = RunOptions {
        collect: Collect::Watches,
        ..RunOptions::default()
    };
    let output = run(&planner.plan(&experiment)?, &options)?;
    let iops = metric::named("iops").expect("a metric");
    for row in job_rows(&output) {
        let name = row.job.as_deref().unwrap_or("all");
        let value = iops.of_jobs(&row.numbers).unwrap_or(0.0);
        println!("{name:>10} {:5} {value:8.0} IOPS", row.direction);
    }
    Ok(())
}
