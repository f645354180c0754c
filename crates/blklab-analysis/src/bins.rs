// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equal intervals of time, of which there are at most [`BINS_MAX`]: their length
//! doubles whenever a trace outgrows them, so memory does not grow with it, and what
//! was added stays in it.

use blklab_types::Time;
use std::collections::BTreeMap;

/// Most intervals kept.
pub const BINS_MAX: usize = 512;

/// Length of an interval at first, ns.
const FIRST_INTERVAL_NS: u64 = 1024;

/// What an interval holds.
pub trait Bin: Default {
    /// Takes in what a neighbour holds.
    fn join(&mut self, other: Self);
}

impl Bin for u64 {
    fn join(&mut self, other: u64) {
        *self = self.saturating_add(other);
    }
}

impl<A: Bin, B: Bin> Bin for (A, B) {
    fn join(&mut self, other: (A, B)) {
        self.0.join(other.0);
        self.1.join(other.1);
    }
}

impl<B: Bin, const N: usize> Bin for [B; N]
where
    [B; N]: Default,
{
    fn join(&mut self, other: [B; N]) {
        for (own, other) in self.iter_mut().zip(other) {
            own.join(other);
        }
    }
}

impl<K: Ord, B: Bin> Bin for BTreeMap<K, B> {
    fn join(&mut self, other: BTreeMap<K, B>) {
        for (key, bin) in other {
            self.entry(key).or_default().join(bin);
        }
    }
}

/// Intervals from a start on.
#[derive(Clone, Debug)]
pub struct Bins<T> {
    start: Time,
    interval_ns: u64,
    bins: Vec<T>,
}

impl<T: Bin> Bins<T> {
    /// With intervals of 1024 ns at first.
    pub fn new(start: Time) -> Bins<T> {
        Bins::with_interval(start, FIRST_INTERVAL_NS)
    }

    /// With intervals of so many ns at first.
    ///
    /// # Panics
    /// If that is none.
    pub fn with_interval(start: Time, interval_ns: u64) -> Bins<T> {
        assert!(interval_ns > 0, "an interval has a length");
        Bins {
            start,
            interval_ns,
            bins: Vec::new(),
        }
    }

    /// The interval of a time; what is before the start counts to the first.
    pub fn at(&mut self, time: Time) -> &mut T {
        let ns = time.since(self.start).0;
        while ns / self.interval_ns >= BINS_MAX as u64 {
            self.halve();
        }
        let place = (ns / self.interval_ns) as usize;
        if place >= self.bins.len() {
            self.bins.resize_with(place + 1, T::default);
        }
        &mut self.bins[place]
    }

    /// Divides what lasts from one time to another among its intervals: calls
    /// `add` with each and the ns that belong to it.
    pub fn over(&mut self, [from, to]: [Time; 2], mut add: impl FnMut(&mut T, u64)) {
        if to <= from {
            return;
        }
        self.at(to);
        let mut at = from.max(self.start);
        while at < to {
            let past = at.since(self.start).0 / self.interval_ns + 1;
            let end = self
                .start
                .0
                .saturating_add(past.saturating_mul(self.interval_ns));
            let end = Time(end).min(to);
            add(self.at(at), end.since(at).0);
            at = end;
        }
    }

    fn halve(&mut self) {
        let mut joined: Vec<T> = Vec::with_capacity(BINS_MAX);
        for (i, bin) in std::mem::take(&mut self.bins).into_iter().enumerate() {
            match joined.last_mut().filter(|_| i % 2 == 1) {
                Some(last) => last.join(bin),
                None => joined.push(bin),
            }
        }
        self.bins = joined;
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Length of an interval, ns.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// What they hold, the first one first.
    pub fn as_slice(&self) -> &[T] {
        &self.bins
    }

    /// What they held.
    pub fn into_bins(self) -> Vec<T> {
        self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_and_lose_nothing() {
        let mut bins: Bins<u64> = Bins::new(Time(1000));
        for k in 0..10_000_u64 {
            *bins.at(Time(1000 + k * 3000)) += k;
        }
        assert!(bins.as_slice().len() <= BINS_MAX && bins.as_slice().len() > BINS_MAX / 4);
        assert_eq!(bins.as_slice().iter().sum::<u64>(), 9999 * 10_000 / 2);
        let first = *bins.at(Time(1000));
        *bins.at(Time(0)) += 1;
        assert_eq!(bins.into_bins()[0], first + 1);
    }

    #[test]
    fn what_lasts_is_divided() {
        let mut bins: Bins<u64> = Bins::new(Time(0));
        bins.over([Time(1000), Time(3000)], |bin, ns| *bin += ns);
        assert_eq!(bins.into_bins(), [24, 1024, 952]);
    }
}
