// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel timers: a small fixed set of named slots.
//!
//! A jiffy timer set for jiffy J fires at the start of jiffy J, never in the
//! jiffy in which it was set; so the real delay of `d` ticks is in (d-1, d]
//! ticks. High-resolution timers fire at their exact time.

use blklab_types::{Hz, Jiffies, Time};

/// One timer, registered once per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u32);

#[derive(Debug)]
struct Slot {
    name: &'static str,
    due: Time,
    seq: u64,
}

/// All timers of a run. Arming and cancelling are constant in time; firing is
/// linear in the number of registered timers, of which a queue has a few.
#[derive(Debug)]
pub struct Timers {
    hz: Hz,
    now: Time,
    /// The tick counter now, and when it changes next.
    jiffies: Jiffies,
    next_tick: Time,
    seq: u64,
    slots: Vec<Slot>,
    next: Time,
}

impl Timers {
    /// No timers, at time 0.
    pub fn new(hz: Hz) -> Timers {
        Timers {
            hz,
            now: Time::ZERO,
            jiffies: Jiffies(0),
            next_tick: hz.start_of(Jiffies(1)),
            seq: 0,
            slots: Vec::new(),
            next: Time::MAX,
        }
    }

    /// Adds a timer; the name appears in the truth stream.
    pub fn register(&mut self, name: &'static str) -> TimerId {
        self.slots.push(Slot {
            name,
            due: Time::MAX,
            seq: 0,
        });
        TimerId(u32::try_from(self.slots.len() - 1).expect("a handful of timers"))
    }

    /// The name given at registration.
    pub fn name(&self, id: TimerId) -> &'static str {
        self.slots[id.0 as usize].name
    }

    /// Ticks per second.
    pub fn hz(&self) -> Hz {
        self.hz
    }

    /// The tick counter now.
    pub fn jiffies(&self) -> Jiffies {
        self.jiffies
    }

    /// Sets the timer to fire when the tick counter becomes `jiffy`, or at
    /// the next tick if that is not in the future. Replaces an earlier setting.
    pub fn arm(&mut self, id: TimerId, jiffy: Jiffies) {
        let jiffy = jiffy.max(self.jiffies().plus(1));
        self.arm_at(id, self.hz.start_of(jiffy));
    }

    /// Sets the timer to fire in so many ticks as the kernel's wheel of timers has it from
    /// 4.8 on: a tick later, and from 63 ticks on at the next multiple of 8, from 504
    /// on of 64, and so on, so that it is never early (`calc_wheel_index` of
    /// kernel/time/timer.c). Replaces an earlier setting.
    pub fn arm_on_wheel(&mut self, id: TimerId, ticks: u64) {
        let (mut grain, mut reach) = (1, 63);
        while ticks.saturating_sub(1) >= reach && grain < 1 << 24 {
            grain *= 8;
            reach *= 8;
        }
        let due = (self.jiffies.0 + ticks + grain) / grain * grain;
        self.arm(id, Jiffies(due));
    }

    /// Sets a high-resolution timer. Replaces an earlier setting.
    ///
    /// # Panics
    /// If `due` is in the past.
    pub fn arm_at(&mut self, id: TimerId, due: Time) {
        assert!(due >= self.now, "timer set for the past");
        self.seq += 1;
        let slot = &mut self.slots[id.0 as usize];
        let moved_later = slot.due == self.next && due > slot.due;
        slot.due = due;
        slot.seq = self.seq;
        if moved_later {
            self.find_next();
        } else {
            self.next = self.next.min(due);
        }
    }

    /// Stops the timer; false if it was not pending.
    pub fn cancel(&mut self, id: TimerId) -> bool {
        let slot = &mut self.slots[id.0 as usize];
        let was = slot.due;
        slot.due = Time::MAX;
        if was != Time::MAX && was == self.next {
            self.find_next();
        }
        was != Time::MAX
    }

    /// Whether the timer is set.
    pub fn is_pending(&self, id: TimerId) -> bool {
        self.slots[id.0 as usize].due != Time::MAX
    }

    /// When the next timer fires; [`Time::MAX`] if none is set.
    pub fn next_time(&self) -> Time {
        self.next
    }

    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
        if now >= self.next_tick {
            self.jiffies = self.hz.jiffies_at(now);
            self.next_tick = self.hz.start_of(self.jiffies.plus(1));
        }
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<TimerId> {
        if self.next > now {
            return None;
        }
        let idx = (0..self.slots.len()).min_by_key(|&i| (self.slots[i].due, self.slots[i].seq))?;
        self.slots[idx].due = Time::MAX;
        self.find_next();
        Some(TimerId(idx as u32))
    }

    fn find_next(&mut self) {
        self.next = self.slots.iter().map(|s| s.due).min().unwrap_or(Time::MAX);
    }
}
