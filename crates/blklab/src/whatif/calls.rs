// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials judged by what the application sees: by its calls, which stand at the head of the
//! answer, and not by the requests that these are made of.

use crate::summary::jobs::stem;
use crate::verdict::{Application, Measured};
use blklab_whatif::{Trial, Verdict, WhatIf, gain};
use serde::Serialize;

/// What the application saw, and sees with a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Without the change.
    pub before: Application,
    /// With it.
    #[serde(flatten)]
    pub after: Application,
}

impl Seen {
    /// How many times shorter its calls are; below 1 they are longer.
    pub fn faster(&self) -> f64 {
        self.before.value.max(1.0) / self.after.value.max(1.0)
    }

    /// How many times more calls it makes in the same time; 1 where that is not known.
    pub fn more(&self) -> f64 {
        let (before, after) = (self.before.calls_per_s, self.after.calls_per_s);
        match (before, after) {
            (Some(before), Some(after)) if before > 0.0 => after / before,
            _ => 1.0,
        }
    }
}

/// Judges each trial of an experiment that ran again by calls: of the jobs that suffer, where
/// these make any, else of those at the head of the answer. What it says of requests is kept
/// beside it. Gives what the application sees with each.
pub fn judge_calls(w: &mut WhatIf, before: &Measured) -> Vec<Option<Seen>> {
    w.trials.iter_mut().map(|t| judge(t, before)).collect()
}

fn judge(t: &mut Trial, before: &Measured) -> Option<Seen> {
    if t.jobs.is_empty() {
        return None;
    }
    let suffering = t.jobs.iter().filter(|job| t.suffer.contains(&job.pid));
    let victims: Vec<&str> = suffering.map(|job| job.job.name.as_str()).collect();
    let of_victims = before.application_of(&victims);
    let application = of_victims.clone().or_else(|| before.application())?;
    let after = Measured::of_jobs(&t.jobs);
    let seen = Seen {
        after: after.seen(&application)?,
        before: application,
    };
    // Who suffers does not pay, nor does a family of jobs that they are of.
    let is_own = |subject: &str| match of_victims {
        Some(_) => victims.iter().any(|job| is_or_has(subject, job)),
        None => seen.before.job == subject,
    };
    let others = before
        .subjects()
        .into_iter()
        .filter(|subject| !is_own(subject));
    let others = others.filter_map(|subject| {
        let before = before.application_of(&[subject])?;
        let seen = Seen {
            after: after.seen(&before)?,
            before,
        };
        Some((subject.to_owned(), gain(seen.faster(), seen.more())))
    });
    let by = Some(seen.before.figure.clone());
    let verdict = Verdict::by(by, &[gain(seen.faster(), seen.more())], others);
    t.requests = t.verdict.replace(verdict);
    Some(seen)
}

/// Whether a subject is a job, or a family of which it is.
fn is_or_has(subject: &str, job: &str) -> bool {
    let family = subject.split_once('…').map(|(first, _)| stem(first));
    subject == job || family.is_some_and(|family| family == stem(job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_the_jobs_that_differ_in_their_number() {
        assert!(is_or_has("file1…file41", "file9") && is_or_has("wal", "wal"));
        assert!(!is_or_has("file1…file41", "dd") && !is_or_has("wal", "wal2"));
    }

    #[test]
    fn calls_that_are_shorter_and_fewer_are_no_gain() {
        let application = |value: f64, calls_per_s: f64| Application {
            figure: "sync p99.9 of wal".to_owned(),
            job: "wal".to_owned(),
            text: String::new(),
            value,
            calls_per_s: Some(calls_per_s),
        };
        let seen = Seen {
            before: application(100.0, 600.0),
            after: application(50.0, 100.0),
        };
        assert_eq!((seen.faster(), seen.more()), (2.0, 1.0 / 6.0));
        assert!(gain(seen.faster(), seen.more()) < 1.0);
    }
}
