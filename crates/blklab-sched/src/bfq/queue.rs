// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of requests: one for the sync requests of each process, shared ones
//! for async requests.

use super::clock::{Jiffy, LONG_AGO};
use super::group_id::GroupId;
use super::links::Chain;
use crate::history::ThinkTime;
use crate::queue_id::QueueId;
use blklab_block::{List, RqId, SectorTree};
use blklab_types::TaskId;

/// All queues of a device.
pub(super) type Queues = blklab_types::Slab<QueueId, Queue>;

/// Pid of a queue that several processes share.
pub(super) const SHARED_PID: i64 = -1;

/// One queue (`struct bfq_queue`). Its weight, budget and times are those of its
/// entity.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Process it was made for; messages name it.
    pub(super) pid: i64,
    /// Sync or async, for life.
    pub(super) sync: bool,
    /// I/O priority level in force, and the one to come.
    pub(super) level: u32,
    pub(super) new_level: u32,
    /// Who holds it: processes, expected ones, requests, its place in trees,
    /// weight counter and table.
    pub(super) refs: u32,
    /// Of these, scheduled stable merges.
    pub(super) stable_refs: u32,
    /// The only process that uses it, while there is one (`bic`).
    pub(super) owner: Option<TaskId>,
    /// The queue it is being merged into (`new_bfqq`).
    pub(super) target: Option<QueueId>,
    /// `creation_time`.
    pub(super) created: Jiffy,

    /// Waiting requests by sector (`sort_list`).
    pub(super) sort: SectorTree,
    /// Waiting requests by arrival.
    pub(super) fifo: List,
    /// The preferred next request (`next_rq`).
    pub(super) next: Option<RqId>,
    /// Waiting requests, by sync.
    pub(super) queued: [u32; 2],
    /// Requests at the driver.
    pub(super) dispatched: u32,
    /// Sectors per slot.
    pub(super) max_budget: i64,
    /// End of the slot; while the queue has nothing waiting nor outstanding,
    /// the jiffy since when.
    pub(super) budget_timeout: Jiffy,

    /// Has requests, or is kept in its place without (`busy`).
    pub(super) busy: bool,
    /// No request has been added yet.
    pub(super) just_created: bool,
    /// The device idles for it.
    pub(super) wait_request: bool,
    /// Its budget and times are kept in case that it comes back soon
    /// (`non_blocking_wait_rq`).
    pub(super) keeps_budget: bool,
    /// The oldest request was looked at in this slot (`fifo_expire`).
    pub(super) age_seen: bool,
    /// `has_short_ttime`.
    pub(super) short_think: bool,
    /// It has requests nearly all the time (`IO_bound`).
    pub(super) io_bound: bool,
    pub(super) in_large_burst: bool,
    /// `soft_rt_next_start` is to be found when all is done (`softrt_update`).
    pub(super) soft_rt_update: bool,
    /// Several processes use it.
    pub(super) coop: bool,
    /// It is to be given up by its processes.
    pub(super) split_coop: bool,

    /// When raising began, and how long it lasts; [`Settings::soft_rt_jiffies`]
    /// means soft real-time.
    ///
    /// [`Settings::soft_rt_jiffies`]: super::settings::Settings::soft_rt_jiffies
    pub(super) raised_at: Jiffy,
    /// `wr_cur_max_time`.
    pub(super) raised_for: Jiffy,
    /// When interactive raising began that soft real-time raising replaced
    /// (`wr_start_at_switch_to_srt`).
    pub(super) interactive_at: Jiffy,
    /// From then on a new burst of requests is soft real-time
    /// (`soft_rt_next_start`).
    pub(super) soft_rt_next: Jiffy,
    /// Sectors while raised, and since it became busy, and since when
    /// (`service_from_wr`).
    pub(super) service_raised: i64,
    /// `service_from_backlogged`.
    pub(super) service_busy: i64,
    /// `last_idle_bklogged`.
    pub(super) busy_since: Jiffy,
    /// `first_IO_time`.
    pub(super) first_io: Jiffy,
    pub(super) split_time: Jiffy,

    /// Last completion in ns.
    pub(super) last_end_ns: u64,
    /// `ttime`.
    pub(super) think: ThinkTime,
    /// Span over which I/O intensity is looked at, and its idle part, in ns
    /// (`io_start_time`).
    pub(super) io_start_ns: u64,
    /// `tot_idle_time`.
    pub(super) idle_ns: u64,
    /// Arrivals in time since the last late one (`requests_within_timer`, up to
    /// 5.11).
    pub(super) in_time: u32,
    /// One bit per request, newest lowest: it was far from its predecessor.
    pub(super) seek_history: u32,
    /// End of the last request (`last_request_pos`).
    pub(super) last_end_sector: u64,

    /// Requests of others at the driver up to which more are injected.
    pub(super) inject_limit: u32,
    /// Time from emptiness to the end of the next request without injection,
    /// in ns; 0: not known (`last_serv_time_ns`).
    pub(super) alone_ns: u64,
    /// When the limit was lowered last (`decrease_time_jif`).
    pub(super) lowered: Jiffy,

    /// The queue whose completions bring this one's requests (`waker_bfqq`).
    pub(super) waker: Option<QueueId>,
    /// `tentative_waker_bfqq`.
    pub(super) tentative_waker: Option<QueueId>,
    /// `num_waker_detections`.
    pub(super) waker_sightings: u32,
    /// `waker_detection_started`.
    pub(super) waker_since_ns: u64,
    /// Queues whose waker this one is (`woken_list`).
    pub(super) woken: Chain,

    /// Group in whose tree of positions it is filed.
    pub(super) filed: Option<GroupId>,
}

/// What a new queue starts with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birth {
    pub(super) pid: i64,
    pub(super) sync: bool,
    pub(super) level: u32,
    pub(super) max_budget: i64,
    pub(super) jiffy: Jiffy,
    pub(super) now_ns: u64,
    pub(super) lowered: Jiffy,
}

impl Queue {
    /// A queue that nobody holds yet.
    pub(super) fn new(b: Birth) -> Queue {
        Queue {
            pid: b.pid,
            sync: b.sync,
            level: b.level,
            new_level: b.level,
            refs: 0,
            stable_refs: 0,
            owner: None,
            target: None,
            created: b.jiffy,
            sort: SectorTree::default(),
            fifo: List::EMPTY,
            next: None,
            queued: [0; 2],
            dispatched: 0,
            max_budget: b.max_budget,
            budget_timeout: LONG_AGO,
            busy: false,
            just_created: b.sync,
            wait_request: false,
            keeps_budget: false,
            age_seen: false,
            short_think: b.sync,
            io_bound: true,
            in_large_burst: false,
            soft_rt_update: false,
            coop: false,
            split_coop: false,
            raised_at: b.jiffy,
            raised_for: 0,
            interactive_at: LONG_AGO,
            soft_rt_next: b.jiffy,
            service_raised: 0,
            service_busy: 0,
            busy_since: 0,
            first_io: 0,
            split_time: LONG_AGO,
            last_end_ns: b.now_ns,
            think: ThinkTime::default(),
            io_start_ns: b.now_ns,
            idle_ns: 0,
            in_time: 0,
            seek_history: 1,
            last_end_sector: 0,
            inject_limit: 0,
            alone_ns: 0,
            lowered: b.lowered,
            waker: None,
            tentative_waker: None,
            waker_sightings: 0,
            waker_since_ns: 0,
            woken: Chain::default(),
            filed: None,
        }
    }

    /// The device has no request any more: it has none either.
    pub(super) fn check_conservation(&self) {
        assert!(
            self.is_empty() && self.fifo.is_empty() && self.next.is_none(),
            "a request is gone that waits in a queue"
        );
        assert_eq!(
            (self.queued, self.dispatched),
            ([0; 2], 0),
            "a queue counts requests that are gone"
        );
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sort.is_empty()
    }

    /// More than 19 of the last 32 requests were far from their predecessors
    /// (`BFQQ_SEEKY`).
    pub(super) fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 19
    }

    /// `BFQQ_TOTALLY_SEEKY`.
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.seek_history == u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_seeks_of_thirty_two() {
        let mut x = Queue::new(Birth {
            pid: 1,
            sync: true,
            level: 4,
            max_budget: 0,
            jiffy: 0,
            now_ns: 0,
            lowered: 0,
        });
        assert_eq!(x.seek_history, 1);
        for _ in 0..18 {
            x.seek_history = x.seek_history << 1 | 1;
        }
        assert!(!x.is_seeky(), "19 of 32");
        x.seek_history = x.seek_history << 1 | 1;
        assert!(x.is_seeky());
        x.seek_history = x.seek_history << 1 | 1;
        assert_eq!(x.seek_history, 0x001f_ffff);
        assert!(x.is_seeky() && !x.is_totally_seeky());
        x.seek_history = u32::MAX;
        assert!(x.is_totally_seeky());
    }
}
