// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recommendation for people: one sentence, one table, what to paste, what cannot help.

use super::paste;
use crate::output::{hanging, paragraph};
use anyhow::Result;
use blklab_recommend::{Price, Pruned, Recommendation, Tried};
use std::io::Write;

/// Rows of the table, unless all are wanted.
const ROWS_SHOWN: usize = 8;

/// A gain that is none, in both ways.
const NONE: f64 = 0.02;

/// Others whose price is shown in a row.
const PRICES_SHOWN: usize = 2;

/// A price that is not worth a word.
const SMALL: f64 = 0.05;

pub(super) fn show(out: &mut impl Write, r: &Recommendation, all: bool) -> Result<()> {
    paragraph(out, &sentence(r))?;
    writeln!(out)?;
    table(out, r, all)?;
    if let Some(best) = r.best() {
        paste::show(out, best, &r.disks)?;
    }
    confirmed(out, r)?;
    grid(out, r)?;
    list(out, "Cannot help here:", &r.left_out)?;
    if all {
        list(out, "Not tried:", &r.not_tried)?;
    } else if !r.not_tried.is_empty() {
        writeln!(
            out,
            "\n{} more could not be tried (-v says why).",
            r.not_tried.len()
        )?;
    }
    writeln!(out)?;
    let mut notes = vec![format!(
        "{} runs in the models of {}; kept: {}",
        r.runs,
        r.on,
        if r.keeps.is_empty() {
            "nothing, as there is nobody else".to_owned()
        } else {
            r.keeps.join("; ")
        }
    )];
    notes.extend(r.pruned.as_ref().map(pruned));
    notes.push(format!(
        "the intervals are of {} seeds: random offsets, the device's state; another load may \
         behave otherwise",
        r.repetitions
    ));
    notes.extend(r.notes.iter().cloned());
    for note in notes {
        hanging(out, "note: ", 6, &note)?;
    }
    Ok(())
}

/// What became of the parts of the best combination.
fn pruned(p: &Pruned) -> String {
    let gone = p
        .left_out
        .iter()
        .map(|l| format!("{} ({} with it, {} without)", l.what, l.with, l.without));
    let gone: Vec<String> = gone.collect();
    let became = if gone.is_empty() {
        "none can go".to_owned()
    } else {
        format!(
            "left out, as what it gains is below 5 % or not sure: {}",
            gone.join(", then ")
        )
    };
    let text = format!(
        "{} of these runs tried the best combination without each of its parts; {became}",
        p.runs
    );
    match p.not_run {
        0 => text,
        more => text + &format!("; {more} such parts could not be run (-v says why)"),
    }
}

/// The answer.
fn sentence(r: &Recommendation) -> String {
    let Some(best) = r.best() else {
        let why = match r.tried.first().filter(|t| t.seeds > 1) {
            Some(first) => format!(
                "of {} things that were tried none is surely better and keeps to the bounds; \
                 the nearest, {}, gave {} on the mean",
                r.tried.len(),
                first.what,
                first.value
            ),
            None => format!(
                "of {} things that were tried none makes {} better by 3 % and keeps to the bounds",
                r.tried.len(),
                r.goal
            ),
        };
        return format!(
            "Leave it as it is: {why}. {} is {}.",
            capital(&r.goal),
            r.before
        );
    };
    let paid: Vec<String> = worse(&best.prices).map(price_text).collect();
    let price = if paid.is_empty() {
        "nobody pays for it".to_owned()
    } else {
        format!("the price: {}", paid.join(", "))
    };
    format!(
        "Set {}: {} goes from {} to {} ({}); {price}.",
        best.what,
        r.goal,
        r.before,
        best.value,
        gain_text(best)
    )
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// Prices that somebody pays, the highest first.
fn worse(prices: &[Price]) -> impl Iterator<Item = &Price> {
    let gain = |p: &&Price| p.gain.unwrap_or(0.0);
    let mut all: Vec<&Price> = prices.iter().filter(|p| gain(p) < 1.0 - SMALL).collect();
    all.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    all.into_iter().take(PRICES_SHOWN)
}

fn price_text(p: &Price) -> String {
    format!("{} {} instead of {}", p.figure, p.after, p.before)
}

/// How many times better, with its interval.
fn gain_text(t: &Tried) -> String {
    let times = |gain: f64| {
        if gain >= 1.0 {
            format!("{gain:.2} times better")
        } else {
            format!("{:.2} times worse", 1.0 / gain.max(1e-9))
        }
    };
    match t.interval {
        Some([low, high]) if high - low > 0.005 => {
            format!("{}, 95 %: {low:.2} to {high:.2}", times(t.gain))
        }
        Some(_) => format!("{}, the same with each seed", times(t.gain)),
        None => times(t.gain),
    }
}

fn table(out: &mut impl Write, r: &Recommendation, all: bool) -> Result<()> {
    writeln!(out, "{}", r.goal)?;
    writeln!(
        out,
        "   {:>9} {:>7}  {:<13} what",
        "value", "better", "95 %"
    )?;
    writeln!(out, "   {:>9} {:>7}  {:<14} as it is", r.before, "", "")?;
    let shown = shown(r, all);
    for &i in &shown {
        let t = &r.tried[i];
        let mark = if r.answer == Some(i) { ">" } else { " " };
        let interval = match t.interval {
            Some(interval) if is_wide(interval) => {
                format!("{:.2} to {:.2}", interval[0], interval[1])
            }
            Some(_) => "same each time".to_owned(),
            None => String::new(),
        };
        let head = format!("{mark}  {:>9} {:>6.2}x  {interval:<14} ", t.value, t.gain);
        let mut text = t.what.clone();
        for price in worse(&t.prices) {
            text += &format!("; {}", price_text(price));
        }
        if !t.breaks.is_empty() {
            text += &format!("; breaks: {}", t.breaks.join(", "));
        }
        hanging(out, &head, 36, &text)?;
    }
    if r.tried.len() > shown.len() {
        writeln!(
            out,
            "   and {} more (-v shows all)",
            r.tried.len() - shown.len()
        )?;
        without_effect(out, r)?;
    }
    Ok(())
}

/// What made no difference by itself, or made it worse.
fn without_effect(out: &mut impl Write, r: &Recommendation) -> Result<()> {
    let singles = || r.tried.iter().filter(|t| t.steps.len() == 1);
    let is_none = |t: &&Tried| (t.gain - 1.0).abs() <= NONE;
    let worse = |t: &&Tried| t.gain < 1.0 - NONE;
    for (title, tried) in [
        (
            "No difference by itself:",
            singles().filter(is_none).collect::<Vec<&Tried>>(),
        ),
        ("Worse:", singles().filter(worse).collect()),
    ] {
        if !tried.is_empty() {
            writeln!(out, "\n{title}")?;
            hanging(out, "  ", 4, &by_name(&tried))?;
        }
    }
    Ok(())
}

/// Names once, each with the values that were tried.
fn by_name(tried: &[&Tried]) -> String {
    let mut names: Vec<(&str, Vec<&str>)> = Vec::new();
    for t in tried {
        let parts = t.what.split_once(": ").or_else(|| t.what.split_once('='));
        let (name, value) = parts.unwrap_or((&t.what, ""));
        match names.iter_mut().find(|(other, _)| *other == name) {
            Some((_, values)) => values.push(value),
            None => names.push((name, vec![value])),
        }
    }
    let told = names.iter().map(|(name, values)| match values.join(", ") {
        values if values.is_empty() => (*name).to_owned(),
        values => format!("{name} ({values})"),
    });
    told.collect::<Vec<String>>().join("; ")
}

/// Places of the rows that are shown: the best, without what adds nothing to one of them.
fn shown(r: &Recommendation, all: bool) -> Vec<usize> {
    let mut shown: Vec<usize> = Vec::new();
    for (i, t) in r.tried.iter().enumerate() {
        let adds = |j: &usize| !t.adds_nothing_to(&r.tried[*j]);
        let is_answer = r.answer == Some(i);
        let gains = t.gain > 1.0 + NONE && shown.iter().all(adds);
        if all || is_answer || shown.len() < ROWS_SHOWN && gains {
            shown.push(i);
        }
    }
    shown
}

/// Whether seeds make a difference that can be seen.
fn is_wide([low, high]: [f64; 2]) -> bool {
    high - low > 0.005
}

fn confirmed(out: &mut impl Write, r: &Recommendation) -> Result<()> {
    let Some(c) = &r.confirmed else { return Ok(()) };
    let text = match (&c.before, &c.after, c.gain) {
        (Ok(before), Ok(after), Some(gain)) => {
            format!(
                "{} goes from {before} to {after}, {gain:.2} times better",
                r.goal
            )
        }
        (Err(why), ..) | (_, Err(why), _) => format!("not confirmed: {why}"),
        (Ok(_), Ok(_), None) => "not confirmed".to_owned(),
    };
    writeln!(out)?;
    let text = format!("On the target {}: {text}.", c.target);
    Ok(hanging(out, "", 3, &text)?)
}

/// The best of all combinations beside the answer.
fn grid(out: &mut impl Write, r: &Recommendation) -> Result<()> {
    let Some(g) = &r.grid else { return Ok(()) };
    let best = match &g.what {
        Some(what) => format!("{what} is best of them and gives {}", g.text),
        None => "none of them is better than to leave it as it is".to_owned(),
    };
    let beside = match g.ahead {
        a if a > 1.0 + NONE => format!(
            "the answer, {}, is {:.1} % behind",
            g.answer_text,
            (a - 1.0) * 100.0
        ),
        a if a < 1.0 - NONE => format!("the answer, {}, is better", g.answer_text),
        _ => format!("so does the answer, {}", g.answer_text),
    };
    let text = format!(
        "All {} combinations of up to {} things: {best}; {beside}. That took {} runs, the answer {}.",
        g.combinations, g.together, g.runs, r.runs
    );
    writeln!(out)?;
    Ok(hanging(out, "", 3, &text)?)
}

fn list(out: &mut impl Write, title: &str, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for line in lines {
        hanging(out, "  ", 4, line)?;
    }
    Ok(())
}
