// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many requests of a queue are in use at a time.

use crate::findings::Context;
use crate::findings::disk::{Disk, Request};
use blklab_types::Time;

/// Requests of a device that have been got, and those that have been given back.
#[derive(Debug)]
pub struct InUse {
    got: Vec<Time>,
    given_back: Vec<Time>,
    /// The most at a time.
    most: usize,
}

impl InUse {
    /// Those of a device in a section.
    pub fn new(disk: &Disk) -> InUse {
        let begin = |r: &Request| r.life.get.or(r.life.insert).or(r.life.issue);
        let mut got: Vec<Time> = disk.requests.iter().filter_map(begin).collect();
        let ends = disk.requests.iter().filter(|r| begin(r).is_some());
        let mut given_back: Vec<Time> = ends.filter_map(|r| r.life.complete).collect();
        got.sort_unstable();
        given_back.sort_unstable();
        let mut in_use = InUse {
            got,
            given_back,
            most: 0,
        };
        let behind = in_use
            .got
            .iter()
            .map(|t| in_use.before(Time(t.0.saturating_add(1))));
        in_use.most = behind.max().unwrap_or(0);
        in_use
    }

    /// Requests in use right before a time.
    fn before(&self, time: Time) -> usize {
        let got = self.got.partition_point(|t| *t < time);
        got.saturating_sub(self.given_back.partition_point(|t| *t < time))
    }

    /// Whether a request waits for something else than a free one: fewer than half of those that
    /// there are, as the context says, were in use when it came and when it went on. Where the
    /// context does not say it, there are as many at least as were in use at some time, and less
    /// than three quarters of these were when it came.
    pub fn are_free(&self, r: &Request, context: &Context) -> bool {
        let (Some(queue), Some(get)) = (r.queue, r.life.get) else {
            return false;
        };
        let in_use = |time| (self.before(time) as u64).saturating_add(1);
        match context.queue("nr_requests") {
            Some(nr) => in_use(queue).max(in_use(get)) < nr / 2,
            None => in_use(queue).saturating_mul(4) < (self.most as u64).saturating_mul(3),
        }
    }
}
