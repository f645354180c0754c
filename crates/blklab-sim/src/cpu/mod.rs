// SPDX-License-Identifier: MIT OR Apache-2.0
//! One processor that tasks share. Whose turn it is, the fair scheduler of the
//! release decides: [`cfs`] up to 6.5, [`eevdf`] from 6.6 on.
//!
//! Who begins counts as a sleeper, too: kernel threads have been there for long,
//! and a session of its own, as fio makes of each job (`setsid`), is a group that
//! enters the queue as one that slept (`sched_autogroup_enabled`). Who is in the
//! kernel is not interrupted but by devices (`CONFIG_PREEMPT_VOLUNTARY`): such a task
//! is looked at when a piece of its computation is over. Who is in its program gives
//! way as soon as the interrupt is over that woke another (`irqentry_exit`). From 7.0 on
//! who is in the kernel is looked at only when it goes back to its program, or at a tick
//! if it was to give way by then (`PREEMPT_LAZY`); from 7.1 on where a slice ends, too.
//!
//! Left out: nice values but that of kblockd, control groups, real-time classes; a tick
//! takes the processor from a program at the end of its piece.

mod cfs;
mod eevdf;
mod features;

use blklab_kernel::KernelVersion;
use blklab_types::{Hz, IdVec, Span, TaskId, Time};
use cfs::Cfs;
use eevdf::{Eevdf, Rules};
pub(crate) use features::{CHANGES, Features};

/// Whether who is in the kernel gives way only when it leaves it, or at a tick.
pub(crate) fn preempts_lazily(kernel: KernelVersion) -> bool {
    Features::of(kernel).lazy
}

/// Whether tasks share a processor by deadlines.
pub(crate) fn goes_by_deadlines(kernel: KernelVersion) -> bool {
    Features::of(kernel).deadlines
}

/// The fair scheduler of a release.
#[derive(Debug)]
enum Fair {
    Cfs(Cfs),
    Eevdf(Eevdf),
}

impl Fair {
    fn by_release(kernel: KernelVersion, hz: Hz) -> Fair {
        let features = Features::of(kernel);
        if !features.deadlines {
            return Fair::Cfs(Cfs::default());
        }
        Fair::Eevdf(Eevdf::new(Rules {
            slice_ns: features.slice_ns,
            tick_ns: 1_000_000_000 / u64::from(hz.0),
            delays: features.delays,
        }))
    }
}

/// What to do with a task that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It goes on with its program.
    Poll(TaskId),
    /// It begins to compute, which ends then.
    Compute(TaskId, Time),
}

/// Where a task computes, which decides when it gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// In a system call: at the end of the piece.
    Kernel,
    /// In its program: at the end of an interrupt, too.
    User,
}

/// What a task is to compute that waits for the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    span: Span,
    mode: Mode,
}

/// A computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    task: TaskId,
    /// It has been charged for until then.
    since: Time,
    end: Time,
    mode: Mode,
}

/// The processor and who waits for it.
#[derive(Debug)]
pub(crate) struct Cpu {
    fair: Fair,
    feat: Features,
    /// Who computes gives way in the kernel, too, if somebody goes before it.
    is_urgent: bool,
    left: IdVec<TaskId, Option<Left>>,
    running: Option<Running>,
    hz: Hz,
    /// What it takes to go back to a task that others went before.
    switch: Span,
    /// Who computed last.
    last: Option<TaskId>,
    /// The end of the interrupts so far.
    interrupted_until: Time,
    /// It stands still since then, as another one runs.
    halted: Option<Time>,
}

impl Cpu {
    /// A processor where a change of tasks takes so long.
    pub(crate) fn new(kernel: KernelVersion, hz: Hz, switch: Span) -> Cpu {
        Cpu {
            fair: Fair::by_release(kernel, hz),
            feat: Features::of(kernel),
            is_urgent: false,
            left: IdVec::default(),
            running: None,
            hz,
            switch,
            last: None,
            interrupted_until: Time::ZERO,
            halted: None,
        }
    }

    /// Another processor runs in its place from now on.
    pub(crate) fn halt(&mut self, now: Time) {
        self.halted.get_or_insert(now);
    }

    /// It runs again: what it had not finished ends as much later as it stood still. Who
    /// computes, and when that ends now.
    pub(crate) fn go(&mut self, now: Time) -> Option<(TaskId, Time)> {
        let halted = self.halted.take()?;
        let stood = now.since(halted);
        if self.interrupted_until > halted {
            self.interrupted_until += stood;
        }
        let running = self.running.as_mut()?;
        running.since += stood;
        running.end += stood;
        Some((running.task, running.end))
    }

    /// Whether a task that sleeps competes on this processor all the same.
    pub(crate) fn keeps(&self, task: TaskId) -> bool {
        match &self.fair {
            Fair::Cfs(_) => false,
            Fair::Eevdf(fair) => fair.is_delayed(task),
        }
    }

    /// The present as its clock of computations has it.
    fn present(&self, now: Time) -> Time {
        self.halted.unwrap_or(now)
    }

    /// Until when interrupts keep it from tasks.
    pub(crate) fn interrupted_until(&self) -> Time {
        self.interrupted_until
    }

    /// The task is a kernel thread of nice level -20.
    pub(crate) fn set_urgent(&mut self, task: TaskId) {
        match &mut self.fair {
            Fair::Cfs(fair) => fair.set_urgent(task),
            Fair::Eevdf(fair) => fair.set_urgent(task),
        }
    }

    /// The task had so much of the processor to get ready, with nobody beside it:
    /// where who slept is placed by what others had, it begins behind them.
    pub(crate) fn has_had(&mut self, task: TaskId, span: Span) {
        if let Fair::Cfs(fair) = &mut self.fair {
            fair.has_had(task, span.ns());
        }
    }

    /// An interrupt takes the processor for a span. Who computes goes on later:
    /// it, and when it ends now.
    pub(crate) fn interrupt(&mut self, now: Time, span: Span) -> Option<(TaskId, Time)> {
        self.interrupted_until = self.interrupted_until.max(self.present(now)) + span;
        let running = self.running.as_mut()?;
        running.end += span;
        Some((running.task, running.end))
    }

    /// Whether nobody computes.
    pub(crate) fn is_free(&self) -> bool {
        self.running.is_none()
    }

    /// The agenda named a task: true if its computation is over now and it is to
    /// be polled. Otherwise it has woken up and waits for the processor, or an
    /// interrupt has put its end off.
    pub(crate) fn is_done_computing(&mut self, task: TaskId, now: Time) -> bool {
        if let Some(running) = self.running
            && running.task == task
        {
            return self.present(now) >= running.end;
        }
        if self.left.entry(task).is_none() {
            self.wake_up(task, now);
        }
        false
    }

    fn wake_up(&mut self, task: TaskId, now: Time) {
        self.account(now, true);
        match &mut self.fair {
            Fair::Cfs(fair) => fair.wake(task, self.running.is_some()),
            Fair::Eevdf(fair) => fair.wake(task),
        }
        self.preempt(now);
    }

    /// Who computes in its program leaves the rest of it for later if somebody goes
    /// before it.
    fn preempt(&mut self, now: Time) {
        let now = self.present(now);
        let Some(running) = self.running.filter(|r| r.mode == Mode::User) else {
            return;
        };
        let from = now.max(running.since).max(self.interrupted_until);
        if running.end <= from || !self.yields(running.task) {
            return;
        }
        self.running = None;
        let left = Left {
            span: running.end.since(from),
            mode: Mode::User,
        };
        self.waits(running.task, left);
    }

    /// Whether somebody goes before a task that is about to go on.
    fn yields_in(&mut self, task: TaskId, mode: Mode) -> bool {
        let stays = self.feat.lazy && mode == Mode::Kernel && !self.is_urgent;
        if stays {
            return false;
        }
        self.is_urgent = false;
        self.yields(task)
    }

    /// Whether somebody goes before a task that could go on.
    fn yields(&mut self, task: TaskId) -> bool {
        match &mut self.fair {
            Fair::Cfs(fair) => fair.yields(task),
            Fair::Eevdf(fair) => fair.yields(task),
        }
    }

    /// The task waits for its turn to compute what is left.
    fn waits(&mut self, task: TaskId, left: Left) {
        *self.left.entry(task) = Some(left);
        match &mut self.fair {
            Fair::Cfs(fair) => fair.wait(task),
            Fair::Eevdf(fair) => fair.wait(task),
        }
    }

    /// Charges who computes for what it had until now. The scheduler looks at it
    /// when somebody wakes up, and at every tick.
    fn account(&mut self, now: Time, looks: bool) {
        let now = self.present(now);
        let Some(running) = &mut self.running else {
            return;
        };
        let (task, began) = (running.task, running.since);
        running.since = now.max(began);
        let had = now.since(began).ns();
        let ticks = self.hz.jiffies_at(now) > self.hz.jiffies_at(began);
        match &mut self.fair {
            Fair::Cfs(fair) => fair.charge(task, had, ticks),
            Fair::Eevdf(fair) => {
                // What was asked for lazily by then is urgent at a tick.
                self.is_urgent |= ticks && fair.looks_again();
                let on_time = self.feat.ends_on_time;
                let over = fair.charge(task, had, looks || ticks || on_time);
                self.is_urgent |= on_time && over;
            }
        }
    }

    /// A task wants to compute: when that will end, or none if somebody else's
    /// turn comes first.
    pub(crate) fn begin(
        &mut self,
        task: TaskId,
        now: Time,
        span: Span,
        mode: Mode,
    ) -> Option<Time> {
        let left = Left { span, mode };
        if !self.yields_in(task, mode) {
            return Some(self.run(task, now, left));
        }
        self.waits(task, left);
        None
    }

    /// The task computes once interrupts are through: its end.
    fn run(&mut self, task: TaskId, now: Time, left: Left) -> Time {
        let since = now.max(self.interrupted_until);
        let end = since + left.span;
        self.running = Some(Running {
            task,
            since,
            end,
            mode: left.mode,
        });
        self.last = Some(task);
        end
    }

    /// Whether the computation that the task began is over.
    pub(crate) fn has_ended(&self, task: TaskId, now: Time) -> bool {
        matches!(self.running, Some(r) if r.task == task && self.present(now) >= r.end)
    }

    /// The task's computation is over.
    pub(crate) fn end(&mut self, now: Time) {
        self.account(now, false);
        self.running = None;
    }

    /// Whose turn it is, if the processor is free.
    pub(crate) fn next(&mut self, now: Time) -> Option<Turn> {
        if self.running.is_some() {
            return None;
        }
        self.is_urgent = false;
        let task = match &mut self.fair {
            Fair::Cfs(fair) => fair.pick(),
            Fair::Eevdf(fair) => fair.pick(),
        }?;
        match self.left.entry(task).take() {
            None => Some(Turn::Poll(task)),
            Some(mut left) => {
                if self.last != Some(task) {
                    left.span += self.switch;
                }
                Some(Turn::Compute(task, self.run(task, now, left)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const KBLOCKD: TaskId = TaskId(2);

    fn us(n: u64) -> Time {
        Time(1000 * n)
    }

    fn cpu() -> Cpu {
        cpu_of(6, 1)
    }

    fn cpu_of(major: u16, minor: u16) -> Cpu {
        let kernel = KernelVersion::new(major, minor);
        let mut cpu = Cpu::new(kernel, Hz(250), Span::from_us(2));
        cpu.set_urgent(KBLOCKD);
        cpu
    }

    /// The task computes from `begin` to `end` without others.
    fn computes(cpu: &mut Cpu, task: TaskId, begin: Time, end: Time) {
        assert_eq!(
            cpu.begin(task, begin, end.since(begin), Mode::Kernel),
            Some(end)
        );
        cpu.end(end);
    }

    /// Both wake up in this order; who goes first.
    fn first_of(cpu: &mut Cpu, tasks: [TaskId; 2], now: Time) -> Option<Turn> {
        for task in tasks {
            assert!(!cpu.is_done_computing(task, now));
        }
        cpu.next(now)
    }

    #[test]
    fn kblockd_goes_before_a_task_that_computed_like_others() {
        let mut cpu = cpu();
        computes(&mut cpu, A, us(0), us(20));
        let first = first_of(&mut cpu, [A, KBLOCKD], us(500));
        assert_eq!(first, Some(Turn::Poll(KBLOCKD)));
    }

    #[test]
    fn who_had_little_is_as_far_behind_as_kblockd_and_goes_first_if_woken_first() {
        let mut cpu = cpu();
        computes(&mut cpu, A, us(0), us(20));
        // Another has had more than a sleeper may fall behind.
        computes(&mut cpu, B, us(20), us(5000));
        let first = first_of(&mut cpu, [A, KBLOCKD], us(6000));
        assert_eq!(first, Some(Turn::Poll(A)));
    }

    #[test]
    fn an_interrupt_puts_the_end_off_and_delays_who_begins() {
        let mut cpu = cpu();
        assert_eq!(cpu.interrupt(us(0), Span::from_us(1)), None);
        assert_eq!(
            cpu.begin(A, us(0), Span::from_us(10), Mode::Kernel),
            Some(us(11))
        );
        let later = cpu.interrupt(us(5), Span::from_us(1));
        assert_eq!(later, Some((A, us(12))));
        assert!(!cpu.is_done_computing(A, us(11)));
        assert!(cpu.is_done_computing(A, us(12)));
    }

    #[test]
    fn a_piece_is_not_interrupted_by_tasks_but_the_next_one_waits() {
        let mut cpu = cpu();
        assert!(!cpu.is_done_computing(A, us(0)));
        assert_eq!(cpu.next(us(0)), Some(Turn::Poll(A)));
        assert_eq!(
            cpu.begin(A, us(0), Span::from_us(4000), Mode::Kernel),
            Some(us(4000))
        );
        assert!(!cpu.is_done_computing(KBLOCKD, us(10)));
        assert!(cpu.has_ended(A, us(4000)));
        cpu.end(us(4000));
        assert_eq!(
            cpu.begin(A, us(4000), Span::from_us(10), Mode::Kernel),
            None
        );
        assert_eq!(cpu.next(us(4000)), Some(Turn::Poll(KBLOCKD)));
        computes(&mut cpu, KBLOCKD, us(4000), us(4005));
        // Going back takes a change of tasks.
        assert_eq!(cpu.next(us(4005)), Some(Turn::Compute(A, us(4017))));
    }

    #[test]
    fn a_program_gives_way_at_the_end_of_the_interrupt() {
        for (mode, first) in [
            (Mode::User, Some(Turn::Poll(KBLOCKD))),
            (Mode::Kernel, None),
        ] {
            let mut cpu = cpu();
            assert!(!cpu.is_done_computing(A, us(0)));
            assert_eq!(cpu.next(us(0)), Some(Turn::Poll(A)));
            assert_eq!(
                cpu.begin(A, us(0), Span::from_us(4000), mode),
                Some(us(4000))
            );
            assert_eq!(
                cpu.interrupt(us(1000), Span::from_us(3)),
                Some((A, us(4003)))
            );
            assert!(!cpu.is_done_computing(KBLOCKD, us(1000)));
            assert_eq!(cpu.next(us(1000)), first, "{mode:?}");
            if mode == Mode::User {
                let end = cpu.begin(KBLOCKD, us(1000), Span::from_us(5), Mode::Kernel);
                assert_eq!(end, Some(us(1008)));
                cpu.end(us(1008));
                // The rest, and a change of tasks.
                assert_eq!(cpu.next(us(1008)), Some(Turn::Compute(A, us(4010))));
            }
        }
    }

    #[test]
    fn the_first_that_takes_the_processor_goes_before_one_that_had_a_little_less() {
        let mut cpu = cpu();
        computes(&mut cpu, B, us(0), us(100));
        assert!(!cpu.is_done_computing(A, us(100)));
        assert_eq!(cpu.next(us(100)), Some(Turn::Poll(A)));
        assert_eq!(
            cpu.begin(A, us(100), Span::from_us(3000), Mode::Kernel),
            Some(us(3100))
        );
        for task in [B, TaskId(3)] {
            assert!(!cpu.is_done_computing(task, us(3000)));
        }
        cpu.end(us(3100));
        assert_eq!(
            cpu.begin(A, us(3100), Span::from_us(10), Mode::Kernel),
            None
        );
        assert_eq!(cpu.next(us(3100)), Some(Turn::Poll(B)));
    }

    #[test]
    fn who_did_not_take_the_processor_when_it_woke_up_waits_for_the_tick() {
        let mut cpu = cpu();
        assert!(!cpu.is_done_computing(A, us(0)));
        assert_eq!(cpu.next(us(0)), Some(Turn::Poll(A)));
        let mut now = us(0);
        assert_eq!(
            cpu.begin(A, now, Span::from_us(1000), Mode::Kernel),
            Some(us(1000))
        );
        // 0.9 ms is less than the granularity; later it would be more.
        assert!(!cpu.is_done_computing(B, us(900)));
        for _ in 0..3 {
            now += Span::from_us(1000);
            cpu.end(now);
            let end = cpu.begin(A, now, Span::from_us(1000), Mode::Kernel);
            assert_eq!(end, Some(now + Span::from_us(1000)));
        }
        cpu.end(us(4000));
        assert_eq!(
            cpu.begin(A, us(4000), Span::from_us(1000), Mode::Kernel),
            None
        );
        assert_eq!(cpu.next(us(4000)), Some(Turn::Poll(B)));
    }

    #[test]
    fn a_job_that_had_to_get_ready_is_behind_who_only_slept() {
        let mut cpu = cpu();
        cpu.has_had(A, Span::from_ms(10));
        let first = first_of(&mut cpu, [A, B], us(10));
        assert_eq!(first, Some(Turn::Poll(B)));
    }

    /// A and B sleep in turn and take as much as they can; who computes 3/4 of a ms
    /// has had its slice.
    #[test]
    fn a_slice_of_eevdf_is_not_cut_short_by_who_wakes_up() {
        let mut cpu = cpu_of(6, 12);
        assert_eq!(first_of(&mut cpu, [A, B], us(0)), Some(Turn::Poll(A)));
        assert_eq!(
            cpu.begin(A, us(0), Span::from_us(100), Mode::Kernel),
            Some(us(100))
        );
        cpu.end(us(100));
        // It had more than the average now.
        assert!(!cpu.is_done_computing(KBLOCKD, us(100)));
        assert_eq!(
            cpu.begin(A, us(100), Span::from_us(100), Mode::Kernel),
            None
        );
        assert_eq!(cpu.next(us(100)), Some(Turn::Poll(KBLOCKD)));
    }

    /// A has computed more than the average when B wakes up, but goes on in the kernel from
    /// 7.0 on until a tick finds that B is to go before it, or it goes back to its program.
    #[test]
    fn who_is_in_the_kernel_goes_on_for_a_while_from_7_0() {
        for (kernel, mode, goes_on) in [
            ((6, 18), Mode::Kernel, false),
            ((7, 0), Mode::Kernel, true),
            ((7, 0), Mode::User, false),
        ] {
            let mut cpu = cpu_of(kernel.0, kernel.1);
            assert_eq!(first_of(&mut cpu, [A, B], us(0)), Some(Turn::Poll(A)));
            let piece = Span::from_us(100);
            assert_eq!(cpu.begin(A, us(0), piece, Mode::Kernel), Some(us(100)));
            cpu.end(us(100));
            assert!(!cpu.is_done_computing(KBLOCKD, us(100)));
            let end = cpu.begin(A, us(100), piece, mode);
            assert_eq!(end.is_some(), goes_on, "{kernel:?} {mode:?}");
            if goes_on {
                // Ticks come every 4 ms.
                cpu.end(us(200));
                let long = Span::from_us(4000);
                assert_eq!(cpu.begin(A, us(200), long, Mode::Kernel), Some(us(4200)));
                cpu.end(us(4200));
                assert_eq!(cpu.begin(A, us(4200), piece, Mode::Kernel), None);
                assert_eq!(cpu.next(us(4200)), Some(Turn::Poll(KBLOCKD)));
            }
        }
    }

    /// B had too much when it went to sleep: until 6.11 it stays behind however
    /// long it sleeps, from 6.12 on it is level with the others once they had as
    /// much.
    #[test]
    fn who_had_too_much_is_forgiven_in_its_sleep_from_6_12() {
        for (minor, first) in [(11, A), (12, B)] {
            let mut cpu = cpu_of(6, minor);
            assert_eq!(first_of(&mut cpu, [B, A], us(0)), Some(Turn::Poll(B)));
            assert_eq!(
                cpu.begin(B, us(0), Span::from_us(700), Mode::Kernel),
                Some(us(700))
            );
            cpu.end(us(700));
            assert_eq!(cpu.next(us(700)), Some(Turn::Poll(A)), "B sleeps");
            assert_eq!(
                cpu.begin(A, us(700), Span::from_us(740), Mode::Kernel),
                Some(us(1440))
            );
            cpu.end(us(1440));
            assert_eq!(cpu.next(us(1440)), None, "A sleeps");
            assert!(!cpu.is_done_computing(KBLOCKD, us(2000)));
            assert_eq!(cpu.next(us(2000)), Some(Turn::Poll(KBLOCKD)));
            assert_eq!(
                cpu.begin(KBLOCKD, us(2000), Span::from_us(5), Mode::Kernel),
                Some(us(2005))
            );
            for task in [B, A] {
                assert!(!cpu.is_done_computing(task, us(2005)));
            }
            cpu.end(us(2005));
            assert_eq!(cpu.next(us(2005)), Some(Turn::Poll(first)), "6.{minor}");
        }
    }
}
