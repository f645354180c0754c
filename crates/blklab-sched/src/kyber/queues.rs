// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where requests wait: first in the list of their CPU and domain, where bios
//! are merged, then in the FIFO of their hardware queue and domain.

use super::domain::{DOMAINS, domain_of};
use blklab_block::mq::Core;
use blklab_block::{List, RqId};
use blklab_types::IdVec;

/// All lists.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// By CPU.
    software: IdVec<u16, [List; DOMAINS]>,
    hctxs: IdVec<u16, Hctx>,
}

/// A hardware queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Hctx {
    /// Requests that left the lists of the CPUs.
    fifo: [List; DOMAINS],
    /// CPUs that have requests for it.
    pending: [CpuSet; DOMAINS],
    /// The domain served, and requests of its batch so far.
    pub(super) current: usize,
    pub(super) batching: u32,
}

impl Queues {
    /// A hardware queue, from its first use on.
    pub(super) fn hctx(&mut self, hctx: u16) -> &mut Hctx {
        self.hctxs.entry(hctx)
    }

    /// Into the list of its CPU.
    pub(super) fn insert(&mut self, q: &mut Core, rq: RqId, at_head: bool) {
        let (cpu, hctx, d) = {
            let r = &q.rqs[rq];
            (r.cpu, r.hctx, domain_of(r.op))
        };
        let list = &mut self.software.entry(cpu)[d];
        if at_head {
            list.push_front(&mut q.rqs, rq);
        } else {
            list.push_back(&mut q.rqs, rq);
        }
        self.hctx(hctx).pending[d].insert(cpu);
    }

    /// The list of a CPU and domain.
    pub(super) fn software_list(&self, cpu: u16, d: usize) -> Option<List> {
        Some(self.software.get(cpu)?[d])
    }

    /// Whether a hardware queue has requests of a domain.
    pub(super) fn has(&self, hctx: u16, d: usize) -> bool {
        let hctx = self.hctxs.get(hctx);
        hctx.is_some_and(|h| !h.fifo[d].is_empty() || !h.pending[d].is_empty())
    }

    /// Whether a hardware queue has requests.
    pub(super) fn has_work(&self, hctx: u16) -> bool {
        (0..DOMAINS).any(|d| self.has(hctx, d))
    }

    /// Whether no request waits in any list.
    pub(super) fn is_empty(&self) -> bool {
        let software = self.software.values().flatten();
        let fifos = self.hctxs.values().flat_map(|h| &h.fifo);
        software.chain(fifos).all(List::is_empty)
    }

    /// Takes the oldest request of a domain. If the FIFO is empty, all lists of
    /// CPUs are emptied into it first, CPU by CPU.
    pub(super) fn take(&mut self, q: &mut Core, hctx: u16, d: usize) -> Option<RqId> {
        let h = &mut self.hctxs[hctx];
        if h.fifo[d].is_empty() {
            while let Some(cpu) = h.pending[d].take_first() {
                h.fifo[d].append(&mut q.rqs, &mut self.software[cpu][d]);
            }
        }
        h.fifo[d].pop_front(&mut q.rqs)
    }
}

/// A set of CPUs.
#[derive(Clone, Debug, Default)]
struct CpuSet {
    words: IdVec<usize, u64>,
}

impl CpuSet {
    fn insert(&mut self, cpu: u16) {
        *self.words.entry(usize::from(cpu / 64)) |= 1 << (cpu % 64);
    }

    fn is_empty(&self) -> bool {
        self.words.values().all(|&w| w == 0)
    }

    /// Takes the CPU of the lowest number out.
    fn take_first(&mut self) -> Option<u16> {
        let word = self.words.values().position(|&w| w != 0)?;
        let bit = self.words[word].trailing_zeros() as u16;
        self.words[word] &= self.words[word] - 1;
        Some(word as u16 * 64 + bit)
    }
}
