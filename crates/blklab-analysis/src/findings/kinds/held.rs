// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many requests or tags are in use when one is asked for: those between G and C.

use crate::findings::disk::{Disk, Request};
use blklab_types::Time;

/// Waits from Q to G that are shorter are what a lock costs.
const SHORT_NS: u64 = 20_000;

/// Times of G and C of some requests, each in order.
struct Uses {
    gets: Vec<Time>,
    ends: Vec<Time>,
}

impl Uses {
    fn new<'a>(requests: impl Iterator<Item = &'a Request>) -> Uses {
        let (mut gets, mut ends) = (Vec::new(), Vec::new());
        for r in requests.filter(|r| !r.is_flush()) {
            let Some(get) = r.life.get else { continue };
            gets.push(get);
            ends.extend(r.life.complete);
        }
        gets.sort_unstable();
        ends.sort_unstable();
        Uses { gets, ends }
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
    /// All requests in use, and the writes among them.
    pub(super) all: u64,
    pub(super) writes: u64,
}

/// All waits from Q to G of requests that somebody waits for.
pub(super) fn asked(disk: &Disk) -> Vec<Asked<'_>> {
    let waiting = disk.requests.iter().filter_map(|r| {
        let get_ns = r.life.get?.0.checked_sub(r.queue?.0)?;
        (r.is_sync && !r.is_flush() && get_ns >= SHORT_NS).then_some((r, get_ns))
    });
    let waiting: Vec<(&Request, u64)> = waiting.collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let all = Uses::new(disk.requests.iter());
    let writes = Uses::new(disk.requests.iter().filter(|r| r.is_write()));
    let asked = waiting.into_iter().map(|(request, get_ns)| {
        let at = request.queue.unwrap_or_default();
        Asked {
            request,
            get_ns,
            all: all.at(at),
            writes: writes.at(at),
        }
    });
    asked.collect()
}
