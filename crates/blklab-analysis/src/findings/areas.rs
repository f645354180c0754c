// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each part of a request's way has of all waiting, and the longest there: what cannot be
//! the cause is ruled out by that.

use super::disk::{Disk, Request};
use super::section::Section;
use super::sums::add;
use super::waits::Wait;
use blklab_trace::Action;

/// A part of the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    /// From Q to G.
    Tag,
    /// From G to I.
    Plug,
    /// From I to D.
    Scheduler,
    /// From D to C.
    Device,
    /// While the device empties its cache.
    Flush,
}

impl Area {
    pub(super) const ALL: [Area; 5] = [
        Area::Tag,
        Area::Plug,
        Area::Scheduler,
        Area::Device,
        Area::Flush,
    ];

    /// In words.
    pub(super) fn what(self) -> &'static str {
        match self {
            Area::Tag => "requests and tags (Q-G)",
            Area::Plug => "the plug (G-I)",
            Area::Scheduler => "the scheduler (I-D)",
            Area::Device => "the device (D-C)",
            Area::Flush => "flushes",
        }
    }

    /// How much of a request's time is there, if the trace shows it.
    fn wait_ns(self, disk: &Disk, r: &Request, w: &Wait) -> Option<u64> {
        let life = &r.life;
        match self {
            Area::Tag => {
                let _ = (r.queue?, life.get?);
                Some(w.get_ns)
            }
            Area::Plug => {
                let _ = (life.get?, life.insert.or(life.issue)?);
                Some(w.plug_ns)
            }
            Area::Scheduler => {
                let _ = (life.insert.or(life.get)?, life.issue?);
                Some(w.idle_ns.saturating_add(w.ahead_ns))
            }
            Area::Device => {
                r.d2c()?;
                Some(w.alone_ns.saturating_add(w.behind_ns))
            }
            // A flush of the device is a command, which D shows.
            Area::Flush => disk.has(Action::Issue).then_some(w.flush_ns),
        }
    }
}

/// One part of the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Requests of which the trace shows it.
    pub(super) shown: u64,
    pub(super) total_ns: u64,
    pub(super) worst_ns: u64,
    /// The events of that, by their numbers from 1.
    pub(super) events: Vec<u64>,
}

/// All parts, of the requests of a device that somebody waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Areas {
    parts: [Part; Area::ALL.len()],
    /// Requests whose whole way is shown.
    pub(super) nr_whole: u64,
}

impl Areas {
    pub(super) fn part(&self, area: Area) -> &Part {
        &self.parts[area as usize]
    }

    pub(super) fn add(&mut self, section: &Section, disk: &Disk) {
        for (r, w) in disk.waited_for() {
            if r.whole().is_none() || r.is_flush() {
                continue;
            }
            for area in Area::ALL {
                let Some(ns) = area.wait_ns(disk, r, w) else {
                    continue;
                };
                let part = &mut self.parts[area as usize];
                part.shown += 1;
                add(&mut part.total_ns, ns);
                if ns > part.worst_ns {
                    part.worst_ns = ns;
                    part.events = section.of_request(r).iter().map(|e| e.number).collect();
                }
            }
            let is_begun = r.queue.is_some() && r.life.get.or(r.life.insert).is_some();
            self.nr_whole += u64::from(is_begun && r.life.issue.is_some());
        }
    }
}
