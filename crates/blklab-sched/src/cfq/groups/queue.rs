// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of a process, or of all asynchronous requests of one priority
//! (`struct cfq_queue`), and the table of all queues.
//!
//! Queues are counted references: one for each context that uses it or will
//! use it after a merge, one for each request, one for the group that keeps it
//! if it is asynchronous. Without references its slot is used again.

pub(super) use crate::queue_id::QueueId;

use super::group::{GroupId, Place};
use crate::cfq::prio::QueuePrio;
use crate::cfq::turn::Turn;
use crate::cfq::waiting::Waiting;
use crate::history::SeekDistance;
use blklab_types::Pid;

/// All queues of a device.
pub(super) type Queues = blklab_types::Slab<QueueId, Queue>;

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The process that messages name.
    pub(super) pid: Pid,
    /// References, see above.
    pub(super) refs: u32,
    /// Requests allocated for it and not freed.
    pub(super) allocated: u32,
    pub(super) sync: bool,
    /// Class and level.
    pub(super) prio: QueuePrio,
    pub(super) group: GroupId,
    /// The group it was moved to the root from.
    pub(super) isolated_from: Option<GroupId>,

    /// Requests that wait.
    pub(super) waiting: Waiting,
    /// Waiting requests with the flag that boosts.
    pub(super) prio_pending: u32,
    /// Requests dispatched and not completed.
    pub(super) dispatched: u32,

    /// Where it stands while it is busy, and its key there.
    pub(super) filed: Option<Place>,
    pub(super) rb_key: u64,
    /// Level of the tree of positions it is in.
    pub(super) close_level: Option<u8>,
    /// Counted among the busy queues.
    pub(super) on_rr: bool,

    /// When it became active; when its slice began, 0 if it has not.
    pub(super) dispatch_start: u64,
    pub(super) slice_start: u64,
    pub(super) slice_end: u64,
    pub(super) allocated_slice: u64,
    /// What was left of the last slice, or overdrawn.
    pub(super) slice_resid: i64,
    /// Requests and sectors dispatched in this slice.
    pub(super) slice_dispatch: u32,
    pub(super) slice_sectors: u64,

    /// End of the newest request.
    pub(super) last_pos: u64,
    pub(super) seeks: SeekDistance,
    /// A bit per request: it was far.
    pub(super) seek_history: u32,

    /// The queue its processes are to use from their next request on (`new_cfqq`).
    pub(super) new_queue: Option<QueueId>,

    /// CFQ idles for its next request.
    pub(super) idle_window: bool,
    /// No request of the slice has completed.
    pub(super) slice_new: bool,
    pub(super) turn: Turn,
    /// Its slice was prolonged so that its group stays busy.
    pub(super) wait_busy: bool,
    pub(super) prio_changed: bool,
    /// Had four or more requests waiting.
    pub(super) deep: bool,
    /// Used by several processes; to be broken up again.
    pub(super) coop: bool,
    pub(super) split: bool,
}

impl Queue {
    /// A queue without references.
    pub(super) fn new(pid: Pid, sync: bool, group: GroupId) -> Queue {
        Queue {
            pid,
            refs: 0,
            allocated: 0,
            sync,
            prio: QueuePrio::default(),
            group,
            isolated_from: None,
            waiting: Waiting::default(),
            prio_pending: 0,
            dispatched: 0,
            filed: None,
            rb_key: 0,
            close_level: None,
            on_rr: false,
            dispatch_start: 0,
            slice_start: 0,
            slice_end: 0,
            allocated_slice: 0,
            slice_resid: 0,
            slice_dispatch: 0,
            slice_sectors: 0,
            last_pos: 0,
            seeks: SeekDistance::default(),
            seek_history: 0,
            new_queue: None,
            idle_window: sync,
            slice_new: false,
            turn: Turn::default(),
            wait_busy: false,
            prio_changed: true,
            deep: false,
            coop: false,
            split: false,
        }
    }

    /// Whether no request waits in it.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The device has no request any more: it has none either.
    pub(super) fn check_conservation(&self) {
        self.waiting.check_conservation();
        assert_eq!(
            (self.allocated, self.dispatched, self.prio_pending),
            (0, 0, 0),
            "a queue counts requests that are gone"
        );
    }

    /// Contexts that use it or will.
    pub(super) fn process_refs(&self) -> u32 {
        self.refs.saturating_sub(self.allocated)
    }
}
