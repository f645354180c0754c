// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ours over what was published, on a logarithmic axis: twice as much is as far from the
//! middle as half as much.
//!
//! ```text
//!                0.5        1        2
//! noop                  ░░░░│░░●░       97.1   published  88.0 (87.2 to 90.1)  ×0.91
//! ```

use super::{Number, Reproduced, Study, figure};
use crate::picture::short;
use crate::svg::{Anchor, COLOURS, Svg};
use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const NAMES: f64 = 200.0;
const AXIS: [f64; 2] = [210.0, 560.0];
const WORDS: f64 = 575.0;
const TOP: f64 = 46.0;
const LINE: f64 = 21.0;
const INK: &str = "currentColor";
const FAINT: &str = "#8884";

/// What fits into the middle column at most.
const RATIO_MAX: f64 = 100.0;

/// Ratios.
#[derive(Clone, Copy)]
struct Ratios(f64, f64);

impl Ratios {
    /// As far as any of them reaches, and at least from a half to twice.
    fn of<'a>(numbers: impl Iterator<Item = &'a Number>) -> Ratios {
        let mut far = 2.0_f64;
        for n in numbers {
            let spread = n.measured.ours.map(|s| [s.min, s.max]).unwrap_or_default();
            let ends = spread.map(|v| v / n.published).into_iter().chain(n.ratio);
            let ends = ends.filter(|r| r.is_finite() && *r > 0.0);
            far = ends.fold(far, |far, r| far.max(r.max(1.0 / r)));
        }
        let far = (far * 1.1).min(RATIO_MAX);
        Ratios(1.0 / far, far)
    }

    fn place(self, ratio: f64) -> f64 {
        let share = (ratio.max(1e-9) / self.0).ln() / (self.1 / self.0).ln();
        AXIS[0] + share.clamp(0.0, 1.0) * (AXIS[1] - AXIS[0])
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        let all = [
            0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
        ];
        all.into_iter()
            .filter(move |r| (self.0..=self.1).contains(r))
    }
}

fn heads(svg: &mut Svg, axis: Ratios, bottom: f64) {
    let title = "here, as a multiple of what was published";
    svg.text([AXIS[0], 14.0], Anchor::Start, (13.0, INK), title);
    for ratio in axis.ticks() {
        let (x, is_one) = (axis.place(ratio), ratio == 1.0);
        let style = if is_one { (1.5, INK) } else { (1.0, FAINT) };
        svg.line([x, TOP - 8.0], [x, bottom], style);
        let name = if is_one {
            "as published".to_owned()
        } else {
            ratio.to_string()
        };
        svg.text([x, TOP - 13.0], Anchor::Middle, (11.0, INK), &name);
    }
}

/// One number: what is allowed, the seeds from lowest to highest, the median.
fn mark(svg: &mut Svg, axis: Ratios, y: f64, n: &Number, is_band_shown: bool) {
    if is_band_shown && !n.is_calibrated() {
        let [low, high] = n.allowed;
        let ends = [
            low.map_or(AXIS[0], |r| axis.place(r)),
            high.map_or(AXIS[1], |r| axis.place(r)),
        ];
        let place = [ends[0], y - 7.0, (ends[1] - ends[0]).max(1.0), 14.0];
        svg.rect(place, "#8883", &format!("allowed: {}", n.tolerance));
    }
    let Some(ratio) = n.ratio else { return };
    if let Some(s) = n.measured.ours.filter(|s| s.min < s.max) {
        let at = |v: f64| [axis.place(v / n.published), y];
        svg.line(at(s.min), at(s.max), (1.5, INK));
    }
    let x = axis.place(ratio);
    match n.verdict() {
        "calibrated" => svg.path(
            &format!("M{:.1} {:.1}l6 6m0 -6l-6 6", x - 3.0, y - 3.0),
            "stroke=\"currentColor\" stroke-width=\"1.2\" fill=\"none\"",
        ),
        "within" => svg.circle([x, y], 4.0, COLOURS[0], true),
        _ => svg.path(
            &format!("M{x:.1} {:.1}l6 6l-6 6l-6 -6z", y - 6.0),
            &format!("fill=\"#fff\" stroke=\"{}\" stroke-width=\"2\"", COLOURS[1]),
        ),
    }
}

/// What the marks mean, at the bottom.
fn legend(svg: &mut Svg, y: f64) {
    svg.circle([AXIS[0] + 4.0, y - 4.0], 4.0, COLOURS[0], true);
    svg.text([AXIS[0] + 13.0, y], Anchor::Start, (11.0, INK), "within");
    svg.path(
        &format!("M{:.1} {:.1}l6 6l-6 6l-6 -6z", AXIS[0] + 75.0, y - 10.0),
        &format!("fill=\"#fff\" stroke=\"{}\" stroke-width=\"2\"", COLOURS[1]),
    );
    svg.text([AXIS[0] + 86.0, y], Anchor::Start, (11.0, INK), "off");
    svg.path(
        &format!("M{:.1} {:.1}l6 6m0 -6l-6 6", AXIS[0] + 125.0, y - 7.0),
        "stroke=\"currentColor\" stroke-width=\"1.2\" fill=\"none\"",
    );
    let text = "calibrated: says nothing about the model";
    svg.text([AXIS[0] + 138.0, y], Anchor::Start, (11.0, INK), text);
}

/// A line for each study, a mark for each number.
pub(super) fn overview(r: &Reproduced) -> Option<(Svg, String)> {
    let studies: Vec<&Study> = r
        .studies
        .iter()
        .filter(|s| r.of(s).next().is_some())
        .collect();
    if studies.is_empty() {
        return None;
    }
    let axis = Ratios::of(r.numbers.iter());
    let bottom = TOP + LINE * 1.4 * studies.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 26.0);
    heads(&mut svg, axis, bottom);
    let mut label = "Ours as a multiple of what was published.".to_owned();
    for (i, s) in studies.iter().enumerate() {
        let y = TOP + LINE * 1.4 * (i as f64 + 0.5);
        svg.text([NAMES, y + 4.5], Anchor::End, (13.0, INK), &s.name);
        for n in r.of(s) {
            mark(&mut svg, axis, y, n, false);
        }
        let predicted = || r.of(s).filter(|n| !n.is_calibrated());
        let within = predicted().filter(|n| n.within).count();
        let orderings = || {
            let own = r.orderings.iter().filter(|o| o.study == s.name);
            own.filter(|o| o.basis == "published")
        };
        let hold = orderings().filter(|o| o.holds == Some(true)).count();
        let words = format!(
            "{within} of {} within; {hold} of {} orderings",
            predicted().count(),
            orderings().count()
        );
        svg.text([WORDS, y + 4.5], Anchor::Start, (12.0, INK), &words);
        let _ = write!(label, " {}: {words}.", s.name);
    }
    legend(&mut svg, bottom + 18.0);
    Some((svg, label))
}

/// A line for each number of a study.
pub(super) fn of_study(r: &Reproduced, s: &Study) -> Option<(Svg, String)> {
    let numbers: Vec<&Number> = r.of(s).collect();
    if numbers.is_empty() {
        return None;
    }
    let mut rows = 0_usize;
    let mut heading = String::new();
    let places: Vec<(Option<String>, usize)> = numbers
        .iter()
        .map(|n| {
            let what = n.measured.what();
            let head = (what != heading).then(|| what.clone());
            heading = what;
            rows += 1 + usize::from(head.is_some());
            (head, rows - 1)
        })
        .collect();
    let axis = Ratios::of(numbers.iter().copied());
    let bottom = TOP + LINE * rows as f64;
    let mut svg = Svg::new(WIDTH, bottom + 26.0);
    heads(&mut svg, axis, bottom);
    let title = "published → here (lowest to highest)";
    svg.text([WORDS, 14.0], Anchor::Start, (13.0, INK), title);
    let mut label = format!("{}: ours as a multiple of what was published.", s.name);
    for (n, (head, row)) in numbers.iter().zip(&places) {
        let y = TOP + LINE * (*row as f64 + 0.5);
        if let Some(head) = head {
            svg.text([6.0, y - LINE + 4.5], Anchor::Start, (12.0, INK), head);
        }
        let name = short(&n.measured.configuration);
        svg.text([NAMES, y + 4.5], Anchor::End, (13.0, INK), &name);
        mark(&mut svg, axis, y, n, true);
        let mut words = format!("{} → {}", figure(n.published), n.measured.ours_text());
        if n.verdict() != "within" {
            let _ = write!(words, " {}", n.verdict());
        }
        svg.text([WORDS, y + 4.5], Anchor::Start, (12.0, INK), &words);
        let _ = write!(
            label,
            " {} {}: {words}.",
            n.measured.what(),
            n.measured.configuration
        );
    }
    legend(&mut svg, bottom + 18.0);
    Some((svg, label))
}
