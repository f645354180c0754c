// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a re-enactment.

use crate::agree::Agreement;
use crate::decisions::Decisions;
use crate::reason::Reason;
use blklab_analysis::names::who;
use blklab_types::{Dev, Pid};
use serde::Serialize;

/// What came of a re-enactment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReEnacted {
    /// The device.
    #[serde(serialize_with = "blklab_analysis::stats::dev_text")]
    pub dev: Dev,
    /// The kernel that was modelled.
    pub kernel: String,
    /// The scheduler that was modelled.
    pub scheduler: String,
    /// All that were tried, the one that fits best first; empty if it was known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// What was assumed because nobody said it, in sentences.
    pub assumed: Vec<String>,
    /// How far model and recording agree.
    pub agreement: Agreement,
    /// Whether that is enough to give reasons.
    pub is_good: bool,
    /// Requests that agree and whose reasons are given.
    pub nr_explained: u64,
    /// Who waited and for what, the longest total first; none without agreement.
    pub waiting: Vec<Waiting>,
    /// The requests that waited longest.
    pub worst: Vec<Explained>,
    /// Those that were asked for by the event of their D.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<Explained>,
    /// What waiting requests waited for, over time; nothing without agreement.
    #[serde(skip)]
    pub decisions: Decisions,
}

impl ReEnacted {
    /// The request that was asked for by the event of its D, if it agrees.
    pub fn of_event(&self, event: u64) -> Option<&Explained> {
        self.wanted.iter().find(|x| x.event == event)
    }
}

/// A scheduler that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Its name.
    pub scheduler: String,
    /// Share of the dispatches in the recorded order.
    pub order_share: f64,
    /// Share of the dispatches at the recorded times.
    pub time_share: f64,
}

/// A request and what it waited for until it went to the driver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// Number of its D in the trace, from 1.
    pub event: u64,
    /// When that was, from the beginning of the trace, ns.
    pub time_ns: u64,
    /// Whose it is.
    pub pid: Pid,
    /// Its name, if the trace has it.
    pub comm: Option<String>,
    /// Direction, with S where somebody waits for a write.
    pub rwbs: String,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// From the Q of its first bio to its D, ns.
    pub wait_ns: u64,
    /// What it waited for, in order.
    pub reasons: Vec<Reason>,
    /// What the scheduler did with its process's queue meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Explained {
    /// Whose it is, in words.
    pub fn who(&self) -> String {
        who(self.pid, self.comm.as_deref())
    }
}

/// A process and what its requests waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Which.
    pub pid: Pid,
    /// Its name, if the trace has it.
    pub comm: Option<String>,
    /// Whether somebody waits for these requests: reads and sync writes.
    pub is_sync: bool,
    /// Requests that waited.
    pub requests: u64,
    /// From Q to the device, all of them, ns.
    pub wait_ns: u64,
    /// The longest, ns.
    pub worst_ns: u64,
    /// For what, the longest first.
    pub reasons: Vec<Reason>,
}

impl Waiting {
    /// The process in words.
    pub fn who(&self) -> String {
        who(self.pid, self.comm.as_deref())
    }
}
