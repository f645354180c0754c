// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a bio from `submit_bio` to its request.

use crate::mq::{Queue, WbtClass};
use crate::submit::EOPNOTSUPP;
use crate::{Cx, Pending, RqId, RqState, SleepsFor, Submit, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioFlags, Dev, IoPrio, Op, PrioClass, PrioPolicy, TaskId, Time};

/// How far a bio came whose task sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// It does not sleep.
    #[default]
    None,
    /// The policy at this place of the chain holds it back.
    Throttled(usize),
    /// It waits for a tag.
    Tag(TagWait),
    /// It has a request, for which its task has the processor.
    Request(RqId),
}

/// What became of a bio or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    /// The queue has it.
    On,
    /// Its task sleeps.
    Sleeps,
    /// Its task has the processor for its request.
    Pays,
    /// Its task would have to sleep, and does not.
    Refused,
}

/// What a task waits for that sleeps for a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagWait {
    /// The hardware queue.
    hctx: u16,
    /// The limit that the scheduler named when the bio came.
    depth: Option<u32>,
    /// Since when.
    since: Time,
}

/// Whether a bio asks for a flush before it or for writing through.
pub(crate) fn is_ordered(bio: &Bio) -> bool {
    bio.flags.any(BioFlags::FLUSH | BioFlags::FUA)
}

impl Queue {
    /// A task submits a bio (Q; `submit_bio_noacct`). Its sectors lie on the
    /// device.
    pub fn submit(&mut self, cx: &mut Cx<'_>, bio: Bio) -> Submit {
        self.submit_from(cx, bio, None)
    }

    /// A task submits a bio; if a stacked device passed its own bio on, from
    /// that device and sector (A).
    pub fn submit_from(
        &mut self,
        cx: &mut Cx<'_>,
        bio: Bio,
        stacked: Option<(Dev, u64)>,
    ) -> Submit {
        let mut pending = Pending::new(bio, cx.now);
        pending.bio.ioprio = self.priority(cx, &bio);
        pending.bio.group = cx.tasks.group_of(&bio);
        pending.bio.ioprio = self.group_priority(cx, &pending.bio);
        if is_ordered(&bio) {
            if self.core.limits.queue.has_flush {
                pending.bio.flags |= BioFlags::SYNC;
            } else {
                pending.bio.flags = bio.flags.without(BioFlags::FLUSH | BioFlags::FUA);
                if bio.nr_sectors == 0 {
                    self.end_bio(cx, &pending, 0);
                    return Submit::Done;
                }
            }
        }
        if bio.op == Op::Discard && self.core.limits.queue.discard.is_none() {
            self.end_bio(cx, &pending, EOPNOTSUPP);
            return Submit::Done;
        }
        let dev = self.core.dev;
        if let Some(start) = self.core.limits.queue.partition_start {
            events::partition_event(dev, cx, &pending.bio, start);
        }
        if let Some((from_dev, sector)) = stacked {
            events::remap_event(dev, cx, &pending.bio, from_dev, sector);
        }
        if self.is_held(cx, &pending.bio, false) {
            return Submit::Done;
        }
        self.count_for_group(&pending.bio);
        events::bio_event(dev, cx, Action::Queue, Kind::Queue, &pending.bio);
        self.go_on(cx, &mut pending)
    }

    /// A task that slept for a request goes on.
    pub fn resume(&mut self, cx: &mut Cx<'_>, mut pending: Pending) -> Submit {
        let task = pending.bio.task;
        let went_on = match std::mem::take(&mut self.submitter(task).step) {
            Step::None => unreachable!("only a task that slept goes on"),
            Step::Throttled(at) => {
                // Policies hold up who does not sleep for a request, too. Without one it is
                // refused then, and a worker waits in its place: here it waits itself.
                pending.bio.flags = pending.bio.flags.without(BioFlags::NOWAIT);
                self.pass_policies(cx, &mut pending, Some(at))
            }
            Step::Tag(wait) => {
                self.end_wait_for_tag(cx, wait.hctx);
                let rq = self.obtain_awaited(cx, &pending.bio, wait.depth);
                self.queue_with(cx, rq, &pending, wait.depth, wait.since)
            }
            Step::Request(rq) => self.queue_paid(cx, rq, &pending),
        };
        match went_on {
            Went::On => {}
            Went::Sleeps => return Submit::Sleeps(pending),
            Went::Pays => return Submit::Pays(pending),
            Went::Refused => unreachable!("who sleeps or pays waits for requests"),
        }
        self.end_implicit_plug(cx, task);
        match self.submitter(task).rest.take() {
            Some(mut rest) if !self.is_held(cx, &rest.bio, true) => {
                self.count_for_group(&rest.bio);
                self.go_on(cx, &mut rest)
            }
            _ => Submit::Done,
        }
    }

    /// The bio's parts, one after the other (`blk_mq_submit_bio`).
    pub(crate) fn go_on(&mut self, cx: &mut Cx<'_>, pending: &mut Pending) -> Submit {
        let task = pending.bio.task;
        loop {
            if self.is_refused(pending) {
                self.refuse(cx, pending);
                return Submit::Refused;
            }
            let front = self.split(cx, pending);
            let mut part = front.unwrap_or(*pending);
            if self.core.feat.latency_begins_in_queue {
                part.qos.issued = cx.now;
            }
            self.start_implicit_plug(task);
            let went_on = self.submit_part(cx, &mut part);
            if went_on == Went::Refused {
                self.end_implicit_plug(cx, task);
                self.refuse(cx, pending);
                return Submit::Refused;
            }
            if went_on != Went::On {
                self.submitter(task).rest = front.map(|_| *pending);
                return match went_on {
                    Went::Pays => Submit::Pays(part),
                    _ => Submit::Sleeps(part),
                };
            }
            self.end_implicit_plug(cx, task);
            if front.is_none() || self.is_held(cx, &pending.bio, true) {
                return Submit::Done;
            }
            self.count_for_group(&pending.bio);
        }
    }

    /// Whether a bio would have to be split whose submitter does not sleep for the parts
    /// (`bio_split_rw` of block/blk-merge.c, 6.1).
    fn is_refused(&self, pending: &Pending) -> bool {
        pending.bio.flags.has(BioFlags::NOWAIT)
            && self.core.feat.refuses_to_split
            && self.splits(&pending.bio)
    }

    /// Nobody has the bio (`bio_wouldblock_error`).
    fn refuse(&mut self, cx: &mut Cx<'_>, pending: &Pending) {
        events::refused_event(self.core.dev, cx, &pending.bio);
    }

    /// A part is merged (`blk_mq_attempt_bio_merge`), or it passes the policies and gets
    /// a request.
    fn submit_part(&mut self, cx: &mut Cx<'_>, part: &mut Pending) -> Went {
        if is_mergeable(&part.bio)
            && self.core.limits.queue.nomerges < 2
            && (self.merge_into_plug(cx, part) || self.merge_bio(cx, part))
        {
            self.push_runs(cx);
            return Went::On;
        }
        self.pass_policies(cx, part, None)
    }

    /// A part passes the policies (`rq_qos_throttle`), those behind the one that it slept
    /// for if it did, and gets a request.
    fn pass_policies(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        slept_at: Option<usize>,
    ) -> Went {
        let sleeps_at = self.policies.pass(cx, part, slept_at, &mut self.wakes);
        self.push_wakes(cx);
        if let Some(at) = sleeps_at {
            self.sleep(cx, &part.bio, Step::Throttled(at));
            return Went::Sleeps;
        }
        let went = self.allocate_and_queue(cx, part);
        if went == Went::Refused {
            for policy in self.policies.each() {
                policy.refused(cx, part, &mut self.wakes);
            }
            self.push_wakes(cx);
        }
        went
    }

    /// Steps 8 to 12 of the life of a bio: a request, then into the plug, the
    /// scheduler, a software queue or the driver.
    fn allocate_and_queue(&mut self, cx: &mut Cx<'_>, part: &Pending) -> Went {
        let now = cx.now;
        if let Some(rq) = self.take_cached(&part.bio) {
            return self.queue_with(cx, Some(rq), part, None, now);
        }
        let depth = self.depth_for(cx, &part.bio);
        let rq = self.obtain_request(cx, &part.bio, depth);
        self.queue_with(cx, rq, part, depth, now)
    }

    /// The rest of it, once there is a request; the task sleeps if there is none.
    fn queue_with(
        &mut self,
        cx: &mut Cx<'_>,
        rq: Option<RqId>,
        part: &Pending,
        depth: Option<u32>,
        since: Time,
    ) -> Went {
        let bio = &part.bio;
        let Some(rq) = rq else {
            if bio.flags.has(BioFlags::NOWAIT) {
                return Went::Refused;
            }
            self.sleep_for_tag(cx, bio, depth, since);
            return Went::Sleeps;
        };
        self.core.rqs[rq].wanted = since;
        self.core.work.requests += 1;
        if self.pays_for_requests {
            self.submitter(bio.task).step = Step::Request(rq);
            return Went::Pays;
        }
        self.queue_paid(cx, rq, part)
    }

    /// The rest of it, once the task has had the processor for the request.
    fn queue_paid(&mut self, cx: &mut Cx<'_>, rq: RqId, part: &Pending) -> Went {
        let bio = &part.bio;
        events::bio_event(self.core.dev, cx, Action::GetRequest, Kind::GetRequest, bio);
        self.core.rqs.fill(rq, part);
        self.core.rqs[rq].state |= match part.qos.class {
            None => RqState::default(),
            Some(WbtClass::Background) => RqState::THROTTLED_WRITE,
            Some(WbtClass::Discard) => RqState::THROTTLED_DISCARD,
        };
        if bio.flags.has(BioFlags::NOMERGE) {
            self.core.rqs[rq].state |= RqState::NOMERGE;
        }
        if is_ordered(bio) && self.insert_flush(cx, rq) {
            self.push_runs(cx);
            return Went::On;
        }
        self.queue_request(cx, rq, bio);
        self.push_runs(cx);
        Went::On
    }

    /// A request that is no flush sequence goes into the plug, the scheduler, a
    /// software queue, or to the driver (the end of `blk_mq_submit_bio`).
    fn queue_request(&mut self, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        let h = self.core.rqs[rq].hctx;
        if self.has_plug(bio.task) {
            self.add_to_plug(cx, rq, bio.task);
            return;
        }
        let busy = self.hctxs[usize::from(h)].dispatch_busy != 0;
        let single = self.core.limits.nr_hw_queues == 1;
        if self.is_scheduled(rq) || (busy && (single || !bio.is_sync())) {
            self.insert(cx, rq, false);
            self.core.run_hctx(h);
        } else {
            self.issue_directly(cx, rq);
        }
    }

    /// The limit of the scheduler for a bio's request. It holds until there is
    /// one, however often the task sleeps (`__blk_mq_alloc_requests` of
    /// block/blk-mq.c).
    fn depth_for(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let limited = !is_ordered(bio) || self.core.feat.flush_is_limited;
        let elv = self.elv.as_mut().filter(|_| limited)?;
        elv.limit_depth(&self.core, cx, bio)
    }

    /// A new request (`__blk_mq_alloc_requests`, earlier `blk_mq_get_request`). If
    /// there is no tag the hardware queue is run, which may free one at once.
    fn obtain_request(&mut self, cx: &mut Cx<'_>, bio: &Bio, depth: Option<u32>) -> Option<RqId> {
        if let Some(rq) = self.get_request(cx, bio, depth) {
            self.cache_more(cx, bio, depth);
            return Some(rq);
        }
        if bio.flags.has(BioFlags::NOWAIT) {
            return None;
        }
        self.obtain_awaited(cx, bio, depth)
    }

    /// The same, for a task that found no tag or was woken: it chooses the wait
    /// queue that it joins if there is still none, whose turn is over even if there
    /// is one, and runs the hardware queue before it looks for a tag
    /// (`blk_mq_get_tag` of block/blk-mq-tag.c).
    fn obtain_awaited(&mut self, cx: &mut Cx<'_>, bio: &Bio, depth: Option<u32>) -> Option<RqId> {
        let h = self.hctx_of(cx.running.cpu);
        self.submitter(bio.task).wait_queue = self.next_wait_queue(h);
        self.run_hctx_now(cx, h);
        self.get_request(cx, bio, depth)
    }

    /// One attempt to get a request, within a limit of the scheduler
    /// (`__blk_mq_get_tag`, `blk_mq_rq_ctx_init`).
    pub(crate) fn get_request(
        &mut self,
        cx: &mut Cx<'_>,
        bio: &Bio,
        depth: Option<u32>,
    ) -> Option<RqId> {
        let cpu = cx.running.cpu;
        let h = self.hctx_of(cpu);
        let (mut sched_tag, mut tag) = (None, None);
        if self.elv.is_some() {
            let tags = self.tags.sched(h).expect("a scheduler has tags");
            sched_tag = Some(tags.get(cpu, depth)?);
        } else {
            tag = Some(self.tags.driver(h).get(cpu, None)?);
        }
        let context = cx.tasks.io_context_of(bio.task);
        let id = (self.core.rqs).alloc(bio.op, bio.flags, context, cx.jiffies);
        let rq = &mut self.core.rqs[id];
        rq.allocated = cx.now;
        rq.wanted = cx.now;
        rq.sched_tag = sched_tag;
        rq.tag = tag;
        rq.cpu = cpu;
        rq.hctx = h;
        rq.ioprio = bio.ioprio;
        rq.group = bio.group;
        if let Some(elv) = &mut self.elv
            && (!is_ordered(bio) || self.core.feat.flush_data_is_ordinary)
        {
            self.core.rqs[id].state |= RqState::POOLED;
            elv.prepare(&mut self.core, cx, id);
        }
        Some(id)
    }

    /// There is no tag: the task joins those that wait for one (`blk_mq_get_tag`).
    fn sleep_for_tag(&mut self, cx: &mut Cx<'_>, bio: &Bio, depth: Option<u32>, since: Time) {
        let hctx = self.hctx_of(cx.running.cpu);
        let queue = self.submitter(bio.task).wait_queue;
        self.tags.of_requests(hctx).wait(queue, bio.task);
        self.sleep(cx, bio, Step::Tag(TagWait { hctx, depth, since }));
    }

    /// A task that waited for a tag of a hardware queue was woken. If it runs on a
    /// CPU of another one now, somebody else is to have the tag (`blk_mq_get_tag`).
    fn end_wait_for_tag(&mut self, cx: &mut Cx<'_>, h: u16) {
        let moved = self.hctx_of(cx.running.cpu) != h;
        let tags = self.tags.of_requests(h);
        tags.finish_wait();
        if moved {
            tags.pass_on(&mut self.wakes);
            self.push_wakes(cx);
        }
    }

    /// What a task sleeps for whose submission said that it does.
    pub fn sleeps_for(&self, task: TaskId) -> SleepsFor {
        match self.submitters[task].step {
            Step::Throttled(at) => self.policies.sleeps_for(at),
            Step::None | Step::Tag(_) | Step::Request(_) => SleepsFor::Request,
        }
    }

    fn sleep(&mut self, cx: &mut Cx<'_>, bio: &Bio, step: Step) {
        self.submitter(bio.task).step = step;
        events::bio_truth(cx, Kind::SleepRequest, bio, 0);
    }

    /// The priority that requests of a bio have: its own, else that of the task;
    /// where the kernel derives one from the nice value, that (`bio_set_ioprio`).
    pub(crate) fn priority(&self, cx: &Cx<'_>, bio: &Bio) -> IoPrio {
        if bio.ioprio.class != PrioClass::None {
            return bio.ioprio;
        }
        let task = cx.tasks.get(bio.task);
        if task.ioprio.class == PrioClass::None && self.core.feat.bio_gets_task_prio {
            return task.derived_ioprio();
        }
        task.ioprio
    }

    /// What a bio's group makes of its priority (`blkcg_set_ioprio`).
    fn group_priority(&self, cx: &Cx<'_>, bio: &Bio) -> IoPrio {
        let policy = match cx.tasks.prio_policy(bio.group) {
            PrioPolicy::NoneToRt if self.core.feat.none_to_rt_promotes => PrioPolicy::PromoteToRt,
            policy => policy,
        };
        policy.apply(bio.ioprio)
    }

    /// The plug that a bio passes through for itself alone (6.12, `__submit_bio`).
    fn start_implicit_plug(&mut self, task: TaskId) {
        if self.core.feat.implicit_plug && !self.has_plug(task) {
            self.submitter(task).plug.is_implicit = true;
            self.start_plug(task);
        }
    }

    fn end_implicit_plug(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if std::mem::take(&mut self.submitter(task).plug.is_implicit) {
            self.finish_plug(cx, task);
        }
    }
}

/// Whether a bio may join a request at all.
fn is_mergeable(bio: &Bio) -> bool {
    !bio.flags
        .any(BioFlags::NOMERGE | BioFlags::FLUSH | BioFlags::FUA)
}
