// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab report`.

use crate::Outcome;
use crate::again::Known;
use crate::args::{ReportArgs, ReportFormat};
use crate::output::Output;
use crate::progress::Watcher;
use anyhow::{Context as _, Result, bail};
use blklab::TraceFile;
use blklab::explain::{Request, Survey};
use blklab::outputs::{Claims, check_folder, check_replaceable, make_folder, write_file};
use blklab::run_directory::{RunDir, is_run, is_trace, runs_in};
use blklab::scheduler::Schedulers;
use blklab_report::member::{self, Asked};
use blklab_report::model::Member;
use blklab_report::{MEMBERS_MAX, Report, charts, html, shown_max};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Requests of a re-enactment that are given.
const WORST: usize = 10;

pub(crate) fn report(a: &ReportArgs, schedulers: Schedulers) -> Result<Outcome> {
    let inputs = inputs(&a.inputs)?;
    if let Some(dir) = &a.svg {
        check_folder(dir).context("--svg")?;
    }
    let mut out = Output::open(a.output.as_deref())?;
    if let Some(path) = &a.output {
        let mut claims = Claims::default();
        inputs
            .iter()
            .for_each(|input| claims.reads(&input.read_file()));
        claims.writes(path, "--output")?;
    }
    let shown = shown_max(inputs.len());
    let labels = labels(&inputs);
    let mut members = Vec::new();
    for (input, label) in inputs.iter().zip(&labels) {
        members.push(input.read(label, shown, a, schedulers)?);
    }
    let report = Report::new(members);
    if let Some(dir) = &a.svg {
        write_charts(dir, &report)?;
        if a.output.is_none() {
            return Ok(Outcome::Done);
        }
    }
    match a.output_format {
        ReportFormat::Html => out.write_all(html::page(&report)?.as_bytes())?,
        ReportFormat::Json => writeln!(out, "{}", report.to_json())?,
    }
    out.commit()?;
    Ok(Outcome::Done)
}

/// Writes each chart into a folder.
fn write_charts(dir: &Path, report: &Report) -> Result<()> {
    let files: Vec<(PathBuf, String)> = charts::all(report)
        .into_iter()
        .map(|(name, svg)| (dir.join(format!("{name}.svg")), svg))
        .collect();
    make_folder(dir)?;
    for (path, _) in &files {
        check_replaceable(path).context("--svg")?;
    }
    for (path, svg) in &files {
        write_file(path, svg.as_bytes())?;
    }
    Ok(())
}

/// What a page is about.
struct Input {
    path: PathBuf,
    is_run: bool,
}

/// What is named on the command line, folders of runs one by one.
fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let mut all = Vec::new();
    for path in paths {
        if !is_trace(path) && !is_run(path) {
            let runs = runs_in(path)?.into_iter();
            all.extend(runs.map(|path| Input { path, is_run: true }));
        } else {
            all.push(Input {
                path: path.clone(),
                is_run: is_run(path),
            });
        }
    }
    if all.len() > MEMBERS_MAX {
        bail!(
            "{} runs and traces: a report shows at most {MEMBERS_MAX}",
            all.len()
        );
    }
    Ok(all)
}

/// What tells them from each other: as much of the end of their paths as that takes.
fn labels(inputs: &[Input]) -> Vec<String> {
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
    let of = |n: usize| inputs.iter().map(|i| parts(i, n)).collect::<Vec<String>>();
    let differ = |labels: &[String]| {
        let all: BTreeSet<&String> = labels.iter().collect();
        all.len() == labels.len()
    };
    let found = (1..=longest).map(of).find(|labels| differ(labels));
    found.unwrap_or_else(|| {
        let numbered = of(longest).into_iter().enumerate();
        numbered
            .map(|(i, label)| format!("{label} ({})", i + 1))
            .collect()
    })
}

impl Input {
    /// The file that most is read of.
    fn read_file(&self) -> PathBuf {
        if self.is_run {
            self.path.join(blklab::run_directory::EVENTS)
        } else {
            self.path.clone()
        }
    }

    fn read(
        &self,
        label: &str,
        shown: usize,
        a: &ReportArgs,
        schedulers: Schedulers,
    ) -> Result<Member> {
        let source = self.path.display().to_string();
        let known = Known::new(&self.path, &a.stack, schedulers)?;
        let mut survey = Survey::default();
        let open = || RunDir::open(&self.path, &blklab::catalogue_with(schedulers));
        let run = self.is_run.then(open).transpose()?;
        let mut events = match &run {
            Some(run) => run.events()?,
            None => TraceFile::open(&self.path)?,
        };
        let watched = Watcher::reading(events.progress());
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
        drop(watched);
        crate::source::report_damage(&self.path, events.counts());
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
        Ok(member)
    }
}
