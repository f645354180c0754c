// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a matrix comes to as a picture: a line for each label in the order given, its value
//! with the interval over repetitions, the best one dark.
//!
//! ```text
//! sync p99.9 of wal       10 ms      100 ms
//! dirty_bytes=64m              ├──●──┤          50.6 ms
//! dirty_bytes=8m       ├─●─┤                    16.9 ms, best
//! ```

use crate::svg::{Anchor, LogAxis, Svg};
use blklab::verdict::{Row, Verdict};

const LINE: f64 = 26.0;
const TOP: f64 = 56.0;
/// Between the names and the values.
const AXIS: f64 = 420.0;
const VALUES: f64 = 120.0;
/// More room for intervals.
const INTERVALS: f64 = 150.0;
/// A letter of a name.
const LETTER: f64 = 8.3;
const INK: &str = "currentColor";
const FAINT: &str = "#8886";
const BEST: &str = "#0072b2";
const OTHER: &str = "#8a8a8a";

/// Draws it within a page. None if no label has a value.
pub(crate) fn inline(verdict: &Verdict) -> Option<String> {
    drawn(verdict).map(|(svg, label)| svg.inline(&label))
}

/// The same as a file of its own.
pub(crate) fn file(verdict: &Verdict) -> Option<String> {
    drawn(verdict).map(|(svg, label)| svg.standalone(&label))
}

/// Where values stand.
enum Axis {
    /// Of times, which span decades.
    Times(LogAxis),
    /// Of rates, from 0 to the highest.
    Rates { most: f64, at: [f64; 2] },
}

impl Axis {
    fn new(verdict: &Verdict, at: [f64; 2]) -> Option<Axis> {
        let ends = |row: &Row| {
            let value = row.value?;
            Some(row.interval.unwrap_or([value, value]))
        };
        let all: Vec<[f64; 2]> = verdict.rows.iter().filter_map(ends).collect();
        let low = all.iter().map(|e| e[0]).reduce(f64::min)?;
        let most = all.iter().map(|e| e[1]).reduce(f64::max)?;
        Some(if verdict.metric.ends_with("_ns") {
            Axis::Times(LogAxis::new(low as u64, most as u64, at))
        } else {
            Axis::Rates {
                most: most.max(f64::MIN_POSITIVE),
                at,
            }
        })
    }

    fn place(&self, value: f64) -> f64 {
        match self {
            Axis::Times(axis) => axis.place(value as u64),
            Axis::Rates { most, at } => at[0] + (value / most).clamp(0.0, 1.0) * (at[1] - at[0]),
        }
    }
}

fn drawn(verdict: &Verdict) -> Option<(Svg, String)> {
    let longest = verdict.rows.iter().map(|row| row.label.chars().count());
    let names = LETTER * longest.max().unwrap_or(0) as f64 + 12.0;
    let at = [names + 10.0, names + AXIS];
    let axis = Axis::new(verdict, at)?;
    let bottom = TOP + LINE * verdict.rows.len() as f64;
    let has_intervals = verdict.rows.iter().any(|row| row.interval.is_some());
    let room = VALUES + if has_intervals { INTERVALS } else { 0.0 };
    let mut svg = Svg::new(at[1] + room, bottom + 14.0);
    let title = if has_intervals {
        format!(
            "{}, with its 95 % interval over repetitions",
            verdict.figure
        )
    } else {
        verdict.figure.clone()
    };
    svg.text([0.0, 18.0], Anchor::Start, (14.0, INK), &title);
    if let Axis::Times(log) = &axis {
        for (ns, name) in log.ticks() {
            let x = log.place(ns);
            svg.line([x, TOP - 8.0], [x, bottom], (1.0, FAINT));
            svg.text([x, TOP - 13.0], Anchor::Middle, (11.0, INK), &name);
        }
    } else {
        svg.line([at[0], TOP - 8.0], [at[0], bottom], (1.0, FAINT));
        svg.text([at[0], TOP - 13.0], Anchor::Middle, (11.0, INK), "0");
    }
    for (i, row) in verdict.rows.iter().enumerate() {
        let y = TOP + LINE * (i as f64 + 0.5);
        line(&mut svg, &axis, y, names, row, verdict.best == Some(i));
    }
    Some((svg, format!("{} {}", verdict.answer, verdict.sure)))
}

fn line(svg: &mut Svg, axis: &Axis, y: f64, names: f64, row: &Row, is_best: bool) {
    svg.text([names, y + 4.5], Anchor::End, (14.0, INK), &row.label);
    let Some(value) = row.value else {
        return svg.text([names + 20.0, y + 4.5], Anchor::Start, (13.0, INK), "none");
    };
    let colour = if is_best { BEST } else { OTHER };
    let mut right = axis.place(value);
    if let Some([low, high]) = row.interval {
        let [a, b] = [low, high].map(|end| axis.place(end));
        svg.line([a, y], [b, y], (3.0, colour));
        for x in [a, b] {
            svg.line([x, y - 5.0], [x, y + 5.0], (2.0, colour));
        }
        right = right.max(b);
    }
    svg.circle([axis.place(value), y], 5.0, colour, true);
    let interval = match row.interval {
        Some(_) => format!(" ({})", row.interval_text),
        None => String::new(),
    };
    let best = if is_best { ", best" } else { "" };
    let text = format!("{}{interval}{best}", row.text);
    svg.text([right + 11.0, y + 4.5], Anchor::Start, (13.0, INK), &text);
}
