// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits and settings of a multi-queue device and its driver.

use super::RqAffinity;
use crate::QueueLimits;
use blklab_types::{DiscardLimits, Span};

/// Settings of one device: queue limits, tags, CPUs.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What holds on either path.
    pub queue: QueueLimits,
    /// Commands a hardware queue takes at once: driver tags.
    pub queue_depth: u32,
    /// Commands the device takes at once where the driver counts them before
    /// it asks the scheduler (SCSI: `device/queue_depth`); none elsewhere.
    pub budget: Option<u32>,
    /// Commands above which the driver refuses more though it has tags; none if
    /// it never does.
    pub refuses_above: Option<u32>,
    /// Bytes that the driver admits per tick of 20 ms (`mbps` of `null_blk`); none
    /// if it has no such limit.
    pub bytes_per_tick: Option<u64>,
    /// When these ticks come, after multiples of 20 ms.
    pub tick_phase: Span,
    /// Where the driver says that it has no room.
    pub refusal: Refusal,
    /// `queue/nr_requests` if written: scheduler tags of a hardware queue.
    pub nr_requests: Option<u32>,
    /// The queue has a scheduler unless told otherwise.
    pub scheduled_by_default: bool,
    /// Hardware queues.
    pub nr_hw_queues: u16,
    /// Hardware queues beside them that nobody submits to but who polls: none is used, but
    /// they count where the kernel asks whether a disk has more than one.
    pub nr_poll_queues: u16,
    /// They have one set of tags in common (`BLK_MQ_F_TAG_HCTX_SHARED`).
    pub shared_tags: bool,
    /// CPUs: software queues.
    pub nr_cpus: u16,
    /// `queue/rq_affinity`, and what else decides on which processor a request ends.
    pub affinity: RqAffinity,
    /// Requests do not cross multiples of it, in sectors; 0 if they may.
    pub chunk_sectors: u32,
    /// Logical block in sectors.
    pub logical_block_sectors: u32,
    /// Physical block in sectors.
    pub physical_block_sectors: u32,
    /// `queue/wbt_lat_usec` if written: latency aimed at by write-back
    /// throttling in us, 0 turns it off.
    pub wbt_lat_us: Option<u64>,
}

/// How a driver refuses for which there are no resources at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusal {
    /// Before it starts the request: R alone.
    #[default]
    BeforeStart,
    /// After it has started the request: D and R (`null_blk` up to 6.6).
    AfterStart,
    /// Before it starts the request, and it takes lists of plugs as a whole, even
    /// while its queues are stopped (`queue_rqs` of `null_blk`, 6.7).
    TakesLists,
}

impl Default for Limits {
    /// A single hardware queue of 64 commands, as `null_blk` has it, with discards.
    fn default() -> Limits {
        Limits {
            queue: QueueLimits {
                max_sectors: 2560,
                max_segments: 128,
                rotational: false,
                nomerges: 0,
                has_flush: false,
                has_fua: false,
                discard: Some(DiscardLimits::ANY),
                partition_start: None,
            },
            queue_depth: 64,
            budget: None,
            refuses_above: None,
            bytes_per_tick: None,
            tick_phase: Span::ZERO,
            refusal: Refusal::default(),
            nr_requests: None,
            scheduled_by_default: true,
            nr_hw_queues: 1,
            nr_poll_queues: 0,
            shared_tags: false,
            nr_cpus: 1,
            affinity: RqAffinity::default(),
            chunk_sectors: 0,
            logical_block_sectors: 1,
            physical_block_sectors: 1,
            wbt_lat_us: None,
        }
    }
}

impl Limits {
    /// Requests that may be allocated for one hardware queue: with a scheduler
    /// twice the depth, of at most 128, unless written; without one, the driver
    /// tags.
    pub fn nr_requests(&self, has_scheduler: bool) -> u32 {
        match self.nr_requests {
            Some(n) if has_scheduler => n.clamp(4, 2048),
            Some(n) => n.clamp(1, self.queue_depth),
            None => self.nr_requests_unwritten(has_scheduler),
        }
    }

    /// The same as long as nothing was written.
    pub fn nr_requests_unwritten(&self, has_scheduler: bool) -> u32 {
        if has_scheduler {
            2 * self.queue_depth.min(128)
        } else {
            self.queue_depth
        }
    }
}
