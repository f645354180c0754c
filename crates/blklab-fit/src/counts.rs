// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much residuals count. What is left of one has two reasons: no drive of the model is the
//! measured one, and chance.

use crate::cell::Cell;
use crate::plan::Effort;
use blklab_analysis::spread::middle;
use blklab_types::Op;
use std::collections::BTreeMap;

/// What a drive usually leaves of a residual before that is known; and the bounds of it.
const LEFT_AT_FIRST: f64 = 0.1;
const LEFT_LEAST: f64 = 0.01;
const LEFT_MOST: f64 = 0.5;

/// Residuals are in proportion to what a figure is off up to so many times what is usual, and
/// up to this at most.
const USUAL: f64 = 3.0;
const SOFT_MOST: f64 = 0.1;

/// Kinds of cells that a drive meets more or less well as a whole: with reads, with large ones,
/// with writes.
type Kind = [bool; 3];

fn kind(cell: &Cell) -> Kind {
    [
        cell.has(Op::Read),
        cell.has_large_reads(),
        cell.has(Op::Write),
    ]
}

/// What is known of residuals.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The variance of each residual of a cell by chance; none is known if there is nothing.
    chance: BTreeMap<(usize, Effort), Vec<f64>>,
    /// What is usually left in a kind of cells.
    usual: BTreeMap<Kind, f64>,
}

impl Counts {
    /// The residuals of a cell in runs that differ by chance alone.
    pub(crate) fn see_chance(&mut self, c: usize, effort: Effort, runs: &[Vec<f64>]) {
        let rows = 0..runs[0].len();
        let all = rows.map(|row| variance(&of_row(runs, row))).collect();
        self.chance.insert((c, effort), all);
    }

    /// Cells, each with what a drive leaves of its residuals.
    pub(crate) fn see_usual<'a>(&mut self, cells: impl Iterator<Item = (&'a Cell, &'a [f64])>) {
        let mut of_kinds: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
        for (cell, left) in cells {
            let all = of_kinds.entry(kind(cell)).or_default();
            all.extend(left.iter().map(|r| r.abs()));
        }
        let usual = |(kind, left)| {
            let median = middle(left).expect("a cell has residuals");
            (kind, median.clamp(LEFT_LEAST, LEFT_MOST))
        };
        self.usual = of_kinds.into_iter().map(usual).collect();
    }

    /// What is beyond the usual counts less than in proportion; what chance moves much, and what
    /// is off in its whole kind, counts less.
    pub(crate) fn count(&self, c: usize, cell: &Cell, effort: Effort, off: &[f64]) -> Vec<f64> {
        let each = self.usual.values().copied();
        let least = each.reduce(f64::min).unwrap_or(LEFT_AT_FIRST);
        let usual = self.usual.get(&kind(cell)).copied();
        let usual = usual.unwrap_or(LEFT_AT_FIRST);
        let soft = (USUAL * usual).min(SOFT_MOST);
        let chance = self.chance.get(&(c, effort));
        let counted = |(row, r): (usize, &f64)| {
            let chance = chance.map_or(0.0, |chance| chance[row]);
            let weight = least / (usual * usual + chance).sqrt();
            (r / soft).asinh() * soft * weight
        };
        off.iter().enumerate().map(counted).collect()
    }
}

/// The residuals of one row, of several runs.
pub(crate) fn of_row(runs: &[Vec<f64>], row: usize) -> Vec<f64> {
    runs.iter().map(|r| r[row]).collect()
}

/// The variance of some numbers.
pub(crate) fn variance(of: &[f64]) -> f64 {
    let nr = of.len().max(1) as f64;
    let mean = of.iter().sum::<f64>() / nr;
    let square: f64 = of.iter().map(|x| (x - mean) * (x - mean)).sum();
    square / (nr - 1.0).max(1.0)
}
