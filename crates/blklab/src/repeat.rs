// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often an experiment is repeated: a number of times, or until a metric is known well
//! enough.
//!
//! The experiments of one file are repeated equally often, until the metric is known of each
//! job of each experiment: comparisons keep their pairs of the same seed. What is run next
//! follows from the results alone, not from how many runs there are at a time.

use crate::compare::{Column, widths};
use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_types::Error;
use blklab_types::shown;
use std::fmt;

/// How often.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeat {
    /// So many times, 1 or more.
    Times(u32),
    /// Until a metric is known.
    Until(Enough),
}

/// When a metric is known well enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Enough {
    /// What is looked at.
    pub column: Column,
    /// Half the 95 % interval of its mean over the runs, in terms of that mean.
    pub half_width: f64,
    /// Repetitions after which there are no more, [`FEWEST`] at least.
    pub max: u32,
}

/// Fewer runs can agree by chance.
pub const FEWEST: u32 = 5;

/// The metric unless another is named.
const METRIC: &str = "clat_p99_ns";
/// Half the width of the interval, in per cent, unless another is named.
const PERCENT: f64 = 5.0;
/// Repetitions at most, unless another number is named.
const MAX: u32 = 30;

impl Repeat {
    /// From `N`, or `auto[:METRIC[:WIDTH%[:MAX]]]`, where what is empty is as if it were not
    /// there.
    ///
    /// # Errors
    /// In words, without the text itself.
    pub fn parse(text: &str) -> Result<Repeat, Error> {
        let mut parts = text.split(':');
        if parts.next() != Some("auto") {
            return match text.parse() {
                Ok(0) => Err(Error::new("at least 1 run")),
                Ok(times) => Ok(Repeat::Times(times)),
                Err(_) => Err(Error::new(
                    "a number of runs, or auto[:METRIC[:WIDTH%[:MAX]]]",
                )),
            };
        }
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let column = Column::named(next().unwrap_or(METRIC), false)?;
        let half_width = next().map_or(Ok(PERCENT), percent)? / 100.0;
        let max = next().map_or(Ok(MAX), most)?;
        if let Some(more) = parts.next() {
            let what = format!("'{}' is too much: auto:METRIC:WIDTH%:MAX", shown(more));
            return Err(Error::new(what));
        }
        Ok(Repeat::Until(Enough {
            column,
            half_width,
            max,
        }))
    }

    /// Repetitions at most.
    pub fn most(&self) -> u32 {
        match self {
            Repeat::Times(times) => *times,
            Repeat::Until(enough) => enough.max,
        }
    }
}

fn percent(text: &str) -> Result<f64, Error> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    let wrong = || {
        let what = format!(
            "'{}': the width is half the interval, a percentage above 0 and below 100",
            shown(text)
        );
        Error::new(what)
    };
    let number = number.ok().filter(|n| *n > 0.0 && *n < 100.0);
    number.ok_or_else(wrong)
}

fn most(text: &str) -> Result<u32, Error> {
    let wrong = || {
        let what = format!(
            "'{}': the largest number of runs, {FEWEST} or more, as fewer can agree by chance",
            shown(text)
        );
        Error::new(what)
    };
    let number = text.parse().ok().filter(|n| *n >= FEWEST);
    number.ok_or_else(wrong)
}

/// What is run, round after round.
#[derive(Debug)]
pub struct Rounds<'a> {
    repeat: &'a Repeat,
    cells: &'a [Cell],
    files: Vec<File>,
}

/// The experiments of a file.
#[derive(Debug)]
struct File {
    file_idx: usize,
    /// Repetitions that were asked for.
    asked: u32,
    /// What came of it, once there are no more.
    end: Option<End>,
}

#[derive(Debug, PartialEq)]
enum End {
    /// The metric is known so well; or nobody has it.
    Enough(Option<Widest>),
    /// It is known no better when the limit is reached.
    Limit(Widest),
    /// All repetitions of each experiment are the same.
    Same,
}

/// Of whom a metric is known least.
#[derive(Clone, Debug, PartialEq)]
struct Widest {
    who: String,
    half_width: f64,
}

impl<'a> Rounds<'a> {
    /// Of the cells of a matrix with as many repetitions as there are at most.
    pub fn new(repeat: &'a Repeat, cells: &'a [Cell]) -> Rounds<'a> {
        let mut files: Vec<File> = Vec::new();
        for cell in cells {
            if files.last().is_none_or(|f| f.file_idx != cell.file_idx) {
                files.push(File {
                    file_idx: cell.file_idx,
                    asked: 0,
                    end: None,
                });
            }
        }
        Rounds {
            repeat,
            cells,
            files,
        }
    }

    /// The places of the cells to run next, given the results so far; none if there is
    /// enough.
    pub fn next(&mut self, runs: &[Option<RunOutput>]) -> Vec<usize> {
        let mut places = Vec::new();
        for file in &mut self.files {
            if file.end.is_some() {
                continue;
            }
            let begun = file.asked;
            match self.repeat {
                Repeat::Times(times) if begun == 0 => file.asked = *times,
                Repeat::Times(times) if *times > 1 => file.see_whether_same(self.cells, runs),
                Repeat::Times(_) => {}
                Repeat::Until(enough) if begun == 0 => file.asked = FEWEST.min(enough.max),
                Repeat::Until(enough) => file.look(enough, self.cells, runs),
            }
            let of_file = self.cells.iter().enumerate();
            let of_file = of_file.filter(|(_, c)| c.file_idx == file.file_idx);
            let new = of_file.filter(|(_, c)| (begun..file.asked).contains(&c.repetition));
            places.extend(new.map(|(place, _)| place));
        }
        places
    }

    /// Cells that were asked for.
    pub fn asked(&self) -> usize {
        let is_asked = |cell: &&Cell| {
            let file = self.files.iter().find(|f| f.file_idx == cell.file_idx);
            file.is_some_and(|f| cell.repetition < f.asked)
        };
        self.cells.iter().filter(is_asked).count()
    }

    /// A line for each file whose repetitions ended by a rule: which, and how well the
    /// metric is known; and for each whose repetitions are the same run.
    pub fn notes(&self) -> Vec<String> {
        let note = |file: &File| {
            let text = match self.repeat {
                Repeat::Until(enough) => file.end.as_ref()?.text(enough, file.asked),
                Repeat::Times(_) => same_runs(file.end.as_ref().map(|_| file.asked)?),
            };
            let named = self.cells.iter().find(|c| c.file_idx == file.file_idx);
            let id = named.filter(|_| self.files.len() > 1);
            Some(id.map_or(text.clone(), |c| format!("{}: {text}", c.experiment.id)))
        };
        self.files.iter().filter_map(note).collect()
    }
}

/// What is said of repetitions that are the same run.
fn same_runs(runs: u32) -> String {
    format!(
        "{runs} runs of each are the same, event for event: nothing in them depends on the seed \
         (fio's offsets do, unless the job file says randrepeat=1)"
    )
}

/// The runs of each experiment of a file, one slice for each.
fn by_experiment<'r, 'c>(
    runs: &'r [(&'c Cell, &'c RunOutput)],
) -> impl Iterator<Item = &'r [(&'c Cell, &'c RunOutput)]> {
    runs.chunk_by(|a, b| a.0.label == b.0.label)
}

fn all_same(runs: &[(&Cell, &RunOutput)]) -> bool {
    runs.iter().all(|(_, run)| run.digest == runs[0].1.digest)
}

impl File {
    /// Its runs so far.
    fn runs<'c>(
        &self,
        cells: &'c [Cell],
        runs: &'c [Option<RunOutput>],
    ) -> Vec<(&'c Cell, &'c RunOutput)> {
        let of_file = cells.iter().zip(runs);
        let of_file = of_file.filter(|(c, _)| c.file_idx == self.file_idx);
        of_file
            .filter_map(|(c, run)| Some((c, run.as_ref()?)))
            .collect()
    }

    /// Ends it where all repetitions of each experiment are the same run.
    fn see_whether_same(&mut self, cells: &[Cell], runs: &[Option<RunOutput>]) {
        let runs = self.runs(cells, runs);
        let mut experiments = by_experiment(&runs);
        let is_same = experiments.all(|one| one.len() > 1 && all_same(one));
        self.end = (is_same && !runs.is_empty()).then_some(End::Same);
    }

    /// Ends it, or asks for more.
    fn look(&mut self, enough: &Enough, cells: &[Cell], runs: &[Option<RunOutput>]) {
        let of_file = self.runs(cells, runs);
        let mut widest: Option<Widest> = None;
        let mut is_same = true;
        for one in by_experiment(&of_file) {
            let outputs: Vec<&RunOutput> = one.iter().map(|(_, run)| *run).collect();
            is_same &= all_same(one);
            for (who, half_width) in widths(&outputs, &enough.column) {
                if widest.as_ref().is_none_or(|w| half_width > w.half_width) {
                    let who = format!("{who} under {}", one[0].0.name_in_file());
                    widest = Some(Widest { who, half_width });
                }
            }
        }
        self.end = match widest {
            _ if is_same => Some(End::Same),
            Some(w) if w.half_width > enough.half_width => {
                let wanted = f64::from(self.asked) * (w.half_width / enough.half_width).powi(2);
                let (least, doubled) = (self.asked + 1, self.asked.saturating_mul(2));
                let is_last = self.asked >= enough.max;
                self.asked = (wanted.ceil() as u32).clamp(least, doubled).min(enough.max);
                is_last.then_some(End::Limit(w))
            }
            widest => Some(End::Enough(widest)),
        };
    }
}

impl End {
    fn text(&self, enough: &Enough, runs: u32) -> String {
        let name = &enough.column.name;
        let asked = Percent(enough.half_width);
        match self {
            End::Same => same_runs(runs),
            End::Enough(None) => format!("{runs} runs: no job and no disk has {name} in each"),
            End::Enough(Some(w)) => format!(
                "{runs} runs: {name} is known within ±{} (95 % interval of its mean; ±{asked} was \
                 asked for), least of {}",
                Percent(w.half_width),
                w.who
            ),
            End::Limit(w) => format!(
                "{runs} runs, the limit, were not enough: {name} of {} is known within ±{} only \
                 (95 % interval of its mean; ±{asked} was asked for)",
                w.who,
                Percent(w.half_width)
            ),
        }
    }
}

/// A share in per cent, with two digits that count.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let digits = match percent {
            p if p == p.round() || p >= 10.0 => 0,
            p if p >= 1.0 => 1,
            _ => 2,
        };
        write!(f, "{percent:.digits$} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_usual() {
        let until = |text: &str| match Repeat::parse(text).expect("a repetition") {
            Repeat::Until(e) => (e.column.name, e.half_width, e.max),
            Repeat::Times(n) => panic!("{n}"),
        };
        assert_eq!(until("auto"), ("clat_p99_ns".to_owned(), 0.05, 30));
        assert_eq!(until("auto::2.5%"), ("clat_p99_ns".to_owned(), 0.025, 30));
        let iops = ("iops".to_owned(), 0.01, 100);
        assert_eq!(until("auto:iops:1:100"), iops);
        assert_eq!(Repeat::parse("7").expect("a number"), Repeat::Times(7));
        for (wrong, expected) in [
            ("0", "at least 1 run"),
            ("many", "a number of runs, or auto"),
            ("auto:iopss", "did you mean 'iops'?"),
            ("auto:iops:0%", "'0%': the width"),
            ("auto:iops:NaN", "'NaN': the width"),
            (
                "auto:iops:5%:3",
                "'3': the largest number of runs, 5 or more",
            ),
            ("auto:iops:5%:9:9", "'9' is too much"),
        ] {
            let error = Repeat::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn shares_have_two_digits() {
        let shown = [0.05, 0.0314, 0.254, 0.00123, 0.0].map(|s| Percent(s).to_string());
        assert_eq!(shown, ["5 %", "3.1 %", "25 %", "0.12 %", "0 %"]);
    }
}
