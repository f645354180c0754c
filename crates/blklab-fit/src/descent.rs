// SPDX-License-Identifier: MIT OR Apache-2.0
//! Towards the least squares.
//!
//! ```text
//! a step of every parameter to both sides ─► residuals, taken to be linear near here ─► a step
//!              ▲                                          ▲                               │
//!              └─ shorter ones, when steps become short ──┴── one more drive that was tried┘
//! ```
//!
//! Two drives that differ by one part in a hundred differ by chance as well: the sum of squares
//! has a thousand small valleys, in which a search that compares it from drive to drive stays.
//! So it is never compared closely. Residuals as a function of parameters are found by
//! regression over all drives that were tried near here, each of which drew another lot
//! ([`Problem::place`]), so that chance is averaged; what chance alone would do to a slope is
//! taken off it. The next drive is where this function has its least squares.

use crate::matrix::{Matrix, dot};
use crate::squares::{PULL, Place, Problem};

/// Most steps with one width.
const STEPS_MAX: usize = 6;

/// A step shorter than this part of the width is the last.
const SHORT: f64 = 0.1;

/// Drives within so many widths are near, and a step goes no farther than that.
const NEAR: f64 = 2.0;

/// A step that leads to so many times the least squares so far led too far; and so many times
/// are no chance at the end.
const TOO_FAR: f64 = 1.15;
const NO_CHANCE: f64 = 1.05;

/// Weight of slopes of nothing in a regression, in squares of the width: decides if no drive
/// does.
const NOTHING: f64 = 1e-3;

/// Residuals near here, as a function of parameters.
struct Model {
    /// What is left of the residuals.
    left: Vec<f64>,
    /// The change of each residual, by parameter.
    columns: Vec<Vec<f64>>,
}

/// Looks for the least squares by steps of these widths, one after the other.
pub(crate) fn solve(problem: &Problem<'_>, widths: &[f64]) -> Place {
    let mut here = problem.begin();
    if problem.nr() == 0 {
        return here;
    }
    let mut tried = vec![here.clone()];
    for width in widths {
        let drawn = tried.len();
        tried.extend(problem.stepped_places(&here, &[*width, -*width], |i| (drawn + i) as u64));
        // One parameter alone may lead farther than a line can know.
        here = or_clearly_better(here, &tried);
        let mut reach = NEAR * width;
        for _ in 0..STEPS_MAX {
            let model = regress(problem, &tried, &here, NEAR * width);
            let Some(at) = step(&here, &model, reach) else {
                break;
            };
            let there = problem.place(&at, tried.len());
            let length = distance(&there.at, &here.at);
            if length > 0.0 {
                tried.push(there.clone());
            }
            let least = tried.iter().map(Place::cost).fold(f64::MAX, f64::min);
            if there.cost() > least * TOO_FAR {
                reach /= 2.0;
                continue;
            }
            here = there;
            if length < SHORT * width {
                break;
            }
        }
        here = or_clearly_better(here, &tried);
    }
    here
}

/// The best drive that was tried, if it is better than this one by more than chance.
fn or_clearly_better(here: Place, tried: &[Place]) -> Place {
    let best = tried.iter().min_by(|a, b| a.cost().total_cmp(&b.cost()));
    match best {
        Some(best) if best.cost() * NO_CHANCE < here.cost() => best.clone(),
        _ => here,
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let each = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    each.fold(0.0, f64::max)
}

/// Residuals as a function of parameters, from the drives within `reach` of `here`. Of each
/// residual only the parameters that its cell can show.
fn regress(problem: &Problem<'_>, tried: &[Place], here: &Place, reach: f64) -> Model {
    let n = problem.nr();
    let near: Vec<&Place> = tried
        .iter()
        .filter(|p| distance(&p.at, &here.at) <= reach * 1.01)
        .collect();
    let mut model = Model {
        left: here.left.clone(),
        columns: vec![vec![0.0; here.left.len()]; n],
    };
    for cell in 0..problem.cells.len() {
        let rows = problem.rows_of(cell);
        let shown: Vec<usize> = (0..n).filter(|i| problem.shows(cell, *i)).collect();
        // A column of ones, then one for each parameter.
        let mut columns = vec![vec![1.0; near.len()]];
        columns.extend(shown.iter().map(|i| {
            let each = near.iter().map(|p| p.at[*i] - here.at[*i]);
            each.collect()
        }));
        let mut squares = Matrix::of_columns(&columns);
        for i in 1..columns.len() {
            squares.add(i, i, NOTHING * reach * reach);
        }
        let Some(squares) = squares.decomposed() else {
            continue;
        };
        let inverse = squares.inverse();
        let freedom = near.len().saturating_sub(columns.len()).max(1) as f64;
        for row in rows {
            let left: Vec<f64> = near.iter().map(|p| p.left[row]).collect();
            let right: Vec<f64> = columns.iter().map(|c| dot(c, &left)).collect();
            let found = squares.solve(&right);
            let expected = |k: usize| -> f64 {
                let each = columns.iter().zip(&found);
                each.map(|(c, f)| c[k] * f).sum()
            };
            let missed = (0..near.len()).map(|k| left[k] - expected(k));
            let chance = missed.map(|m| m * m).sum::<f64>() / freedom;
            model.left[row] = found[0];
            for (k, i) in shown.iter().enumerate() {
                model.columns[*i][row] = beyond(found[k + 1], chance * inverse[k + 1][k + 1]);
            }
        }
    }
    model
}

/// What is left of a slope where chance alone has slopes of this variance.
pub(crate) fn beyond(slope: f64, chance: f64) -> f64 {
    let square = slope * slope;
    if square <= chance {
        return 0.0;
    }
    slope * (1.0 - chance / square)
}

/// Where squares are least by the model, no farther than `reach`; none if it does not say.
fn step(from: &Place, model: &Model, reach: f64) -> Option<Vec<f64>> {
    let mut squares = Matrix::of_columns(&model.columns);
    for i in 0..model.columns.len() {
        squares.add(i, i, PULL * PULL);
    }
    let down = model.columns.iter().zip(&from.at);
    let down: Vec<f64> = down
        .map(|(column, x)| -dot(column, &model.left) - PULL * PULL * x)
        .collect();
    let step = squares.solve(&down)?;
    let farthest = step.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
    let part = (reach / farthest).min(1.0);
    let to = from.at.iter().zip(&step);
    Some(to.map(|(x, d)| x + d * part).collect())
}
