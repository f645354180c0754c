// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sides read from run directories, folders of these, and traces.

use super::Options;
use super::figures::Source;
use super::settings::{Settings, settings};
use super::windows::{WarmUp, Windows};
use crate::parallel;
use crate::run_directory::{RunDir, is_run, is_trace, labels_in};
use crate::why::{context_of, why_and};
use blklab_analysis::findings::{Context, Report, Weight};
use blklab_analysis::lifecycle::Lifecycles;
use blklab_experiment::{Catalogue, Experiment};
use blklab_formats::snoop::Columns;
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{DigestSink, NullSink};
use blklab_types::Error;
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
    /// The columns of its rows, if they are named.
    pub(super) columns: Option<Columns>,
    /// Its settings by name; none of a recording.
    pub(super) settings: Settings,
    /// Digest of its events.
    pub digest: u64,
    /// What its reader found, and what it could not use.
    pub counts: ReadCounts,
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

/// What becomes a side, before its events are read.
struct Planned {
    name: String,
    recordings: Vec<Recording>,
}

/// Where events are.
enum Recording {
    /// In a run directory.
    Run { dir: Box<RunDir>, path: PathBuf },
    /// In a trace of whatever origin, or in rows of columns that are named.
    Trace(PathBuf, Option<Columns>),
}

/// What some run directories, folders of run directories, and traces hold: a side for each
/// label of a folder, in the order of the matrix, and one for each of the others.
pub struct Recordings {
    planned: Vec<Planned>,
    catalogue: Catalogue,
}

impl Recordings {
    /// Finds them, and reads what stands in run directories beside their events.
    ///
    /// Traces are rows of these columns, if any are named.
    ///
    /// # Errors
    /// If something cannot be read or is none of these.
    pub fn find(
        paths: &[PathBuf],
        columns: Option<&Columns>,
        catalogue: &Catalogue,
    ) -> Result<Recordings, Error> {
        let mut planned = Vec::new();
        for path in paths {
            let prefix = (paths.len() > 1).then(|| name_of(path));
            if is_trace(path) {
                planned.push(Planned {
                    name: name_of(path),
                    recordings: vec![Recording::Trace(path.clone(), columns.cloned())],
                });
            } else if columns.is_some() {
                let what = "it is a run directory, and has no rows whose columns could be named";
                return Err(Error::new(what).in_file(&path.display().to_string()));
            } else if is_run(path) {
                planned.push(Planned {
                    name: name_of(path),
                    recordings: vec![Recording::run(path.clone(), catalogue)?],
                });
            } else {
                planned.extend(sides_in(path, prefix.as_deref(), catalogue)?);
            }
        }
        Ok(Recordings {
            planned,
            catalogue: catalogue.clone(),
        })
    }

    /// How many runs and traces there are.
    pub fn count(&self) -> usize {
        self.planned.iter().map(|p| p.recordings.len()).sum()
    }

    /// Reads their events, as many at a time as there are cores, and calls `done` after each.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(self, options: &Options, done: impl Fn() + Sync) -> Result<Vec<Side>, Error> {
        let all: Vec<&Recording> = self.planned.iter().flat_map(|p| &p.recordings).collect();
        let read = parallel::map(&all, parallel::cores(), |recording| {
            let read = recording.read(&self.catalogue);
            done();
            read
        });
        let mut read = read.into_iter();
        let sides = self.planned.into_iter().map(|planned| {
            let own = read.by_ref().take(planned.recordings.len());
            let own = own.collect::<Result<Vec<Read>, Error>>()?;
            Ok(Side::new(planned, &own, options))
        });
        sides.collect()
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let name = name.split(".blktrace.").next().unwrap_or_default();
    blklab_types::one_line(name)
}

/// What a folder holds, by label.
fn sides_in(
    folder: &Path,
    prefix: Option<&str>,
    catalogue: &Catalogue,
) -> Result<Vec<Planned>, Error> {
    let labels = labels_in(folder, catalogue)?;
    let planned = labels.into_iter().map(|(label, runs)| {
        let name = match (prefix, label.as_str()) {
            (Some(prefix), "") => prefix.to_owned(),
            (Some(prefix), label) => format!("{prefix} {label}"),
            (None, "") => name_of(folder),
            (None, label) => label.to_owned(),
        };
        let recordings = runs.into_iter();
        let recordings = recordings.map(|(dir, path)| Recording::Run {
            dir: Box::new(dir),
            path,
        });
        Planned {
            name,
            recordings: recordings.collect(),
        }
    });
    Ok(planned.collect())
}

impl Recording {
    fn run(path: PathBuf, catalogue: &Catalogue) -> Result<Recording, Error> {
        let dir = Box::new(RunDir::open(&path, catalogue)?);
        Ok(Recording::Run { dir, path })
    }

    fn read(&self, catalogue: &Catalogue) -> Result<Read, Error> {
        match self {
            Recording::Run { dir, .. } => {
                let context = context_of(&dir.experiment, catalogue)?;
                let read = read(&mut dir.events()?, context)?;
                Ok(Read {
                    settings: settings(&dir.experiment, catalogue),
                    ..read
                })
            }
            Recording::Trace(path, columns) => {
                let input = TraceFile::open_with(path, columns.as_ref());
                let mut input = input.map_err(|e| Error::new(e.to_string()))?;
                read(&mut input, Context::default())
            }
        }
    }
}

impl Side {
    /// From what the recordings of a side say, in their order.
    fn new(planned: Planned, read: &[Read], options: &Options) -> Side {
        let is_alone = read.len() == 1;
        let mut runs = Vec::new();
        let mut samples = Vec::new();
        let mut basis = Basis::Runs;
        for (recording, read) in planned.recordings.into_iter().zip(read) {
            let mut columns = None;
            let names = &read.report.names;
            let (path, experiment) = match recording {
                Recording::Run { dir, path } => {
                    if !options.bios {
                        samples.push(Source::of_run(&dir.record.metrics));
                    } else if is_alone {
                        basis = Basis::Batches;
                        samples.extend(read.windows.batches(names));
                    } else {
                        samples.push(read.windows.whole(names));
                    }
                    (path, Some(dir.experiment))
                }
                Recording::Trace(path, named) => {
                    basis = Basis::Batches;
                    samples.extend(read.windows.batches(names));
                    columns = named;
                    (path, None)
                }
            };
            runs.push(Run {
                columns,
                ..read.run(path, experiment)
            });
        }
        Side {
            name: planned.name,
            runs,
            basis,
            samples,
        }
    }
}

/// What the events of a run say.
struct Read {
    windows: Windows,
    digest: u64,
    counts: ReadCounts,
    report: Report,
    settings: Settings,
}

impl Read {
    fn run(&self, path: PathBuf, experiment: Option<Experiment>) -> Run {
        let harmful = self.report.findings.iter();
        let harmful = harmful.filter(|f| f.weight < Weight::OwnChoice);
        Run {
            path,
            experiment,
            columns: None,
            settings: self.settings.clone(),
            digest: self.digest,
            counts: self.counts.clone(),
            warm_up: self.windows.warm_up(),
            findings: harmful.map(|f| (f.kind, f.total_ns)).collect(),
        }
    }
}

fn read(input: &mut TraceFile, context: Context) -> Result<Read, Error> {
    let mut also = (
        Lifecycles::new(Windows::default()),
        DigestSink::<NullSink>::default(),
    );
    let report = why_and(input, context, &mut also);
    let report = report.map_err(|e| Error::new(e.to_string()))?;
    let (windows, _) = also.0.finish();
    Ok(Read {
        windows,
        digest: also.1.digest.value(),
        counts: input.counts().clone(),
        report,
        settings: Settings::new(),
    })
}

impl Side {
    pub(super) fn samples(&self) -> &[Source] {
        &self.samples
    }

    /// Places of the samples that are not of a copy of a run before: of one with the same
    /// events, or in which everybody measured the same.
    pub(super) fn distinct(&self) -> Vec<usize> {
        if self.samples.len() != self.runs.len() {
            return (0..self.samples.len()).collect();
        }
        let is_copy = |i: usize, j: usize| {
            self.runs[i].digest == self.runs[j].digest || self.samples[i] == self.samples[j]
        };
        let is_first = |i: &usize| (0..*i).all(|j| !is_copy(*i, j));
        (0..self.runs.len()).filter(is_first).collect()
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
                 ramp_time leaves them out, or a comparison of bios"
            )
        })
    }
}
