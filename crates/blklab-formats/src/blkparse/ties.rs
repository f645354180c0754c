// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which order blkparse prints events of one and the same time.
//!
//! blkparse keeps one stream per CPU in a list ordered by the time of their
//! next event, and takes from the first as long as that is not later than the
//! second. A stream that is put back goes before others of its time. So in a
//! group of equal times the events of one CPU stay together, and the CPU that
//! had the latest event before comes first. Streams that had none yet stand
//! as they were put into the list at the start, in order of the CPUs, where
//! only the very first place is kept against an equal newcomer.

/// Where the events of one CPU stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recency(u64);

impl Recency {
    pub(super) fn is_new(self) -> bool {
        self.0 == 0
    }
}

/// Orders CPUs as blkparse does.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Events given out, so far.
    clock: u64,
    /// The lowest CPU that had an event.
    lowest_seen: Option<u16>,
}

impl Order {
    /// Sorts the CPUs of a group of equal times, each with its recency.
    pub(super) fn sort(&self, cpus: &mut [(u16, Recency)]) {
        // Newcomers that found no earlier stream in front of them.
        let is_first_in = |cpu: u16| self.lowest_seen.is_none_or(|seen| cpu < seen);
        let head = cpus
            .iter()
            .filter(|(cpu, recency)| recency.is_new() && is_first_in(*cpu))
            .map(|(cpu, _)| *cpu)
            .min();
        cpus.sort_unstable_by_key(|&(cpu, recency)| {
            let part = if !recency.is_new() {
                0
            } else if !is_first_in(cpu) {
                1
            } else if Some(cpu) == head {
                2
            } else {
                3
            };
            (part, u64::MAX - recency.0, u16::MAX - cpu)
        });
    }

    /// The next event is one of `cpu`.
    #[inline]
    pub(super) fn given_out(&mut self, cpu: u16, recency: &mut Recency) {
        self.clock += 1;
        if recency.is_new() && self.lowest_seen.is_none_or(|seen| cpu < seen) {
            self.lowest_seen = Some(cpu);
        }
        *recency = Recency(self.clock);
    }
}
