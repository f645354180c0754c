// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done to the events of a run that cannot go wrong by itself: faults of drivers
//! and devices that no model has.

use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Pid, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A change of the events of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// The last completion of a process does not come.
    LoseLast(&'static str),
    /// A completion of a process has an error (EIO), so many of a thousand.
    Fail(&'static str, u64),
    /// Each time that the device has ended so many commands and has none, nothing happens
    /// for so many ns before the next D: nobody runs the queue.
    Stall { every: u64, ns: u64 },
    /// Each so manieth command that comes to an idle device is given back (R), goes there
    /// again so many ns later, and everything else that much later, too.
    Requeue { every: u64, ns: u64 },
    /// Each so many ns the device ends nothing for so many ns: what would have ended then ends
    /// at the end of that, and everything else comes that much later.
    Freeze { every_ns: u64, ns: u64 },
    /// A process discards, one command after the other: so many, of so many sectors, so
    /// many sectors from one's beginning to the next's.
    Trim { count: u64, sectors: u64, step: u64 },
}

/// Who discards.
const TRIMMER: (Pid, &str) = (4242, "fstrim");

/// What the device takes for a discard, and the pause of whoever sends them, ns.
const TRIM_NS: [u64; 2] = [20_000, 5_000];

impl Change {
    /// Changes events; who comes to them gets a name.
    pub(super) fn apply(self, events: &mut Vec<Event>, names: &mut BTreeMap<Pid, String>) {
        let is_of = |e: &Event, name: &str| names.get(&e.pid).is_some_and(|comm| comm == name);
        match self {
            Change::LoseLast(name) => {
                let mut issued = events
                    .iter()
                    .filter(|e| e.action == Action::Issue && is_of(e, name));
                let Some(last) = issued.next_back().copied() else {
                    return;
                };
                events.retain(|e| {
                    e.action != Action::Complete || e.sector != last.sector || e.time < last.time
                });
            }
            Change::Fail(name, of_thousand) => {
                let issued = events
                    .iter()
                    .filter(|e| e.action == Action::Issue && is_of(e, name));
                let issued: BTreeSet<u64> = issued.map(|e| e.sector).collect();
                let ends = events
                    .iter_mut()
                    .filter(|e| e.action == Action::Complete && issued.contains(&e.sector));
                for (nr, end) in ends.enumerate() {
                    if (nr as u64 * of_thousand) % 1000 < of_thousand {
                        end.error = 5;
                    }
                }
            }
            Change::Stall { every, ns } => pause(events, every, ns, |_, _| {}),
            Change::Requeue { every, ns } => pause(events, every, ns, |issue, out| {
                let back = Event {
                    action: Action::Requeue,
                    time: Time(issue.time.0 + 1_000),
                    ..*issue
                };
                out.extend([*issue, back]);
            }),
            Change::Freeze { every_ns, ns } => freeze(events, every_ns, ns),
            Change::Trim {
                count,
                sectors,
                step,
            } => {
                trim(events, count, [sectors, step]);
                names.insert(TRIMMER.0, TRIMMER.1.to_owned());
            }
        }
    }
}

/// Puts a pause before each so manieth D that comes to an idle device; `before` adds what
/// happens at its beginning.
fn pause(events: &mut Vec<Event>, every: u64, ns: u64, before: impl Fn(&Event, &mut Vec<Event>)) {
    let (mut at_device, mut seen, mut later) = (0_i64, 0, 0);
    let mut out = Vec::with_capacity(events.len());
    for e in events.drain(..) {
        let mut e = Event {
            time: Time(e.time.0 + later),
            ..e
        };
        match e.action {
            Action::Issue => {
                if at_device == 0 && e.bytes > 0 {
                    seen += 1;
                    if seen % every == 0 {
                        before(&e, &mut out);
                        later += ns;
                        e.time.0 += ns;
                    }
                }
                at_device += 1;
            }
            Action::Complete => at_device -= 1,
            _ => {}
        }
        out.push(e);
    }
    *events = out;
}

/// Lets the first completion after each so many ns come so many ns later, and with it
/// everything behind it.
fn freeze(events: &mut [Event], every_ns: u64, ns: u64) {
    let (mut later, mut next) = (0, every_ns);
    for e in events {
        if e.action == Action::Complete && e.time.0 >= next {
            later += ns;
            next = e.time.0 + every_ns;
        }
        e.time.0 += later;
    }
}

/// Adds discards from the first event on.
fn trim(events: &mut Vec<Event>, count: u64, [sectors, step]: [u64; 2]) {
    let Some(first) = events.iter().find(|e| e.action == Action::Queue).copied() else {
        return;
    };
    let [takes, pause] = TRIM_NS;
    for k in 0..count {
        let begin = first.time.0 + k * (takes + pause);
        for (action, ns) in [
            (Action::Queue, 0),
            (Action::GetRequest, 300),
            (Action::Issue, 900),
            (Action::Complete, takes),
        ] {
            events.push(Event {
                time: Time(begin + ns),
                sector: (1 << 24) + k * step,
                bytes: (sectors * SECTOR_BYTES) as u32,
                pid: if action == Action::Complete {
                    0
                } else {
                    TRIMMER.0
                },
                rwbs: Rwbs::DISCARD,
                action,
                ..first
            });
        }
    }
    events.sort_by_key(|e| e.time);
}
