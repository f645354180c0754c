// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a new request tells about its process, and whether to idle for it.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::context::Context;
use super::features::DepthRule;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::TaskId;

/// Mean distance in sectors from which a process is seeky.
const SEEKY_SECTORS: u64 = 128 * 1024;

impl Context {
    /// `CIC_SEEKY`.
    fn is_seeky(&self) -> bool {
        self.seek.mean > SEEKY_SECTORS
    }

    pub(super) fn is_known_seeky(&self) -> bool {
        self.seek.is_valid() && self.is_seeky()
    }
}

impl Cfq {
    /// Notes how long a process has thought since its last request was done
    /// (`cfq_update_io_thinktime`).
    pub(super) fn note_think(&mut self, cx: &Cx<'_>, task: TaskId) {
        let now = self.clock.now(cx);
        let context = &mut self.contexts[task];
        let elapsed = now.wrapping_sub(context.last_end_request);
        context
            .think
            .add(elapsed.min(2 * self.set.slice_idle_jiffies));
    }

    /// Notes where a new request lies (`cfq_update_io_seektime`).
    pub(super) fn note_seek(&mut self, q: &Core, task: TaskId, rq: RqId) {
        let context = &mut self.contexts[task];
        if self.feat.seek_stats {
            let distance = q.rqs[rq].sector.abs_diff(context.last_request_pos);
            context.seek.add(distance);
        }
    }

    /// Decides whether CFQ idles for the queue's next request
    /// (`cfq_update_idle_window`).
    pub(super) fn update_idle_window(&mut self, id: QueueId, task: TaskId) {
        let context = &self.contexts[task];
        let too_deep = match self.feat.depth_rule {
            DepthRule::None => false,
            DepthRule::AllQueues => self.hw_tag,
            DepthRule::SeekyProcesses => self.hw_tag && context.is_seeky(),
        };
        let idle = self.set.slice_idle_jiffies;
        let queue = &mut self.queues[id];
        if !context.alive || idle == 0 || too_deep {
            queue.idle_window = false;
        } else if context.think.is_valid() {
            queue.idle_window = context.think.mean <= idle;
        }
    }
}
