// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequence numbers of a trace's CPUs, which show what the recorder lost.

use crate::ReadCounts;
use crate::counts::Numbered;
use blklab_types::Dev;
use std::collections::HashMap;

/// The last sequence number of each CPU.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Vec<Option<u32>>);

impl Sequences {
    /// Whether `sequence` is the one that comes next on a CPU, which it then was.
    #[inline]
    pub(crate) fn is_next(&mut self, cpu: u16, sequence: u32) -> bool {
        let Some(Some(last)) = self.0.get_mut(usize::from(cpu)) else {
            return false;
        };
        let is_next = last.checked_add(1) == Some(sequence);
        if is_next {
            *last = sequence;
        }
        is_next
    }

    /// Counts what is missing before `sequence`. The first number seen on a
    /// CPU is taken as it is: the trace may be a part of a longer one.
    /// Says whether the numbers begin anew.
    pub(crate) fn check(&mut self, numbered: Numbered, counts: &mut ReadCounts) -> bool {
        let Numbered { cpu, sequence, .. } = numbered;
        let last = self.0.get(usize::from(cpu)).copied().flatten();
        if sequence != 0 && sequence != last.unwrap_or(0).wrapping_add(1) {
            counts.number(numbered);
        }
        match self.gap(cpu, sequence) {
            Some(0) => false,
            Some(gap) => {
                counts.gaps += 1;
                counts.lost += u64::from(gap);
                false
            }
            None => {
                counts.restarts += 1;
                true
            }
        }
    }

    /// How many numbers are missing before `sequence`; none if they begin anew.
    #[inline]
    fn gap(&mut self, cpu: u16, sequence: u32) -> Option<u32> {
        let idx = usize::from(cpu);
        if idx >= self.0.len() {
            self.0.resize(idx + 1, None);
        }
        // Streams of `trace_pipe` are not numbered.
        if sequence == 0 && self.0[idx] != Some(u32::MAX) {
            return Some(0);
        }
        if let Some(last) = self.0[idx].replace(sequence) {
            let gap = sequence.wrapping_sub(last).wrapping_sub(1);
            // The numbers wrap at 2^32: one that goes back by less than half
            // of that is a fresh start, not a gap.
            return (gap < u32::MAX / 2).then_some(gap);
        }
        Some(0)
    }
}

/// The last sequence numbers of a text's CPUs, in which numbers are also missing because it
/// shows only a part. Devices that are traced together share the numbers of a CPU; others
/// have their own.
#[derive(Debug, Default)]
pub(crate) struct TextSequences {
    /// Of each CPU the last one, and of which device.
    cpus: Vec<Option<(Dev, u32)>>,
    /// Of devices other than that: their last ones.
    others: HashMap<(u16, Dev), u32>,
}

/// CPUs and devices that are followed.
const FOLLOWED_MAX: usize = 8192;

impl TextSequences {
    /// The last number of a device on a CPU.
    pub(crate) fn last(&self, cpu: u16, dev: Dev) -> Option<u32> {
        match self.cpus.get(usize::from(cpu)).copied().flatten()? {
            (of, last) if of == dev => Some(last),
            _ => self.others.get(&(cpu, dev)).copied(),
        }
    }

    /// Counts what is missing before the number of a device on a CPU, which then is the last.
    #[inline]
    pub(crate) fn check(&mut self, cpu: u16, dev: Dev, sequence: u32, counts: &mut ReadCounts) {
        // Streams of `trace_pipe` are not numbered.
        if sequence == 0 {
            return;
        }
        let place = usize::from(cpu);
        if place >= self.cpus.len() {
            self.cpus.resize(place + 1, None);
        }
        let Some((of, last)) = self.cpus[place].replace((dev, sequence)) else {
            return;
        };
        // The numbers wrap at 2^32.
        let gap = |last: u32| sequence.wrapping_sub(last).wrapping_sub(1);
        if of == dev {
            return count(gap(last), counts);
        }
        let own = self.others.remove(&(cpu, dev));
        if self.others.len() < FOLLOWED_MAX {
            self.others.insert((cpu, of), last);
        }
        if let Some(own) = own {
            count(gap(own).min(gap(last)), counts);
        }
    }
}

/// Counts what is missing: one that goes back begins anew.
#[inline]
fn count(gap: u32, counts: &mut ReadCounts) {
    if gap < u32::MAX / 2 {
        counts.left_out += u64::from(gap);
    } else {
        counts.restarts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::Time;

    #[test]
    fn devices_that_are_traced_apart_have_numbers_of_their_own() {
        let check = |numbers: &[(u16, u32)], left_out, restarts| {
            let (mut all, mut counts) = (TextSequences::default(), ReadCounts::default());
            for (minor, number) in numbers {
                let dev = Dev {
                    major: 8,
                    minor: *minor,
                };
                all.check(3, dev, *number, &mut counts);
                assert_eq!(all.last(3, dev), Some(*number));
            }
            let found = (counts.left_out, counts.restarts);
            assert_eq!(found, (left_out, restarts), "{numbers:?}");
        };
        check(&[(0, 1), (0, 2), (0, 5)], 2, 0);
        check(&[(0, 7053), (16, 120), (0, 7054), (16, 121)], 0, 0);
        check(&[(0, 7053), (16, 120), (0, 7057), (16, 122)], 4, 0);
        // A partition and its disk.
        check(&[(0, 465), (5, 466), (5, 467), (0, 468), (5, 470)], 1, 0);
        check(&[(0, 900), (0, 1)], 0, 1);
    }

    #[test]
    fn gaps_wraps_and_fresh_starts() {
        let check = |numbers: &[u32], gaps, lost, restarts| {
            let (mut all, mut counts) = (Sequences::default(), ReadCounts::default());
            for number in numbers {
                let numbered = Numbered {
                    cpu: 3,
                    time: Time::ZERO,
                    sequence: *number,
                };
                all.check(numbered, &mut counts);
            }
            let found = (counts.gaps, counts.lost, counts.restarts);
            assert_eq!(found, (gaps, lost, restarts), "{numbers:?}");
        };
        check(&[1, 2, 3], 0, 0, 0);
        check(&[7, 8, 11, 12], 1, 2, 0);
        check(&[u32::MAX - 1, u32::MAX, 0, 1], 0, 0, 0);
        check(&[u32::MAX - 1, 2], 1, 3, 0);
        check(&[900, 1, 2, 2], 0, 0, 2);
        check(&[0, 0, 0], 0, 0, 0);
    }
}
