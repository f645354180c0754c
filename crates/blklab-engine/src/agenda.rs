// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is due, and when.

use crate::timers::{TimerId, Timers};
use blklab_types::{Hz, IdVec, TaskId, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A device of the run, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u32);

/// Deferred work, named by whoever asks for it (the block layer's kblockd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u32);

blklab_types::impl_id!(WorkId(u32));

/// Something that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A timer fires.
    Timer(TimerId),
    /// A device asked to be woken, with its own token.
    Device(DeviceId, u64),
    /// Deferred work runs.
    Work(WorkId),
    /// A task runs.
    Task(TaskId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    time: Time,
    seq: u64,
    device: DeviceId,
    token: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ready {
    Task(TaskId),
    Work(WorkId),
}

/// The agenda of one run. Memory is bound by what is outstanding; nothing is
/// allocated once the largest number of outstanding entries was reached.
#[derive(Debug)]
pub struct Agenda {
    now: Time,
    seq: u64,
    /// Jiffy and high-resolution timers.
    pub timers: Timers,
    wakes: BinaryHeap<Reverse<Wake>>,
    /// The time of the first of them; [`Time::MAX`] if there is none.
    next_wake: Time,
    sleepers: BinaryHeap<Reverse<(Time, u64, Ready)>>,
    /// The same of what will be ready.
    next_sleeper: Time,
    ready: VecDeque<Ready>,
    /// Work that is or will be ready and has not run, by its number.
    pending: IdVec<WorkId, bool>,
}

impl Agenda {
    /// An empty agenda at time 0.
    pub fn new(hz: Hz) -> Agenda {
        Agenda {
            now: Time::ZERO,
            seq: 0,
            timers: Timers::new(hz),
            wakes: BinaryHeap::new(),
            next_wake: Time::MAX,
            sleepers: BinaryHeap::new(),
            next_sleeper: Time::MAX,
            ready: VecDeque::new(),
            pending: IdVec::default(),
        }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A device is to be woken at `time`.
    ///
    /// # Panics
    /// If `time` is in the past: time does not go back.
    pub fn wake_device(&mut self, device: DeviceId, time: Time, token: u64) {
        assert!(
            time >= self.now,
            "device wake-up at {time} before now, {}",
            self.now
        );
        self.seq += 1;
        self.wakes.push(Reverse(Wake {
            time,
            seq: self.seq,
            device,
            token,
        }));
        self.next_wake = self.next_wake.min(time);
    }

    /// A task becomes ready at `time`.
    ///
    /// # Panics
    /// If `time` is in the past.
    pub fn wake_task_at(&mut self, task: TaskId, time: Time) {
        assert!(
            time >= self.now,
            "sleep until {time} before now, {}",
            self.now
        );
        self.ready_at(time, Ready::Task(task));
    }

    fn ready_at(&mut self, time: Time, what: Ready) {
        self.seq += 1;
        self.sleepers.push(Reverse((time, self.seq, what)));
        self.next_sleeper = self.next_sleeper.min(time);
    }

    /// A task is ready now, behind everything that already is.
    pub fn ready_task(&mut self, task: TaskId) {
        self.ready.push_back(Ready::Task(task));
    }

    /// Whether nothing is due any more at the present.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet_until(self.now)
    }

    /// Whether nothing is due until `time`, that instant included.
    #[inline]
    fn is_quiet_until(&self, time: Time) -> bool {
        self.ready.is_empty() && self.next_time() > time
    }

    /// When something is due next that is not ready; [`Time::MAX`] if nothing ever is.
    #[inline]
    fn next_time(&self) -> Time {
        let next = self.timers.next_time().min(self.next_wake);
        next.min(self.next_sleeper)
    }

    /// Moves the clock to `time` if nothing is due until then, that instant
    /// included; whether it did. It is what [`Agenda::next`] does for the only one
    /// who sleeps until then.
    ///
    /// # Panics
    /// If `time` is in the past.
    #[inline]
    pub fn skip_to(&mut self, time: Time) -> bool {
        let quiet = self.is_quiet_until(time);
        if quiet {
            self.move_to(time);
        }
        quiet
    }

    #[inline]
    fn move_to(&mut self, time: Time) {
        assert!(time >= self.now, "time went back");
        self.now = time;
        self.timers.set_now(time);
    }

    /// Work is ready now, behind everything that already is; nothing changes
    /// if it already is (`queue_work`).
    pub fn ready_work(&mut self, work: WorkId) {
        if !std::mem::replace(self.pending.entry(work), true) {
            self.ready.push_back(Ready::Work(work));
        }
    }

    /// Work is ready at `time`; nothing changes if it already is, or will be.
    ///
    /// # Panics
    /// If `time` is in the past.
    pub fn ready_work_at(&mut self, work: WorkId, time: Time) {
        assert!(time >= self.now, "work at {time} before now, {}", self.now);
        if !std::mem::replace(self.pending.entry(work), true) {
            self.ready_at(time, Ready::Work(work));
        }
    }

    /// Takes the next due thing and moves the clock to it; `None` when
    /// nothing will ever be due again, or nothing until `limit` (the clock
    /// then stays where it is).
    pub fn next(&mut self, limit: Time) -> Option<Due> {
        loop {
            if let Some(id) = self.timers.take_due(self.now) {
                return Some(Due::Timer(id));
            }
            if self.next_wake <= self.now
                && let Some(Reverse(w)) = self.wakes.pop()
            {
                self.next_wake = self.wakes.peek().map_or(Time::MAX, |w| w.0.time);
                return Some(Due::Device(w.device, w.token));
            }
            match self.ready.pop_front() {
                Some(Ready::Task(t)) => return Some(Due::Task(t)),
                Some(Ready::Work(w)) => {
                    self.pending[w] = false;
                    return Some(Due::Work(w));
                }
                None => {}
            }
            let next = self.next_time();
            if next == Time::MAX || next > limit {
                return None;
            }
            self.move_to(next);
            if self.next_sleeper <= next {
                self.rouse();
            }
        }
    }

    /// Who slept until now is ready, and so is work that was put off until now.
    fn rouse(&mut self) {
        while let Some(&Reverse((time, _, what))) = self.sleepers.peek() {
            if time > self.now {
                self.next_sleeper = time;
                return;
            }
            self.sleepers.pop();
            self.ready.push_back(what);
        }
        self.next_sleeper = Time::MAX;
    }
}
