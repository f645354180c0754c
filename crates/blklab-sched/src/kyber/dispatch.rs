// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which domain is served.

use super::Kyber;
use super::domain::{BATCH, DOMAINS, READ, WRITE};
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;

impl Kyber {
    /// `kyber_dispatch_request`.
    pub(super) fn next_request(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        hctx: u16,
    ) -> Option<RqId> {
        let h = self.queues.hctx(hctx);
        let current = h.current;
        if h.batching < BATCH[current]
            && let Some(rq) = self.take(q, cx, hctx, current)
        {
            return Some(rq);
        }
        // The last one tried is the one that was served.
        for step in 1..=DOMAINS {
            let d = (current + step) % DOMAINS;
            let h = self.queues.hctx(hctx);
            (h.batching, h.current) = (0, d);
            if let Some(rq) = self.take(q, cx, hctx, d) {
                return Some(rq);
            }
        }
        if self.queues.has_work(hctx) {
            cx.waits(Why::Tokens, 0);
        }
        None
    }

    /// The oldest request of a domain, if there is one and a token
    /// (`kyber_dispatch_cur_domain`).
    fn take(&mut self, q: &mut Core, cx: &mut Cx<'_>, hctx: u16, d: usize) -> Option<RqId> {
        if !self.queues.has(hctx, d) {
            return None;
        }
        let token = self.tokens[d].take(hctx, cx.running.cpu)?;
        self.queues.hctx(hctx).batching += 1;
        let rq = self.queues.take(q, hctx, d)?;
        self.held[rq] = Some(token);
        cx.waits(
            match d {
                READ => Why::ReadBatch,
                WRITE => Why::WriteBatch,
                _ => Why::Order,
            },
            0,
        );
        Some(rq)
    }
}
