// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is answered: a cause, what is ruled out, what the trace does not show, or that nothing
//! is wrong. The four are never mixed: that nothing was found is no proof that nothing is wrong.
//!
//! Nothing is wrong only if the trace shows enough requests that somebody waits for, for long
//! enough, from beginning to end, and the slowest of them is explained.

mod missing;
mod ruled_out;
mod slowest;

pub use missing::{NotShown, Part};
pub(super) use missing::{of_behaviour, record_command, shows_no_owner};
pub use ruled_out::RuledOut;

use super::finding::{Confidence, Finding, Weight, counted, time_text};
use super::slow::Life;
use super::whole::{DiskSum, Whole};
use serde::Serialize;

/// So many requests that somebody waits for, so that a rare one would be among them.
const WAITED_MIN: u64 = 100;

/// For so long, so that what comes from time to time would have come.
const SPAN_MIN_NS: u64 = 1_000_000_000;

/// In so many of ten requests the whole way has to be shown.
const SHOWN_OF_TEN: u64 = 9;

/// A slowest request of less than this needs no explanation, and neither does one that takes no
/// more than so many times what they take on average.
const SLOW_NS: u64 = 10_000_000;
const SLOW_FACTOR: u64 = 20;

/// Which answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// There are findings, the first of them the worst.
    Cause,
    /// No cause is seen, and the trace shows too little to say that there is none.
    NotVisible,
    /// The trace shows enough, and all waiting in it is explained.
    NothingWrong,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Which answer it is.
    pub answer: Answer,
    /// How sure the first cause is, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// It in a sentence.
    pub sentence: String,
    /// Why it is not said that nothing is wrong; empty where it is said, or a cause is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// The slowest request, in a sentence; none if the trace shows none to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<String>,
    /// Its events, by their numbers from 1.
    pub slowest_events: Vec<u64>,
    /// What is not the cause, each with its figure.
    pub ruled_out: Vec<RuledOut>,
    /// What the trace does not show.
    pub not_visible: Vec<NotShown>,
    /// The command that would show it; none where nothing is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl Verdict {
    /// The answer to a trace in which these findings are, and this request is the slowest.
    pub(super) fn new(findings: &[Finding], life: Option<Life>, whole: &Whole<'_>) -> Verdict {
        let cause = findings.iter().find(|f| f.weight < Weight::Note);
        let mut because = match cause {
            Some(_) => Vec::new(),
            None => doubts(life.as_ref(), whole),
        };
        let answer = match cause {
            Some(_) => Answer::Cause,
            None if because.is_empty() => Answer::NothingWrong,
            None => Answer::NotVisible,
        };
        let shows_io = whole
            .sums
            .disks
            .values()
            .any(|d| d.nr_ended + d.bios.0 + d.flushes.0 > 0);
        let sentence = match (answer, cause) {
            (_, Some(f)) => format!("{} on {}: {}", f.kind, f.dev, f.confidence.word()),
            (Answer::NothingWrong, _) => "Nothing is wrong here.".to_owned(),
            _ if !shows_io => {
                because.clear();
                "Nothing can be said to be wrong: the trace shows no I/O from beginning to end."
                    .to_owned()
            }
            _ => format!(
                "No cause is visible in this trace, and it does not show that nothing is wrong: {}.",
                because.join("; ")
            ),
        };
        let mut not_visible = missing::missing(whole);
        if answer != Answer::NothingWrong {
            not_visible.extend(missing::rest(whole));
        }
        let record = match answer {
            Answer::NothingWrong => None,
            Answer::Cause if not_visible.is_empty() && shows_io => None,
            _ => Some(record_command(whole, cause.map(|f| f.dev))),
        };
        Verdict {
            answer,
            confidence: cause.map(|f| f.confidence),
            sentence,
            because,
            slowest: life.as_ref().map(|life| slowest::words(life, whole)),
            slowest_events: life
                .iter()
                .flat_map(|l| l.events.iter().map(|e| e.number))
                .collect(),
            ruled_out: ruled_out::ruled_out(life.as_ref(), whole),
            not_visible,
            record,
        }
    }
}

/// Why it cannot be said that nothing is wrong where nothing was found.
fn doubts(slowest: Option<&Life>, whole: &Whole<'_>) -> Vec<String> {
    let disks = || whole.sums.disks.values();
    let mut doubts = Vec::new();
    let waited: u64 = disks().map(|d| d.waited.requests).sum();
    let ended: u64 = disks().map(|d| d.nr_ended).sum();
    let bios: u64 = disks().map(|d| d.bios.0).sum();
    let span_ns = disks().map(|d| d.span_ns).max().unwrap_or(0);
    if ended == 0 && bios > 0 {
        doubts.push("it has how long bios took, and not what the devices below did".to_owned());
        return doubts;
    }
    if waited == 0 {
        doubts.push(match ended {
            0 => "it has no request with data from beginning to end".to_owned(),
            n => format!(
                "of its {} none is known to be waited for",
                counted(n, "requests")
            ),
        });
        return doubts;
    }
    if waited < WAITED_MIN {
        let few = counted(waited, "requests");
        doubts.push(format!("it has only {few} that somebody waits for"));
    } else if span_ns < SPAN_MIN_NS {
        doubts.push(format!("it is short ({})", time_text(span_ns)));
    }
    let nr_whole: u64 = disks().map(|d| d.areas.nr_whole).sum();
    if nr_whole * 10 < waited * SHOWN_OF_TEN {
        doubts.push("what requests wait for before the device is not shown".to_owned());
    }
    for part in disks().filter_map(|d| missing::may_hide(whole, d)) {
        doubts.push(part.to_owned());
    }
    if whole.reading.lost + whole.reading.elided > 0 {
        doubts.push("events are missing".to_owned());
    }
    if let Some(life) = slowest.filter(|life| is_unexplained(life, whole.disk(life.dev))) {
        let took = time_text(life.whole_ns.unwrap_or(0));
        doubts.push(format!("the slowest request ({took}) is not explained"));
    }
    doubts
}

/// Whether a request stands out by its time and nothing that the trace shows says why.
fn is_unexplained(life: &Life, sum: &DiskSum) -> bool {
    let took = life.whole_ns.unwrap_or(0);
    let mean = sum.waited.waited_ns / sum.waited.requests.max(1);
    took >= SLOW_NS && took > mean.saturating_mul(SLOW_FACTOR)
}
