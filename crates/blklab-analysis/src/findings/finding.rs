// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a finding says.

use super::remedy::Remedy;
use super::stacks::short;
use crate::names::who;
use blklab_trace::Event;
use blklab_types::{Dev, Pid, Time};
use serde::{Serialize, Serializer};
use std::fmt;

/// One thing that went wrong, with all its instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The name of its [`Kind`](super::Kind).
    pub kind: &'static str,
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// What happened, in a sentence.
    pub what: String,
    /// How it came about, in a sentence or two; empty if that says itself.
    pub how: String,
    /// Whose I/O suffered, most delay first.
    pub victims: Vec<Party>,
    /// Whose I/O caused it, most first; empty if no process did.
    pub causes: Vec<Party>,
    /// Whose I/O it concerns besides: threads through which those who suffer wait.
    #[serde(skip)]
    pub through: Vec<Pid>,
    /// The cause in words, where it is no other process's I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How often.
    pub count: u64,
    /// What is counted: requests, commands.
    pub of: &'static str,
    /// Delay of all instances, as far as the trace shows it.
    #[serde(rename = "total_ns", skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<u64>,
    /// Requests overlap: their delays together are more than the time in which they were.
    #[serde(rename = "requests_overlap")]
    pub do_overlap: bool,
    /// The longest.
    #[serde(rename = "worst_ns", skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<u64>,
    /// Commands that the device got more than it needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_commands: Option<u64>,
    /// How much it weighs against others.
    pub weight: Weight,
    /// The first instance.
    pub first: Option<Instance>,
    /// The worst, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<Instance>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What is missing to be sure.
    pub missing: Vec<String>,
    /// What to change.
    pub remedies: Vec<Remedy>,
    /// What else there is to say: a name and a number with its unit.
    pub figures: Vec<(&'static str, f64, &'static str)>,
    /// Kinds of findings that were seen too, and that this one explains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explains: Vec<&'static str>,
}

impl Finding {
    /// Who suffered, in words.
    pub fn victim_names(&self) -> String {
        listed(self.victims.iter().map(Party::to_string))
    }

    /// What a verb ends with whose subject they are.
    pub fn verb_end(&self) -> &'static str {
        if self.victims.len() == 1 { "s" } else { "" }
    }

    /// Who caused it, in words.
    pub fn cause_names(&self) -> String {
        if self.causes.is_empty() {
            return "processes that the trace does not show".to_owned();
        }
        listed(self.causes.iter().map(Party::to_string))
    }

    /// One that says nothing yet.
    pub fn new(kind: &'static str, dev: Dev, what: impl Into<String>) -> Finding {
        Finding {
            kind,
            dev,
            what: what.into(),
            how: String::new(),
            victims: Vec::new(),
            causes: Vec::new(),
            through: Vec::new(),
            cause: None,
            count: 0,
            of: "requests",
            total_ns: None,
            do_overlap: false,
            worst_ns: None,
            extra_commands: None,
            weight: Weight::Harm,
            first: None,
            worst: None,
            confidence: Confidence::Certain,
            missing: Vec::new(),
            remedies: Vec::new(),
            figures: Vec::new(),
            explains: Vec::new(),
        }
    }

    /// How much it is: delay, instances, commands.
    pub fn amounts(&self) -> String {
        let mut amounts = Vec::new();
        if let Some(total) = self.total_ns {
            let overlap = if self.do_overlap {
                " (requests overlap)"
            } else {
                ""
            };
            amounts.push(format!("{} in all{overlap}", time_text(total)));
        }
        if let Some(worst) = self.worst_ns.filter(|_| self.count > 1) {
            amounts.push(format!("{} the worst", time_text(worst)));
        }
        if self.count > 0 {
            amounts.push(counted(self.count, self.of));
        }
        if let Some(n) = self.extra_commands {
            amounts.push(counted(n, "commands too many"));
        }
        amounts.join(", ")
    }

    /// Sees to it that it is no surer than this, and says why.
    pub fn doubt(&mut self, at_most: Confidence, why: impl Into<String>) {
        self.confidence = self.confidence.min(at_most);
        self.missing.push(why.into());
    }
}

/// A process and its part in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The process.
    pub pid: Pid,
    /// Its name, if the trace gives one.
    pub comm: Option<String>,
    /// Its requests that are concerned.
    pub requests: u64,
    /// Their delay in ns; 0 for causes.
    pub delay_ns: u64,
    /// Whose data it writes back, if that is known: they are to blame for what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_for: Option<String>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = who(self.pid, self.comm.as_deref());
        match &self.writes_for {
            Some(writers) => write!(f, "{writers} (written back by {who})"),
            None => f.write_str(&who),
        }
    }
}

/// Processes that are shown on one side of a finding.
const PARTIES_MAX: usize = 4;

/// Those on one side of a finding, each with its part in it.
pub fn parties(all: &[Party]) -> String {
    let shown = all.iter().take(PARTIES_MAX).map(|p| match p.delay_ns {
        0 => p.to_string(),
        ns => format!(
            "{p}: {} of {}",
            time_text(ns),
            counted(p.requests, "requests")
        ),
    });
    let mut shown: Vec<String> = shown.collect();
    if all.len() > PARTIES_MAX {
        shown.push(format!("{} more", all.len() - PARTIES_MAX));
    }
    shown.join("; ")
}

/// A number of things that are named in the plural: `1 bio cut`.
pub fn counted(n: u64, things: &str) -> String {
    let (noun, rest) = things.split_once(' ').unwrap_or((things, ""));
    let end = if ["shes", "sses"].iter().any(|e| noun.ends_with(e)) {
        "es"
    } else {
        "s"
    };
    let noun = match noun.strip_suffix(end).filter(|_| n == 1) {
        Some(one) => one,
        None => noun,
    };
    format!("{n} {noun} {rest}").trim_end().to_owned()
}

/// Things in a row, as a sentence has them: at most three.
pub(super) fn listed(things: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = things.collect();
    if shown.len() > 3 {
        let more = shown.len() - 3;
        shown.truncate(3);
        shown.push(format!("{more} more"));
    }
    match shown.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "no process".to_owned(),
    }
}

/// How a finding weighs: those of one weight are in order of their delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Data may be lost, or the numbers of the trace are not what they seem.
    Fault,
    /// Somebody waits longer, or the device does more, than needed.
    Harm,
    /// Write-back is slower, for which nobody waits directly.
    Background,
    /// A process's own choice, which it pays for itself: latency for throughput.
    OwnChoice,
    /// Worth knowing, and no fault.
    Note,
}

/// When it happened once, how long it took, what the trace shows of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Instance {
    /// When it began.
    #[serde(rename = "time_ns", serialize_with = "ns")]
    pub time: Time,
    /// How long it took, if the trace shows it.
    pub delay_ns: Option<u64>,
    /// The events that show it, in the trace's order.
    pub evidence: Vec<Evidence>,
}

impl Instance {
    /// How a task came to submit what it shows, in short, if the recorder has kept that.
    pub fn way_in(&self) -> Option<String> {
        way_in(&self.evidence)
    }
}

/// How a task came to submit what the first of these events shows that tells it, in short.
pub fn way_in(evidence: &[Evidence]) -> Option<String> {
    let stack = evidence.iter().find_map(|e| e.stack.as_deref())?;
    Some(short(stack))
}

/// An event that shows something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// The event.
    #[serde(rename = "line", serialize_with = "line")]
    pub event: Event,
    /// What it says, if it is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The functions of the kernel through which its task came there, the innermost first, if it
    /// is a Q of which the recorder has kept that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Evidence {
    /// A message of the kernel, with its number in the trace from 0, as detectors are told it.
    pub fn message(number: u64, event: &Event, text: &str) -> Evidence {
        Evidence {
            number: number + 1,
            event: *event,
            text: Some(text.to_owned()),
            stack: None,
        }
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The trace allows another explanation, which it cannot rule out.
    Possible,
    /// Other explanations need something unusual.
    Likely,
    /// The events say so.
    Certain,
}

impl Confidence {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Confidence::Possible => "possible",
            Confidence::Likely => "likely",
            Confidence::Certain => "certain",
        }
    }
}

/// A time in the largest unit that leaves a figure before the point.
pub fn time_text(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        ns if ns >= 10e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 10e6 => format!("{:.1} ms", ns / 1e6),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns if ns >= 10e3 => format!("{:.1} us", ns / 1e3),
        ns if ns >= 1e3 => format!("{:.2} us", ns / 1e3),
        ns => format!("{ns} ns"),
    }
}

// serde calls these with references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn ns<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}

fn line<S: Serializer>(event: &Event, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_in_the_plural() {
        let said = [
            (1, "bios cut"),
            (2, "bios cut"),
            (1, "flushes"),
            (1, "processes"),
        ];
        let said = said.map(|(n, things)| counted(n, things));
        assert_eq!(said, ["1 bio cut", "2 bios cut", "1 flush", "1 process"]);
        assert_eq!(counted(1, "I/Os"), "1 I/O");
    }

    #[test]
    fn times_have_their_unit() {
        let shown = [7, 1_500, 35_000, 2_720_000, 71_000_000, 1_180_000_000].map(time_text);
        assert_eq!(
            shown,
            ["7 ns", "1.50 us", "35.0 us", "2.72 ms", "71.0 ms", "1.18 s"]
        );
    }
}
