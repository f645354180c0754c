// SPDX-License-Identifier: MIT OR Apache-2.0
//! What detectors may ask about the trace so far: numbers of events, names of
//! processes.

use super::Party;
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Pid, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, VecDeque};

/// Events remembered: a finding further back has less evidence to show.
const EVENTS_MAX: usize = 1 << 18;

/// The trace so far, as far as evidence needs it.
#[derive(Debug, Default)]
pub struct Seen {
    nr_events: u64,
    /// Of bios and requests, in order of time.
    events: VecDeque<Place>,
    comms: BTreeMap<Pid, String>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    time: Time,
    dev: Dev,
    action: Action,
    sector: u64,
    sectors: u64,
}

impl Seen {
    /// Takes in an event; returns its number.
    pub(super) fn event(&mut self, event: &Event) -> u64 {
        let number = self.nr_events;
        self.nr_events += 1;
        let wanted = matches!(
            event.action,
            Action::Queue | Action::Insert | Action::Issue | Action::Complete
        );
        // Detectors find events by time; what runs backwards cannot be found.
        let last = self.events.back().map_or(Time::ZERO, |e| e.time);
        if wanted && event.time >= last {
            if self.events.len() == EVENTS_MAX {
                self.events.pop_front();
            }
            self.events.push_back(Place {
                number,
                time: event.time,
                dev: event.dev,
                action: event.action,
                sector: event.sector,
                sectors: u64::from(event.bytes) / SECTOR_BYTES,
            });
        }
        number
    }

    /// Times begin anew: what came before is not found by time.
    pub(super) fn new_recording(&mut self) {
        self.events.clear();
    }

    pub(super) fn process(&mut self, pid: Pid, comm: &str) {
        self.comms.insert(pid, comm.to_owned());
    }

    /// The number of the event of this kind that happened on a device at a time
    /// and has something of the sectors from `begin` to before `end`; none if
    /// there is none among the latest 2^18 events of bios and requests.
    pub fn number(
        &self,
        action: Action,
        dev: Dev,
        time: Time,
        [begin, end]: [u64; 2],
    ) -> Option<u64> {
        let first = self.events.partition_point(|e| e.time < time);
        let then = self.events.range(first..).take_while(|e| e.time == time);
        let mut fitting = then.filter(|e| {
            e.action == action && e.dev == dev && e.sector < end && begin < e.sector + e.sectors
        });
        fitting.next().map(|e| e.number)
    }

    /// Processes by the number of their bios, most first.
    pub fn parties(&self, pids: impl IntoIterator<Item = Pid>) -> Vec<Party> {
        let mut bios: BTreeMap<Pid, u64> = BTreeMap::new();
        for pid in pids {
            *bios.entry(pid).or_default() += 1;
        }
        let party = |(pid, bios)| Party {
            pid,
            comm: self.comms.get(&pid).cloned(),
            bios,
        };
        let mut parties: Vec<Party> = bios.into_iter().map(party).collect();
        parties.sort_by_key(|p| std::cmp::Reverse(p.bios));
        parties
    }
}
