// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab reproduce`.

use crate::Outcome;
use crate::args::{ReproduceArgs, ReproduceFormat};
use crate::guard::Guard;
use crate::interrupt::Interrupt;
use crate::output::{Output, WIDTH, cut, entry, fold, hanging};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab_fidelity::reproduce::{
    self, Basis, Kind, Measured, NumberOutcome, OrderingOutcome, Reproduction, Study,
};
use blklab_report::reproduced::figure;
use std::io::Write;

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
    let mut output = Output::open(&mut Guard::default(), a.output.as_deref())?;
    let interrupt = Interrupt::watch();
    let plan = reproduce::Plan::new(&studies, seeds)?;
    let progress = Progress::new(plan.nr_runs());
    let threads = a.jobs.unwrap_or_else(blklab::parallel::cores);
    let all = plan.run(threads, &interrupt.stop, || progress.step());
    progress.finish();
    let all = all?;
    match a.output_format {
        ReproduceFormat::Table => table(&mut output, &studies, &all, seeds)?,
        ReproduceFormat::Markdown => markdown(&mut output, &studies, &all)?,
        ReproduceFormat::Json => {
            serde_json::to_writer_pretty(&mut output, &all).map_err(std::io::Error::from)?;
            writeln!(output)?;
        }
    }
    output.commit()?;
    Ok(if interrupt.happened() {
        Outcome::Interrupted
    } else if all.summary.is_good() {
        Outcome::Done
    } else {
        Outcome::Differs
    })
}

/// The studies of these names, each once, in the order of the list; all if no
/// name is given.
pub(crate) fn studies(names: &[String]) -> Result<Vec<Study>> {
    let asked: Result<Vec<Study>, _> = names.iter().map(|n| reproduce::study(n)).collect();
    let asked = asked?;
    let wanted = |name: &&str| asked.is_empty() || asked.iter().any(|s| s.name == *name);
    let all = reproduce::names().into_iter().filter(wanted);
    Ok(all.map(reproduce::study).collect::<Result<_, _>>()?)
}

fn list(a: &ReproduceArgs) -> Result<Outcome> {
    let mut out = Output::open(&mut Guard::default(), a.output.as_deref())?;
    for s in studies(&[])? {
        let text = match &s.space {
            Some(space) => format!("{} [testbeds: {}]", s.title, space.file),
            None => s.title.clone(),
        };
        entry(&mut out, &s.name, &text)?;
    }
    writeln!(out, "\nFitted parameters; all other numbers are predicted:")?;
    for p in reproduce::calibration()? {
        let unit = match p.unit.as_str() {
            "1" => String::new(),
            unit => format!(" {unit}"),
        };
        let text = format!(
            "{} = {}{unit}: {}; from {} ({})",
            p.key, p.value, p.what, p.number, p.published
        );
        entry(&mut out, &p.name, &text)?;
    }
    out.commit()?;
    Ok(Outcome::Done)
}

fn verdict(n: &NumberOutcome) -> &'static str {
    match (n.kind, n.within) {
        (Kind::Calibrated, _) => "calibrated",
        (Kind::Predicted, true) => "within",
        (Kind::Predicted, false) => "OFF",
    }
}

fn holds(o: &OrderingOutcome) -> &'static str {
    match o.holds {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "needs more runs",
    }
}

/// Two ends fit their column: from six digits on in thousands.
fn range(m: &Measured) -> String {
    let end = |x: f64| match x {
        x if x >= 99_999.5 => format!("{:.0}k", x / 1000.0),
        x => figure(x),
    };
    match m.ours {
        Some(s) if s.min < s.max => format!("{} to {}", end(s.min), end(s.max)),
        _ => String::new(),
    }
}

fn ours(m: &Measured) -> String {
    m.ours.map_or("-".to_owned(), |s| figure(s.median))
}

fn ratio(n: &NumberOutcome) -> String {
    n.ratio.map_or("-".to_owned(), |r| format!("{r:.2}"))
}

/// What is measured, with its unit.
pub(crate) fn what(m: &Measured) -> String {
    let unit = match m.unit {
        "1" => String::new(),
        unit => format!(" {unit}"),
    };
    format!("{} {}{unit}", m.subject, m.metric)
}

/// What an ordering compares, and its bounds.
fn compared(o: &OrderingOutcome) -> String {
    let bounds = match o.expected {
        [Some(low), Some(high)] => format!("{low} to {high}"),
        [Some(low), None] => format!("from {low}"),
        [None, Some(high)] => format!("up to {high}"),
        [None, None] => return String::new(),
    };
    o.value
        .map_or(String::new(), |v| format!(" ({}; {bounds})", figure(v)))
}

/// Who says that orderings have to hold, in the order in which they are shown.
const BASES: [(Basis, &str); 3] = [
    (Basis::Published, "published orderings"),
    (Basis::Expected, "expected by us, not published"),
    (
        Basis::Contradicted,
        "published, but contradicted by a measured kernel",
    ),
];

/// Orderings of a study of one origin.
fn orderings<'a>(
    all: &'a Reproduction,
    s: &'a Study,
    basis: Basis,
) -> impl Iterator<Item = &'a OrderingOutcome> {
    let of_study = all.orderings.iter().filter(|o| o.study == s.name);
    of_study.filter(move |o| o.basis == basis)
}

/// One row of a study's table.
type Row<'a> = (&'a Measured, Option<&'a NumberOutcome>);

/// Numbers of a study, then what nobody published.
fn rows<'a>(all: &'a Reproduction, s: &'a Study) -> impl Iterator<Item = Row<'a>> {
    let numbers = all.numbers.iter().map(|n| (&n.measured, Some(n)));
    let rest = all.unpublished.iter().map(|m| (m, None));
    numbers.chain(rest).filter(|(m, _)| m.study == s.name)
}

fn table(
    out: &mut impl Write,
    studies: &[Study],
    all: &Reproduction,
    seeds: u32,
) -> std::io::Result<()> {
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
        let mut heading = String::new();
        for (m, n) in rows(all, s) {
            if what(m) != heading {
                heading = what(m);
                writeln!(out, "{}", cut(&heading, WIDTH))?;
            }
            writeln!(
                out,
                "  {:<20} {:>9} {:>8} {:>15} {:>6} {}",
                cut(&m.configuration, 20),
                n.map_or("-".to_owned(), |n| figure(n.published)),
                ours(m),
                cut(&range(m), 15),
                n.map_or(String::new(), ratio),
                match n {
                    Some(n) if n.kind == Kind::Predicted =>
                        format!("{} ({})", verdict(n), n.tolerance),
                    Some(n) => verdict(n).to_owned(),
                    None => String::new(),
                },
            )?;
        }
        for (basis, heading) in BASES {
            let mut remark = "";
            for (i, o) in orderings(all, s, basis).enumerate() {
                if i == 0 {
                    writeln!(out, "{heading}")?;
                }
                if o.remark != remark {
                    remark = &o.remark;
                    if !remark.is_empty() {
                        hanging(out, "  (", 3, &format!("{remark})"))?;
                    }
                }
                let text = format!("{}: {}{}", o.text, holds(o), compared(o));
                hanging(out, "  ", 4, &text)?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", fold(&all.summary.to_string(), WIDTH).join("\n"))?;
    writeln!(out, "{}", seeds_line(seeds))
}

/// What a number of ours is.
fn seeds_line(seeds: u32) -> String {
    match seeds {
        1 => "here: one run of each configuration, seed 0".to_owned(),
        n => format!(
            "here: median of {n} runs of each configuration, seeds 0 to {}",
            n - 1
        ),
    }
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
        for (m, n) in rows(all, s) {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                m.configuration,
                what(m),
                n.map_or(String::new(), |n| figure(n.published)),
                ours(m),
                range(m),
                n.map_or(String::new(), ratio),
                n.map_or("", |n| &n.tolerance),
                n.map_or("", verdict)
            )?;
        }
        for (basis, heading) in BASES {
            for (i, o) in orderings(all, s, basis).enumerate() {
                if i == 0 {
                    writeln!(out, "\n{}{}:\n", heading[..1].to_uppercase(), &heading[1..])?;
                }
                let remark = match o.remark.as_str() {
                    "" => String::new(),
                    remark => format!(" [{remark}]"),
                };
                writeln!(out, "- {}: {}{}{remark}", o.text, holds(o), compared(o))?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}.", all.summary)
}
