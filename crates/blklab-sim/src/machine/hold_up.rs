// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks on their way back from the kernel to their programs: there they sleep if their
//! control group has to be held up for what it had others wait for
//! (`blkcg_maybe_throttle_current`, at the end of system calls and page faults).

use super::{Machine, World};
use blklab_block::Queue;
use blklab_types::Time;

impl World {
    /// Until when the running task is held up; none if it is not.
    fn held_up_until(&mut self) -> Option<Time> {
        let task = self.running.task?;
        let context = self.tasks.get_mut(task);
        let no = context.held_up_by.take()?;
        let group = context.group;
        let now = self.agenda.now();
        let Queue::Mq(queue) = &mut self.disks[no.idx()].queue else {
            return None;
        };
        let span = queue.hold_up(group, now);
        (span.ns() > 0).then_some(now + span)
    }
}

impl Machine {
    /// The running task returns to its program.
    #[inline]
    pub(crate) async fn return_to_program(&self) {
        if !self.inner.holds_up {
            return;
        }
        let until = self.inner.world.borrow_mut().held_up_until();
        if let Some(until) = until {
            self.flush_task_plug();
            self.sleep_for_io_until(until).await;
        }
    }
}
