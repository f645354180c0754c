// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab conform --findings`: what `why` says of planted causes.

use crate::Outcome;
use crate::args::{ConformArgs, ConformFormat};
use crate::output::{cut, fold};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab_fidelity::causes::{Examined, KindScore, Scenario, Score, examine, scenarios};
use serde::Serialize;
use std::io::Write;

/// What is printed as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    seed: u64,
    score: &'a Score,
    scenarios: &'a [Examined],
}

/// What stands before the tables of the page `docs/fidelity.md`.
const PREFACE: &str = include_str!("findings.md");

pub(super) fn conform(a: &ConformArgs) -> Result<Outcome> {
    let chosen = chosen(scenarios(a.scenarios, a.seed), &a.cases)?;
    let progress = Progress::new(chosen.len());
    let results = blklab::parallel::map(&chosen, blklab::parallel::cores(), |scenario| {
        let result = examine(scenario);
        progress.step();
        result
    });
    progress.finish();
    let examined = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    let score = Score::new(&examined);
    let mut out = std::io::stdout().lock();
    match a.output_format {
        ConformFormat::Json => {
            let shown = Shown {
                seed: a.seed,
                score: &score,
                scenarios: &examined,
            };
            serde_json::to_writer_pretty(&mut out, &shown).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        ConformFormat::Markdown => markdown(&mut out, &score, &examined)?,
        ConformFormat::Table if a.cases.is_empty() => table(&mut out, &score, &examined)?,
        ConformFormat::Table => {
            for one in &examined {
                single(&mut out, one)?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Those named; all if none is.
fn chosen(mut all: Vec<Scenario>, names: &[String]) -> Result<Vec<Scenario>> {
    let ids: Vec<&str> = all.iter().map(|s| s.id.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !ids.contains(&name.as_str())) {
        bail!("--case: {}", blklab::types::no_such("scenario", name, &ids));
    }
    if !names.is_empty() {
        all.retain(|s| names.contains(&s.id));
    }
    Ok(all)
}

/// A part in whole per cent; nearly all is not all.
fn percent(part: Option<f64>) -> String {
    match part {
        None => "-".to_owned(),
        Some(p) if (0.995..1.0).contains(&p) => format!("{:.1}%", (1000.0 * p).floor() / 10.0),
        Some(p) => format!("{:.0}%", 100.0 * p),
    }
}

/// The fields of a kind's row behind its name.
fn fields(k: &KindScore) -> [String; 8] {
    [
        k.planted.to_string(),
        k.found.to_string(),
        k.first.to_string(),
        percent(k.recall()),
        k.said.to_string(),
        k.right.to_string(),
        percent(k.precision()),
        k.false_alarms.to_string(),
    ]
}

fn table(out: &mut impl Write, score: &Score, examined: &[Examined]) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<20} {:>7} {:>5} {:>5} {:>6} {:>5} {:>5} {:>9} {:>6}",
        "finding", "planted", "found", "first", "recall", "said", "right", "precision", "alarms"
    )?;
    let mut row = |name: &str, k: &KindScore| {
        let [
            planted,
            found,
            first,
            recall,
            said,
            right,
            precision,
            alarms,
        ] = fields(k);
        writeln!(
            out,
            "{:<20} {planted:>7} {found:>5} {first:>5} {recall:>6} {said:>5} {right:>5} \
             {precision:>9} {alarms:>6}",
            cut(name, 20)
        )
    };
    for (name, k) in &score.kinds {
        row(name, k)?;
    }
    row("all", &score.all)?;
    writeln!(
        out,
        "\n{} scenarios with a cause; of {} with nothing wrong nothing is said in {}",
        score.planted, score.clean, score.silent
    )?;
    let lines = failures(examined);
    if !lines.is_empty() {
        writeln!(out, "\nmissed, or said wrongly:")?;
    }
    for (id, what) in lines {
        let rest = format!("\n{:26}", "");
        writeln!(
            out,
            "  {:<23} {}",
            cut(&id, 23),
            fold(&what, 54).join(&rest)
        )?;
    }
    Ok(())
}

/// The scenarios in which something is missed or wrong, and what.
fn failures(examined: &[Examined]) -> Vec<(String, String)> {
    let of_one = |one: &Examined| {
        let mut what = Vec::new();
        match one.draws {
            None => what.push("left out: the cause has no effect in any draw".to_owned()),
            Some(_) if one.planted.is_some() && !one.is_found() => what.push("missed".to_owned()),
            Some(_) => {}
        }
        for said in one.said.iter().filter(|s| !s.right) {
            what.push(format!("said {}", said.kind));
        }
        (!what.is_empty()).then(|| (one.id.clone(), what.join(", ")))
    };
    examined.iter().filter_map(of_one).collect()
}

/// The part of the page `docs/fidelity.md`.
fn markdown(out: &mut impl Write, score: &Score, examined: &[Examined]) -> std::io::Result<()> {
    writeln!(
        out,
        "{PREFACE}\n| finding | planted | found | first | recall | said | right | precision | \
         false alarms |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let rows = score.kinds.iter().map(|(name, k)| (*name, k));
    for (name, k) in rows.chain([("all", &score.all)]) {
        writeln!(out, "| {name} | {} |", fields(k).join(" | "))?;
    }
    writeln!(
        out,
        "\n{} scenarios have a cause. Of {} with nothing wrong, nothing is said in {}.",
        score.planted, score.clean, score.silent
    )?;
    let lines = failures(examined);
    if !lines.is_empty() {
        writeln!(out, "\n| scenario | missed, or said wrongly |\n|---|---|")?;
    }
    for (id, what) in lines {
        writeln!(out, "| {id} | {what} |")?;
    }
    Ok(())
}

/// One scenario: its experiment, and what is said.
fn single(out: &mut impl Write, one: &Examined) -> std::io::Result<()> {
    writeln!(out, "{}", one.experiment)?;
    match one.planted {
        Some(kind) => match one.draws {
            Some(n) => writeln!(out, "# planted: {kind}, at draw {n}")?,
            None => writeln!(out, "# {kind} has no effect in any draw")?,
        },
        None => writeln!(out, "# nothing is wrong")?,
    }
    for (said, finding) in one
        .said
        .iter()
        .zip(one.why.iter().flat_map(|w| &w.findings))
    {
        let right = if said.right { "right" } else { "wrong" };
        writeln!(out, "# said, {right}: {}", said.kind)?;
        let words = format!(
            "{} Suffers: {}. Causes: {}.",
            finding.what,
            finding.victim_names(),
            finding.cause_names()
        );
        for line in fold(&words, 74) {
            writeln!(out, "#   {line}")?;
        }
    }
    writeln!(out)
}
