// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sides read from run directories, folders of these, and traces.

use super::Options;
use super::figures::Source;
use super::windows::{WarmUp, Windows};
use crate::record::RunRecord;
use crate::run_directory::{RunDir, is_run, is_trace, runs_in};
use crate::why::{context_of, why_and};
use blklab_analysis::findings::{Context, Report, Weight};
use blklab_analysis::lifecycle::Lifecycles;
use blklab_experiment::{Catalogue, Experiment, ExperimentError};
use blklab_formats::TraceFile;
use blklab_trace::{DigestSink, NullSink};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was measured together: the repetitions of an experiment, or a recording.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Its runs, in the order of their repetitions.
    pub runs: Vec<Run>,
    /// What its numbers are of.
    pub basis: Basis,
    /// Numbers of the runs or batches.
    pub(super) samples: Vec<Source>,
}

/// What intervals are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs: repetitions of an experiment.
    Runs,
    /// Stretches of one recording, which know nothing of how much repetitions differ.
    Batches,
}

/// A run or a recording.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its directory, or the trace.
    pub path: PathBuf,
    /// What ran; none of a recording.
    pub experiment: Option<Experiment>,
    /// Digest of its events.
    pub digest: u64,
    /// Where it becomes steady.
    pub warm_up: WarmUp,
    /// What is wrong in it: kinds of findings with their delay.
    pub findings: Vec<(&'static str, Option<u64>)>,
}

/// A kind of findings over the runs of a side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingSum {
    /// Its name.
    pub kind: &'static str,
    /// Runs that have it.
    pub runs: usize,
    /// Of so many.
    pub of: usize,
    /// Delay of all instances, mean of the runs that have it.
    pub total_ns: Option<u64>,
}

impl FindingSum {
    /// Whether half of the runs have it.
    pub(super) fn is_usual(&self) -> bool {
        2 * self.runs >= self.of
    }
}

/// A run directory and the record in it, before its events are read.
struct Found {
    dir: RunDir,
    path: PathBuf,
}

/// The sides of some run directories, folders of run directories, and traces: one for each
/// label of a folder, in the order of the matrix, and one for each of the others.
///
/// # Errors
/// If something cannot be read or is none of these.
pub fn sides(
    paths: &[PathBuf],
    catalogue: &Catalogue,
    options: &Options,
) -> Result<Vec<Side>, ExperimentError> {
    let mut sides = Vec::new();
    for path in paths {
        let prefix = (paths.len() > 1).then(|| name_of(path));
        if is_trace(path) {
            sides.push(of_trace(path)?);
        } else if is_run(path) {
            let dir = RunDir::open(path, catalogue)?;
            let found = Found {
                dir,
                path: path.clone(),
            };
            sides.push(of_runs(&name_of(path), vec![found], options)?);
        } else {
            sides.extend(of_folder(path, prefix.as_deref(), catalogue, options)?);
        }
    }
    Ok(sides)
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let name = name.split(".blktrace.").next().unwrap_or_default();
    blklab_types::one_line(name)
}

fn of_folder(
    folder: &Path,
    prefix: Option<&str>,
    catalogue: &Catalogue,
    options: &Options,
) -> Result<Vec<Side>, ExperimentError> {
    let found = runs_in(folder)?.into_iter().map(|path| {
        let dir = RunDir::open(&path, catalogue)?;
        Ok(Found { dir, path })
    });
    let mut found = found.collect::<Result<Vec<Found>, ExperimentError>>()?;
    found.sort_by_key(|f| f.dir.record.place);
    let mut labels: Vec<(String, Vec<Found>)> = Vec::new();
    for run in found {
        let label = run.dir.record.label.clone();
        match labels.iter_mut().find(|(l, _)| *l == label) {
            Some((_, runs)) => runs.push(run),
            None => labels.push((label, vec![run])),
        }
    }
    let sides = labels.into_iter().map(|(label, mut runs)| {
        runs.sort_by_key(|f| f.dir.record.repetition);
        let name = match (prefix, label.as_str()) {
            (Some(prefix), "") => prefix.to_owned(),
            (Some(prefix), label) => format!("{prefix} {label}"),
            (None, "") => name_of(folder),
            (None, label) => label.to_owned(),
        };
        of_runs(&name, runs, options)
    });
    sides.collect()
}

fn of_runs(name: &str, found: Vec<Found>, options: &Options) -> Result<Side, ExperimentError> {
    let mut runs = Vec::new();
    let mut samples = Vec::new();
    let is_alone = found.len() == 1;
    for Found { dir, path } in found {
        let RunRecord { metrics, .. } = &dir.record;
        let context = context_of(&dir.experiment)?;
        let read = read(&mut dir.events()?, context)?;
        if !options.bios {
            samples.push(Source::of_run(metrics));
        } else if is_alone {
            samples.extend(read.windows.batches(&read.report.names));
        } else {
            samples.push(read.windows.whole(&read.report.names));
        }
        runs.push(read.run(path, Some(dir.experiment)));
    }
    let basis = if options.bios && is_alone {
        Basis::Batches
    } else {
        Basis::Runs
    };
    Ok(Side {
        name: name.to_owned(),
        runs,
        basis,
        samples,
    })
}

fn of_trace(path: &Path) -> Result<Side, ExperimentError> {
    let mut input = TraceFile::open(path).map_err(|e| ExperimentError::new(e.to_string()))?;
    let read = read(&mut input, Context::default())?;
    Ok(Side {
        name: name_of(path),
        samples: read.windows.batches(&read.report.names),
        runs: vec![read.run(path.to_path_buf(), None)],
        basis: Basis::Batches,
    })
}

/// What the events of a run say.
struct Read {
    windows: Windows,
    digest: u64,
    report: Report,
}

impl Read {
    fn run(&self, path: PathBuf, experiment: Option<Experiment>) -> Run {
        let harmful = self.report.findings.iter();
        let harmful = harmful.filter(|f| f.weight < Weight::OwnChoice);
        Run {
            path,
            experiment,
            digest: self.digest,
            warm_up: self.windows.warm_up(),
            findings: harmful.map(|f| (f.kind, f.total_ns)).collect(),
        }
    }
}

fn read(input: &mut TraceFile, context: Context) -> Result<Read, ExperimentError> {
    let mut also = (
        Lifecycles::new(Windows::default()),
        DigestSink::<NullSink>::default(),
    );
    let report = why_and(input, context, &mut also);
    let report = report.map_err(|e| ExperimentError::new(e.to_string()))?;
    let (windows, _) = also.0.finish();
    Ok(Read {
        windows,
        digest: also.1.digest.value(),
        report,
    })
}

impl Side {
    pub(super) fn samples(&self) -> &[Source] {
        &self.samples
    }

    /// Whether all runs of both have the same events.
    pub(super) fn is_identical(&self, other: &Side) -> bool {
        let mut pairs = self.runs.iter().zip(&other.runs);
        self.runs.len() == other.runs.len() && pairs.all(|(a, b)| a.digest == b.digest)
    }

    /// Whether the runs of both have the same seeds, in order.
    pub(super) fn pairs_with(&self, other: &Side) -> bool {
        let seeds = |side: &Side| -> Option<Vec<u64>> {
            let seeds = side
                .runs
                .iter()
                .map(|r| r.experiment.as_ref().map(|e| e.seed));
            seeds.collect()
        };
        let seeds = [self, other].map(seeds);
        seeds[0].is_some() && seeds[0] == seeds[1]
    }

    /// Kinds of findings over the runs, those with the most delay first.
    pub(super) fn findings(&self) -> Vec<FindingSum> {
        let mut sums: Vec<FindingSum> = Vec::new();
        let of = self.runs.len();
        for run in &self.runs {
            let mut kinds: Vec<(&'static str, Option<u64>)> = Vec::new();
            for (kind, ns) in &run.findings {
                match kinds.iter_mut().find(|(k, _)| k == kind) {
                    Some((_, sum)) => *sum = sum.zip(*ns).map(|(a, b)| a.saturating_add(b)),
                    None => kinds.push((kind, *ns)),
                }
            }
            for (kind, ns) in kinds {
                let total_ns = ns.map(|ns| ns / of as u64);
                match sums.iter_mut().find(|s| s.kind == kind) {
                    Some(sum) => {
                        sum.runs += 1;
                        let both = sum.total_ns.zip(total_ns);
                        sum.total_ns = both.map(|(a, b)| a.saturating_add(b));
                    }
                    None => sums.push(FindingSum {
                        kind,
                        runs: 1,
                        of,
                        total_ns,
                    }),
                }
            }
        }
        sums.sort_by_key(|s| std::cmp::Reverse(s.total_ns));
        sums
    }

    /// What to know of its warm-up: that of the run in which it is longest.
    pub(super) fn warm_up_note(&self) -> Option<String> {
        let name = &self.name;
        let of_bios = self.basis == Basis::Batches;
        if self.runs.iter().any(|r| r.warm_up == WarmUp::Never) {
            return Some(format!(
                "{name} does not become steady: latencies drift to its end"
            ));
        }
        let longest = self.runs.iter().filter_map(|r| match r.warm_up {
            WarmUp::Until { ns, of_ns } => Some((ns, of_ns)),
            WarmUp::Never => None,
        });
        let (ns, of_ns) = longest.max()?;
        let seconds = ns as f64 / 1e9;
        if of_bios {
            return (ns > 0).then(|| format!("{name}: {seconds:.3} s of warm-up are left out"));
        }
        // fio's figures are of the whole run.
        (ns * 10 > of_ns).then(|| {
            format!(
                "{name} becomes steady after {seconds:.3} s, which its figures include: \
                 ramp_time leaves them out, or --bios"
            )
        })
    }
}
