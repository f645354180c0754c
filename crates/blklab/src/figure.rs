// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that people ask about, in their words: `sync p99.9 of wal`, `bandwidth of backup`.

use crate::job_rows::JobRow;
use crate::metric::{self, Aim, Metric, Unit};
use blklab_types::{Error, no_such, shown};
use std::fmt;

/// Which of a job's calls a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Not said: those of fsync and its kin where a job makes any and the figure is a
    /// latency; else the direction with the most.
    Main,
    /// As in [`JobRow::direction`].
    Only(&'static str),
}

/// Words for calls, and the direction of rows that they mean.
const CALLS: [(&str, &str); 7] = [
    ("read", "read"),
    ("write", "write"),
    ("trim", "trim"),
    ("discard", "trim"),
    ("sync", "sync"),
    ("fsync", "sync"),
    ("fdatasync", "sync"),
];

/// Words for metrics, and their keys.
const METRICS: [(&str, &str); 12] = [
    ("p50", "clat_p50"),
    ("median", "clat_p50"),
    ("p95", "clat_p95"),
    ("p99", "clat_p99"),
    ("p99.9", "clat_p999"),
    ("max", "clat_max"),
    ("longest", "clat_max"),
    ("mean", "clat_mean"),
    ("bandwidth", "bandwidth"),
    ("bw", "bandwidth"),
    ("iops", "iops"),
    ("runtime", "runt_max"),
];

/// Somebody's calls in one direction in a run.
pub trait Calling {
    /// The job or process whose they are; none of several unlike ones together.
    fn job(&self) -> Option<&str>;
    /// Whether they are the calls of the job or process of this name.
    fn is_of(&self, job: &str) -> bool {
        self.job() == Some(job)
    }
    /// As in [`JobRow::direction`].
    fn direction(&self) -> &str;
    /// A number of them; none if they have none.
    fn value(&self, metric: &Metric) -> Option<f64>;
    /// How many they are.
    fn ios(&self) -> u64 {
        let ios = metric::named("ios").and_then(|m| self.value(m));
        ios.unwrap_or(0.0) as u64
    }
}

impl Calling for JobRow {
    fn job(&self) -> Option<&str> {
        self.job.as_deref().filter(|_| self.level != "group")
    }

    fn direction(&self) -> &str {
        self.direction
    }

    fn value(&self, metric: &Metric) -> Option<f64> {
        metric.of_jobs(&self.numbers)
    }
}

/// A number that each run has of a job.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is.
    pub metric: &'static Metric,
    /// Of which calls.
    pub calls: Calls,
    /// The job or process; none is chosen yet.
    pub job: Option<String>,
}

impl Figure {
    /// Reads `[CALLS] METRIC [of JOB]`.
    ///
    /// # Errors
    /// One line: what is wrong, what would be right.
    pub fn parse(text: &str) -> Result<Figure, Error> {
        let (head, job) = match text.split_once(" of ") {
            Some((head, job)) => (head, Some(job.trim().to_owned())),
            None => (text, None),
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let (calls, name) = match words[..] {
            [name] => (Calls::Main, name),
            [calls, name] => (calls_of(calls)?, name),
            _ => {
                return Err(Error::new(format!(
                    "'{}' is no figure; write it like 'sync p99.9 of wal'",
                    shown(text)
                )));
            }
        };
        if job.as_ref().is_some_and(String::is_empty) {
            return Err(Error::new(format!("'{}': of which job?", shown(text))));
        }
        let key = METRICS.iter().find(|(word, _)| *word == name);
        let Some(found) = metric::named(key.map_or(name, |(_, key)| key)) else {
            let words: Vec<&str> = METRICS.iter().map(|(word, _)| *word).collect();
            return Err(Error::new(no_such("figure", name, &words)));
        };
        if found.aim == Aim::None {
            let what = format!("{name}: neither more nor less of it is better");
            return Err(Error::new(what));
        }
        Ok(Figure {
            metric: found,
            calls,
            job,
        })
    }

    /// A figure of a job.
    pub fn of_job(key: &str, calls: Calls, job: &str) -> Figure {
        Figure {
            metric: metric::named(key).expect("a metric of the table"),
            calls,
            job: Some(job.to_owned()),
        }
    }

    /// Whether it is a time that calls take.
    pub fn is_latency(&self) -> bool {
        self.metric.unit == Unit::Ns
    }

    /// Its value in a run; none if the job has no such calls there.
    pub fn value<R: Calling>(&self, rows: &[R]) -> Option<f64> {
        self.row(rows)?.value(self.metric)
    }

    /// The row of a run that it is about; none if the job has no such calls there.
    pub fn row<'a, R: Calling>(&self, rows: &'a [R]) -> Option<&'a R> {
        let job = self.job.as_deref()?;
        let mut own = rows.iter().filter(|row| row.is_of(job));
        match self.calls {
            Calls::Only(direction) => own.find(|row| row.direction() == direction),
            Calls::Main => {
                let (syncs, moves): (Vec<&R>, Vec<&R>) =
                    own.partition(|row| row.direction() == "sync");
                let busiest = moves.into_iter().max_by_key(|row| row.ios());
                match syncs.first() {
                    Some(sync) if self.is_latency() => Some(sync),
                    sync => busiest.or(sync.copied()),
                }
            }
        }
    }

    /// The same figure of the job that is worst off in a run.
    pub fn of_worst<R: Calling>(&self, calls: Calls, rows: &[R]) -> Option<Figure> {
        let with_job = |row: &R| {
            let figure = Figure {
                job: Some(row.job()?.to_owned()),
                calls,
                ..self.clone()
            };
            Some((figure.value(rows)?, figure))
        };
        let all = rows.iter().filter_map(with_job);
        let found = all.max_by(|a, b| self.worse(a.0, b.0));
        found.map(|(_, figure)| figure)
    }

    /// What a run is judged by where nobody says by what: the 99.9th percentile of the job
    /// that is worst off, of its syncs where jobs sync, else of its reads, else of its writes.
    pub fn usual<R: Calling>(rows: &[R]) -> Option<Figure> {
        let figure = Figure::of_job("clat_p999", Calls::Main, "");
        let kinds = ["sync", "read", "write", "trim", "all"];
        let mut found = kinds
            .iter()
            .map(|kind| figure.of_worst(Calls::Only(kind), rows));
        found.find_map(|figure| figure)
    }

    /// Which of two values is worse: the greater one in this order.
    pub fn worse(&self, a: f64, b: f64) -> std::cmp::Ordering {
        match self.metric.aim {
            Aim::Higher => b.total_cmp(&a),
            Aim::Lower | Aim::None => a.total_cmp(&b),
        }
    }

    /// How many times better a value is than another: above 1 it is better.
    pub fn gain(&self, before: f64, after: f64) -> f64 {
        let ratio = match self.metric.aim {
            Aim::Higher => after / before,
            Aim::Lower | Aim::None => before / after,
        };
        if ratio.is_nan() { 1.0 } else { ratio }
    }

    /// A value of it for people.
    pub fn text(&self, value: f64) -> String {
        match self.metric.unit {
            Unit::Ns => crate::findings::time_text(value.max(0.0) as u64),
            Unit::Ms => crate::findings::time_text((value.max(0.0) * 1e6) as u64),
            Unit::BytesPerS => three_figures(value, &["B/s", "kB/s", "MB/s", "GB/s"]),
            Unit::PerS => three_figures(value, &["/s", "k/s", "M/s"]),
            _ => format!("{value:.3}"),
        }
    }
}

/// A number with three figures in the largest of units that are 1000 apart.
fn three_figures(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {}", units[unit])
}

fn calls_of(word: &str) -> Result<Calls, Error> {
    match CALLS.iter().find(|(name, _)| *name == word) {
        Some((_, direction)) => Ok(Calls::Only(direction)),
        None => {
            let words: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
            Err(Error::new(no_such("kind of call", word, &words)))
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Calls::Only(direction) = self.calls {
            write!(f, "{direction} ")?;
        }
        let word = METRICS.iter().find(|(_, key)| *key == self.metric.key);
        f.write_str(word.map_or(self.metric.key, |(word, _)| word))?;
        match &self.job {
            Some(job) => write!(f, " of {job}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_people_say_them() {
        let f = Figure::parse("sync p99.9 of wal").expect("sound");
        assert_eq!((f.metric.key, f.calls), ("clat_p999", Calls::Only("sync")));
        assert_eq!(f.to_string(), "sync p99.9 of wal");
        let f = Figure::parse("fdatasync max of my wal").expect("sound");
        assert_eq!(f.to_string(), "sync max of my wal");
        let f = Figure::parse("bandwidth of backup").expect("sound");
        assert_eq!((f.calls, f.is_latency()), (Calls::Main, false));
        assert_eq!(f.gain(100.0, 200.0), 2.0);
        assert_eq!(f.text(252_961_123.0), "253 MB/s");
        assert_eq!(f.text(999_600.0), "1.00 MB/s");
        assert_eq!(Figure::parse("p99").expect("sound").job, None);
    }

    #[test]
    fn what_is_no_figure_says_what_would_be_one() {
        let told = |text| Figure::parse(text).expect_err("refused").what;
        assert!(told("").contains("write it like 'sync p99.9 of wal'"));
        assert!(told("sink p99 of a").contains("did you mean 'sync'"));
        assert!(
            told("read p98 of a").contains("p99"),
            "{}",
            told("read p98 of a")
        );
        assert_eq!(told("p99 of "), "'p99 of ': of which job?");
        assert!(told("bytes of a").contains("neither more nor less"));
    }
}
