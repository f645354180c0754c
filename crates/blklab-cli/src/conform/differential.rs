// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab conform --against kernel`: experiments on the models and on real kernels.

use crate::Outcome;
use crate::args::{ConformArgs, ConformFormat};
use crate::interrupt::Interrupt;
use crate::output::{cut, fold};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab::experiment::Experiment;
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab_fidelity::conform::find_cases;
use blklab_fidelity::differential::{
    Case, Compared, Kept, Pair, Totals, Wanted, draw, keep, shrink, totals,
};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Kernels, if none is named.
const KERNELS: &[&str] = &["6.12"];
/// Schedulers, if none is named.
const SCHEDULERS: &[&str] = &["none", "mq-deadline", "kyber", "bfq"];
/// Experiments for each kernel, if it is not said how many.
const COUNT: u64 = 50;
/// Draws in a row that a target may refuse.
const DRAWS_MAX: u64 = 50;

/// Something to compare.
struct Item {
    experiment: Experiment,
    /// Its rows, if it was drawn.
    case: Option<Case>,
}

/// What became of it.
enum Ran {
    Compared(Box<Compared>, Option<Kept>),
    Failed(String),
    /// No time was left for it.
    Left,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    seed: u64,
    totals: &'a [Totals],
    failed: &'a [(String, String)],
    left: usize,
    experiments: Vec<&'a Compared>,
}

pub(super) fn conform(a: &ConformArgs) -> Result<Outcome> {
    if let Some(folder) = &a.keep {
        super::check_empty(folder)?;
    }
    let interrupt = Interrupt::watch();
    // A real kernel has no schedulers but its own.
    let planner = targets::planner(Schedulers::default());
    let pair = Pair::new(planner, Arc::clone(&interrupt.stop));
    let items = if a.paths.is_empty() {
        drawn(a, &pair)?
    } else {
        given(a, &pair)?
    };
    let threads = a.jobs.map_or_else(blklab::parallel::cores, usize::from);
    let until = a
        .time_limit
        .map(|s| Instant::now() + Duration::from_secs(s));
    let progress = Progress::new(items.len());
    let results = blklab::parallel::map(&items, threads, |item| {
        let is_late = until.is_some_and(|until| Instant::now() > until);
        let result = if is_late || interrupt.stop.load(Ordering::Relaxed) {
            Ran::Left
        } else {
            compare(&pair, item, a.keep.as_deref(), &interrupt.stop)
        };
        progress.step();
        result
    });
    progress.finish();
    let mut compared = Vec::new();
    let mut kept = Vec::new();
    let mut failed = Vec::new();
    let mut left = 0;
    for (item, result) in items.iter().zip(results) {
        match result {
            Ran::Compared(c, file) => {
                compared.push(*c);
                kept.extend(file);
            }
            Ran::Failed(why) => failed.push((item.experiment.id.clone(), why)),
            Ran::Left => left += 1,
        }
    }
    let rows = totals(&compared);
    let mut out = std::io::stdout().lock();
    match a.output_format {
        ConformFormat::Json => {
            let shown = Shown {
                seed: a.seed,
                totals: &rows,
                failed: &failed,
                left,
                experiments: compared.iter().collect(),
            };
            serde_json::to_writer_pretty(&mut out, &shown).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        ConformFormat::Markdown => markdown(&mut out, &rows)?,
        ConformFormat::Table => {
            if !a.paths.is_empty() {
                each(&mut out, &compared)?;
            }
            table(&mut out, &rows)?;
            remarks(&mut out, &failed, left, &kept)?;
        }
    }
    out.flush()?;
    if compared.is_empty() {
        match failed.first() {
            Some((id, why)) => bail!("{id}: {why}"),
            None => bail!("nothing was compared"),
        }
    }
    let differs = compared.iter().any(|c| c.verdict.is_difference()) || !failed.is_empty();
    Ok(if differs {
        Outcome::Differs
    } else {
        Outcome::Done
    })
}

/// Random experiments that both targets take.
fn drawn(a: &ConformArgs, pair: &Pair) -> Result<Vec<Item>> {
    let or_all = |given: &[String], all: &[&str]| -> Vec<String> {
        if given.is_empty() {
            return all.iter().map(|s| (*s).to_owned()).collect();
        }
        given.to_vec()
    };
    let schedulers = or_all(&a.scheduler, SCHEDULERS);
    let mut items = Vec::new();
    for kernel in or_all(&a.kernel, KERNELS) {
        let wanted = Wanted {
            kernel,
            schedulers: schedulers.clone(),
        };
        let (mut number, mut refused) = (0, 0);
        let mut found = 0;
        while found < a.count.unwrap_or(COUNT) {
            let case = draw(&wanted, a.seed, number);
            number += 1;
            let checked = case
                .experiment(pair.catalogue())
                .and_then(|e| pair.check(&e).map(|()| e));
            match checked {
                Ok(experiment) => {
                    found += 1;
                    refused = 0;
                    items.push(Item {
                        experiment,
                        case: Some(case),
                    });
                }
                Err(e) if refused == DRAWS_MAX => bail!("{}: {e}", case.id),
                Err(_) => refused += 1,
            }
        }
    }
    Ok(items)
}

/// The experiments of paths.
fn given(a: &ConformArgs, pair: &Pair) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for path in find_cases(&a.paths)? {
        let experiment = blklab::experiment::load(&path, pair.catalogue())?;
        if !a.cases.is_empty() && !a.cases.contains(&experiment.id) {
            continue;
        }
        items.push(Item {
            experiment,
            case: None,
        });
    }
    Ok(items)
}

fn compare(pair: &Pair, item: &Item, folder: Option<&Path>, stop: &AtomicBool) -> Ran {
    let e = &item.experiment;
    let compared = match pair.compare(e) {
        Ok(Some(compared)) => compared,
        Ok(None) => return Ran::Left,
        Err(why) => return Ran::Failed(why.to_string()),
    };
    let (Some(folder), Some(case)) = (folder, &item.case) else {
        return Ran::Compared(Box::new(compared), None);
    };
    if !compared.verdict.is_difference() || stop.load(Ordering::Relaxed) {
        return Ran::Compared(Box::new(compared), None);
    }
    let shrunk = shrink(pair, case, compared.clone());
    let kept = shrunk.and_then(|(case, small)| keep(folder, &case, &small));
    match kept {
        Ok(kept) => Ran::Compared(Box::new(compared), Some(kept)),
        Err(why) => Ran::Failed(why.to_string()),
    }
}

fn percent(part: usize, of: usize) -> String {
    match of {
        0 => "-".to_owned(),
        // Nearly all is not all.
        _ => format!("{:.1}%", (1000 * part / of) as f64 / 10.0),
    }
}

fn error(e: Option<f64>) -> String {
    e.map_or("-".to_owned(), |e| format!("{:.2}%", 100.0 * e))
}

/// The fields of a row.
fn fields(t: &Totals) -> [String; 8] {
    [
        t.kernel.clone(),
        t.scheduler.clone(),
        t.experiments.to_string(),
        percent(t.identical, t.experiments),
        percent(t.identical + t.ties, t.experiments),
        percent(t.given_identical, t.given),
        percent(t.within, t.figures),
        error(t.median_error),
    ]
}

const HEAD: [&str; 8] = [
    "kernel",
    "scheduler",
    "runs",
    "same order",
    "or a tie",
    "bios given",
    "in band",
    "error",
];

fn table(out: &mut impl Write, rows: &[Totals]) -> std::io::Result<()> {
    let mut line = |f: [String; 8]| {
        let [kernel, scheduler, runs, same, tie, given, within, error] = f;
        writeln!(
            out,
            "{kernel:<7} {scheduler:<12} {runs:>5} {same:>11} {tie:>9} {given:>11} {within:>8} {error:>7}"
        )
    };
    line(HEAD.map(str::to_owned))?;
    for t in rows {
        line(fields(t))?;
    }
    for t in rows.iter().filter(|t| t.scheduler == "all") {
        writeln!(
            out,
            "\nwhat parts them first, kernel {}, and how many part with bios given, too:",
            t.kernel
        )?;
        for k in &t.kinds {
            writeln!(
                out,
                "{:>5} {:>4}  {:<45} {}",
                k.count,
                k.with_bios_given,
                cut(&k.kind, 45),
                cut(&k.example, 22)
            )?;
        }
    }
    Ok(())
}

fn markdown(out: &mut impl Write, rows: &[Totals]) -> std::io::Result<()> {
    writeln!(
        out,
        "| {} |\n|---|---|---|---|---|---|---|---|",
        HEAD.join(" | ")
    )?;
    for t in rows {
        writeln!(out, "| {} |", fields(t).join(" | "))?;
    }
    for t in rows.iter().filter(|t| t.scheduler == "all") {
        writeln!(
            out,
            "\n| what parts them first, kernel {} | experiments | part with bios given, too |\n\
             |---|---|---|",
            t.kernel
        )?;
        for k in &t.kinds {
            writeln!(out, "| {} | {} | {} |", k.kind, k.count, k.with_bios_given)?;
        }
    }
    Ok(())
}

/// Experiments one by one.
fn each(out: &mut impl Write, all: &[Compared]) -> std::io::Result<()> {
    for c in all {
        let outside = c.outside();
        writeln!(
            out,
            "{:<30} {} of {} figures in band",
            cut(&c.id, 30),
            c.figures.len() - outside.len(),
            c.figures.len()
        )?;
        let what = format!("{}: {}", c.verdict.words(), c.sentence);
        writeln!(out, "    {}", fold(&what, 76).join("\n    "))?;
        writeln!(out, "    {}", fold(&c.given.words(), 76).join("\n    "))?;
    }
    writeln!(out)
}

fn remarks(
    out: &mut impl Write,
    failed: &[(String, String)],
    left: usize,
    kept: &[Kept],
) -> std::io::Result<()> {
    if !failed.is_empty() {
        writeln!(out, "\nfailed:")?;
    }
    for (id, why) in failed {
        let rest = format!("\n{:25}", "");
        writeln!(out, "{:<24} {}", cut(id, 24), fold(why, 55).join(&rest))?;
    }
    if left > 0 {
        writeln!(out, "\n{left} were not run: no time was left")?;
    }
    if !kept.is_empty() {
        writeln!(out, "\nkept:")?;
    }
    for k in kept {
        writeln!(out, "  {}", k.file.display())?;
    }
    Ok(())
}
