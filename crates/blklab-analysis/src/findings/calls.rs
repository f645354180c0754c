// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes waited for outside of the block layer, added up by process: calls, pauses,
//! room in the journal, a CPU.

use super::section::Section;
use super::spells::{Spell, What};
use super::sums::add;
use super::verdict::record_command;
use super::{Context, Detector, Finding, Whole};
use blklab_types::Pid;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Processes that are followed; of more, the first.
const PROCESSES_MAX: usize = 1 << 16;

/// A thing that a process waits for outside of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// In fsync or fdatasync: its I/O is in it.
    Fsync,
    /// Paused in balance_dirty_pages.
    DirtyPause,
    /// For room in the journal or log.
    LogFull,
    /// For a buffer that the journal writes.
    BufferStall,
    /// For the log of XFS to be written: its I/O is in it.
    LogForce,
    /// Awake, for a CPU.
    Cpu,
}

impl Outside {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Outside::Fsync => "in fsync",
            Outside::DirtyPause => "paused in balance_dirty_pages, since too much is dirty",
            Outside::LogFull => "waiting for room in the journal",
            Outside::BufferStall => "waiting for a buffer that the journal had",
            Outside::LogForce => "waiting for the log to be written",
            Outside::Cpu => "awake and waiting for a CPU",
        }
    }

    /// Whether the process's own I/O may be part of it.
    pub fn holds_io(self) -> bool {
        matches!(self, Outside::Fsync | Outside::LogForce)
    }
}

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallSum {
    /// How often.
    pub nr: u64,
    /// In all, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub worst_ns: u64,
}

impl CallSum {
    fn add(&mut self, ns: u64) {
        self.nr += 1;
        add(&mut self.total_ns, ns);
        self.worst_ns = self.worst_ns.max(ns);
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: CallSum) -> CallSum {
        CallSum {
            nr: self.nr + other.nr,
            total_ns: self.total_ns.saturating_add(other.total_ns),
            worst_ns: self.worst_ns.max(other.worst_ns),
        }
    }
}

/// What each process waited for.
pub type CallSums = BTreeMap<Pid, BTreeMap<Outside, CallSum>>;

/// Adds up while a [`Search`](super::Search) goes through a trace.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    sums: Rc<RefCell<CallSums>>,
    record: Rc<RefCell<String>>,
}

impl Calls {
    /// What was added up.
    pub fn take(&self) -> CallSums {
        self.sums.take()
    }

    /// The command that records all of it.
    pub fn record(&self) -> String {
        self.record.borrow().clone()
    }
}

fn outside(spell: &Spell) -> Option<(Outside, u64)> {
    let whole = |what| Some((what, spell.ns()));
    match &spell.what {
        What::Fsync { .. } => whole(Outside::Fsync),
        What::DirtyPause { .. } => whole(Outside::DirtyPause),
        What::LogFull => whole(Outside::LogFull),
        What::BufferStall => whole(Outside::BufferStall),
        What::LogForce(_) => whole(Outside::LogForce),
        // It sleeps until it is woken, and may sleep for its I/O.
        What::OffCpu(o) => Some((Outside::Cpu, spell.to.since(o.woken).0)),
        _ => None,
    }
}

impl Detector for Calls {
    fn section(&mut self, section: &Section, _: &Context) {
        let mut sums = self.sums.borrow_mut();
        for spell in &section.spells {
            let Some((what, ns)) = outside(spell) else {
                continue;
            };
            if sums.len() < PROCESSES_MAX || sums.contains_key(&spell.pid) {
                let own = sums.entry(spell.pid).or_default();
                own.entry(what).or_default().add(ns);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        self.record.replace(record_command(whole, None));
        Vec::new()
    }
}
