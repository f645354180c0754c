// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and traces compared: what changed, by how much, with which certainty, and what
//! was different about the experiments.
//!
//! A *side* is what was measured together: the repetitions of an experiment, or a trace.
//! [`Recordings`] finds and reads them in run directories, folders of these, and traces;
//! [`compare`] compares one with another. Numbers, intervals and verdicts are those of
//! [`crate::statistics`].

mod differences;
mod events;
pub(crate) mod figures;
mod read;
mod settings;
#[cfg(test)]
mod tests;
mod widths;
mod windows;

pub use crate::metric::Aim;
pub use crate::statistics::{CONFIDENCE, Change, Verdict};
pub use differences::Difference;
pub use events::FirstDifference;
pub use figures::Column;
pub use read::{Basis, FindingSum, Recordings, Run, Side};
pub use widths::widths;
pub use windows::WarmUp;

use crate::statistics::{Figure, adjust};
use blklab_fiostat::LatencyHist;
use blklab_types::Error;
use figures::{RowFigures, Source, WhatOf};
use serde::Serialize;
use std::path::PathBuf;

/// What is compared.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bios of the trace, from Q to C and after the warm-up, instead of the calls of jobs.
    bios: bool,
    /// Metrics; the usual ones if it is empty.
    columns: Vec<Column>,
}

impl Options {
    /// To compare these run directories, folders of them and traces: by bios if that is wished,
    /// or where one is a trace, which has no jobs. Metrics are named by their columns; none
    /// stands for the usual ones.
    ///
    /// # Errors
    /// If a metric is none. Names those that there are.
    pub fn new(paths: &[PathBuf], bios: bool, metrics: &[String]) -> Result<Options, Error> {
        let bios = bios || paths.iter().any(|path| !path.is_dir());
        let columns = metrics.iter().map(|name| Column::named(name, bios));
        Ok(Options {
            bios,
            columns: columns.collect::<Result<_, _>>()?,
        })
    }
}

/// One side compared with another.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Name of the side that is compared with.
    pub before: String,
    /// Name of the other.
    pub after: String,
    /// Runs of each, or batches of a recording; without copies.
    pub runs: [usize; 2],
    /// Runs that were left out since they are copies of another of their side: the same events, or the same
    /// figures of everybody.
    pub copies: [usize; 2],
    /// What these are.
    pub basis: Basis,
    /// Whether runs of the same seed were compared in pairs.
    pub paired: bool,
    /// Whether all event streams are the same: then nothing else is said.
    pub identical: bool,
    /// Settings that differ.
    pub settings: Vec<Difference>,
    /// Who, and how their numbers changed.
    pub rows: Vec<RowChange>,
    /// Who is on one side only.
    pub only: [Vec<String>; 2],
    /// Findings of the first side that the second does not have.
    pub gone: Vec<FindingSum>,
    /// Findings of the second side that the first does not have.
    pub came: Vec<FindingSum>,
    /// Where the event streams of the first runs part.
    pub first_difference: Option<FirstDifference>,
    /// Warm-ups: what was left out, or should be.
    pub warm_up: Vec<String>,
}

/// How the numbers of some jobs, or of a process's bios, changed.
#[derive(Clone, Debug, Serialize)]
pub struct RowChange {
    /// The jobs, the process, or the disk.
    pub who: String,
    /// read, write, trim, sync; empty for the disk.
    pub direction: String,
    /// Its metrics.
    pub changes: Vec<MetricChange>,
    /// Latencies of both sides: value in ns and count, by fio's bins.
    pub bins_ns: [Vec<(u64, u64)>; 2],
}

/// How a metric changed.
#[derive(Clone, Debug, Serialize)]
pub struct MetricChange {
    /// Its column, with unit.
    pub metric: String,
    /// In words.
    pub title: &'static str,
    /// Which way it is better.
    pub aim: Aim,
    /// By how much.
    #[serde(flatten)]
    pub change: Change,
    /// What that comes to.
    pub verdict: Verdict,
}

/// Compares `after` with `before`.
///
/// # Errors
/// If events of a run cannot be read.
pub fn compare(before: &Side, after: &Side, options: &Options) -> Result<Comparison, Error> {
    let sides = [before, after];
    let identical = before.is_identical(after);
    // A copy says nothing about the noise.
    let kept = sides.map(Side::distinct);
    let copies = [0, 1].map(|i| sides[i].samples().len() - kept[i].len());
    let samples = [0, 1].map(|i| -> Vec<Source> {
        let places = kept[i].iter();
        places
            .map(|&place| sides[i].samples()[place].clone())
            .collect()
    });
    let samples = [0, 1].map(|i| samples[i].as_slice());
    let basis = match sides.map(|s| s.basis) {
        [Basis::Batches, _] | [_, Basis::Batches] => Basis::Batches,
        _ => Basis::Runs,
    };
    let paired = basis == Basis::Runs && before.pairs_with(after) && kept[0] == kept[1];
    let mut comparison = Comparison {
        before: before.name.clone(),
        after: after.name.clone(),
        runs: samples.map(<[_]>::len),
        copies,
        basis,
        paired,
        identical,
        settings: differences::between(before, after),
        rows: Vec::new(),
        only: [Vec::new(), Vec::new()],
        gone: Vec::new(),
        came: Vec::new(),
        first_difference: None,
        warm_up: Vec::new(),
    };
    if identical {
        return Ok(comparison);
    }
    let keys = samples.map(Source::keys);
    for side in [0, 1] {
        let other = &keys[1 - side];
        let only = keys[side].iter().filter(|key| !other.contains(key));
        comparison.only[side] = only.map(WhatOf::to_string).collect();
    }
    comparison.rows = rows(samples, paired, options);
    let held = |a: &Side, b: &Side| -> Vec<FindingSum> {
        let mut kinds = a.findings();
        let others = b.findings();
        kinds.retain(|f| {
            let there = others.iter().find(|o| o.kind == f.kind);
            f.is_usual() && !there.is_some_and(FindingSum::is_usual)
        });
        kinds
    };
    comparison.gone = held(before, after);
    comparison.came = held(after, before);
    comparison.first_difference = events::first_difference(before, after)?;
    comparison.warm_up = sides.iter().filter_map(|s| s.warm_up_note()).collect();
    Ok(comparison)
}

/// Who is on both sides, with verdicts that are corrected for all of them.
fn rows(samples: [&[Source]; 2], paired: bool, options: &Options) -> Vec<RowChange> {
    let [before, after] = samples.map(Source::keys);
    let mut rows = Vec::new();
    for key in before.iter().filter(|key| after.contains(key)) {
        rows.extend(row(key, samples, paired, options));
    }
    correct(&mut rows);
    rows
}

fn row(
    key: &WhatOf,
    samples: [&[Source]; 2],
    paired: bool,
    options: &Options,
) -> Option<RowChange> {
    let rows = samples.map(|side| -> Vec<&RowFigures> {
        side.iter().filter_map(|sample| sample.row(key)).collect()
    });
    // A run without I/O of this kind would break the pairs.
    let paired = paired && rows[0].len() == rows[1].len() && rows[0].len() == samples[0].len();
    let mut changes = Vec::new();
    for column in figures::columns(key, options) {
        if let (Some(before), Some(after)) = (column.over(&rows[0]), column.over(&rows[1])) {
            changes.push(changed(&column, &before, &after, paired));
        }
    }
    let bins = |side: &[&RowFigures]| {
        let mut sum = LatencyHist::default();
        side.iter().for_each(|row| sum.merge(&row.latencies));
        sum.bins().collect::<Vec<_>>()
    };
    (!changes.is_empty()).then(|| RowChange {
        who: key.who.clone(),
        direction: key.direction.clone(),
        changes,
        bins_ns: [bins(&rows[0]), bins(&rows[1])],
    })
}

fn changed(column: &Column, before: &Figure, after: &Figure, paired: bool) -> MetricChange {
    let change = Change::between(before, after, paired);
    MetricChange {
        metric: column.name.clone(),
        title: column.metric.title,
        aim: column.metric.aim,
        change,
        verdict: change.verdict(column.metric.aim),
    }
}

/// Corrects the verdicts for the number of comparisons.
fn correct(rows: &mut [RowChange]) {
    let all = rows.iter_mut().flat_map(|r| &mut r.changes);
    adjust(all.map(|m| &mut m.change));
    for m in rows.iter_mut().flat_map(|r| &mut r.changes) {
        m.verdict = m.change.verdict(m.aim);
    }
}
