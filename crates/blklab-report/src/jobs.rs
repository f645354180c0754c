// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `result.json` says of the jobs of a run: lines of the table, and the
//! distributions of their latencies. Jobs that differ in a number only share a line.

use crate::groups::groups;
use crate::model::{Curve, JobLine};
use serde_json::Value;
use std::collections::BTreeMap;

/// Counts by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<u64, u64>);

impl Counts {
    pub(crate) fn add(&mut self, value: u64, count: u64) {
        *self.0.entry(value).or_default() += count;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The value that `percent` of all do not exceed.
    fn percentile(&self, percent: f64) -> u64 {
        let wanted = percent / 100.0 * self.count() as f64;
        let mut seen = 0;
        for (value, count) in &self.0 {
            seen += count;
            if seen as f64 >= wanted {
                return *value;
            }
        }
        0
    }

    /// A curve of these values, whose extreme is known exactly.
    pub(crate) fn curve(
        self,
        who: &str,
        direction: &str,
        measure: &'static str,
        max_ns: u64,
    ) -> Curve {
        let at = |percent| self.percentile(percent).min(max_ns);
        Curve {
            who: who.to_owned(),
            direction: direction.to_owned(),
            measure,
            count: self.count(),
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns,
            points: self
                .0
                .into_iter()
                .map(|(v, n)| (v.min(max_ns), n))
                .collect(),
        }
    }
}

/// The lines of the table and the curves, from the metrics of a run.
pub(crate) fn of_metrics(metrics: &Value) -> (Vec<JobLine>, Vec<Curve>) {
    let rows = metrics["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    let rows: Vec<&Value> = rows.iter().filter(|r| r["level"] != "group").collect();
    let (places, names) = groups(rows.iter().map(|r| r["job"].as_str().unwrap_or_default()));
    let mut lines: Vec<JobLine> = Vec::new();
    let mut curves = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let own = || {
            rows.iter()
                .zip(&places)
                .filter(|(_, p)| **p == place)
                .map(|(r, _)| *r)
        };
        let mut directions: Vec<&str> = own().filter_map(|r| r["direction"].as_str()).collect();
        directions.sort_unstable();
        directions.dedup();
        for direction in directions {
            let rows = own().filter(|r| r["direction"] == direction);
            let rows: Vec<&Value> = rows.collect();
            let mut counts = Counts::default();
            for row in &rows {
                bins(row).for_each(|(value, count)| counts.add(value, count));
            }
            let max_ns = largest(&rows, "clat_max_ns").map(|ns| ns as u64);
            let curve = max_ns
                .filter(|_| counts.count() > 0)
                .map(|max_ns| counts.curve(name, direction, "clat", max_ns));
            lines.push(line(name, direction, &rows, curve.as_ref()));
            curves.extend(curve);
        }
    }
    (lines, curves)
}

fn numbers<'a>(rows: &'a [&Value], key: &'a str) -> impl Iterator<Item = f64> + 'a {
    rows.iter().filter_map(move |r| r[key].as_f64())
}

fn largest(rows: &[&Value], key: &str) -> Option<f64> {
    numbers(rows, key).reduce(f64::max)
}

fn line(name: &str, direction: &str, rows: &[&Value], curve: Option<&Curve>) -> JobLine {
    let sum = |key| numbers(rows, key).sum::<f64>() as u64;
    // A row alone has its own numbers; of several the bins together say them.
    let own = |key, drawn: fn(&Curve) -> u64| match rows {
        [row] => row[key].as_f64().map(|ns| ns as u64),
        _ => curve.map(drawn),
    };
    JobLine {
        name: name.to_owned(),
        direction: direction.to_owned(),
        jobs: sum("jobs"),
        ios: sum("ios"),
        bytes: sum("bytes"),
        runt_min_ms: numbers(rows, "runt_min_ms").reduce(f64::min),
        runt_max_ms: largest(rows, "runt_max_ms"),
        clat_p50_ns: own("clat_p50_ns", |c| c.p50_ns),
        clat_p99_ns: own("clat_p99_ns", |c| c.p99_ns),
        clat_p999_ns: own("clat_p999_ns", |c| c.p999_ns),
        clat_max_ns: own("clat_max_ns", |c| c.max_ns),
    }
}

/// The bins of a row's completion latency, or of the latency of its calls: value in ns and
/// count.
fn bins(row: &Value) -> impl Iterator<Item = (u64, u64)> + '_ {
    let bins = row["clat_bins"].as_array().into_iter().flatten();
    bins.filter_map(|bin| Some((bin[0].as_u64()?, bin[1].as_u64()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn jobs_of_one_family_share_a_line() {
        let row = |job, runt, max, bins| {
            json!({"level": "job", "job": job, "direction": "read", "jobs": 1, "ios": 2.0,
                "bytes": 8192.0, "runt_min_ms": runt, "runt_max_ms": runt, "clat_p50_ns": 7.0,
                "clat_p99_ns": 9.0, "clat_p999_ns": 9.0, "clat_max_ns": max, "clat_bins": bins})
        };
        let mut group = row("", 9.0, 41, json!([[5, 6]]));
        group["level"] = json!("group");
        let metrics = json!({"jobs": [
            row("f1", 5.0, 31, json!([[10, 1], [30, 1]])),
            row("f2", 7.0, 41, json!([[20, 1], [40, 1]])),
            row("dd", 9.0, 9, json!([[5, 2]])), group]});
        let (lines, curves) = of_metrics(&metrics);
        assert_eq!(lines.len(), 2);
        let f = &lines[0];
        assert_eq!(
            (&*f.name, f.jobs, f.ios, f.runt_max_ms),
            ("f1…f2", 2, 4, Some(7.0))
        );
        assert_eq!((f.clat_p50_ns, f.clat_max_ns), (Some(20), Some(41)));
        assert_eq!(curves[0].points, [(10, 1), (20, 1), (30, 1), (40, 1)]);
        // Alone it has its own numbers, not those of the bins.
        assert_eq!(lines[1].clat_p50_ns, Some(7));
    }
}
