// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task plugs (2.6.39 and later): a list of requests that a task holds back
//! while it submits.

use crate::sq::{FlushSort, Queue};
use crate::{Cx, Effect, List, Pending, RqId};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioFlags, TaskId};

/// What one task holds back for this queue (`blk_plug`).
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskPlug {
    /// Nesting of start and finish; only the outermost collects.
    depth: u32,
    list: List,
    /// Requests the last merge walk saw (`request_count`).
    walked: u32,
}

/// How a plug came to be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    /// The driver is called at once, in the task.
    Explicit,
    /// The task is about to sleep; kblockd calls the driver (`from_schedule`).
    FromSchedule,
}

impl Queue {
    fn has_plug(&self, task: TaskId) -> bool {
        self.plugs.get(task).is_some_and(|p| p.depth > 0)
    }

    /// The task starts to collect requests (`blk_start_plug`). Calls nest. Nothing
    /// before 2.6.39.
    pub fn start_plug(&mut self, task: TaskId) {
        if self.core.feat.task_plug {
            self.plugs.entry(task).depth += 1;
        }
    }

    /// The task stops collecting: what it holds is inserted, U, and the driver is
    /// called (`blk_finish_plug`).
    pub fn finish_plug(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if !self.has_plug(task) {
            return;
        }
        if self.plugs[task].depth == 1 {
            self.flush_plug(cx, task, Flush::Explicit, Kind::Unplug);
        }
        self.plugs[task].depth -= 1;
    }

    /// The task is about to sleep for I/O (`blk_flush_plug`,
    /// `blk_schedule_flush_plug`).
    pub fn flush_plug_to_sleep(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let how = if self.core.feat.io_schedule_defers {
            Flush::FromSchedule
        } else {
            Flush::Explicit
        };
        self.flush_plug(cx, task, how, Kind::UnplugSleep);
    }

    /// Tries the requests on the task's plug, newest first (`attempt_plug_merge`,
    /// later `blk_attempt_plug_merge`). True if merged.
    pub(crate) fn merge_into_plug(&mut self, cx: &mut Cx<'_>, pending: &Pending) -> bool {
        let task = pending.bio.task;
        if !self.has_plug(task) {
            return false;
        }
        let (mut at, mut walked) = (self.plugs[task].list.back(), 0);
        let mut merged = false;
        if self.core.limits.queue.nomerges < 2 {
            while let Some(rq) = at {
                walked += 1;
                if self.try_plugged(cx, rq, pending) {
                    merged = true;
                    break;
                }
                at = List::prev(&self.core.rqs, rq);
            }
        }
        self.plugs[task].walked = walked;
        merged
    }

    fn try_plugged(&mut self, cx: &mut Cx<'_>, rq: RqId, pending: &Pending) -> bool {
        let ok = if self.core.feat.plug_asks_allow_merge {
            self.merge_allowed(cx, rq, &pending.bio)
        } else {
            self.core.merge_ok(rq, &pending.bio)
        };
        let Some(side) = self.core.rqs[rq].side_of(&pending.bio).filter(|_| ok) else {
            return false;
        };
        if !self.core.fits(rq, &pending.bio) {
            self.core.set_nomerge(rq);
            return false;
        }
        self.join(cx, rq, pending, side);
        true
    }

    /// A filled request goes to the task's plug, or straight to the scheduler
    /// and the driver.
    pub(crate) fn add_with_task_plug(&mut self, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        let task = bio.task;
        if !self.has_plug(task) {
            self.insert_unplugged(cx, rq);
            self.run(cx);
            return;
        }
        let plug = &self.plugs[task];
        let (newest, walked) = (
            plug.list.back(),
            std::mem::take(&mut self.plugs[task].walked),
        );
        match newest {
            None => self.plug_event(cx),
            Some(newest) if self.plug_is_full(newest, walked) => {
                self.flush_plug(cx, task, Flush::Explicit, Kind::Unplug);
                if self.core.feat.plug_event_after_flush {
                    self.plug_event(cx);
                }
            }
            Some(_) => {}
        }
        self.plugs[task].list.push_back(&mut self.core.rqs, rq);
    }

    /// Whether the plug is flushed before it takes another request
    /// (`BLK_MAX_REQUEST_COUNT`, `BLK_PLUG_FLUSH_SIZE`).
    fn plug_is_full(&self, newest: RqId, walked: u32) -> bool {
        let feat = &self.core.feat;
        (feat.plug_max_requests > 0 && walked >= feat.plug_max_requests)
            || (feat.plug_flush_sectors > 0
                && self.core.rqs[newest].nr_sectors >= feat.plug_flush_sectors)
    }

    fn plug_event(&mut self, cx: &mut Cx<'_>) {
        self.core.queue_event(cx, Action::Plug, 0);
        cx.truth_note(Kind::Plug, 0, "");
    }

    fn insert_unplugged(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        if self.core.rqs[rq].flags.any(BioFlags::FLUSH | BioFlags::FUA) {
            self.insert_flush(cx, rq);
        } else {
            self.insert_sorted(cx, rq);
        }
    }

    /// Inserts everything the task holds (I each), then one unplug event
    /// (`blk_flush_plug_list`).
    fn flush_plug(&mut self, cx: &mut Cx<'_>, task: TaskId, how: Flush, kind: Kind) {
        if !self.has_plug(task) || self.plugs[task].list.is_empty() {
            return;
        }
        if self.core.feat.flush_sort == FlushSort::Sector {
            let list = &mut self.plugs[task].list;
            list.sort_by_key(&mut self.core.rqs, |rq| rq.sector);
        }
        let mut count = 0;
        while let Some(rq) = self.plugs[task].list.pop_front(&mut self.core.rqs) {
            if self.core.rqs[rq].flags.any(BioFlags::FLUSH | BioFlags::FUA) {
                self.insert_flush(cx, rq);
            } else {
                self.insert_sort_merge(cx, rq);
            }
            count += 1;
        }
        let action = match how {
            Flush::Explicit => Action::Unplug,
            Flush::FromSchedule => Action::UnplugTimer,
        };
        self.core.queue_event(cx, action, count);
        cx.truth_note(kind, count, "");
        match how {
            Flush::Explicit => self.run(cx),
            Flush::FromSchedule => cx.ask(Effect::RunWork),
        }
    }
}
