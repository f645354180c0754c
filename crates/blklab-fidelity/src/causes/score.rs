// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often what is said is right, and how often what is there is said.

use super::Examined;
use serde::Serialize;
use std::collections::BTreeMap;

/// The score of a kind of finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindScore {
    /// Scenarios in which it is planted.
    pub planted: u64,
    /// Of those, scenarios in which it is said.
    pub found: u64,
    /// Of those, scenarios in which it is said first.
    pub first: u64,
    /// Scenarios with a cause in which it is said.
    pub said: u64,
    /// Of those, scenarios in which it is right.
    pub right: u64,
    /// Scenarios with nothing wrong in which it is said.
    pub false_alarms: u64,
}

impl KindScore {
    /// Of what is there, the part that is said.
    pub fn recall(&self) -> Option<f64> {
        share(self.found, self.planted)
    }

    /// Of what is said, the part that is right; in scenarios with nothing wrong none is.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.said + self.false_alarms)
    }

    fn add(&mut self, other: &KindScore) {
        self.planted += other.planted;
        self.found += other.found;
        self.first += other.first;
        self.said += other.said;
        self.right += other.right;
        self.false_alarms += other.false_alarms;
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// The score of all scenarios.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Score {
    /// By kind of finding.
    pub kinds: BTreeMap<&'static str, KindScore>,
    /// All kinds together.
    pub all: KindScore,
    /// Scenarios with a cause.
    pub planted: u64,
    /// Scenarios with nothing wrong.
    pub clean: u64,
    /// Of those, scenarios in which nothing is said.
    pub silent: u64,
    /// Scenarios whose cause has no effect however often they are drawn; left out.
    pub without_effect: u64,
    /// Events of all.
    pub events: u64,
}

impl Score {
    /// Of these scenarios.
    pub fn new(examined: &[Examined]) -> Score {
        let mut score = Score::default();
        for one in examined {
            score.add(one);
        }
        for kind in score.kinds.values() {
            score.all.add(kind);
        }
        score
    }

    fn add(&mut self, one: &Examined) {
        if one.draws.is_none() {
            self.without_effect += 1;
            return;
        }
        self.events += one.events;
        if let Some(kind) = one.planted {
            self.planted += 1;
            let of_kind = self.kinds.entry(kind).or_default();
            of_kind.planted += 1;
            of_kind.found += u64::from(one.is_found());
            of_kind.first += u64::from(one.said.first().is_some_and(|s| s.planted));
        } else {
            self.clean += 1;
            self.silent += u64::from(one.said.is_empty());
        }
        for said in &one.said {
            let of_kind = self.kinds.entry(said.kind).or_default();
            match one.planted {
                Some(_) => {
                    of_kind.said += 1;
                    of_kind.right += u64::from(said.right);
                }
                None => of_kind.false_alarms += 1,
            }
        }
    }
}
