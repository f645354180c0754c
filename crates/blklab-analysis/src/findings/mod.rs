// SPDX-License-Identifier: MIT OR Apache-2.0
//! What went wrong in a trace: who waited, for what, why, and what to change.
//!
//! ```text
//! events ─► Lifecycles ─► Gatherer ─► Section ─► detectors ─► judge ─► Report
//!                                        └─ Disk ─ Wait         ▲
//!                                 Context, Reading ─────────────┘
//! ```
//!
//! A trace is cut into sections. Of each, the life of every request is divided into
//! the things that it waited for ([`waits`]), each nanosecond in one place. Detectors
//! look at sections, one kind of finding each, and add instances up; what is known
//! beside the trace (a [`Context`]) decides what its events leave open. In the end
//! findings that another one explains are left out (`judge`), and the worst comes
//! first. [`ALL`] lists the kinds; a new one is a module in `kinds` and a row there.
//!
//! ```
//! use blklab_analysis::findings::{Context, Reading, Search};
//! use blklab_trace::{Action, Event, Rwbs, TraceSink};
//! use blklab_types::{Dev, Time};
//!
//! // A read waits for half a second before it goes to a disk that does nothing.
//! let mut search = Search::all(Context::default());
//! for (ms, sector, action) in [
//!     (0, 8, Action::Issue), (1, 8, Action::Complete),
//!     (2, 2048, Action::Queue), (2, 2048, Action::GetRequest), (2, 2048, Action::Insert),
//!     (502, 2048, Action::Issue), (503, 2048, Action::Complete)]
//! {
//!     search.event(&Event {
//!         time: Time(ms * 1_000_000), sector, arg: 0, bytes: 4096, pid: 7,
//!         dev: Dev { major: 8, minor: 0 }, from_dev: Dev::default(), error: 0, cpu: 0,
//!         rwbs: Rwbs::READ, action,
//!     });
//! }
//! let report = search.finish(Reading::default());
//! let found = &report.findings[0];
//! assert_eq!((found.kind, found.total_ns), ("held-back", Some(500_000_000)));
//! assert_eq!(found.victims[0].pid, 7);
//! // The C before, and its Q, I, D and C.
//! let shown = &found.first.as_ref().expect("there is one").evidence;
//! assert_eq!(shown.iter().map(|e| e.number).collect::<Vec<_>>(), [2, 3, 5, 6, 7]);
//! ```

mod areas;
pub mod calls;
pub mod context;
mod contiguous;
pub mod disk;
mod divide;
pub mod finding;
pub mod harm;
pub mod instant;
mod judge;
pub mod kinds;
pub mod remedy;
pub mod request;
pub mod section;
pub mod slow;
pub mod spans;
pub mod spells;
pub mod stacks;
mod sums;
mod tasks;
mod threads;
mod unflushed;
pub mod verdict;
mod volumes;
pub mod waits;
mod who_waits;
pub mod whole;

pub use context::{Context, ContextError};
pub use finding::{
    Confidence, Evidence, Finding, Instance, Party, Weight, counted, parties, time_text, way_in,
};
pub use kinds::ALL;
pub use remedy::{Act, Outside, Remedy, Serving};
pub use verdict::{Answer, Verdict};
pub use who_waits::Behaviour;
pub use whole::{Account, DiskSum, Reading, Whole};

use crate::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use crate::names::Names;
use blklab_trace::{Action, Event, KernelEvent, TraceSink};
use blklab_types::{Dev, Pid, Time};
use section::{Gatherer, Section};
use serde::Serialize;
use slow::{Lives, Which};
use std::fmt;
use volumes::Volumes;
use whole::Sums;

/// A kind of finding.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// By which it is asked for: `missed-merge`.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// When it is found.
    pub rule: Rule,
    /// Kinds that are but its symptoms, where the same processes are concerned.
    pub explains: &'static [&'static str],
    /// What its findings may say is to be changed.
    pub remedies: &'static [Remedy],
    /// Whether it rests on what the trace does not show, so that lost events make it
    /// doubtful.
    pub rests_on_absence: bool,
    /// A detector that has seen nothing yet.
    pub detector: fn() -> Box<dyn Detector>,
}

/// When a finding is found: clauses without a full stop.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What happens.
    pub condition: &'static str,
    /// How long, how often, how much; empty if once is enough.
    pub threshold: &'static str,
    /// When it is not found all the same; empty if there is no such case.
    pub exception: &'static str,
}

impl Rule {
    /// Its parts with their names, those that there are.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parts = [
            ("condition", self.condition),
            ("threshold", self.threshold),
            ("exception", self.exception),
        ];
        parts.into_iter().filter(|(_, text)| !text.is_empty())
    }
}

/// Looks for findings of one kind in a trace.
pub trait Detector: fmt::Debug {
    /// A message of the kernel, with its number in the trace from 0.
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        let _ = (number, event, text);
    }

    /// A process has this name from now on.
    fn process(&mut self, pid: Pid, comm: &str) {
        let _ = (pid, comm);
    }

    /// A section has ended.
    fn section(&mut self, section: &Section, context: &Context);

    /// The trace has ended: what was found.
    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding>;
}

/// What is to be said about a trace.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// The devices, with where the time went.
    pub devices: Vec<DiskReport>,
    /// Events in the trace.
    pub nr_events: u64,
    /// Captures that it was put together from.
    pub nr_captures: u64,
    /// What is answered: a cause, what is ruled out, what the trace does not show, or that
    /// nothing is wrong.
    pub verdict: Verdict,
    /// What its reader says.
    pub reading: Reading,
    /// The processes that waited longest for I/O, the first of them most.
    #[serde(skip)]
    pub waiters: Vec<Pid>,
    /// When the first event was.
    #[serde(skip)]
    pub start: Time,
    /// Names of processes.
    #[serde(skip)]
    pub names: Names,
}

/// A device in a report.
#[derive(Clone, Debug, Serialize)]
pub struct DiskReport {
    /// Which.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// What it did.
    #[serde(flatten)]
    pub sum: DiskSum,
    /// Where the time went, and what the trace does not show, in sentences.
    pub words: Vec<String>,
}

/// All remedies: of each kind of finding, and of the threads that may cause any.
pub fn remedies() -> impl Iterator<Item = (&'static str, &'static Remedy)> {
    let of_kinds = ALL
        .iter()
        .flat_map(|k| k.remedies.iter().map(|r| (k.name, r)));
    of_kinds.chain(threads::remedies().map(|r| ("threads", r)))
}

/// Whether the remedies of a finding are among those of its kind, with all filled in.
fn is_declared(f: &Finding) -> bool {
    let is_own = |id| remedies().any(|(of, r)| r.id == id && [f.kind, "threads"].contains(&of));
    let is_known = ALL.iter().any(|k| k.name == f.kind);
    let is_it = |r: &Remedy| r.is_complete() && (!is_known || is_own(r.id));
    f.remedies.iter().all(is_it)
}

/// Looks for findings in a trace.
#[derive(Debug)]
pub struct Search {
    lives: Lifecycles<Watchers>,
    unmatched: u64,
}

impl Search {
    /// For all kinds.
    pub fn all(context: Context) -> Search {
        Search::new(ALL, context)
    }

    /// For these kinds.
    pub fn new(kinds: &'static [Kind], context: Context) -> Search {
        Search::with(kinds.iter().map(|k| (k.detector)()).collect(), context)
    }

    /// With these detectors.
    pub fn with(detectors: Vec<Box<dyn Detector>>, context: Context) -> Search {
        let watchers = Watchers {
            detectors,
            gatherer: Gatherer::new(0),
            sums: Sums::default(),
            slowest: Lives::new(Which::Slowest(1)),
            volumes: Volumes::default(),
            are_flags_said: true,
            context,
        };
        Search {
            lives: Lifecycles::new(watchers),
            unmatched: 0,
        }
    }

    /// The same for a trace whose recorder shows no sync flag (biosnoop): who waits for writes
    /// is inferred.
    #[must_use]
    pub fn without_flags(mut self) -> Search {
        self.lives.sink().are_flags_said = false;
        self
    }

    /// The same with one more that looks at everything.
    #[must_use]
    pub fn and(mut self, detector: Box<dyn Detector>) -> Search {
        self.lives.sink().detectors.push(detector);
        self
    }

    /// What was found in the whole trace.
    pub fn finish(self, reading: Reading) -> Report {
        let (mut watchers, _) = self.lives.finish();
        watchers.end_section();
        let Watchers {
            mut detectors,
            sums,
            mut slowest,
            volumes,
            are_flags_said,
            context,
            ..
        } = watchers;
        let whole = Whole {
            context: &context,
            reading,
            are_flags_said,
            sums: &sums,
        };
        let all = detectors
            .iter_mut()
            .flat_map(|d| d.finish(&whole))
            .collect();
        let mut findings = judge::judge(all, &whole);
        for f in &mut findings {
            threads::introduce(f, &context);
            volumes.introduce(f);
        }
        debug_assert!(findings.iter().all(is_declared), "{findings:?}");
        let disk = |(dev, sum): (&Dev, &DiskSum)| DiskReport {
            dev: *dev,
            sum: sum.clone(),
            words: judge::words(sum, &context),
        };
        slowest.finish(&whole);
        let verdict = Verdict::new(&findings, slowest.take().pop(), &whole);
        Report {
            findings,
            verdict,
            devices: sums.disks.iter().map(disk).collect(),
            nr_events: sums.nr_events,
            nr_captures: sums.nr_captures + 1,
            reading,
            waiters: sums.waiters(),
            start: sums.start.unwrap_or_default(),
            names: sums.names,
        }
    }

    /// Ends the section, and with it all lives if another capture begins.
    #[cold]
    fn cut(&mut self, capture_ends: bool) {
        if capture_ends {
            self.lives.new_recording();
            self.lives.sink().sums.nr_captures += 1;
        }
        self.lives.sink().end_section();
    }
}

impl TraceSink for Search {
    fn event(&mut self, event: &Event) {
        let gatherer = &self.lives.sink().gatherer;
        if gatherer.begins_capture(event) {
            self.cut(true);
        } else if gatherer.is_full() {
            self.cut(false);
        }
        let watchers = self.lives.sink();
        watchers.sums.start.get_or_insert(event.time);
        watchers.gatherer.event(event);
        if event.action == Action::Remap {
            watchers.volumes.event(event);
        }
        self.lives.event(event);
        if event.action == Action::Complete {
            let unmatched = self.lives.unmatched().events(Action::Complete);
            if unmatched > self.unmatched && event.bytes > 0 {
                self.lives.sink().gatherer.unknown_completion(event);
            }
            self.unmatched = unmatched;
        }
    }

    fn message(&mut self, event: &Event, text: &str) {
        let watchers = self.lives.sink();
        watchers.sums.start.get_or_insert(event.time);
        watchers.gatherer.message(event, text);
        let number = watchers.gatherer.next();
        for detector in &mut watchers.detectors {
            detector.message(number, event, text);
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        if self.lives.sink().gatherer.is_full() {
            self.cut(false);
        }
        let watchers = self.lives.sink();
        watchers.sums.start.get_or_insert(event.time);
        watchers.gatherer.kernel_event(event);
    }

    fn stack(&mut self, _: Time, pid: Pid, functions: &str) {
        self.lives.sink().gatherer.stack(pid, functions);
    }

    fn new_recording(&mut self) {
        self.cut(true);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        let watchers = self.lives.sink();
        watchers.sums.names.set(pid, comm);
        for detector in &mut watchers.detectors {
            detector.process(pid, comm);
        }
        self.lives.process(time, pid, comm);
    }
}

/// What is behind the tracker of lives.
#[derive(Debug)]
struct Watchers {
    detectors: Vec<Box<dyn Detector>>,
    gatherer: Gatherer,
    sums: Sums,
    slowest: Lives,
    volumes: Volumes,
    /// Whether flags of writes say that somebody waits for them.
    are_flags_said: bool,
    context: Context,
}

impl Watchers {
    fn end_section(&mut self) {
        if self.gatherer.is_empty() {
            return;
        }
        let gatherer = std::mem::take(&mut self.gatherer);
        let (mut section, next) = gatherer.finish(&self.sums.names, self.are_flags_said);
        section.start = self.sums.start.unwrap_or_default();
        self.gatherer = next;
        self.sums.section(&section);
        self.slowest.section(&section, &self.context);
        for detector in &mut self.detectors {
            detector.section(&section, &self.context);
        }
        self.gatherer.reuse(section);
    }
}

impl LifeSink for Watchers {
    fn bio(&mut self, bio: &BioLife) {
        self.gatherer.bio(bio);
    }

    fn request(&mut self, request: &RequestLife) {
        self.gatherer.request(request);
    }
}
