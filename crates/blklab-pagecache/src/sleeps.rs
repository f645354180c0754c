// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where tasks slept: one account per task and kind of sleep.
//!
//! A sleep inside another one (a task that makes room in the log waits for
//! requests, too) counts for the outer one only, so that the accounts of a task
//! add up to the time it slept. Sleeps while the dirty limits hold a task back
//! are kept apart.

use crate::cache::PageCache;
use crate::host::Runtime;
use crate::state::sleeps::{Sleep, Sleeps, account};
use blklab_types::{Jiffies, TaskId, Time};
use std::future::Future;

impl<H: Runtime> PageCache<H> {
    /// Where a task slept since the start.
    pub fn sleeps(&self, task: TaskId) -> Sleeps {
        self.with(|s| s.accounts.get(task.idx()).copied().unwrap_or_default())
            .sleeps
    }

    /// Sleeps until a test succeeds, again after every wake-up. The test puts
    /// the task where it is woken from.
    pub async fn sleep_until(&self, what: Sleep, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        self.sleeping(what, async {
            loop {
                self.host.suspend().await;
                if ready() {
                    return;
                }
            }
        })
        .await;
    }

    /// Sleeps until a tick begins.
    pub async fn sleep_until_tick(&self, tick: Jiffies) {
        let begin = self.host.hz().start_of(tick);
        self.host.sleep(begin.since(self.host.now())).await;
    }

    /// Runs what may sleep for `what` on account of the running task.
    pub async fn sleeping<R>(&self, what: Sleep, f: impl Future<Output = R>) -> R {
        let nap = self.fall_asleep();
        let result = f.await;
        self.wake_up(what, nap);
        result
    }

    /// Submits the rest of a bio, and sleeps for its request.
    pub(crate) async fn sleep_for_request(&self, rest: H::Pending) {
        let Some(rest) = self.host.settle(rest).await else {
            return;
        };
        let nap = self.fall_asleep();
        self.host.finish_bio(rest).await;
        self.wake_up(Sleep::Request, nap);
    }

    /// The running task begins to sleep: who it is, and since when; none if it
    /// counts as asleep already.
    fn fall_asleep(&self) -> Option<(TaskId, Time)> {
        let task = self.host.current();
        let nested =
            self.with(|s| std::mem::replace(&mut account(&mut s.accounts, task).asleep, true));
        (!nested).then(|| (task, self.host.now()))
    }

    /// It has slept for `what`.
    fn wake_up(&self, what: Sleep, nap: Option<(TaskId, Time)>) {
        let Some((task, began)) = nap else { return };
        let took = self.host.now().since(began);
        self.with(|s| {
            let a = account(&mut s.accounts, task);
            a.asleep = false;
            a.sleeps.spans[usize::from(a.throttled)][what as usize] += took;
        });
    }

    /// The running task is, or is no longer, held back by the dirty limits.
    pub(crate) fn set_throttled(&self, on: bool) {
        let task = self.host.current();
        self.with(|s| account(&mut s.accounts, task).throttled = on);
    }
}
