// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job does between its release by the main process and its first I/O
//! (`thread_main` of fio's backend.c): it sets its engine up, and allocates an
//! `io_u` with a buffer for each I/O that it may have in flight (`init_io_u`).

use super::files::Plan;
use crate::Machine;
use blklab_fio::settings::Settings;
use blklab_types::{PAGE_BYTES, Span};

/// Processor times of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartCost {
    /// A job.
    pub(crate) each: Span,
    /// An I/O that it may have in flight.
    pub(crate) io_u: Span,
    /// A page of the buffer of one, which fio fills unless the job only reads past the
    /// page cache.
    pub(crate) page: Span,
}

/// Somebody else's turn may come at a tick.
const PIECE: Span = Span::from_us(20);

/// But who needs more than so many pieces takes longer ones.
const PIECES: u64 = 1000;

/// Whether fio fills the buffers of a job when it starts (`init_io_u_buffers`). What is
/// read through the page cache is copied to buffers that count as filled.
pub(crate) fn fills_buffers(job: &Settings) -> bool {
    job.rw.writes || !job.direct
}

impl StartCost {
    fn span(self, plan: &Plan) -> Span {
        if plan.program.is_some() {
            return self.each;
        }
        let job = &plan.job.settings;
        let pages = job.largest_bs().div_ceil(PAGE_BYTES);
        let filled = if fills_buffers(job) { pages } else { 0 };
        let buffer = self.page.ns().saturating_mul(filled);
        let io_u = self.io_u.ns().saturating_add(buffer);
        let io_us = io_u.saturating_mul(u64::from(job.iodepth));
        Span(self.each.ns().saturating_add(io_us))
    }

    /// The job prepares itself.
    pub(crate) async fn spend(self, m: &Machine, plan: &Plan) {
        let mut left = self.span(plan);
        if left == Span::ZERO {
            // In no time, but it sleeps until it is released.
            m.get_going().await;
        }
        let piece = PIECE.max(Span(left.ns() / PIECES));
        while left > Span::ZERO {
            let piece = left.min(piece);
            m.compute_in_program(piece).await;
            left = Span(left.ns() - piece.ns());
        }
    }
}
