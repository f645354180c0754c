// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published experiments, run again: each published number beside ours.
//!
//! A study is data: experiments with variants, the numbers that were published
//! for them, and what has to hold between them. A number is *calibrated* if a
//! parameter of the model was fitted to it, else *predicted*; only predicted
//! numbers say anything about the model.

mod measure;
mod outcome;
mod study;

pub use outcome::{Kind, NumberOutcome, OrderingOutcome, Reproduction, Summary};
pub use study::{Metric, Number, Ordering, Part, Study, StudyError, names, study};

use crate::parallel;
use crate::run::{RunOptions, run};
use blklab_experiment::{Experiment, ExperimentError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Relaxed};

/// One configuration of a study with one seed.
struct Cell {
    study: usize,
    part: usize,
    variant: usize,
    experiment: Experiment,
}

/// Runs studies with seeds 0 to `seeds` - 1, `threads` runs at a time.
/// `step` is called after each run. Setting `stop` ends it early: what did not
/// run has no value.
///
/// # Errors
/// If a run is impossible: a fault in the study's data.
pub fn reproduce(
    studies: &[Study],
    seeds: u32,
    threads: usize,
    stop: &Arc<AtomicBool>,
    step: impl Fn() + Sync,
) -> Result<Reproduction, ExperimentError> {
    let mut cells = Vec::new();
    for (s, study) in studies.iter().enumerate() {
        cells.extend(cells_of(s, study, seeds)?);
    }
    let results = parallel::map(&cells, threads, |cell| {
        let values = measure_cell(&studies[cell.study], cell, stop);
        step();
        values
    });
    let mut values: Vec<Vec<Vec<f64>>> = studies
        .iter()
        .map(|s| vec![Vec::new(); s.numbers.len()])
        .collect();
    for (cell, measured) in cells.iter().zip(results) {
        for (i, value) in measured? {
            values[cell.study][i].push(value);
        }
    }
    Ok(Reproduction::new(studies, &values))
}

/// The study's numbers that are about a cell, by index; none if it was
/// stopped.
fn measure_cell(
    study: &Study,
    cell: &Cell,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<(usize, f64)>, ExperimentError> {
    if stop.load(Relaxed::Relaxed) {
        return Ok(Vec::new());
    }
    let options = RunOptions {
        traces: Vec::new(),
        stop: Arc::clone(stop),
    };
    let output = run(&cell.experiment, &options).map_err(|e| e.of(&cell.experiment))?;
    if output.interrupted {
        return Ok(Vec::new());
    }
    let numbers = study.numbers_of(cell.part, cell.variant);
    let values = numbers.filter_map(|(i, n)| Some((i, measure::value(&output, n)?)));
    Ok(values.collect())
}

/// Number of runs that [`reproduce`] makes.
pub fn nr_runs(studies: &[Study], seeds: u32) -> usize {
    let variants = |s: &Study| s.parts.iter().map(Part::nr_variants).sum::<usize>();
    studies.iter().map(variants).sum::<usize>() * seeds as usize
}

fn cells_of(idx: usize, study: &Study, seeds: u32) -> Result<Vec<Cell>, ExperimentError> {
    let mut cells = Vec::new();
    for (p, part) in study.parts.iter().enumerate() {
        for v in 0..part.nr_variants() {
            let experiment = part.variant(v)?;
            experiment.check()?;
            for seed in 0..seeds {
                cells.push(Cell {
                    study: idx,
                    part: p,
                    variant: v,
                    experiment: Experiment {
                        seed: u64::from(seed),
                        ..experiment.clone()
                    },
                });
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests;
