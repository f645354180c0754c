// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue driven by hand: bios in, events out, the device under control.

use blklab_block::sq::{Core, Features, Limits, Queue};
use blklab_block::{
    Cx, Effect, IoContext, IoGroup, Pending, QueueNo, RqId, Running, Submit, TaskTable,
};
use blklab_engine::{Agenda, Due};
use blklab_kernel::{Patches, Tunables};
use blklab_sched::{Build, Built};
use blklab_trace::truth::{Kind, Truth, TruthSink};
use blklab_trace::{NullSink, Tracer};
use blklab_types::{Bio, BioFlags, Completion, Dev, Hz, IoPrio, Op, TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<(Truth, String)>>>);

impl TruthSink for Log {
    fn truth(&mut self, r: &Truth, text: &str) {
        self.0.borrow_mut().push((*r, text.to_owned()));
    }
}

/// The queue and everything around it.
pub(crate) struct Rig {
    pub(crate) agenda: Agenda,
    pub(crate) queue: Queue,
    tasks: TaskTable,
    log: Log,
    effects: Vec<(QueueNo, Effect)>,
    /// Requests at the device, in order of hand-over.
    pub(crate) at_device: Vec<RqId>,
    /// Tasks woken for a request since last asked.
    pub(crate) woken: Vec<TaskId>,
    sleepers: Vec<(TaskId, Pending)>,
    running: Running,
    /// Segments of the next bio; one per started page if none is set.
    pub(crate) segments: Option<u16>,
    pub(crate) done: Vec<u64>,
    /// The time that the queue is told instead of the agenda's: what happens
    /// before the timers of an instant.
    pub(crate) pretend: Option<Time>,
}

/// Settings of a rig.
pub(crate) struct Setup {
    pub(crate) kernel: &'static str,
    pub(crate) sched: &'static str,
    pub(crate) hz: u32,
    pub(crate) tunables: &'static [(&'static str, i64)],
    pub(crate) patches: &'static [&'static str],
    pub(crate) limits: fn(&mut Limits),
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            kernel: "2.6.24",
            sched: "deadline",
            hz: 1000,
            tunables: &[],
            patches: &[],
            limits: |l| l.queue_depth = 1,
        }
    }
}

impl Setup {
    pub(crate) fn rig(self) -> Rig {
        self.rig_with(|_| {})
    }

    /// A rig whose limits are changed further.
    pub(crate) fn rig_with(self, change: impl FnOnce(&mut Limits)) -> Rig {
        let (tunables, patches) = (self.tunables, self.patches);
        self.build(tunables, patches, change)
    }

    /// A rig with tunables and patches chosen at run time, in place of those
    /// of the setup.
    pub(crate) fn build(
        self,
        written: &[(&str, i64)],
        patches: &[&str],
        change: impl FnOnce(&mut Limits),
    ) -> Rig {
        let hz = Hz(self.hz);
        let version = self.kernel.parse().expect("a kernel version");
        let sched = blklab_sched::find(self.sched, version).expect("a scheduler");
        let mut tunables = Tunables::defaults(sched.tunables, version);
        for (name, value) in written {
            tunables.set(name, *value).expect("a tunable");
        }
        let patches = Patches::new(patches, version).expect("patches that fit");
        let mut limits = Limits::new(hz);
        limits.patch(&patches, hz);
        (self.limits)(&mut limits);
        change(&mut limits);
        let mut agenda = Agenda::new(hz);
        let timers = &mut agenda.timers;
        let built = sched.build(&mut Build {
            version,
            hz,
            tunables: &tunables,
            patches: &patches,
            rotational: limits.queue.rotational,
            timers,
            shared: &blklab_sched::Shared::default(),
        });
        let Built::Sq(elv) = built else {
            panic!("{} is no single-queue scheduler", self.sched);
        };
        let queue = Queue::new(Dev::default(), Features::of(version), limits, elv, timers);
        Rig {
            agenda,
            queue,
            tasks: TaskTable::default(),
            log: Log::default(),
            effects: Vec::new(),
            at_device: Vec::new(),
            woken: Vec::new(),
            sleepers: Vec::new(),
            running: Running::INTERRUPT,
            segments: None,
            done: Vec::new(),
            pretend: None,
        }
    }
}

/// `W 100+8`, `R 8+8`, with flags behind: `WS 100+8` sync, `WB` barrier,
/// `WF` flush, `WA` FUA, `Wb` background (letters may be combined).
pub(crate) fn bio(task: TaskId, text: &str) -> Bio {
    let (letters, range) = text.split_once(' ').expect("letters and range");
    let (sector, len) = range.split_once('+').expect("sector+length");
    let flags = letters[1..].chars().fold(BioFlags::NONE, |f, c| {
        f | match c {
            'S' => BioFlags::SYNC,
            'B' => BioFlags::BARRIER,
            'F' => BioFlags::FLUSH,
            'A' => BioFlags::FUA,
            'b' => BioFlags::BACKGROUND,
            other => panic!("no flag {other}"),
        }
    });
    let nr_sectors = len.parse().expect("a length");
    Bio {
        op: if letters.starts_with('R') {
            Op::Read
        } else {
            Op::Write
        },
        flags,
        sector: sector.parse().expect("a sector"),
        nr_sectors,
        segments: Bio::segments_of_pages(nr_sectors),
        task,
        ..Bio::default()
    }
}

/// The key that a finished bio was submitted with; 0 if with none.
pub(crate) fn mark_of(completion: Completion) -> u64 {
    match completion {
        Completion::Submitter(key) => key.number(),
        _ => 0,
    }
}

impl Rig {
    pub(crate) fn task(&mut self) -> TaskId {
        let pid = 100 + self.tasks.len() as u32;
        self.tasks.add(pid, IoPrio::default())
    }

    pub(crate) fn io_context(&mut self, task: TaskId) -> &mut IoContext {
        self.tasks.get_mut(task)
    }

    /// Adds a control group with a weight, and the same for its own tasks.
    pub(crate) fn group(&mut self, parent: u16, weight: u32) -> u16 {
        self.tasks.add_group(IoGroup {
            parent,
            weight: Some(weight),
            leaf_weight: Some(weight),
            io_max: None,
            ..IoGroup::default()
        })
    }

    /// In the context of a task.
    pub(crate) fn enter_as<R>(
        &mut self,
        task: TaskId,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R,
    ) -> R {
        self.running = Running {
            task: Some(task),
            pid: self.tasks.get(task).pid,
            cpu: 0,
        };
        let r = self.enter(f);
        self.running = Running::INTERRUPT;
        r
    }

    /// All truth records since last asked.
    pub(crate) fn truths(&mut self) -> Vec<Truth> {
        self.log.0.borrow_mut().drain(..).map(|(r, _)| r).collect()
    }

    /// The scheduler's messages since last asked.
    pub(crate) fn messages(&mut self) -> Vec<String> {
        let said = |(r, text): (Truth, String)| (r.kind == Kind::Message).then_some(text);
        self.log.0.borrow_mut().drain(..).filter_map(said).collect()
    }

    pub(crate) fn enter<R>(&mut self, f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R) -> R {
        let mut log = self.log.clone();
        let now = self.pretend.unwrap_or(self.agenda.now());
        let mut cx = Cx {
            queue: QueueNo::FIRST,
            now,
            jiffies: self.agenda.timers.hz().jiffies_at(now),
            running: self.running,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut Tracer::new(Box::new(NullSink)),
            truth: Some(&mut log),
            effects: &mut self.effects,
        };
        let r = f(&mut self.queue, &mut cx);
        for (_, effect) in self.effects.drain(..) {
            match effect {
                Effect::Dispatch(rq) => self.at_device.push(rq),
                Effect::Wake(task) => self.woken.push(task),
                Effect::BioDone { completion, .. } => self.done.push(mark_of(completion)),
                Effect::UnplugWork => self.agenda.ready_work(blklab_engine::WorkId(0)),
                Effect::RunWork => self.agenda.ready_work(blklab_engine::WorkId(1)),
                Effect::Uncongested | Effect::ReleaseWork => {}
            }
        }
        r
    }

    /// Submits; false if the task sleeps for a request.
    pub(crate) fn submit(&mut self, task: TaskId, text: &str) -> bool {
        let mut b = bio(task, text);
        b.segments = self.segments.unwrap_or(b.segments);
        self.submit_bio(b)
    }

    pub(crate) fn submit_bio(&mut self, b: Bio) -> bool {
        self.running = Running {
            task: Some(b.task),
            pid: 1,
            cpu: 0,
        };
        let state = self.enter(|q, cx| q.submit(cx, b));
        self.running = Running::INTERRUPT;
        self.keep(b.task, state)
    }

    /// A woken task runs; false if it sleeps again.
    pub(crate) fn resume(&mut self, task: TaskId) -> bool {
        let at = self
            .sleepers
            .iter()
            .position(|s| s.0 == task)
            .expect("a sleeper");
        let (_, pending) = self.sleepers.remove(at);
        let state = self.enter(|q, cx| q.resume(cx, pending));
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

    /// Lets everything happen that is due up to the start of `jiffy`.
    pub(crate) fn until_jiffy(&mut self, jiffy: u64) {
        let hz = self.agenda.timers.hz();
        self.until(hz.start_of(blklab_types::Jiffies(jiffy)));
    }

    pub(crate) fn until(&mut self, time: Time) {
        // A sleeper moves the clock to the very instant.
        self.agenda.wake_task_at(TaskId(u32::MAX), time);
        while self.agenda.now() < time {
            match self.agenda.next(time) {
                None => break,
                Some(Due::Timer(t)) => self.timer(t),
                Some(Due::Work(w)) => self.work(w.0),
                Some(Due::Task(_) | Due::Device(..)) => {}
            }
        }
        self.settle();
    }

    /// Deferred work that is ready now.
    pub(crate) fn settle(&mut self) {
        let now = self.agenda.now();
        while let Some(due) = self.agenda.next(now) {
            match due {
                Due::Work(w) => self.work(w.0),
                Due::Timer(t) => self.timer(t),
                Due::Task(_) | Due::Device(..) => {}
            }
        }
    }

    fn timer(&mut self, t: blklab_engine::TimerId) {
        self.enter(|q, cx| {
            if t == q.unplug_timer_id() {
                q.unplug_timeout(cx);
            } else {
                q.elevator_timer(cx, t);
            }
        });
    }

    fn work(&mut self, work: u32) {
        self.enter(|q, cx| {
            if work == 0 {
                q.unplug_work(cx);
            } else {
                q.run_work(cx);
            }
        });
    }

    /// The device finishes the request that starts at `sector`.
    pub(crate) fn complete(&mut self, sector: u64) {
        let at = self
            .at_device
            .iter()
            .position(|&rq| self.queue.core().rqs[rq].sector == sector)
            .unwrap_or_else(|| panic!("no request at {sector} at the device"));
        let rq = self.at_device.remove(at);
        self.enter(|q, cx| q.complete(cx, rq, 0));
    }

    /// The device finishes its oldest request.
    pub(crate) fn complete_first(&mut self) {
        let rq = self.at_device.remove(0);
        self.enter(|q, cx| q.complete(cx, rq, 0));
    }

    /// Events since last asked: `Q 100+8`, timers and hand-overs left out.
    pub(crate) fn events(&mut self) -> Vec<String> {
        let mut shown = Vec::new();
        for (r, _) in self.log.0.borrow_mut().drain(..) {
            let letters = match r.kind {
                Kind::Queue => "Q",
                Kind::BackMerge => "M",
                Kind::FrontMerge => "F",
                Kind::RequestMerge => "MM",
                Kind::GetRequest => "G",
                Kind::SleepRequest => "S",
                Kind::Insert => "I",
                Kind::Issue => "D",
                Kind::Complete => "C",
                Kind::Plug => "P",
                Kind::Unplug => "U",
                Kind::UnplugTimer => "UT",
                Kind::UnplugSleep => "UX",
                _ => continue,
            };
            shown.push(match r.kind {
                Kind::Plug => letters.to_owned(),
                Kind::Unplug | Kind::UnplugTimer | Kind::UnplugSleep => {
                    format!("{letters} {}", r.arg)
                }
                _ => format!("{letters} {}+{}", r.sector, r.nr_sectors),
            });
        }
        shown
    }

    /// Events of one kind since last asked, without their letters.
    pub(crate) fn only(&mut self, letters: &str) -> Vec<String> {
        let keep = |e: String| e.strip_prefix(letters).map(|r| r.trim_start().to_owned());
        let is_whole = |e: &String| e.split(' ').next() == Some(letters);
        self.events()
            .into_iter()
            .filter(is_whole)
            .filter_map(keep)
            .collect()
    }

    pub(crate) fn core(&self) -> &Core {
        self.queue.core()
    }

    pub(crate) fn batch_left(&self, task: TaskId) -> u32 {
        self.tasks.get(task).batch_left
    }
}

/// Compares events with a list written in one string.
pub(crate) fn check(rig: &mut Rig, expected: &str) {
    let expected: Vec<_> = expected.split(',').map(|e| e.trim().to_owned()).collect();
    assert_eq!(rig.events(), expected);
}
