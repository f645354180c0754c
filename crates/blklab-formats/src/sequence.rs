// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequence numbers of a trace's CPUs, which show what the recorder lost.

use crate::ReadCounts;

/// The last sequence number of each CPU.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Vec<Option<u32>>);

impl Sequences {
    /// Counts what is missing before `sequence`. The first number seen on a
    /// CPU is taken as it is: the trace may be a part of a longer one.
    pub(crate) fn check(&mut self, cpu: u16, sequence: u32, counts: &mut ReadCounts) {
        let idx = usize::from(cpu);
        if idx >= self.0.len() {
            self.0.resize(idx + 1, None);
        }
        if let Some(last) = self.0[idx].replace(sequence) {
            let gap = sequence.wrapping_sub(last).wrapping_sub(1);
            // A number that goes back is a fresh start, not a gap.
            if gap > 0 && gap < u32::MAX / 2 {
                counts.gaps += 1;
                counts.lost += u64::from(gap);
            }
        }
    }
}
