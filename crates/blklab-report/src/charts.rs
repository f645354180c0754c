// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts of a page as pictures of their own, for papers and mails: SVG, dark on
//! light, with axes, units and names at the lines.

mod counters;
mod scheduler;

use crate::model::{Curve, Device, Member, Report, Steps, Waited};
use crate::picture;
use crate::ranking;
use crate::svg::{Anchor, COLOURS, DASHES, LogAxis, Svg};
use blklab::findings::time_text;
use blklab::report::{all_different, file_name};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 360.0;
/// Where the axes are.
const X: [f64; 2] = [80.0, 770.0];
const Y: [f64; 2] = [310.0, 40.0];
const INK: &str = "currentColor";
const FAINT: &str = "#ddd";

/// So many times what was reached is too far for an axis.
const LIMIT_FAR: f64 = 5.0;

/// Curves of a picture, at most.
const CURVES_MAX: usize = 8;

/// All charts of a report: names of files without their end, and the pictures. Those of
/// several members begin with the label of each.
pub fn all(report: &Report) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let members = &report.members;
    if members.len() > 1 {
        let lines: Vec<(&str, &Waited)> = members
            .iter()
            .map(|m| (m.label.as_str(), &m.waited))
            .collect();
        let title = "Who waited, how long, why";
        files.extend(picture::waiting_file(&lines, title).map(|svg| ("waiting".to_owned(), svg)));
    }
    let verdict = report.verdict.as_ref().and_then(ranking::file);
    files.extend(verdict.map(|svg| ("verdict".to_owned(), svg)));
    let names = all_different(members.iter().map(|m| file_name(&m.label)));
    for (m, name) in members.iter().zip(names) {
        let prefix = if members.len() > 1 {
            format!("{name}-")
        } else {
            String::new()
        };
        files.extend(
            of_member(m)
                .into_iter()
                .map(|(name, svg)| (format!("{prefix}{name}"), svg)),
        );
    }
    files
}

/// What a chart of a member is called.
fn titled(m: &Member, what: &str) -> String {
    let title = format!("{}: {what}", m.label);
    title.trim_start_matches(": ").to_owned()
}

fn of_member(m: &Member) -> Vec<(&'static str, String)> {
    let mut files = Vec::new();
    let lines: Vec<(&str, &Waited)> = m
        .groups
        .iter()
        .map(|g| (g.name.as_str(), &g.waited))
        .collect();
    let title = titled(m, "who waited, how long, for what");
    files.extend(picture::waiting_file(&lines, &title).map(|svg| ("waiting", svg)));
    let bytes = |d: &&Device| -> u64 { d.flow.read_bytes.iter().chain(&d.flow.write_bytes).sum() };
    let busiest = m
        .devices
        .iter()
        .enumerate()
        .max_by_key(|(i, d)| (bytes(d), usize::MAX - i));
    if let Some((place, device)) = busiest {
        files.push(("timeline", timeline(m, place)));
        files.push(("latency", latency(m, device)));
        files.push(("throughput", throughput(m, device)));
        files.push(("depth", depth(m, device)));
        files.extend(counters::queue(m, device));
    }
    files.extend(counters::dirty(m));
    files.extend(scheduler::band(m).map(|svg| ("scheduler", svg)));
    for (measure, name) in [("clat", "clat"), ("Q2C", "q2c")] {
        let own: Vec<&Curve> = m.curves.iter().filter(|c| c.measure == measure).collect();
        if !own.is_empty() {
            files.push((name, curves(m, measure, &own)));
        }
    }
    files
}

/// An axis of numbers from 0, or from somewhere.
#[derive(Clone, Copy)]
struct Linear {
    from: f64,
    to: f64,
    at: [f64; 2],
}

impl Linear {
    fn place(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.at[0] + share.clamp(0.0, 1.0) * (self.at[1] - self.at[0])
    }

    /// Round numbers, some five of them.
    fn ticks(&self) -> Vec<f64> {
        let raw = (self.to - self.from) / 5.0;
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|k| k * power)
            .into_iter()
            .find(|s| *s >= raw);
        let step = step.unwrap_or(raw);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// A picture with its title, and seconds along the bottom.
fn frame(title: &str, span_ns: u64) -> (Svg, Linear) {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.text([X[0], 20.0], Anchor::Start, (14.0, INK), title);
    let axis = Linear {
        from: 0.0,
        to: span_ns.max(1) as f64,
        at: X,
    };
    for at in axis.ticks() {
        let x = axis.place(at);
        svg.line([x, Y[0]], [x, Y[1]], (1.0, FAINT));
        svg.text(
            [x, Y[0] + 18.0],
            Anchor::Middle,
            (12.0, INK),
            &seconds(at, span_ns),
        );
    }
    (svg, axis)
}

/// A time on an axis of so many ns.
fn seconds(ns: f64, span_ns: u64) -> String {
    let (unit, name) = match span_ns {
        n if n >= 1_000_000_000 => (1e9, "s"),
        n if n >= 1_000_000 => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    let value = (ns / unit * 1000.0).round() / 1000.0;
    format!("{value} {name}")
}

/// A scale at the left; what its numbers are in words.
fn scale(svg: &mut Svg, axis: &Linear, name: impl Fn(f64) -> String) {
    for at in axis.ticks() {
        let y = axis.place(at);
        svg.line([X[0], y], [X[1], y], (1.0, FAINT));
        svg.text([X[0] - 6.0, y + 4.0], Anchor::End, (12.0, INK), &name(at));
    }
}

/// Names at the right end of lines, one below the other where they would meet.
fn names(svg: &mut Svg, mut all: Vec<(f64, usize, String)>) {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0.0_f64;
    for (y, colour, name) in all {
        let y = y.max(free);
        free = y + 15.0;
        svg.text(
            [X[1] + 6.0, y + 4.0],
            Anchor::Start,
            (12.0, COLOURS[colour]),
            &name,
        );
    }
}

/// A line in steps, each as long as an interval; gaps where there is no value.
fn steps(
    svg: &mut Svg,
    [x, interval]: [&dyn Fn(f64) -> f64; 2],
    values: &[Option<f64>],
    (colour, width): (usize, f64),
) {
    let mut d = String::new();
    let mut is_open = false;
    for (i, value) in values.iter().enumerate() {
        if let Some(y) = value {
            let (left, right) = (x(interval(i as f64)), x(interval(i as f64 + 1.0)));
            let verb = if is_open { 'L' } else { 'M' };
            let _ = write!(d, "{verb}{left:.1} {y:.1}H{right:.1}");
        }
        is_open = value.is_some();
    }
    let (stroke, dash) = (COLOURS[colour], DASHES[colour]);
    svg.path(
        &d,
        &format!(
            "fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\""
        ),
    );
}

/// Time × sector.
fn timeline(m: &Member, place: usize) -> String {
    let r = &m.requests;
    let own = || (0..r.start.len()).filter(|i| r.dev[*i] == place && r.sectors[*i] > 0);
    let low = own().map(|i| r.sector[i]).min().unwrap_or(0);
    let high = own().map(|i| r.sector[i] + r.sectors[i]).max().unwrap_or(1);
    let title = format!(
        "{}: requests, when and where they went to the device",
        m.label
    );
    let (mut svg, x) = frame(title.trim_start_matches(": "), m.span_ns);
    let y = Linear {
        from: low as f64,
        to: high.max(low + 1) as f64,
        at: Y,
    };
    let in_gib = high - low > 100_000;
    let unit = if in_gib { f64::from(1 << 21) } else { 1.0 };
    let shown = Linear {
        from: y.from / unit,
        to: y.to / unit,
        at: Y,
    };
    scale(&mut svg, &shown, |at| {
        let at = (at * 1000.0).round() / 1000.0;
        if in_gib {
            format!("{at} GiB")
        } else {
            format!("{at:.0}")
        }
    });
    let mut starts = Vec::with_capacity(r.start.len());
    let mut at = 0;
    for since in &r.start {
        at += since;
        starts.push(at);
    }
    // Marks in one place are one mark.
    let mut marks: Vec<[BTreeSet<(u32, u32)>; 2]> = vec![Default::default(); COLOURS.len()];
    for i in own() {
        let time = starts[i] + u64::try_from(r.issue[i]).unwrap_or(0);
        let spot = (
            x.place(time as f64) * 2.0,
            y.place(r.sector[i] as f64) * 2.0,
        );
        let colour = m
            .groups
            .get(m.processes[r.process[i]].group)
            .map_or(7, |g| g.colour);
        let side = usize::from(!r.flags[r.flag[i]].starts_with('R'));
        marks[colour][side].insert((spot.0 as u32, spot.1 as u32));
    }
    for (colour, sides) in marks.iter().enumerate() {
        for (side, spots) in sides.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
            let (length, width) = [(2.5, 2.5), (5.0, 1.2)][side];
            let mut d = String::new();
            for (px, py) in spots {
                let (px, py) = (f64::from(*px) / 2.0 - length / 2.0, f64::from(*py) / 2.0);
                let _ = write!(d, "M{px:.1} {py:.1}h{length}");
            }
            let stroke = COLOURS[colour];
            svg.path(&d, &format!("stroke=\"{stroke}\" stroke-width=\"{width}\""));
        }
    }
    let here = m
        .groups
        .iter()
        .enumerate()
        .filter(|(g, _)| own().any(|i| m.processes[r.process[i]].group == *g));
    let named = here.map(|(i, g)| (Y[1] + 15.0 * i as f64, g.colour, g.name.clone()));
    names(&mut svg, named.collect());
    svg.standalone(title.trim_start_matches(": "))
}

/// The longest of each interval.
fn latency(m: &Member, d: &Device) -> String {
    let f = &d.flow;
    let title = format!(
        "{}: the longest request of each {}",
        m.label,
        time_text(f.interval_ns)
    );
    let title = title.trim_start_matches(": ");
    let (mut svg, x) = frame(title, m.span_ns);
    let lines = [
        ("a process waited for", &f.max_ns, 1),
        ("in the background", &f.background_max_ns, 7),
    ];
    let values = || {
        lines
            .iter()
            .flat_map(|(_, v, _)| v.iter())
            .filter(|v| **v > 0)
    };
    let (low, high) = (
        values().min().copied().unwrap_or(1),
        values().max().copied().unwrap_or(10),
    );
    let y = LogAxis::new(low, high, Y);
    for (ns, name) in y.ticks() {
        let at = y.place(ns);
        svg.line([X[0], at], [X[1], at], (1.0, FAINT));
        svg.text([X[0] - 6.0, at + 4.0], Anchor::End, (12.0, INK), &name);
    }
    let mut ends = Vec::new();
    for (name, values, colour) in lines {
        let places: Vec<Option<f64>> = values
            .iter()
            .map(|v| Some(*v).filter(|v| *v > 0).map(|v| y.place(v)))
            .collect();
        if let Some(end) = places.iter().rev().flatten().next() {
            ends.push((*end, colour, name.to_owned()));
            let interval = |i: f64| i * f.interval_ns as f64;
            steps(
                &mut svg,
                [&|at| x.place(at), &interval],
                &places,
                (colour, 1.8),
            );
        }
    }
    names(&mut svg, ends);
    svg.standalone(title)
}

fn throughput(m: &Member, d: &Device) -> String {
    let f = &d.flow;
    let title = format!("{}: throughput, MiB/s", m.label);
    let title = title.trim_start_matches(": ");
    let rate = |b: &u64| *b as f64 * 1e9 / f.interval_ns.max(1) as f64 / f64::from(1 << 20);
    let lines = [("reads", &f.read_bytes, 0), ("writes", &f.write_bytes, 1)];
    let lines = lines.map(|(name, bytes, colour)| (name, bytes.iter().map(rate).collect(), colour));
    plot(title, m.span_ns, (0.0, f.interval_ns), &lines, &[])
}

fn depth(m: &Member, d: &Device) -> String {
    let title = format!("{}: how many are under way, mean of each interval", m.label);
    let title = title.trim_start_matches(": ");
    let means = |s: &Steps| s.means.clone();
    let lines = [
        ("bios, Q to C", means(&d.in_queue), 0),
        ("at the device", means(&d.in_device), 1),
    ];
    plot(title, m.span_ns, (0.0, d.in_queue.interval_ns), &lines, &[])
}

/// Lines of numbers from 0, by intervals of which the first begins somewhere, and lines
/// across: limits.
fn plot(
    title: &str,
    span_ns: u64,
    (from_ns, interval_ns): (f64, u64),
    lines: &[(&str, Vec<f64>, usize)],
    limits: &[(f64, String)],
) -> String {
    let most = lines
        .iter()
        .flat_map(|(_, v, _)| v)
        .copied()
        .fold(0.0, f64::max);
    // A limit that is far beyond what was reached is said: an axis up to it would be flat.
    let (limits, beyond): (Vec<_>, Vec<_>) = limits
        .iter()
        .partition(|(value, _)| *value <= LIMIT_FAR * most);
    let mut titled = title.to_owned();
    for (_, name) in beyond {
        let _ = write!(titled, "; beyond: {name}");
    }
    let (mut svg, x) = frame(&titled, span_ns);
    let most = limits.iter().map(|l| l.0).fold(most, f64::max);
    let y = Linear {
        from: 0.0,
        to: if most > 0.0 { most * 1.05 } else { 1.0 },
        at: Y,
    };
    scale(&mut svg, &y, |at| {
        ((at * 1000.0).round() / 1000.0).to_string()
    });
    let mut ends = Vec::new();
    for (value, name) in limits {
        let at = y.place(*value);
        svg.path(
            &format!("M{} {at:.1}H{}", X[0], X[1]),
            "stroke=\"currentColor\" stroke-dasharray=\"6 4\"",
        );
        ends.push((at, 7, name.clone()));
    }
    for (name, values, colour) in lines.iter().filter(|(_, v, _)| v.iter().any(|v| *v > 0.0)) {
        let places: Vec<Option<f64>> = values.iter().map(|v| Some(y.place(*v))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        ends.push((y.place(mean), *colour, (*name).to_owned()));
        let interval = |i: f64| from_ns + i * interval_ns as f64;
        steps(
            &mut svg,
            [&|at| x.place(at), &interval],
            &places,
            (*colour, 1.8),
        );
    }
    names(&mut svg, ends);
    svg.standalone(title)
}

/// The share of values that are longer than a time, on logarithmic axes.
fn curves(m: &Member, measure: &str, all: &[&Curve]) -> String {
    let mut all = all.to_vec();
    all.sort_by_key(|c| std::cmp::Reverse(c.count));
    all.truncate(CURVES_MAX);
    let what = if measure == "clat" {
        "completion latency of calls"
    } else {
        "bios, from Q to C"
    };
    let title = format!("{}: {what}: the share that took longer", m.label);
    let title = title.trim_start_matches(": ");
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.text([X[0], 20.0], Anchor::Start, (14.0, INK), title);
    let first = |c: &Curve| c.points.first().map_or(1, |p| p.0);
    let low = all.iter().map(|c| first(c)).min().unwrap_or(1);
    let high = all.iter().map(|c| c.max_ns).max().unwrap_or(10);
    let x = LogAxis::new(low, high, X);
    for (ns, name) in x.ticks() {
        svg.line([x.place(ns), Y[0]], [x.place(ns), Y[1]], (1.0, FAINT));
        svg.text(
            [x.place(ns), Y[0] + 18.0],
            Anchor::Middle,
            (12.0, INK),
            &name,
        );
    }
    let most = all.iter().map(|c| c.count).max().unwrap_or(10).max(10);
    let y = Linear {
        from: (1.0 / most as f64).log10(),
        to: 0.0,
        at: Y,
    };
    let height = |left: u64, of: u64| y.place((left.max(1) as f64 / of as f64).log10());
    for decade in 0..=(-y.from).floor() as i32 {
        let at = y.place(-f64::from(decade));
        svg.line([X[0], at], [X[1], at], (1.0, FAINT));
        let percent = 100.0 / 10_f64.powi(decade);
        svg.text(
            [X[0] - 6.0, at + 4.0],
            Anchor::End,
            (12.0, INK),
            &format!("{percent} %"),
        );
    }
    let mut ends = Vec::new();
    for (place, c) in all.iter().enumerate() {
        // That of its processes; of two of one colour the dashes differ.
        let own = m.groups.iter().find(|g| g.name == c.who);
        let colour = own.map_or(place.min(COLOURS.len() - 1), |g| g.colour);
        let mut left = c.count;
        let mut d = format!("M{:.1} {:.1}", x.place(first(c)), Y[1]);
        for (ns, n) in &c.points {
            left -= n;
            let _ = write!(d, "H{:.1}V{:.1}", x.place(*ns), height(left, c.count));
        }
        let (stroke, dash) = (COLOURS[colour], DASHES[place]);
        svg.path(
            &d,
            &format!(
                "fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\""
            ),
        );
        let marks = [
            (c.p50_ns, 2),
            (c.p99_ns, 100),
            (c.p999_ns, 1000),
            (c.max_ns, c.count),
        ];
        for (ns, nth) in marks.iter().filter(|(_, nth)| *nth <= c.count) {
            svg.circle(
                [x.place(*ns), y.place((1.0 / *nth as f64).log10())],
                3.0,
                stroke,
                true,
            );
        }
        ends.push((
            height(1, c.count),
            colour,
            format!("{} {}", c.who, c.direction),
        ));
        ends.push((height(1, c.count) + 1.0, colour, time_text(c.max_ns)));
    }
    // From the bottom upwards.
    let lines = ends.len() as f64;
    for end in &mut ends {
        end.0 = end.0.min(Y[0] - 15.0 * (lines - 1.0));
    }
    names(&mut svg, ends);
    svg.standalone(title)
}
