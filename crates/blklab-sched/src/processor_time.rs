// SPDX-License-Identifier: MIT OR Apache-2.0
//! What schedulers take of the processor, and the locks that they take.
//!
//! One time for each scheduler is calibrated: what a request takes more than with none
//! where one process keeps one core busy (Samsung 980 PRO, Linux 6.3.8, random reads of
//! 4 KiB, 128 in flight: none 381,090, mq-deadline 309,722, Kyber 303,981, BFQ 241,246
//! per second; ICPE 2024, "BFQ, Multiqueue-Deadline, or Kyber?", figure 7). The kernel's
//! Documentation/block/bfq-iosched.rst measured 1.9 us for BFQ and 0.7 us for
//! mq-deadline on an older processor, and says that the single lock protects all of it.
//! The turns are counted in the source (6.3).

/// What a scheduler takes of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// A request, from the attempt to merge its bio to its end, in ns, where nobody
    /// else wants the locks: what it takes more than without a scheduler.
    pub request_ns: u32,
    /// How often a request takes a lock of the scheduler.
    pub turns: u32,
    /// How many of those take the lock that processors share.
    pub shared_turns: u32,
    /// Who shares that lock.
    pub lock: LockOf,
}

/// Who shares the lock of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOf {
    /// The processors of a hardware queue.
    HwQueue,
    /// All processors.
    Disk,
}

impl ProcessorTime {
    /// Nothing: what holds for no scheduler, and for those of which nobody is charged.
    pub const NONE: ProcessorTime = ProcessorTime {
        request_ns: 0,
        turns: 1,
        shared_turns: 0,
        lock: LockOf::HwQueue,
    };

    /// mq-deadline: `dd->lock` in `dd_bio_merge`, `dd_insert_requests` and
    /// `dd_dispatch_request` (block/mq-deadline.c).
    pub const MQ_DEADLINE: ProcessorTime = ProcessorTime {
        request_ns: 600,
        turns: 3,
        shared_turns: 3,
        lock: LockOf::Disk,
    };

    /// Kyber: the lock of the processor's own software queue in `kyber_bio_merge` and
    /// `kyber_insert_requests`, that of the hardware queue in `kyber_dispatch_request`
    /// (block/kyber-iosched.c).
    pub const KYBER: ProcessorTime = ProcessorTime {
        request_ns: 670,
        turns: 3,
        shared_turns: 1,
        lock: LockOf::HwQueue,
    };

    /// BFQ: `bfqd->lock` in `bfq_bio_merge`, `bfq_insert_request`,
    /// `bfq_dispatch_request` and `bfq_finish_requeue_request` (block/bfq-iosched.c).
    pub const BFQ: ProcessorTime = ProcessorTime {
        request_ns: 1520,
        turns: 4,
        shared_turns: 4,
        lock: LockOf::Disk,
    };
}
