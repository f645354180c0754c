// SPDX-License-Identifier: MIT OR Apache-2.0
//! The band of the scheduler: what waiting requests waited for, and for whom.

use super::{INK, X, frame, names};
use crate::model::{Held, Member};
use crate::svg::{Anchor, COLOURS};

/// Reasons that have a line.
const LINES_MAX: usize = 7;

/// Height of the plot, and where it ends.
const HEIGHT: f64 = 260.0;
const BOTTOM: f64 = 308.0;

/// A line for each reason: shares of each interval, upon each other by process.
pub(super) fn band(m: &Member) -> Option<String> {
    let s = m.scheduler.as_ref()?;
    let mut reasons: Vec<&str> = Vec::new();
    for line in &s.lines {
        if !reasons.contains(&line.what) {
            reasons.push(line.what);
        }
    }
    reasons.truncate(LINES_MAX);
    let title = format!(
        "{}: what waiting requests waited for, share of each interval",
        m.label
    );
    let title = title.trim_start_matches(": ");
    let (mut svg, x) = frame(title, m.span_ns);
    let height = HEIGHT / reasons.len() as f64;
    let mut named: Vec<(f64, usize, String)> = Vec::new();
    for (row, what) in reasons.iter().enumerate() {
        let base = BOTTOM - HEIGHT + height * (row + 1) as f64;
        svg.line([X[0], base], [X[1], base], (1.0, "#999"));
        let words = lines_of(what);
        for (i, text) in words.iter().rev().enumerate() {
            let at = [X[0] - 6.0, base - 3.0 - 12.0 * i as f64];
            svg.text(at, Anchor::End, (11.0, INK), text);
        }
        let own: Vec<&Held> = s.lines.iter().filter(|l| l.what == *what).collect();
        let nr_intervals = own.iter().map(|l| l.ns.len()).max().unwrap_or(0);
        // The share that the lines below have of each interval.
        let mut below = vec![0.0; nr_intervals];
        for line in own {
            let colour = line.group.map(|g| m.groups[g].colour);
            let mut d = String::new();
            for (i, ns) in line.ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
                let share = *ns as f64 / s.interval_ns.max(1) as f64;
                let room = height - 5.0;
                let (bottom, up) = (base - below[i] * room, share * room);
                below[i] += share;
                let left = x.place(i as f64 * s.interval_ns as f64);
                let right = x.place((i + 1) as f64 * s.interval_ns as f64);
                d.push_str(&format!(
                    "M{left:.2} {bottom:.1}H{right:.2}V{:.1}H{left:.2}Z",
                    bottom - up
                ));
            }
            let fill = colour.map_or("#444", |c| COLOURS[c]);
            svg.path(&d, &format!("fill=\"{fill}\""));
            if let Some(g) = line.group {
                let name = &m.groups[g].name;
                let at = BOTTOM - HEIGHT + 15.0 * g as f64 + 8.0;
                if !named.iter().any(|(_, _, n)| n == name) {
                    named.push((at, m.groups[g].colour, name.clone()));
                }
            }
        }
    }
    names(&mut svg, named);
    Some(svg.standalone(title))
}

/// A name in so many lines as it takes beside the axis.
fn lines_of(what: &str) -> Vec<String> {
    const ROOM: usize = 12;
    let mut lines: Vec<String> = Vec::new();
    for word in what.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < ROOM => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
