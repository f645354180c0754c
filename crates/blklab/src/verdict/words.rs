// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts on matrices in words.

use super::{Loss, Row};
use crate::figure::Figure;
use crate::statistics::{Change, Verdict as Sureness};

/// Losses that are said.
const LOSSES_SAID: usize = 3;

/// The interval of a row, or why there is none.
pub(super) fn interval(
    figure: &Figure,
    repetitions: usize,
    runs: usize,
    interval: Option<[f64; 2]>,
) -> String {
    match interval {
        Some([low, high]) => format!("{} to {}", figure.text(low), figure.text(high)),
        None if repetitions == 1 => "one run".to_owned(),
        None if runs == 1 => format!("{repetitions} copies of one run"),
        None => "the same in each run".to_owned(),
    }
}

fn times(gain: f64) -> String {
    match gain {
        g if !g.is_finite() => "beyond all measure better".to_owned(),
        g if g >= 99.5 => format!("{g:.0} times better"),
        g if g >= 9.95 => format!("{g:.1} times better"),
        g => format!("{g:.2} times better"),
    }
}

/// Places of the others, the nearest to the best first.
fn by_distance(rows: &[Row], best: usize) -> Vec<usize> {
    let mut others: Vec<usize> = (0..rows.len()).filter(|i| *i != best).collect();
    let behind = |i: &usize| rows[*i].behind.unwrap_or(f64::INFINITY);
    others.sort_by(|a, b| behind(a).total_cmp(&behind(b)));
    others
}

/// Who is best, and by how much.
pub(super) fn answer(
    figure: &Figure,
    rows: &[Row],
    best: Option<usize>,
    did_more: Option<usize>,
) -> String {
    let Some(best) = best else {
        let value = rows.iter().find(|row| row.value.is_some());
        let value = value.map_or("none", |row| row.text.as_str());
        return format!("{figure} is {value} in all of them.");
    };
    let named = by_distance(rows, best);
    let has_value = |i: &&usize| rows[**i].value.is_some();
    let known: Vec<usize> = named.iter().filter(has_value).copied().collect();
    let said = |i: usize, role: &str| {
        let behind = rows[i].behind.unwrap_or(1.0);
        format!("{} than {}{role}", times(behind), rows[i].label)
    };
    let by = match known[..] {
        [] => String::new(),
        [only] => format!(", {}", said(only, "")),
        [next, .., worst] => format!(
            ", {}, and {}",
            said(next, ", the next"),
            said(worst, ", the worst")
        ),
    };
    let own = &rows[best];
    let mut text = match did_more {
        None => format!("{} is best for {figure}: {}{by}.", own.label, own.text),
        Some(more) => format!(
            "{} has the shortest {figure}: {}{by}. {}",
            own.label,
            own.text,
            less(own, &rows[more])
        ),
    };
    let without: Vec<&str> = named
        .iter()
        .filter(|i| rows[**i].value.is_none())
        .map(|i| rows[*i].label.as_str())
        .collect();
    if !without.is_empty() {
        text += &format!(" It makes no such calls under {}.", without.join(", "));
    }
    text
}

/// That one did much less than another.
fn less(own: &Row, more: &Row) -> String {
    let per_s = |row: &Row| row.calls_per_s.unwrap_or(0.0);
    format!(
        "That does not make it the best: it made {} such calls a second, {} made {}, {:.1} \
         times as many (with {}).",
        rate(per_s(own)),
        more.label,
        rate(per_s(more)),
        per_s(more) / per_s(own),
        more.text
    )
}

/// Calls in a second.
fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

/// How sure it is that the best is best.
pub(super) fn sure(
    figure: &Figure,
    rows: &[Row],
    best: Option<usize>,
    changes: &[Option<Change>],
) -> String {
    let repetitions = rows.iter().map(|row| row.repetitions).max().unwrap_or(1);
    if repetitions == 1 {
        return "One run each: no interval.".to_owned();
    }
    let Some(best) = best else {
        return format!("{repetitions} runs each.");
    };
    let copies = rows.iter().filter(|row| row.runs == 1).count();
    if copies == rows.len() {
        return format!(
            "The {repetitions} repetitions of each are the same run: they count as one, without \
             an interval."
        );
    }
    let is_with =
        |i: &usize, what: &[Sureness]| rows[*i].verdict.is_some_and(|v| what.contains(&v));
    let near = by_distance(rows, best);
    let unsure: Vec<&str> = near
        .iter()
        .filter(|i| is_with(i, &[Sureness::NoDifference, Sureness::Same]))
        .map(|i| rows[*i].label.as_str())
        .collect();
    let unjudged: Vec<&str> = near
        .iter()
        .filter(|i| is_with(i, &[Sureness::OneRun, Sureness::NoSpread]))
        .map(|i| rows[*i].label.as_str())
        .collect();
    let mut parts = Vec::new();
    if !unsure.is_empty() {
        parts.push(format!(
            "These runs do not tell it from {}",
            unsure.join(", ")
        ));
    }
    if !unjudged.is_empty() {
        parts.push(format!(
            "Beside {} it is not judged: their runs are copies, or have the same value",
            unjudged.join(", ")
        ));
    }
    let next = near
        .iter()
        .find(|i| is_with(i, &[Sureness::Better, Sureness::Worse]));
    if let Some(&next) = next
        && let Some(interval) = changes[next].and_then(|c| c.interval)
    {
        let [a, b] = interval.map(|ratio| figure.gain(1.0, ratio));
        let than = if near.len() > 1 {
            format!(" than {}", rows[next].label)
        } else {
            String::new()
        };
        parts.push(format!(
            "Sure: {:.2} to {:.2} times better{than} (95 % interval, {repetitions} runs each)",
            a.min(b),
            a.max(b)
        ));
    }
    if parts.is_empty() {
        parts.push(format!("{repetitions} runs each"));
    }
    parts.join(". ") + "."
}

/// What other jobs lose.
pub(super) fn cost(losses: Option<&[Loss]>, has_others: bool) -> String {
    let Some(losses) = losses else {
        return String::new();
    };
    if !has_others {
        return "There is no other job.".to_owned();
    }
    let [sure, noise]: [Vec<&Loss>; 2] =
        [false, true].map(|noise| losses.iter().filter(|l| l.is_noise == noise).collect());
    let said = |losses: &[&Loss]| {
        let said = losses.iter().take(LOSSES_SAID).map(|loss| {
            let figure = &loss.figure;
            let own = loss.under_best.map(|v| figure.text(v));
            format!(
                "{figure} {} instead of {} ({})",
                own.as_deref().unwrap_or("none"),
                figure.text(loss.at_most),
                loss.label
            )
        });
        said.collect::<Vec<_>>().join("; ")
    };
    if !sure.is_empty() {
        return format!("Others pay: {}.", said(&sure));
    }
    if !noise.is_empty() {
        return format!(
            "Others may pay; these runs do not tell it from none: {}.",
            said(&noise)
        );
    }
    "No other job loses by it.".to_owned()
}
