// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of an experiment with changes, several at a time.

use crate::How;
use blklab::failures;
use blklab::job_rows::{JobRow, job_rows};
use blklab::run::{Collect, RunOptions};
use blklab::whatif::{Change, changed};
use blklab_experiment::Experiment;
use blklab_types::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) changes: Vec<Change>,
    /// Which repetition: 0 is the experiment as it is, others have other random numbers.
    pub(crate) repetition: u32,
}

impl Wanted {
    pub(crate) fn new(changes: Vec<Change>, repetition: u32) -> Wanted {
        Wanted {
            changes,
            repetition,
        }
    }
}

/// What runs experiments.
pub(crate) struct Bench<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) how: &'a How<'a>,
    runs: AtomicUsize,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(experiment: &Experiment, how: &'a How<'a>) -> Bench<'a> {
        Bench {
            experiment: experiment.clone(),
            how,
            runs: AtomicUsize::new(0),
        }
    }

    /// Runs so far.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// All of these, in their order; why there is no result where something cannot run.
    ///
    /// # Errors
    /// If somebody ended it.
    pub(crate) fn run_all(&self, all: &[Wanted]) -> Result<Vec<Result<Vec<JobRow>, Error>>, Error> {
        (self.how.told)(self.runs(), self.runs() + all.len());
        let done = self.runs();
        let ran = blklab::parallel::map(all, self.how.threads, |wanted| {
            if self.how.stop.load(Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let rows = self.run(wanted);
            self.runs.fetch_add(1, Ordering::Relaxed);
            (self.how.told)(self.runs(), done + all.len());
            rows
        });
        if self.how.stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        Ok(ran)
    }

    /// What each job got.
    fn run(&self, wanted: &Wanted) -> Result<Vec<JobRow>, Error> {
        let catalogue = self.how.planner.catalogue();
        let mut e = changed(&self.experiment, &wanted.changes, catalogue)?;
        e.seed = e.seed.saturating_add(u64::from(wanted.repetition));
        e.vary_offsets |= wanted.repetition > 0;
        let plan = self.how.planner.plan(&e)?;
        let options = RunOptions {
            stop: Arc::clone(&self.how.stop),
            collect: Collect::metrics(&plan),
            ..RunOptions::default()
        };
        let output = blklab::run::run(&plan, &options)?;
        if output.interrupted {
            return Err(Error::interrupted());
        }
        match failures::messages(&output).into_iter().next() {
            Some(first) => Err(Error::new(first)),
            None => Ok(job_rows(&output)),
        }
    }
}
