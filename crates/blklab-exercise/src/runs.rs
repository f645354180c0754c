// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small experiment made of any bytes, run twice: the models keep their own
//! assertions, every job ends with all its I/Os done or failed, and both runs give
//! the same events. Write-back that is under way when the last job ends is not waited for.

use crate::Target;
use crate::check::one_line;
use crate::corpus::{Seed, samples};
use crate::tape::Tape;

use blklab::experiment::Source;
use blklab::matrix::{self, Overrides};
use blklab::run::{RunOptions, run};
use blklab::targets::{Planner, Sim};

pub(crate) const TARGET: Target = Target {
    name: "run",
    feed: |data| run_twice(data).map(|ran| ran.digest),
    samples: any_bytes,
};

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Events of its trace.
    pub events: u64,
    /// Their digest.
    pub digest: u64,
}

/// Any bytes are an experiment; so many are used of them, or fewer.
const USED: usize = 96;

fn any_bytes() -> Vec<Seed> {
    let parts = |seed: Seed| {
        let parts = seed.bytes.chunks(USED).take(8).enumerate();
        let part = |(i, bytes): (usize, &[u8])| Seed {
            name: format!("{}-{i}", seed.name),
            bytes: bytes.to_vec(),
        };
        parts.map(part).collect::<Vec<_>>()
    };
    let all = samples(&["testdata/blkparse"], &[".blktrace.0", ".blktrace.1"]);
    all.into_iter().flat_map(parts).collect()
}

/// Runs it, if the experiment can be.
///
/// # Panics
/// If something is wrong with a model.
pub fn run_twice(data: &[u8]) -> Option<Ran> {
    let planner = Planner::new(Sim::default());
    let catalogue = planner.catalogue();
    let text = Tape::new(data).experiment(catalogue);
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
    Some(Ran {
        events: first.0.nr_events(),
        digest: first.0.value(),
    })
}
