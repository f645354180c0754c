// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published experiments, run again: each published number beside ours.
//!
//! A study is data: experiments with variants, the numbers that were published
//! for them, and what has to hold between them. A number is *calibrated* if a
//! parameter of the model was fitted to it, else *predicted*; only predicted
//! numbers say anything about the model.

mod calibration;
mod files;
mod outcome;
mod space;
mod study;
mod subject;
pub mod testbeds;

pub use calibration::{Parameter, calibration};
pub use files::{names, study};
pub use outcome::{About, Measured, NumberOutcome, OrderingOutcome, Reproduction, Summary, Tally};
pub use study::{
    Basis, Kind, Measure, Number, Ordering, Part, Rule, Statistic, Study, StudyError, Tolerance,
};
pub use subject::{Jobs, Subject};

use blklab::analysis::watch::BioFilter;
use blklab::parallel;
use blklab::run::{Collect, RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab_experiment::Experiment;
use blklab_types::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Relaxed};

/// One configuration of a study.
#[derive(Clone, Copy)]
struct Place {
    study: usize,
    part: usize,
    variant: usize,
}

/// One run, for every configuration that is the same experiment.
struct Cell {
    experiment: Experiment,
    filters: Vec<BioFilter>,
    places: Vec<Place>,
}

/// The runs that some studies need.
pub struct Plan<'a> {
    studies: &'a [Study],
    cells: Vec<Cell>,
}

impl<'a> Plan<'a> {
    /// Seeds are 0 to `seeds` - 1, fewer where a study says so. Studies that
    /// share an experiment share its runs.
    ///
    /// # Errors
    /// If a run is impossible: a fault in the study's data.
    pub fn new(studies: &'a [Study], seeds: u32) -> Result<Plan<'a>, Error> {
        let mut cells: Vec<Cell> = Vec::new();
        for (s, study) in studies.iter().enumerate() {
            for (place, part) in places(s, study) {
                for seed in 0..u64::from(seeds.min(part.seeds_max)) {
                    let state = study.varies.as_ref().map(|v| v.draw(seed));
                    let state = state.unwrap_or_default();
                    add_cell(&mut cells, study, place, seed, &state)?;
                }
            }
        }
        Ok(Plan { studies, cells })
    }

    /// Number of runs.
    pub fn nr_runs(&self) -> usize {
        self.cells.len()
    }

    /// Runs them, `threads` at a time. `step` is called after each. Setting
    /// `stop` ends it early: what did not run has no value.
    ///
    /// # Errors
    /// If a run is impossible: a fault in the study's data.
    pub fn run(
        &self,
        threads: usize,
        stop: &Arc<AtomicBool>,
        step: impl Fn() + Sync,
    ) -> Result<Reproduction, Error> {
        let planner = Planner::new(Sim::default());
        let results = parallel::map(&self.cells, threads, |cell| {
            let values = run_cell(self.studies, cell, &planner, stop);
            step();
            values
        });
        let nr_measures = |s: &Study| vec![Vec::new(); s.measures.len()];
        let mut values: Vec<Vec<Vec<f64>>> = self.studies.iter().map(nr_measures).collect();
        for measured in results {
            for (study, measure, value) in measured?.unwrap_or_default() {
                values[study][measure].push(value);
            }
        }
        Ok(Reproduction::new(self.studies, &values))
    }
}

/// Values with the places of their study and measure.
type Values = Vec<(usize, usize, f64)>;

/// Values of a run; none if it was stopped.
fn run_cell(
    studies: &[Study],
    cell: &Cell,
    planner: &Planner,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Values>, Error> {
    if stop.load(Relaxed::Relaxed) {
        return Ok(None);
    }
    let options = RunOptions {
        stop: Arc::clone(stop),
        watches: cell.filters.clone(),
        collect: Collect::Watches,
        ..RunOptions::default()
    };
    let plan = planner.plan(&cell.experiment)?;
    let output = run(&plan, &options).map_err(|e| cell.experiment.locate(e))?;
    if output.interrupted {
        return Ok(None);
    }
    let mut values = Vec::new();
    for place in &cell.places {
        let study = &studies[place.study];
        for (i, m) in study.measures_of(place.part, place.variant) {
            if let Some(value) = m.subject.value(m.metric, &output, &cell.filters) {
                values.push((place.study, i, value));
            }
        }
    }
    Ok(Some(values))
}

/// Configurations of a study, which is one of several, from 0.
fn places(nr: usize, study: &Study) -> impl Iterator<Item = (Place, &Part)> {
    study.parts.iter().enumerate().flat_map(move |(p, part)| {
        let place = move |variant| Place {
            study: nr,
            part: p,
            variant,
        };
        (0..part.nr_variants()).map(move |variant| (place(variant), part))
    })
}

/// Adds the run of a configuration with a seed on a machine with these settings.
fn add_cell(
    cells: &mut Vec<Cell>,
    study: &Study,
    place: Place,
    seed: u64,
    settings: &[(String, String)],
) -> Result<(), Error> {
    let mut experiment = study.parts[place.part].variant_on(place.variant, settings)?;
    experiment.check(&blklab_sim::catalogue())?;
    // What makes no difference to a run.
    experiment.id = study.name.clone();
    experiment.title.clear();
    let filters = study.filters_of(place.part, place.variant);
    experiment.seed = seed;
    let Some(same) = cells.iter_mut().find(|c| same(&c.experiment, &experiment)) else {
        cells.push(Cell {
            experiment,
            filters,
            places: vec![place],
        });
        return Ok(());
    };
    same.places.push(place);
    for f in filters {
        if !same.filters.contains(&f) {
            same.filters.push(f);
        }
    }
    Ok(())
}

/// Whether two runs are the same but for their names.
fn same(a: &Experiment, b: &Experiment) -> bool {
    a.seed == b.seed && {
        let named = |e: &Experiment| Experiment {
            id: String::new(),
            workload: unnamed(&e.workload),
            ..e.clone()
        };
        named(a) == named(b)
    }
}

/// A workload whose job file has no name.
fn unnamed(w: &blklab_experiment::Workload) -> blklab_experiment::Workload {
    use blklab_experiment::Workload;
    match w {
        Workload::Fio { text, .. } => Workload::Fio {
            name: String::new(),
            text: text.clone(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
