// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page cache needs from the machine around it.

use blklab_types::{Bio, Hz, Jiffies, Span, TaskId, Time};
use std::future::Future;
use std::pin::Pin;

/// The body of a task.
pub type TaskBody = Pin<Box<dyn Future<Output = ()>>>;

/// The machine under the page cache: time, sleeping, and the block layer of
/// one device. Handles are cheap to clone.
///
/// All methods act for the task that is being polled.
#[allow(
    async_fn_in_trait,
    reason = "tasks run on one thread; futures need not be Send"
)]
pub trait Runtime: Clone + 'static {
    /// The filesystems that it knows ([`Host`](crate::Host)).
    type Filesystem: 'static;

    /// The present.
    fn now(&self) -> Time;

    /// Ticks per second.
    fn hz(&self) -> Hz;

    /// The tick counter now.
    fn jiffies(&self) -> Jiffies {
        self.hz().jiffies_at(self.now())
    }

    /// The task that runs.
    fn current(&self) -> TaskId;

    /// The process that runs: filesystems choose places by it.
    fn pid(&self) -> u32 {
        self.current().0
    }

    /// Control group of the running task; 0: the root.
    fn group(&self) -> u16 {
        0
    }

    /// A submission that has to sleep before it goes on.
    type Pending;

    /// Submits a bio as far as that needs no sleep; what is returned is for
    /// [`Runtime::finish_bio`]. `bio.task` and `bio.completion` are the caller's. At
    /// the end of the I/O the simulation hands the key in the completion to
    /// `PageCache::end_bio`.
    fn begin_bio(&self, bio: Bio) -> Option<Self::Pending>;

    /// Whether the submission has ended, since the bio says that it is not to sleep
    /// ([`NOWAIT`](blklab_types::BioFlags::NOWAIT)), and the bio has gone nowhere.
    fn is_refused(pending: &Self::Pending) -> bool {
        let _ = pending;
        false
    }

    /// Computes, if that is all that the submission waits for, and goes on with it: what
    /// is left, which sleeps.
    async fn settle(&self, pending: Self::Pending) -> Option<Self::Pending> {
        Some(pending)
    }

    /// Submits the rest; sleeps while the request pool is exhausted.
    async fn finish_bio(&self, pending: Self::Pending);

    /// Submits a bio; sleeps while the request pool is exhausted.
    async fn submit_bio(&self, bio: Bio) {
        if let Some(pending) = self.begin_bio(bio) {
            self.finish_bio(pending).await;
        }
    }

    /// Opens a task plug (2.6.39 and later; nothing before). Calls nest.
    fn start_plug(&self);

    /// Closes a task plug and submits what it holds.
    fn finish_plug(&self);

    /// The running task is about to wait for I/O: unplugs the queue (up to
    /// 2.6.38) or flushes the task plug.
    fn unplug(&self);

    /// The running task begins or ends a write for integrity
    /// (`PF_SYNCWRITE`; schedulers look at it up to 2.6.17).
    fn set_sync_writes(&self, on: bool) {
        let _ = on;
    }

    /// The dirty throttle is about to let the running task sleep: write-back
    /// throttling gives way to such writers for a second (`dirty_sleep`, 4.10
    /// and later).
    fn note_dirty_sleep(&self) {}

    /// Whether the pool of asynchronous writes is nearly used up.
    fn write_congested(&self) -> bool;

    /// Whether the pool of reads is nearly used up.
    fn read_congested(&self) -> bool;

    /// Sleeps until write congestion ends somewhere, at most `timeout`
    /// (`congestion_wait`).
    async fn congestion_wait(&self, timeout: Span);

    /// Sleeps until [`Runtime::wake`] names this task. Wakes that come before
    /// are lost: register where the waker looks first, then suspend, then
    /// test the condition again.
    async fn suspend(&self);

    /// The same, for I/O (`io_schedule`): the time counts as I/O pressure.
    async fn suspend_for_io(&self) {
        self.suspend().await;
    }

    /// Makes a suspended task runnable; nothing if it is not suspended.
    fn wake(&self, task: TaskId);

    /// Starts a background task: a kernel thread or timer. Also called outside
    /// of tasks. It runs for the first time after the caller next sleeps or
    /// returns. A run ends when its
    /// foreground tasks have ended, whatever background tasks there are; they
    /// are dropped where they sleep.
    fn spawn(&self, name: &'static str, body: TaskBody) -> TaskId;

    /// Sleeps for a span.
    async fn sleep(&self, span: Span);

    /// The same, for I/O (`io_schedule_timeout`).
    async fn sleep_for_io(&self, span: Span) {
        self.sleep(span).await;
    }

    /// Works for a span of processor time. Where tasks share a processor, when it
    /// is this one's turn; others may go first between its pieces, not within.
    async fn work(&self, span: Span, _pieces: u64) {
        self.sleep(span).await;
    }

    /// Computes for a span, as a task that slept until just now: kernel
    /// threads that become runnable meanwhile wait until it sleeps.
    async fn compute(&self, span: Span) {
        self.sleep(span).await;
    }
}
