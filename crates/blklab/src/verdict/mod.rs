// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a matrix comes to: which of its experiments is best for one figure of one job, by how
//! much, how sure that is, and what other jobs lose by it.
//!
//! A [`Side`] is what was run of one label: its repetitions. Runs of a side that are the same
//! run (the same events, or the same figures of every job) count as one, since a copy says
//! nothing about the noise. A percentile
//! is that of the calls of all runs of a side together; intervals and their verdicts are those
//! of [`crate::statistics`], as for [`crate::compare`].

mod amount;
mod measured;
mod words;

pub use amount::MUCH_LESS;
pub use measured::{Application, Measured};

use crate::compare::figures::Column;
use crate::figure::{Calling as _, Calls, Figure};
use crate::matrix::Cell;
use crate::record;
use crate::run::RunOutput;
use crate::run_directory::RunDir;
use crate::same::repetitions;
use crate::statistics::{Change, Figure as Values, Verdict as Sureness, adjust};
use blklab_types::{Error, no_such};
use serde::Serialize;

/// What was run of one label.
#[derive(Clone, Debug)]
pub struct Side {
    /// What varied.
    pub label: String,
    /// Its repetitions.
    pub runs: Vec<SideRun>,
}

/// A run of a side.
#[derive(Clone, Debug)]
pub struct SideRun {
    /// What its jobs got.
    pub measured: Measured,
    /// Its seed: runs of the same seed are compared in pairs.
    pub seed: u64,
    /// Digest of its events, by which copies are known.
    pub digest: u64,
}

/// What a matrix comes to.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What is judged: `sync p99.9 of wal`.
    pub figure: String,
    /// Column of the metric, with its unit.
    pub metric: String,
    /// A row for each label, in the order given.
    pub rows: Vec<Row>,
    /// Place of the best in `rows`; none if all are the same, or if the first one is so by doing
    /// much less.
    pub best: Option<usize>,
    /// Place of the one whose figure is the best, whatever it did; none if all are the same.
    pub first: Option<usize>,
    /// Place of the one beside which the first did much less in the same time.
    pub did_more: Option<usize>,
    /// Figures of other jobs: `bandwidth of backup`; [`Row::others`] has their values.
    pub others: Vec<String>,
    /// Who is best, and by how much.
    pub answer: String,
    /// How sure that is.
    pub sure: String,
    /// What other jobs lose.
    pub cost: String,
}

/// A label of a matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What varied.
    pub label: String,
    /// Its repetitions.
    pub repetitions: usize,
    /// Those that are not copies of one before.
    pub runs: usize,
    /// The figure, in the metric's unit; none if the job has no such calls there.
    pub value: Option<f64>,
    /// The same for people.
    pub text: String,
    /// The 95 % interval of the value; none of one run, or if the runs have the same value.
    pub interval: Option<[f64; 2]>,
    /// The same for people; why there is none.
    pub interval_text: String,
    /// Such calls in each run; none if there are none.
    pub calls: Option<f64>,
    /// The same in a second; none of several jobs together, which do not all run at once.
    pub calls_per_s: Option<f64>,
    /// How many times better the first is.
    pub behind: Option<f64>,
    /// What the first is to it.
    pub verdict: Option<Sureness>,
    /// Figures of other jobs, by the places of [`Verdict::others`].
    pub others: Vec<Other>,
}

/// A figure of another job.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    /// In the unit of its metric; none if there are no such calls.
    pub value: Option<f64>,
    /// The same for people.
    pub text: String,
    /// Its 95 % interval for people, or why there is none.
    pub interval_text: String,
}

/// Other jobs whose figures are given.
const OTHERS_MAX: usize = 8;

impl Side {
    /// Places of the runs that are not copies of one before.
    fn distinct(&self) -> Vec<usize> {
        let is_copy = |a: &SideRun, b: &SideRun| a.digest == b.digest || a.measured == b.measured;
        let is_first = |i: &usize| {
            let before = &self.runs[..*i];
            before.iter().all(|run| !is_copy(run, &self.runs[*i]))
        };
        (0..self.runs.len()).filter(is_first).collect()
    }

    /// A figure over the runs that differ; none if one of them has none.
    fn values(&self, figure: &Figure) -> Option<Values> {
        let runs = self.distinct().into_iter().map(|i| &self.runs[i].measured);
        let rows = runs.map(|run| figure.row(&run.rows).map(measured::Calls::figures));
        let rows: Vec<_> = rows.collect::<Option<_>>()?;
        Column::new(figure.metric).over(&rows)
    }

    /// The mean of a number of the calls that a figure is about, over the runs that differ.
    fn mean(&self, figure: &Figure, number: fn(&measured::Calls) -> Option<f64>) -> Option<f64> {
        let runs = self.distinct().into_iter().map(|i| &self.runs[i].measured);
        let numbers = runs.map(|run| number(figure.row(&run.rows)?));
        let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
        let nr = numbers.len();
        (nr > 0).then(|| numbers.iter().sum::<f64>() / nr as f64)
    }

    /// A figure of another job.
    fn other(&self, figure: &Figure) -> Other {
        let values = self.values(figure);
        let value = values.as_ref().map(Values::value);
        let interval = values.as_ref().and_then(spread);
        let runs = self.distinct().len();
        Other {
            value,
            text: value.map_or("none".to_owned(), |v| figure.text(v)),
            interval_text: words::interval(figure, self.runs.len(), runs, interval),
        }
    }

    /// Whether runs of both have the same seeds, in order.
    fn pairs_with(&self, other: &Side) -> bool {
        let seeds = |side: &Side| -> Vec<u64> {
            let places = side.distinct().into_iter();
            places.map(|i| side.runs[i].seed).collect()
        };
        seeds(self) == seeds(other)
    }

    /// The change of a figure from this side to another; none if one has none.
    fn change(&self, other: &Side, figure: &Figure) -> Option<Change> {
        let (before, after) = (self.values(figure)?, other.values(figure)?);
        Some(Change::between(&before, &after, self.pairs_with(other)))
    }
}

/// The interval of a figure, if its runs differ.
fn spread(values: &Values) -> Option<[f64; 2]> {
    values.interval().filter(|[low, high]| low < high)
}

/// The sides of the runs of one experiment file.
pub fn sides(runs: &[(&Cell, &RunOutput)]) -> Vec<Side> {
    let sides = repetitions(runs).map(|of_label| Side {
        label: of_label[0].0.name_in_file(),
        runs: of_label
            .iter()
            .map(|(cell, run)| SideRun {
                measured: Measured::new(&record::metrics(run)),
                seed: cell.experiment.seed,
                digest: run.digest.value(),
            })
            .collect(),
    });
    sides.collect()
}

impl SideRun {
    /// Of a run directory.
    pub fn of_directory(run: &RunDir) -> SideRun {
        SideRun {
            measured: Measured::new(&run.record.metrics),
            seed: run.record.seed,
            digest: u64::from_str_radix(&run.record.digest, 16).unwrap_or_default(),
        }
    }
}

/// What the matrix comes to for what was asked, or for the 99.9th percentile of the job that
/// is worst off, of its syncs where jobs sync.
///
/// # Errors
/// If there are no such calls.
pub fn judge(sides: &[Side], asked: Option<&Figure>) -> Result<Verdict, Error> {
    let figure = settled(sides, asked)?;
    let values: Vec<Option<Values>> = sides.iter().map(|s| s.values(&figure)).collect();
    let number = |i: usize| values[i].as_ref().map(Values::value);
    let known: Vec<usize> = (0..sides.len()).filter(|i| number(*i).is_some()).collect();
    let worse = |a: &usize, b: &usize| {
        let value = |i: &usize| number(*i).unwrap_or_default();
        figure.worse(value(a), value(b))
    };
    let best = known.iter().copied().min_by(|a, b| worse(a, b));
    let all_same = known
        .windows(2)
        .all(|pair| number(pair[0]) == number(pair[1]));
    let best = best.filter(|_| !(all_same && known.len() > 1));
    let mut changes: Vec<Option<Change>> = (0..sides.len())
        .map(|i| {
            let best = best.filter(|best| *best != i)?;
            sides[i].change(&sides[best], &figure)
        })
        .collect();
    adjust(changes.iter_mut().flatten());
    let others = others(sides, &figure);
    let rows = sides.iter().enumerate().map(|(i, side)| {
        let change = changes[i];
        let value = number(i);
        let interval = values[i].as_ref().and_then(spread);
        let runs = side.distinct().len();
        Row {
            label: side.label.clone(),
            repetitions: side.runs.len(),
            runs,
            value,
            text: value.map_or("none".to_owned(), |v| figure.text(v)),
            interval,
            interval_text: words::interval(&figure, side.runs.len(), runs, interval),
            calls: side.mean(&figure, measured::Calls::count),
            calls_per_s: side.mean(&figure, measured::Calls::per_s),
            behind: best
                .and_then(number)
                .zip(value)
                .map(|(best, own)| figure.gain(own, best)),
            verdict: change.map(|c| c.verdict(figure.metric.aim)),
            others: others.iter().map(|other| side.other(other)).collect(),
        }
    });
    let rows: Vec<Row> = rows.collect();
    let losses = best.map(|best| losses(sides, best, &others));
    let did_more = best.and_then(|best| amount::did_more(&figure, &rows, best));
    Ok(Verdict {
        answer: words::answer(&figure, &rows, best, did_more),
        sure: words::sure(&figure, &rows, best, &changes),
        cost: words::cost(losses.as_deref(), !others.is_empty()),
        figure: figure.to_string(),
        metric: figure.metric.column(),
        others: others.iter().map(Figure::to_string).collect(),
        rows,
        best: best.filter(|_| did_more.is_none()),
        first: best,
        did_more,
    })
}

/// The figure that is judged.
fn settled(sides: &[Side], asked: Option<&Figure>) -> Result<Figure, Error> {
    let firsts = || sides.iter().filter_map(|side| side.runs.first());
    let worst = |found: Vec<(Figure, f64)>| {
        let found = found.into_iter();
        let worst = found.max_by(|a, b| a.0.worse(a.1, b.1));
        worst.map(|(figure, _)| figure)
    };
    let with_value = |run: &SideRun, figure: Option<Figure>| {
        let figure = figure?;
        let value = figure.value(&run.measured.rows)?;
        Some((figure, value))
    };
    let found = match asked {
        Some(figure) if figure.job.is_some() => {
            check_job(sides, figure)?;
            let has = firsts().any(|run| figure.value(&run.measured.rows).is_some());
            if !has {
                return Err(Error::new(format!("{figure}: it makes no such calls")));
            }
            Some(figure.clone())
        }
        Some(figure) => worst(
            firsts()
                .filter_map(|run| {
                    let found = figure.of_worst(figure.calls, &run.measured.rows);
                    with_value(run, found)
                })
                .collect(),
        ),
        None => {
            let found = firsts().filter_map(|run| {
                let found = Figure::usual(&run.measured.rows);
                with_value(run, found)
            });
            let mut found: Vec<(Figure, f64)> = found.collect();
            let is_sync = |f: &Figure| f.calls == Calls::Only("sync");
            if found.iter().any(|(figure, _)| is_sync(figure)) {
                found.retain(|(figure, _)| is_sync(figure));
            }
            worst(found)
        }
    };
    found.ok_or_else(|| Error::new("no job has such calls"))
}

fn check_job(sides: &[Side], figure: &Figure) -> Result<(), Error> {
    let Some(job) = &figure.job else {
        return Ok(());
    };
    let all = sides.iter().flat_map(|side| &side.runs);
    let rows: Vec<&measured::Calls> = all.flat_map(|run| &run.measured.rows).collect();
    if rows.iter().any(|row| row.is_of(job)) {
        return Ok(());
    }
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row.job()).collect();
    names.sort_unstable();
    names.dedup();
    Err(Error::new(no_such("job", job, &names)))
}

/// What other jobs have of the device and how long their calls take, those with most bytes
/// first.
fn others(sides: &[Side], figure: &Figure) -> Vec<Figure> {
    let rows = || {
        let runs = sides.iter().filter_map(|side| side.runs.first());
        runs.flat_map(|run| &run.measured.rows)
    };
    let own = figure.job.as_deref().unwrap_or_default();
    // The family of a job is not another one.
    let is_own = |job: &str| {
        let is_part_of = rows().any(|row| row.is_of(own) && row.job().is_none())
            && job.contains('…')
            && crate::summary::jobs::stem(job.split('…').next().unwrap_or_default())
                == crate::summary::jobs::stem(own);
        job == own || is_part_of
    };
    let mut jobs: Vec<(u64, &str)> = Vec::new();
    for row in rows() {
        let Some(job) = row.job().filter(|job| !is_own(job)) else {
            continue;
        };
        let bytes = crate::metric::named("bytes").and_then(|m| row.value(m));
        let bytes = bytes.unwrap_or(0.0) as u64;
        match jobs.iter_mut().find(|(_, name)| *name == job) {
            Some((sum, _)) => *sum += bytes,
            None => jobs.push((bytes, job)),
        }
    }
    jobs.sort_by_key(|(bytes, name)| (std::cmp::Reverse(*bytes), *name));
    jobs.truncate(OTHERS_MAX);
    let figures = jobs.iter().flat_map(|(_, job)| {
        ["bandwidth", "clat_p999"].map(|key| Figure::of_job(key, Calls::Main, job))
    });
    let has_values = |f: &Figure| sides.iter().any(|side| side.values(f).is_some());
    figures.filter(has_values).collect()
}

/// What a job loses under the best, beside where it is best off itself.
struct Loss {
    figure: Figure,
    under_best: Option<f64>,
    at_most: f64,
    label: String,
    /// How many times better it is there.
    times: f64,
    /// Whether the runs do not tell it from none.
    is_noise: bool,
}

/// A loss that is not worth a word.
const SMALL: f64 = 1.05;

/// What others lose, the most first.
fn losses(sides: &[Side], best: usize, others: &[Figure]) -> Vec<Loss> {
    let loss = |figure: &Figure| {
        let known = sides.iter().filter_map(|side| {
            let value = side.values(figure)?.value();
            Some((side, value))
        });
        let (side, at_most) = known.min_by(|a, b| figure.worse(a.1, b.1))?;
        let under_best = sides[best].values(figure).map(|v| v.value());
        let times = under_best.map_or(f64::INFINITY, |own| figure.gain(own, at_most));
        let change = side.change(&sides[best], figure);
        let is_noise = change.map(|c| c.verdict(figure.metric.aim)) == Some(Sureness::NoDifference);
        (times > SMALL).then(|| Loss {
            figure: figure.clone(),
            under_best,
            at_most,
            label: side.label.clone(),
            times,
            is_noise,
        })
    };
    let mut losses: Vec<Loss> = others.iter().filter_map(loss).collect();
    losses.sort_by(|a, b| b.times.total_cmp(&a.times));
    losses
}

#[cfg(test)]
mod tests;
