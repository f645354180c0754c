// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well the cells tell each parameter.
//!
//! Around the fit residuals are taken to be linear in the logarithms of the parameters. What
//! the fit leaves over says how large an error is usual; a direction in which residuals
//! hardly change leaves the parameters in it open.

use crate::squares::Problem;

/// A parameter is told if its error (one standard deviation) is at most this.
pub(crate) const TOLD: f64 = 0.05;

/// Residuals are never better known than this: buckets of fio's histograms, and chance.
const NOISE: f64 = 0.01;

/// Parameters that move together in this measure only show together.
const TOGETHER: f64 = 0.9;

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

/// Of each parameter that a problem looks for.
pub(crate) fn of_parameters(problem: &mut Problem<'_>) -> Vec<Certainty> {
    let Some((slopes, covariance)) = problem.covariance() else {
        return Vec::new();
    };
    let n = slopes.columns.len();
    let square: f64 = slopes.left.iter().map(|r| r * r).sum();
    let freedom = slopes.left.len().saturating_sub(n).max(1) as f64;
    let variance = (square / freedom).max(NOISE * NOISE);
    let certainty = |i: usize| {
        let norm = slopes.columns[i].iter().map(|s| s * s).sum::<f64>().sqrt();
        let own = covariance.at(i, i);
        // Twice or half of it changes all residuals by less than they are known.
        if norm * std::f64::consts::LN_2 < NOISE * 3.0 || own <= 0.0 {
            return Certainty {
                error: None,
                with: Vec::new(),
            };
        }
        let moves_with = |j: &usize| {
            let other = covariance.at(*j, *j);
            *j != i && other > 0.0 && covariance.at(i, *j).abs() > TOGETHER * (own * other).sqrt()
        };
        Certainty {
            error: Some((own * variance).sqrt()),
            with: (0..n).filter(moves_with).collect(),
        }
    };
    (0..n).map(certainty).collect()
}
