// SPDX-License-Identifier: MIT OR Apache-2.0
//! The examples of the library run, and nothing but the facade is needed to name what
//! its functions take and give.

#[path = "../examples/matrix_percentiles.rs"]
mod matrix_percentiles;
#[path = "../examples/run_job_file.rs"]
#[expect(
    dead_code,
    reason = "its main reads the arguments, which are the test's here"
)]
mod run_job_file;
#[path = "../../../fuzz/exercise/runs.rs"]
mod runs;
#[path = "../examples/write_scheduler.rs"]
mod write_scheduler;

use blklab_types::SplitMix64;

/// Random experiments; `BLKLAB_RANDOM_RUNS` asks for another number. Half of them, or
/// more, must be possible, and have so many events on the mean.
const RANDOM_RUNS: u64 = 400;
const EVENTS_MIN: u64 = 200;

#[test]
fn a_scheduler_of_ones_own_runs() {
    write_scheduler::main().expect("it runs");
}

#[test]
fn a_job_file_runs() {
    run_job_file::run_file(&run_job_file::sample()).expect("it runs");
}

#[test]
fn a_matrix_runs() {
    matrix_percentiles::main().expect("it runs");
}

/// Types of the facade's functions and fields, by the facade's names.
#[test]
fn what_signatures_name_is_there() {
    use blklab::run::RunOutput;
    use blklab::targets::JobResult;
    use blklab::trace::{Digest, Event};
    use blklab::types::{Dev, Time};
    fn parts(output: RunOutput) -> (Vec<JobResult>, Time, Digest, Vec<Event>, Vec<Dev>) {
        let devices = output.disks.iter().map(|d| d.dev).collect();
        (
            output.jobs,
            output.end,
            output.digest,
            output.events,
            devices,
        )
    }
    let _ = parts;
    let _: fn(
        &std::path::Path,
        &blklab::experiment::Catalogue,
    ) -> Result<blklab::experiment::Experiment, blklab::types::Error> = blklab::experiment::load;
    let _: fn(
        blklab::scheduler::Schedulers,
        Option<blklab::kernel::KernelVersion>,
    ) -> Vec<blklab::list::Entry> = blklab::list::schedulers;
}

/// What the fuzz target does, with bytes that are the same everywhere.
#[test]
fn random_experiments_keep_the_models_assertions() {
    let events = |seed: u64| {
        let mut random = SplitMix64(seed << 32);
        let bytes: Vec<u8> = (0..32)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        runs::run_twice(&bytes)
    };
    let asked = std::env::var("BLKLAB_RANDOM_RUNS");
    let nr = asked.map_or(RANDOM_RUNS, |n| n.parse().expect("a number of runs"));
    let events: Vec<u64> = (0..nr).filter_map(events).collect();
    let nr_run = events.len() as u64;
    let total: u64 = events.iter().sum();
    println!("{nr_run} of {nr} experiments run, with {total} events");
    assert!(nr_run * 2 >= nr && total >= nr_run * EVENTS_MIN);
}
