// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab report`.

use crate::Outcome;
use crate::again::Known;
use crate::args::{ReportArgs, ReportFormat};
use crate::guard::{self, Guard, Place};
use crate::output::Output;
use crate::progress::{Progress, Watcher};
use anyhow::{Context as _, Result, bail};
use blklab::explain::{Request, Survey};
use blklab::figure::Figure;
use blklab::outputs::check_folder;
use blklab::parallel;
use blklab::run_directory::{OfLabel, RunDir, is_run, is_trace, labels_in};
use blklab::scheduler::Schedulers;
use blklab::trace::{ReadCounts, TraceFile};
use blklab::verdict::{Side, SideRun, Verdict, judge};
use blklab_report::member::{self, Asked};
use blklab_report::model::Member;
use blklab_report::reproduced::{self, Reproduced};
use blklab_report::{MEMBERS_MAX, Report, charts, html, png, shown_max};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Requests of a re-enactment that are given.
const WORST: usize = 10;

pub(crate) fn report(a: &ReportArgs, schedulers: Schedulers) -> Result<Outcome> {
    let mut guard = Guard::new(a.inputs.iter().chain(&a.stack.context));
    for (dir, option) in [(&a.svg, "--svg"), (&a.png, "--png")] {
        if let Some(dir) = dir {
            check_folder(dir).context(option)?;
        }
    }
    if let Some(reproduced) = reproduced(&a.inputs)? {
        return of_reproduced(a, &reproduced, &mut guard);
    }
    let figure = a.figure.as_deref().map(Figure::parse).transpose();
    let figure = figure.map_err(|err| err.in_file("--for"))?;
    let inputs = inputs(&a.inputs, schedulers)?;
    let labels = labels(&inputs);
    let verdict = verdict(&inputs, &labels, figure.as_ref())?;
    let mut out = Output::open(&mut guard, a.output.as_deref())?;
    let report = Report::judged(members(&inputs, &labels, a, schedulers)?, verdict);
    if write_charts(a, &mut guard, || charts::all(&report))? && a.output.is_none() {
        return Ok(Outcome::Done);
    }
    match a.output_format {
        ReportFormat::Html => out.write_all(html::page(&report)?.as_bytes())?,
        ReportFormat::Json => writeln!(out, "{}", report.to_json())?,
    }
    out.commit()?;
    Ok(Outcome::Done)
}

/// What is to be shown of each, read by as many at a time as there are cores.
fn members(
    inputs: &[Input],
    labels: &[String],
    a: &ReportArgs,
    schedulers: Schedulers,
) -> Result<Vec<Member>> {
    let shown = shown_max(inputs.len());
    let labelled: Vec<(&Input, &String)> = inputs.iter().zip(labels).collect();
    let progress = (inputs.len() > 1).then(|| Progress::new(inputs.len()));
    let read = parallel::map(&labelled, parallel::cores(), |(input, label)| {
        let read = input.read(label, shown, a, schedulers, progress.is_none());
        progress.iter().for_each(Progress::step);
        read
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let mut members = Vec::new();
    for (input, read) in inputs.iter().zip(read) {
        let (member, counts) = read?;
        crate::source::report_damage(&input.path, &counts);
        members.push(member);
    }
    Ok(members)
}

/// The result of `blklab reproduce`, if that is what is named: no trace begins as JSON does.
fn reproduced(paths: &[PathBuf]) -> Result<Option<Reproduced>> {
    let is_json = |path: &PathBuf| {
        let mut first = [0; 16];
        let file = std::fs::File::open(path).ok().filter(|_| path.is_file());
        let length = file.and_then(|mut f| f.read(&mut first).ok());
        let text = &first[..length.unwrap_or(0)];
        text.trim_ascii_start().starts_with(b"{")
    };
    let Some(path) = paths.iter().find(|path| is_json(path)) else {
        return Ok(None);
    };
    let shown = path.display();
    if paths.len() > 1 {
        bail!("{shown}: a result of blklab reproduce has a page of its own: name it alone");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    match Reproduced::read(&text) {
        Ok(reproduced) => Ok(Some(reproduced)),
        Err(e) => bail!(
            "{shown}:{}: JSON, but not what blklab reproduce --output-format json writes: {e}",
            e.line()
        ),
    }
}

fn of_reproduced(a: &ReportArgs, reproduced: &Reproduced, guard: &mut Guard) -> Result<Outcome> {
    if a.figure.is_some() {
        bail!("--for: a result of blklab reproduce is judged by what was published");
    }
    if a.stack.says_something() {
        bail!("--context, --kernel, --sched, --set: a result of blklab reproduce says its own");
    }
    let mut out = Output::open(guard, a.output.as_deref())?;
    if write_charts(a, guard, || reproduced.charts())? && a.output.is_none() {
        return Ok(Outcome::Done);
    }
    match a.output_format {
        ReportFormat::Html => out.write_all(reproduced::page(reproduced).as_bytes())?,
        ReportFormat::Json => writeln!(out, "{}", reproduced.to_json())?,
    }
    out.commit()?;
    Ok(Outcome::Done)
}

/// Writes each chart into the folders that were asked for; whether there is one.
fn write_charts(
    a: &ReportArgs,
    guard: &mut Guard,
    charts: impl Fn() -> Vec<(String, String)>,
) -> Result<bool> {
    if a.svg.is_none() && a.png.is_none() {
        return Ok(false);
    }
    let charts = charts();
    let mut files: Vec<(Place, Vec<u8>)> = Vec::new();
    for (name, svg) in charts {
        if let Some(dir) = &a.png {
            let png = png(&svg).map_err(|e| anyhow::anyhow!("--png {name}: {e}"))?;
            let place = guard.writes_below(dir, format!("{name}.png"), "--png")?;
            files.push((place, png));
        }
        if let Some(dir) = &a.svg {
            let place = guard.writes_below(dir, format!("{name}.svg"), "--svg")?;
            files.push((place, svg.into_bytes()));
        }
    }
    guard::write_all(&files)?;
    Ok(true)
}

/// What a page is about.
struct Input {
    /// Of repetitions the first.
    path: PathBuf,
    is_run: bool,
    /// What varied, in a folder of runs.
    label: Option<String>,
    /// The experiment's id, and what its repetitions came to; of a trace none.
    runs: Vec<SideRun>,
    id: String,
}

/// What is named on the command line, folders of runs by their labels.
fn inputs(paths: &[PathBuf], schedulers: Schedulers) -> Result<Vec<Input>> {
    let catalogue = blklab::targets::catalogue_with(schedulers);
    let mut all = Vec::new();
    for path in paths {
        if is_run(path) {
            let run = RunDir::open(path, &catalogue)?;
            all.push(Input {
                path: path.clone(),
                is_run: true,
                label: None,
                runs: vec![SideRun::of_directory(&run)],
                id: run.record.experiment,
            });
        } else if is_trace(path) {
            all.push(Input {
                path: path.clone(),
                is_run: false,
                label: None,
                runs: Vec::new(),
                id: String::new(),
            });
        } else {
            let prefix = (paths.len() > 1).then_some(path.as_path());
            let labels = labels_in(path, &catalogue)?.into_iter();
            all.extend(labels.map(|of_label| of_folder(prefix, of_label)));
        }
    }
    if all.len() > MEMBERS_MAX {
        bail!(
            "{} runs and traces: a report shows at most {MEMBERS_MAX}, repetitions of one not \
             counted",
            all.len()
        );
    }
    Ok(all)
}

/// The runs of a label; behind the folder's name where there are several.
fn of_folder(prefix: Option<&Path>, (label, runs): OfLabel) -> Input {
    let name = prefix.and_then(Path::file_name);
    let name = name.map(|name| blklab::types::one_line(&name.to_string_lossy()));
    let label = match (name, label) {
        (Some(name), label) => Some(format!("{name} {label}").trim_end().to_owned()),
        (None, label) => Some(label).filter(|label| !label.is_empty()),
    };
    let (first, path) = &runs[0];
    Input {
        path: path.clone(),
        is_run: true,
        label,
        id: first.record.experiment.clone(),
        runs: runs
            .iter()
            .map(|(run, _)| SideRun::of_directory(run))
            .collect(),
    }
}

/// What runs of one experiment come to.
fn verdict(inputs: &[Input], labels: &[String], asked: Option<&Figure>) -> Result<Option<Verdict>> {
    let is_one = inputs.iter().all(|i| i.is_run && i.id == inputs[0].id);
    if inputs.len() < 2 || !is_one {
        if asked.is_some() {
            bail!("--for: only runs of one experiment, two or more, are judged by a figure");
        }
        return Ok(None);
    }
    let sides = inputs.iter().zip(labels).map(|(input, label)| Side {
        label: label.clone(),
        runs: input.runs.clone(),
    });
    match judge(&sides.collect::<Vec<Side>>(), asked) {
        Ok(verdict) => Ok(Some(verdict)),
        // Nobody asked: runs without calls that can be judged have their pictures.
        Err(_) if asked.is_none() => Ok(None),
        Err(err) => Err(err.in_file("--for").into()),
    }
}

/// What tells them from each other: what varied, or as much of the end of their paths as that
/// takes.
fn labels(inputs: &[Input]) -> Vec<String> {
    let by_path = path_labels(inputs);
    let own = inputs.iter().zip(by_path);
    own.map(|(input, path)| input.label.clone().unwrap_or(path))
        .collect()
}

/// As much of the end of their paths as tells them from each other.
fn path_labels(inputs: &[Input]) -> Vec<String> {
    let parts = |input: &Input, n: usize| {
        let names: Vec<_> = input
            .path
            .components()
            .map(|c| c.as_os_str().to_string_lossy())
            .collect();
        names[names.len().saturating_sub(n)..].join("/")
    };
    let longest = inputs
        .iter()
        .map(|i| i.path.components().count())
        .max()
        .unwrap_or(1);
    let labels = |n: usize| inputs.iter().map(|i| parts(i, n)).collect::<Vec<String>>();
    let differ = |labels: &[String]| {
        let all: BTreeSet<&String> = labels.iter().collect();
        all.len() == labels.len()
    };
    let found = (1..=longest).map(labels).find(|labels| differ(labels));
    found.unwrap_or_else(|| {
        let numbered = labels(longest).into_iter().enumerate();
        numbered
            .map(|(i, label)| format!("{label} ({})", i + 1))
            .collect()
    })
}

impl Input {
    /// What is to be shown, and what was found on the way; with a bar of its own if it is alone.
    fn read(
        &self,
        label: &str,
        shown: usize,
        a: &ReportArgs,
        schedulers: Schedulers,
        is_alone: bool,
    ) -> Result<(Member, ReadCounts)> {
        let source = self.path.display().to_string();
        let known = Known::new(&self.path, &a.stack, schedulers)?;
        let mut survey = Survey::default();
        let open = || RunDir::open(&self.path, &blklab::targets::catalogue_with(schedulers));
        let run = self.is_run.then(open).transpose()?;
        let columns = a.stack.read.columns();
        let mut events = match &run {
            Some(run) => {
                crate::source::no_columns_of_runs(&self.path, columns)?;
                run.events()?
            }
            None => TraceFile::open_with(&self.path, columns)?,
        };
        let watched = is_alone.then(|| Watcher::reading(events.progress()));
        let asked = Asked {
            label,
            source: &source,
            context: known.context().clone(),
            shown_max: shown,
        };
        let mut member = match &run {
            Some(run) => member::of_run(run, &mut events, asked, &mut survey)?,
            None => member::of_trace(&mut events, asked, &mut survey)?,
        };
        member.repetitions = self.runs.len().max(1);
        drop(watched);
        let counts = events.counts().clone();
        let request = Request {
            worst: WORST,
            wanted: BTreeSet::new(),
            schedulers,
        };
        if known.says_how() {
            let again = known.re_enact(&self.path, &survey, member.reading, &request)?;
            if let Some(re_enacted) = again.re_enacted {
                member.explain(re_enacted, shown);
            }
            member.not_re_enacted = again.not_re_enacted;
        }
        Ok((member, counts))
    }
}
