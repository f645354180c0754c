// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab reproduce --testbeds`.

use crate::Outcome;
use crate::args::{ReproduceArgs, ReproduceFormat};
use crate::guard::{self, Guard, Place};
use crate::interrupt::Interrupt;
use crate::output::{Output, WIDTH, cut, fold, hanging};
use crate::progress::Progress;
use crate::reproduce::{studies, what};
use anyhow::{Context as _, Result, bail};
use blklab_fidelity::reproduce::testbeds::{
    Explained, Journal, NumberOnTestbeds, TestbedOutcome, Testbeds, Together,
};
use blklab_fidelity::reproduce::{Basis, Kind};
use blklab_report::reproduced::figure;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(a: &ReproduceArgs) -> Result<Outcome> {
    let nr = a.testbeds.unwrap_or(0);
    if nr == 0 || a.jobs == Some(0) {
        bail!("--testbeds and --jobs: at least 1");
    }
    if a.names.is_empty() {
        bail!("--testbeds: name the studies of one machine; blklab reproduce list shows them");
    }
    let studies = studies(&a.names)?;
    let testbeds = Testbeds::new(&studies, nr, a.testbed_seed).context("--testbeds")?;
    let mut guard = Guard::default();
    let mut output = Output::open(&mut guard, a.output.as_deref())?;
    let kept = a
        .save
        .as_deref()
        .map(|folder| Kept::in_folder(folder, &mut guard));
    let kept = kept.transpose()?;
    let journal = match &kept {
        None => Journal::default(),
        Some(kept) => kept.open_journal()?,
    };
    let interrupt = Interrupt::watch();
    let progress = Progress::new(testbeds.nr_runs());
    let threads = a.jobs.unwrap_or_else(blklab::parallel::cores);
    let done = testbeds.run(threads, &interrupt.stop, &journal, || progress.step());
    progress.finish();
    let done = done?;
    match a.output_format {
        ReproduceFormat::Table => table(&mut output, &done)?,
        ReproduceFormat::Markdown => markdown(&mut output, &done)?,
        ReproduceFormat::Json => {
            serde_json::to_writer_pretty(&mut output, &done).map_err(io::Error::from)?;
            writeln!(output)?;
        }
    }
    if let Some(kept) = kept {
        kept.save(&done)?;
    }
    output.commit()?;
    let satisfied = done
        .together
        .last()
        .is_none_or(|t| !t.satisfied_by.is_empty());
    Ok(if interrupt.happened() {
        Outcome::Interrupted
    } else if satisfied {
        Outcome::Done
    } else {
        Outcome::Differs
    })
}

/// The files of `--save`.
struct Kept {
    /// A line for each run that is done.
    runs: Place,
    /// What was found.
    outcome: Place,
    /// All samples.
    samples: Place,
}

impl Kept {
    /// The folder is another's if it has results without the runs that they are from.
    fn in_folder(folder: &Path, guard: &mut Guard) -> Result<Kept> {
        let mut place = |name: &str| guard.writes_below(folder, name, "--save");
        let kept = Kept {
            runs: place("runs.jsonl")?,
            outcome: place("testbeds.json")?,
            samples: place("samples.csv")?,
        };
        let results = [&kept.outcome, &kept.samples];
        if let Some(other) = results.iter().find(|place| place.path().exists())
            && !kept.runs.path().exists()
        {
            bail!(
                "--save: {} exists, and there is no runs.jsonl beside it: it is not replaced; \
                 give another folder",
                other.path().display()
            );
        }
        Ok(kept)
    }

    fn open_journal(&self) -> Result<Journal> {
        let path = self.runs.path();
        if let Some(folder) = path.parent() {
            blklab::outputs::make_folder(folder).context("--save")?;
        }
        Ok(Journal::open(path)?)
    }

    fn save(self, done: &TestbedOutcome) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(done)?;
        json.push(b'\n');
        let mut csv = Vec::new();
        done.write_csv(&mut csv)?;
        guard::write_all(&[(self.outcome, json), (self.samples, csv)])
    }
}

/// A share of testbeds, in percent.
fn share(part: usize, of: usize) -> String {
    if of == 0 {
        return "-".to_owned();
    }
    format!("{:.0} %", 100.0 * part as f64 / of as f64)
}

fn verdict(n: &NumberOnTestbeds) -> String {
    match n.kind {
        Kind::Calibrated => "calibrated".to_owned(),
        Kind::Predicted if n.testbeds > 0 && n.within == 0 => format!("NONE ({})", n.tolerance),
        Kind::Predicted => format!("{} ({})", share(n.within, n.testbeds), n.tolerance),
    }
}

/// Lowest, median and highest value over the testbeds.
fn interval(n: &NumberOnTestbeds) -> [String; 3] {
    match n.measured.ours {
        Some(s) => [s.min, s.median, s.max].map(figure),
        None => ["-", "-", "-"].map(str::to_owned),
    }
}

fn explanation(e: &Explained) -> String {
    let classes = e.classes.iter().filter(|c| c.testbeds > 0);
    let classes = classes.map(|c| format!("{}: {}", c.value, share(c.within, c.testbeds)));
    let classes: Vec<String> = classes.collect();
    format!("{}: {}", e.unknown, classes.join("; "))
}

fn satisfied(t: &Together) -> String {
    let of = t.studies.join(", ");
    let found = match t.satisfied_by.as_slice() {
        [] => "none".to_owned(),
        some => {
            let first: Vec<String> = some.iter().take(10).map(u32::to_string).collect();
            let more = if some.len() > 10 { ", …" } else { "" };
            format!("{} ({}{more})", some.len(), first.join(", "))
        }
    };
    let best = match t.best {
        Some((bed, within)) if t.satisfied_by.is_empty() => {
            format!("; testbed {bed} gives most of them, {within}")
        }
        _ => String::new(),
    };
    format!(
        "all {} predicted numbers of {of} together: {found} of {} testbeds{best}",
        t.numbers, t.testbeds
    )
}

/// What the testbed that gives most is.
fn best_settings(done: &TestbedOutcome) -> Option<String> {
    let (bed, _) = done.together.last()?.best?;
    let sample = done.samples.iter().find(|s| s.testbed == bed)?;
    let named = done.unknowns.iter().zip(&sample.settings);
    let named: Vec<String> = named.map(|(u, v)| format!("{} {v}", u.name)).collect();
    Some(format!("testbed {bed}: {}", named.join("; ")))
}

fn heading(done: &TestbedOutcome) -> String {
    format!(
        "{} testbeds (seed {}), {} complete: {}",
        done.testbeds,
        done.seed,
        done.complete,
        done.studies.join(", ")
    )
}

fn table(out: &mut impl Write, done: &TestbedOutcome) -> io::Result<()> {
    for line in fold(&heading(done), WIDTH) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "not known, and drawn:")?;
    for u in &done.unknowns {
        hanging(out, "  ", 4, &format!("{}: {}", u.name, u.values))?;
    }
    for study in &done.studies {
        writeln!(out, "\n{study}")?;
        writeln!(
            out,
            "{:<22} {:>9} {:>8} {:>8} {:>8} within (tolerance)",
            "", "published", "lowest", "median", "highest"
        )?;
        let mut last = String::new();
        for n in done.numbers.iter().filter(|n| n.measured.study == *study) {
            if what(&n.measured) != last {
                last = what(&n.measured);
                writeln!(out, "{}", cut(&last, WIDTH))?;
            }
            let [lowest, median, highest] = interval(n);
            writeln!(
                out,
                "  {:<20} {:>9} {:>8} {:>8} {:>8} {}",
                cut(&n.measured.configuration, 20),
                figure(n.published),
                lowest,
                median,
                highest,
                verdict(n)
            )?;
            if let (Kind::Predicted, Some(e)) = (n.kind, &n.explained) {
                hanging(out, "    by ", 7, &explanation(e))?;
            }
        }
        for o in done.orderings.iter().filter(|o| o.study == *study) {
            let origin = match o.basis {
                Basis::Published => "",
                Basis::Expected => " [expected by us]",
                Basis::Contradicted => " [contradicted by a measured kernel]",
            };
            let text = format!("{}{origin}: on {}", o.text, share(o.holds, o.testbeds));
            hanging(out, "  ", 4, &text)?;
        }
    }
    writeln!(out)?;
    for t in &done.together {
        hanging(out, "", 2, &satisfied(t))?;
    }
    if let Some(text) = best_settings(done) {
        hanging(out, "", 2, &text)?;
    }
    Ok(())
}

fn markdown(out: &mut impl Write, done: &TestbedOutcome) -> io::Result<()> {
    writeln!(
        out,
        "{}.\n\n| not known | drawn from |\n|---|---|",
        heading(done)
    )?;
    for u in &done.unknowns {
        writeln!(out, "| {} | {} |", u.name, u.values)?;
    }
    for study in &done.studies {
        writeln!(out, "\n## {study}\n")?;
        writeln!(
            out,
            "| | metric | published | lowest | median | highest | within | by |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        for n in done.numbers.iter().filter(|n| n.measured.study == *study) {
            let [lowest, median, highest] = interval(n);
            let by = match (n.kind, &n.explained) {
                (Kind::Predicted, Some(e)) => explanation(e),
                _ => String::new(),
            };
            writeln!(
                out,
                "| {} | {} | {} | {lowest} | {median} | {highest} | {} | {by} |",
                n.measured.configuration,
                what(&n.measured),
                figure(n.published),
                verdict(n)
            )?;
        }
        writeln!(out)?;
        for o in done.orderings.iter().filter(|o| o.study == *study) {
            writeln!(out, "- {}: on {}", o.text, share(o.holds, o.testbeds))?;
        }
    }
    writeln!(out)?;
    for t in &done.together {
        writeln!(out, "- {}", satisfied(t))?;
    }
    if let Some(text) = best_settings(done) {
        writeln!(out, "- {text}")?;
    }
    Ok(())
}
