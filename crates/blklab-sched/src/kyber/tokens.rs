// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tokens of a domain: a bitmap like that of tags, shared by all hardware
//! queues, on which they wait instead of tasks.

use blklab_block::mq::{TagRules, Tags};
use blklab_types::TaskId;

/// Wait queues of a bitmap: each hardware queue uses them in turn.
const WAIT_QUEUES: u8 = 8;

/// The tokens of a domain.
#[derive(Debug)]
pub(super) struct Tokens {
    bitmap: Tags,
    /// By hardware queue.
    waits: Vec<Wait>,
    /// Emptied and kept for its capacity.
    woken: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    /// The wait queue on which it is.
    on: Option<u8>,
    /// The one for its next wait.
    next: u8,
}

impl Tokens {
    pub(super) fn new(depth: u32, nr_cpus: u16, nr_hctxs: u16, rules: TagRules) -> Tokens {
        Tokens {
            bitmap: Tags::new(depth, nr_cpus.max(1), rules),
            waits: vec![Wait::default(); usize::from(nr_hctxs.max(1))],
            woken: Vec::new(),
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.bitmap.depth()
    }

    /// Tokens that requests hold.
    pub(super) fn busy(&self) -> u32 {
        self.bitmap.busy()
    }

    /// Tokens that are out keep their numbers: none above the depth is given
    /// out any more.
    pub(super) fn resize(&mut self, depth: u32) {
        if depth != self.depth() {
            self.bitmap.resize(depth);
        }
    }

    /// A token for a hardware queue that runs on `cpu`. If none is free, the
    /// hardware queue waits (`kyber_get_domain_token`).
    pub(super) fn take(&mut self, hctx: u16, cpu: u16) -> Option<u16> {
        let token = self.bitmap.get(cpu, None);
        let wait = &mut self.waits[usize::from(hctx)];
        let who = TaskId(u32::from(hctx));
        if token.is_some() {
            if let Some(queue) = wait.on.take() {
                self.bitmap.cancel_wait(queue, who);
            }
        } else if wait.on.is_none() {
            self.bitmap.wait(wait.next, who);
            wait.on = Some(wait.next);
            wait.next = (wait.next + 1) % WAIT_QUEUES;
        }
        token
    }

    /// A token comes back from a request of a CPU; calls `run` with each
    /// hardware queue that is woken.
    pub(super) fn release(&mut self, token: u16, cpu: u16, mut run: impl FnMut(u16)) {
        self.bitmap.put(cpu, token, &mut self.woken);
        for who in self.woken.drain(..) {
            self.bitmap.finish_wait();
            self.waits[who.idx()].on = None;
            run(who.0 as u16);
        }
    }
}
