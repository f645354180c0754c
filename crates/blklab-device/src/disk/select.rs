// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of the commands queued in the drive is next (NCQ, tagged queueing).
//!
//! Positioning time is that of [`super::mechanism`]; costs are nanoseconds. Of
//! equals the one that came first is taken.

use super::geometry::Place;
use super::mechanism::{Mechanism, Moment};
use blklab_types::Time;

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The oldest.
    Fcfs,
    /// The shortest positioning time.
    Sptf,
    /// The shortest positioning time less its age times a weight in 1/1024.
    SptfAged(u32),
    /// The shortest positioning time among the so many oldest.
    SptfWindow(u32),
    /// The next address upwards, then again from the lowest.
    Scan,
}

/// Policy with its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    pub(crate) policy: Policy,
    /// A command older than this goes first; 0 for never.
    pub(crate) age_limit_ns: u64,
    /// Cost of reads in 1/1024 of what it is.
    pub(crate) read_bias: u32,
}

/// A command in the queue of the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// Its place in the table of commands.
    pub(crate) slot: u32,
    pub(crate) write: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) since: Time,
    pub(crate) place: Place,
}

/// What the choice is made from.
pub(crate) struct Situation<'a> {
    pub(crate) mech: &'a Mechanism,
    pub(crate) moment: Moment,
    pub(crate) now: Time,
    /// Sectors that have been read by the way: they cost nothing.
    pub(crate) passed: (u64, u64),
    /// The sector after the last one served.
    pub(crate) position: u64,
}

impl Selection {
    /// The place in `queue` (oldest first) of the next command, and its cost.
    pub(crate) fn choose(&self, queue: &[Queued], at: &Situation<'_>) -> Option<(usize, u64)> {
        let oldest = queue.first()?;
        if self.is_overdue(oldest, at.now) {
            return Some((0, 0));
        }
        let window = match self.policy {
            Policy::Fcfs => 1,
            Policy::SptfWindow(n) => queue.len().min(n as usize),
            _ => queue.len(),
        };
        let queue = &queue[..window];
        match self.policy {
            Policy::Scan => {
                let behind = |q: &Queued| (q.start < at.position, q.start);
                let next = (0..queue.len()).min_by_key(|&i| behind(&queue[i]))?;
                Some((next, self.cost_ns(&queue[next], at)))
            }
            Policy::SptfAged(weight) => {
                let aged = |q: &Queued| {
                    let age_ns = at.now.since(q.since).ns();
                    let credit_ns = age_ns.saturating_mul(u64::from(weight)) >> 10;
                    self.cost_ns(q, at) as i64 - credit_ns as i64
                };
                let next = (0..queue.len()).min_by_key(|&i| aged(&queue[i]))?;
                Some((next, self.cost_ns(&queue[next], at)))
            }
            _ => {
                let cost = |(i, q)| (i, self.cost_ns(q, at));
                queue.iter().enumerate().map(cost).min_by_key(|&(_, ns)| ns)
            }
        }
    }

    /// Whether a command has waited longer than the age limit.
    pub(crate) fn is_overdue(&self, queued: &Queued, now: Time) -> bool {
        self.age_limit_ns > 0 && now.since(queued.since).ns() > self.age_limit_ns
    }

    fn cost_ns(&self, q: &Queued, at: &Situation<'_>) -> u64 {
        if !q.write && at.passed.0 <= q.start && q.end <= at.passed.1 {
            return 0;
        }
        let ns = u64::from(at.mech.positioning_ns(at.moment, &q.place, q.write));
        if q.write {
            ns
        } else {
            (ns * u64::from(self.read_bias)) >> 10
        }
    }
}
