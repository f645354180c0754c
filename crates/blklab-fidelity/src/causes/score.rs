// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often what is said is right, and how often what is there is said.

use super::Examined;
use super::forms::{FORMS, Form};
use super::judge::{Fate, Judged, Said};
use serde::Serialize;
use std::collections::BTreeMap;

/// What came of a class in a form of the trace, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Causes planted.
    pub planted: u64,
    /// Named, with who suffers and who causes it.
    pub named: u64,
    /// Of those, named first.
    pub first: u64,
    /// Not named, but what is missing is, with how to record it, where the form cannot show it.
    pub told: u64,
    /// Not named, and something else is blamed.
    pub blamed: u64,
    /// Not named, and nothing else either.
    pub silent: u64,
    /// Said to have nothing wrong.
    pub nothing_wrong: u64,
    /// A finding has the right kind.
    pub kind_named: u64,
    /// Of those, it names who suffers.
    pub sufferer_named: u64,
    /// Of those, it names who causes it.
    pub causer_named: u64,
    /// Named ones for which there is something to change.
    pub curable: u64,
    /// Of those, ones where that is said.
    pub remedy_named: u64,
    /// Findings that complain about something in scenarios with these causes.
    pub said: u64,
    /// Of those, true ones.
    pub right: u64,
}

impl Cell {
    /// Of what is there, the part that is named, or said not to be shown where it is not.
    pub fn recall(&self) -> Option<f64> {
        share(self.named + self.told, self.planted)
    }

    /// Of what is said, the part that is right.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.said)
    }

    /// Of what is there, the part of which is said that nothing is wrong.
    pub fn nothing_wrong_share(&self) -> Option<f64> {
        share(self.nothing_wrong, self.planted)
    }

    /// Of what is named and can be changed, the part of which it is said how.
    pub fn remedies(&self) -> Option<f64> {
        share(self.remedy_named, self.curable)
    }

    fn judged(&mut self, j: &Judged) {
        self.planted += 1;
        self.first += u64::from(j.is_first);
        self.kind_named += u64::from(j.is_kind_named);
        self.sufferer_named += u64::from(j.is_sufferer_named);
        self.causer_named += u64::from(j.is_causer_named);
        if let Some(is_named) = j.is_remedy_named {
            self.curable += 1;
            self.remedy_named += u64::from(is_named);
        }
        *match j.fate {
            Fate::Named => &mut self.named,
            Fate::Told => &mut self.told,
            Fate::Silent => &mut self.silent,
            Fate::Blamed => &mut self.blamed,
            Fate::NothingWrong => &mut self.nothing_wrong,
        } += 1;
    }

    fn said(&mut self, s: &Said) {
        self.said += 1;
        self.right += u64::from(s.right);
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// What is said where nothing is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clean {
    /// Scenarios.
    pub scenarios: u64,
    /// Of those, scenarios in which something is blamed.
    pub alarmed: u64,
}

/// The score of all scenarios.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Score {
    /// By class and form. Where two causes are planted, what is said counts for both.
    pub classes: BTreeMap<&'static str, BTreeMap<Form, Cell>>,
    /// By form; what is said counts once, in scenarios with nothing wrong, too.
    pub forms: BTreeMap<Form, Cell>,
    /// All together.
    pub all: Cell,
    /// Scenarios with nothing wrong, by form.
    pub clean: BTreeMap<Form, Clean>,
    /// Scenarios whose cause has no effect however often they are drawn; left out.
    pub without_effect: u64,
    /// Scenarios that could not be run.
    pub failed: u64,
}

impl Score {
    /// Of these scenarios.
    pub fn new(examined: &[Examined]) -> Score {
        let mut score = Score::default();
        for one in examined {
            score.add(one);
        }
        score
    }

    fn add(&mut self, one: &Examined) {
        if one.draws.is_none() {
            self.without_effect += 1;
            return;
        }
        for j in &one.judged {
            self.classes
                .entry(j.class)
                .or_default()
                .entry(j.form)
                .or_default()
                .judged(j);
            self.forms.entry(j.form).or_default().judged(j);
            self.all.judged(j);
        }
        for s in &one.said {
            for class in &one.planted {
                self.classes
                    .entry(class)
                    .or_default()
                    .entry(s.form)
                    .or_default()
                    .said(s);
            }
            self.forms.entry(s.form).or_default().said(s);
            self.all.said(s);
        }
        if one.planted.is_empty() {
            for form in FORMS {
                let clean = self.clean.entry(form).or_default();
                clean.scenarios += 1;
                clean.alarmed += u64::from(one.said.iter().any(|s| s.form == form));
            }
        }
    }
}
