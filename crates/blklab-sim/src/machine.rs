// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated computer: the agenda's loop, the tasks, and the routes between
//! queues, devices and tasks. The routes of an array are in `array.rs`.

use crate::cpu::{Cpu, Turn};
use crate::progress::Progress;
use blklab_block::md::{Array, MEMBERS_MAX};
use blklab_block::{Cx, Effect, Pending, Queue, RqId, Running, Submit, TaskTable};
use blklab_device::{CmdId, Command, Device, DeviceCx, Done};
use blklab_engine::{Agenda, DeviceId, Due, TimerId, WorkId};
use blklab_target::Sinks;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, IoPrio, PAGE_SECTORS, Pid, Span, TaskId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

/// One of the machine's queues: a disk's by its number from 0, or the array's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueNo(pub(crate) u32);

impl QueueNo {
    /// The only disk, or the first member of an array.
    pub(crate) const FIRST: QueueNo = QueueNo(0);
    /// The array in front of the disks: behind the last that there can be.
    pub(crate) const ARRAY: QueueNo = QueueNo(MEMBERS_MAX);

    fn idx(self) -> usize {
        self.0 as usize
    }

    /// kblockd is to remove the plug.
    fn unplug_work(self) -> WorkId {
        WorkId(2 * self.0)
    }

    /// kblockd is to call the driver.
    fn run_work(self) -> WorkId {
        WorkId(2 * self.0 + 1)
    }

    /// The queue that work is for, and whether it is to remove the plug.
    fn of_work(work: WorkId) -> (QueueNo, bool) {
        (QueueNo(work.0 / 2), work.0.is_multiple_of(2))
    }
}

/// Pid of the kernel thread that does the block layer's deferred work.
pub const KBLOCKD_PID: Pid = 42;

/// Its name, where it is a task.
const KBLOCKD_NAME: &str = "kworker/0:1H";

/// Bio cookies with this bit belong to the owner registered with
/// [`Machine::on_bio_done`]; the others are the number of the task that counts
/// its completions: another may have submitted the bio on its behalf.
pub const OWNED_COOKIE: u64 = 1 << 63;

/// What a machine is made of.
pub struct Config {
    /// Virtual time and timers; the queue's timers are registered in it.
    pub agenda: Agenda,
    /// The disks, one or more. Their queues' timers are registered in this
    /// order, those of each scheduler before its queue's.
    pub disks: Vec<Disk>,
    /// What makes one device of several disks.
    pub array: Option<Array>,
    /// Control groups, and no tasks yet.
    pub tasks: TaskTable,
    /// How tasks share processors.
    pub cpu: CpuSharing,
    /// Streams of the run.
    pub sinks: Sinks,
    /// Set from outside to end the run at its next step.
    pub stop: Arc<AtomicBool>,
}

/// How tasks share processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuSharing {
    /// Every task has its own.
    #[default]
    None,
    /// The same, but the block layer's thread waits while a task that slept
    /// computes: one processor, as the single-queue kernels are modelled.
    HoldsKblockd,
    /// There is one, and they take turns.
    One(CpuCosts),
}

/// What takes time of the one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCosts {
    /// Who slept, or was interrupted by another, takes this long to get going
    /// again.
    pub switch: Span,
    /// An interrupt of a device.
    pub interrupt: Span,
    /// A request from the scheduler to the driver.
    pub dispatch: Span,
    /// A page that the driver copies.
    pub copy: Span,
}

impl CpuCosts {
    /// What the driver takes for a request.
    fn of_request(&self, nr_sectors: u32) -> Span {
        let pages = u64::from(nr_sectors) / PAGE_SECTORS;
        self.dispatch + Span(self.copy.ns() * pages)
    }
}

impl CpuSharing {
    /// What takes time: nothing, where tasks do not share.
    fn costs(self) -> CpuCosts {
        match self {
            CpuSharing::One(costs) => costs,
            _ => CpuCosts::default(),
        }
    }
}

/// A disk and its queue.
pub struct Disk {
    /// Its queue, with scheduler and driver.
    pub queue: Queue,
    /// The device.
    pub device: Box<dyn Device>,
}

/// Longer than this no task is favoured for having slept
/// (`sysctl_sched_wakeup_granularity`, 2.6.28).
const COMPUTES_AT_MOST: Span = Span::from_ms(5);

type Body = Pin<Box<dyn Future<Output = ()>>>;
type BioDone = dyn Fn(u64, u16);

#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    /// Suspended and not made runnable since.
    suspended: bool,
    /// The request pool has room for it.
    request_granted: bool,
    /// Bios on their way, of a process that counts them.
    outstanding: u32,
    /// It sleeps until there are fewer; 0 if it does not wait for bios.
    awaits_below: u32,
    /// Processor time in the driver that it has not had yet.
    owed: Span,
    /// Does the run go on for its sake?
    foreground: bool,
    /// The priority of the request that it hands over, if it has one of its own.
    request_prio: Option<IoPrio>,
}

struct World {
    agenda: Agenda,
    disks: Vec<Disk>,
    array: Option<Array>,
    /// The thread that submits the writes of a mirror.
    array_thread: Option<TaskId>,
    /// kthrotld, where groups have limits.
    throttle_thread: Option<TaskId>,
    sinks: Sinks,
    tasks: TaskTable,
    states: Vec<TaskState>,
    running: Running,
    /// What the queues asked for, and how much of it has been carried out.
    effects: Vec<Effect>,
    next_effect: usize,
    /// Which queue asked, where there are several.
    askers: Vec<QueueNo>,
    wakes: Vec<(Time, u64)>,
    /// What the devices finished, and how much of it their queues know.
    done: Vec<Done>,
    next_done: usize,
    /// Which device it was, where there are several.
    finishers: Vec<QueueNo>,
    spawned: Vec<(TaskId, Body)>,
    congestion_waiters: VecDeque<TaskId>,
    nr_foreground: usize,
    /// Tasks that compute after a sleep, and the work of kblockd that waits for
    /// them to sleep.
    nr_computing: usize,
    held_work: Vec<WorkId>,
    /// The processor, where there is one.
    cpu: Cpu,
    /// The block layer's thread, where it is a task, and whether it is wanted.
    kblockd: Option<TaskId>,
    kblockd_wanted: bool,
    next_kernel_pid: Pid,
}

struct Inner {
    world: RefCell<World>,
    bio_done: RefCell<Option<Rc<BioDone>>>,
    has_array: bool,
    nr_cpus: u16,
    cpu: CpuSharing,
    stop: Arc<AtomicBool>,
    progress: Progress,
}

/// A simulated computer. Handles are cheap to clone; all name the same one.
#[derive(Clone)]
pub struct Machine {
    inner: Rc<Inner>,
}

impl World {
    /// The disks, the array, and a context of the present to call into them.
    #[inline(always)]
    fn parts(&mut self) -> (&mut [Disk], Option<&mut Array>, Cx<'_>) {
        let cx = Cx {
            now: self.agenda.now(),
            jiffies: self.agenda.timers.jiffies(),
            running: self.running,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut *self.sinks.trace,
            truth: match &mut self.sinks.truth {
                Some(t) => Some(&mut **t),
                None => None,
            },
            effects: &mut self.effects,
        };
        (&mut self.disks, self.array.as_mut(), cx)
    }

    /// Calls into a queue.
    #[inline]
    fn enter<R>(&mut self, no: QueueNo, f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R) -> R {
        let (disks, _, mut cx) = self.parts();
        let r = f(&mut disks[no.idx()].queue, &mut cx);
        self.note_asker(no);
        r
    }

    /// Calls into the array; none if there is none.
    fn enter_array<R>(&mut self, f: impl FnOnce(&mut Array, &mut Cx<'_>) -> R) -> Option<R> {
        let (_, array, mut cx) = self.parts();
        let r = f(array?, &mut cx);
        self.note_asker(QueueNo::ARRAY);
        self.wake_array_thread();
        Some(r)
    }

    /// The effects that nobody is noted for are this queue's.
    #[inline]
    fn note_asker(&mut self, no: QueueNo) {
        if self.array.is_some() {
            self.askers.resize(self.effects.len(), no);
        }
    }

    /// The next thing that a queue asked for, and which.
    fn take_effect(&mut self) -> Option<(QueueNo, Effect)> {
        let effect = *self.effects.get(self.next_effect)?;
        let no = self.askers.get(self.next_effect).copied();
        self.next_effect += 1;
        Some((no.unwrap_or(QueueNo::FIRST), effect))
    }

    /// The next command that a device finished, and which.
    fn take_done(&mut self) -> Option<(QueueNo, Done)> {
        let done = *self.done.get(self.next_done)?;
        let no = self.finishers.get(self.next_done).copied();
        self.next_done += 1;
        Some((no.unwrap_or(QueueNo::FIRST), done))
    }

    fn wake_array_thread(&mut self) {
        if self.array.as_ref().is_some_and(Array::thread_is_woken)
            && let Some(thread) = self.array_thread
        {
            self.wake(thread);
        }
    }

    #[inline]
    fn with_device(&mut self, no: QueueNo, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) {
        let mut cx = DeviceCx {
            now: self.agenda.now(),
            wakes: &mut self.wakes,
            done: &mut self.done,
        };
        f(&mut *self.disks[no.idx()].device, &mut cx);
        for (time, token) in self.wakes.drain(..) {
            self.agenda.wake_device(DeviceId(no.0), time, token);
        }
        if self.array.is_some() {
            self.finishers.resize(self.done.len(), no);
        }
    }

    fn hand_over(&mut self, no: QueueNo, rq: RqId) {
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

    /// Who calls the driver owes the processor time that this takes.
    fn charge_request(&mut self, no: QueueNo, rq: RqId, costs: &CpuCosts) {
        if let Some(task) = self.running.task {
            let nr_sectors = self.disks[no.idx()].queue.requests()[rq].nr_sectors;
            let owed = &mut self.states[task.idx()].owed;
            *owed += costs.of_request(nr_sectors);
        }
    }

    /// Whether nothing is on its way.
    fn is_idle(&self) -> bool {
        self.disks.iter().all(|d| d.queue.is_idle())
            && self.array.as_ref().is_none_or(Array::is_idle)
    }

    /// The queue that a timer belongs to: timers are registered disk by disk,
    /// each queue's own last, and the array's after them.
    fn queue_of_timer(&self, timer: TimerId) -> QueueNo {
        let own = |d: &Disk| timer <= d.queue.last_timer();
        match self.disks.iter().position(own) {
            Some(i) => QueueNo(i as u32),
            None => QueueNo::ARRAY,
        }
    }

    /// An interrupt holds up who computes.
    fn interrupt(&mut self, span: Span) {
        if let Some((task, end)) = self.cpu.interrupt(self.agenda.now(), span) {
            self.agenda.wake_task_at(task, end);
        }
    }

    fn wake(&mut self, task: TaskId) {
        let state = &mut self.states[task.idx()];
        if std::mem::take(&mut state.suspended) {
            self.agenda.ready_task(task);
        }
    }
}

impl Machine {
    /// A machine at time 0 without tasks.
    pub fn new(config: Config) -> Machine {
        let has_array = config.array.is_some();
        let nr_cpus = config.disks.iter().map(|d| d.queue.nr_cpus()).max();
        let world = World {
            agenda: config.agenda,
            disks: config.disks,
            array: config.array,
            array_thread: None,
            throttle_thread: None,
            sinks: config.sinks,
            tasks: config.tasks,
            states: Vec::new(),
            running: Running::INTERRUPT,
            effects: Vec::new(),
            next_effect: 0,
            askers: Vec::new(),
            wakes: Vec::new(),
            done: Vec::new(),
            next_done: 0,
            finishers: Vec::new(),
            spawned: Vec::new(),
            congestion_waiters: VecDeque::new(),
            nr_foreground: 0,
            nr_computing: 0,
            held_work: Vec::new(),
            cpu: Cpu::new(config.cpu.costs().switch),
            kblockd: None,
            kblockd_wanted: false,
            next_kernel_pid: KBLOCKD_PID,
        };
        let machine = Machine {
            inner: Rc::new(Inner {
                world: RefCell::new(world),
                bio_done: RefCell::new(None),
                has_array,
                nr_cpus: nr_cpus.unwrap_or(1),
                cpu: config.cpu,
                stop: config.stop,
                progress: Progress::default(),
            }),
        };
        if let CpuSharing::One(_) = config.cpu {
            let body = kblockd_thread(machine.clone());
            let name = KBLOCKD_NAME;
            let prio = IoPrio::default();
            let task = machine.spawn_at(name, KBLOCKD_PID, prio, false, Time::ZERO, body);
            let mut w = machine.inner.world.borrow_mut();
            w.kblockd = Some(task);
            w.cpu.set_urgent(task);
        }
        machine
    }

    /// Adds a task that becomes runnable at `start`. The run ends when all
    /// foreground tasks have.
    pub fn spawn_at(
        &self,
        name: &str,
        pid: Pid,
        ioprio: IoPrio,
        foreground: bool,
        start: Time,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let mut w = self.inner.world.borrow_mut();
        let task = w.tasks.add(pid, ioprio);
        w.states.push(TaskState {
            foreground,
            ..TaskState::default()
        });
        w.nr_foreground += usize::from(foreground);
        let now = w.agenda.now();
        w.sinks.trace.process(now, pid, name);
        if start > now {
            w.agenda.wake_task_at(task, start);
        } else {
            w.agenda.ready_task(task);
        }
        w.spawned.push((task, Box::pin(body)));
        task
    }

    /// Adds a background task with the next free pid of kernel threads.
    pub fn spawn_kernel_thread(
        &self,
        name: &str,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let pid = {
            let mut w = self.inner.world.borrow_mut();
            w.next_kernel_pid += 1;
            w.next_kernel_pid
        };
        self.spawn_at(name, pid, IoPrio::default(), false, Time::ZERO, body)
    }

    /// Adds a background thread of a task: it inherits priority, nice value,
    /// CPU policy and control group, and has an io context of its own.
    pub fn spawn_thread(
        &self,
        name: &str,
        of: TaskId,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let task = self.spawn_kernel_thread(name, body);
        let mut w = self.inner.world.borrow_mut();
        let parent = *w.tasks.get(of);
        let own = w.tasks.get_mut(task);
        own.ioprio = parent.ioprio;
        own.nice = parent.nice;
        own.policy = parent.policy;
        own.group = parent.group;
        task
    }

    /// Sets a task's nice value, -20 to 19.
    pub fn set_nice(&self, task: TaskId, nice: i8) {
        self.inner.world.borrow_mut().tasks.get_mut(task).nice = nice;
    }

    /// Puts a task into a control group.
    pub fn set_group(&self, task: TaskId, group: u16) {
        self.inner.world.borrow_mut().tasks.get_mut(task).group = group;
    }

    /// The running task's control group; the root outside of tasks.
    pub(crate) fn group(&self) -> u16 {
        let w = self.inner.world.borrow();
        let of = |task| w.tasks.get(task).group;
        w.running.task.map_or(TaskTable::ROOT_GROUP, of)
    }

    /// Who is told when a bio with an [`OWNED_COOKIE`] finishes.
    pub fn on_bio_done(&self, f: impl Fn(u64, u16) + 'static) {
        *self.inner.bio_done.borrow_mut() = Some(Rc::new(f));
    }

    /// Runs until every foreground task has ended and the queue is empty, or
    /// nothing is due any more, or `limit`, or virtual time stands still: see
    /// [`Machine::has_stalled`].
    pub fn run(&self, limit: Time) {
        let mut bodies: Vec<Option<Body>> = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Some(task) = self.next_turn() {
                self.poll(&mut bodies, &mut context, task);
                continue;
            }
            let due = {
                let mut w = self.inner.world.borrow_mut();
                for (task, body) in w.spawned.drain(..) {
                    debug_assert_eq!(task.idx(), bodies.len(), "tasks are numbered in order");
                    bodies.push(Some(body));
                }
                if self.inner.stop.load(Ordering::Relaxed) || (w.nr_foreground == 0 && w.is_idle())
                {
                    return;
                }
                let due = w.agenda.next(limit);
                if self.inner.progress.event(w.agenda.now()) {
                    return;
                }
                due
            };
            match due {
                None => return,
                Some(Due::Task(task)) => {
                    if self.goes_on(task) {
                        self.poll(&mut bodies, &mut context, task);
                    }
                }
                Some(Due::Device(device, token)) => self.device_due(QueueNo(device.0), token),
                Some(Due::Timer(timer)) => self.timer_due(timer),
                Some(Due::Work(work)) => {
                    let mut w = self.inner.world.borrow_mut();
                    if w.nr_computing > 0 {
                        w.held_work.push(work);
                    } else {
                        drop(w);
                        self.work_due(work);
                    }
                }
            }
        }
    }

    /// Whether the run came to a halt because virtual time stood still: a fault
    /// of a model or of this crate.
    pub fn has_stalled(&self) -> bool {
        self.inner.progress.has_stalled()
    }

    /// A step of the running task that may take no time. It goes no further if
    /// the run is to end, or if there were too many steps at this instant.
    pub(crate) async fn tick(&self) {
        let stops = self.inner.stop.load(Ordering::Relaxed);
        if self.inner.progress.step(self.now()) || stops {
            std::future::pending::<()>().await;
        }
    }

    /// The running task found out that it makes no progress: the run ends.
    pub(crate) async fn stall(&self) {
        self.inner.progress.stall();
        std::future::pending::<()>().await;
    }

    /// A task is due: whether it goes on at once. Where tasks share a processor
    /// it does so when it is its turn.
    fn goes_on(&self, task: TaskId) -> bool {
        if !self.shares_cpu() {
            return true;
        }
        let w = &mut *self.inner.world.borrow_mut();
        w.cpu.is_done_computing(task, w.agenda.now())
    }

    /// Whose turn it is, once nothing else happens at this instant.
    fn next_turn(&self) -> Option<TaskId> {
        if !self.shares_cpu() {
            return None;
        }
        let w = &mut *self.inner.world.borrow_mut();
        if !w.cpu.is_free() || !w.agenda.is_quiet() || !w.spawned.is_empty() {
            return None;
        }
        match w.cpu.next(w.agenda.now())? {
            Turn::Poll(task) => Some(task),
            Turn::Compute(task, end) => {
                w.agenda.wake_task_at(task, end);
                None
            }
        }
    }

    pub(crate) fn shares_cpu(&self) -> bool {
        matches!(self.inner.cpu, CpuSharing::One(_))
    }

    fn timer_due(&self, timer: TimerId) {
        let no = self.inner.world.borrow().queue_of_timer(timer);
        if no == QueueNo::ARRAY {
            self.with_array(Array::unplug_timeout);
            return;
        }
        self.interrupt_entry(no, Running::INTERRUPT, |q, cx| q.timer(cx, timer));
    }

    /// kblockd runs.
    fn work_due(&self, work: WorkId) {
        let kblockd = Running {
            task: None,
            pid: KBLOCKD_PID,
            cpu: 0,
        };
        let (no, unplugs) = QueueNo::of_work(work);
        if no == QueueNo::ARRAY {
            self.inner.world.borrow_mut().running = kblockd;
            self.unplug_array();
            self.inner.world.borrow_mut().running = Running::INTERRUPT;
            return;
        }
        self.interrupt_entry(no, kblockd, |q, cx| {
            if unplugs {
                q.unplug_work(cx);
            } else {
                q.run_work(cx);
            }
        });
    }

    /// The processor that a task always runs on: they take turns as they are
    /// created.
    fn cpu_of(&self, task: TaskId) -> u16 {
        (task.idx() % usize::from(self.inner.nr_cpus)) as u16
    }

    fn poll(&self, bodies: &mut [Option<Body>], context: &mut Context<'_>, task: TaskId) {
        let Some(body) = bodies[task.idx()].as_mut() else {
            return;
        };
        {
            let mut w = self.inner.world.borrow_mut();
            let pid = w.tasks.get(task).pid;
            w.states[task.idx()].suspended = false;
            w.running = Running {
                task: Some(task),
                pid,
                cpu: self.cpu_of(task),
            };
        }
        let ready = body.as_mut().poll(context).is_ready();
        if ready {
            bodies[task.idx()] = None;
            let mut w = self.inner.world.borrow_mut();
            for i in 0..w.disks.len() as u32 {
                w.enter(QueueNo(i), |q, cx| {
                    q.exit_task(cx, task);
                    if i == 0 {
                        cx.truth_note(Kind::Exit, 0, "");
                    }
                });
            }
            let foreground = w.states[task.idx()].foreground;
            w.nr_foreground -= usize::from(foreground);
            drop(w);
            self.route();
        }
        let mut w = self.inner.world.borrow_mut();
        w.running = Running::INTERRUPT;
        if w.nr_computing == 0 && !w.held_work.is_empty() {
            let World {
                agenda, held_work, ..
            } = &mut *w;
            held_work.drain(..).for_each(|work| agenda.ready_work(work));
        }
    }

    fn device_due(&self, no: QueueNo, token: u64) {
        {
            let mut w = self.inner.world.borrow_mut();
            w.running = Running::INTERRUPT;
            w.with_device(no, |device, cx| device.wake(cx, token));
            if !w.done.is_empty() {
                w.interrupt(self.inner.cpu.costs().interrupt);
            }
        }
        self.route();
    }

    fn interrupt_entry(
        &self,
        no: QueueNo,
        running: Running,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>),
    ) {
        {
            let mut w = self.inner.world.borrow_mut();
            w.running = running;
            w.enter(no, f);
        }
        self.route();
        self.inner.world.borrow_mut().running = Running::INTERRUPT;
    }

    /// Carries out what the queues asked for, in order, and completes what the
    /// devices finished, until nothing is left.
    fn route(&self) {
        loop {
            let mut w = self.inner.world.borrow_mut();
            if let Some((no, effect)) = w.take_effect() {
                drop(w);
                self.carry_out(no, effect);
                continue;
            }
            w.effects.clear();
            w.askers.clear();
            w.next_effect = 0;
            let Some((no, done)) = w.take_done() else {
                w.done.clear();
                w.finishers.clear();
                w.next_done = 0;
                return;
            };
            w.enter(no, |q, cx| q.complete(cx, RqId(done.id.0), done.error));
        }
    }

    fn carry_out(&self, no: QueueNo, effect: Effect) {
        let mut w = self.inner.world.borrow_mut();
        match effect {
            Effect::Dispatch(rq) => {
                w.charge_request(no, rq, &self.inner.cpu.costs());
                w.hand_over(no, rq);
            }
            Effect::Wake(task) => {
                w.states[task.idx()].request_granted = true;
                w.wake(task);
            }
            Effect::BioDone { cookie, error, .. } => {
                if w.array.is_some() && no != QueueNo::ARRAY {
                    w.enter_array(|a, cx| a.end(cx, cookie, error));
                } else if cookie & OWNED_COOKIE != 0 {
                    drop(w);
                    let handler = self.inner.bio_done.borrow().clone();
                    if let Some(handler) = handler {
                        handler(cookie & !OWNED_COOKIE, error);
                    }
                } else {
                    let task = TaskId(cookie as u32);
                    let state = &mut w.states[task.idx()];
                    state.outstanding -= 1;
                    if state.outstanding < state.awaits_below {
                        w.wake(task);
                    }
                }
            }
            Effect::Uncongested => {
                while let Some(task) = w.congestion_waiters.pop_front() {
                    w.wake(task);
                }
            }
            Effect::UnplugWork => w.agenda.ready_work(no.unplug_work()),
            Effect::RunWork => match w.kblockd {
                Some(task) => {
                    w.kblockd_wanted = true;
                    w.wake(task);
                }
                None => w.agenda.ready_work(no.run_work()),
            },
            Effect::ReleaseWork => {
                if let Some(thread) = w.throttle_thread {
                    w.wake(thread);
                }
            }
        }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.inner.world.borrow().agenda.now()
    }

    /// The task that runs.
    ///
    /// # Panics
    /// Outside a task: a bug in the caller.
    pub fn current(&self) -> TaskId {
        self.inner
            .world
            .borrow()
            .running
            .task
            .expect("called in a task")
    }

    /// The process that runs; 0 outside of tasks.
    pub fn pid(&self) -> Pid {
        self.inner.world.borrow().running.pid
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

    /// Whether there is an array in front of the disks.
    pub(crate) fn has_array(&self) -> bool {
        self.inner.has_array
    }

    /// Sets the thread that the array wakes.
    pub(crate) fn set_array_thread(&self, thread: TaskId) {
        self.inner.world.borrow_mut().array_thread = Some(thread);
    }

    /// Sets the thread that submits bios that were held back.
    pub(crate) fn set_throttle_thread(&self, thread: TaskId) {
        self.inner.world.borrow_mut().throttle_thread = Some(thread);
    }

    /// Number of disks.
    pub(crate) fn nr_disks(&self) -> u32 {
        self.inner.world.borrow().disks.len() as u32
    }

    /// Looks at the disk's queue: the first one's of an array, which is set up
    /// like the others.
    pub fn queue_state<R>(&self, f: impl FnOnce(&Queue) -> R) -> R {
        f(&self.inner.world.borrow().disks[0].queue)
    }

    /// Whether this holds for any disk's queue.
    pub(crate) fn any_queue(&self, f: impl Fn(&Queue) -> bool) -> bool {
        self.inner.world.borrow().disks.iter().any(|d| f(&d.queue))
    }

    /// Opens a task plug for the running task (2.6.39 and later; nothing
    /// before). Calls nest.
    pub(crate) fn start_plug(&self) {
        self.start_plug_for(1);
    }

    /// The same, for about so many requests.
    pub(crate) fn start_plug_for(&self, nr_ios: u32) {
        let mut w = self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        for disk in &mut w.disks {
            disk.queue.start_plug_for(task, nr_ios);
        }
    }

    /// Closes the running task's plug.
    #[inline]
    pub(crate) fn finish_plug(&self) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            for i in 0..w.disks.len() as u32 {
                w.enter(QueueNo(i), |q, cx| q.finish_plug(cx, task));
            }
        }
        self.route();
    }

    /// Unplugs the device that tasks use.
    pub(crate) fn unplug(&self) {
        if self.has_array() {
            self.unplug_array();
        } else {
            self.with_queue(QueueNo::FIRST, Queue::unplug);
        }
    }

    /// What the running task's plug holds goes to the queues, because the task
    /// sleeps (`schedule`, 2.6.39 and later).
    pub(crate) fn flush_task_plug(&self) {
        let task = self.current();
        for i in 0..self.nr_disks() {
            self.with_queue(QueueNo(i), |q, cx| q.flush_plug_to_sleep(cx, task));
        }
    }

    /// Sleeps until woken. May return early: callers test their condition.
    pub async fn suspend(&self) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            w.states[task.idx()].suspended = true;
        }
        // What the plug holds may be what wakes the task.
        if self.queue_state(Queue::has_task_plugs) {
            self.flush_task_plug();
        }
        if self.pay().await {
            return;
        }
        Suspend { polled: false }.await;
        self.compute_switch().await;
    }

    /// The running task takes the processor time that it owes; whether it owed
    /// any.
    async fn pay(&self) -> bool {
        if !self.shares_cpu() {
            return false;
        }
        let owed = self.take_owed();
        self.compute(owed).await;
        owed > Span::ZERO
    }

    fn take_owed(&self) -> Span {
        let mut w = self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        std::mem::take(&mut w.states[task.idx()].owed)
    }

    /// The time that a task takes to get going, where tasks share a processor.
    async fn compute_switch(&self) {
        self.compute(self.inner.cpu.costs().switch).await;
    }

    /// Makes a suspended task runnable.
    pub fn wake(&self, task: TaskId) {
        self.inner.world.borrow_mut().wake(task);
    }

    /// Sleeps until `time`.
    pub async fn sleep_until(&self, time: Time) {
        if time <= self.now() {
            return self.tick().await;
        }
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            w.agenda.wake_task_at(task, time);
        }
        while self.now() < time {
            Suspend { polled: false }.await;
        }
    }

    /// Computes for a span, as a task that slept until just now. On a machine
    /// with one processor the process scheduler favours such a task: kblockd,
    /// which has slept too, does not preempt it (2.6.23 and later,
    /// `wakeup_preempt_entity` of kernel/sched_fair.c; no preemption in the
    /// kernel). So what a timer asks of kblockd meanwhile is done when the task
    /// sleeps.
    pub async fn compute(&self, span: Span) {
        if span == Span::ZERO {
            return self.tick().await;
        }
        let end = self.now() + span;
        match self.inner.cpu {
            CpuSharing::HoldsKblockd if span < COMPUTES_AT_MOST => {
                self.inner.world.borrow_mut().nr_computing += 1;
                self.sleep_until(end).await;
                self.inner.world.borrow_mut().nr_computing -= 1;
            }
            CpuSharing::One(_) => {
                self.compute_in_turn(span).await;
            }
            _ => self.sleep_until(end).await,
        }
    }

    /// Computes for a span of the processor's time.
    async fn compute_in_turn(&self, span: Span) {
        let task = self.current();
        {
            let w = &mut *self.inner.world.borrow_mut();
            let now = w.agenda.now();
            if let Some(end) = w.cpu.begin(task, now, span) {
                w.agenda.wake_task_at(task, end);
            }
        }
        while !self.inner.world.borrow().cpu.has_ended(task, self.now()) {
            Suspend { polled: false }.await;
        }
        let w = &mut *self.inner.world.borrow_mut();
        w.cpu.end(w.agenda.now());
    }

    /// Sleeps until woken, at most until `time`.
    pub async fn suspend_until(&self, time: Time) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            w.agenda.wake_task_at(task, time);
        }
        self.suspend().await;
    }

    /// The bios that the running task submits from here on have this priority
    /// (`aio_reqprio` of io_submit(2) from 4.18 on, `ioprio` of io_uring).
    pub(crate) fn set_request_prio(&self, prio: Option<IoPrio>) {
        let w = &mut *self.inner.world.borrow_mut();
        if let Some(task) = w.running.task {
            w.states[task.idx()].request_prio = prio;
        }
    }

    /// Submits a bio; sleeps while no request is free.
    pub async fn submit_bio(&self, mut bio: Bio) {
        {
            let w = self.inner.world.borrow();
            let of = |task: TaskId| w.states[task.idx()].request_prio;
            if let Some(prio) = w.running.task.and_then(of) {
                bio.ioprio = prio;
            }
        }
        if self.has_array() {
            self.submit_to_array(bio).await;
        } else {
            let state = self.with_queue(QueueNo::FIRST, |q, cx| q.submit(cx, bio));
            if let Submit::Sleeps(pending) = state {
                self.finish_submission(QueueNo::FIRST, pending).await;
            }
        }
        self.pay().await;
    }

    /// Sleeps while no request is free for a bio that a queue was given.
    pub(crate) async fn finish_submission(&self, no: QueueNo, pending: Pending) {
        let mut state = Submit::Sleeps(pending);
        while let Submit::Sleeps(pending) = state {
            state = self.wait_for_request(no, pending).await;
        }
    }

    async fn wait_for_request(&self, no: QueueNo, pending: Pending) -> Submit {
        let task = self.current();
        while !std::mem::take(&mut self.inner.world.borrow_mut().states[task.idx()].request_granted)
        {
            self.suspend().await;
        }
        self.with_queue(no, |q, cx| q.resume(cx, pending))
    }

    /// Sleeps until some queue leaves congestion, at most `timeout`.
    pub async fn congestion_wait(&self, timeout: Span) {
        let task = self.current();
        let deadline = self.now() + timeout;
        self.inner
            .world
            .borrow_mut()
            .congestion_waiters
            .push_back(task);
        self.suspend_until(deadline).await;
        self.inner
            .world
            .borrow_mut()
            .congestion_waiters
            .retain(|&t| t != task);
    }

    /// Counts a bio that the running process submits itself.
    pub(crate) fn count_submission(&self, task: TaskId) {
        self.inner.world.borrow_mut().states[task.idx()].outstanding += 1;
    }

    /// The running process sleeps until fewer than `n` of its bios are on
    /// their way. The completion that brings it there wakes it, no earlier one.
    pub(crate) async fn outstanding_below(&self, n: u32) {
        let task = self.current();
        self.inner.world.borrow_mut().states[task.idx()].awaits_below = n;
        while self.outstanding(task) >= n {
            self.suspend().await;
        }
        self.inner.world.borrow_mut().states[task.idx()].awaits_below = 0;
    }

    /// Bios on their way, of a process that counts them.
    pub(crate) fn outstanding(&self, task: TaskId) -> u32 {
        self.inner.world.borrow().states[task.idx()].outstanding
    }
}

/// The block layer's thread: runs hardware queues whenever that is asked for.
/// The time of a first request comes before it is handed over, that of others
/// after; where there was none it counts for the next run.
async fn kblockd_thread(m: Machine) {
    let first = m.inner.cpu.costs().dispatch.ns();
    let mut paid = 0;
    loop {
        while !std::mem::take(&mut m.inner.world.borrow_mut().kblockd_wanted) {
            m.suspend().await;
        }
        m.compute(Span(first - paid)).await;
        m.with_queue(QueueNo::FIRST, Queue::run_work);
        let owed = m.take_owed().ns();
        paid = first.saturating_sub(owed);
        m.compute(Span(owed.saturating_sub(first))).await;
    }
}

struct Suspend {
    polled: bool,
}

impl Future for Suspend {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
