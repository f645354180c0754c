// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bios of one device and one process went through, kept once. What a
//! device or a process shows is a sum over such pairs, made at the end.

use crate::distribution::Distribution;
use crate::index::Index;
use crate::lifecycle::{BioLife, Merge};
use crate::stats::{Amount, Directions, Phases};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Op, Time};

/// Pairs that are kept, in order of their first bio. Bios of further ones are
/// counted for the device and for the process at once.
const PAIRS_MAX: usize = 16_384;

/// The amount that a bio belongs to.
#[inline]
pub(crate) fn direction(amounts: &mut Directions, rwbs: Rwbs, bytes: u32) -> &mut Amount {
    match rwbs.op() {
        Some(Op::Read) if bytes > 0 => &mut amounts.read,
        Some(Op::Write) if bytes > 0 => &mut amounts.write,
        Some(Op::Discard) if bytes > 0 => &mut amounts.discard,
        _ => &mut amounts.other,
    }
}

/// Sums over bios that are done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Without Q2Q, which is not a matter of single bios.
    pub(crate) phases: Phases,
    pub(crate) completed: Directions,
    pub(crate) nr_errors: u64,
    pub(crate) nr_back_merges: u64,
    pub(crate) nr_front_merges: u64,
}

impl Tally {
    /// Adds a bio.
    pub(crate) fn bio(&mut self, bio: &BioLife) {
        self.phases(bio);
        match bio.merge {
            Some((_, Merge::Back)) => self.nr_back_merges += 1,
            Some((_, Merge::Front)) => self.nr_front_merges += 1,
            None => {}
        }
        if bio.complete.is_some() {
            direction(&mut self.completed, bio.rwbs, bio.bytes).add(bio.bytes);
            self.nr_errors += u64::from(bio.error != 0);
        }
    }

    /// The phases that a bio went through.
    fn phases(&mut self, bio: &BioLife) {
        let add = |to: &mut Distribution, from: Option<Time>, until: Option<Time>| {
            if let (Some(from), Some(until)) = (from, until) {
                to.add(until.since(from).ns());
            }
        };
        let phases = &mut self.phases;
        let queue = Some(bio.queue);
        let merge = bio.merge.map(|(time, _)| time);
        add(&mut phases.q2g, queue, bio.get);
        add(&mut phases.s2g, bio.sleep, bio.get);
        add(&mut phases.g2i, bio.get, bio.insert);
        add(&mut phases.q2m, queue, merge);
        add(&mut phases.i2d, bio.insert, bio.issue);
        add(&mut phases.m2d, merge, bio.issue);
        add(&mut phases.d2c, bio.issue, bio.complete);
        add(&mut phases.q2c, queue, bio.complete);
    }

    /// Adds what another one has.
    pub(crate) fn merge(&mut self, other: &Tally) {
        add_phases(&mut self.phases, &other.phases);
        self.completed.merge(&other.completed);
        self.nr_errors += other.nr_errors;
        self.nr_back_merges += other.nr_back_merges;
        self.nr_front_merges += other.nr_front_merges;
    }
}

/// Adds all phases but Q2Q.
pub(crate) fn add_phases(all: &mut Phases, part: &Phases) {
    for (to, from) in [
        (&mut all.q2g, &part.q2g),
        (&mut all.s2g, &part.s2g),
        (&mut all.g2i, &part.g2i),
        (&mut all.q2m, &part.q2m),
        (&mut all.i2d, &part.i2d),
        (&mut all.m2d, &part.m2d),
        (&mut all.d2c, &part.d2c),
        (&mut all.q2c, &part.q2c),
    ] {
        to.merge(from);
    }
}

/// The place of a process among those with statistics of their own; none for
/// all others together.
pub(crate) type ProcessPlace = Option<usize>;

/// Tallies by device and process.
#[derive(Debug)]
pub(crate) struct Pairs {
    tallies: Vec<(Dev, ProcessPlace, Tally)>,
    places: Index<(Dev, ProcessPlace)>,
}

impl Default for Pairs {
    fn default() -> Pairs {
        Pairs {
            tallies: Vec::new(),
            places: Index::new(PAIRS_MAX),
        }
    }
}

impl Pairs {
    /// The tally of a pair, unless there are too many.
    #[inline]
    pub(crate) fn tally(&mut self, dev: Dev, process: ProcessPlace) -> Option<&mut Tally> {
        let place = self.places.place((dev, process))?;
        if place == self.tallies.len() {
            self.tallies.push((dev, process, Tally::default()));
        }
        Some(&mut self.tallies[place].2)
    }

    /// All of them, in order of their first bio.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (Dev, ProcessPlace, Tally)> {
        self.tallies.into_iter()
    }
}
