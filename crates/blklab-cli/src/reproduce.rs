// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab reproduce`.

use crate::Outcome;
use crate::args::{ReproduceArgs, ReproduceFormat};
use crate::interrupt::Interrupt;
use crate::output::{Output, cut, fold};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab::reproduce::{self, Kind, NumberOutcome, Reproduction, Study};
use std::io::Write;

/// Columns of a terminal.
const WIDTH: usize = 80;

pub(crate) fn reproduce(a: &ReproduceArgs) -> Result<Outcome> {
    if a.names.iter().any(|n| n == "list") {
        if a.names.len() > 1 {
            bail!("list: stands alone; give names, or none for all");
        }
        return list(a);
    }
    let seeds = if a.quick { 1 } else { a.seeds };
    if seeds == 0 || a.jobs == Some(0) {
        bail!("--seeds and --jobs: at least 1");
    }
    let studies = studies(&a.names)?;
    let mut output = Output::open(a.output.as_deref())?;
    let interrupt = Interrupt::watch()?;
    let progress = Progress::new(reproduce::nr_runs(&studies, seeds));
    let threads = a.jobs.unwrap_or_else(blklab::parallel::cores);
    let all = reproduce::reproduce(&studies, seeds, threads, &interrupt.stop, || {
        progress.step();
    });
    progress.finish();
    let all = all?;
    match a.output_format {
        ReproduceFormat::Table => table(&mut output, &studies, &all)?,
        ReproduceFormat::Markdown => markdown(&mut output, &studies, &all)?,
        ReproduceFormat::Json => {
            serde_json::to_writer_pretty(&mut output, &all).map_err(std::io::Error::from)?;
            writeln!(output)?;
        }
    }
    output.commit()?;
    let s = all.summary;
    Ok(if interrupt.happened() {
        Outcome::Interrupted
    } else if s.predicted_within < s.predicted || s.orderings_hold < s.orderings {
        Outcome::Differs
    } else {
        Outcome::Done
    })
}

/// The studies of these names, each once, in the order of the list; all if no
/// name is given.
fn studies(names: &[String]) -> Result<Vec<Study>> {
    let asked: Result<Vec<Study>, _> = names.iter().map(|n| reproduce::study(n)).collect();
    let asked = asked?;
    let wanted = |name: &&str| asked.is_empty() || asked.iter().any(|s| s.name == *name);
    let all = reproduce::names().into_iter().filter(wanted);
    Ok(all.map(reproduce::study).collect::<Result<_, _>>()?)
}

fn list(a: &ReproduceArgs) -> Result<Outcome> {
    let mut out = Output::open(a.output.as_deref())?;
    for s in studies(&[])? {
        for (i, line) in fold(&s.title, WIDTH - 20).iter().enumerate() {
            writeln!(out, "{:<18}  {line}", if i == 0 { &s.name } else { "" })?;
        }
    }
    out.commit()?;
    Ok(Outcome::Done)
}

/// A number with three or four figures.
fn figure(x: f64) -> String {
    if x >= 1000.0 {
        format!("{x:.0}")
    } else if x >= 100.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    }
}

fn verdict(n: &NumberOutcome) -> &'static str {
    match (n.kind, n.within) {
        (Kind::Calibrated, _) => "calibrated",
        (Kind::Predicted, true) => "within",
        (Kind::Predicted, false) => "OFF",
    }
}

fn range(n: &NumberOutcome) -> String {
    match n.ours {
        Some(s) if s.min < s.max => format!("{} to {}", figure(s.min), figure(s.max)),
        _ => String::new(),
    }
}

fn ours(n: &NumberOutcome) -> String {
    n.ours.map_or("-".to_owned(), |s| figure(s.median))
}

fn ratio(n: &NumberOutcome) -> String {
    n.ratio.map_or("-".to_owned(), |r| format!("{r:.2}"))
}

fn name(n: &NumberOutcome) -> String {
    [&n.part, &n.variant]
        .map(String::as_str)
        .join(" ")
        .trim()
        .to_owned()
}

fn table(out: &mut impl Write, studies: &[Study], all: &Reproduction) -> std::io::Result<()> {
    for s in studies {
        writeln!(out, "{}", s.name)?;
        for text in [&s.title, &s.source, &s.differs] {
            for line in fold(text, WIDTH - 2).iter().filter(|l| !l.is_empty()) {
                writeln!(out, "  {line}")?;
            }
        }
        writeln!(
            out,
            "{:<22} {:>9} {:>8} {:>15} {:>6} tolerance",
            "", "published", "here", "lowest, highest", "ratio"
        )?;
        let mut metric = "";
        for n in all.numbers.iter().filter(|n| n.study == s.name) {
            if n.metric != metric {
                metric = n.metric;
                writeln!(out, "{} {metric}", n.direction)?;
            }
            writeln!(
                out,
                "  {:<20} {:>9} {:>8} {:>15} {:>6} {}",
                cut(&name(n), 20),
                figure(n.published),
                ours(n),
                cut(&range(n), 15),
                ratio(n),
                match n.kind {
                    Kind::Calibrated => verdict(n).to_owned(),
                    Kind::Predicted => format!("{} (x{})", verdict(n), n.factor),
                },
            )?;
        }
        for o in all.orderings.iter().filter(|o| o.study == s.name) {
            let text = format!("{}: {}", o.text, if o.holds { "yes" } else { "NO" });
            writeln!(out, "{}", fold(&text, WIDTH).join("\n"))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", all.summary)
}

fn markdown(out: &mut impl Write, studies: &[Study], all: &Reproduction) -> std::io::Result<()> {
    for s in studies {
        writeln!(out, "## {}\n\n{}. Source: {}.", s.name, s.title, s.source)?;
        if !s.differs.is_empty() {
            writeln!(out, "Differs: {}.", s.differs)?;
        }
        writeln!(
            out,
            "\n| | metric | published | here | range | ratio | tolerance | |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        for n in all.numbers.iter().filter(|n| n.study == s.name) {
            writeln!(
                out,
                "| {} | {} {} | {} | {} | {} | {} | {} | {} |",
                name(n),
                n.direction,
                n.metric,
                figure(n.published),
                ours(n),
                range(n),
                ratio(n),
                n.factor,
                verdict(n)
            )?;
        }
        writeln!(out)?;
        for o in all.orderings.iter().filter(|o| o.study == s.name) {
            writeln!(
                out,
                "- {}: {}",
                o.text,
                if o.holds { "yes" } else { "**no**" }
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}.", all.summary)
}
