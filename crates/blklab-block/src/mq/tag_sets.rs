// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bitmaps of tags of a device: one for each hardware queue, or one that all have in
//! common (`BLK_MQ_F_TAG_HCTX_SHARED`; of null_blk `shared_tag_bitmap`).

use super::core::SHARED_SCHED_TAGS;
use super::{Core, Elevator, TagRules, Tags};
use blklab_types::TaskId;

/// Tags of a device's driver, and of its scheduler if there is one.
#[derive(Debug)]
pub(super) struct TagSets {
    /// `hctx->tags`.
    driver: Vec<Tags>,
    /// `hctx->sched_tags`; empty without a scheduler.
    sched: Vec<Tags>,
}

impl TagSets {
    pub(super) fn new(core: &Core, elv: Option<&dyn Elevator>) -> TagSets {
        let limits = &core.limits;
        let rules = TagRules::new(&core.feat);
        let sets = if limits.shared_tags {
            1
        } else {
            limits.nr_hw_queues.max(1)
        };
        let tags = |depth| Tags::new(depth, limits.nr_cpus, rules);
        let sched = |elv: &dyn Elevator| {
            let mut tags = if limits.shared_tags {
                let mut tags = tags(SHARED_SCHED_TAGS);
                tags.resize(core.nr_requests);
                tags
            } else {
                tags(core.nr_requests)
            };
            if let Some(depth) = elv.min_shallow_depth(core) {
                tags.set_min_shallow_depth(depth);
            }
            tags
        };
        let nr_driver_tags = match elv {
            Some(_) => limits.queue_depth,
            None => core.nr_requests,
        };
        let sched = elv.map(|elv| (0..sets).map(|_| sched(elv)).collect());
        TagSets {
            driver: (0..sets).map(|_| tags(nr_driver_tags)).collect(),
            sched: sched.unwrap_or_default(),
        }
    }

    /// The driver's tags that a hardware queue takes.
    pub(super) fn driver(&mut self, hctx: u16) -> &mut Tags {
        of_queue(&mut self.driver, hctx)
    }

    /// Whether a hardware queue finds a driver tag.
    pub(super) fn has_driver_tag(&self, hctx: u16) -> bool {
        let tags = &self.driver[place(&self.driver, hctx)];
        tags.busy() < tags.depth()
    }

    /// The scheduler's tags that a hardware queue takes.
    pub(super) fn sched(&mut self, hctx: u16) -> Option<&mut Tags> {
        (!self.sched.is_empty()).then(|| of_queue(&mut self.sched, hctx))
    }

    /// The tags that requests are allocated with.
    pub(super) fn of_requests(&mut self, hctx: u16) -> &mut Tags {
        let sets = if self.sched.is_empty() {
            &mut self.driver
        } else {
            &mut self.sched
        };
        of_queue(sets, hctx)
    }

    /// Gives a driver tag back. Appends the tasks that this wakes, and says which
    /// hardware queues it runs, as a mask.
    pub(super) fn put_driver(
        &mut self,
        hctx: u16,
        cpu: u16,
        tag: u16,
        wakes: &mut Vec<TaskId>,
    ) -> u64 {
        let tags = self.driver(hctx);
        tags.put(cpu, tag, wakes);
        tags.take_woken_queues()
    }

    pub(super) fn all_driver(&self) -> &[Tags] {
        &self.driver
    }

    pub(super) fn all_sched(&self) -> &[Tags] {
        &self.sched
    }

    /// The next search for a scheduler tag begins at this one ([`Tags::begin_at`]).
    pub(super) fn begin_search_at(&mut self, tag: u32) {
        self.sched.iter_mut().for_each(|tags| tags.begin_at(tag));
    }
}

fn of_queue(sets: &mut [Tags], hctx: u16) -> &mut Tags {
    let place = place(sets, hctx);
    &mut sets[place]
}

/// Which bitmap a hardware queue uses.
fn place(sets: &[Tags], hctx: u16) -> usize {
    if sets.len() == 1 {
        0
    } else {
        usize::from(hctx)
    }
}
