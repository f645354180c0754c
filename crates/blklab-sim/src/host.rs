// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the page cache sees it.

use crate::Machine;
use crate::machine::Unsubmitted;
use blklab_block::{Queue, QueueNo};
use blklab_pagecache::{Host, Runtime, TaskBody};
use blklab_types::{Bio, Hz, Span, TaskId, Time};
use std::future::Future;

impl Host for Machine {}

impl Runtime for Machine {
    type Filesystem = blklab_fs::Mounted;

    fn now(&self) -> Time {
        Machine::now(self)
    }

    fn hz(&self) -> Hz {
        self.queue_state(Queue::hz)
    }

    fn current(&self) -> TaskId {
        Machine::current(self)
    }

    fn pid(&self) -> u32 {
        Machine::pid(self)
    }

    fn group(&self) -> u16 {
        Machine::group(self)
    }

    type Pending = Unsubmitted;

    fn begin_bio(&self, bio: Bio) -> Option<Unsubmitted> {
        Machine::begin_bio(self, bio)
    }

    fn is_refused(rest: &Unsubmitted) -> bool {
        *rest == Unsubmitted::Refused
    }

    fn settle(&self, rest: Unsubmitted) -> impl Future<Output = Option<Unsubmitted>> {
        Machine::settle(self, rest)
    }

    fn finish_bio(&self, rest: Unsubmitted) -> impl Future<Output = ()> {
        Machine::finish_bio(self, rest)
    }

    fn start_plug(&self) {
        Machine::start_plug(self);
    }

    fn finish_plug(&self) {
        Machine::finish_plug(self);
    }

    fn unplug(&self) {
        if self.has_task_plugs() {
            self.flush_task_plug();
        } else {
            Machine::unplug(self);
        }
    }

    fn write_congested(&self) -> bool {
        self.any_queue(Queue::write_congested)
    }

    fn read_congested(&self) -> bool {
        self.any_queue(Queue::read_congested)
    }

    async fn congestion_wait(&self, timeout: Span) {
        Machine::congestion_wait(self, timeout).await;
    }

    fn note_dirty_sleep(&self) {
        self.with_queue(QueueNo::FIRST, Queue::dirty_wait);
    }

    fn set_sync_writes(&self, on: bool) {
        let task = Machine::current(self);
        self.with_queue(QueueNo::FIRST, |_, cx| {
            cx.tasks.get_mut(task).sync_writes = on;
        });
    }

    async fn suspend(&self) {
        Machine::suspend(self).await;
    }

    async fn suspend_for_io(&self) {
        Machine::suspend_for_io(self).await;
    }

    fn wake(&self, task: TaskId) {
        Machine::wake(self, task);
    }

    fn spawn(&self, name: &'static str, body: TaskBody) -> TaskId {
        self.spawn_kernel_thread(name, body)
    }

    async fn sleep(&self, span: Span) {
        self.sleep_until(Machine::now(self) + span).await;
    }

    async fn sleep_for_io(&self, span: Span) {
        self.sleep_for_io_until(Machine::now(self) + span).await;
    }

    async fn work(&self, span: Span, pieces: u64) {
        if !self.shares_cpu() {
            return Runtime::sleep(self, span).await;
        }
        let mut left = span.ns();
        for others in (0..pieces).rev() {
            let piece = left / (others + 1);
            left -= piece;
            Machine::compute(self, Span(piece)).await;
        }
    }

    async fn compute(&self, span: Span) {
        Machine::compute(self, span).await;
    }
}
