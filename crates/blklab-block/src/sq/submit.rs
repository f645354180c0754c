// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a bio from `submit_bio` to its request.

use crate::sq::{Ordered, Queue};
use crate::submit::EOPNOTSUPP;
use crate::{Cx, Pending, RqId, Submit};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioFlags, Dev, Op};

impl Queue {
    /// A task submits a bio (Q; `generic_make_request`). Its sectors lie on the
    /// device.
    pub fn submit(&mut self, cx: &mut Cx<'_>, bio: Bio) -> Submit {
        self.submit_from(cx, bio, None)
    }

    /// A task submits a bio; if a stacked device passed its own bio on, from
    /// that device and sector (A).
    #[inline(always)]
    pub fn submit_from(
        &mut self,
        cx: &mut Cx<'_>,
        bio: Bio,
        stacked: Option<(Dev, u64)>,
    ) -> Submit {
        let mut pending = Pending::new(bio, cx.now);
        let ordered = BioFlags::FLUSH | BioFlags::FUA;
        if self.core.feat.ordered != Ordered::Barrier
            && bio.flags.any(ordered)
            && !self.core.limits.queue.has_flush
        {
            pending.bio.flags = bio.flags.without(ordered);
            if bio.nr_sectors == 0 {
                pending.end(cx, 0);
                return Submit::Done;
            }
        }
        if bio.op == Op::Discard && self.core.limits.queue.discard.is_none() {
            pending.end(cx, EOPNOTSUPP);
            return Submit::Done;
        }
        self.core.partition_event(cx, &pending.bio);
        if let Some((from_dev, sector)) = stacked {
            self.core.remap_event(cx, &pending.bio, from_dev, sector);
        }
        if self.gate.has_limits() {
            pending.bio.group = cx.tasks.group_of(&pending.bio);
            if self.gate.is_held(cx, &pending.bio, false) {
                return Submit::Done;
            }
        }
        self.queue_bio(cx, pending)
    }

    /// Q of a bio that no limit of its group holds, and what follows.
    pub(super) fn queue_bio(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        self.core
            .bio_event(cx, Action::Queue, Kind::Queue, &pending.bio);
        if self.core.feat.task_plug {
            self.submit_with_task_plug(cx, pending)
        } else {
            self.submit_with_queue_plug(cx, pending)
        }
    }

    /// A task that slept for a request goes on.
    pub fn resume(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        self.grant_batch(cx, &pending.bio);
        self.allocate_and_add(cx, pending)
    }

    /// Up to 2.6.38: `__make_request`.
    #[inline(always)]
    fn submit_with_queue_plug(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        let bio = &pending.bio;
        let ordered = match self.core.feat.ordered {
            Ordered::Barrier => bio.flags.has(BioFlags::BARRIER),
            _ => bio.flags.any(BioFlags::FLUSH | BioFlags::FUA),
        };
        if ordered && self.core.feat.ordered == Ordered::Barrier && !self.barriers_supported() {
            pending.end(cx, EOPNOTSUPP);
            return Submit::Done;
        }
        if !ordered && !self.core.nothing_waits() && self.merge_bio(cx, &pending) {
            self.unplug_after_submit(cx, bio);
            return Submit::Done;
        }
        self.allocate_and_add(cx, pending)
    }

    /// From 2.6.39 on: `__make_request`, later `blk_queue_bio`.
    fn submit_with_task_plug(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        if !pending.bio.flags.any(BioFlags::FLUSH | BioFlags::FUA)
            && (self.merge_into_plug(cx, &pending) || self.merge_bio(cx, &pending))
        {
            return Submit::Done;
        }
        self.allocate_and_add(cx, pending)
    }

    /// Steps 4 to 6 of the life of a bio: a request, then into the scheduler.
    #[inline(always)]
    fn allocate_and_add(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        let Some(rq) = self.get_request(cx, &pending.bio) else {
            self.sleep_for_request(cx, &pending);
            return Submit::Sleeps(pending);
        };
        self.core.rqs.fill(rq, &pending);
        if self.core.feat.task_plug {
            self.add_with_task_plug(cx, rq, &pending.bio);
        } else {
            self.add_with_queue_plug(cx, rq, &pending.bio);
        }
        Submit::Done
    }

    #[inline(always)]
    fn add_with_queue_plug(&mut self, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        if self.core.nothing_waits() && self.may_plug() {
            self.plug(cx);
        }
        match self.core.feat.ordered {
            Ordered::Barrier if bio.flags.has(BioFlags::BARRIER) => self.insert_barrier(cx, rq),
            Ordered::FlushSerial if bio.flags.any(BioFlags::FLUSH | BioFlags::FUA) => {
                self.insert_flush_serial(cx, rq);
            }
            _ => self.insert_sorted(cx, rq),
        }
        self.unplug_after_submit(cx, bio);
    }

    /// The flag that says "start now", or a queue that is not to be plugged.
    fn unplug_after_submit(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        let now_flag = if self.core.feat.sync_unplugs {
            BioFlags::SYNC
        } else {
            BioFlags::UNPLUG
        };
        if bio.flags.has(now_flag) || !self.may_plug() {
            self.unplug_and_run(cx);
        }
    }
}
