// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of changes.

use crate::figures::Figures;
use blklab_target::JobResult;
use blklab_types::{Dev, Pid};
use serde::Serialize;
use std::sync::Arc;

/// A change of less than this factor is none.
const SAME: f64 = 1.2;

/// Bios of a process whose figures mean something.
pub(crate) const COUNT_MIN: u64 = 8;

/// What would have been.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// The device of the trace.
    #[serde(serialize_with = "blklab_analysis::stats::dev_text")]
    pub dev: Dev,
    /// The kernel that is modelled.
    pub kernel: String,
    /// Its scheduler before any change.
    pub scheduler: String,
    /// The device that is modelled.
    pub device: Device,
    /// What was assumed because nobody said it, in sentences.
    pub assumed: Vec<String>,
    /// Whether the closed loop is nearer to the recording, which alone says what becomes
    /// of throughput.
    pub is_closed: bool,
    /// How far the closed loop without a change is from the recording: the factor by which
    /// means and rates of those who count differ most.
    pub closed_loop_off: f64,
    /// The same of the open loop.
    pub open_loop_off: f64,
    /// Whether the nearer of both is near enough to say something about changes.
    pub is_trusted: bool,
    /// Whether the experiment of the trace ran again, so that nothing is inferred: both
    /// loops are then the experiment's own.
    pub is_rerun: bool,
    /// What was tried.
    pub trials: Vec<Trial>,
}

/// The device that is modelled.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Device {
    /// What it does, in words.
    pub words: String,
    /// The share of the time of commands that its law does not explain; none if it is no
    /// fitted law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<f64>,
}

/// Something that was changed, and what came of it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The kind of finding whose remedy it is; none if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<&'static str>,
    /// The id of that remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
    /// Pids of those who suffer from what was found.
    pub suffer: Vec<Pid>,
    /// What to change, in words.
    pub what: String,
    /// What that was in the model, where the words leave it open.
    pub changes: Vec<String>,
    /// What fio's jobs came to with it, where the experiment itself ran again.
    #[serde(skip)]
    pub jobs: Arc<Vec<JobResult>>,
    /// What makes it mean less than it says, in clauses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it was not tried, in a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_tried: Option<String>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The same by requests alone, from Q to C, where the verdict is about calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Verdict>,
    /// Whether the verdict is about the closed loop.
    pub is_closed: bool,
    /// What processes get if they submit when what they wait for has ended.
    pub closed_loop: Vec<Row>,
    /// What they get if they submit at the recorded times.
    pub open_loop: Vec<Row>,
}

/// What a process got and would get.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// In the recording; none where the experiment itself ran again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Figures>,
    /// In the model, without the change.
    pub before: Figures,
    /// In the model, with it.
    pub after: Figures,
}

impl Row {
    /// What it got when nothing was changed: in the recording, if there is one.
    pub fn seen(&self) -> &Figures {
        self.recorded.as_ref().unwrap_or(&self.before)
    }

    /// By how much its bios are slower: below 1 they are faster.
    pub fn latency(&self) -> f64 {
        self.after.mean_ns.max(1) as f64 / self.before.mean_ns.max(1) as f64
    }

    /// By how much it gets more.
    pub fn throughput(&self) -> f64 {
        match (self.before.mib_per_s, self.after.mib_per_s) {
            (before, after) if before > 0.0 => after / before,
            _ => self.after.per_s / self.before.per_s.max(f64::MIN_POSITIVE),
        }
    }

    /// How much better it is off, by [`gain`].
    pub fn gain(&self) -> f64 {
        gain(1.0 / self.latency(), self.throughput())
    }
}

/// How much better somebody is off who is so many times faster and does so many times more:
/// what is gained in latency or throughput, if not as much of the other is lost; below 1 it is
/// worse.
pub fn gain(faster: f64, more: f64) -> f64 {
    match (faster, more) {
        (f, m) if f.max(m) >= SAME && f.min(m) >= 1.0 / SAME => f.max(m),
        // Latency for throughput, or the other way round.
        (f, m) if f.max(m) >= SAME => f * m,
        (f, m) => f.min(m),
    }
}

/// Whether a change helps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What it is judged by, `sync p99.9 of wal`; none: requests, from Q to C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// It helps those who suffer.
    pub helps: bool,
    /// It does them harm.
    pub harms: bool,
    /// Processes that pay for it.
    pub pay: Vec<String>,
}

impl Verdict {
    /// Of the rows of those who suffer, and of the others.
    pub(crate) fn of<'a>(
        victims: impl Iterator<Item = &'a Row>,
        others: impl Iterator<Item = &'a Row>,
    ) -> Verdict {
        let gains: Vec<f64> = victims.map(Row::gain).collect();
        let others = others.map(|r| (r.seen().who(), r.gain()));
        Verdict::by(None, &gains, others)
    }

    /// Of what those who suffer gain, and what each of the others does.
    pub fn by(
        by: Option<String>,
        gains: &[f64],
        others: impl Iterator<Item = (String, f64)>,
    ) -> Verdict {
        let best = gains.iter().copied().fold(0.0, f64::max);
        let worst = gains.iter().copied().fold(f64::MAX, f64::min);
        let pays = others.filter(|(_, gain)| *gain < 1.0 / SAME);
        Verdict {
            by,
            helps: best >= SAME,
            harms: best < SAME && worst < 1.0 / SAME,
            pay: pays.map(|(who, _)| who).collect(),
        }
    }
}

impl Trial {
    /// Nothing has come of it yet.
    pub(crate) fn new(what: String) -> Trial {
        Trial {
            finding: None,
            remedy: None,
            suffer: Vec::new(),
            what,
            changes: Vec::new(),
            jobs: Arc::default(),
            warnings: Vec::new(),
            not_tried: None,
            verdict: None,
            requests: None,
            is_closed: true,
            closed_loop: Vec::new(),
            open_loop: Vec::new(),
        }
    }

    /// Says whether it helps those who suffer; without any, anybody.
    pub(crate) fn judge(&mut self) {
        if self.not_tried.is_some() {
            return;
        }
        let (victims, rows) = (&self.suffer, self.rows());
        let count = |r: &&Row| r.seen().count >= COUNT_MIN || rows.len() == 1;
        let is_victim = |r: &&Row| victims.contains(&r.seen().pid);
        let may_gain = |r: &&Row| victims.is_empty() || is_victim(r);
        self.verdict = Some(Verdict::of(
            rows.iter().filter(may_gain),
            rows.iter().filter(|r| !is_victim(r)).filter(count),
        ));
    }

    /// The rows that count.
    pub fn rows(&self) -> &[Row] {
        if self.is_closed {
            &self.closed_loop
        } else {
            &self.open_loop
        }
    }

    /// Those of the other loop.
    pub fn other_rows(&self) -> &[Row] {
        if self.is_closed {
            &self.open_loop
        } else {
            &self.closed_loop
        }
    }
}
