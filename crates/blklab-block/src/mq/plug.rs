// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task plugs: requests that a task holds back while it submits.

use crate::mq::merge::Attempt;
use crate::mq::submit::is_ordered;
use crate::mq::{PlugMerge, PlugOrder, Queue, Refusal};
use crate::{Cx, List, Pending, RqId, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, TaskId};

/// A request of this many sectors makes the next one flush the plug
/// (`BLK_PLUG_FLUSH_SIZE`, 128 KiB).
const FLUSH_SECTORS: u32 = 256;

/// What one task holds back for this queue (`blk_plug`).
#[derive(Debug, Default)]
pub(crate) struct Plug {
    /// Nesting of start and finish; only the outermost collects.
    depth: u32,
    /// In order of submission (`mq_list`).
    list: List,
    /// Requests that were allocated ahead of their bios (`cached_rq`, later
    /// `cached_rqs`).
    cached: Vec<RqId>,
    /// Requests that the task says it will need.
    nr_ios: u32,
    /// It was started for one bio.
    pub(crate) is_implicit: bool,
}

/// How a plug came to be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    /// Hardware queues run at once, in the task.
    Explicit,
    /// The task is about to sleep; kblockd runs them (`from_schedule`).
    FromSchedule,
}

impl Queue {
    pub(crate) fn has_plug(&self, task: TaskId) -> bool {
        self.submitters.get(task).is_some_and(|s| s.plug.depth > 0)
    }

    fn plug(&mut self, task: TaskId) -> &mut Plug {
        &mut self.submitters[task].plug
    }

    /// The task starts to collect requests (`blk_start_plug`). Calls nest.
    pub fn start_plug(&mut self, task: TaskId) {
        self.start_plug_for(task, 1);
    }

    /// The task starts to collect requests, about `nr_ios` of them: they are
    /// allocated together (5.16; `blk_start_plug_nr_ios`). Calls nest.
    pub fn start_plug_for(&mut self, task: TaskId, nr_ios: u32) {
        let nr_ios = if self.core.feat.batch_allocation {
            nr_ios.min(BATCH_MAX)
        } else {
            1
        };
        let plug = &mut self.submitter(task).plug;
        plug.depth += 1;
        if plug.depth == 1 {
            plug.nr_ios = nr_ios;
        }
    }

    /// The task stops collecting: what it holds goes on (`blk_finish_plug`).
    pub fn finish_plug(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if !self.has_plug(task) {
            return;
        }
        if self.plug(task).depth == 1 {
            self.flush_plug(cx, task, Flush::Explicit);
        }
        self.plug(task).depth -= 1;
    }

    /// The task is about to sleep (`blk_schedule_flush_plug`, from 5.16 on
    /// `blk_flush_plug`).
    pub fn flush_plug_to_sleep(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if self.has_plug(task) {
            self.flush_plug(cx, task, Flush::FromSchedule);
        }
    }

    /// Tries the requests on the task's plug (`blk_attempt_plug_merge`). True if
    /// merged.
    pub(crate) fn merge_into_plug(&mut self, cx: &mut Cx<'_>, part: &Pending) -> bool {
        let task = part.bio.task;
        if !self.has_plug(task) {
            return false;
        }
        let mut at = self.plug(task).list.back();
        while let Some(rq) = at {
            if self.attempt(cx, rq, part) == Attempt::Done {
                return true;
            }
            at = match self.core.feat.plug_merge {
                PlugMerge::All => List::prev(&self.core.rqs, rq),
                PlugMerge::Newest => None,
            };
        }
        false
    }

    /// A request that was allocated ahead, for this bio
    /// (`blk_mq_get_cached_request`; in 6.12 `blk_mq_peek_cached_request`,
    /// `blk_mq_use_cached_rq`).
    pub(crate) fn take_cached(&mut self, bio: &Bio) -> Option<RqId> {
        if !self.has_plug(bio.task) || is_ordered(bio) {
            return None;
        }
        let id = self.plug(bio.task).cached.pop()?;
        let rq = &mut self.core.rqs[id];
        rq.op = bio.op;
        rq.flags = bio.flags;
        rq.ioprio = bio.ioprio;
        Some(id)
    }

    /// Allocates what the task said that it will need, once per plug; nothing where
    /// the depth is limited (`__blk_mq_alloc_requests_batch`, `blk_mq_get_tags`).
    pub(crate) fn cache_more(&mut self, cx: &mut Cx<'_>, bio: &Bio, depth: Option<u32>) {
        if !self.has_plug(bio.task) {
            return;
        }
        let more = std::mem::replace(&mut self.plug(bio.task).nr_ios, 1);
        if depth.is_some() {
            return;
        }
        for _ in 1..more {
            let Some(rq) = self.get_request(cx, bio, None) else {
                return;
            };
            self.plug(bio.task).cached.insert(0, rq);
        }
    }

    /// A filled request joins the task's plug (`blk_add_rq_to_plug`).
    pub(crate) fn add_to_plug(&mut self, cx: &mut Cx<'_>, rq: RqId, task: TaskId) {
        if self.core.feat.limited_plug && self.elv.is_none() && self.core.limits.nr_hw_queues > 1 {
            self.replace_in_plug(cx, rq, task);
            return;
        }
        match self.plug(task).list.back() {
            None => self.plug_event(cx),
            Some(newest) if self.plug_is_full(newest, task) => {
                self.flush_plug(cx, task, Flush::Explicit);
                self.plug_event(cx);
            }
            Some(_) => {}
        }
        self.submitters[task]
            .plug
            .list
            .push_back(&mut self.core.rqs, rq);
    }

    /// A plug that holds one request: the older one is issued (U, count 1;
    /// `blk_mq_submit_bio`).
    fn replace_in_plug(&mut self, cx: &mut Cx<'_>, rq: RqId, task: TaskId) {
        let list = &mut self.submitters[task].plug.list;
        let older = list.pop_front(&mut self.core.rqs);
        list.push_back(&mut self.core.rqs, rq);
        self.plug_event(cx);
        if let Some(older) = older {
            self.unplug_event(cx, Flush::Explicit, 1);
            self.issue_directly(cx, older);
        }
    }

    /// Whether the plug is flushed before it takes another request
    /// (`blk_plug_max_rq_count`).
    fn plug_is_full(&self, newest: RqId, task: TaskId) -> bool {
        let feat = &self.core.feat;
        let may_grow = self.core.limits.queue.nomerges < 2 || feat.plug_flush_ignores_nomerges;
        self.submitters[task].plug.list.len() >= feat.plug_max_requests
            || (may_grow && self.core.rqs[newest].nr_sectors >= FLUSH_SECTORS)
    }

    fn plug_event(&mut self, cx: &mut Cx<'_>) {
        events::queue_event(self.core.dev, cx, Action::Plug, 0);
        cx.truth_note(Kind::Plug, 0, "");
    }

    fn unplug_event(&mut self, cx: &mut Cx<'_>, how: Flush, count: u32) {
        let (action, kind) = match how {
            Flush::Explicit => (Action::Unplug, Kind::Unplug),
            Flush::FromSchedule => (Action::UnplugTimer, Kind::UnplugSleep),
        };
        events::queue_event(self.core.dev, cx, action, u64::from(count));
        cx.truth_note(kind, u64::from(count), "");
    }

    /// What the task holds goes to the driver, the scheduler or the software queues
    /// (`blk_mq_flush_plug_list`).
    fn flush_plug(&mut self, cx: &mut Cx<'_>, task: TaskId, how: Flush) {
        let mut list = std::mem::take(&mut self.plug(task).list);
        if !list.is_empty() {
            if self.elv.is_none() && self.core.feat.plug_issues_directly && how == Flush::Explicit {
                self.issue_plug(cx, &mut list);
            }
            self.flush_groups(cx, list, how);
        }
        while let Some(rq) = self.plug(task).cached.pop() {
            self.free_request(cx, rq);
        }
        self.push_runs(cx);
    }

    /// Hands a plug's requests to the driver as long as it takes them
    /// (`blk_mq_plug_issue_direct`).
    fn issue_plug(&mut self, cx: &mut Cx<'_>, list: &mut List) {
        if self.core.feat.plug_order != PlugOrder::NewestFirst {
            self.unplug_event(cx, Flush::Explicit, list.len());
        }
        if self.core.limits.refusal == Refusal::TakesLists {
            self.issue_list(cx, list);
        }
        while let Some(rq) = self.first_of(list) {
            list.remove(&mut self.core.rqs, rq);
            if !self.issue_from_plug(cx, rq, true) {
                return;
            }
        }
    }

    /// Requests of the same software and hardware queue are one group
    /// (`blk_mq_dispatch_plug_list`): U, then they go to the driver
    /// (`blk_mq_try_issue_list_directly`) or are inserted in order of submission
    /// (`blk_mq_sched_insert_requests`, in 6.12 `blk_mq_insert_requests`).
    fn flush_groups(&mut self, cx: &mut Cx<'_>, mut list: List, how: Flush) {
        if self.core.feat.plug_order == PlugOrder::Sorted && list.len() > 2 {
            self.sort_by_queue(&mut list);
        }
        while !list.is_empty() {
            let mut group = self.take_group(&mut list);
            self.unplug_event(cx, how, group.len());
            let first = group.front().expect("a group is not empty");
            let h = self.core.rqs[first].hctx;
            let explicit = how == Flush::Explicit;
            if self.elv.is_none() && explicit && self.hctxs[usize::from(h)].dispatch_busy == 0 {
                while let Some(rq) = group.pop_front(&mut self.core.rqs) {
                    if !self.issue_from_plug(cx, rq, group.is_empty()) {
                        break;
                    }
                }
                if group.is_empty() {
                    continue;
                }
            }
            while let Some(rq) = group.pop_front(&mut self.core.rqs) {
                self.insert(cx, rq, false);
            }
            if explicit {
                self.run_hctx_now(cx, h);
            } else {
                self.core.run_hctx(h);
            }
        }
    }

    /// The requests of the list's first group, in order of submission.
    fn take_group(&mut self, list: &mut List) -> List {
        let lead = self.first_of(list).expect("a list that is not empty");
        let (cpu, hctx) = (self.core.rqs[lead].cpu, self.core.rqs[lead].hctx);
        list.take_where(&mut self.core.rqs, |rq| rq.cpu == cpu && rq.hctx == hctx)
    }

    /// The request of a plug's list that goes first.
    fn first_of(&self, list: &List) -> Option<RqId> {
        match self.core.feat.plug_order {
            PlugOrder::NewestFirst => list.back(),
            PlugOrder::Sorted | PlugOrder::OldestFirst => list.front(),
        }
    }

    /// Sorts a list by CPU and sector (5.10; `plug_rq_cmp`) if its requests are
    /// those of several CPUs; those of one stay as they are.
    fn sort_by_queue(&mut self, list: &mut List) {
        let cpu = |id: RqId| self.core.rqs[id].cpu;
        let first = list.front().map(cpu);
        if list.iter(&self.core.rqs).any(|id| Some(cpu(id)) != first) {
            list.sort_by_key(&mut self.core.rqs, |rq| (rq.cpu, rq.sector));
        }
    }
}

/// Most requests that are allocated together (`BLK_MAX_REQUEST_COUNT`).
const BATCH_MAX: u32 = 32;
