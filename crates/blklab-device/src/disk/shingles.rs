// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shingled recording that the drive manages: media cache, bands, cleaning.
//!
//! Tracks of a band overlap, so a band is written from its begin to its end or not
//! at all. What is not a stream goes to the *media cache*, a log on the medium that
//! fills from its begin to its end and again. *Cleaning* takes the band whose data
//! have been there longest, reads it, and writes it with the new data; meanwhile
//! nothing else is served. It goes on while the drive is idle, and must be done
//! before a write for which the log or its map has no room:
//!
//! ```text
//! write ─► dirty ─► continues the piece before? ── yes ─► its band
//!                        │ no
//!                        ▼
//!                   media cache ── idle, or no room ─► read and write a band
//! ```
//!
//! Source: A. Aghayev and P. Desnoyers, "Skylight: A Window on Shingled Disk
//! Operation", FAST 2015: one log, static bands, the oldest band first. Left out: a
//! read of data in the log goes to where the data belong, and a stream is taken for
//! one that fills its bands.

use super::mechanism::Wanted;
use super::{Disk, Job, MECHANISM, Parts};
use crate::device::DeviceCx;
use blklab_types::{Span, Time};
use std::collections::VecDeque;

/// Sizes and habits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShingleSpec {
    /// The log begins behind the sectors that the host sees.
    pub(crate) capacity_sectors: u64,
    pub(crate) log_sectors: u64,
    /// Pieces that the map of the log has room for.
    pub(crate) map_pieces: u32,
    pub(crate) band_sectors: u64,
    /// What is written behind each piece in the log, for its map.
    pub(crate) entry_sectors: u64,
    /// How often a band passes the head until it is clean.
    pub(crate) passes: u32,
    /// Cleaning begins when the drive has had nothing to do for so long.
    pub(crate) idle_ns: u64,
}

/// The media cache and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Shingles {
    spec: ShingleSpec,
    /// Sectors and pieces in the log, and where it goes on.
    used_sectors: u64,
    used_pieces: u32,
    head: u64,
    /// Sectors and pieces in the log, by band.
    bands: Vec<(u32, u32)>,
    /// Bands with data in the log, by when the first came.
    order: VecDeque<u32>,
    /// The end of the piece written last.
    stream: u64,
    /// When the drive had something to do for a host last.
    busy_at: Time,
    /// A wake-up is on its way that looks whether the drive is idle.
    watching: bool,
}

impl Shingles {
    pub(crate) fn new(spec: ShingleSpec) -> Shingles {
        let bands = spec.capacity_sectors.div_ceil(spec.band_sectors) as usize;
        Shingles {
            spec,
            used_sectors: 0,
            used_pieces: 0,
            head: 0,
            bands: vec![(0, 0); bands],
            order: VecDeque::with_capacity(bands.min(spec.map_pieces as usize + 1)),
            stream: u64::MAX,
            busy_at: Time::ZERO,
            watching: false,
        }
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.spec.capacity_sectors
    }

    /// Whether the log has no room for a piece of `n` sectors.
    fn is_full_for(&self, n: u64) -> bool {
        self.used_pieces > 0
            && (self.used_sectors + n > self.spec.log_sectors
                || self.used_pieces >= self.spec.map_pieces)
    }

    /// Where a piece is written to, and how many sectors: its place in the log, or
    /// at home if it goes on where the one before ended, or is too large for the log.
    pub(crate) fn place(&mut self, start: u64, end: u64) -> (u64, u64) {
        let (n, streams) = (end - start, start == self.stream);
        let with_entry = n + self.spec.entry_sectors;
        self.stream = end;
        if streams || with_entry > self.spec.log_sectors {
            return (start, n);
        }
        let band = (start / self.spec.band_sectors) as usize;
        if self.bands[band] == (0, 0) {
            self.order.push_back(band as u32);
        }
        self.bands[band].0 += n as u32;
        self.bands[band].1 += 1;
        self.used_sectors += n;
        self.used_pieces += 1;
        if self.head + with_entry > self.spec.log_sectors {
            self.head = 0;
        }
        let at = self.spec.capacity_sectors + self.head;
        self.head += with_entry;
        (at, with_entry)
    }

    /// Takes the oldest band out of the log: its first sector and length.
    fn take_band(&mut self) -> Option<(u64, u64)> {
        let band = self.order.pop_front()?;
        let (sectors, pieces) = std::mem::take(&mut self.bands[band as usize]);
        self.used_sectors -= u64::from(sectors);
        self.used_pieces -= pieces;
        let start = u64::from(band) * self.spec.band_sectors;
        let end = (start + self.spec.band_sectors).min(self.spec.capacity_sectors);
        Some((start, end - start))
    }
}

impl Disk {
    /// The host wants something: the drive is not idle.
    pub(super) fn note_work(&mut self, now: Time) {
        if let Some(shingles) = &mut self.parts.shingles {
            shingles.busy_at = now;
        }
    }

    /// Where a piece goes that belongs at `start`, and how many sectors it is there.
    pub(super) fn write_place(&mut self, start: u64, end: u64) -> (u64, u64) {
        match &mut self.parts.shingles {
            Some(shingles) => shingles.place(start, end),
            None => (start, end - start),
        }
    }

    /// Cleans a band if the next write has no room in the log. Says whether it does.
    pub(super) fn make_room(&mut self, cx: &mut DeviceCx<'_>) -> bool {
        let Some(shingles) = &self.parts.shingles else {
            return false;
        };
        let writes = self.queue.iter().filter(|q| q.write);
        let most = writes.map(|q| q.end - q.start).max().unwrap_or(0);
        let pieces = self.parts.writes.largest_piece();
        let n = most.max(pieces);
        n > 0 && shingles.is_full_for(n) && self.clean_band(cx)
    }

    /// The mechanism has nothing to do: cleans a band, or looks again later.
    pub(super) fn clean_when_idle(&mut self, cx: &mut DeviceCx<'_>) {
        let Some(shingles) = &mut self.parts.shingles else {
            return;
        };
        if shingles.order.is_empty() || !self.slots.is_empty() {
            return;
        }
        let from = shingles.busy_at + Span(shingles.spec.idle_ns);
        if from <= cx.now {
            self.clean_band(cx);
        } else if !shingles.watching {
            shingles.watching = true;
            cx.wake_at(from, super::IDLE);
        }
    }

    /// A wake-up has come that was to look whether the drive is idle.
    pub(super) fn looked_for_idleness(&mut self) {
        if let Some(shingles) = &mut self.parts.shingles {
            shingles.watching = false;
        }
    }

    fn clean_band(&mut self, cx: &mut DeviceCx<'_>) -> bool {
        let Some(shingles) = &mut self.parts.shingles else {
            return false;
        };
        let Some((start, n)) = shingles.take_band() else {
            return false;
        };
        let passes = shingles.spec.passes;
        self.leave_run(cx.now);
        let Parts { mech, .. } = &mut self.parts;
        let place = mech.geometry.place(start);
        let mut now_ns = cx.now.ns();
        for pass in 0..passes {
            let wanted = Wanted {
                place,
                sector: start,
                n,
                write: pass + 1 == passes,
                data_ns: 0,
                least_move_ns: 0,
            };
            now_ns = mech.access(now_ns, &wanted).end_ns;
        }
        self.position = start + n;
        self.job = Some(Job::Clean);
        cx.wake_at(Time(now_ns), MECHANISM);
        true
    }
}
