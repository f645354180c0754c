// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the jobs of a run got, from the object `metrics` of its result: each job by itself,
//! and jobs together that do the same and differ in their number alone.

use crate::compare::figures::{RowFigures, of_json};
use crate::figure::{Calling, Figure};
use crate::job_rows::{JobRow, rows_of_jobs};
use crate::metric::{self, Metric};
use crate::summary::jobs::stem;
use blklab_target::JobResult;
use serde::Serialize;
use serde_json::{Value, json};

/// Jobs that are shown together are so many at least.
const FAMILY_MIN: usize = 3;

/// Calls of jobs that do the same move as many bytes, within this factor.
const SAME_SIZE: f64 = 1.25;

/// Somebody's calls in one direction in a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calls {
    /// A job's name, or `file1…file41`.
    job: String,
    /// Whether it stands within a family, too.
    is_part: bool,
    direction: String,
    figures: RowFigures,
}

impl Calls {
    pub(super) fn figures(&self) -> &RowFigures {
        &self.figures
    }

    fn number(&self, key: &str) -> Option<f64> {
        let column = metric::named(key)?.column();
        self.figures.values.get(&column).copied()
    }

    /// How many there are.
    pub(super) fn count(&self) -> Option<f64> {
        self.number("ios")
    }

    /// How many there are in a second while it ran; none of several jobs together, which do not
    /// all run at the same time.
    pub(super) fn per_s(&self) -> Option<f64> {
        let is_family = self.job.contains('…');
        self.number("iops").filter(|_| !is_family)
    }

    /// Bytes that a call moves.
    fn size(&self) -> f64 {
        let [bytes, ios] = ["bytes", "ios"].map(|key| self.number(key).unwrap_or(0.0));
        if ios > 0.0 { bytes / ios } else { 0.0 }
    }

    /// Whether another job differs in its number alone.
    fn is_like(&self, other: &Calls) -> bool {
        let [a, b] = [self.size(), other.size()];
        let is_kin = stem(&self.job) == stem(&other.job) && !stem(&self.job).is_empty();
        is_kin && self.direction == other.direction && a <= b * SAME_SIZE && b <= a * SAME_SIZE
    }
}

impl Calling for Calls {
    fn job(&self) -> Option<&str> {
        (!self.is_part).then_some(self.job.as_str())
    }

    fn is_of(&self, job: &str) -> bool {
        self.job == job
    }

    fn direction(&self) -> &str {
        &self.direction
    }

    fn value(&self, metric: &Metric) -> Option<f64> {
        self.figures.values.get(&metric.column()).copied()
    }
}

/// What the jobs of a run got.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub(super) rows: Vec<Calls>,
}

/// What an application waits for, as it sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Application {
    /// `sync p99.9 of wal`.
    pub figure: String,
    /// `wal`.
    pub job: String,
    /// In the unit of the metric.
    pub value: f64,
    /// For people.
    pub text: String,
    /// Such calls in a second; none of several jobs together.
    pub calls_per_s: Option<f64>,
}

impl Application {
    /// A figure of some calls.
    fn new(figure: &Figure, rows: &[Calls]) -> Option<Application> {
        let row = figure.row(rows)?;
        let value = row.value(figure.metric)?;
        Some(Application {
            figure: figure.to_string(),
            job: row.job.clone(),
            value,
            text: figure.text(value),
            calls_per_s: row.per_s(),
        })
    }
}

impl Measured {
    /// Of the jobs of a run.
    pub fn of_jobs(jobs: &[JobResult]) -> Measured {
        let rows = rows_of_jobs(jobs);
        let rows: Vec<Value> = rows.iter().map(JobRow::to_json).collect();
        Measured::new(&json!({ "jobs": rows }))
    }

    /// The 99.9th percentile of the job that is worst off, of its syncs where jobs sync: what
    /// its requests are to explain.
    pub fn application(&self) -> Option<Application> {
        Application::new(&Figure::usual(&self.rows)?, &self.rows)
    }

    /// The same of these jobs alone.
    pub fn application_of(&self, jobs: &[&str]) -> Option<Application> {
        let own = self
            .rows
            .iter()
            .filter(|row| jobs.contains(&row.job.as_str()));
        let own: Vec<Calls> = own
            .map(|row| Calls {
                is_part: false,
                ..row.clone()
            })
            .collect();
        Application::new(&Figure::usual(&own)?, &own)
    }

    /// The same figure of other runs of the same jobs: what the application sees there.
    pub fn seen(&self, application: &Application) -> Option<Application> {
        let figure = Figure::parse(&application.figure).ok()?;
        Application::new(&figure, &self.rows)
    }

    /// All jobs; those of a family as one.
    pub fn subjects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.rows.iter().filter_map(Calling::job) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// From the object `metrics` of a run's result.
    pub fn new(metrics: &Value) -> Measured {
        let jobs = metrics["jobs"].as_array().into_iter().flatten();
        let jobs: Vec<&Value> = jobs.filter(|row| row["level"] != "group").collect();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let is_in_several_groups = |name: &str| {
            let mut groups = jobs.iter().filter(|row| row["job"] == name);
            let first = groups.next().map(|row| &row["cgroup"]);
            groups.any(|row| Some(&row["cgroup"]) != first)
        };
        let mut singles: Vec<Calls> = Vec::new();
        for row in &jobs {
            let name = text(row, "job");
            let group = text(row, "cgroup");
            let job = if is_in_several_groups(&name) && !group.is_empty() {
                format!("{name} in {group}")
            } else {
                name
            };
            singles.push(Calls {
                job,
                is_part: false,
                direction: text(row, "direction"),
                figures: of_json(row),
            });
        }
        Measured {
            rows: with_families(singles),
        }
    }
}

/// Rows, and one more for each set of jobs that differ in their number alone.
fn with_families(mut rows: Vec<Calls>) -> Vec<Calls> {
    let mut families: Vec<Vec<usize>> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        match families.iter_mut().find(|f| rows[f[0]].is_like(row)) {
            Some(family) => family.push(i),
            None => families.push(vec![i]),
        }
    }
    families.retain(|family| family.len() >= FAMILY_MIN);
    let mut joined = Vec::new();
    for family in families {
        let parts: Vec<&Calls> = family.iter().map(|&i| &rows[i]).collect();
        joined.push(together(&parts));
        family.iter().for_each(|&i| rows[i].is_part = true);
    }
    rows.splice(0..0, joined);
    rows
}

/// Several jobs as one: latencies of all of their calls, and rates over the longest time that
/// one of them ran, as fio counts a group.
fn together(parts: &[&Calls]) -> Calls {
    // By length first: file9 before file10.
    let mut names: Vec<&str> = parts.iter().map(|p| p.job.as_str()).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    let numbers = |key: &'static str| parts.iter().filter_map(move |p| p.number(key));
    let sum = |key| numbers(key).sum::<f64>();
    let most = |key| numbers(key).reduce(f64::max);
    let mut figures = RowFigures::default();
    for part in parts {
        figures.latencies.merge(&part.figures.latencies);
    }
    let seconds = most("ran").unwrap_or(0.0) / 1e3;
    let samples = figures.latencies.bins().map(|(_, count)| count).sum();
    let percentile = |p: f64| match samples {
        0 => None,
        _ => Some(figures.latencies.percentiles(&[p], samples)[0] as f64),
    };
    let calls = sum("ios");
    let weighted = parts.iter().filter_map(|p| {
        let [mean, ios] = ["clat_mean", "ios"].map(|key| p.number(key));
        Some(mean? * ios?)
    });
    let rate = |amount: f64| (seconds > 0.0).then(|| amount / seconds);
    let values = [
        ("bytes", Some(sum("bytes"))),
        ("ios", Some(calls)),
        ("ran", most("ran")),
        ("runt_min", numbers("runt_min").reduce(f64::min)),
        ("runt_max", most("runt_max")),
        ("bandwidth", rate(sum("bytes"))),
        ("iops", rate(calls)),
        ("clat_max", most("clat_max")),
        (
            "clat_mean",
            (calls > 0.0).then(|| weighted.sum::<f64>() / calls),
        ),
        ("clat_p50", percentile(50.0)),
        ("clat_p95", percentile(95.0)),
        ("clat_p99", percentile(99.0)),
        ("clat_p999", percentile(99.9)),
    ];
    for (key, value) in values {
        let column = metric::named(key).map(Metric::column);
        figures.values.extend(column.zip(value));
    }
    Calls {
        job: format!("{}…{}", names[0], names[names.len() - 1]),
        is_part: false,
        direction: parts[0].direction.clone(),
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job: &str, bytes: f64, ios: f64, bins: &[(u64, u64)]) -> Value {
        json!({"level": "job", "job": job, "direction": "read", "bytes": bytes, "ios": ios,
            "ran_ms": 1000.0, "bandwidth_bytes_per_s": bytes, "iops": ios, "clat_bins": bins,
            "clat_max_ns": bins.last().map(|b| b.0), "clat_mean_ns": bins[0].0})
    }

    #[test]
    fn jobs_that_differ_in_a_number_alone_are_one_and_each_can_be_named() {
        let metrics = json!({"jobs": [
            row("f1", 4096.0, 1.0, &[(10, 1)]),
            row("f2", 8192.0, 2.0, &[(20, 2)]),
            row("f10", 4096.0, 1.0, &[(1000, 1)]),
            row("dd", 1e6, 1.0, &[(5, 1)]),
        ]});
        let measured = Measured::new(&metrics);
        let named: Vec<&str> = measured.rows.iter().filter_map(Calling::job).collect();
        assert_eq!(named, ["f1…f10", "dd"]);
        let family = &measured.rows[0];
        assert_eq!(family.number("bandwidth"), Some(16384.0));
        assert_eq!(family.number("clat_max"), Some(1000.0));
        assert_eq!(family.number("clat_mean"), Some(1050.0 / 4.0));
        assert_eq!(family.number("clat_p50"), Some(20.0));
        let told = measured.application().expect("jobs read");
        assert_eq!(
            (&*told.figure, &*told.text),
            ("read p99.9 of f1…f10", "1.00 us")
        );
        assert!(measured.rows.iter().any(|r| r.is_of("f2")));
    }

    /// Names that are alike do not make jobs alike.
    #[test]
    fn jobs_whose_calls_differ_stay_apart() {
        let metrics = json!({"jobs": [
            row("job1", 4096.0, 1.0, &[(10, 1)]),
            row("job2", 1_048_576.0, 1.0, &[(20, 2)]),
            row("job3", 4096.0, 1.0, &[(1000, 1)]),
        ]});
        let measured = Measured::new(&metrics);
        let named: Vec<&str> = measured.rows.iter().filter_map(Calling::job).collect();
        assert_eq!(named, ["job1", "job2", "job3"]);
    }

    #[test]
    fn jobs_of_several_groups_say_theirs() {
        let in_group = |group: &str| {
            let mut row = row("db", 4096.0, 1.0, &[(10, 1)]);
            row["cgroup"] = json!(group);
            row
        };
        let measured = Measured::new(&json!({"jobs": [in_group("a"), in_group("b")]}));
        assert!(measured.rows[1].is_of("db in b"));
    }
}
