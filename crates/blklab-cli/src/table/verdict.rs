// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a matrix comes to, before all its tables: who is best for one figure, by how much, how
//! sure that is, and at whose cost.

use super::{Pairs, WIDTH, label};
use crate::output::{cut, figures, hanging};
use anyhow::Result;
use blklab::figure::Figure;
use blklab::same::nr_experiments;
use blklab::verdict::{Row, Verdict, judge, sides};
use std::io::Write;

/// Columns of a value, and of its interval.
const VALUE: usize = 10;
const INTERVAL: usize = 22;
/// Columns of the calls in a second.
const CALLS: usize = 9;
/// Other jobs that have a column here.
const OTHERS_SHOWN: usize = 2;
/// Columns of each.
const OTHER: usize = 10;

pub(super) fn show(out: &mut impl Write, pairs: &Pairs<'_>, asked: Option<&Figure>) -> Result<()> {
    if nr_experiments(pairs) < 2 {
        return Ok(());
    }
    let verdict = match judge(&sides(pairs), asked) {
        Ok(verdict) => verdict,
        // Nobody asked: a load without calls that can be judged has its tables.
        Err(_) if asked.is_none() => return Ok(()),
        Err(err) => return Err(err.in_file("--for").into()),
    };
    writeln!(out)?;
    let is_single = verdict.rows.iter().all(|row| row.repetitions == 1);
    let hint = if is_single {
        " --repeat 5 gives one."
    } else {
        ""
    };
    let sure = format!("{}{hint}", verdict.sure);
    for text in [&verdict.answer, &sure, &verdict.cost] {
        if !text.is_empty() {
            hanging(out, "", 0, text)?;
        }
    }
    writeln!(out)?;
    rows(out, &verdict)
}

fn rows(out: &mut impl Write, verdict: &Verdict) -> Result<()> {
    let is_repeated = verdict.rows.iter().any(|row| row.repetitions > 1);
    // Bandwidths are what others have: their names alone stand over them.
    let others = verdict.others.iter().enumerate();
    let others: Vec<(usize, &str)> = others
        .filter_map(|(i, name)| Some((i, name.strip_prefix("bandwidth of ")?)))
        .take(OTHERS_SHOWN)
        .collect();
    let has_calls = verdict.rows.iter().any(|row| row.calls_per_s.is_some());
    let calls = if has_calls { CALLS } else { 0 };
    let beside =
        VALUE + calls + others.len() * (OTHER + 1) + if is_repeated { INTERVAL } else { 0 };
    let length = |row: &Row| row.label.chars().count();
    let width = verdict.rows.iter().map(length);
    let width = width.filter(|w| *w + 2 + beside <= WIDTH).max();
    let width = width.unwrap_or(0).max(11);
    let mut head = format!("  {:<width$} {:>9}", "", "value");
    if has_calls {
        head += &format!(" {:>8}", "calls/s");
    }
    if is_repeated {
        head += &format!("  {:<20}", "95 %");
    }
    for (_, name) in &others {
        head += &format!(" {:>OTHER$}", cut(name, OTHER));
    }
    hanging(out, "", 0, &verdict.figure)?;
    writeln!(out, "{}", head.trim_end())?;
    for (i, row) in verdict.rows.iter().enumerate() {
        let mark = if verdict.best == Some(i) { "> " } else { "  " };
        write!(out, "{mark}")?;
        label(out, &row.label, width)?;
        let mut line = format!(" {:>9}", row.text);
        if has_calls {
            let calls = row.calls_per_s.map_or("none".to_owned(), figures);
            line += &format!(" {calls:>8}");
        }
        if is_repeated {
            line += &format!("  {:<20}", row.interval_text);
        }
        for (place, _) in &others {
            line += &format!(" {:>OTHER$}", row.others[*place].text);
        }
        writeln!(out, "{}", cut(line.trim_end(), WIDTH - width - 2))?;
    }
    Ok(())
}
