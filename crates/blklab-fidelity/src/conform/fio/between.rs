// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same cases on two kernels: does the model get the difference between them
//! right?

use super::{FioFigure, FioReport};
use serde::Serialize;
use std::collections::BTreeMap;

/// How the model's differences between two kernels compare with the measured ones.
/// A figure changed if the ratio of the measured values is outside of the wider of
/// its two bands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FioBetween {
    /// The kernels.
    pub kernels: [String; 2],
    /// Whose cases: a scheduler, or all.
    pub scheduler: String,
    /// Figures that changed.
    pub changed: usize,
    /// Of those, the ones that the model has within their band on the second kernel.
    pub moved: usize,
    /// Figures that did not change.
    pub unchanged: usize,
    /// Of those, the ones whose change in the model is within the band, too.
    pub left: usize,
}

/// What a figure is called by: job, direction, name.
type Key<'a> = (usize, &'a str, &'a str);

fn figures(report: &FioReport) -> BTreeMap<Key<'_>, &FioFigure> {
    let named = report.figures.iter().map(|f| ((f.n, f.rw, f.name), f));
    named.collect()
}

impl FioBetween {
    /// The comparisons of every two kernels that follow each other, by scheduler
    /// and for all; none of a single kernel.
    pub fn all(reports: &[FioReport]) -> Vec<FioBetween> {
        let kernels = super::kernels(reports);
        let pairs = kernels.windows(2).flat_map(|pair| {
            let [first, second] = [pair[0], pair[1]];
            let schedulers = super::schedulers(reports);
            let names = schedulers.into_iter().chain(["all"]);
            names.map(move |name| FioBetween::new([first, second], name, reports))
        });
        pairs.filter(|b| b.changed + b.unchanged > 0).collect()
    }

    fn new(kernels: [&str; 2], scheduler: &str, reports: &[FioReport]) -> FioBetween {
        let mut sum = FioBetween {
            kernels: kernels.map(str::to_owned),
            scheduler: scheduler.to_owned(),
            ..FioBetween::default()
        };
        let reports_of = |kernel: &str| {
            let own = reports.iter().filter(|r| r.kernel == kernel);
            let own = own.filter(|r| scheduler == "all" || r.scheduler == scheduler);
            own.map(|r| (r.id.as_str(), r)).collect::<BTreeMap<_, _>>()
        };
        let (before, after) = (reports_of(kernels[0]), reports_of(kernels[1]));
        for (id, report) in after {
            let Some(&earlier) = before.get(id) else {
                continue;
            };
            let earlier = figures(earlier);
            for (key, figure) in figures(report) {
                if let Some(old) = earlier.get(&key) {
                    sum.add(old, figure);
                }
            }
        }
        sum
    }

    fn add(&mut self, old: &FioFigure, new: &FioFigure) {
        let band = old.band[0].min(new.band[0])..=old.band[1].max(new.band[1]);
        if !band.contains(&(new.measured / old.measured)) {
            self.changed += 1;
            self.moved += usize::from(new.within);
            return;
        }
        self.unchanged += 1;
        let stays = old.simulated > 0.0 && band.contains(&(new.simulated / old.simulated));
        self.left += usize::from(stays);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn report(kernel: &str, figures: [(f64, f64); 3]) -> FioReport {
        let figure = |(n, (measured, simulated)): (usize, (f64, f64))| {
            let ratio = simulated / measured;
            FioFigure {
                job: "a".to_owned(),
                n,
                rw: "read",
                name: "IOPS",
                unit: "",
                measured,
                simulated,
                ratio,
                band: [0.75, 1.25],
                within: (0.75..=1.25).contains(&ratio),
            }
        };
        FioReport {
            id: "case".to_owned(),
            scheduler: "none".to_owned(),
            kernel: kernel.to_owned(),
            figures: figures.into_iter().enumerate().map(figure).collect(),
            ..FioReport::not_run(Path::new("case"), String::new())
        }
    }

    #[test]
    fn what_changed_is_to_move_and_what_did_not_is_to_stay() {
        let first = report("6.1", [(100.0, 100.0), (100.0, 100.0), (100.0, 50.0)]);
        // The model follows the first, not the second, and leaves the third where it
        // is, outside of its band.
        let second = report("6.12", [(200.0, 190.0), (200.0, 100.0), (110.0, 55.0)]);
        let sums = FioBetween::all(&[first.clone(), second]);
        let expected = |scheduler: &str| FioBetween {
            kernels: ["6.1", "6.12"].map(str::to_owned),
            scheduler: scheduler.to_owned(),
            changed: 2,
            moved: 1,
            unchanged: 1,
            left: 1,
        };
        assert_eq!(sums, [expected("none"), expected("all")]);
        assert_eq!(FioBetween::all(&[first]), []);
    }
}
