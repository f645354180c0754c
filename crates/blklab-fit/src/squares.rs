// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sum of squares over some cells as a function of logarithms of parameters.

use crate::bench::Bench;
use crate::drive::{Drive, number};
use crate::matrix::dot;
use crate::params::Param;
use crate::plan::Effort;
use std::ops::Range;

/// How hard parameters are drawn to where they began: enough to stay there if no residual
/// depends on them, and too little to matter if some do.
pub(crate) const PULL: f64 = 0.03;

/// Largest change of a parameter in one search: so many times e.
const FARTHEST: f64 = 4.0;

/// Cells, and parameters that may change.
pub(crate) struct Problem<'a> {
    bench: &'a Bench<'a>,
    pub(crate) cells: &'a [usize],
    effort: Effort,
    /// The parameters, with where they began.
    free: Vec<(&'static Param, f64)>,
    base: Drive,
    /// How far each may go to either side.
    limits: Vec<(f64, f64)>,
    /// The residuals of each cell.
    rows: Vec<Range<usize>>,
    /// Whether a cell shows a parameter, by parameter and place of the cell.
    shows: Vec<Vec<bool>>,
}

/// A drive, and what is left of the residuals there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Logarithms of its parameters over where they began.
    pub(crate) at: Vec<f64>,
    pub(crate) drive: Drive,
    pub(crate) left: Vec<f64>,
}

impl Place {
    /// The sum of squares, with what draws parameters to where they began.
    pub(crate) fn cost(&self) -> f64 {
        self.squares() + PULL * PULL * dot(&self.at, &self.at)
    }

    pub(crate) fn squares(&self) -> f64 {
        dot(&self.left, &self.left)
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
        let shown = |p: &Param| -> Vec<bool> {
            let each = cells.iter().map(|c| p.shows_in.shows_in(&bench.cells[*c]));
            each.collect()
        };
        let begin = |p: &'static Param| {
            let value = number(p.name, base.get(p.name)).filter(|v| *v > 0.0)?;
            shown(p).contains(&true).then_some((p, value))
        };
        let free: Vec<_> = params.iter().filter_map(|p| begin(p)).collect();
        let limits = free.iter().map(|(p, begin)| {
            let low = (p.range.0 / begin).ln().clamp(-FARTHEST, 0.0);
            let high = (p.range.1 / begin).ln().clamp(0.0, FARTHEST);
            (low, high)
        });
        Problem {
            bench,
            cells,
            effort,
            limits: limits.collect(),
            rows: bench.rows(cells, effort),
            shows: free.iter().map(|(p, _)| shown(p)).collect(),
            free,
            base: base.clone(),
        }
    }

    pub(crate) fn looked_for(&self) -> impl Iterator<Item = &'static Param> {
        self.free.iter().map(|(p, _)| *p)
    }

    /// How far each may go to either side.
    pub(crate) fn limits(&self) -> &[(f64, f64)] {
        &self.limits
    }

    /// How many residuals there are.
    pub(crate) fn nr_residuals(&self) -> usize {
        self.rows.last().map_or(0, |r| r.end)
    }

    /// How many parameters there are to look for.
    pub(crate) fn nr(&self) -> usize {
        self.free.len()
    }

    /// The residuals of a cell.
    pub(crate) fn rows_of(&self, cell: usize) -> Range<usize> {
        self.rows[cell].clone()
    }

    /// Whether a cell can show a parameter.
    pub(crate) fn shows(&self, cell: usize, param: usize) -> bool {
        self.shows[param][cell]
    }

    /// The value of a parameter at so many times e from where it began.
    fn value(&self, i: usize, x: f64) -> (String, f64) {
        let (param, begin) = self.free[i];
        let (low, high) = param.range;
        param.unit.written((begin * x.exp()).clamp(low, high))
    }

    /// The drive that is nearest to there, since values are written with so many digits, and
    /// where that is.
    fn drive_at(&self, at: &[f64]) -> (Drive, Vec<f64>) {
        let mut drive = self.base.clone();
        let mut there = Vec::with_capacity(at.len());
        for (i, (param, begin)) in self.free.iter().enumerate() {
            let (low, high) = self.limits[i];
            let (text, number) = self.value(i, at[i].clamp(low, high));
            there.push((number / begin).ln());
            drive.set(param.name, text);
        }
        (drive, there)
    }

    /// Where it began.
    pub(crate) fn begin(&self) -> Place {
        let left = self.residuals(&[(0, &self.base)]).remove(0);
        Place {
            at: vec![0.0; self.free.len()],
            drive: self.base.clone(),
            left,
        }
    }

    /// What is left at a place, with this draw of what is left to chance; the place is where
    /// parameters are as they are written.
    pub(crate) fn place(&self, at: &[f64], draw: usize) -> Place {
        let (drive, at) = self.drive_at(at);
        let left = self.residuals(&[(draw as u64, &drive)]).remove(0);
        Place { at, drive, left }
    }

    /// A place in which one parameter is different by about `step`; what is left is not yet
    /// known.
    fn stepped(&self, from: &Place, i: usize, step: f64) -> Place {
        let (param, begin) = self.free[i];
        let here = begin * from.at[i].exp();
        let change = here * step.exp_m1();
        let change = change.signum() * f64::max(change.abs(), param.unit.grain());
        let value = |v: f64| self.value(i, (v.max(param.range.0) / begin).ln());
        let mut there = value(here + change);
        if (there.1 / here).ln().abs() < 1e-3 {
            // At the end of the range.
            there = value((here - change).max(here * 0.5));
        }
        let mut to = from.clone();
        to.drive.set(param.name, there.0);
        to.at[i] = (there.1 / begin).ln();
        to
    }

    fn residuals(&self, runs: &[(u64, &Drive)]) -> Vec<Vec<f64>> {
        self.bench.residuals(self.cells, runs, self.effort)
    }

    /// The residuals of a drive in runs that differ by chance alone.
    pub(crate) fn by_chance(&self, drive: &Drive) -> Vec<Vec<f64>> {
        self.bench.by_chance(self.cells, drive, self.effort)
    }

    /// Steps of these widths of each parameter, with the draw of each.
    pub(crate) fn stepped_places(
        &self,
        from: &Place,
        widths: &[f64],
        draw: impl Fn(usize) -> u64,
    ) -> Vec<Place> {
        let n = self.free.len();
        let steps = widths
            .iter()
            .flat_map(|step| (0..n).map(move |i| (i, step)));
        let mut places: Vec<Place> = steps
            .map(|(i, step)| self.stepped(from, i, *step))
            .collect();
        let runs = places.iter().enumerate();
        let runs: Vec<(u64, &Drive)> = runs.map(|(i, p)| (draw(i), &p.drive)).collect();
        for (i, left) in self.residuals(&runs).into_iter().enumerate() {
            places[i].left = left;
        }
        places
    }

    /// Slopes by steps up of this width, by parameter, all with one draw.
    pub(crate) fn slopes_up(&self, from: &Place, width: f64) -> Vec<Vec<f64>> {
        let places = self.stepped_places(from, &[width], |_| 0);
        let slope = |(i, to): (usize, &Place)| -> Vec<f64> {
            let step = to.at[i] - from.at[i];
            let each = to.left.iter().zip(&from.left);
            let slope =
                |(to, from): (&f64, &f64)| if step == 0.0 { 0.0 } else { (to - from) / step };
            each.map(slope).collect()
        };
        places.iter().enumerate().map(slope).collect()
    }

    /// The same to both sides: of each parameter those that change residuals less, since what is
    /// told is told to both sides.
    pub(crate) fn lesser_slopes(&self, from: &Place, width: f64) -> Vec<Vec<f64>> {
        let up = self.slopes_up(from, width);
        let down = self.slopes_up(from, -width);
        let lesser = |(a, b): (Vec<f64>, Vec<f64>)| if dot(&a, &a) < dot(&b, &b) { a } else { b };
        up.into_iter().zip(down).map(lesser).collect()
    }

    /// The sum of squares of a drive.
    pub(crate) fn cost(&self, drive: &Drive) -> f64 {
        let found = self.residuals(&[(0, drive)]);
        dot(&found[0], &found[0])
    }

    /// The same on average over runs that differ by chance alone.
    pub(crate) fn usual_cost(&self, drive: &Drive) -> f64 {
        let found = self.by_chance(drive);
        let sum: f64 = found.iter().map(|r| dot(r, r)).sum();
        sum / found.len() as f64
    }

    /// What is usually left of a residual of a drive.
    pub(crate) fn usually_left(&self, drive: &Drive) -> f64 {
        (self.cost(drive) / self.nr_residuals().max(1) as f64).sqrt()
    }
}
