// SPDX-License-Identifier: MIT OR Apache-2.0
//! The examples of the library run, and nothing but the facade is needed to name what
//! its functions take and give.

#[path = "../examples/matrix_percentiles.rs"]
mod matrix_percentiles;
#[path = "../examples/metrics_alone.rs"]
#[expect(
    dead_code,
    reason = "its main reads the arguments, which are the test's here"
)]
mod metrics_alone;
#[path = "../examples/run_job_file.rs"]
#[expect(
    dead_code,
    reason = "its main reads the arguments, which are the test's here"
)]
mod run_job_file;
#[path = "../examples/write_scheduler.rs"]
mod write_scheduler;

#[test]
fn a_scheduler_of_ones_own_runs() {
    write_scheduler::main().expect("it runs");
}

#[test]
fn a_job_file_runs() {
    run_job_file::run_file(&run_job_file::sample()).expect("it runs");
}

#[test]
fn figures_alone_are_made() {
    metrics_alone::run_words(&[]).expect("it runs");
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
