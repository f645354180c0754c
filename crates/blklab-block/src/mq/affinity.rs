// SPDX-License-Identifier: MIT OR Apache-2.0
//! On which processor a request ends: where the interrupt comes, or, sent on by another
//! interrupt, where it was submitted (`blk_mq_complete_need_ipi` of block/blk-mq.c; the
//! same in 5.10, 6.1, 6.12 and 7.3 for processors of one kind).
//!
//! From 6.1 on the kernel never sends on what has a hardware queue for its processor alone
//! (6.12: if the interrupt came there). Here the interrupt of such a queue comes to that
//! processor, so that there is nothing to send on.

use super::Queue;
use crate::RqId;

/// What decides on which processor a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RqAffinity {
    /// `queue/rq_affinity`: 0 where the interrupt comes (neither `QUEUE_FLAG_SAME_COMP` nor
    /// `QUEUE_FLAG_SAME_FORCE`); 1 there, if that processor shares a cache with the
    /// submitter's; 2 on the submitter's.
    pub rq_affinity: u8,
    /// Processors that share a last-level cache: the first so many, the next so many.
    pub llc_cpus: u16,
    /// The driver ends requests itself in its interrupt, and none is ever sent on (the timer
    /// of `null_blk`, which calls `blk_mq_end_request`).
    pub ends_in_driver: bool,
}

impl Default for RqAffinity {
    /// As the kernel begins, with a cache that all processors share.
    fn default() -> RqAffinity {
        RqAffinity {
            rq_affinity: 1,
            llc_cpus: u16::MAX,
            ends_in_driver: false,
        }
    }
}

impl RqAffinity {
    /// The processor that a request of `submitter` is sent on to, whose interrupt came to
    /// `cpu`; none if it ends there.
    fn sends_on(&self, submitter: u16, cpu: u16) -> Option<u16> {
        if self.rq_affinity == 0 || self.ends_in_driver || submitter == cpu {
            return None;
        }
        let of_cache = |cpu: u16| cpu / self.llc_cpus.max(1);
        let is_near = of_cache(submitter) == of_cache(cpu);
        (self.rq_affinity > 1 || !is_near).then_some(submitter)
    }
}

impl Queue {
    /// The processor that a request is sent on to, whose interrupt came to `cpu`; none if
    /// it ends there.
    pub fn sends_on(&self, rq: RqId, cpu: u16) -> Option<u16> {
        self.core
            .limits
            .affinity
            .sends_on(self.core.rqs[rq].cpu, cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processors 0 and 1 share a cache, 2 and 3 another one.
    #[test]
    fn a_request_is_sent_on_from_another_cache_or_if_it_must_be() {
        let to = |rq_affinity, submitter, cpu| {
            let affinity = RqAffinity {
                rq_affinity,
                llc_cpus: 2,
                ..RqAffinity::default()
            };
            affinity.sends_on(submitter, cpu)
        };
        for cpu in 0..4 {
            assert_eq!(to(0, 3, cpu), None);
        }
        assert_eq!(to(1, 1, 0), None, "they share a cache");
        assert_eq!(to(1, 3, 0), Some(3));
        assert_eq!(to(1, 0, 2), Some(0));
        assert_eq!(to(2, 1, 0), Some(1));
        assert_eq!(to(2, 1, 1), None, "it is there already");
    }

    #[test]
    fn what_a_driver_ends_itself_is_not_sent_on() {
        let affinity = RqAffinity {
            rq_affinity: 2,
            ends_in_driver: true,
            ..RqAffinity::default()
        };
        assert_eq!(affinity.sends_on(1, 0), None);
    }
}
