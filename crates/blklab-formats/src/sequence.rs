// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequence numbers of a trace's CPUs, which show what the recorder lost.

use crate::ReadCounts;
use crate::counts::Numbered;

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

    /// The same for a text, in which numbers are also missing because it shows
    /// only a part.
    pub(crate) fn check_text(&mut self, cpu: u16, sequence: u32, counts: &mut ReadCounts) {
        match self.gap(cpu, sequence) {
            Some(gap) => counts.left_out += u64::from(gap),
            None => counts.restarts += 1,
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

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::Time;

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
