// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why` of a folder with the runs of a matrix: the first finding of each label, what
//! all of them have, and along which axis the answer changes.

use crate::Outcome;
use crate::args::{PlainFormat, WhyArgs};
use crate::output::{fold, hanging};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab::findings::{Report, Weight, time_text};
use blklab::parallel;
use blklab::run_directory::{OfLabel, RunDir, labels_in};
use blklab::scheduler::Schedulers;
use blklab::trace::NullSink;
use blklab::verdict::{Side, SideRun, Verdict, judge};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// What is called a label's finding where there is none.
const NONE: &str = "none";

/// A label and what was found in its first run.
#[derive(Serialize)]
struct Cell {
    label: String,
    repetitions: usize,
    /// The figure that matrices are judged by, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Kinds of what was found, the worst first.
    kinds: Vec<&'static str>,
    /// The first in words, or why there is none.
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_ns: Option<u64>,
}

/// How first findings spread over the values of an axis.
#[derive(Serialize)]
struct Axis {
    values: Vec<OfValue>,
}

#[derive(Serialize)]
struct OfValue {
    value: String,
    /// First findings, and in how many cells each.
    firsts: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<String>,
    cells: Vec<Cell>,
    common: Vec<&'static str>,
    axes: Vec<Axis>,
}

pub(super) fn why(a: &WhyArgs, schedulers: Schedulers) -> Result<Outcome> {
    if !a.what_if.is_empty() {
        bail!(
            "--what-if: of one run; name one of the folders in {}",
            a.file.display()
        );
    }
    if a.stack.says_something() {
        bail!("--context, --kernel, --sched, --set: each of the runs says its own");
    }
    if let Some(option) = a.of_experiments() {
        bail!("{option}: only for an experiment that runs, not for runs that are there");
    }
    let catalogue = blklab::targets::catalogue_with(schedulers);
    let labels = labels_in(&a.file, &catalogue)?;
    let progress = Progress::new(labels.len());
    let read = parallel::map(&labels, parallel::cores(), |(_, runs)| {
        let report = examined(&runs[0].0, &catalogue);
        progress.step();
        report
    });
    progress.finish();
    let reports = read.into_iter().collect::<Result<Vec<Report>>>()?;
    let answer = answer(&labels, &reports);
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => show(&mut out, &answer)?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn examined(run: &RunDir, catalogue: &blklab::experiment::Catalogue) -> Result<Report> {
    let context = blklab::why::context_of(&run.experiment, catalogue)?;
    let mut events = run.events()?;
    Ok(blklab::why::why_and(&mut events, context, &mut NullSink)?)
}

fn answer(labels: &[OfLabel], reports: &[Report]) -> Answer {
    let sides = labels.iter().map(|(label, runs)| Side {
        label: label.clone(),
        runs: runs
            .iter()
            .map(|(run, _)| SideRun::of_directory(run))
            .collect(),
    });
    let verdict = judge(&sides.collect::<Vec<Side>>(), None).ok();
    let cells: Vec<Cell> = labels
        .iter()
        .zip(reports)
        .enumerate()
        .map(|(i, (of_label, report))| cell(of_label, report, verdict.as_ref().map(|v| (v, i))))
        .collect();
    let first = cells.first();
    let everywhere = |kind: &&&str| cells.iter().all(|cell| cell.kinds.contains(*kind));
    let common = first.map_or(Vec::new(), |cell| {
        cell.kinds.iter().filter(everywhere).copied().collect()
    });
    Answer {
        figure: verdict.map(|v| v.figure),
        common,
        axes: axes(&cells),
        cells,
    }
}

fn cell((label, runs): &OfLabel, report: &Report, verdict: Option<(&Verdict, usize)>) -> Cell {
    let complaints = report.findings.iter().filter(|f| f.weight < Weight::Note);
    let mut kinds: Vec<&'static str> = Vec::new();
    for finding in complaints.clone() {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    let first = complaints.clone().next();
    Cell {
        label: if label.is_empty() {
            runs[0].0.experiment.scheduler.clone()
        } else {
            label.clone()
        },
        repetitions: runs.len(),
        value: verdict.map(|(v, i)| v.rows[i].text.clone()),
        kinds,
        what: first.map_or_else(|| report.verdict.sentence.clone(), |f| f.what.clone()),
        total_ns: first.and_then(|f| f.total_ns),
    }
}

/// The places of words in labels, with what is found first at each value; only those along
/// which that changes.
fn axes(cells: &[Cell]) -> Vec<Axis> {
    let words: Vec<Vec<&str>> = cells.iter().map(|c| c.label.split(' ').collect()).collect();
    let Some(length) = words.first().map(Vec::len) else {
        return Vec::new();
    };
    if words.iter().any(|w| w.len() != length) {
        return Vec::new();
    }
    let axis = |place: usize| {
        let mut values: Vec<OfValue> = Vec::new();
        for (cell, words) in cells.iter().zip(&words) {
            let first = cell.kinds.first().copied().unwrap_or(NONE);
            let at = values.iter().position(|v| v.value == words[place]);
            let at = at.unwrap_or_else(|| {
                values.push(OfValue {
                    value: words[place].to_owned(),
                    firsts: BTreeMap::new(),
                });
                values.len() - 1
            });
            *values[at].firsts.entry(first).or_default() += 1;
        }
        Axis { values }
    };
    let changes = |axis: &Axis| axis.values.windows(2).any(|w| w[0].firsts != w[1].firsts);
    (0..length).map(axis).filter(changes).collect()
}

fn show(out: &mut impl Write, answer: &Answer) -> Result<()> {
    let number = answer.cells.len();
    writeln!(
        out,
        "{number} experiments; of repetitions the first was examined"
    )?;
    if let Some(figure) = &answer.figure {
        hanging(out, "", 0, &format!("values: {figure}"))?;
    }
    for cell in &answer.cells {
        writeln!(out)?;
        let kind = cell.kinds.first().copied().unwrap_or(NONE);
        let value = cell
            .value
            .as_ref()
            .map_or(String::new(), |v| format!("{v}; "));
        let total = cell
            .total_ns
            .map_or(String::new(), |ns| format!(", {} in all", time_text(ns)));
        hanging(out, "", 2, &format!("{}: {value}{kind}{total}", cell.label))?;
        hanging(out, "  ", 2, &cell.what)?;
        if cell.kinds.len() > 1 {
            hanging(
                out,
                "  ",
                2,
                &format!("then {}", cell.kinds[1..].join(", ")),
            )?;
        }
    }
    writeln!(out)?;
    let common = if answer.common.is_empty() {
        "nothing".to_owned()
    } else {
        answer.common.join(", ")
    };
    hanging(out, "", 2, &format!("In all of them: {common}."))?;
    for axis in &answer.axes {
        writeln!(out, "What comes first differs by:")?;
        for value in &axis.values {
            let of: usize = value.firsts.values().sum();
            let firsts = value.firsts.iter();
            let firsts = firsts.map(|(kind, n)| format!("{kind} in {n} of {of}"));
            let text = firsts.collect::<Vec<_>>().join(", ");
            for line in fold(&format!("{}: {text}", value.value), 76) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    if answer.axes.is_empty() && number > 1 {
        writeln!(out, "What comes first does not differ by a setting.")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(label: &str, kinds: &[&'static str]) -> Cell {
        Cell {
            label: label.to_owned(),
            repetitions: 1,
            value: None,
            kinds: kinds.to_vec(),
            what: String::new(),
            total_ns: None,
        }
    }

    #[test]
    fn an_axis_is_named_if_the_answer_changes_along_it() {
        let cells = [
            cell("cfq nr=4", &["idling"]),
            cell("cfq nr=8", &["idling"]),
            cell("noop nr=4", &["deep-queue", "idling"]),
            cell("noop nr=8", &[]),
        ];
        let axes = axes(&cells);
        assert_eq!(axes.len(), 2);
        let cfq = &axes[0].values[0];
        assert_eq!((cfq.value.as_str(), cfq.firsts["idling"]), ("cfq", 2));
        assert_eq!(axes[0].values[1].firsts[NONE], 1);
        let same = [cell("a x", &["idling"]), cell("b x", &["idling"])];
        assert!(super::axes(&same).is_empty());
    }
}
