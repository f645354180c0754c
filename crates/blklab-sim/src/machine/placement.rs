// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several processors a task runs on: where it ran before, unless somebody else
//! runs there when it wakes up and another processor with the same cache is idle.
//!
//! Source: `select_task_rq_fair`, `wake_affine_idle` and `select_idle_sibling` of
//! kernel/sched/fair.c of 5.10, 6.1, 6.12 and 7.3. A task runs from its wake-up until it
//! sleeps. Where no processor is idle, it stays where it
//! was, as with the kernel's comparison of loads if all are alike. Left out: balancing, which
//! pulls who waits from the queue of another processor (nobody waits but where processors run
//! one at a time), tasks that wake many others (`wake_wide`), processors of one core.

use super::World;
use super::pressure::Doing;
use crate::cpu::Features;
use blklab_kernel::KernelVersion;
use blklab_types::TaskId;

/// Where a task may run, and did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Its processor; none while it is the one that it was created on.
    cpu: Option<u16>,
    /// A bit for each processor that it may run on; 0: all of them.
    allowed: u64,
    /// One that it ran on before (`recent_used_cpu`).
    recent: Option<u16>,
    /// It is awake, and counted where it runs.
    runs: bool,
    /// It computes, or sleeps until some time.
    pub(super) computes: bool,
    pub(super) naps: bool,
}

/// Who runs where.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Tasks that are awake, by processor; empty where tasks do not move.
    running: Vec<u16>,
    /// Processors that share a cache.
    llc_cpus: u16,
    feat: Features,
}

impl Placement {
    /// So many processors; none if tasks do not move.
    pub(super) fn new(nr_cpus: u16, llc_cpus: u16, kernel: KernelVersion) -> Placement {
        Placement {
            running: vec![0; usize::from(nr_cpus)],
            llc_cpus: llc_cpus.max(1),
            feat: Features::of(kernel),
        }
    }

    fn is_idle(&self, cpu: u16) -> bool {
        self.running[usize::from(cpu)] == 0
    }

    fn shares_cache(&self, a: u16, b: u16) -> bool {
        a / self.llc_cpus == b / self.llc_cpus
    }

    /// The processors behind one that share its cache, in turn.
    fn siblings(&self, cpu: u16) -> impl Iterator<Item = u16> {
        let first = cpu / self.llc_cpus * self.llc_cpus;
        let nr = self.running.len() as u16;
        let end = first.saturating_add(self.llc_cpus).min(nr);
        (cpu + 1..end).chain(first..cpu)
    }
}

impl Place {
    pub(super) fn is_awake(&self) -> bool {
        self.runs
    }

    fn allows(&self, cpu: u16) -> bool {
        self.allowed == 0 || self.allowed >> cpu & 1 != 0
    }
}

impl World {
    /// The processor that a task runs on, or did when it was awake: the one that it is
    /// bound to or has moved to, or they take turns as they are created.
    pub(super) fn cpu_of(&self, task: TaskId) -> u16 {
        let has_moved = self.states[task.idx()].place.cpu;
        let nr = usize::from(self.nr_cpus);
        has_moved.unwrap_or_else(|| ((task.idx() + nr - self.first_task % nr) % nr) as u16)
    }

    /// A task may run on these processors alone, and begins on the first.
    pub(super) fn allow(&mut self, task: TaskId, first: u16, all: &[u16]) {
        let nr = self.nr_cpus;
        let place = &mut self.states[task.idx()].place;
        assert!(!place.runs, "a task is bound before it runs");
        place.cpu = Some(first % nr);
        place.allowed = all.iter().fold(0, |mask, cpu| mask | 1 << (cpu % nr));
    }

    /// A thread may run where its process may.
    pub(super) fn allow_as(&mut self, thread: TaskId, of: TaskId) {
        let Place { cpu, allowed, .. } = self.states[of.idx()].place;
        if allowed == 0 {
            return;
        }
        let own = self.cpu_of(thread);
        let place = &mut self.states[thread.idx()].place;
        place.allowed = allowed;
        place.cpu = if place.allows(own) { Some(own) } else { cpu };
    }

    /// A task wakes up: by an interrupt or a task on processor `by`.
    #[inline]
    pub(super) fn begins_to_run(&mut self, task: TaskId, by: u16) {
        self.task_is(task, Doing::Runs);
        if self.placement.running.is_empty() || self.states[task.idx()].place.runs {
            return;
        }
        let before = self.cpu_of(task);
        let cpu = self.chosen(task, before, by);
        let place = &mut self.states[task.idx()].place;
        if cpu != before {
            place.cpu = Some(cpu);
        }
        place.runs = true;
        self.placement.running[usize::from(cpu)] += 1;
    }

    /// Whether a task is the only one that is awake on its processor.
    pub(super) fn is_alone(&self, task: TaskId) -> bool {
        let cpu = usize::from(self.cpu_of(task));
        self.placement.running.get(cpu) == Some(&1)
    }

    /// A task goes to sleep, or has ended.
    #[inline]
    pub(super) fn stops_running(&mut self, task: TaskId) {
        let cpu = self.cpu_of(task);
        let place = &mut self.states[task.idx()].place;
        if std::mem::take(&mut place.runs) {
            let running = &mut self.placement.running[usize::from(cpu)];
            assert!(*running > 0, "a processor counts who runs");
            *running -= 1;
        }
    }

    /// The running task gives the processor away: whether it sleeps.
    #[inline]
    pub(super) fn gives_way(&mut self, task: TaskId) {
        let state = &mut self.states[task.idx()];
        let naps = std::mem::take(&mut state.place.naps);
        if (state.suspended || naps) && !state.place.computes {
            self.task_is(task, self.asleep(task));
            self.stops_running(task);
        }
    }

    /// The running task sleeps until some time, or computes until then.
    #[inline]
    pub(super) fn naps(&mut self) {
        if let Some(task) = self.running.task {
            self.states[task.idx()].place.naps = true;
        }
    }

    /// The processor for a task that had `before` and is woken on `by`.
    fn chosen(&mut self, task: TaskId, before: u16, by: u16) -> u16 {
        let World {
            placement: p,
            states,
            cpus,
            ..
        } = self;
        // Who had too much is still in the queue of its processor (`ttwu_runnable`).
        let stays = cpus
            .get(usize::from(before))
            .is_some_and(|cpu| cpu.keeps(task));
        if stays || p.is_idle(before) {
            return before;
        }
        let place = &mut states[task.idx()].place;
        if place.allows(by) && p.is_idle(by) && p.shares_cache(by, before) {
            return by;
        }
        let again = place.recent.filter(|&cpu| {
            cpu != before && place.allows(cpu) && p.is_idle(cpu) && p.shares_cache(cpu, before)
        });
        if again.is_some() || p.feat.tries_last_cpu {
            place.recent = Some(before);
        }
        let is_free = |cpu: &u16| place.allows(*cpu) && p.is_idle(*cpu);
        again
            .or_else(|| p.siblings(before).find(is_free))
            .unwrap_or(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_share_a_cache_and_come_in_turn() {
        let p = Placement::new(6, 4, KernelVersion::NEWEST);
        assert_eq!(p.siblings(1).collect::<Vec<_>>(), [2, 3, 0]);
        assert_eq!(p.siblings(4).collect::<Vec<_>>(), [5]);
        assert!(p.shares_cache(0, 3) && !p.shares_cache(3, 4));
    }
}
