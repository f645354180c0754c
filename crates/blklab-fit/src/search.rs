// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the presets to the drive that is nearest to what was measured.
//!
//! ```text
//! presets ─► reads ─► large reads ─► writes ─► switches ─► everything together
//!  nearest    each step: least squares over the parameters that its cells show
//! ```

use crate::bench::Bench;
use crate::cell::{Cell, State};
use crate::certainty;
use crate::descent;
use crate::drive::{Drive, number, presets};
use crate::levenberg::{self, How};
use crate::params::{self, Param, ShowsIn, Unit};
use crate::plan::Effort;
use crate::squares::Problem;
use blklab_types::Op;

/// What there is besides counts and times: tried one after the other.
const SWITCHES: &[(&str, &[&str])] = &[
    ("suspend_program", &["on", "off"]),
    ("suspend_erase", &["on", "off"]),
    ("gc_suspend", &["on", "off"]),
    ("reads_first", &["on", "off"]),
];

/// Something else is only taken if the squares sum up to less by so much.
const BETTER: f64 = 0.93;

/// Something else for reads alone, which chance moves little, by so much.
const CLEARLY_BETTER: f64 = 0.97;

/// A further parameter is only taken if they sum up to less by so much: one more always fits
/// a little better.
const MUCH_BETTER: f64 = 0.7;

/// Squares that sum up to this much more are as good.
const AS_GOOD: f64 = 1.01;

/// What leaves no more than this of a usual residual needs nothing else.
const GOOD: f64 = 0.03;

/// Widths of the steps by which slopes are taken: to compare, to come near, at the end.
const QUICK: &[f64] = &[0.15];
const NEAR: &[f64] = &[0.15, 0.07];
const LAST: &[f64] = &[0.07];

/// The same of reads, which chance moves little.
const STEP: f64 = 0.15;
const SMALL_STEP: f64 = 0.05;

/// So many steps from far away.
fn far(steps: usize, probes: bool) -> How {
    How {
        steps,
        width: STEP,
        probes,
    }
}

/// Most such changes for large reads.
const FURTHER_MAX: usize = 4;

/// Cells that presets are compared by.
const COMPARED: usize = 8;

/// Parameters that set the level of reads and writes, to compare presets by.
const LEVELS: [&str; 6] = [
    "read_overhead_us",
    "read_us",
    "command_us",
    "write_overhead_us",
    "write_command_us",
    "program_us",
];

const READS: &[&str] = &[
    "command_us",
    "read_overhead_us",
    "read_us",
    "read_middle_us",
    "read_slow_us",
    "channel_mb_per_s",
    "link_mb_per_s",
    "read_slots",
];

/// What is far off at once does not become the best.
const NOT_TOO_FAR: f64 = 1.5;

/// What is known of a parameter.
pub(crate) struct Told {
    pub(crate) name: &'static str,
    /// One standard deviation as a part of the value; none: no residual depends on it.
    pub(crate) error: Option<f64>,
    /// Parameters whose changes undo its own.
    pub(crate) with: Vec<&'static str>,
}

/// Looks for the drive.
pub(crate) struct Search<'a> {
    bench: &'a Bench<'a>,
    /// The cells that it may look at.
    cells: Vec<usize>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(bench: &'a Bench<'a>, held_out: &[bool]) -> Search<'a> {
        let cells = (0..bench.cells.len()).filter(|c| !held_out[*c]);
        Search {
            bench,
            cells: cells.collect(),
        }
    }

    fn cells_with(&self, test: impl Fn(&Cell) -> bool) -> Vec<usize> {
        let all = self.cells.iter().copied();
        all.filter(|c| test(&self.bench.cells[*c])).collect()
    }

    /// The nearest drive, begun with `like`, or with the preset that is nearest.
    pub(crate) fn run(&self, like: Option<&Drive>) -> (Drive, Vec<Told>) {
        let drive = match like {
            Some(drive) => self.written(drive.clone()),
            None => self.nearest_preset(),
        };
        let begun = drive.clone();
        for effort in [Effort::Coarse, Effort::Fine] {
            self.bench.see_chance(&self.cells, &drive, effort);
        }
        let drive = in_order(self.small_reads(drive));
        let drive = self.large_reads(drive);
        let drive = self.writes(drive);
        let drive = self.switches(drive);
        let drive = self.everything(drive, &begun);
        let drive = in_order(drive);
        self.undo_what_is_not_told(drive, &begun)
    }

    fn whole(&self, drive: &Drive) -> Problem<'_> {
        Problem::new(self.bench, &self.cells, Effort::Fine, drive, &all_params())
    }

    /// Everything together, and whether further parameters are needed and the switches right.
    fn everything(&self, drive: Drive, begun: &Drive) -> Drive {
        self.bench.see_usual(&self.cells, &drive, Effort::Fine);
        let drive = self.without_what_is_not_needed(drive, begun);
        let drive = descent::solve(&self.whole(&drive), NEAR).drive;
        self.bench.see_usual(&self.cells, &drive, Effort::Fine);
        let switched = self.switched(drive.clone(), begun);
        if switched == drive {
            return drive;
        }
        descent::solve(&self.whole(&switched), LAST).drive
    }

    /// Without further parameters that turn out to fit little better.
    fn without_what_is_not_needed(&self, mut drive: Drive, begun: &Drive) -> Drive {
        for param in params::ALL {
            if drive.get(param.name).is_empty() || !begun.get(param.name).is_empty() {
                continue;
            }
            let mut other = drive.clone();
            other.set(param.name, String::new());
            let cost = |d: &Drive| self.whole(d).usual_cost(d);
            if cost(&drive) > cost(&other) * MUCH_BETTER {
                drive = other;
            }
        }
        drive
    }

    /// With other switches, if that is clearly better; with the ones that it began with, if it
    /// is not clearly worse.
    fn switched(&self, mut drive: Drive, begun: &Drive) -> Drive {
        if !self.has_reads_behind_writes() {
            return drive;
        }
        let cells = self.cells_with(|c| c.has(Op::Write));
        let cost = |d: &Drive| Problem::new(self.bench, &cells, Effort::Fine, d, &[]).usual_cost(d);
        let mut least = cost(&drive);
        for (name, words) in SWITCHES {
            for word in words.iter().filter(|w| drive.get(name) != **w) {
                let mut other = drive.clone();
                other.set(name, (*word).to_owned());
                let enough = if begun.get(name) == *word {
                    1.0 / BETTER
                } else {
                    BETTER
                };
                if cost(&other) > least * NOT_TOO_FAR {
                    continue;
                }
                let (other, _) = self.solve(&cells, &other, &write_params(), Effort::Fine, QUICK);
                let other_cost = cost(&other);
                if other_cost < least * enough {
                    (drive, least) = (other, other_cost);
                    break;
                }
            }
        }
        drive
    }

    fn has_reads_behind_writes(&self) -> bool {
        let both = |c: &Cell| c.has(Op::Write) && c.has(Op::Read) && c.state == State::Used;
        !self.cells_with(both).is_empty()
    }

    /// What the measurements do not tell stays as it was before; with what is known of each
    /// parameter.
    fn undo_what_is_not_told(&self, mut drive: Drive, begun: &Drive) -> (Drive, Vec<Told>) {
        let problem = self.whole(&drive);
        let mut cost = problem.cost(&drive);
        let certainties = certainty::of_parameters(&problem);
        let names: Vec<&'static str> = problem.looked_for().map(|p| p.name).collect();
        for (name, _) in names.iter().zip(&certainties).filter(|(_, c)| !c.is_told()) {
            let before = begun.get(name);
            if before.is_empty() || before == drive.get(name) {
                continue;
            }
            let mut other = drive.clone();
            other.set(name, before.to_owned());
            let other_cost = self.cost(&self.cells, &other, Effort::Fine);
            if other_cost < cost * AS_GOOD {
                (drive, cost) = (other, other_cost);
            }
        }
        let told = names.iter().zip(certainties).map(|(name, c)| Told {
            name,
            error: c.error,
            with: c.with.iter().map(|i| names[*i]).collect(),
        });
        let told = told.collect();
        (drive, told)
    }

    fn solve(
        &self,
        cells: &[usize],
        drive: &Drive,
        params: &[&'static Param],
        effort: Effort,
        widths: &[f64],
    ) -> (Drive, f64) {
        let problem = Problem::new(self.bench, cells, effort, drive, params);
        let place = descent::solve(&problem, widths);
        let squares = place.squares();
        (place.drive, squares)
    }

    /// The same from far away.
    fn approach(
        &self,
        cells: &[usize],
        drive: &Drive,
        params: &[&'static Param],
        effort: Effort,
        how: How,
    ) -> (Drive, f64) {
        let problem = Problem::new(self.bench, cells, effort, drive, params);
        levenberg::search(&problem, how)
    }

    fn cost(&self, cells: &[usize], drive: &Drive, effort: Effort) -> f64 {
        Problem::new(self.bench, cells, effort, drive, &[]).cost(drive)
    }

    /// The drive as it is once it has been written, if it was ever measured so; fresh
    /// cells have their own.
    fn written(&self, mut drive: Drive) -> Drive {
        let is_written = self.bench.cells.iter().any(|c| c.state == State::Used);
        if is_written && drive.get("state") == "fresh" {
            drive.set("state", "used".to_owned());
        }
        drive
    }

    fn nearest_preset(&self) -> Drive {
        let levels = LEVELS.map(params::named);
        let step = self.cells.len().div_ceil(COMPARED).max(1);
        let cells: Vec<usize> = self.cells.iter().copied().step_by(step).collect();
        let mut best: Option<(Drive, f64)> = None;
        for info in presets() {
            let preset = self.written(Drive::preset(info.name));
            let (drive, cost) = self.solve(&cells, &preset, &levels, Effort::Coarse, QUICK);
            if best.as_ref().is_none_or(|(_, least)| cost < *least) {
                best = Some((drive, cost));
            }
        }
        best.expect("there are presets").0
    }

    /// Reads of up to 4 KiB without writes beside them; and how many dies there are.
    fn small_reads(&self, drive: Drive) -> Drive {
        let cells = self.cells_with(|c| !c.has(Op::Write) && !c.has_large_reads());
        if cells.is_empty() {
            return drive;
        }
        let params: Vec<_> = READS.iter().map(|n| params::named(n)).collect();
        let how = far(4, true);
        let (mut drive, mut cost) = self.approach(&cells, &drive, &params, Effort::Coarse, how);
        let is_good = |d: &Drive| {
            let problem = Problem::new(self.bench, &cells, Effort::Coarse, d, &[]);
            problem.usually_left(d) < GOOD
        };
        // Kinds of pages that the preset does not tell apart.
        if !is_good(&drive) && drive.get("read_slow_us").is_empty() {
            let mut other = drive.clone();
            let same = other.get("read_us").to_owned();
            other.set("read_slow_us", same);
            self.take_if_better(&cells, &params, MUCH_BETTER, other, &mut drive, &mut cost);
        }
        for (name, factor) in [
            ("ways", 2.0),
            ("ways", 0.5),
            ("channels", 2.0),
            ("channels", 0.5),
        ] {
            let count: f64 = drive.get(name).parse().unwrap_or(1.0);
            let other_count = count * factor;
            if is_good(&drive) || !(1.0..=64.0).contains(&other_count) {
                continue;
            }
            let mut other = drive.clone();
            other.set(name, format!("{other_count:.0}"));
            self.take_if_better(&cells, &params, BETTER, other, &mut drive, &mut cost);
        }
        self.approach(&cells, &drive, &params, Effort::Fine, far(3, false))
            .0
    }

    fn take_if_better(
        &self,
        cells: &[usize],
        params: &[&'static Param],
        enough: f64,
        other: Drive,
        drive: &mut Drive,
        cost: &mut f64,
    ) {
        let (other, other_cost) =
            self.approach(cells, &other, params, Effort::Coarse, far(2, false));
        if other_cost < *cost * enough {
            (*drive, *cost) = (other, other_cost);
        }
    }

    /// Reads of more than 4 KiB, beside small ones, since only together do they tell cells and
    /// channels apart: with further parameters where those of small ones do not explain them.
    fn large_reads(&self, drive: Drive) -> Drive {
        let cells = self.cells_with(|c| !c.has(Op::Write));
        if !cells.iter().any(|c| self.bench.cells[*c].has_large_reads()) {
            return drive;
        }
        let own = |p: &&'static Param| p.shows_in == ShowsIn::LargeReads;
        let mut params: Vec<_> = READS.iter().map(|n| params::named(n)).collect();
        params.extend(params::ALL.iter().filter(own));
        let how = far(4, true);
        let (drive, _) = self.approach(&cells, &drive, &params, Effort::Coarse, how);
        let near = How {
            width: SMALL_STEP,
            ..far(6, true)
        };
        let (mut drive, _) = self.approach(&cells, &drive, &params, Effort::Fine, near);
        let problem = Problem::new(self.bench, &cells, Effort::Fine, &drive, &[]);
        if problem.usually_left(&drive) < GOOD {
            return drive;
        }
        for _ in 0..FURTHER_MAX {
            let Some(better) = self.with_something_else(&cells, &params, &drive) else {
                break;
            };
            drive = better;
        }
        self.approach(&cells, &drive, &params, Effort::Fine, far(4, true))
            .0
    }

    /// With the one change of what slopes do not show that explains reads best, if that is
    /// clearly better: a further parameter, a path without a limit, the other layout.
    fn with_something_else(
        &self,
        cells: &[usize],
        params: &[&'static Param],
        drive: &Drive,
    ) -> Option<Drive> {
        let mut changes: Vec<(&str, String, f64)> = Vec::new();
        for param in params {
            let has = number(param.name, drive.get(param.name)).filter(|v| *v > 0.0);
            let written = |value| param.unit.written(value).0;
            match (has, param.begin) {
                (None, Some(begin)) => changes.push((param.name, written(begin), MUCH_BETTER)),
                (Some(rate), _) if param.unit == Unit::MbPerS && rate < param.range.1 / 2.0 => {
                    changes.push((param.name, written(param.range.1), CLEARLY_BETTER));
                }
                _ => {}
            }
        }
        let other_layout = match drive.get("layout") {
            "scattered" => "striped",
            _ => "scattered",
        };
        changes.push(("layout", other_layout.to_owned(), CLEARLY_BETTER));
        let before = self.cost(cells, drive, Effort::Coarse);
        let tried = changes.into_iter().map(|(name, value, enough)| {
            let mut other = drive.clone();
            other.set(name, value);
            let how = far(4, true);
            let (other, cost) = self.approach(cells, &other, params, Effort::Coarse, how);
            (other, cost, enough)
        });
        let better = tried.filter(|(_, cost, enough)| *cost < before * enough);
        let best = better.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(drive, ..)| drive)
    }

    /// Writes, with and without reads beside them.
    fn writes(&self, drive: Drive) -> Drive {
        let cells = self.cells_with(|c| c.has(Op::Write));
        if cells.is_empty() {
            return drive;
        }
        let params = write_params();
        let mut drive = drive;
        if drive.get("write_command_us").is_empty()
            && !self
                .cells_with(|c| c.has(Op::Write) && c.state == State::Used)
                .is_empty()
        {
            let (fitted, mut cost) = self.solve(&cells, &drive, &params, Effort::Coarse, QUICK);
            drive = fitted;
            let mut other = drive.clone();
            let same = other.get("command_us").to_owned();
            other.set("write_command_us", same);
            self.take_if_better(&cells, &params, MUCH_BETTER, other, &mut drive, &mut cost);
        }
        self.solve(&cells, &drive, &params, Effort::Coarse, NEAR).0
    }

    /// What reads behind writes wait for.
    fn switches(&self, drive: Drive) -> Drive {
        if !self.has_reads_behind_writes() {
            return drive;
        }
        let cells = self.cells_with(|c| c.has(Op::Write));
        let params = write_params();
        let mut drive = drive;
        let mut cost = self.cost(&cells, &drive, Effort::Coarse);
        for (name, words) in SWITCHES {
            for word in *words {
                if drive.get(name) == *word {
                    continue;
                }
                let mut other = drive.clone();
                other.set(name, (*word).to_owned());
                if self.cost(&cells, &other, Effort::Coarse) < cost * NOT_TOO_FAR {
                    let (other, other_cost) =
                        self.solve(&cells, &other, &params, Effort::Coarse, QUICK);
                    if other_cost < cost * BETTER {
                        (drive, cost) = (other, other_cost);
                    }
                }
            }
        }
        drive
    }
}

/// Kinds of pages follow each other by turns: which of them is called the first makes no
/// difference, and the fastest is.
fn in_order(mut drive: Drive) -> Drive {
    let names = ["read_us", "read_middle_us", "read_slow_us"];
    let names: Vec<&str> = names
        .into_iter()
        .filter(|n| !drive.get(n).is_empty())
        .collect();
    let mut times: Vec<(f64, String)> = names
        .iter()
        .map(|n| {
            (
                number(n, drive.get(n)).unwrap_or(0.0),
                drive.get(n).to_owned(),
            )
        })
        .collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (name, (_, text)) in names.iter().zip(times) {
        drive.set(name, text);
    }
    drive
}

/// All that may be looked for.
pub(crate) fn all_params() -> Vec<&'static Param> {
    params::ALL.iter().collect()
}

/// Parameters of writes alone.
fn write_params() -> Vec<&'static Param> {
    let is_own = |p: &&'static Param| matches!(p.shows_in, ShowsIn::Writes | ShowsIn::Replacing);
    params::ALL.iter().filter(is_own).collect()
}
