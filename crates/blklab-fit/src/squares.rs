// SPDX-License-Identifier: MIT OR Apache-2.0
//! Least squares over logarithms of parameters, by Levenberg and Marquardt's method.

use crate::bench::{Bench, Effort};
use crate::drive::{Drive, number};
use crate::params::Param;
use rmpfit::{MPConfig, MPFitter, MPMaxFev, MPPar, MPResult, MPSide};

/// A step for differences: large enough that quantiles of some thousand commands move by
/// more than chance.
const STEP: f64 = 0.15;

/// The same where little is left to change.
const SMALL_STEP: f64 = 0.05;

/// The step to either side by which is judged how much a parameter matters.
const WIDE_STEP: f64 = 0.25;

/// How far off a parameter alone is tried after a search, and how much less is worth another.
const PROBE: f64 = 0.2;
const CLEARLY_LESS: f64 = 0.97;

/// Most times that it begins again from what was found so.
const PROBES_MAX: usize = 3;

/// How hard parameters are drawn to where they began: enough to stay there if no residual
/// depends on them, and too little to matter if some do.
const PULL: f64 = 0.03;

/// Largest change of a parameter in one search: so many times e.
const FARTHEST: f64 = 4.0;

/// Cells, and parameters that may change.
pub(crate) struct Problem<'a> {
    bench: &'a Bench<'a>,
    cells: &'a [usize],
    effort: Effort,
    /// The parameters, with where they began.
    free: Vec<(&'static Param, f64)>,
    base: Drive,
    limits: Vec<MPPar>,
    config: MPConfig,
    /// The step for differences, to one side or to both.
    step: f64,
    both_sides: bool,
}

/// How residuals change with logarithms of parameters.
pub(crate) struct Slopes {
    /// What is left of the residuals.
    pub(crate) left: Vec<f64>,
    /// The change of each residual, by parameter.
    pub(crate) columns: Vec<Vec<f64>>,
}

/// Variances and covariances of logarithms of parameters, for residuals of variance 1.
pub(crate) struct Covariance {
    n: usize,
    values: Vec<f64>,
}

impl Covariance {
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.n + j]
    }
}

impl<'a> Problem<'a> {
    /// Without the parameters that have no value, or show in none of the cells.
    pub(crate) fn new(
        bench: &'a Bench<'a>,
        cells: &'a [usize],
        effort: Effort,
        base: &Drive,
        params: &[&'static Param],
    ) -> Problem<'a> {
        let begin = |p: &'static Param| {
            let value = number(p.name, base.get(p.name)).filter(|v| *v > 0.0)?;
            let mut shown = cells.iter();
            let shows = shown.any(|c| p.shows_in.shows_in(&bench.cells[*c]));
            shows.then_some((p, value))
        };
        let free: Vec<_> = params.iter().filter_map(|p| begin(p)).collect();
        let limits = free.iter().map(|(p, begin)| MPPar {
            limited_low: true,
            limited_up: true,
            limit_low: (p.range.0 / begin).ln().clamp(-FARTHEST, 0.0),
            limit_up: (p.range.1 / begin).ln().clamp(0.0, FARTHEST),
            side: MPSide::User,
            ..MPPar::new()
        });
        Problem {
            bench,
            cells,
            effort,
            limits: limits.collect(),
            free,
            base: base.clone(),
            config: MPConfig {
                ftol: 1e-3,
                xtol: 1e-3,
                gtol: 1e-6,
                step_factor: 1.0,
                ..MPConfig::new()
            },
            step: STEP,
            both_sides: false,
        }
    }

    /// For the last steps, near the least squares.
    pub(crate) fn with_small_steps(self) -> Problem<'a> {
        Problem {
            step: SMALL_STEP,
            ..self
        }
    }

    pub(crate) fn looked_for(&self) -> impl Iterator<Item = &'static Param> {
        self.free.iter().map(|(p, _)| *p)
    }

    /// The value of a parameter at so many times e from where it began.
    fn value(&self, i: usize, x: f64) -> (String, f64) {
        let (param, begin) = self.free[i];
        let (low, high) = param.range;
        param.unit.written((begin * x.exp()).clamp(low, high))
    }

    fn drive_at(&self, at: &[f64]) -> Drive {
        let mut drive = self.base.clone();
        for (i, (param, _)) in self.free.iter().enumerate() {
            drive.set(param.name, self.value(i, at[i]).0);
        }
        drive
    }

    /// A drive in which one parameter is different by about `step`, and by how much.
    fn stepped(&self, at: &[f64], i: usize, step: f64) -> (Drive, f64) {
        let (param, begin) = self.free[i];
        let here = self.value(i, at[i]).1;
        let change = here * step.exp_m1();
        let change = change.signum() * f64::max(change.abs(), param.unit.grain());
        let value = |v: f64| self.value(i, (v.max(param.range.0) / begin).ln());
        let mut there = value(here + change);
        if (there.1 / here).ln().abs() < 1e-3 {
            // At the end of the range.
            there = value((here - change).max(here * 0.5));
        }
        let mut drive = self.drive_at(at);
        drive.set(param.name, there.0);
        (drive, (there.1 / here).ln())
    }

    fn residuals(&self, drives: &[Drive]) -> Vec<Vec<f64>> {
        self.bench.residuals(self.cells, drives, self.effort)
    }

    fn slopes(&self, at: &[f64]) -> Slopes {
        let n = self.free.len();
        let mut drives = vec![self.drive_at(at)];
        let mut steps = Vec::new();
        for side in [1.0, -1.0]
            .into_iter()
            .take(1 + usize::from(self.both_sides))
        {
            for i in 0..n {
                let (drive, step) = self.stepped(at, i, side * self.step);
                drives.push(drive);
                steps.push(step);
            }
        }
        let mut found = self.residuals(&drives);
        let left = found.remove(0);
        let slope = |i: usize, side: usize| -> Vec<f64> {
            let step = steps[side * n + i];
            let each = found[side * n + i].iter().zip(&left);
            let slope =
                |(to, from): (&f64, &f64)| if step == 0.0 { 0.0 } else { (to - from) / step };
            each.map(slope).collect()
        };
        let norm = |column: &[f64]| column.iter().map(|s| s * s).sum::<f64>();
        // What is told is told to both sides.
        let column = |i: usize| {
            let up = slope(i, 0);
            if !self.both_sides {
                return up;
            }
            let down = slope(i, 1);
            if norm(&down) < norm(&up) { down } else { up }
        };
        let columns = (0..n).map(column).collect();
        Slopes { left, columns }
    }

    /// The sum of squares of a drive.
    pub(crate) fn cost(&self, drive: &Drive) -> f64 {
        let found = self.residuals(std::slice::from_ref(drive));
        found[0].iter().map(|r| r * r).sum()
    }

    /// What is usually left of a residual of a drive.
    pub(crate) fn usually_left(&self, drive: &Drive) -> f64 {
        let found = self.residuals(std::slice::from_ref(drive));
        let sum: f64 = found[0].iter().map(|r| r * r).sum();
        (sum / found[0].len().max(1) as f64).sqrt()
    }

    /// Looks for the least squares in so many steps at most. Says what they are.
    pub(crate) fn solve(self, steps: usize) -> (Drive, f64) {
        self.search(steps, 0)
    }

    /// The same, and again from where one parameter alone makes them clearly less.
    pub(crate) fn solve_probing(self, steps: usize) -> (Drive, f64) {
        self.search(steps, PROBES_MAX)
    }

    fn search(mut self, steps: usize, probes: usize) -> (Drive, f64) {
        let before = self.base.clone();
        let cost_before = self.cost(&before);
        if self.free.is_empty() {
            return (before, cost_before);
        }
        self.config.max_iter = steps;
        self.config.max_fev = MPMaxFev::Limited(4 * steps + 4);
        let mut at = vec![0.0; self.free.len()];
        let (mut best, mut least) = (before, cost_before);
        for round in 0..=probes {
            if self.mpfit(&mut at).is_err() {
                break;
            }
            let found = self.drive_at(&at);
            let cost = self.cost(&found);
            if cost < least {
                (best, least) = (found, cost);
            }
            if round == probes {
                break;
            }
            let Some((probe, cost)) = self.probe(&at, least) else {
                break;
            };
            at = probe;
            (best, least) = (self.drive_at(&at), cost);
        }
        (best, least)
    }

    /// The place with clearly fewer squares among those where one parameter alone is larger or
    /// smaller: slopes do not show what lies behind a step, as where the host limits the rate.
    fn probe(&self, at: &[f64], least: f64) -> Option<(Vec<f64>, f64)> {
        let places: Vec<Vec<f64>> = (0..at.len())
            .flat_map(|i| [(i, PROBE), (i, -PROBE)])
            .map(|(i, step)| {
                let mut place = at.to_vec();
                let limits = &self.limits[i];
                place[i] = (at[i] + step).clamp(limits.limit_low, limits.limit_up);
                place
            })
            .collect();
        let drives: Vec<Drive> = places.iter().map(|p| self.drive_at(p)).collect();
        let costs = self.residuals(&drives).into_iter();
        let costs = costs.map(|r| r.iter().map(|r| r * r).sum::<f64>());
        let (place, cost) = places
            .into_iter()
            .zip(costs)
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        (cost < least * CLEARLY_LESS).then_some((place, cost))
    }

    /// How residuals change over wide steps to both sides, where chance counts for little,
    /// and the covariances that follow; none if there is nothing to look for.
    pub(crate) fn covariance(&mut self) -> Option<(Slopes, Covariance)> {
        if self.free.is_empty() {
            return None;
        }
        (self.step, self.both_sides) = (WIDE_STEP, true);
        self.config.max_iter = 0;
        let mut at = vec![0.0; self.free.len()];
        let slopes = self.slopes(&at);
        let status = self.mpfit(&mut at).ok()?;
        let covariance = Covariance {
            n: self.free.len(),
            values: status.covar,
        };
        Some((slopes, covariance))
    }
}

impl MPFitter for Problem<'_> {
    fn eval(&mut self, at: &[f64], residuals: &mut [f64]) -> MPResult<()> {
        let found = self.residuals(&[self.drive_at(at)]);
        let all = found[0].iter().copied().chain(at.iter().map(|x| PULL * x));
        residuals
            .iter_mut()
            .zip(all)
            .for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        let found = self.residuals(std::slice::from_ref(&self.base));
        found[0].len() + self.free.len()
    }

    fn config(&self) -> &MPConfig {
        &self.config
    }

    fn parameters(&self) -> &[MPPar] {
        &self.limits
    }

    fn jacobian(
        &mut self,
        at: &[f64],
        residuals: &mut [f64],
        columns: &mut [Option<Vec<f64>>],
    ) -> MPResult<()> {
        let slopes = self.slopes(at);
        let rows = slopes.left.len();
        for (i, column) in columns.iter_mut().enumerate() {
            let Some(column) = column else { continue };
            column[..rows].copy_from_slice(&slopes.columns[i]);
            column[rows..].fill(0.0);
            column[rows + i] = PULL;
        }
        self.eval(at, residuals)
    }
}
