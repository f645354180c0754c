// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write cache: room, and when dirty data goes to the medium.
//!
//! Dirty data is destaged when no command is queued for the mechanism, always
//! above the high watermark until below the low one, and when the oldest is
//! older than the age limit. Which goes first when both wait is the read
//! priority:
//!
//! - `strict`: the queued commands; watermarks and age change nothing, and a
//!   steady stream of reads can keep writes waiting for ever;
//! - `mixed`: the queued commands, but when destaging is due, one of them after
//!   every n destaged pieces;
//! - `greedy`: whatever has the shortest positioning time, but a command older
//!   than the age limit of the selection goes first.

use super::DirtySet;
use super::geometry::Place;
use super::mechanism::Mechanism;
use super::select::{Queued, Selection, Situation};
use blklab_types::Time;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadPriority {
    /// Commands.
    Strict,
    /// Commands, or one after so many pieces when destaging is due.
    Mixed(u32),
    /// The shortest positioning time.
    Greedy,
}

/// Size and habits of the write cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteCacheSpec {
    /// Most dirty sectors; 0 for no write cache.
    pub(crate) limit_sectors: u64,
    /// Most dirty ranges.
    pub(crate) max_ranges: u32,
    /// How many of the dirty ranges begun first the next one is chosen from.
    pub(crate) window: usize,
    /// Most sectors written to the medium in one piece.
    pub(crate) piece_sectors: u64,
    /// Destaging becomes due above so many sectors or ranges (per cent) …
    pub(crate) high_pct: u32,
    /// … and is due until there are fewer than this.
    pub(crate) low_pct: u32,
    /// Destaging is due when data is older; 0 for never.
    pub(crate) age_ns: u64,
    pub(crate) read_priority: ReadPriority,
    /// Reads of dirty data come from the cache.
    pub(crate) serves_reads: bool,
}

/// What the mechanism does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The command at this place of the queue.
    Command(usize),
    /// The dirty range of this number.
    Destage(usize),
}

/// Dirty data and what is on its way in and out.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    spec: WriteCacheSpec,
    dirty: DirtySet,
    /// Sectors and number of writes on the bus.
    incoming: (u64, u32),
    /// Sectors on their way to the medium, from and up to; nothing if equal.
    outgoing: (u64, u64),
    /// Above the high watermark, and not yet below the low one.
    draining: bool,
    /// Pieces destaged since the last command.
    in_a_row: u32,
}

impl WriteCache {
    pub(crate) fn new(spec: WriteCacheSpec) -> WriteCache {
        let ranges = if spec.limit_sectors == 0 {
            0
        } else {
            spec.max_ranges as usize + 1
        };
        WriteCache {
            spec,
            dirty: DirtySet::with_capacity(ranges),
            incoming: (0, 0),
            outgoing: (0, 0),
            draining: false,
            in_a_row: 0,
        }
    }

    pub(crate) fn dirty(&self) -> &DirtySet {
        &self.dirty
    }

    /// Whether a write of `n` sectors goes through the cache at all.
    pub(crate) fn takes(&self, n: u64) -> bool {
        n <= self.spec.limit_sectors
    }

    /// Whether a read finds all of `[start, end)` here.
    pub(crate) fn holds(&self, start: u64, end: u64) -> bool {
        let leaving = self.outgoing.0 <= start && end <= self.outgoing.1;
        self.spec.serves_reads && (leaving || self.dirty.contains(start, end))
    }

    /// Nothing is dirty, on its way in, or on its way out.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.incoming.1 == 0 && self.outgoing_sectors() == 0
    }

    fn outgoing_sectors(&self) -> u64 {
        self.outgoing.1 - self.outgoing.0
    }

    fn used_sectors(&self) -> u64 {
        self.dirty.sectors() + self.incoming.0 + self.outgoing_sectors()
    }

    fn used_ranges(&self) -> u64 {
        self.dirty.nr_ranges() as u64
            + u64::from(self.incoming.1)
            + u64::from(self.outgoing_sectors() > 0)
    }

    /// The largest piece that may be destaged next; 0 if there is none.
    pub(crate) fn largest_piece(&self) -> u64 {
        self.dirty.sectors().min(self.spec.piece_sectors)
    }

    /// Makes room for a write of `n` sectors, if there is.
    pub(crate) fn reserve(&mut self, n: u64) -> bool {
        let room = self.used_sectors() + n <= self.spec.limit_sectors
            && self.used_ranges() < u64::from(self.spec.max_ranges);
        if room {
            self.incoming.0 += n;
            self.incoming.1 += 1;
        }
        room
    }

    /// A write for which room was made has arrived.
    pub(crate) fn fill(&mut self, mech: &Mechanism, start: u64, end: u64, now: Time) {
        self.incoming.0 -= end - start;
        self.incoming.1 -= 1;
        self.dirty.insert(mech, start, end, now);
    }

    /// A write goes to the medium past the cache: older data is void.
    pub(crate) fn overwrite(&mut self, mech: &Mechanism, start: u64, end: u64) {
        self.dirty.remove(mech, start, end);
    }

    /// Takes a piece of dirty range `i` out to write it.
    pub(crate) fn take(&mut self, mech: &Mechanism, i: usize) -> (u64, u64, Place) {
        let piece = self.dirty.take(mech, i, self.spec.piece_sectors);
        self.outgoing = (piece.0, piece.1);
        piece
    }

    /// The piece is on the medium.
    pub(crate) fn destaged(&mut self) {
        self.outgoing = (0, 0);
    }

    /// Decides what the free mechanism does next.
    pub(crate) fn next(
        &mut self,
        queue: &[Queued],
        selection: &Selection,
        at: &Situation<'_>,
        flushing: bool,
    ) -> Option<Next> {
        let destage_due = self.destage_due(at.now) || flushing;
        let command = |(i, _)| Next::Command(i);
        let destage = |(i, _)| Next::Destage(i);
        let next = if self.dirty.is_empty() {
            selection.choose(queue, at).map(command)
        } else if queue.is_empty() {
            self.dirty
                .nearest_of(self.spec.window, at.mech, at.moment)
                .map(destage)
        } else {
            match self.spec.read_priority {
                ReadPriority::Mixed(n) if destage_due && self.in_a_row < n => self
                    .dirty
                    .nearest_of(self.spec.window, at.mech, at.moment)
                    .map(destage),
                ReadPriority::Strict | ReadPriority::Mixed(_) => {
                    selection.choose(queue, at).map(command)
                }
                ReadPriority::Greedy => {
                    let chosen = selection.choose(queue, at);
                    let nearest = self.dirty.nearest_of(self.spec.window, at.mech, at.moment);
                    match (chosen, nearest) {
                        (Some((_, cost)), Some(near)) if u64::from(near.1) < cost => {
                            Some(destage(near))
                        }
                        (chosen, _) => chosen.map(command),
                    }
                }
            }
        };
        self.in_a_row = match next {
            Some(Next::Destage(_)) => self.in_a_row.saturating_add(1),
            _ => 0,
        };
        next
    }

    fn destage_due(&mut self, now: Time) -> bool {
        let pct = if self.draining {
            self.spec.low_pct
        } else {
            self.spec.high_pct
        };
        let above = |used: u64, limit: u64| used * 100 > limit * u64::from(pct);
        self.draining = above(self.used_sectors(), self.spec.limit_sectors)
            || above(self.used_ranges(), u64::from(self.spec.max_ranges));
        let age_ns = now.since(self.dirty.oldest()).ns();
        self.draining || (self.spec.age_ns > 0 && age_ns > self.spec.age_ns)
    }
}
