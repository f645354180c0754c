// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of it.

use crate::step::Paste;
use blklab::statistics::Verdict;
use blklab::whatif::Change;
use serde::Serialize;

/// What to set, and everything that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// What was to become better: `sync p99.9 of wal`.
    pub goal: String,
    /// Its value without a change, for people.
    pub before: String,
    /// What must not become worse, in words.
    pub keeps: Vec<String>,
    /// The stack and the device that it was tried on.
    pub on: String,
    /// Disks, as the kernel calls them.
    pub disks: Vec<String>,
    /// All that was tried, the best first: those that ran with several seeds, then others that
    /// keep to the bounds, then those that do not.
    pub tried: Vec<Tried>,
    /// Which of them is the answer; none: leave it as it is.
    pub answer: Option<usize>,
    /// What of the best combination was left out, as it added nothing; none if the best of the
    /// finalists was no combination.
    pub pruned: Option<Pruned>,
    /// The answer on another target.
    pub confirmed: Option<Confirmed>,
    /// The best of all combinations, where these were run, too.
    pub grid: Option<Grid>,
    /// What cannot help here, and why.
    pub left_out: Vec<String>,
    /// What could not be tried, and why.
    pub not_tried: Vec<String>,
    /// Runs that it took.
    pub runs: usize,
    /// Seeds with which the best were run.
    pub repetitions: u32,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Recommendation {
    /// The answer, if it is not to leave all as it is.
    pub fn best(&self) -> Option<&Tried> {
        self.answer.and_then(|i| self.tried.get(i))
    }
}

/// Some changes, and what they came to.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// In words.
    pub what: String,
    /// Each of its steps in words.
    pub steps: Vec<String>,
    /// The changes, as what-if takes them.
    pub changes: Vec<Change>,
    /// The goal's value without and with them, in the metric's unit: the mean over the seeds.
    pub before: f64,
    /// The same with the changes.
    pub after: f64,
    /// `after` for people.
    pub value: String,
    /// How many times better it is; below 1 it is worse.
    pub gain: f64,
    /// The same with the first seed alone, with which all were run.
    pub gain_once: f64,
    /// The 95 % interval of the gain; none if one seed was run.
    pub interval: Option<[f64; 2]>,
    /// Whether it is a change at all; none if one seed was run.
    pub verdict: Option<Verdict>,
    /// Seeds that were run.
    pub seeds: usize,
    /// What it does to other jobs.
    pub prices: Vec<Price>,
    /// Bounds that it breaks.
    pub breaks: Vec<String>,
    /// What one would write where.
    pub paste: Vec<Paste>,
}

impl Tried {
    /// Whether another one does as much with some of its steps.
    pub fn adds_nothing_to(&self, other: &Tried) -> bool {
        let is_part = other.steps.iter().all(|step| self.steps.contains(step));
        let is_less = other.steps.len() < self.steps.len();
        // With as many seeds the means count, else the seed that both have.
        let [own, others] = if self.seeds == other.seeds {
            [self.gain, other.gain]
        } else {
            [self.gain_once, other.gain_once]
        };
        is_less && is_part && own < others * ADDS
    }
}

/// A step that adds less adds nothing.
const ADDS: f64 = 1.02;

/// What a change does to a figure of another job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// The figure: `bandwidth of backup`.
    pub figure: String,
    /// Its value without the change, for people.
    pub before: String,
    /// With it.
    pub after: String,
    /// How many times better it is; below 1 it is worse; none if the job has none any more.
    pub gain: Option<f64>,
}

/// What came of leaving out each part of the best combination.
#[derive(Clone, Debug, Serialize)]
pub struct Pruned {
    /// What went, the least useful first.
    pub left_out: Vec<LeftOut>,
    /// Parts that could not be run with all seeds.
    pub not_run: usize,
    /// Runs that it took.
    pub runs: usize,
}

/// A part of the best combination that added nothing.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// In words.
    pub what: String,
    /// The goal's value with it, for people: the mean over the seeds.
    pub with: String,
    /// The same without it.
    pub without: String,
}

/// The answer on another target.
#[derive(Clone, Debug, Serialize)]
pub struct Confirmed {
    /// The target.
    pub target: String,
    /// The goal's value there without the change, for people; or why there is none.
    pub before: Result<String, String>,
    /// The same with the change.
    pub after: Result<String, String>,
    /// How many times better it is there, if both ran.
    pub gain: Option<f64>,
}

/// The best of all combinations.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Things of different kinds that were set at once, at most.
    pub together: usize,
    /// Combinations that ran.
    pub combinations: usize,
    /// Those that could not.
    pub refused: usize,
    /// Runs that they took, with those of other seeds.
    pub runs: usize,
    /// What is best of those that keep to the bounds; none: to change nothing.
    pub what: Option<String>,
    /// The goal's value with it, in the metric's unit: the mean over the seeds.
    pub value: f64,
    /// The same for people.
    pub text: String,
    /// The goal's value with the answer.
    pub answer: f64,
    /// The same for people.
    pub answer_text: String,
    /// How many times better the best of the grid is than the answer; below 1 it is worse.
    pub ahead: f64,
}
