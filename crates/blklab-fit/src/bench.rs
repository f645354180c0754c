// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells run against a drive, and how far what comes of them is from what was measured.

use crate::cell::{Cell, Seen};
use crate::drive::{Drive, number};
use crate::load::{self, Length, Times};
use crate::params;
use blklab_types::Op;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How exactly cells are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// A quarter of the commands: to find where to look.
    Coarse,
    /// What tells one drive from another.
    Fine,
    /// As much as the rarest figures need.
    Whole,
}

/// Commands that it takes for a quantile: so many beyond it.
const BEYOND: f64 = 8.0;

/// Pages of 4 KiB of a read up to which all commands of a load are run.
const PAGES_SEEN: f64 = 4.0;

/// Most slots of a write buffer that are filled before a load.
const SLOTS_MAX: f64 = 30_000.0;

/// Nothing counts as farther off than by this factor.
const FAR: f64 = 20.0;

/// What a drive usually leaves of a residual before that is known; and the bounds of it.
const LEFT_AT_FIRST: f64 = 0.1;
const LEFT_LEAST: f64 = 0.01;
const LEFT_MOST: f64 = 0.5;

/// Residuals are in proportion to what a figure is off up to so many times what is usual, and
/// up to this at most.
const USUAL: f64 = 3.0;
const SOFT_MOST: f64 = 0.1;

/// Residuals of a p99.9 count this much: few commands are behind it, here and in the
/// measurement. So do the tails of writes, which depend on what was written before.
const TAIL_WEIGHT: f64 = 0.5;

/// Runs of a drive that differ by chance alone, which show how much that is.
pub(crate) const CHANCES: u64 = 6;

/// A run of a cell: the cell, how exactly, the draw of what is left to chance, the drive as far
/// as the cell shows it.
type Run = (usize, Effort, u64, String);

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

/// How residuals count. What is left of one has two reasons: no drive of the model is the
/// measured one, and chance.
#[derive(Debug, Default)]
struct Counts {
    /// The variance of each residual of a cell by chance; none is known if there is nothing.
    chance: BTreeMap<(usize, Effort), Vec<f64>>,
    /// What is usually left in a kind of cells.
    usual: BTreeMap<Kind, f64>,
}

impl Counts {
    /// What is usually left in the kind that is met best.
    fn least(&self) -> f64 {
        let least = self.usual.values().copied().fold(f64::MAX, f64::min);
        if self.usual.is_empty() {
            LEFT_AT_FIRST
        } else {
            least
        }
    }

    /// What is beyond the usual counts less than in proportion; what chance moves much, and what
    /// is off in its whole kind, counts less.
    fn count(&self, c: usize, kind: Kind, effort: Effort, off: &[f64]) -> Vec<f64> {
        let least = self.least();
        let usual = self.usual.get(&kind).copied().unwrap_or(LEFT_AT_FIRST);
        let soft = (USUAL * usual).min(SOFT_MOST);
        let soft = |r: f64| (r / soft).asinh() * soft;
        let weight = |chance: f64| least / (usual * usual + chance).sqrt();
        match self.chance.get(&(c, effort)) {
            Some(chance) => {
                let each = off.iter().zip(chance);
                each.map(|(r, chance)| soft(*r) * weight(*chance)).collect()
            }
            None => off.iter().map(|r| soft(*r) * weight(0.0)).collect(),
        }
    }
}

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
        let runs: Vec<(u64, &Drive)> = (0..CHANCES).map(|draw| (draw, drive)).collect();
        let all = self.of_runs(cells, &runs, effort, &|_, draw| draw);
        self.counted(cells, effort, all)
    }

    /// The residuals of each cell.
    pub(crate) fn rows(&self, cells: &[usize], effort: Effort) -> Vec<Range<usize>> {
        let mut end = 0;
        let mut rows = |c: &usize| {
            let begin = end;
            end += nr_residuals(&self.cells[*c], effort);
            begin..end
        };
        cells.iter().map(&mut rows).collect()
    }

    /// Sees how much chance moves residuals with this drive.
    pub(crate) fn see_chance(&self, cells: &[usize], drive: &Drive, effort: Effort) {
        let runs: Vec<(u64, &Drive)> = (0..CHANCES).map(|draw| (draw, drive)).collect();
        for &c in cells {
            let found = self.of_runs(&[c], &runs, effort, &|_, draw| draw);
            let of_row = |row: usize| {
                let each: Vec<f64> = found.iter().map(|r| r[row]).collect();
                variance(&each)
            };
            let all = (0..found[0].len()).map(of_row).collect();
            self.counts().chance.insert((c, effort), all);
        }
    }

    /// Sees what this drive usually leaves in each kind of cells.
    pub(crate) fn see_usual(&self, cells: &[usize], drive: &Drive, effort: Effort) {
        let all = self.of_runs(cells, &[(0, drive)], effort, &|_, draw| draw);
        let mut of_kinds: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
        for (&c, rows) in cells.iter().zip(self.rows(cells, effort)) {
            let left = of_kinds.entry(kind(&self.cells[c])).or_default();
            left.extend(all[0][rows].iter().map(|r| r.abs()));
        }
        let median = |mut left: Vec<f64>| {
            left.sort_by(f64::total_cmp);
            left[left.len() / 2].clamp(LEFT_LEAST, LEFT_MOST)
        };
        let usual = of_kinds
            .into_iter()
            .map(|(kind, left)| (kind, median(left)));
        self.counts().usual = usual.collect();
    }

    /// Residuals of these cells as they count.
    fn counted(&self, cells: &[usize], effort: Effort, mut all: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let rows = self.rows(cells, effort);
        let counts = self.counts();
        for left in &mut all {
            for (&c, rows) in cells.iter().zip(&rows) {
                let counted = counts.count(c, kind(&self.cells[c]), effort, &left[rows.clone()]);
                left[rows.clone()].copy_from_slice(&counted);
            }
        }
        all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no thread panicked")
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
        let plan = Plan::new(cell, drive, effort);
        let Ok(device) = drive.build(Some(cell)) else {
            // Values that together are no drive are as far off as anything.
            return vec![FAR.ln(); nr_residuals(cell, effort)];
        };
        let mut times = load::run(
            device,
            drive.queue_depth(),
            &cell.streams,
            plan.length,
            draw,
        );
        let mut all = Vec::with_capacity(nr_residuals(cell, effort));
        for seen in &cell.seen {
            let t = &mut times[seen.stream][usize::from(seen.op == Op::Write)];
            all.push(off(t.per_s, seen.per_s));
            for (part, us) in plan.quantiles(seen) {
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
        let plan = Plan::new(cell, drive, Effort::Whole);
        let Ok(device) = drive.build(Some(cell)) else {
            return Vec::new();
        };
        let mut times = load::run(device, drive.queue_depth(), &cell.streams, plan.length, 0);
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
            for (part, us) in plan.quantiles(seen) {
                let ours = if t.len() == 0 { f64::NAN } else { t.us(part) };
                all.push(figure(Some(part), us, ours));
            }
        }
        all
    }
}

/// How much of a cell is run.
struct Plan {
    length: Length,
}

/// How many residuals a cell has.
fn nr_residuals(cell: &Cell, effort: Effort) -> usize {
    let seconds = seconds(cell, effort);
    let shown = |s: &Seen| 1 + quantiles(s, seconds).count();
    cell.seen.iter().map(shown).sum()
}

/// The variance of some numbers.
pub(crate) fn variance(of: &[f64]) -> f64 {
    let nr = of.len().max(1) as f64;
    let mean = of.iter().sum::<f64>() / nr;
    let square: f64 = of.iter().map(|x| (x - mean) * (x - mean)).sum();
    square / (nr - 1.0).max(1.0)
}

/// Writes of 4 KiB per second that were measured.
fn writes_per_s(cell: &Cell) -> f64 {
    let slots = |s: &Seen| f64::from(cell.streams[s.stream].bytes[1]) / 4096.0;
    let writes = cell.seen.iter().filter(|s| s.op == Op::Write);
    writes.map(|s| s.per_s * slots(s)).sum()
}

/// How long a cell is run.
fn seconds(cell: &Cell, effort: Effort) -> f64 {
    let per_s = cell.per_s().max(1.0);
    let rarest = cell.seen.iter().map(|s| s.per_s).fold(f64::MAX, f64::min);
    let usual = if cell.has(Op::Write) {
        // Garbage is collected in rounds: several must be seen.
        28_000.0
    } else if effort == Effort::Whole {
        10_000.0
    } else {
        // A large read is many reads of the flash.
        let largest = cell.streams.iter().map(|s| s.bytes[0]).max();
        let pages = f64::from(largest.unwrap_or(0)) / 4096.0;
        10_000.0 * (PAGES_SEEN / pages.max(1.0)).min(1.0)
    };
    let enough = 1_500.0 * per_s / rarest.max(1.0);
    let share = match effort {
        Effort::Coarse => 0.25,
        Effort::Fine | Effort::Whole => 1.0,
    };
    share * f64::max(usual, enough).min(200_000.0) / per_s
}

/// The quantiles that so many seconds show.
fn quantiles(seen: &Seen, seconds: f64) -> impl Iterator<Item = (f64, f64)> + use<'_> {
    let nr = seen.per_s * seconds;
    let shown = move |(part, _): &(f64, f64)| nr * part.min(1.0 - part) >= BEYOND;
    seen.quantiles.iter().copied().filter(shown)
}

impl Plan {
    fn new(cell: &Cell, drive: &Drive, effort: Effort) -> Plan {
        let seconds = seconds(cell, effort);
        let buffer_bytes = number("buffer_bytes", drive.get("buffer_bytes")).unwrap_or(0.0);
        let buffer_slots = if cell.has(Op::Write) {
            (buffer_bytes / 4096.0).min(SLOTS_MAX)
        } else {
            0.0
        };
        Plan {
            length: Length {
                buffer_slots: buffer_slots as u64,
                writes_per_s: writes_per_s(cell),
                seconds,
                commands_max: (seconds * cell.per_s().max(1.0) * 2.5) as u64,
            },
        }
    }

    /// The quantiles that it shows.
    fn quantiles<'s>(&self, seen: &'s Seen) -> impl Iterator<Item = (f64, f64)> + use<'s> {
        quantiles(seen, self.length.seconds)
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
