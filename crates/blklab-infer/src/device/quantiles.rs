// SPDX-License-Identifier: MIT OR Apache-2.0
//! A distribution of times as text: `0:50us/50:54us/99:1ms/100:3ms`.

/// Percents that are written down, the largest value aside.
const PERCENTS: [f64; 20] = [
    0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0,
    99.5, 99.8, 99.9, 99.95,
];

/// A value this near to the straight line between its neighbours is left out: half a percent.
const NEAR: f64 = 0.005;

/// The distribution of these times in ns, which it sorts. Those below 0 count as 0.
pub(super) fn text(values: &mut [f64]) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let Some(largest) = values.last().copied() else {
        return "0".to_owned();
    };
    let mut knots: Vec<(f64, f64)> = Vec::new();
    // Percents that the number of values says nothing about are that of the largest one.
    let last = 100.0 * (1.0 - 1.0 / n as f64);
    for percent in PERCENTS.into_iter().filter(|p| *p < last) {
        let i = (percent / 100.0 * n as f64) as usize;
        knots.push((percent, values[i.min(n - 1)].max(0.0).round()));
    }
    let largest = largest.max(0.0).round();
    knots.push(((last * 1000.0).floor() / 1000.0, largest));
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (i, &knot) in knots.iter().enumerate() {
        if let (Some(&before), Some(&after)) = (kept.last(), knots.get(i + 1))
            && on_the_line(before, &knots[..=i], after)
        {
            continue;
        }
        kept.push(knot);
    }
    if kept.iter().all(|(_, t)| *t == largest) {
        return time(largest);
    }
    let parts: Vec<String> = kept
        .iter()
        .map(|(p, t)| format!("{p}:{}", time(*t)))
        .collect();
    parts.join("/")
}

/// Whether everything between two knots lies on the line between them.
fn on_the_line(a: (f64, f64), knots: &[(f64, f64)], b: (f64, f64)) -> bool {
    let between = knots.iter().filter(|(p, _)| *p > a.0);
    between.into_iter().all(|(p, t)| {
        let line = a.1 + (b.1 - a.1) * (p - a.0) / (b.0 - a.0);
        (t - line).abs() <= NEAR * t.max(1.0)
    })
}

/// A whole number of ns in the largest unit that leaves three decimals.
fn time(ns: f64) -> String {
    let (unit, name) = match ns {
        _ if ns >= 1e6 => (1e6, "ms"),
        _ if ns >= 1e3 => (1e3, "us"),
        _ => return format!("{ns}ns"),
    };
    format!("{}{name}", (ns / unit * 1000.0).round() / 1000.0)
}
