// SPDX-License-Identifier: MIT OR Apache-2.0
//! What many testbeds say about published numbers.

use super::super::outcome::{Measured, measured, ordering};
use super::super::study::{Basis, Kind, Number, Ordering, Statistic, Study};
use super::Testbeds;
use super::cause::{Explained, explain};
use serde::Serialize;
use std::io;

/// What testbeds give.
#[derive(Clone, Debug, Serialize)]
pub struct TestbedOutcome {
    /// Names of the studies.
    pub studies: Vec<String>,
    /// Testbeds that were drawn.
    pub testbeds: u32,
    /// The seed that drew them.
    pub seed: u64,
    /// Those on which everything ran.
    pub complete: usize,
    /// What differs between them.
    pub unknowns: Vec<UnknownText>,
    /// Number by number, in order of the studies.
    pub numbers: Vec<NumberOnTestbeds>,
    /// Ordering by ordering.
    pub orderings: Vec<OrderingOnTestbeds>,
    /// Which testbeds give all predicted numbers together: of each study, then of all.
    pub together: Vec<Together>,
    /// Every testbed.
    pub samples: Vec<Sample>,
}

/// An unknown in words.
#[derive(Clone, Debug, Serialize)]
pub struct UnknownText {
    /// Its name.
    pub name: String,
    /// What it is.
    pub what: String,
    /// What it may be.
    pub values: String,
    /// The fitted parameter whose published number narrowed it.
    pub narrowed_by: Option<String>,
}

/// A published number and what the testbeds give.
#[derive(Clone, Debug, Serialize)]
pub struct NumberOnTestbeds {
    /// What is measured; `ours` is over the testbeds.
    #[serde(flatten)]
    pub measured: Measured,
    /// As published.
    pub published: f64,
    /// How far ours may be off, in words.
    pub tolerance: String,
    /// Calibrated, if it narrowed the space, or predicted.
    pub kind: Kind,
    /// The parameter that was fitted to it.
    pub parameter: Option<String>,
    /// Testbeds that gave a value.
    pub testbeds: usize,
    /// Those whose value is within the tolerance.
    pub within: usize,
    /// On what it depends most whether it is.
    pub explained: Option<Explained>,
}

/// An ordering on the testbeds.
#[derive(Clone, Debug, Serialize)]
pub struct OrderingOnTestbeds {
    /// The study.
    pub study: String,
    /// In words.
    pub text: String,
    /// Who says that it has to hold.
    pub basis: Basis,
    /// Testbeds that can tell.
    pub testbeds: usize,
    /// Those on which it holds.
    pub holds: usize,
}

/// Testbeds that give many numbers at once.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// Of these studies.
    pub studies: Vec<String>,
    /// Predicted numbers of theirs.
    pub numbers: usize,
    /// Testbeds on which all of them have a value.
    pub testbeds: usize,
    /// Numbers of the testbeds on which all are within their tolerance.
    pub satisfied_by: Vec<u32>,
    /// The testbed with most of them within, and how many; the first of several.
    pub best: Option<(u32, usize)>,
}

/// One testbed and what it gave.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Its number, which is the seed of its runs.
    pub testbed: u32,
    /// Whether everything ran.
    pub complete: bool,
    /// What each unknown is, in order of `unknowns`.
    pub settings: Vec<String>,
    /// What was measured.
    pub values: Vec<SampleValue>,
}

/// A figure of one testbed.
#[derive(Clone, Debug, Serialize)]
pub struct SampleValue {
    /// The study.
    pub study: String,
    /// The configuration.
    pub configuration: String,
    /// Whose figure.
    pub subject: String,
    /// Which.
    pub metric: &'static str,
    /// Its unit; 1 for counts and shares.
    pub unit: &'static str,
    /// As published, if it was.
    pub published: Option<f64>,
    /// On this testbed.
    pub value: f64,
    /// Whether that is within the tolerance.
    pub within: Option<bool>,
}

/// By study, measure and testbed.
type ByBed = [Vec<Vec<Option<f64>>>];

impl TestbedOutcome {
    pub(super) fn new(t: &Testbeds<'_>, values: &ByBed, missing: &[bool]) -> TestbedOutcome {
        let studies: Vec<String> = t.studies.iter().map(|s| s.name.clone()).collect();
        let all = || t.studies.iter().zip(values);
        let numbers = all().flat_map(|(s, v)| s.numbers.iter().map(|n| number(t, s, n, v)));
        let orderings =
            all().flat_map(|(s, v)| s.orderings.iter().filter_map(|o| on_beds(s, o, v)));
        let mut together: Vec<Together> = all()
            .filter(|(s, _)| s.numbers.iter().any(|n| n.calibrated.is_none()))
            .map(|one| satisfied(t, &[one]))
            .collect();
        if together.len() > 1 {
            together.push(satisfied(t, &all().collect::<Vec<_>>()));
        }
        TestbedOutcome {
            testbeds: t.beds.len() as u32,
            seed: t.seed,
            complete: missing.iter().filter(|m| !**m).count(),
            unknowns: unknowns(t),
            numbers: numbers.collect(),
            orderings: orderings.collect(),
            together,
            samples: samples(t, values, missing),
            studies,
        }
    }

    /// Every value of every testbed as CSV: one row for each, the unknowns beside it.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let fixed = [
            "testbed",
            "complete",
            "study",
            "configuration",
            "subject",
            "metric",
            "unit",
            "published",
            "value",
            "within",
        ];
        let names = self.unknowns.iter().map(|u| u.name.as_str());
        csv.write_record(fixed.into_iter().chain(names))?;
        for sample in &self.samples {
            for v in &sample.values {
                let number = |n: Option<f64>| n.map_or(String::new(), |n| n.to_string());
                let own = [
                    sample.testbed.to_string(),
                    sample.complete.to_string(),
                    v.study.clone(),
                    v.configuration.clone(),
                    v.subject.clone(),
                    v.metric.to_owned(),
                    v.unit.to_owned(),
                    number(v.published),
                    v.value.to_string(),
                    v.within.map_or(String::new(), |w| w.to_string()),
                ];
                csv.write_record(own.iter().chain(&sample.settings))?;
            }
        }
        csv.flush()
    }
}

fn unknowns(t: &Testbeds<'_>) -> Vec<UnknownText> {
    let text = |u: &super::Unknown| UnknownText {
        name: u.name.clone(),
        what: u.what.clone(),
        values: u.values.text(),
        narrowed_by: u.narrowed_by.clone(),
    };
    t.space.unknowns.iter().map(text).collect()
}

/// Whether a value is near enough to a number.
fn is_within(n: &Number, value: f64) -> bool {
    n.tolerance.allows(value / n.published)
}

fn number(
    t: &Testbeds<'_>,
    study: &Study,
    n: &Number,
    values: &[Vec<Option<f64>>],
) -> NumberOnTestbeds {
    let by_bed = &values[n.measure];
    let within: Vec<Option<bool>> = by_bed.iter().map(|v| v.map(|v| is_within(n, v))).collect();
    let known: Vec<f64> = by_bed.iter().flatten().copied().collect();
    NumberOnTestbeds {
        testbeds: known.len(),
        measured: measured(study, &study.measures[n.measure], &known),
        published: n.published,
        tolerance: n.tolerance.to_string(),
        kind: n.kind(),
        parameter: n.calibrated.clone(),
        within: within.iter().filter(|w| **w == Some(true)).count(),
        explained: explain(t.space, &t.beds, &within),
    }
}

/// An ordering, testbed by testbed; none if it compares deviations over seeds.
fn on_beds(study: &Study, o: &Ordering, values: &[Vec<Option<f64>>]) -> Option<OrderingOnTestbeds> {
    if o.over == Statistic::Cv {
        return None;
    }
    let nr_beds = values.first().map_or(0, Vec::len);
    let told: Vec<bool> = (0..nr_beds)
        .filter(|&bed| o.measures.iter().all(|m| values[*m][bed].is_some()))
        .filter_map(|bed| {
            let of_bed = values.iter().map(|v| v[bed].into_iter().collect());
            let of_bed: Vec<Vec<f64>> = of_bed.collect();
            ordering(study, o, &of_bed).holds
        })
        .collect();
    Some(OrderingOnTestbeds {
        study: study.name.clone(),
        text: o.text.clone(),
        basis: o.basis,
        testbeds: told.len(),
        holds: told.iter().filter(|h| **h).count(),
    })
}

fn satisfied(t: &Testbeds<'_>, of: &[(&Study, &Vec<Vec<Option<f64>>>)]) -> Together {
    let mut together = Together {
        studies: of.iter().map(|(s, _)| s.name.clone()).collect(),
        numbers: 0,
        testbeds: 0,
        satisfied_by: Vec::new(),
        best: None,
    };
    for (bed, testbed) in t.beds.iter().enumerate() {
        let predicted = of.iter().flat_map(|(study, values)| {
            let numbers = study.numbers.iter().filter(|n| n.kind() == Kind::Predicted);
            numbers.map(move |n| values[n.measure][bed].map(|v| is_within(n, v)))
        });
        let within: Vec<Option<bool>> = predicted.collect();
        together.numbers = within.len();
        let Some(within) = within.into_iter().collect::<Option<Vec<bool>>>() else {
            continue;
        };
        together.testbeds += 1;
        let nr_within = within.iter().filter(|w| **w).count();
        if nr_within == within.len() {
            together.satisfied_by.push(testbed.number);
        }
        if together.best.is_none_or(|(_, most)| nr_within > most) {
            together.best = Some((testbed.number, nr_within));
        }
    }
    together
}

fn samples(t: &Testbeds<'_>, values: &ByBed, missing: &[bool]) -> Vec<Sample> {
    let mut all = Vec::with_capacity(t.beds.len());
    for (bed, testbed) in t.beds.iter().enumerate() {
        let mut figures = Vec::new();
        for (study, values) in t.studies.iter().zip(values) {
            for (i, m) in study.measures.iter().enumerate() {
                let Some(value) = values[i][bed] else {
                    continue;
                };
                let number = study.numbers.iter().find(|n| n.measure == i);
                figures.push(SampleValue {
                    study: study.name.clone(),
                    configuration: study.configuration(m.part, m.variant),
                    subject: m.subject.text(),
                    metric: m.metric.metric.title,
                    unit: m.metric.unit.text(),
                    published: number.map(|n| n.published),
                    value,
                    within: number.map(|n| is_within(n, value)),
                });
            }
        }
        all.push(Sample {
            testbed: testbed.number,
            complete: !missing[bed],
            settings: testbed.drawn.iter().map(|d| d.value.clone()).collect(),
            values: figures,
        });
    }
    all
}
