// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes between queues, devices and tasks: calls leave effects behind,
//! which are carried out in order. The routes of an array are in `array.rs`.

use super::{CpuCosts, Machine, OWNED_COOKIE, QueueNo, World};
use blklab_block::md::Array;
use blklab_block::{Cx, Effect, Queue, RqId};
use blklab_device::{CmdId, Command, Device, DeviceCx, Done};
use blklab_engine::DeviceId;
use blklab_types::TaskId;

impl World {
    /// Calls into a queue.
    #[inline]
    pub(super) fn enter<R>(
        &mut self,
        no: QueueNo,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R,
    ) -> R {
        let (disks, _, mut cx) = self.parts();
        let r = f(&mut disks[no.idx()].queue, &mut cx);
        self.note_asker(no);
        r
    }

    /// Calls into the array; none if there is none.
    pub(super) fn enter_array<R>(
        &mut self,
        f: impl FnOnce(&mut Array, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let (_, array, mut cx) = self.parts();
        let r = f(array?, &mut cx);
        self.note_asker(QueueNo::ARRAY);
        self.wake_array_thread();
        Some(r)
    }

    /// The effects that nobody is noted for are this queue's.
    #[inline]
    pub(super) fn note_asker(&mut self, no: QueueNo) {
        if self.array.is_some() {
            self.askers.resize(self.effects.len(), no);
        }
    }

    /// The next thing that a queue asked for, and which.
    pub(super) fn take_effect(&mut self) -> Option<(QueueNo, Effect)> {
        let effect = *self.effects.get(self.next_effect)?;
        let no = self.askers.get(self.next_effect).copied();
        self.next_effect += 1;
        Some((no.unwrap_or(QueueNo::FIRST), effect))
    }

    /// The next command that a device finished, and which.
    pub(super) fn take_done(&mut self) -> Option<(QueueNo, Done)> {
        let done = *self.done.get(self.next_done)?;
        let no = self.finishers.get(self.next_done).copied();
        self.next_done += 1;
        Some((no.unwrap_or(QueueNo::FIRST), done))
    }

    pub(super) fn wake_array_thread(&mut self) {
        if self.array.as_ref().is_some_and(Array::thread_is_woken)
            && let Some(thread) = self.array_thread
        {
            self.wake(thread);
        }
    }

    #[inline]
    pub(super) fn with_device(
        &mut self,
        no: QueueNo,
        f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>),
    ) {
        let mut wake = 0;
        let mut cx = DeviceCx {
            now: self.agenda.now(),
            wakes: &mut self.wakes,
            done: &mut self.done,
        };
        f(&mut *self.disks[no.idx()].device, &mut cx);
        while let Some((time, token)) = self.wakes.get(wake).copied() {
            self.agenda.wake_device(DeviceId(no.0), time, token);
            wake += 1;
        }
        self.wakes.clear();
        if self.array.is_some() {
            self.finishers.resize(self.done.len(), no);
        }
    }

    pub(super) fn hand_over(&mut self, no: QueueNo, rq: RqId) {
        let command = {
            let r = &self.disks[no.idx()].queue.requests()[rq];
            Command {
                id: CmdId(rq.0),
                op: r.op,
                flags: r.flags,
                sector: r.sector,
                nr_sectors: r.nr_sectors,
            }
        };
        self.with_device(no, |device, cx| device.submit(cx, &command));
    }

    /// Goes on until nothing is left, or a bio has finished whose owner has to
    /// be told, with its cookie and error.
    fn route(&mut self, costs: &CpuCosts) -> Option<(u64, u16)> {
        loop {
            while let Some((no, effect)) = self.take_effect() {
                let owned = self.carry_out(no, effect, costs);
                if owned.is_some() {
                    return owned;
                }
            }
            self.effects.clear();
            self.askers.clear();
            self.next_effect = 0;
            let Some((no, done)) = self.take_done() else {
                self.done.clear();
                self.finishers.clear();
                self.next_done = 0;
                return None;
            };
            self.enter(no, |q, cx| q.complete(cx, RqId(done.id.0), done.error));
        }
    }

    fn carry_out(&mut self, no: QueueNo, effect: Effect, costs: &CpuCosts) -> Option<(u64, u16)> {
        match effect {
            Effect::Dispatch(rq) => {
                self.charge_request(no, rq, costs);
                self.hand_over(no, rq);
            }
            Effect::Wake(task) => {
                self.states[task.idx()].request_granted = true;
                self.wake(task);
            }
            Effect::BioDone { cookie, error, .. } => return self.bio_done(no, cookie, error),
            Effect::Uncongested => {
                while let Some(task) = self.congestion_waiters.pop_front() {
                    self.wake(task);
                }
            }
            Effect::UnplugWork => self.agenda.ready_work(no.unplug_work()),
            Effect::RunWork => match self.kblockd {
                Some(task) => {
                    self.kblockd_wanted = true;
                    self.wake(task);
                }
                None => self.agenda.ready_work(no.run_work()),
            },
            Effect::ReleaseWork => {
                if let Some(thread) = self.throttle_thread {
                    self.wake(thread);
                }
            }
        }
        None
    }

    /// A queue has finished a bio: who is to be told, if that is the owner.
    fn bio_done(&mut self, no: QueueNo, cookie: u64, error: u16) -> Option<(u64, u16)> {
        if self.array.is_some() && no != QueueNo::ARRAY {
            self.enter_array(|a, cx| a.end(cx, cookie, error));
        } else if cookie & OWNED_COOKIE != 0 {
            return Some((cookie & !OWNED_COOKIE, error));
        } else {
            let task = TaskId(cookie as u32);
            let state = &mut self.states[task.idx()];
            state.outstanding -= 1;
            if state.outstanding < state.awaits_below {
                self.wake(task);
            }
        }
        None
    }
}

impl Machine {
    /// Carries out what the queues asked for, in order, and completes what the
    /// devices finished, until nothing is left.
    pub(super) fn route(&self) {
        let costs = self.inner.cpu.costs();
        let mut w = self.inner.world.borrow_mut();
        while let Some((cookie, error)) = w.route(&costs) {
            drop(w);
            if let Some(handler) = &*self.inner.bio_done.borrow() {
                handler(cookie, error);
            }
            w = self.inner.world.borrow_mut();
        }
    }

    /// Calls into a disk's queue in the running context and carries out what
    /// it asks for.
    #[inline]
    pub(crate) fn with_queue<R>(
        &self,
        no: QueueNo,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R,
    ) -> R {
        let r = self.inner.world.borrow_mut().enter(no, f);
        self.route();
        r
    }

    /// Calls into the array in the running context and carries out what it
    /// asks for; none if there is no array.
    pub(crate) fn with_array<R>(&self, f: impl FnOnce(&mut Array, &mut Cx<'_>) -> R) -> Option<R> {
        let r = self.inner.world.borrow_mut().enter_array(f);
        self.route();
        r
    }
}
