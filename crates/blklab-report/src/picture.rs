// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first picture of a page: a line for each that waited, how long, and for what.
//!
//! ```text
//!              1 ms    10 ms   100 ms          share of the waiting time
//! file1…file41   ●─────────○──|──◆ 223 ms     [device, others 87 %   |sched| ]
//! ```

use crate::model::{PHASES, Waited};
use crate::svg::{Anchor, LogAxis, PHASE_COLOURS, Svg};
use blklab::findings::time_text;

/// Names of [`PHASES`] that fit into a bar, or over a column.
pub(crate) const SHORT: [&str; PHASES.len()] = [
    "free request",
    "plug",
    "device idle",
    "scheduler",
    "service",
    "device, others",
    "flush",
];

/// Where things stand beside names of usual length; all moves right for longer ones.
const WIDTH: f64 = 900.0;
const NAMES: f64 = 150.0;
const TIMES: [f64; 2] = [165.0, 480.0];
const SHARES: [f64; 2] = [580.0, 890.0];
/// A letter of a name.
const LETTER: f64 = 8.3;
/// What a title takes.
const TITLE: f64 = 28.0;
const LINE: f64 = 34.0;
const TOP: f64 = 46.0;
const INK: &str = "currentColor";
const FAINT: &str = "#8886";

/// Draws it within a page; lines are names and what they waited. None if nobody waited
/// for anything.
pub(crate) fn waiting(lines: &[(&str, &Waited)]) -> Option<String> {
    drawn(lines, None).map(|(svg, label)| svg.inline(&label))
}

/// The same as a file of its own, with what it is about above it.
pub(crate) fn waiting_file(lines: &[(&str, &Waited)], title: &str) -> Option<String> {
    drawn(lines, Some(title)).map(|(svg, label)| svg.standalone(&label))
}

fn drawn(lines: &[(&str, &Waited)], title: Option<&str>) -> Option<(Svg, String)> {
    let lines: Vec<&(&str, &Waited)> = lines.iter().filter(|(_, w)| w.requests > 0).collect();
    let min = lines.iter().map(|(_, w)| w.p50_ns).min()?;
    let max = lines.iter().map(|(_, w)| w.max_ns).max()?;
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max();
    let right = (LETTER * longest.unwrap_or(0) as f64 - NAMES + 10.0).max(0.0);
    let down = if title.is_some() { TITLE } else { 0.0 };
    let axis = LogAxis::new(min, max, TIMES);
    let bottom = TOP + LINE * lines.len() as f64;
    let mut svg = Svg::new(WIDTH + right, bottom + 44.0 + down);
    if let Some(title) = title {
        svg.text([10.0, 18.0], Anchor::Start, (15.0, INK), title);
    }
    svg.moved([right, down], |svg| {
        heads(svg, &axis, bottom);
        for (i, (name, waited)) in lines.iter().enumerate() {
            let y = TOP + LINE * (i as f64 + 0.5);
            svg.text([NAMES, y + 4.5], Anchor::End, (14.0, INK), name);
            times(svg, &axis, y, waited);
            shares(svg, y, waited);
        }
        legend(svg, &lines, bottom);
    });
    let label = label(&lines);
    Some((svg, label))
}

fn heads(svg: &mut Svg, axis: &LogAxis, bottom: f64) {
    svg.text(
        [TIMES[0], 14.0],
        Anchor::Start,
        (13.0, INK),
        "a request, from its beginning to its end",
    );
    svg.text(
        [SHARES[0], 14.0],
        Anchor::Start,
        (13.0, INK),
        "where the waiting time went, share of all",
    );
    let ticks: Vec<_> = axis.ticks().collect();
    let every = ticks.len().div_ceil(7);
    for (i, (ns, name)) in ticks.iter().enumerate() {
        let x = axis.place(*ns);
        svg.line([x, TOP - 6.0], [x, bottom], (1.0, FAINT));
        if i % every == 0 {
            svg.text([x, TOP - 12.0], Anchor::Middle, (11.0, INK), name);
        }
    }
}

/// From the median to the longest, on the axis.
fn times(svg: &mut Svg, axis: &LogAxis, y: f64, w: &Waited) {
    let at = |ns| [axis.place(ns), y];
    svg.line(at(w.p50_ns), at(w.max_ns), (1.5, INK));
    svg.circle(at(w.p50_ns), 4.5, INK, true);
    svg.path(
        &format!("M{:.1} {:.1}v10", axis.place(w.p99_ns), y - 5.0),
        "stroke=\"currentColor\" stroke-width=\"2\"",
    );
    svg.circle(at(w.p999_ns), 3.5, INK, false);
    let x = axis.place(w.max_ns);
    svg.path(
        &format!("M{:.1} {y:.1}l-5 -5l5 -5l5 5z", x, y = y + 5.0),
        "fill=\"currentColor\"",
    );
    svg.text(
        [x + 9.0, y + 4.5],
        Anchor::Start,
        (13.0, INK),
        &time_text(w.max_ns),
    );
}

fn shares(svg: &mut Svg, y: f64, w: &Waited) {
    let sum: u64 = w.phases_ns.iter().sum();
    if sum == 0 {
        let text = "not shown by the trace";
        return svg.text([SHARES[0], y + 4.5], Anchor::Start, (12.0, INK), text);
    }
    let mut x = SHARES[0];
    for (i, ns) in w.phases_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let share = *ns as f64 / sum as f64;
        let width = share * (SHARES[1] - SHARES[0]);
        let percent = format!("{:.0} %", share * 100.0);
        let title = format!("{}: {} ({percent})", PHASES[i].1, time_text(*ns));
        let (fill, ink) = PHASE_COLOURS[i];
        svg.rect([x, y - 11.0, (width - 1.0).max(0.5), 22.0], fill, &title);
        let text = format!("{} {percent}", SHORT[i]);
        if width > 6.6 * text.chars().count() as f64 + 8.0 {
            svg.text([x + 5.0, y + 4.5], Anchor::Start, (12.0, ink), &text);
        } else if width > 34.0 {
            svg.text([x + 4.0, y + 4.5], Anchor::Start, (12.0, ink), &percent);
        }
        x += width;
    }
}

/// What the marks mean, and the colours of what is there.
fn legend(svg: &mut Svg, lines: &[&(&str, &Waited)], bottom: f64) {
    let y = bottom + 20.0;
    svg.circle([TIMES[0] + 4.0, y - 4.0], 4.5, INK, true);
    svg.text([TIMES[0] + 13.0, y], Anchor::Start, (12.0, INK), "median");
    svg.line(
        [TIMES[0] + 74.0, y - 9.0],
        [TIMES[0] + 74.0, y + 1.0],
        (2.0, INK),
    );
    svg.text([TIMES[0] + 80.0, y], Anchor::Start, (12.0, INK), "99 %");
    svg.circle([TIMES[0] + 124.0, y - 4.0], 3.5, INK, false);
    svg.text([TIMES[0] + 132.0, y], Anchor::Start, (12.0, INK), "99.9 %");
    let x = TIMES[0] + 190.0;
    svg.path(
        &format!("M{x:.1} {:.1}l-5 -5l5 -5l5 5z", y + 1.0),
        "fill=\"currentColor\"",
    );
    svg.text([x + 9.0, y], Anchor::Start, (12.0, INK), "longest");
    let mut at = [SHARES[0], y];
    for i in (0..PHASES.len()).filter(|i| lines.iter().any(|(_, w)| w.phases_ns[*i] > 0)) {
        let width = 17.0 + 6.4 * SHORT[i].len() as f64;
        if at[0] + width > WIDTH {
            at = [SHARES[0], at[1] + 17.0];
        }
        svg.rect(
            [at[0], at[1] - 10.0, 11.0, 11.0],
            PHASE_COLOURS[i].0,
            PHASES[i].1,
        );
        svg.text([at[0] + 14.0, at[1]], Anchor::Start, (11.0, INK), SHORT[i]);
        at[0] += width + 6.0;
    }
}

/// The same in words, for who cannot see it.
fn label(lines: &[&(&str, &Waited)]) -> String {
    let said = lines.iter().map(|(name, w)| {
        let times = [
            ("median", w.p50_ns),
            ("99 %", w.p99_ns),
            ("longest", w.max_ns),
        ];
        let times = times
            .map(|(what, ns)| format!("{what} {}", time_text(ns)))
            .join(", ");
        let sum = w.phases_ns.iter().sum::<u64>().max(1) as f64;
        let most = (0..PHASES.len())
            .max_by_key(|i| w.phases_ns[*i])
            .unwrap_or(0);
        let share = w.phases_ns[most] as f64 / sum * 100.0;
        format!(
            "{name}: {times}; most of it {} ({share:.0} %)",
            PHASES[most].1
        )
    });
    format!(
        "How long requests took and where the time went. {}.",
        said.collect::<Vec<_>>().join(". ")
    )
}

/// As much of a name as there is room for.
pub(crate) fn short(name: &str) -> String {
    const ROOM: usize = 20;
    if name.chars().count() <= ROOM {
        return name.to_owned();
    }
    let kept: String = name.chars().take(ROOM - 1).collect();
    format!("{kept}…")
}
