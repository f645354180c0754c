// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small experiment made of any bytes, run twice: the models keep their own
//! assertions, every job ends with all its I/Os done or failed, and both runs give
//! the same events. Write-back that is under way when the last job ends is not waited for. Shared
//! by the fuzz target and by the test that runs some of fixed seeds.

mod experiment;

use blklab::experiment::Source;
use blklab::matrix::{self, Overrides};
use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};

/// Says how many events a run has, if the experiment can be.
pub(crate) fn run_twice(data: &[u8]) -> Option<u64> {
    let planner = Planner::new(Sim::default());
    let catalogue = planner.catalogue();
    let text = experiment::Tape::new(data).experiment(catalogue);
    let overrides = Overrides {
        repeat: 1,
        ..Overrides::default()
    };
    let no_files = |name: &str| -> Result<(String, String), blklab::types::Error> {
        unreachable!("{name} is named in {text}")
    };
    let experiment =
        blklab::experiment::parse("fuzz.toml", Source::Toml, &text, &no_files, catalogue);
    let experiment = experiment.map_err(|e| one_line(&e)).ok()?;
    let cells = matrix::expand(&[experiment], &overrides, &planner);
    let plans = match cells.and_then(|cells| matrix::plans(&cells, &overrides, &planner)) {
        Ok(plans) => plans,
        Err(refused) => {
            one_line(&refused);
            return None;
        }
    };
    let once = || {
        let output = run(&plans[0], &RunOptions::default()).expect("a plan runs");
        for job in &output.jobs {
            assert!(job.ended.is_some(), "a job does not end: {text}");
            // Some filesystems refuse direct I/O (EINVAL), files and some devices trims (ENOTTY,
            // EOPNOTSUPP), which ends the job.
            let dirs = &job.stat.dirs;
            let issued: u64 = dirs.iter().map(|d| d.total_ios).sum();
            let done: u64 = dirs.iter().map(|d| d.lat.stat.samples).sum();
            let failed = job.outcome.errors;
            assert_eq!(issued, done + failed, "I/Os of a job: {text}");
        }
        (output.digest, output.end)
    };
    let first = once();
    assert_eq!(first, once(), "two runs of {text}");
    Some(first.0.nr_events())
}

/// What is refused is said in one line.
fn one_line(refused: &dyn std::fmt::Display) {
    let refused = refused.to_string();
    assert_eq!(refused.lines().count(), 1, "one line: {refused}");
}
