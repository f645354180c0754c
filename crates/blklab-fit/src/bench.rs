// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells run against a drive, and how far what comes of them is from what was measured.

use crate::cell::{Cell, Seen};
use crate::drive::{Drive, number};
use crate::load::{self, Length, Times};
use crate::params;
use blklab_types::Op;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How exactly cells are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// A quarter of the commands: to find where to look.
    Coarse,
    /// All.
    Fine,
}

/// Commands that it takes for a quantile: so many beyond it.
const BEYOND: f64 = 8.0;

/// Most slots of a write buffer that are filled before a load.
const SLOTS_MAX: f64 = 30_000.0;

/// Nothing counts as farther off than by this factor.
const FAR: f64 = 20.0;

/// Residuals are in proportion to what a figure is off up to about this.
const SOFT: f64 = 0.1;

/// Residuals of a p99.9 count this much: few commands are behind it, here and in the
/// measurement. So do the tails of writes, which depend on what was written before.
const TAIL_WEIGHT: f64 = 0.5;

/// Residuals of percentiles of writes alone: how they share their rate among them depends on
/// the phases in which the dies are.
const ALONE_WEIGHT: f64 = 0.2;

/// What there is to run and to compare with.
pub(crate) struct Bench<'a> {
    pub(crate) cells: &'a [Cell],
    threads: usize,
    known: Mutex<BTreeMap<(usize, Effort, String), Vec<f64>>>,
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
            runs: AtomicUsize::new(0),
        }
    }

    /// The residuals of these cells for each of these drives: the logarithm of what comes of
    /// a cell over what was measured.
    pub(crate) fn residuals(
        &self,
        cells: &[usize],
        drives: &[Drive],
        effort: Effort,
    ) -> Vec<Vec<f64>> {
        let key = |c: usize, d: &Drive| (c, effort, self.shown_in(c, d));
        let mut missing: BTreeMap<(usize, Effort, String), (usize, &Drive)> = BTreeMap::new();
        {
            let known = self.known.lock().expect("no thread panicked");
            for drive in drives {
                for &c in cells {
                    let key = key(c, drive);
                    if !known.contains_key(&key) {
                        missing.insert(key, (c, drive));
                    }
                }
            }
        }
        let jobs: Vec<_> = missing.into_iter().collect();
        self.runs.fetch_add(jobs.len(), Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((key, (c, drive))) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = self.run(*c, drive, effort);
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
        let all = drives.iter().map(|drive| {
            let each = cells
                .iter()
                .flat_map(|&c| known[&key(c, drive)].iter().copied());
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

    fn run(&self, c: usize, drive: &Drive, effort: Effort) -> Vec<f64> {
        let cell = &self.cells[c];
        let plan = Plan::new(cell, drive, effort);
        let nr = cell
            .seen
            .iter()
            .map(|s| 1 + plan.quantiles(s).count())
            .sum();
        let Ok(device) = drive.build(Some(cell)) else {
            // Values that together are no drive are as far off as anything.
            return vec![soft(FAR.ln()); nr];
        };
        let mut times = load::run(device, drive.queue_depth(), &cell.streams, plan.length);
        let mut all = Vec::with_capacity(nr);
        for seen in &cell.seen {
            let t = &mut times[seen.stream][usize::from(seen.op == Op::Write)];
            all.push(off(t.per_s, seen.per_s));
            for (part, us) in plan.quantiles(seen) {
                let is_tail = part > if seen.op == Op::Write { 0.9 } else { 0.99 };
                let weight = match seen.op {
                    Op::Write if !cell.has(Op::Read) => ALONE_WEIGHT,
                    _ if is_tail => TAIL_WEIGHT,
                    _ => 1.0,
                };
                all.push(weight * quantile_off(t, part, us));
            }
        }
        all
    }

    /// What a drive does in a cell, beside what was measured.
    pub(crate) fn figures(&self, c: usize, drive: &Drive) -> Vec<Figure> {
        let cell = &self.cells[c];
        let plan = Plan::new(cell, drive, Effort::Fine);
        let Ok(device) = drive.build(Some(cell)) else {
            return Vec::new();
        };
        let mut times = load::run(device, drive.queue_depth(), &cell.streams, plan.length);
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

/// Writes of 4 KiB per second that were measured.
fn writes_per_s(cell: &Cell) -> f64 {
    let slots = |s: &Seen| f64::from(cell.streams[s.stream].bytes[1]) / 4096.0;
    let writes = cell.seen.iter().filter(|s| s.op == Op::Write);
    writes.map(|s| s.per_s * slots(s)).sum()
}

impl Plan {
    fn new(cell: &Cell, drive: &Drive, effort: Effort) -> Plan {
        let per_s = cell.per_s().max(1.0);
        let rarest = cell
            .seen
            .iter()
            .map(|s| s.per_s)
            .fold(f64::MAX, f64::min)
            .max(1.0);
        let has_writes = cell.has(Op::Write);
        // Garbage is collected in rounds: several must be seen.
        let usual = if has_writes { 40_000.0 } else { 12_000.0 };
        let enough = 1_500.0 * per_s / rarest;
        let share = match effort {
            Effort::Coarse => 0.25,
            Effort::Fine => 1.0,
        };
        let commands = share * f64::max(usual, enough).min(200_000.0);
        Plan {
            length: Length {
                buffer_slots: if has_writes {
                    let bytes = number("buffer_bytes", drive.get("buffer_bytes"));
                    (bytes.unwrap_or(0.0) / 4096.0).min(SLOTS_MAX) as u64
                } else {
                    0
                },
                writes_per_s: writes_per_s(cell),
                seconds: commands / per_s,
                commands_max: (commands * 2.5) as u64,
            },
        }
    }

    /// The quantiles that so many commands show.
    fn quantiles<'s>(&self, seen: &'s Seen) -> impl Iterator<Item = (f64, f64)> + use<'s> {
        let nr = seen.per_s * self.length.seconds;
        let shown = move |(part, _): &(f64, f64)| nr * part.min(1.0 - part) >= BEYOND;
        seen.quantiles.iter().copied().filter(shown)
    }
}

/// A logarithm; what is far off grows no longer in proportion, so that a tail which the model
/// cannot have does not bend everything else.
fn off(ours: f64, measured: f64) -> f64 {
    let ln = (ours.max(1e-9) / measured).ln();
    soft(ln.clamp(-FAR.ln(), FAR.ln()))
}

fn soft(ln: f64) -> f64 {
    (ln / SOFT).asinh() * SOFT
}

/// Where the times of a drive jump, as between kinds of pages, a quantile beside the jump is
/// on one side of it by chance: there anything within the jump is right.
fn quantile_off(t: &mut Times, part: f64, measured: f64) -> f64 {
    if t.len() == 0 {
        return soft(FAR.ln());
    }
    let nr = t.len() as f64;
    let near = 2.0 * (part * (1.0 - part) / nr).sqrt();
    let (low, high) = (t.us(part - near), t.us(part + near));
    if high > low * 1.15 && part < 0.98 {
        return off(measured.clamp(low, high), measured);
    }
    off(t.us(part), measured)
}
