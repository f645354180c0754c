// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of requests: one for the sync requests of each process, shared ones
//! for async requests.

pub(super) use crate::queue_id::QueueId;

use crate::cfq::prio::QueuePrio;
use crate::cfq::turn::Turn;
use crate::cfq::waiting::Waiting;
use crate::cfq::{ASYNC, SYNC};
use blklab_types::{IoPrio, Pid, PrioClass};

/// All queues of a device.
pub(super) type Queues = blklab_types::Slab<QueueId, Queue>;

/// One queue (`struct cfq_queue`).
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Process it was made for; messages name it.
    pub(super) pid: Pid,
    /// Sync or async, for life.
    pub(super) sync: bool,
    /// Class and level.
    pub(super) prio: QueuePrio,
    /// Who holds it: contexts, requests, the table of async queues.
    pub(super) refs: u32,

    /// Requests that wait.
    pub(super) waiting: Waiting,
    /// Waiting requests with metadata. Signed: `preempt_pullback_minimal`
    /// takes requests back without counting them.
    pub(super) meta_pending: i32,
    /// Requests on the dispatch list or at the device.
    pub(super) dispatched: u32,
    /// Requests moved in this slice.
    pub(super) slice_dispatch: u32,

    /// Jiffy at which the slice ends, unless it is new.
    pub(super) slice_end: u64,
    /// What was left of the last slice, or, negative, overrun.
    pub(super) slice_resid: i64,
    /// Key in the service tree.
    pub(super) rb_key: u64,
    /// Part of the service tree it is filed in.
    pub(super) filed: Option<u8>,
    /// Level whose tree of positions it is filed in.
    pub(super) close_level: Option<u8>,

    /// Has requests, so takes part in the round (`on_rr`).
    pub(super) on_rr: bool,
    /// CFQ may idle for its next request.
    pub(super) idle_window: bool,
    /// No completion in this slice yet: its end is open.
    pub(super) slice_new: bool,
    pub(super) turn: Turn,
    /// The priority is to be looked up again.
    pub(super) prio_changed: bool,
    /// Was chosen for its closeness.
    pub(super) coop: bool,
    /// Preempted for its closeness.
    pub(super) coop_preempt: bool,
}

impl Queue {
    /// A queue that nobody holds yet.
    pub(super) fn new(pid: Pid, sync: bool, prio: IoPrio) -> Queue {
        Queue {
            pid,
            sync,
            prio: QueuePrio::new(prio),
            refs: 0,
            waiting: Waiting::default(),
            meta_pending: 0,
            dispatched: 0,
            slice_dispatch: 0,
            slice_end: 0,
            slice_resid: 0,
            rb_key: 0,
            filed: None,
            close_level: None,
            on_rr: false,
            idle_window: sync && prio.class != PrioClass::Idle,
            slice_new: false,
            turn: Turn::default(),
            prio_changed: false,
            coop: false,
            coop_preempt: false,
        }
    }

    /// Index of pairs by sync.
    pub(super) fn kind(&self) -> usize {
        if self.sync { SYNC } else { ASYNC }
    }
}
