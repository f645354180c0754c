// SPDX-License-Identifier: MIT OR Apache-2.0
//! What went wrong in a trace, and who is to blame.
//!
//! A [`Detector`] watches events and lives of bios and requests pass by, and says
//! in the end what it found: who suffered, who caused it, how much it cost, which
//! events show it. [`ALL`] lists the detectors; a new one is a module here and a
//! row there.
//!
//! ```
//! use blklab_analysis::findings::Search;
//! use blklab_trace::{Action, Event, Rwbs, TraceSink};
//! use blklab_types::{Dev, Time};
//!
//! // A write waits for half a second before it goes to the disk.
//! let mut search = Search::all();
//! for (ms, action) in [(0, Action::Queue), (0, Action::GetRequest), (0, Action::Insert),
//!     (500, Action::Issue), (510, Action::Complete)]
//! {
//!     search.event(&Event {
//!         time: Time(ms * 1_000_000), sector: 2048, arg: 0, bytes: 4096, pid: 7,
//!         dev: Dev { major: 8, minor: 0 }, from_dev: Dev::default(), error: 0, cpu: 0,
//!         rwbs: Rwbs::WRITE, action,
//!     });
//! }
//! let found = search.finish();
//! assert_eq!(found[0].kind, "stall");
//! assert_eq!(found[0].victims[0].pid, 7);
//! assert_eq!(found[0].cost.to_string(), "500.0 ms of waiting");
//! // By its Q and its D.
//! assert_eq!(found[0].evidence, [0, 3]);
//! ```

pub mod missed_merge;
mod seen;
pub mod stall;

pub use seen::Seen;

use crate::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_trace::{Event, TraceSink};
use blklab_types::{Dev, Pid, Time};
use serde::{Serialize, Serializer};
use std::fmt;

/// All kinds of findings.
pub static ALL: &[Kind] = &[missed_merge::KIND, stall::KIND];

/// A kind of finding.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// By which it is asked for: `missed-merge`.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// A detector that has seen nothing yet.
    pub detector: fn() -> Box<dyn Detector>,
}

/// Looks for findings of one kind in a trace.
///
/// Lives are given when they end, as to a [`LifeSink`]; the event that ends them has
/// been given before.
pub trait Detector: fmt::Debug {
    /// An event, with its number in the trace from 0.
    fn event(&mut self, number: u64, event: &Event) {
        let _ = (number, event);
    }

    /// A bio has ended.
    fn bio(&mut self, bio: &BioLife, seen: &Seen) {
        let _ = (bio, seen);
    }

    /// A request has ended; its bios were given just before.
    fn request(&mut self, request: &RequestLife, seen: &Seen) {
        let _ = (request, seen);
    }

    /// The trace has ended: what was found, in order of time.
    fn finish(&mut self, seen: &Seen) -> Vec<Finding>;
}

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The name of its [`Kind`].
    pub kind: &'static str,
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// When it began.
    #[serde(rename = "time_ns", serialize_with = "ns")]
    pub time: Time,
    /// Whose I/O suffered, most bios first.
    pub victims: Vec<Party>,
    /// Whose I/O caused it, most bios first; empty if no process did.
    pub causes: Vec<Party>,
    /// How much.
    pub cost: Cost,
    /// Numbers of the events that show it, ascending, from 0 at the beginning of
    /// the trace.
    pub evidence: Vec<u64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What else there is to say: a name and a number with its unit.
    pub figures: Vec<(&'static str, u64, &'static str)>,
}

/// A process and its part in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The process.
    pub pid: Pid,
    /// Its name, if the trace gives one.
    pub comm: Option<String>,
    /// Its bios that are concerned.
    pub bios: u64,
}

/// How much a finding cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Time of waiting, in ns.
    WaitedNs(u64),
    /// Commands that the device got more than it needed.
    Commands(u64),
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cost::WaitedNs(ns) => write!(f, "{:.1} ms of waiting", *ns as f64 / 1e6),
            Cost::Commands(1) => f.write_str("1 command more than needed"),
            Cost::Commands(n) => write!(f, "{n} commands more than needed"),
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

// serde calls this with a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn ns<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}

/// Looks for several kinds of findings at once.
#[derive(Debug)]
pub struct Search {
    lives: Lifecycles<Watchers>,
}

impl Search {
    /// For all kinds.
    pub fn all() -> Search {
        Search::of(ALL)
    }

    /// For these kinds.
    pub fn of(kinds: &[Kind]) -> Search {
        Search {
            lives: Lifecycles::new(Watchers {
                detectors: kinds.iter().map(|k| (k.detector)()).collect(),
                seen: Seen::default(),
            }),
        }
    }

    /// What was found, in order of time.
    pub fn finish(self) -> Vec<Finding> {
        let (mut watchers, _) = self.lives.finish();
        let mut all = Vec::new();
        for detector in &mut watchers.detectors {
            all.extend(detector.finish(&watchers.seen));
        }
        all.sort_by_key(|f| f.time);
        all
    }
}

impl TraceSink for Search {
    fn event(&mut self, event: &Event) {
        let watchers = self.lives.sink();
        let number = watchers.seen.event(event);
        for detector in &mut watchers.detectors {
            detector.event(number, event);
        }
        self.lives.event(event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.lives.sink().seen.process(pid, comm);
        self.lives.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.lives.new_recording();
        self.lives.sink().seen.new_recording();
    }
}

/// Detectors behind one tracker of lives.
#[derive(Debug)]
struct Watchers {
    detectors: Vec<Box<dyn Detector>>,
    seen: Seen,
}

impl LifeSink for Watchers {
    fn bio(&mut self, bio: &BioLife) {
        for detector in &mut self.detectors {
            detector.bio(bio, &self.seen);
        }
    }

    fn request(&mut self, request: &RequestLife) {
        for detector in &mut self.detectors {
            detector.request(request, &self.seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_and_start_empty() {
        for (i, kind) in ALL.iter().enumerate() {
            assert!(!kind.what.is_empty() && !kind.what.ends_with('.'));
            let same = |k: &Kind| k.name == kind.name;
            assert_eq!(ALL.iter().position(same), Some(i), "{}", kind.name);
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(kind.name.chars().all(plain), "{}", kind.name);
            assert_eq!((kind.detector)().finish(&Seen::default()), []);
        }
    }
}
