// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, matrices and traces as one page: who waited for the disk, how long, why, what
//! would help, and pictures that go down to single requests.
//!
//! ```text
//! run directory ─► RunDir ──┐             ┌► findings, as `blklab why` has them
//!                           ├─ events ────┼► who waited how long for what
//! trace ─► TraceFile ───────┘             ├► single requests, a fair sample of many
//!                                         └► devices over time
//!                                                  │
//!                                   Report ────────┴─► HTML · JSON · SVG
//! ```
//!
//! A page is one file that needs nothing else: its data, script and style are in it.
//! Words, tables and the first picture are there without the script, too. Nothing of a
//! trace is looked at twice and memory is bound: intervals double when there are too
//! many, and of the requests a sample is kept that has every maximum.
//!
//! ```no_run
//! use blklab::run_directory::RunDir;
//! use blklab_report::member::{self, Asked};
//! use blklab_report::{Report, html};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let catalogue = blklab::targets::catalogue();
//! let run = RunDir::open("results".as_ref(), &catalogue)?;
//! let asked = Asked {
//!     label: "cfq",
//!     source: "results",
//!     context: blklab::why::context_of(&run.experiment, &catalogue)?,
//!     shown_max: blklab_report::SHOWN_MAX,
//! };
//! let member = member::of_run(&run, &mut run.events()?, asked, blklab::trace::NullSink)?;
//! std::fs::write("report.html", html::page(&Report::new(vec![member]))?)?;
//! # Ok(())
//! # }
//! ```

pub mod charts;
mod collect;
mod groups;
pub mod html;
mod jobs;
pub mod member;
pub mod model;
mod picture;
#[cfg(feature = "png")]
mod png;
mod provenance;
mod ranking;
pub mod reproduced;
mod sample;
mod scheduler;
mod svg;
mod words;

pub use model::Report;
#[cfg(feature = "png")]
pub use png::png;

use blklab::verdict::Verdict;
use model::{FORMAT, Member, PHASES, REASONS};
use std::collections::BTreeMap;

/// Requests that a page shows one by one, of all its members together: a page stays
/// below 5 MB.
pub const SHOWN_MAX: usize = 60_000;

/// Runs and traces of a page.
pub const MEMBERS_MAX: usize = 64;

/// Requests of one of so many members that are shown one by one.
pub fn shown_max(nr_members: usize) -> usize {
    (SHOWN_MAX / nr_members.max(1)).max(1000)
}

impl Report {
    /// A page about these, in this order.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(members: Vec<Member>) -> Report {
        Report::judged(members, None)
    }

    /// The same with what a matrix of runs comes to.
    ///
    /// # Panics
    /// If there is none.
    pub fn judged(mut members: Vec<Member>, verdict: Option<Verdict>) -> Report {
        assert!(!members.is_empty(), "a report is about something");
        colour(&mut members);
        Report {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            title: title(&members),
            phases: PHASES,
            reasons: REASONS,
            verdict,
            members,
        }
    }

    /// The page's data.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }
}

/// Gives each group of processes the same colour in all members: those that have most
/// requests get one of their own.
fn colour(members: &mut [Member]) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for group in members.iter().flat_map(|m| &m.groups) {
        *sums.entry(&group.name).or_default() += group.waited.requests + group.background.requests;
    }
    let mut order: Vec<(&str, u64)> = sums.into_iter().collect();
    order.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
    let places: BTreeMap<String, usize> = order
        .iter()
        .enumerate()
        .map(|(i, (name, _))| ((*name).to_owned(), i))
        .collect();
    for group in members.iter_mut().flat_map(|m| &mut m.groups) {
        group.colour = places[&group.name].min(groups::GROUPS_MAX);
    }
}

/// Characters of the labels in a title.
const TITLE_MAX: usize = 90;

fn title(members: &[Member]) -> String {
    let first = &members[0];
    let about = |m: &Member| m.title.clone();
    if members.len() == 1 {
        return match first.label.as_str() {
            "" => about(first),
            label if about(first).contains(label) => about(first),
            label => format!("{}: {label}", about(first)),
        };
    }
    let labels: Vec<&str> = members.iter().map(|m| m.label.as_str()).collect();
    // All of them or their number: some of them would tell nothing.
    let listed = labels.join(", ");
    let labels = if listed.chars().count() > TITLE_MAX {
        format!("{} compared", labels.len())
    } else {
        listed
    };
    if members.iter().all(|m| m.title == first.title) {
        format!("{}: {labels}", first.title)
    } else {
        labels
    }
}
