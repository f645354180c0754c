// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes between queues, devices and tasks: calls leave effects behind,
//! which are carried out in order. The routes of an array are in `array.rs`.

use super::interrupts::{Ended, Interrupts};
use super::work::Work;
use super::{CpuCosts, Machine, World};
use blklab_block::md::Array;
use blklab_block::{Cx, Effect, Queue, QueueNo, RqId};
use blklab_device::{CmdId, Command, Device, DeviceCx};
use blklab_engine::DeviceId;
use blklab_types::{BioKey, Completion, Span};

impl World {
    /// Calls into a queue.
    #[inline]
    pub(super) fn enter<R>(
        &mut self,
        no: QueueNo,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R,
    ) -> R {
        self.look_at_timers(no);
        let (disks, _, mut cx) = self.parts(no);
        let r = f(&mut disks[no.idx()].queue, &mut cx);
        if self.disks[no.idx()].scheduler_time.is_some() || self.costs.insert > Span::ZERO {
            self.charge_work(no);
        }
        r
    }

    /// Calls into the array; none if there is none.
    pub(super) fn enter_array<R>(
        &mut self,
        f: impl FnOnce(&mut Array, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let (_, array, mut cx) = self.parts(QueueNo::ARRAY);
        let r = f(array?, &mut cx);
        self.wake_array_thread();
        Some(r)
    }

    /// Whether queues asked for something, or devices finished something.
    #[inline]
    pub(super) fn has_left_something(&self) -> bool {
        !self.effects.is_empty() || !self.done.is_empty()
    }

    /// The next thing that a queue asked for, and which.
    pub(super) fn take_effect(&mut self) -> Option<(QueueNo, Effect)> {
        let asked = *self.effects.get(self.next_effect)?;
        self.next_effect += 1;
        Some(asked)
    }

    /// The next command that a device finished, and which.
    pub(super) fn take_done(&mut self) -> Option<Ended> {
        let done = *self.done.get(self.next_done)?;
        self.next_done += 1;
        Some(done)
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
        self.with_device_later(no, Span::ZERO, f);
    }

    /// The same, as if the device were asked so much later.
    #[inline]
    fn with_device_later(
        &mut self,
        no: QueueNo,
        delay: Span,
        f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>),
    ) {
        let mut cx = DeviceCx {
            now: self.agenda.now(),
            wakes: &mut self.wakes,
            done: &mut self.finished,
        };
        f(&mut *self.disks[no.idx()].device, &mut cx);
        if let (Some(turns), Interrupts::OfCommand) =
            (&mut self.turns, self.disks[no.idx()].interrupts)
        {
            let cpu = self.running.cpu;
            for (time, _) in &self.wakes {
                turns.starts_timer(cpu, *time + delay);
            }
        }
        for (time, token) in &self.wakes {
            self.agenda
                .wake_device(DeviceId(no.0), *time + delay, *token);
        }
        self.wakes.clear();
        for done in &self.finished {
            self.done.push(Ended {
                no,
                done: *done,
                sent_to: None,
                comes_to: None,
            });
        }
        self.finished.clear();
    }

    #[inline(always)]
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
        self.note_who_starts(no, rq);
        let delay = self.hand_over_delay();
        self.with_device_later(no, delay, |device, cx| device.submit(cx, &command));
    }

    /// Goes on until nothing is left, or a bio has finished whose owner has to
    /// be told, with its key and error.
    fn route(&mut self, costs: &CpuCosts) -> Option<(BioKey, u16)> {
        loop {
            while let Some((no, effect)) = self.take_effect() {
                let owned = self.carry_out(no, effect, costs);
                if owned.is_some() {
                    return owned;
                }
            }
            self.effects.clear();
            self.next_effect = 0;
            let Some(ended) = self.take_done() else {
                self.done.clear();
                self.next_done = 0;
                return None;
            };
            let Some(cpu) = self.ends_on(ended) else {
                continue;
            };
            if self.running.task.is_none() {
                self.running.cpu = cpu;
            }
            let Ended { no, done, .. } = ended;
            self.enter(no, |q, cx| q.complete(cx, RqId(done.id.0), done.error));
        }
    }

    #[inline(always)]
    fn carry_out(
        &mut self,
        no: QueueNo,
        effect: Effect,
        costs: &CpuCosts,
    ) -> Option<(BioKey, u16)> {
        match effect {
            Effect::Dispatch(rq) => {
                self.charge_request(no, rq, costs);
                self.hand_over(no, rq);
            }
            Effect::Wake(task) => {
                self.states[task.idx()].request_granted = true;
                self.wake(task);
            }
            Effect::BioDone { completion, error } => return self.bio_done(completion, error),
            Effect::Uncongested => {
                while let Some(task) = self.congestion_waiters.pop_front() {
                    self.wake(task);
                }
            }
            Effect::UnplugWork => self.agenda.ready_work(Work::Unplug(no).id()),
            Effect::RunWork if !self.kblockd.is_empty() => self.want_kblockd(no),
            Effect::RunWork => {
                if let Some(disk) = self.disks.get_mut(no.idx()) {
                    disk.kblockd_cpu = disk.queue.kblockd_begins_on(self.running.cpu);
                }
                let time = self.agenda.now() + self.wake_times.own;
                self.agenda.ready_work_at(Work::Run(no).id(), time);
            }
            Effect::ReleaseWork => {
                if let Some(thread) = self.throttle_thread {
                    self.wake(thread);
                }
            }
        }
        None
    }

    /// A queue has finished a bio: its key, if its submitter is to be told.
    #[inline(always)]
    fn bio_done(&mut self, completion: Completion, error: u16) -> Option<(BioKey, u16)> {
        match completion {
            Completion::Nobody => {}
            Completion::Task(task) => {
                let state = &mut self.states[task.idx()];
                state.outstanding -= 1;
                if state.outstanding < state.awaits_below {
                    self.wake(task);
                }
            }
            Completion::Submitter(key) => return Some((key, error)),
            Completion::Array { slot, member } => {
                let told = self.enter_array(|a, cx| a.end(cx, slot, member, error));
                assert!(told.is_some(), "a part of an array's bio without an array");
            }
            Completion::Split { .. } => unreachable!("a queue ends what it split itself"),
        }
        None
    }
}

impl Machine {
    /// Carries out what the queues asked for, in order, and completes what the
    /// devices finished, until nothing is left.
    #[inline]
    pub(super) fn route(&self) {
        if self.inner.world.borrow().has_left_something() {
            self.route_what_is_left();
        }
    }

    fn route_what_is_left(&self) {
        let costs = self.inner.cpu.costs();
        let mut w = self.inner.world.borrow_mut();
        while let Some((bio, error)) = w.route(&costs) {
            drop(w);
            if let Some(handler) = &*self.inner.bio_done.borrow() {
                handler(bio, error);
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
