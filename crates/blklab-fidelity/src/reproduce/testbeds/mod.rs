// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report does not tell everything about its machine. Here a study runs on many
//! machines on which it might have been made, each with one seed, and each published
//! number is compared with what all of them give: a number that none of them gives is a
//! fault of the model (or of the space), one that some give says something about the
//! machine.
//!
//! ```text
//! studies/NAME/testbeds.toml ─► Space ─► testbeds ─► runs ─► TestbedOutcome
//!                                                     ▲ │
//!                                                     └─┴ Journal
//! ```

mod cause;
mod journal;
mod outcome;

pub use super::space::{Choice, Drawn, Scale, Space, Testbed, Unknown, Values};
pub use cause::{Class, Explained};
pub use journal::Journal;
pub use outcome::{
    NumberOnTestbeds, OrderingOnTestbeds, Sample, SampleValue, TestbedOutcome, Together,
    UnknownText,
};

use super::study::{Measure, Study};
use super::{Cell, add_cell, places, run_cell};
use blklab::parallel;
use blklab::targets::{Planner, Sim};
use blklab_experiment::{Experiment, Workload};
use blklab_types::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One run on one testbed.
struct Run {
    bed: usize,
    cell: Cell,
    /// Stands for the experiment and what it is asked for.
    key: String,
}

/// The runs of some studies on sampled testbeds.
pub struct Testbeds<'a> {
    studies: &'a [Study],
    space: &'a Space,
    beds: Vec<Testbed>,
    seed: u64,
    runs: Vec<Run>,
}

/// Why studies cannot run on testbeds, or did not.
#[derive(Debug)]
pub enum TestbedError {
    /// A study has no space, or the studies have different ones.
    NoSpace(String),
    /// A testbed is impossible: a fault in the study's data.
    Testbed(u32, Error),
    /// The file of runs that are done cannot be written.
    Journal(io::Error),
    /// It says what cannot be.
    Saved(Error),
}

impl fmt::Display for TestbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestbedError::NoSpace(what) => f.write_str(what),
            TestbedError::Testbed(number, e) => write!(f, "testbed {number}: {e}"),
            TestbedError::Saved(e) => e.fmt(f),
            TestbedError::Journal(e) => write!(f, "the file of runs that are done: {e}"),
        }
    }
}

impl std::error::Error for TestbedError {}

/// The space that all of some studies have.
fn common_space(studies: &[Study]) -> Result<&Space, TestbedError> {
    let mut common: Option<&Space> = None;
    for study in studies {
        let Some(space) = &study.space else {
            let all = super::names()
                .into_iter()
                .filter_map(|n| super::study(n).ok());
            let with: Vec<String> = all.filter(|s| s.space.is_some()).map(|s| s.name).collect();
            return Err(TestbedError::NoSpace(format!(
                "{}: its unknowns are not written down; those of these studies are: {}",
                study.name,
                with.join(", ")
            )));
        };
        match common {
            Some(other) if other.file != space.file => {
                return Err(TestbedError::NoSpace(format!(
                    "{} and {} ran on different machines ({} and {}): each has testbeds of its \
                     own, so give one or the other",
                    studies[0].name, study.name, other.file, space.file
                )));
            }
            _ => common = Some(space),
        }
    }
    common.ok_or_else(|| TestbedError::NoSpace("no study is named".to_owned()))
}

impl<'a> Testbeds<'a> {
    /// `nr` testbeds for studies of one machine. `seed` draws the testbeds; the runs on
    /// testbed i have seed i.
    ///
    /// # Errors
    /// If the studies have no space in common, or a testbed is impossible.
    pub fn new(studies: &'a [Study], nr: u32, seed: u64) -> Result<Testbeds<'a>, TestbedError> {
        let space = common_space(studies)?;
        let beds = space.testbeds(nr, seed);
        let mut runs = Vec::new();
        for (bed, testbed) in beds.iter().enumerate() {
            let mut cells: Vec<Cell> = Vec::new();
            for (s, study) in studies.iter().enumerate() {
                // What differs from run to run differs from testbed to testbed too.
                let state = study
                    .varies
                    .as_ref()
                    .map(|v| v.draw(u64::from(testbed.number)));
                let state = state.unwrap_or_default();
                for (place, part) in places(s, study) {
                    let mut settings = state.clone();
                    settings.extend(testbed.settings(&part.name).cloned());
                    let seed = u64::from(testbed.number);
                    add_cell(&mut cells, study, place, seed, &settings)
                        .map_err(|e| TestbedError::Testbed(testbed.number, e))?;
                }
            }
            for cell in cells {
                let key =
                    key(studies, &cell).map_err(|e| TestbedError::Testbed(testbed.number, e))?;
                runs.push(Run { bed, cell, key });
            }
        }
        Ok(Testbeds {
            studies,
            space,
            beds,
            seed,
            runs,
        })
    }

    /// Number of runs, those that are done among them.
    pub fn nr_runs(&self) -> usize {
        self.runs.len()
    }

    /// Runs what is not done yet, `threads` at a time. `step` is called for each run.
    /// Setting `stop` ends it early: the outcome is that of what did run.
    ///
    /// # Errors
    /// If a testbed is impossible, or the journal cannot be written.
    pub fn run(
        &self,
        threads: usize,
        stop: &Arc<AtomicBool>,
        journal: &Journal,
        step: impl Fn() + Sync,
    ) -> Result<TestbedOutcome, TestbedError> {
        let planner = Planner::new(Sim::default());
        let results = parallel::map(&self.runs, threads, |run| {
            let done = self.run_one(run, &planner, stop, journal);
            step();
            done
        });
        // By study, measure and testbed.
        let nr_beds = self.beds.len();
        let none = |s: &Study| vec![vec![None; nr_beds]; s.measures.len()];
        let mut values: Vec<Vec<Vec<Option<f64>>>> = self.studies.iter().map(none).collect();
        let mut missing = vec![false; nr_beds];
        for (run, result) in self.runs.iter().zip(results) {
            match result? {
                None => missing[run.bed] = true,
                Some(measured) => {
                    for (s, m, value) in measured {
                        values[s][m][run.bed] = Some(value);
                    }
                }
            }
        }
        Ok(TestbedOutcome::new(self, &values, &missing))
    }

    /// What a run gave by study and measure; none if it was stopped.
    fn run_one(
        &self,
        run: &Run,
        planner: &Planner,
        stop: &Arc<AtomicBool>,
        journal: &Journal,
    ) -> Result<Option<super::Values>, TestbedError> {
        let asked = asked(self.studies, &run.cell);
        let names: Vec<&str> = asked.iter().map(|(_, _, name)| name.as_str()).collect();
        let saved = journal.values(&run.key, &names);
        if let Some(values) = saved.map_err(TestbedError::Saved)? {
            let value = |(s, m, name): (usize, usize, String)| Some((s, m, *values.get(&name)?));
            return Ok(Some(asked.into_iter().filter_map(value).collect()));
        }
        let number = self.beds[run.bed].number;
        let measured = run_cell(self.studies, &run.cell, planner, stop)
            .map_err(|e| TestbedError::Testbed(number, e))?;
        let Some(measured) = measured else {
            return Ok(None);
        };
        let named: BTreeMap<String, f64> = asked
            .into_iter()
            .filter_map(|(s, m, name)| {
                let found = measured.iter().find(|v| (v.0, v.1) == (s, m));
                found.map(|v| (name, v.2))
            })
            .collect();
        journal
            .add(&run.key, &named)
            .map_err(TestbedError::Journal)?;
        Ok(Some(measured))
    }
}

/// What a run is asked for: study, measure, and a name for both.
fn asked(studies: &[Study], cell: &Cell) -> Vec<(usize, usize, String)> {
    let mut all = Vec::new();
    for place in &cell.places {
        let study = &studies[place.study];
        for (i, m) in study.measures_of(place.part, place.variant) {
            all.push((place.study, i, measure_name(study, m)));
        }
    }
    all
}

fn measure_name(study: &Study, m: &Measure) -> String {
    format!(
        "{} | {} | {:?} | {} {}",
        study.name,
        study.configuration(m.part, m.variant),
        m.subject,
        m.metric.metric.key,
        m.metric.unit.text()
    )
}

/// Stands for an experiment, what it is asked for and the program's version.
fn key(studies: &[Study], cell: &Cell) -> Result<String, Error> {
    let plain = Experiment {
        id: String::new(),
        ..cell.experiment.clone()
    };
    let mut text = plain.to_toml("job", &blklab_sim::catalogue())?;
    if let Workload::Fio { text: job, .. } = &plain.workload {
        text += job;
    }
    for (_, _, name) in asked(studies, cell) {
        text += &name;
    }
    text += env!("CARGO_PKG_VERSION");
    // FNV-1a with 128 bits: runs are not to be taken for each other.
    let hash = text.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    Ok(format!("{hash:032x}"))
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests;
