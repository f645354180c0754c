// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the time tasks stood still for I/O: `io.pressure` of each control group, and
//! `/proc/pressure/io` of the machine.
//!
//! ```text
//!            wakes up            sleeps in io_schedule
//!  asleep ────────────► running ──────────────────────► in iowait
//!     ▲      sleeps        │ ▲         wakes up              │
//!     └────────────────────┘ └───────────────────────────────┘
//! ```
//!
//! A processor is in `some` of a group while a task of it or of those below it, which fell
//! asleep there, is in iowait; in `full` if besides none of them runs there or waits for the
//! processor. The shares of processors are added by how long each was not idle.
//!
//! Source: kernel/sched/psi.c of 5.10, 6.1, 6.12 and 7.3, which count I/O alike. Unlike there,
//! averages are brought up to date exactly at the ends of periods, which begin with the run.

use super::{Machine, World};
use blklab_block::TaskTable;
use blklab_target::{Pressure, Stall};
use blklab_types::{Hz, IdVec, Span, TaskId, Time};

/// `FIXED_1`.
const ONE: u64 = 1 << 11;

/// What is left of an average after a period: of 10, 60 and 300 s.
const LEFT: [u64; 3] = [1677, 1981, 2034];

/// What a task does, as far as that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// It sleeps for something else, or has ended.
    #[default]
    Sleeps,
    /// It runs, or waits for a processor.
    Runs,
    /// It sleeps for I/O.
    IoWait,
}

/// Where a task counts, and as what.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    doing: Doing,
    cpu: u16,
    group: u16,
}

/// A group on a processor.
#[derive(Clone, Copy, Debug, Default)]
struct OnCpu {
    nr_running: u32,
    nr_iowait: u32,
    since: Time,
    /// Time in `some` and `full`, and not idle, in this period.
    stalled: [Span; 2],
    not_idle: Span,
}

impl OnCpu {
    /// Time has gone on.
    fn go_on(&mut self, now: Time) {
        let span = now.since(self.since);
        self.since = now;
        if self.nr_iowait > 0 {
            self.stalled[0] += span;
            if self.nr_running == 0 {
                self.stalled[1] += span;
            }
        }
        if self.nr_iowait + self.nr_running > 0 {
            self.not_idle += span;
        }
    }

    fn count(&mut self, doing: Doing) -> Option<&mut u32> {
        match doing {
            Doing::Sleeps => None,
            Doing::Runs => Some(&mut self.nr_running),
            Doing::IoWait => Some(&mut self.nr_iowait),
        }
    }
}

/// What there is of `some`, or of `full`.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total_ns: u64,
    /// What of it the averages know.
    averaged_ns: u64,
    averages: [u64; 3],
}

impl Sum {
    /// A period is over (`update_averages`, `calc_avgs`).
    fn end_period(&mut self, period: Span) {
        let sample = (self.total_ns - self.averaged_ns).min(period.ns());
        self.averaged_ns += sample;
        let active = sample * 100 / period.ns() * ONE;
        for (average, left) in self.averages.iter_mut().zip(LEFT) {
            let mut new = *average * left + active * (ONE - left);
            if active >= *average {
                new += ONE - 1;
            }
            *average = new / ONE;
        }
    }

    fn told(&self) -> Stall {
        Stall {
            percent_hundredths: self.averages.map(|a| (a * 100 / ONE) as u32),
            total_us: self.total_ns / 1000,
        }
    }
}

/// A group, or the root: the machine.
#[derive(Clone, Debug)]
struct Group {
    above: Option<u16>,
    cpus: Vec<OnCpu>,
    sums: [Sum; 2],
}

impl Group {
    /// Adds up what the processors have come to since the last time
    /// (`collect_percpu_times`).
    fn collect(&mut self, now: Time, hz: Hz) {
        let mut weighted = [0_u128; 2];
        let mut ticks = 0;
        for cpu in &mut self.cpus {
            cpu.go_on(now);
            let not_idle = u128::from(cpu.not_idle.ns()) * u128::from(hz.0) / 1_000_000_000;
            ticks += not_idle;
            for (sum, stalled) in weighted.iter_mut().zip(cpu.stalled) {
                *sum += u128::from(stalled.ns()) * not_idle;
            }
            cpu.stalled = [Span::ZERO; 2];
            cpu.not_idle = Span::ZERO;
        }
        for (sum, weighted) in self.sums.iter_mut().zip(weighted) {
            sum.total_ns += (weighted / ticks.max(1)) as u64;
        }
    }
}

/// Of all groups; the root is the first.
#[derive(Clone, Debug)]
pub(super) struct Pressures {
    groups: Vec<Group>,
    tasks: IdVec<TaskId, Counted>,
    hz: Hz,
    period: Span,
    period_ends: Time,
}

impl Pressures {
    /// Nothing has happened yet.
    pub(super) fn new(groups: &TaskTable, nr_cpus: u16, hz: Hz) -> Pressures {
        let cpus = vec![OnCpu::default(); usize::from(nr_cpus.max(1))];
        let group = |number: u16| Group {
            above: groups.group(number).map(|g| g.parent),
            cpus: cpus.clone(),
            sums: [Sum::default(); 2],
        };
        let last = groups.nr_groups() as u16;
        let ticks = u64::from(2 * hz.0 + 1);
        let period = Span(ticks * 1_000_000_000 / u64::from(hz.0));
        Pressures {
            groups: (0..=last).map(group).collect(),
            tasks: IdVec::default(),
            hz,
            period,
            period_ends: Time::ZERO + period,
        }
    }

    /// Ends the periods that are over.
    fn go_on(&mut self, now: Time) {
        while self.period_ends <= now {
            for group in &mut self.groups {
                group.collect(self.period_ends, self.hz);
                for sum in &mut group.sums {
                    sum.end_period(self.period);
                }
            }
            self.period_ends += self.period;
        }
    }

    /// A task of a group does something else from now on, on a processor.
    fn set(&mut self, task: TaskId, doing: Doing, group: u16, cpu: u16, now: Time) {
        let before = *self.tasks.entry(task);
        if before.doing == doing {
            return;
        }
        self.go_on(now);
        let after = Counted { doing, cpu, group };
        *self.tasks.entry(task) = after;
        self.change(before, now, |n| *n -= 1);
        self.change(after, now, |n| *n += 1);
    }

    fn change(&mut self, of: Counted, now: Time, change: impl Fn(&mut u32)) {
        let mut next = (of.doing != Doing::Sleeps).then_some(of.group);
        while let Some(number) = next {
            let group = &mut self.groups[usize::from(number)];
            next = group.above;
            let nr_cpus = group.cpus.len();
            let cpu = &mut group.cpus[usize::from(of.cpu) % nr_cpus];
            cpu.go_on(now);
            if let Some(n) = cpu.count(of.doing) {
                change(n);
            }
        }
    }

    /// What a group says now (`psi_show`): the averages are those of the last period's end.
    fn told(&mut self, group: u16, now: Time) -> Pressure {
        self.go_on(now);
        let mut group = self.groups[usize::from(group)].clone();
        group.collect(now, self.hz);
        let [some, full] = group.sums.map(|sum| sum.told());
        Pressure { some, full }
    }
}

impl World {
    /// A task does something else from now on, where that is counted.
    #[inline]
    pub(super) fn task_is(&mut self, task: TaskId, doing: Doing) {
        if self.pressures.is_some() {
            self.count_task(task, doing, self.agenda.now());
        }
    }

    /// The running task has slept until now, since the clock stood at `since`.
    #[inline]
    pub(super) fn has_slept(&mut self, since: Time) {
        let Some(task) = self.running.task.filter(|_| self.pressures.is_some()) else {
            return;
        };
        if !self.states[task.idx()].place.computes {
            self.count_task(task, self.asleep(task), since);
            self.count_task(task, Doing::Runs, self.agenda.now());
        }
    }

    /// What a task counts as that sleeps.
    pub(super) fn asleep(&self, task: TaskId) -> Doing {
        if self.states[task.idx()].in_iowait {
            Doing::IoWait
        } else {
            Doing::Sleeps
        }
    }

    fn count_task(&mut self, task: TaskId, doing: Doing, at: Time) {
        let cpu = self.cpu_of(task);
        let group = self.tasks.get(task).group;
        if let Some(pressures) = &mut self.pressures {
            pressures.set(task, doing, group, cpu, at);
        }
    }
}

impl Machine {
    /// The pressure of a group, where it is counted; 0: of the machine.
    pub(crate) fn pressure(&self, group: u16) -> Option<Pressure> {
        let w = &mut *self.inner.world.borrow_mut();
        let now = w.agenda.now();
        Some(w.pressures.as_mut()?.told(group, now))
    }

    /// The running task's sleeps are for I/O (`io_schedule`), or no longer.
    fn set_in_iowait(&self, on: bool) {
        let w = &mut *self.inner.world.borrow_mut();
        if let Some(task) = w.running.task {
            w.states[task.idx()].in_iowait = on;
        }
    }

    /// Sleeps for I/O until woken; see [`Machine::suspend`].
    pub(crate) async fn suspend_for_io(&self) {
        self.set_in_iowait(true);
        self.suspend().await;
        self.set_in_iowait(false);
    }

    /// Sleeps for I/O until `time`.
    pub(crate) async fn sleep_for_io_until(&self, time: Time) {
        self.set_in_iowait(true);
        self.sleep_until(time).await;
        self.set_in_iowait(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_block::IoGroup;

    const HZ: Hz = Hz(100);

    /// The groups a and a/b, on so many processors.
    fn pressures(nr_cpus: u16) -> Pressures {
        let mut tasks = TaskTable::default();
        for parent in [0, 1] {
            tasks.add_group(IoGroup {
                parent,
                ..IoGroup::default()
            });
        }
        Pressures::new(&tasks, nr_cpus, HZ)
    }

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn totals_ms(p: &mut Pressures, group: u16, at: u64) -> [u64; 2] {
        let told = p.told(group, ms(at));
        [told.some, told.full].map(|stall| stall.total_us / 1000)
    }

    #[test]
    fn full_is_what_no_other_task_of_the_group_runs_in() {
        let mut p = pressures(1);
        // One task of b is in iowait from 0 to 400 ms; one of a runs from 100 to 200 ms.
        p.set(TaskId(0), Doing::IoWait, 2, 0, ms(0));
        p.set(TaskId(1), Doing::Runs, 1, 0, ms(100));
        p.set(TaskId(1), Doing::Sleeps, 1, 0, ms(200));
        p.set(TaskId(0), Doing::Runs, 2, 0, ms(400));
        p.set(TaskId(0), Doing::Sleeps, 2, 0, ms(500));
        assert_eq!(totals_ms(&mut p, 2, 600), [400, 400]);
        assert_eq!(totals_ms(&mut p, 1, 600), [400, 300], "a holds b");
        assert_eq!(totals_ms(&mut p, 0, 600), [400, 300]);
    }

    #[test]
    fn processors_count_by_how_long_they_were_not_idle() {
        let mut p = pressures(2);
        p.set(TaskId(0), Doing::IoWait, 0, 0, ms(0));
        p.set(TaskId(1), Doing::Runs, 0, 1, ms(0));
        p.set(TaskId(1), Doing::Sleeps, 0, 1, ms(300));
        p.set(TaskId(0), Doing::Sleeps, 0, 0, ms(900));
        // 900 ms of 900 of the first, none of 300 of the second: 900 * 900 / 1200.
        assert_eq!(totals_ms(&mut p, 0, 1000), [675, 675]);
    }

    #[test]
    fn averages_rise_with_each_period_and_are_those_of_its_end() {
        let mut p = pressures(1);
        p.set(TaskId(0), Doing::IoWait, 1, 0, ms(0));
        let at = |p: &mut Pressures, ms_: u64| p.told(1, ms(ms_)).some.percent_hundredths;
        assert_eq!(at(&mut p, 2009), [0; 3]);
        // 371 + 1 of 2048ths of 100 %, and 67, and 14: rounded up.
        let first = at(&mut p, 2010);
        assert_eq!(first, [1811, 327, 68]);
        assert_eq!(at(&mut p, 4019), first);
        let later = at(&mut p, 60_300);
        assert!(
            later[0] > 9900 && later[1] > 6200 && later[2] < 2000,
            "{later:?}"
        );
        p.set(TaskId(0), Doing::Sleeps, 1, 0, ms(60_300));
        assert!(at(&mut p, 80_400)[0] < 1500);
    }
}
