// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that submits bios which limits of control groups held back.

use crate::Machine;
use blklab_block::{Queue, QueueNo};

/// What traces and process lists call it.
const THREAD_NAME: &str = "kthrotld";

impl Machine {
    /// Starts kthrotld.
    pub(crate) fn start_throttle_thread(&self) {
        let thread = self.spawn_kernel_thread(THREAD_NAME, kthrotld(self.clone()));
        self.set_throttle_thread(thread);
    }
}

/// Submits under one plug what was released when it began; it sleeps for
/// requests like any submitter (`blk_throtl_dispatch_work_fn`).
async fn kthrotld(m: Machine) {
    loop {
        let batch = m.queue_state(|q| q.gate().nr_released());
        if batch == 0 {
            m.suspend().await;
            continue;
        }
        m.start_plug();
        for _ in 0..batch {
            m.pay_debt().await;
            if let Some(left) = m.with_queue(QueueNo::FIRST, Queue::submit_released) {
                m.finish_submission(QueueNo::FIRST, left).await;
            }
        }
        m.finish_plug();
        m.with_queue(QueueNo::FIRST, Queue::end_release);
    }
}
