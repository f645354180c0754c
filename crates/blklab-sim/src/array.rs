// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes between an array, the queues of its members, and the thread
//! that submits the writes of a mirror.

use crate::Machine;
use blklab_block::md::{Array, MD0, MemberBio};
use blklab_block::{Queue, QueueNo};
use blklab_types::Bio;

/// What traces and process lists call the thread of a mirror (md0's).
const THREAD_NAME: &str = "md0_raid1";

impl Machine {
    /// Passes a bio to the array, and what the array makes of it to the
    /// members: in the submitter's context, where that is the kernel's way.
    pub(crate) async fn submit_to_array(&self, bio: Bio) {
        let Some(mut entry) = self.with_array(|a, _| a.enter(bio)) else {
            return;
        };
        while let Some(part) = self.with_array(|a, cx| a.next(cx, &mut entry)).flatten() {
            self.submit_to_member(part).await;
        }
    }

    async fn submit_to_member(&self, part: MemberBio) {
        self.pay_debt().await;
        let no = QueueNo(part.member);
        let from = part.remapped_from.map(|sector| (MD0, sector));
        let left = self.with_queue(no, |q, cx| q.submit_from(cx, part.bio, from));
        self.finish_submission(no, left).await;
    }

    /// Somebody waits for I/O of the array: U there, then on the members.
    pub(crate) fn unplug_array(&self) {
        self.with_array(Array::unplug);
        self.unplug_members();
    }

    fn unplug_members(&self) {
        for i in 0..self.nr_disks() {
            if self.with_array(|a, _| a.unplugs_member(i)) == Some(true) {
                self.with_queue(QueueNo(i), Queue::unplug);
            }
        }
    }

    /// Starts the thread of a mirror.
    pub(crate) fn start_array_thread(&self) {
        let thread = self.spawn_kernel_thread(THREAD_NAME, mirror_thread(self.clone()));
        self.set_array_thread(thread);
    }
}

/// Whenever it is woken, the thread submits the clones of all writes that
/// came, in their order, and unplugs the members. While it sleeps for a request
/// of one member, no other member gets a write.
async fn mirror_thread(m: Machine) {
    let thread = m.current();
    loop {
        while m.with_array(|a, _| a.take_thread_wakeup()) != Some(true) {
            m.suspend().await;
        }
        if m.with_array(Array::take_writes) != Some(true) {
            continue;
        }
        while let Some(part) = m.with_array(|a, _| a.next_write(thread)).flatten() {
            m.submit_to_member(part).await;
            if let Some((no, left)) = m.submit_writes(thread) {
                m.finish_submission(no, left).await;
            }
        }
        m.unplug_members();
    }
}
