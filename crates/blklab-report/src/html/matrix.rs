// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first screen of a matrix: who is best for one figure, by how much, how sure that is,
//! and at whose cost; behind it what other jobs have.

use super::tables::Table;
use crate::ranking;
use crate::svg::escaped;
use blklab::statistics::Verdict as Sureness;
use blklab::verdict::Verdict;
use std::fmt::Write as _;

pub(super) fn section(out: &mut String, verdict: &Verdict) {
    out.push_str("<section aria-labelledby=\"verdict\"><h2 id=\"verdict\">");
    let _ = write!(
        out,
        "{}</h2><dl class=\"answer\">",
        escaped(&verdict.figure)
    );
    let is_contested = verdict.best.is_none() && verdict.first.is_some();
    let head = if is_contested { "None is best" } else { "Best" };
    for (name, text) in [
        (head, &verdict.answer),
        ("How sure", &verdict.sure),
        ("At whose cost", &verdict.cost),
    ] {
        if !text.is_empty() {
            let text = escaped(text);
            let _ = write!(out, "<div><dt>{name}</dt><dd>{text}</dd></div>");
        }
    }
    out.push_str("</dl>");
    if let Some(svg) = ranking::inline(verdict) {
        let _ = write!(out, "<figure class=\"wide ranking\">{svg}</figure>");
    }
    rows(out, verdict);
    others(out, verdict);
    out.push_str("</section>");
}

fn rows(out: &mut String, verdict: &Verdict) {
    let figure = escaped(&verdict.figure);
    let caption = format!("{figure}, in the order given");
    let heads = [
        "",
        "value",
        "95 % interval",
        "calls",
        "calls a second",
        "runs",
        "the first is better by",
    ];
    let mut table = Table::new(&caption, &heads);
    for (i, row) in verdict.rows.iter().enumerate() {
        table.begin(&row.label);
        match row.value {
            Some(value) => table.number(value, &row.text),
            None => table.none(),
        }
        table.text(&row.interval_text);
        for number in [row.calls, row.calls_per_s] {
            match number {
                Some(number) => table.number(number, &format!("{number:.1}")),
                None => table.none(),
            }
        }
        table.count(row.repetitions as u64);
        match (verdict.first, row.behind, row.verdict) {
            (Some(first), ..) if first == i => table.text(if verdict.best.is_some() {
                "best"
            } else {
                "shortest, by doing less"
            }),
            (Some(_), Some(behind), judged) => {
                // Of one run each the sentence says so.
                let judged = judged.filter(|v| !matches!(v, Sureness::Better | Sureness::OneRun));
                let judged = judged.map_or("", Sureness::text);
                let text = format!("{behind:.2} times {judged}");
                table.number(behind, text.trim_end());
            }
            _ => table.none(),
        }
        table.end();
    }
    table.finish(out);
}

/// A column for each figure of another job: unlike jobs are never summed up.
fn others(out: &mut String, verdict: &Verdict) {
    if verdict.others.is_empty() {
        return;
    }
    let names: Vec<String> = verdict.others.iter().map(|name| escaped(name)).collect();
    let mut heads = vec![""];
    heads.extend(names.iter().map(String::as_str));
    let mut table = Table::new("What other jobs have", &heads);
    let is_repeated = verdict.rows.iter().any(|row| row.repetitions > 1);
    for row in &verdict.rows {
        table.begin(&row.label);
        for other in &row.others {
            match other.value {
                Some(value) if is_repeated => {
                    let text = format!("{} ({})", other.text, other.interval_text);
                    table.number(value, &text);
                }
                Some(value) => table.number(value, &other.text),
                None => table.none(),
            }
        }
        table.end();
    }
    table.finish(out);
}
