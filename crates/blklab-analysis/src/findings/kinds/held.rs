// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many requests or tags are in use when one is asked for: those between G and C.

use crate::findings::disk::{Disk, Request};
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;

/// Waits from Q to G that are shorter are what a lock costs.
const SHORT_NS: u64 = 20_000;

/// Times of G and C of some requests, each in order.
#[derive(Default)]
struct Uses {
    gets: Vec<Time>,
    ends: Vec<Time>,
}

impl Uses {
    fn add(&mut self, r: &Request) {
        self.gets.extend(r.life.get);
        if r.life.get.is_some() {
            self.ends.extend(r.life.complete);
        }
    }

    fn sort(&mut self) {
        self.gets.sort_unstable();
        self.ends.sort_unstable();
    }

    fn at(&self, time: Time) -> u64 {
        let gets = self.gets.partition_point(|t| *t < time);
        let ends = self.ends.partition_point(|t| *t <= time);
        gets.saturating_sub(ends) as u64
    }
}

/// A wait from Q to G, and what is in use when it begins.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) get_ns: u64,
    /// All requests in use, the writes among them, and those of the same process.
    pub(super) all: u64,
    pub(super) writes: u64,
    pub(super) own: u64,
}

/// From the first Q of each process to its last, ns.
pub(super) fn spans(disk: &Disk) -> BTreeMap<Pid, u64> {
    let mut spans: BTreeMap<Pid, [Time; 2]> = BTreeMap::new();
    for r in &disk.requests {
        if let Some(queue) = r.queue {
            let span = spans.entry(r.pid).or_insert([queue, queue]);
            *span = [span[0].min(queue), span[1].max(queue)];
        }
    }
    let lengths = spans.into_iter();
    lengths
        .map(|(pid, [from, to])| (pid, to.since(from).0))
        .collect()
}

/// All waits from Q to G of requests that somebody waits for, but not for a flush.
pub(super) fn asked(disk: &Disk) -> Vec<Asked<'_>> {
    let waiting = disk.requests.iter().filter_map(|r| {
        let (queue, get) = (r.queue?, r.life.get?);
        let get_ns = get.0.checked_sub(queue.0)?;
        let is_asked = r.is_sync && !r.is_flush() && get_ns >= SHORT_NS;
        (is_asked && disk.flushes_before_get(queue, get).is_none()).then_some((r, get_ns))
    });
    let waiting: Vec<(&Request, u64)> = waiting.collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let (mut all, mut writes) = (Uses::default(), Uses::default());
    let mut own: BTreeMap<Pid, Uses> = BTreeMap::new();
    for r in disk.requests.iter().filter(|r| !r.is_flush()) {
        all.add(r);
        own.entry(r.pid).or_default().add(r);
        if r.is_write() {
            writes.add(r);
        }
    }
    own.values_mut()
        .chain([&mut all, &mut writes])
        .for_each(Uses::sort);
    let asked = waiting.into_iter().map(|(request, get_ns)| {
        let at = request.queue.unwrap_or_default();
        Asked {
            request,
            get_ns,
            all: all.at(at),
            writes: writes.at(at),
            own: own.get(&request.pid).map_or(0, |uses| uses.at(at)),
        }
    });
    asked.collect()
}
