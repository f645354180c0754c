// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a bio from `submit_bio` to its request.

use crate::mq::{Queue, Tags, WbtAdmit, WbtClass};
use crate::submit::EOPNOTSUPP;
use crate::{Cx, Pending, RqId, RqState, SleepsFor, Submit, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioFlags, Dev, IoPrio, Op, PrioClass, TaskId};

/// How far a bio came whose task sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// It does not sleep.
    #[default]
    None,
    /// It waits for writes to finish; then it is counted in the class.
    Throttled(WbtClass),
    /// It waits for a tag, and is counted in the class.
    Tag(TagWait, Option<WbtClass>),
    /// It has a request, for which its task has the processor; it is counted in the class.
    Request(RqId, Option<WbtClass>),
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
        let mut pending = Pending {
            bio,
            queued: cx.now,
        };
        pending.bio.ioprio = self.priority(cx, &bio);
        pending.bio.group = cx.tasks.group_of(&bio);
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
        events::bio_event(dev, cx, Action::Queue, Kind::Queue, &pending.bio);
        self.go_on(cx, &mut pending)
    }

    /// A task that slept for a request goes on.
    pub fn resume(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        let task = pending.bio.task;
        let went_on = match std::mem::take(&mut self.submitter(task).step) {
            Step::None => unreachable!("only a task that slept goes on"),
            Step::Throttled(class) => self.allocate_and_queue(cx, &pending, Some(class)),
            Step::Tag(wait, class) => {
                self.end_wait_for_tag(cx, wait.hctx);
                let rq = self.obtain_awaited(cx, &pending.bio, wait.depth);
                self.queue_with(cx, rq, &pending, class, wait.depth)
            }
            Step::Request(rq, class) => self.queue_paid(cx, rq, &pending, class),
        };
        match went_on {
            Went::On => {}
            Went::Sleeps => return Submit::Sleeps(pending),
            Went::Pays => return Submit::Pays(pending),
            Went::Refused => unreachable!("who sleeps or pays waits for requests"),
        }
        self.end_implicit_plug(cx, task);
        match self.submitter(task).rest.take() {
            Some(mut rest) if !self.is_held(cx, &rest.bio, true) => self.go_on(cx, &mut rest),
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
            let part = front.as_ref().unwrap_or(pending);
            self.start_implicit_plug(task);
            let went_on = self.submit_part(cx, part);
            if went_on == Went::Refused {
                self.end_implicit_plug(cx, task);
                self.refuse(cx, pending);
                return Submit::Refused;
            }
            if went_on != Went::On {
                let part = *part;
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

    /// A part is merged (`blk_mq_attempt_bio_merge`), or it passes write-back
    /// throttling (`rq_qos_throttle`) and gets a request.
    fn submit_part(&mut self, cx: &mut Cx<'_>, part: &Pending) -> Went {
        if is_mergeable(&part.bio)
            && self.core.limits.queue.nomerges < 2
            && (self.merge_into_plug(cx, part) || self.merge_bio(cx, part))
        {
            self.push_runs(cx);
            return Went::On;
        }
        let admitted = match &mut self.wbt {
            Some(wbt) => wbt.try_admit(cx.timers, &part.bio),
            None => WbtAdmit::Untracked,
        };
        match admitted {
            WbtAdmit::Untracked => self.allocate_and_queue(cx, part, None),
            WbtAdmit::Tracked(class) => self.allocate_and_queue(cx, part, Some(class)),
            WbtAdmit::Sleeps(class) => {
                self.sleep(cx, &part.bio, Step::Throttled(class));
                Went::Sleeps
            }
        }
    }

    /// Steps 8 to 12 of the life of a bio: a request, then into the plug, the
    /// scheduler, a software queue or the driver.
    fn allocate_and_queue(
        &mut self,
        cx: &mut Cx<'_>,
        part: &Pending,
        class: Option<WbtClass>,
    ) -> Went {
        if let Some(rq) = self.take_cached(&part.bio) {
            return self.queue_with(cx, Some(rq), part, class, None);
        }
        let depth = self.depth_for(cx, &part.bio);
        let rq = self.obtain_request(cx, &part.bio, depth);
        self.queue_with(cx, rq, part, class, depth)
    }

    /// The rest of it, once there is a request; the task sleeps if there is none.
    fn queue_with(
        &mut self,
        cx: &mut Cx<'_>,
        rq: Option<RqId>,
        part: &Pending,
        class: Option<WbtClass>,
        depth: Option<u32>,
    ) -> Went {
        let bio = &part.bio;
        let Some(rq) = rq else {
            if bio.flags.has(BioFlags::NOWAIT) {
                return Went::Refused;
            }
            self.sleep_for_tag(cx, bio, class, depth);
            return Went::Sleeps;
        };
        self.core.work.requests += 1;
        if self.pays_for_requests {
            self.submitter(bio.task).step = Step::Request(rq, class);
            return Went::Pays;
        }
        self.queue_paid(cx, rq, part, class)
    }

    /// The rest of it, once the task has had the processor for the request.
    fn queue_paid(
        &mut self,
        cx: &mut Cx<'_>,
        rq: RqId,
        part: &Pending,
        class: Option<WbtClass>,
    ) -> Went {
        let bio = &part.bio;
        events::bio_event(self.core.dev, cx, Action::GetRequest, Kind::GetRequest, bio);
        self.core.rqs.fill(rq, bio, part.queued);
        self.core.rqs[rq].state |= match class {
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
        self.submitter(bio.task).wait_queue = self.request_tags(h).wait_queue();
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
            let tags = self.hctxs[usize::from(h)].sched_tags.as_mut();
            sched_tag = Some(tags.expect("a scheduler has tags").get(cpu, depth)?);
        } else {
            let tags = &mut self.hctxs[usize::from(h)].driver_tags;
            tag = Some(tags.get(cpu, None)?);
        }
        let context = cx.tasks.io_context_of(bio.task);
        let id = (self.core.rqs).alloc(bio.op, bio.flags, context, cx.jiffies);
        let rq = &mut self.core.rqs[id];
        rq.allocated = cx.now;
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
    fn sleep_for_tag(
        &mut self,
        cx: &mut Cx<'_>,
        bio: &Bio,
        class: Option<WbtClass>,
        depth: Option<u32>,
    ) {
        let hctx = self.hctx_of(cx.running.cpu);
        let queue = self.submitter(bio.task).wait_queue;
        self.request_tags(hctx).wait(queue, bio.task);
        self.sleep(cx, bio, Step::Tag(TagWait { hctx, depth }, class));
    }

    /// A task that waited for a tag of a hardware queue was woken. If it runs on a
    /// CPU of another one now, somebody else is to have the tag (`blk_mq_get_tag`).
    fn end_wait_for_tag(&mut self, cx: &mut Cx<'_>, h: u16) {
        let moved = self.hctx_of(cx.running.cpu) != h;
        let hctx = &mut self.hctxs[usize::from(h)];
        let tags = hctx.sched_tags.as_mut().unwrap_or(&mut hctx.driver_tags);
        tags.finish_wait();
        if moved {
            tags.pass_on(&mut self.wakes);
            self.push_wakes(cx);
        }
    }

    /// What a task sleeps for whose submission said that it does.
    pub fn sleeps_for(&self, task: TaskId) -> SleepsFor {
        match self.submitters[task].step {
            Step::Throttled(_) => SleepsFor::WriteBack,
            Step::None | Step::Tag(..) | Step::Request(..) => SleepsFor::Request,
        }
    }

    fn sleep(&mut self, cx: &mut Cx<'_>, bio: &Bio, step: Step) {
        self.submitter(bio.task).step = step;
        events::bio_truth(cx, Kind::SleepRequest, bio, 0);
    }

    /// The tags that requests are allocated with.
    fn request_tags(&mut self, h: u16) -> &mut Tags {
        let hctx = &mut self.hctxs[usize::from(h)];
        hctx.sched_tags.as_mut().unwrap_or(&mut hctx.driver_tags)
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
