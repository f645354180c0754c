// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios told apart by who, what, how large or when.

use super::By;
use crate::lifecycle::BioLife;
use crate::seeks::Seeks;
use crate::stats::{Amount, Directions, PROCESSES_MAX, Phases, TraceStats};
use crate::tally::Tally;
use blklab_trace::{Event, Rwbs};
use blklab_types::{Dev, Op, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// Windows of time; when a trace has more, they become twice as long.
const WINDOWS_MAX: usize = 4096;

/// Devices of a class between whose bios distances are taken; bios of further ones are
/// in no distance.
const DEVICES_MAX: usize = 64;

/// The key of all processes beyond the limit.
const OTHERS: u64 = u64::MAX;

/// A table of classes.
#[derive(Clone, Debug, Serialize)]
pub struct ClassTable {
    /// What tells them apart: process, direction, size, window.
    pub by: &'static str,
    /// Length of a window in ns: the one asked for, or twice as often as that is too
    /// short for the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// The classes that have a bio.
    pub rows: Vec<ClassRow>,
}

/// A class of bios.
#[derive(Clone, Debug, Serialize)]
pub struct ClassRow {
    /// Its name.
    pub name: String,
    /// Its process, direction, largest length in bytes, or the begin of the window in ns.
    pub key: u64,
    /// Bios queued.
    pub queued: Amount,
    /// Bios completed, by direction.
    pub completed: Directions,
    /// Where their time went; without Q2Q.
    pub phases: Phases,
    /// Bios that completed with an error.
    pub nr_errors: u64,
    /// Bios merged into a request.
    pub nr_merges: u64,
    /// Bios that ended for each request they needed: how much merging did.
    pub merge_ratio: f64,
    /// Distances between those that follow each other on a device, in order of Q.
    pub seeks: Seeks,
}

/// What is counted of a class.
#[derive(Debug, Default)]
struct Class {
    queued: Amount,
    nr_bios: u64,
    tally: Tally,
    seeks: BTreeMap<Dev, Seeks>,
}

impl Class {
    fn merge(&mut self, other: &Class) {
        self.queued.merge(&other.queued);
        self.nr_bios += other.nr_bios;
        self.tally.merge(&other.tally);
        for (dev, seeks) in &other.seeks {
            self.seeks.entry(*dev).or_default().merge(seeks);
        }
    }
}

/// The classes of one table.
#[derive(Debug)]
pub(super) struct Classes {
    by: By,
    classes: BTreeMap<u64, Box<Class>>,
    start: Option<Time>,
    /// Added to times: recordings follow each other.
    offset_ns: u64,
    last_ns: u64,
}

/// Directions, in the order in which they are shown.
const DIRECTIONS: [&str; 5] = ["read", "sync write", "write", "discard", "flush, other"];

fn direction(rwbs: Rwbs, bytes: u32) -> u64 {
    match rwbs.op() {
        _ if bytes == 0 => 4,
        Some(Op::Read) => 0,
        Some(Op::Write) if rwbs.has(Rwbs::SYNC) => 1,
        Some(Op::Write) => 2,
        Some(Op::Discard) => 3,
        Some(Op::Flush) | None => 4,
    }
}

impl Classes {
    pub(super) fn new(by: By) -> Classes {
        Classes {
            by,
            classes: BTreeMap::new(),
            start: None,
            offset_ns: 0,
            last_ns: 0,
        }
    }

    /// The class of a bio.
    fn class_of(&mut self, pid: u32, rwbs: Rwbs, bytes: u32, queue: Time) -> &mut Class {
        let key = match self.by {
            By::Process => {
                let pid = u64::from(pid);
                if self.classes.len() >= PROCESSES_MAX && !self.classes.contains_key(&pid) {
                    OTHERS
                } else {
                    pid
                }
            }
            By::Direction => direction(rwbs, bytes),
            By::Size if bytes == 0 => 0,
            By::Size => u64::from(bytes).next_power_of_two(),
            By::Window(_) => self.window(queue),
        };
        self.classes.entry(key).or_default()
    }

    /// The window of a time; there is room for it.
    fn window(&mut self, queue: Time) -> u64 {
        let start = *self.start.get_or_insert(queue);
        let ns = queue.since(start).ns().saturating_add(self.offset_ns);
        self.last_ns = self.last_ns.max(ns);
        loop {
            let By::Window(window_ns) = &mut self.by else {
                panic!("only windows are asked for their place");
            };
            let key = ns / *window_ns;
            if self.classes.len() < WINDOWS_MAX || self.classes.contains_key(&key) {
                return key;
            }
            *window_ns = window_ns.saturating_mul(2);
            for (key, class) in std::mem::take(&mut self.classes) {
                match self.classes.get_mut(&(key / 2)) {
                    Some(known) => known.merge(&class),
                    None => {
                        self.classes.insert(key / 2, class);
                    }
                }
            }
        }
    }

    pub(super) fn queued(&mut self, e: &Event) {
        let class = self.class_of(e.pid, e.rwbs, e.bytes, e.time);
        class.queued.add(e.bytes);
        let may_follow = class.seeks.len() < DEVICES_MAX || class.seeks.contains_key(&e.dev);
        if e.bytes > 0 && may_follow {
            let seeks = class.seeks.entry(e.dev).or_default();
            seeks.add(e.sector, e.sector.saturating_add(e.nr_sectors()));
        }
    }

    pub(super) fn bio(&mut self, bio: &BioLife) {
        let class = self.class_of(bio.pid, bio.rwbs, bio.bytes, bio.queue);
        class.nr_bios += u64::from(bio.complete.is_some());
        class.tally.bio(bio);
    }

    pub(super) fn new_recording(&mut self) {
        self.start = None;
        self.offset_ns = self.last_ns;
    }

    pub(super) fn finish(self, stats: &TraceStats) -> ClassTable {
        let by = self.by;
        let rows = self.classes.into_iter().map(|(key, class)| {
            let (name, key) = named(by, key, stats);
            let merges = class.tally.nr_back_merges + class.tally.nr_front_merges;
            let requests = class.nr_bios.saturating_sub(merges).max(1);
            let mut seeks = Seeks::default();
            class.seeks.values().for_each(|of_one| seeks.merge(of_one));
            ClassRow {
                name,
                key,
                queued: class.queued,
                completed: class.tally.completed,
                phases: class.tally.phases,
                nr_errors: class.tally.nr_errors,
                nr_merges: merges,
                merge_ratio: class.nr_bios as f64 / requests as f64,
                seeks,
            }
        });
        ClassTable {
            by: match by {
                By::Process => "process",
                By::Direction => "direction",
                By::Size => "size",
                By::Window(_) => "window",
            },
            window_ns: match by {
                By::Window(ns) => Some(ns),
                _ => None,
            },
            rows: rows.collect(),
        }
    }
}

/// The name of a class, and its key as it is shown.
fn named(by: By, key: u64, stats: &TraceStats) -> (String, u64) {
    let name = match by {
        By::Process if key == OTHERS => "all others".to_owned(),
        By::Process => {
            let known = stats.processes.binary_search_by_key(&key, |p| p.pid.into());
            match known
                .ok()
                .and_then(|at| stats.processes[at].comm.as_deref())
            {
                Some(comm) => format!("{comm} ({key})"),
                None => format!("({key})"),
            }
        }
        By::Direction => DIRECTIONS[key as usize].to_owned(),
        By::Size if key == 0 => "none".to_owned(),
        By::Size if key >= 1 << 20 => format!("to {} MiB", key >> 20),
        By::Size if key >= 1 << 10 => format!("to {} KiB", key >> 10),
        By::Size => format!("to {key} B"),
        By::Window(window_ns) => {
            let from_ns = key.saturating_mul(window_ns);
            return (format!("{:.3} s", from_ns as f64 / 1e9), from_ns);
        }
    };
    (name, key)
}
