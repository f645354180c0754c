// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to become better, and what must not become worse.

use crate::jobs::bytes;
use blklab::figure::{Calling as _, Calls, Figure};
use blklab::job_rows::JobRow;
use blklab::metric::Unit;
use blklab::verdict::MUCH_LESS;
use blklab_types::{Error, no_such, shown};
use std::fmt;

/// What others keep of their bandwidth where nobody says what they are to keep.
const KEPT_SHARE: f64 = 0.5;

/// A bound that a figure keeps to.
#[derive(Clone, Debug)]
pub struct Keep {
    pub(crate) figure: Figure,
    is_at_least: bool,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Of what the figure is without a change: 0.8 for 80 %.
    Share(f64),
    /// In the unit of the metric.
    Value(f64),
}

impl Keep {
    /// Reads `FIGURE >= N %`, `FIGURE <= 10ms`, `FIGURE >= 100m`.
    ///
    /// # Errors
    /// One line: what is wrong, what would be right.
    pub fn parse(text: &str) -> Result<Keep, Error> {
        let (figure, is_at_least, bound) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((figure, bound)), None) => (figure, true, bound.trim()),
            (None, Some((figure, bound))) => (figure, false, bound.trim()),
            _ => {
                return Err(Error::new(format!(
                    "'{}': write it like 'bandwidth of backup >= 80 %'",
                    shown(text)
                )));
            }
        };
        let figure = Figure::parse(figure.trim())?;
        if figure.job.is_none() {
            let what = format!("'{}': of which job?", shown(text));
            return Err(Error::new(what));
        }
        let bound = match bound.strip_suffix('%') {
            Some(number) => Bound::Share(percent(number.trim())?),
            None => Bound::Value(value(bound, figure.metric.unit)?),
        };
        Ok(Keep {
            figure,
            is_at_least,
            bound,
        })
    }

    /// Whether a run keeps to it. A job that has no such calls any more does not.
    pub(crate) fn holds(&self, before: Option<f64>, after: Option<f64>) -> bool {
        let Some(after) = after else {
            return before.is_none();
        };
        let bound = match self.bound {
            Bound::Share(share) => share * before.unwrap_or(0.0),
            Bound::Value(value) => value,
        };
        if self.is_at_least {
            after >= bound
        } else {
            after <= bound
        }
    }

    /// The least share of its bandwidth that it leaves a job; none if it is about another, or
    /// says something else.
    pub(crate) fn share_of(&self, job: &str) -> Option<f64> {
        let is_it = self.is_at_least
            && self.figure.metric.key == "bandwidth"
            && self.figure.job.as_deref() == Some(job);
        match self.bound {
            Bound::Share(share) if is_it => Some(share),
            _ => None,
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_at_least { ">=" } else { "<=" };
        write!(f, "{} {sign} ", self.figure)?;
        match self.bound {
            Bound::Share(share) => write!(f, "{:.0} %", share * 100.0),
            Bound::Value(value) => f.write_str(&self.figure.text(value)),
        }
    }
}

fn percent(text: &str) -> Result<f64, Error> {
    let number = text.parse().ok().filter(|n| (0.0..=10_000.0).contains(n));
    let number: Option<f64> = number;
    number.map(|n| n / 100.0).ok_or_else(|| {
        Error::new(format!(
            "'{} %' is no share; write it like 80 %",
            shown(text)
        ))
    })
}

/// A number with a unit, in the unit of a metric.
fn value(text: &str, unit: Unit) -> Result<f64, Error> {
    let (units, example): (&[(&str, f64)], &str) = match unit {
        Unit::Ns => (&[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)], "10ms"),
        Unit::Ms => (&[("ms", 1.0), ("s", 1e3)], "90s"),
        Unit::BytesPerS => (
            &[
                ("", 1.0),
                ("k", 1024.0),
                ("m", 1_048_576.0),
                ("g", 1_073_741_824.0),
            ],
            "100m",
        ),
        _ => (&[("", 1.0), ("k", 1e3)], "5000"),
    };
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix("/s").unwrap_or(&lower);
    let lower = match unit {
        Unit::BytesPerS => lower
            .strip_suffix("ib")
            .or(lower.strip_suffix('b'))
            .unwrap_or(lower),
        _ => lower,
    };
    let at = lower.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, suffix) = lower.split_at(at.unwrap_or(lower.len()));
    let factor = units.iter().find(|(name, _)| *name == suffix.trim());
    match (digits.parse::<f64>(), factor) {
        (Ok(number), Some((_, factor))) => Ok(number * factor),
        _ => Err(Error::new(format!(
            "'{}' is no bound; write it like {example}, or a share like 80 %",
            shown(text)
        ))),
    }
}

/// What is to become better.
#[derive(Clone, Debug)]
pub struct Goal {
    pub(crate) figure: Figure,
}

impl Goal {
    /// Reads `[CALLS] METRIC [of JOB]`, as in `sync p99.9 of wal`.
    ///
    /// # Errors
    /// One line: what is wrong, what would be right.
    pub fn parse(text: &str) -> Result<Goal, Error> {
        Figure::parse(text).map(|figure| Goal { figure })
    }

    /// The goal of a run: what was asked for, or the 99.9th percentile of the job that is
    /// worst off, of its syncs where jobs sync, else of its reads, else of its writes.
    ///
    /// # Errors
    /// If no job has such calls.
    pub(crate) fn settled(asked: Option<&Goal>, rows: &[JobRow]) -> Result<Figure, Error> {
        let found = match asked {
            Some(Goal { figure }) if figure.job.is_some() => {
                check_job(figure, rows)?;
                Some(figure.clone())
            }
            Some(Goal { figure }) => figure.of_worst(figure.calls, rows),
            None => Figure::usual(rows),
        };
        let found = found.ok_or_else(|| Error::new("no job has such calls"))?;
        match found.value(rows) {
            Some(_) => Ok(found),
            None => Err(Error::new(format!("{found}: it makes no such calls"))),
        }
    }
}

/// What must not become worse: what was asked for, or half of the bandwidth of all others; and
/// that the job of the goal still makes most of its calls, where the goal is how long they take.
///
/// # Errors
/// If a job has no such calls.
pub(crate) fn settled_keeps(
    asked: &[Keep],
    goal: &Figure,
    rows: &[JobRow],
) -> Result<Vec<Keep>, Error> {
    for keep in asked {
        check_job(&keep.figure, rows)?;
        if keep.figure.value(rows).is_none() {
            let what = format!("{}: it makes no such calls", keep.figure);
            return Err(Error::new(what));
        }
    }
    let mut keeps = asked.to_vec();
    if asked.is_empty() {
        let keep = |job: &String| Keep {
            figure: Figure::of_job("bandwidth", Calls::Main, job),
            is_at_least: true,
            bound: Bound::Share(KEPT_SHARE),
        };
        keeps.extend(others(goal, rows).iter().map(keep));
    }
    let is_said = |keep: &Keep| keep.figure.job == goal.job && !keep.figure.is_latency();
    if !asked.iter().any(is_said) {
        keeps.extend(own_calls(goal, rows).map(|figure| Keep {
            figure,
            is_at_least: true,
            bound: Bound::Share(MUCH_LESS),
        }));
    }
    Ok(keeps)
}

/// How many calls a goal is about, in a second, where it is how long they take: who hardly gets
/// to call has few that take long.
pub(crate) fn own_calls(goal: &Figure, rows: &[JobRow]) -> Option<Figure> {
    let row = goal.row(rows).filter(|_| goal.is_latency())?;
    let job = goal.job.as_deref()?;
    Some(Figure::of_job("iops", Calls::Only(row.direction), job))
}

/// The jobs of a run that the goal is not about, those with most bytes first.
pub(crate) fn others(goal: &Figure, rows: &[JobRow]) -> Vec<String> {
    let mut all: Vec<(u64, u64, String)> = Vec::new();
    for row in rows.iter().filter(|row| row.level != "group") {
        let Some(job) = &row.job else { continue };
        if goal.job.as_ref() == Some(job) {
            continue;
        }
        match all.iter_mut().find(|(_, _, name)| name == job) {
            Some((moved, calls, _)) => {
                *moved += bytes(row) as u64;
                *calls += row.ios();
            }
            None => all.push((bytes(row) as u64, row.ios(), job.clone())),
        }
    }
    all.sort_by(|a, b| b.cmp(a));
    all.into_iter().map(|(_, _, job)| job).collect()
}

fn check_job(figure: &Figure, rows: &[JobRow]) -> Result<(), Error> {
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row.job.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    match &figure.job {
        Some(job) if !names.contains(&job.as_str()) => {
            let what = no_such("job", job, &names);
            Err(Error::new(what))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shares_or_values_with_their_unit() {
        let keep = Keep::parse("bandwidth of backup >= 80 %").expect("sound");
        assert_eq!(keep.to_string(), "bandwidth of backup >= 80 %");
        assert!(keep.holds(Some(100.0), Some(80.0)));
        assert!(!keep.holds(Some(100.0), Some(79.0)));
        assert!(!keep.holds(Some(100.0), None));
        assert_eq!(keep.share_of("backup"), Some(0.8));
        assert_eq!(keep.share_of("wal"), None);
        let keep = Keep::parse("read p99 of web <= 10ms").expect("sound");
        assert!(keep.holds(None, Some(1e7)) && !keep.holds(None, Some(1.1e7)));
        let keep = Keep::parse("bandwidth of b >= 100MiB/s").expect("sound");
        assert_eq!(keep.bound, Bound::Value(104_857_600.0));
        let keep = Keep::parse("iops of b >= 5k").expect("sound");
        assert_eq!(keep.bound, Bound::Value(5000.0));
    }

    #[test]
    fn what_is_no_bound_says_what_would_be_one() {
        let told = |text| Keep::parse(text).expect_err("refused").what;
        assert!(told("bandwidth of a").contains("write it like"));
        assert!(told("bandwidth >= 80 %").contains("of which job"));
        assert!(told("read p99 of a <= 10m").contains("like 10ms"));
        assert!(told("bandwidth of a >= x %").contains("no share"));
    }
}
