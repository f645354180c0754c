// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab conform --causes`: what `why` says of planted causes.

use crate::Outcome;
use crate::args::{CaseTarget, ConformArgs, ConformFormat};
use crate::interrupt::Interrupt;
use crate::output::{cut, fold};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab::scheduler::Schedulers;
use blklab_fidelity::causes::{
    self, Bench, Cell, Clean, Examined, FORMS, Fate, Form, Scenario, Score, UNDRAWN, Undrawn,
    Wanted, examine, keep,
};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Scenarios, if it is not said how many.
const COUNT: u64 = 300;

/// What is printed as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    seed: u64,
    target: &'a str,
    /// The one kernel that they are drawn on, where one was asked for.
    kernel: Option<&'a str>,
    score: &'a Score,
    scenarios: &'a [Examined],
    failed: &'a [(String, String)],
    not_run: usize,
    not_drawn: Vec<Undrawn>,
    kept: &'a [PathBuf],
}

/// What became of a scenario.
enum Ran {
    Examined(Box<Examined>, Vec<PathBuf>),
    Failed(String),
    /// It was not run: the user ended the command.
    Left,
}

pub(super) fn conform(a: &ConformArgs) -> Result<Outcome> {
    if let Some(folder) = &a.keep {
        super::check_empty(folder)?;
    }
    let target = match a.target {
        Some(CaseTarget::Kernel) => "kernel",
        Some(CaseTarget::Sim) | None => "sim",
    };
    let wanted = wanted(a, target)?;
    let (chosen, not_drawn) = chosen(a, &wanted)?;
    let interrupt = Interrupt::watch();
    let planner = blklab::targets::planner(Schedulers::default());
    let bench = Bench::new(planner, target, Arc::clone(&interrupt.stop));
    let threads = a.jobs.map_or_else(blklab::parallel::cores, usize::from);
    let progress = Progress::new(chosen.len());
    let results = blklab::parallel::map(&chosen, threads, |scenario| {
        let ran = if interrupt.stop.load(Ordering::Relaxed) {
            Ran::Left
        } else {
            one(a, &bench, scenario)
        };
        progress.step();
        ran
    });
    progress.finish();
    let (mut examined, mut failed, mut kept, mut not_run) = (vec![], vec![], vec![], 0);
    for (scenario, result) in chosen.iter().zip(results) {
        match result {
            Ran::Examined(one, files) => {
                examined.push(*one);
                kept.extend(files);
            }
            Ran::Failed(why) => failed.push((scenario.id.clone(), why)),
            Ran::Left => not_run += 1,
        }
    }
    let mut score = Score::new(&examined);
    score.failed = failed.len() as u64;
    let shown = Shown {
        seed: a.seed,
        target,
        kernel: wanted.kernel.as_deref(),
        score: &score,
        scenarios: &examined,
        failed: &failed,
        not_run,
        not_drawn,
        kept: &kept,
    };
    let mut out = std::io::stdout().lock();
    match a.output_format {
        ConformFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &shown).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        ConformFormat::Markdown => markdown(&mut out, &shown)?,
        ConformFormat::Table if a.cases.is_empty() => table(&mut out, &shown)?,
        ConformFormat::Table => {
            for one in &examined {
                single(&mut out, one)?;
            }
            for path in &kept {
                writeln!(out, "# kept: {}", path.display())?;
            }
        }
    }
    out.flush()?;
    if interrupt.happened() {
        return Ok(Outcome::Interrupted);
    }
    match failed.first() {
        // Who asks for single ones is told of each that fails.
        Some((id, why)) if examined.is_empty() || !a.cases.is_empty() => bail!("{id}: {why}"),
        _ => Ok(Outcome::Done),
    }
}

fn one(a: &ConformArgs, bench: &Bench, scenario: &Scenario) -> Ran {
    let mut one = match examine(bench, scenario) {
        Ok(Some(one)) => one,
        Ok(None) => return Ran::Left,
        Err(why) => return Ran::Failed(why.to_string()),
    };
    let kept = match &a.keep {
        None => Ok(Vec::new()),
        Some(folder) => keep(folder, &one),
    };
    if a.cases.is_empty() {
        // Traces of hundreds of scenarios are many.
        one.answers.clear();
    }
    match kept {
        Ok(files) => Ran::Examined(Box::new(one), files),
        Err(why) => Ran::Failed(why.to_string()),
    }
}

fn wanted(a: &ConformArgs, target: &'static str) -> Result<Wanted> {
    let kernel = match a.kernel.as_slice() {
        [] if target == "kernel" => Some("7.3".to_owned()),
        [] => None,
        [one] => Some(one.clone()),
        _ => bail!("--kernel: planted causes are drawn on one kernel, or on all"),
    };
    Ok(Wanted {
        seed: a.seed,
        count: a.count.unwrap_or(COUNT),
        classes: a.classes.clone(),
        kernel,
        target,
    })
}

/// Those named, all if none is; and what is not drawn at all.
fn chosen(a: &ConformArgs, wanted: &Wanted) -> Result<(Vec<Scenario>, Vec<Undrawn>)> {
    let (mut all, mut not_drawn) = causes::scenarios(wanted)?;
    if a.classes.is_empty() {
        not_drawn.extend(UNDRAWN.iter().copied());
    } else if let (true, Some(first)) = (all.is_empty(), not_drawn.first()) {
        bail!("--class: {}: {}", first.class, first.because);
    }
    let ids: Vec<&str> = all.iter().map(|s| s.id.as_str()).collect();
    if let Some(name) = a.cases.iter().find(|name| !ids.contains(&name.as_str())) {
        bail!("--case: {}", blklab::types::no_such("scenario", name, &ids));
    }
    if !a.cases.is_empty() {
        all.retain(|s| a.cases.contains(&s.id));
    }
    Ok((all, not_drawn))
}

/// A part in whole per cent; nearly all is not all.
fn percent(part: Option<f64>) -> String {
    match part {
        None => "-".to_owned(),
        Some(p) if (0.995..1.0).contains(&p) => format!("{:.1}%", (1000.0 * p).floor() / 10.0),
        Some(p) if p > 0.0 && p < 0.01 => format!("{:.1}%", 100.0 * p),
        Some(p) => format!("{:.0}%", 100.0 * p),
    }
}

/// Titles of the table of forms.
const FORM_TITLES: [&str; 9] = [
    "planted",
    "named",
    "first",
    "told",
    "recall",
    "precision",
    "blamed",
    "silent",
    "fine",
];

/// The fields of a form's row behind its name.
fn form_fields(cell: &Cell) -> [String; 9] {
    [
        cell.planted.to_string(),
        cell.named.to_string(),
        cell.first.to_string(),
        cell.told.to_string(),
        percent(cell.recall()),
        percent(cell.precision()),
        cell.blamed.to_string(),
        cell.silent.to_string(),
        cell.nothing_wrong.to_string(),
    ]
}

/// The fields of a class's row behind its name: planted, what of it is named or said not to be
/// shown in each form, and of the whole trace precision, who suffers, who causes it, remedies.
fn class_fields(score: &Score, class: &str) -> [String; 9] {
    let cells = &score.classes[class];
    let cell = |form: Form| cells.get(&form).copied().unwrap_or_default();
    let full = cell(Form::Full);
    let part = |part: u64, of: u64| percent((of > 0).then(|| part as f64 / of as f64));
    let [all, dc, snoop, excerpt] = FORMS.map(|form| percent(cell(form).recall()));
    [
        full.planted.to_string(),
        all,
        dc,
        snoop,
        excerpt,
        percent(full.precision()),
        part(full.sufferer_named, full.kind_named),
        part(full.causer_named, full.kind_named),
        percent(full.remedies()),
    ]
}

/// Titles of the table of classes.
const CLASS_TITLES: [&str; 9] = [
    "drawn", "full", "D, C", "snoop", "40 l.", "right", "victim", "causer", "remedy",
];

fn table(out: &mut impl Write, shown: &Shown<'_>) -> Result<()> {
    let score = shown.score;
    let mut row = |name: &str, fields: [String; 9]| {
        write!(out, "{:<22}", cut(name, 22))?;
        for field in fields {
            write!(out, " {field:>6}")?;
        }
        writeln!(out)
    };
    row("class", CLASS_TITLES.map(str::to_owned))?;
    for class in score.classes.keys() {
        row(class, class_fields(score, class))?;
    }
    writeln!(out)?;
    write!(out, "{:<9}", "form")?;
    for title in FORM_TITLES {
        write!(out, " {title:>9}")?;
    }
    writeln!(out)?;
    for (name, cell) in forms(score) {
        write!(out, "{name:<9}")?;
        for field in form_fields(&cell) {
            write!(out, " {field:>9}")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    for (form, clean) in &score.clean {
        writeln!(out, "{}", clean_words(*form, *clean))?;
    }
    failures(out, shown)?;
    Ok(())
}

fn forms(score: &Score) -> Vec<(&'static str, Cell)> {
    let rows = score.forms.iter().map(|(form, cell)| (form.name(), *cell));
    rows.chain([("all", score.all)]).collect()
}

fn clean_words(form: Form, clean: Clean) -> String {
    format!(
        "{}: of {} scenarios with nothing wrong, something is blamed in {}",
        form.name(),
        clean.scenarios,
        clean.alarmed
    )
}

/// What is wrong, not drawn, or failed.
fn failures(out: &mut impl Write, shown: &Shown<'_>) -> Result<()> {
    let part = |out: &mut dyn Write, title: &str, lines: &[(String, String)]| -> Result<()> {
        if !lines.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for (name, what) in lines {
            let rest = format!("\n{:32}", "");
            writeln!(
                out,
                "  {:<29} {}",
                cut(name, 29),
                fold(what, 48).join(&rest)
            )?;
        }
        Ok(())
    };
    part(out, "missed, or said wrongly", &wrong(shown.scenarios))?;
    let not_drawn: Vec<(String, String)> = shown
        .not_drawn
        .iter()
        .map(|u| (u.class.to_owned(), u.because.to_owned()))
        .collect();
    part(out, "not drawn", &not_drawn)?;
    part(out, "failed", shown.failed)?;
    if shown.not_run > 0 {
        writeln!(out, "\n{} were not run", shown.not_run)?;
    }
    if !shown.kept.is_empty() {
        writeln!(out, "\nkept: {} traces", shown.kept.len())?;
    }
    Ok(())
}

/// The scenarios in which something is missed or wrong, and what, by form.
fn wrong(examined: &[Examined]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for one in examined {
        if one.draws.is_none() {
            let what = "left out: the cause has no effect in any draw";
            lines.push((one.id.clone(), what.to_owned()));
            continue;
        }
        for form in FORMS.into_iter().filter(|form| one.is_wrong(*form)) {
            let mut what = Vec::new();
            for j in one.judged.iter().filter(|j| j.form == form) {
                match j.fate {
                    Fate::Named | Fate::Told => {}
                    _ if j.is_kind_named && !j.is_sufferer_named => {
                        what.push(format!("{}: another sufferer", j.class));
                    }
                    _ if j.is_kind_named => what.push(format!("{}: another culprit", j.class)),
                    Fate::NothingWrong => what.push(format!("{}: nothing wrong", j.class)),
                    Fate::Silent | Fate::Blamed => what.push(format!("{}: missed", j.class)),
                }
            }
            for s in one.said.iter().filter(|s| s.form == form && !s.right) {
                what.push(format!("said {}", s.kind));
            }
            lines.push((format!("{} {}", one.id, form.name()), what.join(", ")));
        }
    }
    lines
}

/// The part of the page `docs/fidelity.md`.
fn markdown(out: &mut impl Write, shown: &Shown<'_>) -> Result<()> {
    let score = shown.score;
    let scenarios = shown.scenarios.len();
    writeln!(
        out,
        "{scenarios} scenarios of seed {}, target {}{}:\n\n| class | {} |\n|---|{}",
        shown.seed,
        shown.target,
        match shown.kernel {
            Some(kernel) => format!(", kernel {kernel}"),
            None => String::new(),
        },
        CLASS_TITLES.join(" | "),
        "---|".repeat(CLASS_TITLES.len())
    )?;
    for class in score.classes.keys() {
        writeln!(
            out,
            "| {class} | {} |",
            class_fields(score, class).join(" | ")
        )?;
    }
    writeln!(
        out,
        "\n| form | {} |\n|---|{}",
        FORM_TITLES.join(" | "),
        "---|".repeat(FORM_TITLES.len())
    )?;
    for (name, cell) in forms(score) {
        writeln!(out, "| {name} | {} |", form_fields(&cell).join(" | "))?;
    }
    for (form, clean) in &score.clean {
        writeln!(out, "\n{}.", clean_words(*form, *clean))?;
    }
    writeln!(out, "\n| not drawn | why |\n|---|---|")?;
    for u in &shown.not_drawn {
        writeln!(out, "| {} | {} |", u.class, u.because)?;
    }
    if !shown.failed.is_empty() {
        writeln!(out, "\n| not examined | why |\n|---|---|")?;
    }
    for (id, why) in shown.failed {
        writeln!(out, "| {id} | {} |", why.replace('|', "/"))?;
    }
    Ok(())
}

/// One scenario: its experiment, and what is said.
fn single(out: &mut impl Write, one: &Examined) -> Result<()> {
    writeln!(out, "{}", one.experiment)?;
    let planted = match one.planted.as_slice() {
        [] => "nothing is wrong".to_owned(),
        classes => format!("planted: {}", classes.join(", ")),
    };
    match one.draws {
        Some(n) => writeln!(out, "# {planted}, at draw {n}")?,
        None => writeln!(out, "# {planted}: without effect in any draw")?,
    }
    for form in FORMS {
        writeln!(out, "#\n# {}", form.name())?;
        for line in causes::words(one, form).lines() {
            for part in fold(line, 74) {
                writeln!(out, "#   {part}")?;
            }
        }
    }
    writeln!(out)?;
    Ok(())
}
