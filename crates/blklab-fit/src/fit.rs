// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fit of a flash drive, and what is said of it.

use crate::bench::{Bench, Figure};
use crate::cell::{Cell, held_out};
use crate::certainty::TOLD;
use crate::drive::Drive;
use crate::search::Search;
use blklab_types::Error;
use std::sync::atomic::Ordering;

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// The drive to begin with; none: the nearest of the presets.
    pub like: Option<Drive>,
    /// One of so many cells is held out; 0: none.
    pub hold_out: usize,
    /// Threads that run cells. The result does not depend on it.
    pub threads: usize,
}

/// A parameter that was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Its name.
    pub name: &'static str,
    /// Its value, as the device takes it.
    pub value: String,
    /// One standard deviation as a part of the value; none: no residual depends on it.
    pub error: Option<f64>,
    /// Parameters whose changes undo its own.
    pub with: Vec<&'static str>,
}

impl Fitted {
    /// Whether the measurements tell it.
    pub fn is_told(&self) -> bool {
        self.error.is_some_and(|e| e <= TOLD)
    }
}

/// A cell, measured and as the drive does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The cell's name.
    pub name: String,
    /// The fit did not see it.
    pub held_out: bool,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A flash drive that is near to what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The drive.
    pub drive: Drive,
    /// What was looked for.
    pub fitted: Vec<Fitted>,
    /// Every cell.
    pub cells: Vec<Judged>,
    /// How many runs of a cell it took.
    pub runs: usize,
}

/// Looks for the drive that is nearest to these measurements.
///
/// # Errors
/// If there are none.
pub fn fit(cells: &[Cell], options: &FitOptions) -> Result<Fit, Error> {
    if cells.is_empty() {
        return Err(Error::new("no load to fit a device to"));
    }
    let held = held_out(cells, options.hold_out);
    let bench = Bench::new(cells, options.threads.max(1));
    let (drive, told) = Search::new(&bench, &held).run(options.like.as_ref());
    let fitted = told.into_iter().map(|t| Fitted {
        name: t.name,
        value: drive.get(t.name).to_owned(),
        error: t.error,
        with: t.with,
    });
    let fitted = fitted.collect();
    Ok(Fit {
        fitted,
        cells: judged(&bench, &drive, &held),
        drive,
        runs: bench.runs.load(Ordering::Relaxed),
    })
}

/// What a drive does in these cells, beside what was measured.
pub fn judge(cells: &[Cell], drive: &Drive) -> Vec<Judged> {
    judged(&Bench::new(cells, 1), drive, &vec![false; cells.len()])
}

fn judged(bench: &Bench<'_>, drive: &Drive, held_out: &[bool]) -> Vec<Judged> {
    let one = |(i, cell): (usize, &Cell)| Judged {
        name: cell.name.clone(),
        held_out: held_out[i],
        figures: bench.figures(i, drive),
    };
    bench.cells.iter().enumerate().map(one).collect()
}
