// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job does between its release by the main process and its first I/O
//! (`thread_main` of fio's backend.c): it sets its engine up, and allocates an
//! `io_u` with a buffer for each I/O that it may have in flight (`init_io_u`).

use super::files::Plan;
use crate::Machine;
use blklab_types::{PAGE_BYTES, Span};

/// Processor times of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartCost {
    /// A job.
    pub(crate) each: Span,
    /// An I/O that it may have in flight.
    pub(crate) io_u: Span,
    /// A page of the buffer of one, which is filled.
    pub(crate) page: Span,
}

/// It is no system call: whoever wakes up meanwhile need not wait for its end.
const PIECE: Span = Span::from_us(20);

/// But who needs more than so many pieces takes longer ones.
const PIECES: u64 = 1000;

impl StartCost {
    fn span(self, plan: &Plan) -> Span {
        if plan.program.is_some() {
            return self.each;
        }
        let job = &plan.job.settings;
        let pages = job.largest_bs().div_ceil(PAGE_BYTES);
        let buffer = self.page.ns().saturating_mul(pages);
        let io_u = self.io_u.ns().saturating_add(buffer);
        let io_us = io_u.saturating_mul(u64::from(job.iodepth));
        Span(self.each.ns().saturating_add(io_us))
    }

    /// The job prepares itself.
    pub(crate) async fn spend(self, m: &Machine, plan: &Plan) {
        let mut left = self.span(plan);
        let piece = PIECE.max(Span(left.ns() / PIECES));
        while left > Span::ZERO {
            let piece = left.min(piece);
            m.compute(piece).await;
            left = Span(left.ns() - piece.ns());
        }
    }
}
