// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several processors of which one runs at a time, as QEMU emulates them in one thread with
//! `-icount`: the clock is that of whoever runs, and the others stand still.
//!
//! The turn goes round in the order of their numbers. It ends where a processor has nothing to
//! do, or when any timer of the machine is due; an interrupt does not end the turn of another
//! processor, but is handled when the one that it comes to has its own. A timer kicks all
//! processors, those that sleep, too, and whoever the turn comes to, or passes, is no longer
//! kicked. Behind a turn that a timer ended comes the next processor; but if that has not been
//! kicked since the turn came to it last, it is the one to find the timer due, which takes its
//! turn, and the one behind it is next (`rr_cpu_thread_fn` of accel/tcg/tcg-accel-ops-rr.c,
//! `icount_prepare_for_run` of tcg-accel-ops-icount.c, `cpu_handle_interrupt` of cpu-exec.c,
//! 7.2). The last processor is followed by the first without that, and when everybody sleeps
//! the turn rests with the next who is kicked, otherwise with the first.
//!
//! A processor that sets its timer kicks all as well, and its turn ends, if that timer is due
//! before those of all others (`timer_mod`, `qemu_timer_notify_cb`): for the next one at the end
//! of an interrupt of timers, or for a command that is handed over while no other is on its way.
//!
//! Left out: a turn also ends where a processor spins for a lock that one holds which stands
//! still. Timers of queues and schedulers take no time and come at once; ticks are left out.

use super::interrupts::{Ended, Interrupts};
use super::work::Work;
use super::{Machine, World};
use crate::cpu::Turn;
use blklab_block::{Queue, QueueNo, Running};
use blklab_types::{Span, TaskId, Time};

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    active: Option<u16>,
    /// A timer is due.
    is_over: bool,
    /// Who comes next, if it is nobody's turn.
    next: u16,
    /// Whom a timer kicked, and whom the turn has not come to since.
    kicked: Vec<bool>,
    /// Commands that have ended, by the processor that is interrupted.
    interrupts: Vec<Vec<Ended>>,
    /// When commands end whose timers are on the processors that handed them over.
    timers: Vec<(Time, u16)>,
    /// The processor that sets its timer anew, at the end of its interrupts.
    sets_timer: Option<u16>,
    /// The processor whose turn it is has started a timer that is due before all others.
    starts_first: bool,
}

impl Turns {
    /// Nobody's, of so many processors.
    pub(super) fn new(nr_cpus: u16) -> Turns {
        Turns {
            active: None,
            is_over: false,
            next: 0,
            kicked: vec![true; usize::from(nr_cpus)],
            interrupts: vec![Vec::new(); usize::from(nr_cpus)],
            timers: Vec::new(),
            sets_timer: None,
            starts_first: false,
        }
    }

    /// Whether no command is on its way.
    fn is_quiet(&mut self, now: Time) -> bool {
        self.timers.retain(|(time, _)| *time > now);
        self.timers.is_empty()
    }

    /// A processor starts a timer for a command: its turn ends if no other comes before.
    pub(super) fn starts_timer(&mut self, cpu: u16, time: Time) {
        self.starts_first |= self.timers.iter().all(|(other, _)| time < *other);
        self.timers.push((time, cpu));
    }

    /// Whether the next timer of a processor that has just handled some is due before those of
    /// all others: setting it ends the turn.
    fn sets_first_timer(&mut self, cpu: u16, now: Time) -> bool {
        if self.sets_timer.take_if(|own| *own == cpu).is_none() {
            return false;
        }
        self.timers.retain(|(time, _)| *time > now);
        let first = |own: bool| {
            let timers = self.timers.iter().filter(|(_, of)| (*of == cpu) == own);
            timers.map(|(time, _)| *time).min()
        };
        first(true).is_some_and(|own| first(false).is_none_or(|other| own < other))
    }

    fn nr_cpus(&self) -> u16 {
        self.kicked.len() as u16
    }

    /// A timer is due.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// A processor is interrupted.
    pub(super) fn interrupt(&mut self, cpu: u16, ended: Ended) {
        self.interrupts[usize::from(cpu)].push(ended);
    }

    fn is_interrupted(&self, cpu: u16) -> bool {
        !self.interrupts[usize::from(cpu)].is_empty()
    }

    /// The processors in order, beginning with the next.
    fn round(&self) -> impl Iterator<Item = u16> + use<> {
        (self.next..self.nr_cpus()).chain(0..self.next)
    }

    /// A timer ended the turn of a processor, or nobody's.
    fn times_out(&mut self, active: Option<u16>) {
        if let Some(active) = active {
            self.next = (active + 1) % self.nr_cpus();
        }
        let next = usize::from(self.next);
        let finds_out = active.is_some() && next != 0 && !self.kicked[next];
        self.kicked.fill(true);
        if finds_out {
            self.kicked[next] = self.interrupts[next].is_empty();
            self.next = (self.next + 1) % self.nr_cpus();
        }
    }

    /// The turn comes to a processor, past those that have nothing to do.
    fn comes_to(&mut self, cpu: u16) {
        for passed in self.round().take_while(|passed| *passed != cpu) {
            self.kicked[usize::from(passed)] = false;
        }
        self.kicked[usize::from(cpu)] = false;
        self.active = Some(cpu);
        self.starts_first = false;
    }

    /// Nobody has anything to do.
    fn rests(&mut self) {
        let mut rest = self.next..self.nr_cpus();
        self.next = 0;
        if let Some(cpu) = rest.find(|cpu| self.kicked[usize::from(*cpu)]) {
            self.kicked[usize::from(cpu)] = false;
            self.next = cpu;
        }
    }

    /// The processor whose turn it is sets a timer, and kicks all others.
    fn kicks(&mut self, cpu: u16) {
        self.kicked.fill(true);
        self.kicked[usize::from(cpu)] = false;
        self.active = Some(cpu);
        self.pass_on();
    }

    /// The processor whose turn it is has nothing more to do.
    fn pass_on(&mut self) {
        if let Some(active) = self.active.take() {
            self.next = (active + 1) % self.nr_cpus();
        }
    }
}

/// What the processor whose turn it is does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A task goes on.
    Poll(TaskId),
    /// It handles its interrupts.
    Interrupts(u16),
}

/// What a processor could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Next(Next),
    /// Something takes time.
    Busy,
    /// It has set a timer that is due before all others.
    Kicks,
    Idle,
}

impl Found {
    fn next(self) -> Option<Next> {
        match self {
            Found::Next(next) => Some(next),
            Found::Busy | Found::Idle | Found::Kicks => None,
        }
    }
}

impl World {
    /// Commands of a disk that have ended, and whose processors have not heard of it.
    pub(super) fn nr_unheard(&self, no: QueueNo) -> usize {
        let interrupts = self.turns.iter().flat_map(|turns| &turns.interrupts);
        interrupts.flatten().filter(|ended| ended.no == no).count()
    }

    /// Whether a task is woken on another processor, which sleeps: it is interrupted, and has
    /// the work of the wake-up (`ttwu_queue_wakelist`).
    pub(super) fn calls_processor_of(&mut self, task: TaskId) -> bool {
        let cpu = self.cpu_of(task);
        let calls = self.turns.is_some() && cpu != self.running.cpu && self.is_alone(task);
        if calls {
            let now = self.agenda.now();
            let span = self.costs.interrupt + self.costs.wake;
            self.cpus[usize::from(cpu)].interrupt(now, span);
        }
        calls
    }

    /// Whether who hands over a command now starts a timer that ends its turn.
    pub(super) fn look_at_timers(&mut self, no: QueueNo) {
        let Some(turns) = &mut self.turns else { return };
        let disk = &mut self.disks[no.idx()];
        if let (Interrupts::OfCommand, Queue::Mq(queue)) = (disk.interrupts, &mut disk.queue) {
            queue.stop_after_one(turns.is_quiet(self.agenda.now()));
        }
    }

    /// What happens next where processors have turns; nothing else does at this instant.
    pub(super) fn next_in_turn(&mut self) -> Option<Next> {
        let turns = self.turns.as_mut()?;
        let active = turns.active;
        if std::mem::take(&mut turns.is_over) {
            turns.active = None;
            turns.times_out(active);
            self.stands_still(active);
        } else if let Some(cpu) = active {
            let found = if std::mem::take(&mut turns.starts_first) {
                Found::Kicks
            } else {
                self.found(cpu)
            };
            match found {
                Found::Idle => self.turns.as_mut()?.pass_on(),
                Found::Kicks => self.turns.as_mut()?.kicks(cpu),
                found => return found.next(),
            }
            self.stands_still(active);
        }
        for cpu in self.turns.as_ref()?.round() {
            self.goes_on_computing(cpu);
            match self.found(cpu) {
                Found::Idle => self.stands_still(Some(cpu)),
                Found::Kicks => {
                    self.turns.as_mut()?.kicks(cpu);
                    self.stands_still(Some(cpu));
                    return self.next_in_turn();
                }
                found => {
                    self.turns.as_mut()?.comes_to(cpu);
                    return found.next();
                }
            }
        }
        self.turns.as_mut()?.rests();
        None
    }

    fn stands_still(&mut self, cpu: Option<u16>) {
        let now = self.agenda.now();
        if let Some(cpu) = cpu {
            self.cpus[usize::from(cpu)].halt(now);
        }
    }

    fn goes_on_computing(&mut self, cpu: u16) {
        let now = self.agenda.now();
        if let Some((task, end)) = self.cpus[usize::from(cpu)].go(now) {
            self.agenda.wake_task_at(task, end);
        }
    }

    /// What a processor does that does not stand still.
    fn found(&mut self, cpu: u16) -> Found {
        let turns = self.turns.as_mut().expect("processors have turns");
        if turns.is_interrupted(cpu) {
            return Found::Next(Next::Interrupts(cpu));
        }
        let now = self.agenda.now();
        let own = &mut self.cpus[usize::from(cpu)];
        let until = own.interrupted_until();
        if until > now {
            self.agenda.ready_work_at(Work::Return(cpu).id(), until);
            return Found::Busy;
        }
        if turns.sets_first_timer(cpu, now) {
            return Found::Kicks;
        }
        if !own.is_free() {
            return Found::Busy;
        }
        match own.next(now) {
            None => Found::Idle,
            Some(Turn::Poll(task)) => Found::Next(Next::Poll(task)),
            Some(Turn::Compute(task, end)) => {
                self.agenda.wake_task_at(task, end);
                Found::Busy
            }
        }
    }
}

impl Machine {
    /// A processor handles its interrupts: the commands that ended, and what others sent it.
    pub(super) fn handle_interrupts(&self, cpu: u16) {
        {
            let w = &mut *self.inner.world.borrow_mut();
            w.running = Running {
                cpu,
                ..Running::INTERRUPT
            };
            let turns = w.turns.as_mut().expect("processors have turns");
            let ended = std::mem::take(&mut turns.interrupts[usize::from(cpu)]);
            turns.sets_timer = Some(cpu);
            let each = w.costs.interrupt.ns();
            w.interrupt(Span(each * ended.len() as u64));
            w.done.extend(ended);
        }
        self.route();
        self.inner.world.borrow_mut().running = Running::INTERRUPT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four processors; a timer kicked these when the turn came to `at`.
    fn turns(at: u16, kicked: [bool; 4]) -> Turns {
        Turns {
            active: Some(at),
            kicked: kicked.to_vec(),
            ..Turns::new(4)
        }
    }

    #[test]
    fn who_finds_a_timer_due_has_no_turn() {
        for (active, kicked, next) in [
            (0, [false, true, true, true], 1),
            (0, [false, false, true, true], 2),
            (2, [false, false, false, false], 0),
            (2, [false, false, false, true], 3),
            (3, [false, false, false, false], 0),
        ] {
            let mut t = turns(active, kicked);
            t.times_out(Some(active));
            assert_eq!(t.next, next, "{active} {kicked:?}");
            assert_eq!(t.kicked, [true; 4], "they sleep");
        }
    }

    #[test]
    fn a_timer_that_is_due_first_ends_the_turn() {
        let mut t = Turns::new(4);
        t.starts_timer(2, Time(500));
        assert!(t.starts_first, "there is no other");
        t.comes_to(3);
        t.starts_timer(3, Time(600));
        assert!(!t.starts_first);
        // Two commands that ended: their processors set their timers anew.
        t.sets_timer = Some(2);
        assert!(!t.sets_first_timer(2, Time(500)), "it has none");
        t.starts_timer(2, Time(1000));
        t.sets_timer = Some(3);
        assert!(t.sets_first_timer(3, Time(510)));
        assert!(!t.sets_first_timer(3, Time(510)), "once");
        assert!(!t.is_quiet(Time(999)) && t.is_quiet(Time(1000)));
    }

    #[test]
    fn the_turn_goes_round_and_kicks_end_where_it_passes() {
        let mut t = turns(2, [true; 4]);
        t.pass_on();
        assert_eq!(t.round().collect::<Vec<_>>(), [3, 0, 1, 2]);
        t.comes_to(1);
        assert_eq!(t.kicked, [false, false, true, false]);
        t.pass_on();
        t.rests();
        assert_eq!(t.next, 2, "the next who was kicked");
        t.rests();
        assert_eq!(t.next, 0);
    }
}
