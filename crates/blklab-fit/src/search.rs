// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the presets to the drive that is nearest to what was measured.
//!
//! ```text
//! presets ─► reads ─► large reads ─► writes ─► switches ─► everything together
//!  nearest    each step: least squares over the parameters that its cells show
//! ```

use crate::bench::{Bench, Effort};
use crate::cell::{Cell, State};
use crate::certainty;
use crate::drive::{Drive, presets};
use crate::params::{self, Param, ShowsIn};
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

/// A further parameter is only taken if they sum up to less by so much: one more always fits
/// a little better.
const MUCH_BETTER: f64 = 0.7;

/// Squares that sum up to this much more are as good.
const AS_GOOD: f64 = 1.01;

/// What leaves no more than this of a usual residual needs nothing else.
const GOOD: f64 = 0.03;

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
    pub(crate) fn run(&self, like: Option<&Drive>) -> Drive {
        let drive = match like {
            Some(drive) => self.written(drive.clone()),
            None => self.nearest_preset(),
        };
        let begun = drive.clone();
        let drive = self.small_reads(drive);
        let drive = self.large_reads(drive);
        let drive = self.writes(drive);
        let drive = self.switches(drive);
        let (drive, _) = self.solve(&self.cells, &drive, &all_params(), Effort::Fine, 3);
        let last = Problem::new(self.bench, &self.cells, Effort::Fine, &drive, &all_params());
        let (drive, _) = last.with_small_steps().solve(2);
        self.undo_what_is_not_told(drive, &begun)
    }

    /// What the measurements do not tell stays as it was before.
    fn undo_what_is_not_told(&self, mut drive: Drive, begun: &Drive) -> Drive {
        let mut problem =
            Problem::new(self.bench, &self.cells, Effort::Fine, &drive, &all_params());
        let mut cost = problem.cost(&drive);
        let told = certainty::of_parameters(&mut problem);
        let names: Vec<&str> = problem.looked_for().map(|p| p.name).collect();
        for (name, _) in names.iter().zip(told).filter(|(_, c)| !c.is_told()) {
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
        drive
    }

    fn solve(
        &self,
        cells: &[usize],
        drive: &Drive,
        params: &[&'static Param],
        effort: Effort,
        patience: usize,
    ) -> (Drive, f64) {
        Problem::new(self.bench, cells, effort, drive, params).solve(patience)
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
            let (drive, cost) = self.solve(&cells, &preset, &levels, Effort::Coarse, 1);
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
        let problem = Problem::new(self.bench, &cells, Effort::Coarse, &drive, &params);
        let (mut drive, mut cost) = problem.solve_probing(4);
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
        self.solve(&cells, &drive, &params, Effort::Fine, 3).0
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
        let (other, other_cost) = self.solve(cells, &other, params, Effort::Coarse, 2);
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
        let problem = Problem::new(self.bench, &cells, Effort::Coarse, &drive, &params);
        let (drive, _) = problem.solve_probing(4);
        let problem = Problem::new(self.bench, &cells, Effort::Fine, &drive, &params);
        let (mut drive, _) = problem.with_small_steps().solve_probing(6);
        let problem = Problem::new(self.bench, &cells, Effort::Fine, &drive, &[]);
        if problem.usually_left(&drive) < GOOD {
            return drive;
        }
        let mut cost = self.cost(&cells, &drive, Effort::Coarse);
        for param in params::ALL.iter().filter(own) {
            let has = crate::drive::number(param.name, drive.get(param.name));
            let Some(begin) = param.begin.filter(|_| has.is_none_or(|v| v == 0.0)) else {
                continue;
            };
            let mut other = drive.clone();
            other.set(param.name, param.unit.written(begin).0);
            self.take_if_better(&cells, &params, MUCH_BETTER, other, &mut drive, &mut cost);
        }
        let other_layout = match drive.get("layout") {
            "scattered" => "striped",
            _ => "scattered",
        };
        let mut other = drive.clone();
        other.set("layout", other_layout.to_owned());
        self.take_if_better(&cells, &params, BETTER, other, &mut drive, &mut cost);
        self.solve(&cells, &drive, &params, Effort::Fine, 2).0
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
            let (fitted, mut cost) = self.solve(&cells, &drive, &params, Effort::Coarse, 2);
            drive = fitted;
            let mut other = drive.clone();
            let same = other.get("command_us").to_owned();
            other.set("write_command_us", same);
            self.take_if_better(&cells, &params, MUCH_BETTER, other, &mut drive, &mut cost);
        }
        self.solve(&cells, &drive, &params, Effort::Fine, 3).0
    }

    /// What reads behind writes wait for.
    fn switches(&self, drive: Drive) -> Drive {
        let both = |c: &Cell| c.has(Op::Write) && c.has(Op::Read) && c.state == State::Used;
        if self.cells_with(both).is_empty() {
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
                // What is far off at once does not become the best.
                if self.cost(&cells, &other, Effort::Coarse) < cost * 1.5 {
                    let (other, other_cost) =
                        self.solve(&cells, &other, &params, Effort::Coarse, 1);
                    if other_cost < cost * BETTER {
                        (drive, cost) = (other, other_cost);
                    }
                }
            }
        }
        drive
    }
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
