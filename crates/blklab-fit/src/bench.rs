// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells run against a drive, and how far what comes of them is from what was measured.

use crate::cell::Cell;
use crate::counts::Counts;
use crate::drive::Drive;
use crate::load::{self, Times};
use crate::params;
use crate::plan::{self, Effort};
use blklab_types::Op;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Nothing counts as farther off than by this factor.
const FAR: f64 = 20.0;

/// Residuals of a p99.9 count this much: few commands are behind it, here and in the
/// measurement. So do the tails of writes, which depend on what was written before.
const TAIL_WEIGHT: f64 = 0.5;

/// Runs of a drive that differ by chance alone, which show how much that is.
pub(crate) const CHANCES: u64 = 6;

/// A run of a cell: the cell, how exactly, the draw of what is left to chance, the drive as far
/// as the cell shows it.
type Run = (usize, Effort, u64, String);

/// What there is to run and to compare with.
pub(crate) struct Bench<'a> {
    pub(crate) cells: &'a [Cell],
    threads: usize,
    known: Mutex<BTreeMap<Run, Vec<f64>>>,
    counts: Mutex<Counts>,
    /// Runs of cells so far.
    pub(crate) runs: AtomicUsize,
}

/// One figure: measured, and what the drive does.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The direction.
    pub op: Op,
    /// Which stream of the cell.
    pub stream: usize,
    /// The part of a quantile; none: commands per second.
    pub part: Option<f64>,
    /// Commands per second, or microseconds.
    pub measured: f64,
    /// What the drive does; not a number if too few commands end.
    pub ours: f64,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(cells: &'a [Cell], threads: usize) -> Bench<'a> {
        Bench {
            cells,
            threads,
            known: Mutex::default(),
            counts: Mutex::default(),
            runs: AtomicUsize::new(0),
        }
    }

    /// The residuals of these cells for each of these drives, as they count: the logarithm of
    /// what comes of a cell over what was measured, by its weight. Beside a drive: what is left
    /// to chance is drawn anew for each number, in cells that write.
    pub(crate) fn residuals(
        &self,
        cells: &[usize],
        drives: &[(u64, &Drive)],
        effort: Effort,
    ) -> Vec<Vec<f64>> {
        let draw = |c: usize, draw: u64| {
            if self.cells[c].has(Op::Write) {
                draw % CHANCES
            } else {
                0
            }
        };
        let all = self.of_runs(cells, drives, effort, &draw);
        self.counted(cells, effort, all)
    }

    /// The residuals of these cells for one drive in several runs that differ by chance alone.
    pub(crate) fn by_chance(
        &self,
        cells: &[usize],
        drive: &Drive,
        effort: Effort,
    ) -> Vec<Vec<f64>> {
        let all = self.of_chances(cells, drive, effort);
        self.counted(cells, effort, all)
    }

    /// The residuals of each cell.
    pub(crate) fn rows(&self, cells: &[usize], effort: Effort) -> Vec<Range<usize>> {
        let mut end = 0;
        let mut rows = |c: &usize| {
            let begin = end;
            end += plan::nr_residuals(&self.cells[*c], effort);
            begin..end
        };
        cells.iter().map(&mut rows).collect()
    }

    /// Sees how much chance moves residuals with this drive.
    pub(crate) fn see_chance(&self, cells: &[usize], drive: &Drive, effort: Effort) {
        for &c in cells {
            let found = self.of_chances(&[c], drive, effort);
            self.counts().see_chance(c, effort, &found);
        }
    }

    /// Sees what this drive usually leaves in each kind of cells.
    pub(crate) fn see_usual(&self, cells: &[usize], drive: &Drive, effort: Effort) {
        let all = self.of_runs(cells, &[(0, drive)], effort, &|_, draw| draw);
        let rows = self.rows(cells, effort).into_iter();
        let left = rows.map(|rows| &all[0][rows]);
        let cells = cells.iter().map(|c| &self.cells[*c]);
        self.counts().see_usual(cells.zip(left));
    }

    /// Residuals of these cells as they count.
    fn counted(&self, cells: &[usize], effort: Effort, mut all: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let rows = self.rows(cells, effort);
        let counts = self.counts();
        for left in &mut all {
            for (&c, rows) in cells.iter().zip(&rows) {
                let counted = counts.count(c, &self.cells[c], effort, &left[rows.clone()]);
                left[rows.clone()].copy_from_slice(&counted);
            }
        }
        all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no thread panicked")
    }

    /// The same for one drive in several runs that differ by chance alone, unweighed.
    fn of_chances(&self, cells: &[usize], drive: &Drive, effort: Effort) -> Vec<Vec<f64>> {
        let runs: Vec<(u64, &Drive)> = (0..CHANCES).map(|draw| (draw, drive)).collect();
        self.of_runs(cells, &runs, effort, &|_, draw| draw)
    }

    /// Residuals before they are weighed: the logarithms.
    fn of_runs(
        &self,
        cells: &[usize],
        runs: &[(u64, &Drive)],
        effort: Effort,
        draw: &dyn Fn(usize, u64) -> u64,
    ) -> Vec<Vec<f64>> {
        let key = |c: usize, (no, d): (u64, &Drive)| (c, effort, draw(c, no), self.shown_in(c, d));
        let mut missing: BTreeMap<Run, (usize, &Drive)> = BTreeMap::new();
        {
            let known = self.known.lock().expect("no thread panicked");
            for run in runs {
                for &c in cells {
                    let key = key(c, *run);
                    if !known.contains_key(&key) {
                        missing.insert(key, (c, run.1));
                    }
                }
            }
        }
        let jobs: Vec<_> = missing.into_iter().collect();
        self.runs.fetch_add(jobs.len(), Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((key, (c, drive))) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = self.run(*c, drive, effort, key.2);
                let mut known = self.known.lock().expect("no thread panicked");
                known.insert(key.clone(), found);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(jobs.len()) {
                scope.spawn(work);
            }
            work();
        });
        let known = self.known.lock().expect("no thread panicked");
        let all = runs.iter().map(|run| {
            let each = cells
                .iter()
                .flat_map(|&c| known[&key(c, *run)].iter().copied());
            each.collect()
        });
        all.collect()
    }

    /// The drive as far as a cell can show it.
    fn shown_in(&self, c: usize, drive: &Drive) -> String {
        let shows = |name: &str| {
            let param = params::ALL.iter().find(|p| p.name == name);
            param.is_none_or(|p| p.shows_in.shows_in(&self.cells[c]))
        };
        let mut shown: Vec<String> = drive
            .params
            .iter()
            .filter(|(k, _)| shows(k))
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        shown.sort_unstable();
        format!("{},{}", drive.name, shown.join(","))
    }

    fn run(&self, c: usize, drive: &Drive, effort: Effort, draw: u64) -> Vec<f64> {
        let cell = &self.cells[c];
        let length = plan::length(cell, drive, effort);
        let Ok(device) = drive.build(Some(cell)) else {
            // Values that together are no drive are as far off as anything.
            return vec![FAR.ln(); plan::nr_residuals(cell, effort)];
        };
        let mut times = load::run(device, drive.queue_depth(), &cell.streams, length, draw);
        let mut all = Vec::with_capacity(plan::nr_residuals(cell, effort));
        for seen in &cell.seen {
            let t = &mut times[seen.stream][usize::from(seen.op == Op::Write)];
            all.push(off(t.per_s, seen.per_s));
            for (part, us) in plan::quantiles(seen, length.seconds) {
                let is_tail = part > if seen.op == Op::Write { 0.9 } else { 0.99 };
                let weight = if is_tail { TAIL_WEIGHT } else { 1.0 };
                all.push(weight * quantile_off(t, part, us));
            }
        }
        all
    }

    /// What a drive does in a cell, beside what was measured.
    pub(crate) fn figures(&self, c: usize, drive: &Drive) -> Vec<Figure> {
        let cell = &self.cells[c];
        let length = plan::length(cell, drive, Effort::Whole);
        let Ok(device) = drive.build(Some(cell)) else {
            return Vec::new();
        };
        let mut times = load::run(device, drive.queue_depth(), &cell.streams, length, 0);
        let mut all = Vec::new();
        for seen in &cell.seen {
            let t = &mut times[seen.stream][usize::from(seen.op == Op::Write)];
            let figure = |part, measured, ours| Figure {
                op: seen.op,
                stream: seen.stream,
                part,
                measured,
                ours,
            };
            all.push(figure(None, seen.per_s, t.per_s));
            for (part, us) in plan::quantiles(seen, length.seconds) {
                let ours = if t.len() == 0 { f64::NAN } else { t.us(part) };
                all.push(figure(Some(part), us, ours));
            }
        }
        all
    }
}

/// A logarithm.
fn off(ours: f64, measured: f64) -> f64 {
    let ln = (ours.max(1e-9) / measured).ln();
    ln.clamp(-FAR.ln(), FAR.ln())
}

/// Where the times of a drive jump, as between kinds of pages, a quantile beside the jump is
/// on one side of it by chance: there anything within the jump is right.
fn quantile_off(t: &mut Times, part: f64, measured: f64) -> f64 {
    if t.len() == 0 {
        return FAR.ln();
    }
    let nr = t.len() as f64;
    let near = 2.0 * (part * (1.0 - part) / nr).sqrt();
    let (low, high) = (t.us(part - near), t.us(part + near));
    if high > low * 1.15 && part < 0.98 {
        return off(measured.clamp(low, high), measured);
    }
    off(t.us(part), measured)
}
