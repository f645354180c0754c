// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of requests that are kept apart.

use blklab_types::Op;

/// Number of domains.
pub(super) const DOMAINS: usize = 4;

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const DISCARD: usize = 2;
pub(super) const OTHER: usize = 3;

/// Domains below it have latencies measured.
pub(super) const MEASURED: usize = OTHER;

/// Tokens at the start, and at most.
pub(super) const MAX_DEPTH: [u32; DOMAINS] = [256, 128, 64, 16];

/// Requests dispatched before it is another domain's turn.
pub(super) const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];

/// A request's domain (`kyber_sched_domain`).
pub(super) fn domain_of(op: Op) -> usize {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => DISCARD,
        Op::Flush => OTHER,
    }
}
