// SPDX-License-Identifier: MIT OR Apache-2.0
//! A multi-queue device driven by hand: bios in, events out, the device under
//! control.

use crate::rig::mark_of;
use blklab_block::mq::{Core, Features, Limits, Queue};
use blklab_block::{
    Cx, Effect, IoContext, IoGroup, Pending, QueueNo, RqId, Running, Submit, TaskTable,
};
use blklab_engine::{Agenda, Due, TimerId};
use blklab_kernel::{Patches, Tunables};
use blklab_sched::{Build, Built};
use blklab_trace::truth::{Kind, Truth, TruthSink};
use blklab_trace::{Action, Event, TraceSink, Tracer};
use blklab_types::{Bio, Dev, Hz, IoPrio, TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Default)]
struct Log {
    records: Rc<RefCell<Vec<Truth>>>,
    messages: Rc<RefCell<Vec<String>>>,
}

impl TruthSink for Log {
    fn truth(&mut self, r: &Truth, text: &str) {
        self.records.borrow_mut().push(*r);
        if r.kind == Kind::Message {
            self.messages.borrow_mut().push(text.to_owned());
        }
    }
}

/// Trace events as `Q 100+8`, `U 2`, `X 0+2560/2560`.
#[derive(Clone, Default)]
struct Trace(Rc<RefCell<Vec<(Time, String)>>>);

impl TraceSink for Trace {
    fn event(&mut self, e: &Event) {
        let letters = e.action.letters();
        let range = format!("{}+{}", e.sector, e.bytes / 512);
        let shown = match e.action {
            Action::Plug => letters.to_owned(),
            Action::Unplug | Action::UnplugTimer => format!("{letters} {}", e.arg),
            Action::Split => format!("{letters} {range}/{}", e.arg),
            _ => format!("{letters} {range}"),
        };
        self.0.borrow_mut().push((e.time, shown));
    }
}

/// Settings of a rig.
#[derive(Clone, Debug)]
pub(crate) struct MqSetup {
    pub(crate) kernel: &'static str,
    pub(crate) sched: &'static str,
    pub(crate) hz: u32,
    pub(crate) tunables: Vec<(&'static str, i64)>,
    pub(crate) patches: Vec<&'static str>,
    pub(crate) limits: Limits,
}

impl MqSetup {
    /// A device that the driver allows `slots` commands at once and that asks
    /// the scheduler when a slot is free; HZ 1000.
    pub(crate) fn budget(kernel: &'static str, sched: &'static str, slots: u32) -> MqSetup {
        let mut limits = Limits {
            budget: Some(slots),
            ..Limits::default()
        };
        limits.queue.nomerges = 2;
        MqSetup {
            kernel,
            sched,
            hz: 1000,
            tunables: Vec::new(),
            patches: Vec::new(),
            limits,
        }
    }

    /// A device with so many driver tags, which asks the scheduler in advance;
    /// HZ 1000, 64 requests.
    pub(crate) fn tags(kernel: &'static str, sched: &'static str, tags: u32) -> MqSetup {
        let mut setup = MqSetup::budget(kernel, sched, 1);
        setup.limits.budget = None;
        setup.limits.queue_depth = tags;
        setup.limits.nr_requests = (sched != "none").then_some(64);
        setup
    }

    pub(crate) fn rig(&self) -> MqRig {
        let hz = Hz(self.hz);
        let version = self.kernel.parse().expect("a kernel version");
        let sched = blklab_sched::find(self.sched, version).expect("a scheduler");
        let mut tunables = Tunables::defaults(sched.tunables, version);
        for (name, value) in &self.tunables {
            tunables.set(name, *value).expect("a tunable");
        }
        let mut agenda = Agenda::new(hz);
        let timers = &mut agenda.timers;
        let built = sched.build(&mut Build {
            version,
            hz,
            tunables: &tunables,
            patches: &Patches::new(&self.patches, version).expect("patches"),
            rotational: self.limits.queue.rotational,
            timers,
            shared: &blklab_sched::Shared::default(),
        });
        let Built::Mq(elv) = built else {
            panic!("{} is no multi-queue scheduler", self.sched);
        };
        let limits = self.limits.clone();
        let queue = Queue::new(Dev::default(), Features::of(version), limits, elv, timers);
        MqRig {
            agenda,
            queue,
            tasks: TaskTable::default(),
            log: Log::default(),
            trace: Trace::default(),
            sleepers: Vec::new(),
            effects: Vec::new(),
            at_device: Vec::new(),
            woken: Vec::new(),
            done: Vec::new(),
            run_wanted: false,
            pretend: None,
        }
    }
}

/// The queue and everything around it. kblockd works when it is told to.
pub(crate) struct MqRig {
    pub(crate) agenda: Agenda,
    pub(crate) queue: Queue,
    tasks: TaskTable,
    log: Log,
    trace: Trace,
    sleepers: Vec<(TaskId, Pending)>,
    effects: Vec<(QueueNo, Effect)>,
    /// Requests at the device, in order of hand-over.
    pub(crate) at_device: Vec<RqId>,
    /// Tasks woken for a request since last asked.
    pub(crate) woken: Vec<TaskId>,
    /// Keys of finished bios.
    pub(crate) done: Vec<u64>,
    /// kblockd has something to do.
    pub(crate) run_wanted: bool,
    /// The time that the queue is told instead of the agenda's: what happens
    /// before the timers of an instant.
    pretend: Option<Time>,
}

impl MqRig {
    /// A new task; pids count from 100.
    pub(crate) fn task(&mut self) -> TaskId {
        let pid = 100 + self.tasks.len() as u32;
        self.tasks.add(pid, IoPrio::default())
    }

    pub(crate) fn io_context(&mut self, task: TaskId) -> &mut IoContext {
        self.tasks.get_mut(task)
    }

    /// Adds a control group.
    pub(crate) fn group(&mut self, parent: u16, weight: u32) -> u16 {
        self.tasks.add_group(IoGroup {
            parent,
            weight: Some(weight),
            leaf_weight: None,
            io_max: None,
            ..IoGroup::default()
        })
    }

    pub(crate) fn core(&self) -> &Core {
        self.queue.core()
    }

    /// In the context of a task on a CPU.
    pub(crate) fn enter_as<R>(
        &mut self,
        task: TaskId,
        cpu: u16,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R,
    ) -> R {
        let pid = self.tasks.get(task).pid;
        let task = Some(task);
        self.enter_in(Running { task, pid, cpu }, f)
    }

    /// In an interrupt or a worker.
    pub(crate) fn enter<R>(&mut self, f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R) -> R {
        self.enter_in(Running::INTERRUPT, f)
    }

    fn enter_in<R>(&mut self, running: Running, f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R) -> R {
        let mut log = self.log.clone();
        let now = self.pretend.unwrap_or(self.agenda.now());
        let mut cx = Cx {
            queue: QueueNo::FIRST,
            now,
            jiffies: self.agenda.timers.hz().jiffies_at(now),
            running,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut Tracer::at_once(Box::new(self.trace.clone())),
            truth: Some(&mut log),
            effects: &mut self.effects,
        };
        let r = f(&mut self.queue, &mut cx);
        for (_, effect) in self.effects.drain(..) {
            match effect {
                Effect::Dispatch(rq) => self.at_device.push(rq),
                Effect::Wake(task) => self.woken.push(task),
                Effect::BioDone { completion, .. } => self.done.push(mark_of(completion)),
                Effect::RunWork => self.run_wanted = true,
                Effect::UnplugWork | Effect::Uncongested | Effect::ReleaseWork => {}
            }
        }
        r
    }

    /// A bio's request enters the scheduler; nothing is merged, plugged or
    /// run.
    pub(crate) fn insert_bare(&mut self, cpu: u16, bio: &Bio) {
        let inserted = self.enter_as(bio.task, cpu, |q, cx| q.insert_bare(cx, bio));
        assert!(inserted, "a free request");
    }

    /// A task submits; false if it sleeps for a request.
    pub(crate) fn submit(&mut self, cpu: u16, bio: &Bio) -> bool {
        let state = self.enter_as(bio.task, cpu, |q, cx| q.submit(cx, *bio));
        self.keep(bio.task, state)
    }

    /// A woken task runs; false if it sleeps again.
    pub(crate) fn resume(&mut self, task: TaskId, cpu: u16) -> bool {
        let at = self.sleepers.iter().position(|s| s.0 == task);
        let (_, pending) = self.sleepers.remove(at.expect("a sleeper"));
        let state = self.enter_as(task, cpu, |q, cx| q.resume(cx, pending));
        self.keep(task, state)
    }

    fn keep(&mut self, task: TaskId, state: Submit) -> bool {
        match state {
            Submit::Done => true,
            Submit::Sleeps(pending) => {
                self.sleepers.push((task, pending));
                false
            }
            Submit::Pays(_) | Submit::Refused => unreachable!("nobody asked for it"),
        }
    }

    /// The device finishes its oldest request.
    pub(crate) fn complete_first(&mut self) {
        let rq = self.at_device.remove(0);
        self.enter(|q, cx| q.complete(cx, rq, 0));
    }

    /// The clock goes on to just before `time`, and the queue is told that it
    /// is `time`: what is done now comes before the timers of that instant.
    pub(crate) fn before_timers_of(&mut self, time: Time) {
        self.pretend = None;
        self.clock_to(Time(time.0.saturating_sub(1)));
        self.pretend = Some(time);
    }

    /// The clock goes on to `time`; timers fire, kblockd does not run.
    pub(crate) fn clock_to(&mut self, time: Time) {
        self.pretend = None;
        // A sleeper moves the clock to the very instant.
        self.agenda.wake_task_at(TaskId(u32::MAX), time);
        while let Some(due) = self.agenda.next(time) {
            match due {
                Due::Timer(t) => self.timer(t),
                Due::Task(_) if self.agenda.now() >= time => break,
                Due::Task(_) | Due::Work(_) | Due::Device(..) => {}
            }
        }
    }

    fn timer(&mut self, timer: TimerId) {
        let known = self.enter(|q, cx| q.timer(cx, timer));
        assert!(known, "a timer of the queue");
    }

    /// kblockd works until there is nothing to do.
    pub(crate) fn settle(&mut self) {
        while std::mem::take(&mut self.run_wanted) {
            self.enter(Queue::run_work);
        }
    }

    /// The clock goes on to `time` with everything that is due on the way.
    pub(crate) fn until(&mut self, time: Time) {
        self.settle();
        while self.agenda.timers.next_time() < time {
            self.clock_to(self.agenda.timers.next_time());
            self.settle();
        }
        self.clock_to(time);
        self.settle();
    }

    /// All truth records since last asked.
    pub(crate) fn truths(&mut self) -> Vec<Truth> {
        self.log.records.borrow_mut().drain(..).collect()
    }

    /// The scheduler's messages since last asked.
    pub(crate) fn messages(&mut self) -> Vec<String> {
        self.log.messages.borrow_mut().drain(..).collect()
    }

    /// Trace events since last asked, with their times.
    pub(crate) fn events(&mut self) -> Vec<(Time, String)> {
        self.trace.0.borrow_mut().drain(..).collect()
    }
}
