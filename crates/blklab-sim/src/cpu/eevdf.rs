// SPDX-License-Identifier: MIT OR Apache-2.0
//! Earliest eligible virtual deadline first (kernel/sched/fair.c, from 6.6 on). Who
//! had less than the average may run, and of those the one goes first whose slice
//! would end earliest; it goes on until its slice is over or it had more than the
//! average (`RUN_TO_PARITY`). Who sleeps keeps what it is short of. Who had too
//! much goes on competing in its sleep until it is level (`DELAY_DEQUEUE`, 6.12).
//!
//! Left out: slices of one's own, for which tasks are protected otherwise from 6.17 on.

use blklab_types::{IdVec, TaskId};

/// Weights of the nice levels 0 and -20 (`sched_prio_to_weight`).
const WEIGHT: u64 = 1024;
const URGENT_WEIGHT: u64 = 88_761;

/// What the first task is taken to have had: who is ahead of the average may be
/// put before it.
const ORIGIN: u64 = 1 << 62;

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It sleeps.
    #[default]
    Off,
    /// It can run.
    Queued,
    /// It sleeps, and had more than the average.
    Delayed,
}

/// What the scheduler knows of a task.
#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: u64,
    /// Processor time had, weighted, in ns.
    vruntime: u64,
    /// Where its slice ends.
    deadline: u64,
    /// What it was short of when it went to sleep, weighted; negative if it had
    /// too much.
    lag: i64,
    place: Place,
}

impl Default for Entity {
    fn default() -> Entity {
        Entity {
            weight: WEIGHT,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            place: Place::Off,
        }
    }
}

impl Entity {
    /// A processor time as the scheduler counts it for this task
    /// (`calc_delta_fair`).
    fn weighted(&self, ns: u64) -> u64 {
        ns * WEIGHT / self.weight
    }
}

/// What differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A slice (`sysctl_sched_base_slice` on one processor), in ns.
    pub(super) slice_ns: u64,
    /// A tick of the clock, in ns.
    pub(super) tick_ns: u64,
    /// Who had too much stays in its sleep.
    pub(super) delays: bool,
}

/// Tasks that compete, and what they had.
#[derive(Debug)]
pub(super) struct Eevdf {
    rules: Rules,
    entities: IdVec<TaskId, Entity>,
    /// Who competes but for the current task, in the order in which they came.
    queue: Vec<TaskId>,
    /// Whose turn it is, and where its slice ended when it was chosen.
    current: Option<TaskId>,
    protected: u64,
    /// Never behind any of them; where one is put that meets no other.
    min_vruntime: u64,
    /// Somebody may have to go before the current task.
    looks_again: bool,
}

impl Eevdf {
    pub(super) fn new(rules: Rules) -> Eevdf {
        Eevdf {
            rules,
            entities: IdVec::default(),
            queue: Vec::new(),
            current: None,
            protected: 0,
            min_vruntime: ORIGIN,
            looks_again: false,
        }
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.entities.entry(task)
    }

    pub(super) fn set_urgent(&mut self, task: TaskId) {
        self.entity(task).weight = URGENT_WEIGHT;
    }

    /// Everybody who competes.
    fn competitors(&self) -> impl Iterator<Item = &Entity> {
        let tasks = self.queue.iter().chain(&self.current);
        tasks.map(|&task| &self.entities[task])
    }

    /// The sum of what they are ahead of `min_vruntime` by, weighted, and of their
    /// weights.
    fn sums(&self) -> (i64, i64) {
        self.competitors().fold((0, 0), |(ahead, weights), e| {
            let key = e.vruntime.wrapping_sub(self.min_vruntime) as i64;
            let weight = e.weight as i64;
            (ahead + key * weight, weights + weight)
        })
    }

    /// What they had on average (`avg_vruntime`).
    fn average(&self) -> u64 {
        match self.sums() {
            (_, 0) => self.min_vruntime,
            (ahead, weights) => self
                .min_vruntime
                .wrapping_add_signed(ahead.div_euclid(weights)),
        }
    }

    /// Whether a competitor had no more than the average.
    fn is_eligible(&self, task: TaskId) -> bool {
        let (ahead, weights) = self.sums();
        let key = self.entities[task].vruntime.wrapping_sub(self.min_vruntime) as i64;
        ahead >= key * weights
    }

    /// Notes what a competitor is short of, within limits (`update_entity_lag`).
    fn note_lag(&mut self, task: TaskId) {
        let average = self.average();
        let most = (2 * self.rules.slice_ns).max(self.rules.tick_ns);
        let entity = self.entity(task);
        let most = entity.weighted(most) as i64;
        let lag = average.wrapping_sub(entity.vruntime) as i64;
        entity.lag = lag.clamp(-most, most);
    }

    /// Puts a task among the competitors, where it is as far from the average as
    /// it was (`place_entity`).
    fn place(&mut self, task: TaskId) {
        let (_, load) = self.sums();
        let average = self.average();
        let slice = self.rules.slice_ns;
        let entity = self.entity(task);
        let lag = match load {
            0 => 0,
            _ => entity.lag * (load + entity.weight as i64) / load,
        };
        entity.vruntime = average.wrapping_add_signed(-lag);
        entity.deadline = entity.vruntime + entity.weighted(slice);
    }

    fn enqueue(&mut self, task: TaskId) {
        self.entity(task).place = Place::Queued;
        self.queue.push(task);
        self.move_min();
    }

    fn leave(&mut self, task: TaskId) {
        self.queue.retain(|t| *t != task);
        self.move_min();
    }

    fn move_min(&mut self) {
        let min = self.min_vruntime;
        let ahead = |e: &Entity| e.vruntime.wrapping_sub(min) as i64;
        if let Some(least) = self.competitors().map(ahead).min() {
            self.min_vruntime = min.wrapping_add_signed(least.max(0));
        }
    }

    /// The current task sleeps.
    fn sleeps(&mut self) {
        let Some(task) = self.current else { return };
        if self.rules.delays && !self.is_eligible(task) {
            self.entity(task).place = Place::Delayed;
            self.current = None;
            self.queue.push(task);
            return;
        }
        self.note_lag(task);
        self.entity(task).place = Place::Off;
        self.current = None;
        self.move_min();
    }

    /// Whether a task that sleeps competes: one that had too much, or would if the processor
    /// looked at it now.
    pub(super) fn is_delayed(&self, task: TaskId) -> bool {
        if self.current == Some(task) {
            return self.rules.delays && !self.is_eligible(task);
        }
        let entity = self.entities.get(task);
        entity.is_some_and(|e| e.place == Place::Delayed)
    }

    /// The task can run again.
    pub(super) fn wake(&mut self, task: TaskId) {
        if self.current == Some(task) {
            self.sleeps();
        }
        match self.entity(task).place {
            Place::Off => {
                self.place(task);
                self.enqueue(task);
            }
            Place::Delayed => {
                self.note_lag(task);
                if self.entity(task).lag > 0 {
                    self.leave(task);
                    self.entity(task).lag = 0;
                    self.place(task);
                    self.enqueue(task);
                }
                self.entity(task).place = Place::Queued;
            }
            Place::Queued => {}
        }
        if self.current.is_some() && self.best() == Some(task) {
            self.looks_again = true;
        }
    }

    /// The task waits for its turn.
    pub(super) fn wait(&mut self, task: TaskId) {
        if self.current == Some(task) {
            self.current = None;
        }
        self.enqueue(task);
    }

    /// Whether somebody may have to go before the current task.
    pub(super) fn looks_again(&self) -> bool {
        self.looks_again
    }

    /// Charges the current task. If the scheduler looks, its slice may be over: whether it
    /// is, and others wait.
    pub(super) fn charge(&mut self, task: TaskId, ns: u64, looks: bool) -> bool {
        let (slice, others) = (self.rules.slice_ns, !self.queue.is_empty());
        let entity = self.entity(task);
        entity.vruntime += entity.weighted(ns);
        let over = looks && entity.vruntime >= entity.deadline;
        if over {
            entity.deadline = entity.vruntime + entity.weighted(slice);
            self.looks_again |= others;
        }
        self.move_min();
        over && others
    }

    /// Who is to run (`pick_eevdf`).
    fn best(&self) -> Option<TaskId> {
        let deadline = |task: TaskId| self.entities[task].deadline;
        let current = self.current.filter(|&task| self.is_eligible(task));
        if let Some(task) = current
            && (deadline(task) == self.protected || self.queue.is_empty())
        {
            return Some(task);
        }
        let eligible = self.queue.iter().copied();
        let eligible = eligible.filter(|&task| self.is_eligible(task));
        let first = eligible.min_by_key(|&task| deadline(task));
        match (first, current) {
            (Some(first), Some(own)) if deadline(own) < deadline(first) => Some(own),
            (None, None) => self.current,
            (first, own) => first.or(own),
        }
    }

    /// Whether somebody goes before a task that could go on.
    pub(super) fn yields(&mut self, task: TaskId) -> bool {
        debug_assert_eq!(self.current, Some(task), "it is its turn");
        if !std::mem::take(&mut self.looks_again) {
            return false;
        }
        while let Some(best) = self.best() {
            if best == task {
                return false;
            }
            if self.entities[best].place == Place::Queued {
                return true;
            }
            self.ends_delay(best);
        }
        false
    }

    /// A sleeper that had too much is level with the others, and leaves.
    fn ends_delay(&mut self, task: TaskId) {
        self.note_lag(task);
        let entity = self.entity(task);
        entity.lag = entity.lag.min(0);
        entity.place = Place::Off;
        self.leave(task);
    }

    /// Whose turn it is: it waits no longer. Who had its turn sleeps, unless it
    /// waits again.
    pub(super) fn pick(&mut self) -> Option<TaskId> {
        self.sleeps();
        self.looks_again = false;
        while let Some(best) = self.best() {
            if self.entities[best].place == Place::Delayed {
                self.ends_delay(best);
                continue;
            }
            self.queue.retain(|t| *t != best);
            self.current = Some(best);
            self.protected = self.entities[best].deadline;
            return Some(best);
        }
        None
    }
}
