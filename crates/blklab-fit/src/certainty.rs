// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well the cells tell each parameter.
//!
//! Around the fit residuals are taken to be linear in the logarithms of the parameters. What
//! the fit leaves over, and what chance does to the residuals, moves the parameters by as much
//! as the slopes say. Figures of one cell go up and down together: they count as one thing that
//! may be off, not as many that make up for each other. A direction in which residuals hardly
//! change leaves the parameters in it open.

use crate::bench::CHANCES;
use crate::counts::{of_row, variance};
use crate::descent::beyond;
use crate::matrix::{Matrix, dot};
use crate::squares::Problem;

/// A parameter is told if its error (one standard deviation) is at most this: twice as much is
/// still within 5 %.
pub(crate) const TOLD: f64 = 0.025;

/// Residuals are never better known than this: buckets of fio's histograms.
const GRAIN: f64 = 0.005;

/// The step to either side by which is judged how much a parameter matters.
const WIDE_STEP: f64 = 0.15;

/// Parameters that move together in this measure only show together.
const TOGETHER: f64 = 0.9;

/// Knowledge of a parameter before anything is measured, by its inverse: none to speak of.
const BEFORE: f64 = 1e-3;

/// How well one parameter is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Certainty {
    /// Error as a part of the value; none: residuals do not depend on it.
    pub(crate) error: Option<f64>,
    /// The places of the parameters whose changes undo its own.
    pub(crate) with: Vec<usize>,
}

impl Certainty {
    /// Whether the cells tell it.
    pub(crate) fn is_told(&self) -> bool {
        self.error.is_some_and(|e| e <= TOLD)
    }
}

/// Of each parameter that a problem looks for, where it begins.
pub(crate) fn of_parameters(problem: &Problem<'_>) -> Vec<Certainty> {
    let n = problem.nr();
    if n == 0 {
        return Vec::new();
    }
    let here = problem.begin();
    let by_chance = problem.by_chance(&here.drive);
    let mut columns = problem.lesser_slopes(&here, WIDE_STEP);
    for (row, residual) in (0..here.left.len()).map(|row| (row, of_row(&by_chance, row))) {
        let chance = 2.0 * variance(&residual) / (WIDE_STEP * WIDE_STEP);
        for column in &mut columns {
            column[row] = beyond(column[row], chance);
        }
    }
    let covariance = covariance(problem, &columns, &here.left, &by_chance);
    let certainty = |i: usize| {
        let own = covariance.at(i, i);
        // Twice or half of it changes all residuals by less than they are known.
        let change = dot(&columns[i], &columns[i]).sqrt() * std::f64::consts::LN_2;
        if change < GRAIN * 3.0 {
            return Certainty {
                error: None,
                with: Vec::new(),
            };
        }
        let moves_with = |j: &usize| {
            let other = covariance.at(*j, *j);
            *j != i && covariance.at(i, *j).abs() > TOGETHER * (own * other).sqrt()
        };
        Certainty {
            error: Some(own.sqrt()),
            with: (0..n).filter(moves_with).collect(),
        }
    };
    (0..n).map(certainty).collect()
}

/// Variances and covariances of logarithms of parameters.
fn covariance(
    problem: &Problem<'_>,
    columns: &[Vec<f64>],
    left: &[f64],
    by_chance: &[Vec<f64>],
) -> Matrix {
    let n = columns.len();
    let cells = problem.cells.len();
    // What residuals pull a parameter by, for each cell.
    let pulls = |residuals: &[f64]| -> Vec<Vec<f64>> {
        let mut all = vec![vec![0.0; n]; cells];
        for (cell, pull) in all.iter_mut().enumerate() {
            let rows = problem.rows_of(cell);
            for (pull, column) in pull.iter_mut().zip(columns) {
                *pull = dot(&column[rows.clone()], &residuals[rows.clone()]);
            }
        }
        all
    };
    let squares = Matrix::of_columns(columns);
    let mut bread = squares.clone();
    let mut filling = Matrix::zero(n);
    for i in 0..n {
        bread.add(i, i, BEFORE * BEFORE);
        filling.add(i, i, BEFORE * BEFORE);
        for j in 0..n {
            filling.add(i, j, GRAIN * GRAIN * squares.at(i, j));
        }
    }
    // As many cells as parameters would leave nothing over, however wrong they are.
    let freedom = cells as f64 / cells.saturating_sub(n).max(cells.div_ceil(4)) as f64;
    for pull in pulls(left) {
        filling.add_outer(&pull, freedom);
    }
    let nr = CHANCES as f64;
    let mean: Vec<f64> = (0..left.len())
        .map(|row| of_row(by_chance, row).iter().sum::<f64>() / nr)
        .collect();
    for run in by_chance {
        let off: Vec<f64> = run.iter().zip(&mean).map(|(r, m)| r - m).collect();
        for pull in pulls(&off) {
            // Once for our run, once for what was measured.
            filling.add_outer(&pull, 2.0 / (nr - 1.0));
        }
    }
    // bread⁻¹ filling bread⁻¹, all of them symmetric.
    let inverse = bread
        .decomposed()
        .expect("it is positive definite")
        .inverse();
    let mut all = Matrix::zero(n);
    for (i, a) in inverse.iter().enumerate() {
        let filled = filling.times(a);
        for (j, b) in inverse.iter().enumerate() {
            all.add(i, j, dot(&filled, b));
        }
    }
    all
}
