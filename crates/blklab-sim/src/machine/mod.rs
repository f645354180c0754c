// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated computer: what it is made of. Its parts act in rooms of their
//! own: `executor` takes what is due from the agenda, `interrupts` come to processors,
//! `tasks` sleep and wake,
//! `submit` is what they do to queues, `router` carries out what queues and
//! devices ask for, `processors` makes tasks take turns, `turns` makes processors take them where
//! one of several runs at a time, `kblockd` does deferred
//! work, `workers` are pools of threads, `pressure` is how long
//! tasks stood still for I/O, `scheduler_time` is what requests take of processors, `counters` says how full
//! pools and caches are, where somebody asks.

mod counters;
mod executor;
mod hold_up;
mod interrupts;
mod kblockd;
mod placement;
mod pressure;
mod processors;
mod router;
mod scheduler_time;
mod submit;
mod tasks;
mod turns;
mod work;
mod workers;

pub use interrupts::Interrupts;
pub(crate) use kblockd::KBLOCKD_NAME;
pub use kblockd::KBLOCKD_PID;
pub use processors::{CpuCosts, CpuSharing, WakeTimes};
pub(crate) use scheduler_time::{RequestTimes, SchedulerTime};
pub use submit::Unsubmitted;
pub(crate) use workers::PoolId;

use crate::cpu::Cpu;
use crate::progress::Progress;
use blklab_block::md::Array;
use blklab_block::{Cx, Effect, Queue, QueueNo, Running, TaskTable};
use blklab_device::{Device, Done};
use blklab_engine::{Agenda, Stream, WorkId};
use blklab_kernel::{KernelVersion, Part};
use blklab_target::Sinks;
use blklab_trace::Tracer;
use blklab_trace::truth::TruthSink;
use blklab_types::{BioKey, Pid, TaskId, Time};
use counters::Counters;
use interrupts::Ended;
use kblockd::Kblockd;
use placement::Placement;
use pressure::Pressures;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tasks::{Body, TaskState};
use turns::Turns;
use workers::WorkerPool;

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
    /// The kernel's release, by which tasks share a processor.
    pub kernel: KernelVersion,
    /// How tasks share processors.
    pub cpu: CpuSharing,
    /// Processors: tasks begin on them in turn.
    pub nr_cpus: u32,
    /// Those that share a cache: the first so many, the next so many.
    pub llc_cpus: u32,
    /// What wake-ups by other processors are drawn from.
    pub seed: u64,
    /// Streams of the run.
    pub sinks: Sinks,
    /// Set from outside to end the run at its next step.
    pub stop: Arc<AtomicBool>,
}

/// A disk and its queue.
pub struct Disk {
    /// Its queue, with scheduler and driver.
    pub queue: Queue,
    /// The device.
    pub device: Box<dyn Device>,
    /// Where its interrupts come.
    pub interrupts: Interrupts,
    /// Where kblockd runs its only hardware queue.
    pub kblockd_cpu: u16,
    /// What requests take of processors; none if nothing.
    pub scheduler_time: Option<SchedulerTime>,
}

type BioDone = dyn Fn(BioKey, u16);

struct World {
    agenda: Agenda,
    disks: Vec<Disk>,
    array: Option<Array>,
    /// The thread that submits the writes of a mirror.
    array_thread: Option<TaskId>,
    /// kthrotld, where groups have limits.
    throttle_thread: Option<TaskId>,
    trace: Tracer,
    truth: Option<Box<dyn TruthSink>>,
    counters: Option<Counters>,
    tasks: TaskTable,
    states: Vec<TaskState>,
    pools: Vec<WorkerPool>,
    running: Running,
    /// What the queues asked for, and how much of it has been carried out.
    effects: Vec<(QueueNo, Effect)>,
    next_effect: usize,
    wakes: Vec<(Time, u64)>,
    /// What a device finished in one call.
    finished: Vec<Done>,
    /// What the devices finished, and how much of it their queues know.
    done: Vec<Ended>,
    next_done: usize,
    /// What each processor was sent and has not ended yet.
    sent: Vec<Vec<Ended>>,
    spawned: Vec<(TaskId, Body)>,
    congestion_waiters: VecDeque<TaskId>,
    nr_foreground: usize,
    /// The run goes no further.
    limit: Time,
    /// Tasks that compute after a sleep, and the work of kblockd that waits for
    /// them to sleep.
    nr_computing: usize,
    held_work: Vec<WorkId>,
    /// The processors that tasks share, and what takes time of them.
    cpus: Vec<Cpu>,
    /// Whose turn it is, where one of several runs at a time.
    turns: Option<Turns>,
    costs: CpuCosts,
    /// Processors that wait for each other's locks.
    nr_processors: usize,
    /// Those that queues tell apart.
    nr_cpus: u16,
    /// Which task is on the first of them.
    first_task: usize,
    /// Who runs on which, where there are several.
    placement: Placement,
    /// How long tasks stood still for I/O, where that is counted.
    pressures: Option<Box<Pressures>>,
    wake_times: WakeTimes,
    /// By how much wake-ups by other processors differ.
    wake_spread: Stream,
    /// The block layer's threads, by processor, where they are tasks.
    kblockd: Vec<Kblockd>,
    /// When it handed over a request last, and how many it did at that instant before.
    handed_over: (Time, u32),
    next_kernel_pid: Pid,
}

struct Inner {
    world: RefCell<World>,
    bio_done: RefCell<Option<Rc<BioDone>>>,
    has_array: bool,
    /// From 2.6.39 on.
    has_task_plugs: bool,
    /// Groups have policies that may hold their tasks up.
    holds_up: bool,
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
    /// The disks, the array, and a context of the present to call into one of them.
    #[inline(always)]
    fn parts(&mut self, queue: QueueNo) -> (&mut [Disk], Option<&mut Array>, Cx<'_>) {
        let cx = Cx {
            queue,
            now: self.agenda.now(),
            jiffies: self.agenda.timers.jiffies(),
            running: self.running,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut self.trace,
            truth: match &mut self.truth {
                Some(t) => Some(&mut **t),
                None => None,
            },
            effects: &mut self.effects,
        };
        (&mut self.disks, self.array.as_mut(), cx)
    }
}

impl Machine {
    /// A machine at time 0 without tasks.
    pub fn new(config: Config) -> Machine {
        let has_array = config.array.is_some();
        let has_task_plugs = config.disks.iter().any(|d| d.queue.has_task_plugs());
        let has_policies =
            |d: &Disk| matches!(&d.queue, Queue::Mq(queue) if queue.has_group_policies());
        let holds_up = config.disks.iter().any(has_policies);
        let nr_cpus = config.disks.iter().map(|d| d.queue.nr_cpus()).max();
        let Sinks {
            trace,
            truth,
            counters,
        } = config.sinks;
        let hz = config.agenda.timers.hz();
        let llc_cpus = u16::try_from(config.llc_cpus).unwrap_or(u16::MAX);
        let placed = match config.cpu {
            CpuSharing::Several(_) | CpuSharing::InTurn(_) => nr_cpus.unwrap_or(1),
            _ => 0,
        };
        let (nr_shared, turns) = match config.cpu {
            CpuSharing::InTurn(_) => {
                let nr = nr_cpus.unwrap_or(1);
                (nr, Some(Turns::new(nr)))
            }
            _ => (1, None),
        };
        let kernel = config.kernel.in_part(Part::Processor);
        let counts_pressure = !kernel.has_single_queue() && config.tasks.has_groups();
        let pressures = counts_pressure
            .then(|| Box::new(Pressures::new(&config.tasks, nr_cpus.unwrap_or(1), hz)));
        let placement = Placement::new(placed, llc_cpus, kernel);
        let world = World {
            agenda: config.agenda,
            disks: config.disks,
            array: config.array,
            array_thread: None,
            throttle_thread: None,
            // The two streams are joined by who reads both.
            trace: match &truth {
                Some(_) => Tracer::at_once(trace),
                None => Tracer::new(trace),
            },
            truth,
            counters: counters.map(Counters::new),
            tasks: config.tasks,
            states: Vec::new(),
            pools: Vec::new(),
            running: Running::INTERRUPT,
            effects: Vec::new(),
            next_effect: 0,
            wakes: Vec::new(),
            finished: Vec::new(),
            done: Vec::new(),
            next_done: 0,
            sent: vec![Vec::new(); usize::from(nr_cpus.unwrap_or(1))],
            spawned: Vec::new(),
            congestion_waiters: VecDeque::new(),
            nr_foreground: 0,
            limit: Time::ZERO,
            nr_computing: 0,
            held_work: Vec::new(),
            costs: config.cpu.costs(),
            cpus: (0..nr_shared)
                .map(|_| Cpu::new(kernel, hz, config.cpu.costs().switch))
                .collect(),
            turns,
            nr_processors: config.nr_cpus.max(1) as usize,
            nr_cpus: nr_cpus.unwrap_or(1),
            first_task: 0,
            placement,
            pressures,
            wake_times: config.cpu.wake_times(),
            wake_spread: Stream::named(config.seed, "wake-ups"),
            kblockd: Vec::new(),
            handed_over: (Time::ZERO, 0),
            next_kernel_pid: KBLOCKD_PID,
        };
        let machine = Machine {
            inner: Rc::new(Inner {
                world: RefCell::new(world),
                bio_done: RefCell::new(None),
                has_array,
                has_task_plugs,
                holds_up,
                cpu: config.cpu,
                stop: config.stop,
                progress: Progress::default(),
            }),
        };
        if machine.shares_cpu() {
            machine.start_kblockd(nr_shared);
        }
        machine
    }

    /// Who is told that a bio has ended, with its error, if that is its submitter
    /// ([`Completion::Submitter`](blklab_types::Completion::Submitter)).
    pub fn on_bio_done(&self, f: impl Fn(BioKey, u16) + 'static) {
        *self.inner.bio_done.borrow_mut() = Some(Rc::new(f));
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.inner.world.borrow().agenda.now()
    }

    /// Processors.
    pub(crate) fn nr_processors(&self) -> u32 {
        self.inner.world.borrow().nr_processors as u32
    }

    /// Whether there is an array in front of the disks.
    pub(crate) fn has_array(&self) -> bool {
        self.inner.has_array
    }

    /// Whether tasks collect requests in plugs of their own.
    pub(crate) fn has_task_plugs(&self) -> bool {
        self.inner.has_task_plugs
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
}
