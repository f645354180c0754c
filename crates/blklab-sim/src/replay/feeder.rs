// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feeds a recording into a queue.
//!
//! Every recorded event is a step in order of time. Some things are not in a
//! trace, or only in part, and are settled here:
//!
//! - *When kblockd runs.* At its next recorded hand-over, if no completion comes
//!   before, or if there was no pause before: completions that one interrupt brings come
//!   at once. Else, as it then found nothing that the device would take, in that pause, the
//!   first gap of [`GAP`] between recorded events, or of [`LAZY_GAP`] between those of
//!   one process if that does not give way at once. If there is something here that
//!   the device would take, it did not run there, but at the hand-over.
//! - *Tasks that sleep for a tag here.* They go on when they are woken, but not
//!   before their request was granted in the recording: until then they had not
//!   got the processor. Without a scheduler, if others got a tag and the only
//!   processor had nothing more to do before that, they have looked for one in vain,
//!   and who did so at the same time did it in the order in which they got theirs.
//!   What they did later waits for them.
//! - *Interrupts of a submission.* A completion in the context of a task that has
//!   submitted a bio and has no request yet comes before the bio.
//! - *The end of a process* that is known to have ended: behind the end of its last bio.
//! - *What came before the first event* ([`Before`]).
//! - *Commands that the recording does not have*, once the order differs: each
//!   recorded completion then ends the same command if the device has it, else
//!   the one that it has had longest, so that as many commands end as did.
//!
//! What is done in one call of the kernel happens at one instant here: the
//! microseconds between the end of a plug and the hand-overs it leads to are
//! left out.

use super::before::Before;
use super::recording::{Dispatched, PlugsShow, Recording, Step, Steps, What, command};
use crate::build::{build_queue, disk_dev};
use crate::cgroups;
use blklab_block::{
    Cx, Effect, Pending, Queue, QueueNo, RqId, RqState, Running, SleepsFor, Submit, TaskTable, mq,
};
use blklab_engine::{Agenda, DeviceId, Due};
use blklab_experiment::Experiment;
use blklab_sched::{Schedulers, Shared};
use blklab_trace::truth::TruthSink;
use blklab_trace::{Action, Event, NullSink, Tracer};
use blklab_types::Error;
use blklab_types::{Bio, BioFlags, Completion, IoPrio, Op, Pid, Span, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// A pause between recorded events that is long enough for kblockd to run: from
/// an insertion to the hand-over by the worker it takes 5 to 6 us in the traces.
const GAP: Span = Span(5_000);

/// The same between events of one process where kernels preempt lazily: from one bio to
/// the next it takes 8 to 12 us in the traces, 16 and more with a run of kblockd.
const LAZY_GAP: Span = Span(13_000);

/// From the last event before such a pause to kblockd's run.
const WORKER_DELAY: Span = Span(4_000);

/// From the end of a process's last bio to the end of the process: 3.3 to 3.8 us on 7.3.
const EXIT_DELAY: Span = Span(3_500);

/// The longest wait behind the last event of a recording.
const WAITS_AT_MOST: Span = Span(1_000_000_000);

/// Events that are known before the first of them is fed: later ones say what
/// earlier ones meant.
const WINDOW: usize = 1 << 14;

/// Sleeps whose bios are still on their way; more belong to bios that were merged.
const SLEEPS_MAX: usize = 1 << 16;

const STEP: DeviceId = DeviceId(0);
const WORKER: DeviceId = DeviceId(1);
const RESUME: DeviceId = DeviceId(2);
const EXIT: DeviceId = DeviceId(3);

/// What is known of a process beside its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The priority that it set for itself.
    pub ioprio: IoPrio,
    /// Its sync writes are direct ones (`REQ_IDLE`, which traces do not show).
    pub direct: bool,
    /// The number of its control group ([`cgroup_number`](crate::cgroup_number)).
    pub group: u16,
    /// When it submits its last bio, if it ends once it has what it asked for.
    pub last_bio: Option<Time>,
}

/// A sleep of a task for a request or tag, or until few enough writes are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    /// What it slept for.
    pub cause: SleepsFor,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// A command that the model's device got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// What, and when.
    pub command: Dispatched,
    /// The slot of its request, as truth records name it.
    pub request: u32,
    /// When its first bio was submitted; none of a flush that the block layer makes.
    pub queued: Option<Time>,
    /// When it was allocated.
    pub granted: Time,
    /// Who submitted its first bio; 0 of what the block layer makes.
    pub pid: Pid,
    /// Whether somebody waits for it.
    pub is_sync: bool,
    /// Whether the device's cache is flushed before it or after it.
    pub is_ordered: bool,
    /// How its first bio's task slept for it.
    pub slept: Option<Slept>,
}

/// Says what came before the first event of a replay whose first window is known; none:
/// nothing, the queue begins idle.
pub(super) type Find = Box<dyn FnOnce(&Replay<'_>) -> Option<Before>>;

/// A task of the recording.
struct Submitter {
    task: TaskId,
    pid: Pid,
    /// The processor on which it was last.
    cpu: u16,
    direct: bool,
    /// When it submits its last bio, if it ends then.
    last_bio: Option<Time>,
    /// Bios that have not ended.
    nr_bios: u32,
    plug_is_open: bool,
    /// Its bio, if it sleeps for a request, with why and since when.
    pending: Option<(Pending, Slept)>,
    /// When it goes on, and when it got its request in the recording.
    resumes: Option<(Time, Time)>,
    /// What it did while it slept.
    backlog: VecDeque<Step>,
}

/// A queue that is fed with recorded events one by one.
///
/// Memory is bound by what is in flight: a window of events is known in advance, and
/// what the device got is to be taken with [`Replay::handed_over`].
pub struct Replay<'a> {
    steps: Steps,
    plugs: PlugsShow,
    queue: Queue,
    agenda: Agenda,
    tasks: TaskTable,
    trace: Tracer,
    truth: Option<Box<dyn TruthSink + 'a>>,
    effects: Vec<(QueueNo, Effect)>,
    known: Box<dyn Fn(Pid) -> Process + 'a>,
    submitters: Vec<Submitter>,
    by_pid: BTreeMap<Pid, usize>,
    /// kblockd is to run; at so many steps from here, or some time.
    work: Option<Work>,
    /// A process does not give way to it at once.
    is_lazy: bool,
    /// The process of the event that was fed last.
    last_pid: Option<Pid>,
    /// What kblockd is to do beside a run: remove the queue's plug.
    unplugs: bool,
    /// Commands at the device.
    at_device: VecDeque<(RqId, Dispatched)>,
    /// Recorded completions of commands that the device did not have yet.
    ahead: VecDeque<Dispatched>,
    handed_over: Vec<HandedOver>,
    slept: BTreeMap<(Op, u64), Slept>,
    /// Recorded commands that are next.
    recorded: VecDeque<Dispatched>,
    differs: bool,
    /// Until it is settled what came before the first event.
    find: Option<Find>,
    before: Option<Before>,
}

/// Sectors of a read that came before the first event.
const READ_SECTORS: u32 = 8;

/// Recorded completions that are remembered for commands that come late.
const AHEAD_MAX: usize = 1 << 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    AtStep(usize),
    AtTime,
}

/// The dispatches of an experiment's queue if it is fed with a recording, and what is
/// taken to have come before it, if anything. `known` says what is known of a process.
///
/// # Errors
/// If the experiment is not possible.
pub fn replay(
    e: &Experiment,
    recording: Recording,
    known: impl Fn(Pid) -> Process,
) -> Result<(Vec<Dispatched>, Option<Before>), Error> {
    let schedulers = Schedulers::default();
    let mut f = Replay::new(e, schedulers, known, None)?;
    f.find_before(e, schedulers);
    f.feed(recording);
    while f.take_step() {}
    f.finish();
    let dispatches = f.handed_over.into_iter().map(|h| h.command);
    Ok((dispatches.collect(), f.before))
}

impl<'a> Replay<'a> {
    /// An experiment's queue without anything in it. `known` says what is known of a
    /// process; `truth` hears what the queue does and why.
    ///
    /// # Errors
    /// If the experiment is not possible.
    pub fn new(
        e: &Experiment,
        schedulers: Schedulers,
        known: impl Fn(Pid) -> Process + 'a,
        truth: Option<Box<dyn TruthSink + 'a>>,
    ) -> Result<Replay<'a>, Error> {
        let mut agenda = Agenda::new(e.hz);
        let tasks = cgroups::table_of_recorded(e);
        let queue = build_queue(
            e,
            schedulers,
            disk_dev(0),
            &tasks,
            &Shared::default(),
            &mut agenda,
        )?;
        let plugs = match &queue {
            Queue::Sq(_) if !queue.has_task_plugs() => PlugsShow::OfQueue,
            Queue::Mq(_) if shows_no_end(e) => PlugsShow::ByIssue,
            _ => PlugsShow::ByUnplug,
        };
        Ok(Replay {
            steps: Steps::new(plugs),
            plugs,
            queue,
            agenda,
            tasks,
            trace: Tracer::new(Box::new(NullSink)),
            truth,
            effects: Vec::new(),
            known: Box::new(known),
            submitters: Vec::new(),
            by_pid: BTreeMap::new(),
            work: None,
            is_lazy: crate::cpu::preempts_lazily(e.kernel.in_part(blklab_kernel::Part::Processor)),
            last_pid: None,
            unplugs: false,
            at_device: VecDeque::new(),
            ahead: VecDeque::new(),
            handed_over: Vec::new(),
            slept: BTreeMap::new(),
            recorded: VecDeque::new(),
            differs: false,
            find: None,
            before: None,
        })
    }

    /// Before the first step, this says what came before it.
    pub(super) fn settle_by(&mut self, find: Find) {
        self.find = Some(find);
    }

    /// What is taken to have come before the first event; none until the first step is
    /// taken, and where an idle queue will do.
    pub fn before(&self) -> Option<Before> {
        self.before
    }

    /// What is known of a process beside its trace.
    pub(super) fn known_of(&self, pid: Pid) -> Process {
        (self.known)(pid)
    }

    /// Scheduler tags; none on the single-queue path and without a scheduler.
    pub(super) fn scheduler_tags(&self) -> u32 {
        match &self.queue {
            Queue::Sq(_) => 0,
            Queue::Mq(q) => q.elevator().map_or(0, |_| q.core().nr_requests),
        }
    }

    /// Whether the device got something else than in the recording.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// Recorded commands that are known and were not handed over yet.
    pub(super) fn nr_recorded(&self) -> usize {
        self.recorded.len()
    }

    /// Begins where another one is about to, but for what came before, and for so many
    /// steps at most.
    pub(super) fn begin_like(&mut self, other: &Replay<'_>, before: Before, steps: usize) {
        self.steps = other.steps.first(steps);
        let nr_issued = self.steps.nr_issued();
        self.recorded
            .extend(other.recorded.iter().take(nr_issued).copied());
        for s in &other.submitters {
            self.submitter(s.pid);
        }
        self.begin_after(before);
    }

    /// Makes the queue what it is after what came before the first event.
    pub(super) fn begin_after(&mut self, before: Before) {
        if let Queue::Mq(q) = &mut self.queue {
            q.begin_search_at(before.first_tag);
        }
        // Not part of the recording.
        let truth = self.truth.take();
        let recorded = std::mem::take(&mut self.recorded);
        for n in 0..before.reads {
            self.read_before(u64::from(n) * u64::from(READ_SECTORS));
        }
        self.truth = truth;
        self.recorded = recorded;
        self.differs = false;
        self.handed_over.clear();
        self.before = Some(before);
    }

    /// A read that is done before anything else happens.
    fn read_before(&mut self, sector: u64) {
        let who = self.submitter(0);
        let bio = Bio {
            op: Op::Read,
            sector,
            nr_sectors: READ_SECTORS,
            segments: Bio::segments_of_pages(READ_SECTORS),
            task: self.submitters[who].task,
            ..Bio::default()
        };
        let running = self.running(who);
        let state = self.enter(running, |q, cx| q.submit(cx, bio));
        assert!(
            !matches!(state, Submit::Sleeps(_)),
            "an idle queue has a request for a read"
        );
        self.run_work();
        while let Some((rq, _)) = self.at_device.pop_front() {
            self.enter(self.interrupt_of(rq), |q, cx| q.complete(cx, rq, 0));
        }
        self.run_work();
    }

    /// A whole recording; its processes come in order of their pids.
    pub(super) fn feed(&mut self, recording: Recording) {
        self.steps = recording.steps;
        self.recorded = recording.dispatches.into();
        for pid in recording.submitters {
            self.submitter(pid);
        }
    }

    /// The next recorded event. It is fed when the window after it is full.
    ///
    /// # Panics
    /// If it is earlier than the one before.
    pub fn event(&mut self, event: &Event) {
        self.steps.push(event);
        if !self.differs && event.action == Action::Issue {
            self.recorded.extend(command(event));
        }
        if self.steps.steps.len() > WINDOW {
            self.take_step();
        }
    }

    /// Feeds the next event of the window, for the end of a recording. False if there
    /// is none.
    pub fn step(&mut self) -> bool {
        self.take_step()
    }

    /// The present: when the last event was that has been fed.
    pub fn now(&self) -> Time {
        self.agenda.now()
    }

    /// What the device got since it was asked last, in order.
    pub fn handed_over(&mut self) -> std::vec::Drain<'_, HandedOver> {
        self.handed_over.drain(..)
    }

    /// The largest number of requests that may be allocated at a time.
    pub fn depth_of_requests(&self) -> u32 {
        match &self.queue {
            Queue::Sq(q) => q.core().limits.nr_requests,
            Queue::Mq(q) => q.core().nr_requests,
        }
    }

    /// The task of a process; a new one if it has none.
    fn submitter(&mut self, pid: Pid) -> usize {
        if let Some(&who) = self.by_pid.get(&pid) {
            return who;
        }
        let process = (self.known)(pid);
        let task = self.tasks.add(pid, process.ioprio);
        self.tasks.get_mut(task).group = process.group;
        let who = self.submitters.len();
        self.by_pid.insert(pid, who);
        self.submitters.push(Submitter {
            task,
            pid,
            cpu: 0,
            direct: process.direct,
            last_bio: process.last_bio,
            nr_bios: 0,
            plug_is_open: false,
            pending: None,
            resumes: None,
            backlog: VecDeque::new(),
        });
        who
    }

    /// Lets everything happen that is due before the next step, then takes it.
    fn take_step(&mut self) -> bool {
        if let Some(find) = self.find.take()
            && let Some(before) = find(self)
        {
            self.begin_after(before);
        }
        if self.plugs != PlugsShow::OfQueue {
            self.steps.put_interrupt_first();
        }
        let Some(step) = self.steps.steps.front() else {
            return false;
        };
        self.agenda.wake_device(STEP, step.time, 0);
        while self.wait(step_time(&self.steps)) {}
        let step = self.steps.pop().expect("the step that was looked at");
        self.last_pid = Some(step.pid);
        match self.work {
            Some(Work::AtStep(0)) => self.run_work(),
            Some(Work::AtStep(n)) => self.work = Some(Work::AtStep(n - 1)),
            Some(Work::AtTime) | None => {}
        }
        self.perform(&step);
        true
    }

    /// The next thing that is due until some time. False if that is a step, or nothing.
    fn wait(&mut self, until: Time) -> bool {
        match self.agenda.next(until) {
            Some(Due::Timer(timer)) => {
                self.enter(Running::INTERRUPT, |q, cx| q.timer(cx, timer));
            }
            Some(Due::Device(WORKER, _)) if self.work == Some(Work::AtTime) => {
                self.run_or_wait();
            }
            Some(Due::Device(RESUME, _)) => self.resume_next(),
            Some(Due::Device(EXIT, who)) => self.exit(who as usize),
            Some(Due::Device(STEP, _)) | None => return false,
            Some(_) => {}
        }
        true
    }

    /// Once all events were fed, what the device got in the recording comes out here, too:
    /// what the queue waits for may be the next request of a process that has ended, which
    /// no event shows, until a timer says that it has waited enough.
    fn finish(&mut self) {
        let until = self.now() + WAITS_AT_MOST;
        while !self.recorded.is_empty() && self.wait(until) {}
    }

    fn perform(&mut self, step: &Step) {
        match step.what {
            What::Complete(command) => self.complete(command),
            What::Other | What::Grant | What::Issue => {}
            What::FinishPlug | What::Sleep if self.plugs == PlugsShow::OfQueue => {
                let running = self.running_as(step.pid);
                self.enter(running, Queue::unplug);
            }
            What::Submit { .. } => {
                let who = self.submitter(step.pid);
                self.act_or_wait(who, step);
            }
            What::FinishPlug | What::Sleep => {
                if let Some(&who) = self.by_pid.get(&step.pid) {
                    self.act_or_wait(who, step);
                }
            }
        }
    }

    fn act_or_wait(&mut self, who: usize, step: &Step) {
        let s = &mut self.submitters[who];
        if s.pending.is_some() {
            s.backlog.push_back(*step);
        } else {
            self.act(who, step);
        }
    }

    /// A task does what it did in the recording.
    fn act(&mut self, who: usize, step: &Step) {
        let task = self.submitters[who].task;
        self.submitters[who].cpu = step.cpu % self.queue.nr_cpus();
        match step.what {
            What::Submit {
                op,
                flags,
                sector,
                nr_sectors,
                plugged,
                unplugs,
            } => {
                if let Some(open) = plugged {
                    self.set_plug(who, open);
                }
                let bio = Bio {
                    op,
                    flags: self.flags(who, op, flags, unplugs),
                    sector,
                    nr_sectors,
                    segments: Bio::segments_of_pages(nr_sectors),
                    task,
                    completion: Completion::Task(task),
                    ..Bio::default()
                };
                self.submitters[who].nr_bios += 1;
                let state = self.enter(self.running(who), |q, cx| q.submit(cx, bio));
                self.after_submission(who, state);
            }
            What::FinishPlug => self.set_plug(who, false),
            What::Sleep => self.sleep(who),
            What::Complete(_) | What::Other | What::Grant | What::Issue => {}
        }
    }

    /// What a bio says beside its direction: the letters of its Q, and what they
    /// do not show.
    fn flags(&self, who: usize, op: Op, mut flags: BioFlags, unplugs: bool) -> BioFlags {
        let is_sync_write = op == Op::Write && flags.has(BioFlags::SYNC);
        let direct = self.submitters[who].direct;
        match &self.queue {
            Queue::Mq(_) if is_sync_write && direct => flags |= BioFlags::IDLE,
            Queue::Sq(_) if is_sync_write && !direct => flags |= BioFlags::NOIDLE,
            _ => {}
        }
        if unplugs && self.plugs == PlugsShow::OfQueue {
            flags |= BioFlags::UNPLUG;
        }
        flags
    }

    fn running(&self, who: usize) -> Running {
        let s = &self.submitters[who];
        Running {
            task: Some(s.task),
            pid: s.pid,
            cpu: s.cpu,
        }
    }

    /// The interrupt that ends a request, on the processor that submitted it.
    fn interrupt_of(&self, rq: RqId) -> Running {
        Running {
            cpu: self.queue.requests()[rq].cpu,
            ..Running::INTERRUPT
        }
    }

    /// In the context of a process that need not submit anything.
    fn running_as(&self, pid: Pid) -> Running {
        match self.by_pid.get(&pid) {
            Some(&who) => self.running(who),
            None => Running {
                pid,
                ..Running::INTERRUPT
            },
        }
    }

    fn set_plug(&mut self, who: usize, open: bool) {
        let s = &mut self.submitters[who];
        if std::mem::replace(&mut s.plug_is_open, open) == open {
            return;
        }
        let task = s.task;
        if open {
            self.queue.start_plug(task);
        } else {
            self.enter(self.running(who), |q, cx| q.finish_plug(cx, task));
        }
    }

    fn sleep(&mut self, who: usize) {
        let task = self.submitters[who].task;
        self.enter(self.running(who), |q, cx| q.flush_plug_to_sleep(cx, task));
    }

    fn after_submission(&mut self, who: usize, state: Submit) {
        match state {
            Submit::Sleeps(pending) => {
                let now = self.agenda.now();
                let slept = Slept {
                    cause: self.queue.sleeps_for(self.submitters[who].task),
                    from: now,
                    to: now,
                };
                self.submitters[who].pending = Some((pending, slept));
                self.sleep(who);
            }
            // Nobody has the bio.
            Submit::Refused => self.submitters[who].nr_bios -= 1,
            Submit::Done | Submit::Pays(_) => {}
        }
    }

    /// Of those who slept for a request and get the processor now, the first.
    fn resume_next(&mut self) {
        let now = self.agenda.now();
        let due = (0..).zip(&self.submitters).filter_map(|(who, s)| {
            let (time, granted) = s.resumes?;
            (time <= now).then_some((granted, who))
        });
        if let Some((_, who)) = due.min() {
            self.submitters[who].resumes = None;
            self.resume(who);
        }
    }

    /// A task that slept for a request got the processor.
    fn resume(&mut self, who: usize) {
        let Some((pending, mut slept)) = self.submitters[who].pending.take() else {
            return;
        };
        slept.to = self.agenda.now();
        // Known when the request is handed over, which may be at once.
        let wait = (pending.bio.op, pending.bio.sector);
        self.slept.insert(wait, slept);
        if self.slept.len() > SLEEPS_MAX {
            self.slept.clear();
        }
        let state = self.enter(self.running(who), |q, cx| q.resume(cx, pending));
        if let Submit::Sleeps(again) = state
            && again.bio.sector == pending.bio.sector
        {
            // There was no tag after all.
            self.slept.remove(&wait);
            slept.cause = self.queue.sleeps_for(self.submitters[who].task);
            self.submitters[who].pending = Some((again, slept));
            return;
        }
        self.after_submission(who, state);
        while self.submitters[who].pending.is_none()
            && let Some(step) = self.submitters[who].backlog.pop_front()
        {
            self.act(who, &step);
        }
    }

    /// The device finished a command in the recording.
    fn complete(&mut self, command: Dispatched) {
        let same = self.at_device.iter().position(|(_, c)| c.is_same(&command));
        let oldest = (self.differs && !self.at_device.is_empty()).then_some(0);
        match same.or(oldest).and_then(|at| self.at_device.remove(at)) {
            Some((rq, _)) => self.enter(self.interrupt_of(rq), |q, cx| q.complete(cx, rq, 0)),
            None => {
                self.ahead.push_back(command);
                if self.ahead.len() > AHEAD_MAX {
                    self.ahead.pop_front();
                }
            }
        }
    }

    fn run_work(&mut self) {
        self.work = None;
        let kblockd = Running {
            task: None,
            pid: crate::KBLOCKD_PID,
            cpu: 0,
        };
        if std::mem::take(&mut self.unplugs) {
            self.enter(kblockd, Queue::unplug_work);
        } else {
            self.enter(kblockd, Queue::run_work);
        }
    }

    /// kblockd runs in a pause, unless the device would take something: then it ran
    /// when that was handed over.
    fn run_or_wait(&mut self) {
        let hands_over = match &self.queue {
            Queue::Sq(_) => false,
            Queue::Mq(q) => q.would_hand_over(),
        };
        let next = self.steps.steps.iter().position(|s| s.what == What::Issue);
        match next {
            Some(n) if hands_over => self.work = Some(Work::AtStep(n)),
            _ => self.run_work(),
        }
    }

    /// kblockd was asked to run.
    fn want_work(&mut self) {
        if self.work.is_some() {
            return;
        }
        let rest = &self.steps.steps;
        let is_end = |s: &Step| matches!(s.what, What::Issue | What::Complete(_));
        let next = rest.iter().position(is_end);
        if let Some(n) = next.filter(|n| rest[*n].what == What::Issue) {
            self.work = Some(Work::AtStep(n));
            return;
        }
        let (mut before, mut pid) = (self.agenda.now(), self.last_pid);
        for (n, s) in rest.iter().enumerate() {
            let is_lazy = self.is_lazy && pid == Some(s.pid);
            let gap = if is_lazy { LAZY_GAP } else { GAP };
            if s.time.since(before) >= gap {
                break;
            }
            if s.what == What::Issue {
                self.work = Some(Work::AtStep(n));
                return;
            }
            (before, pid) = (s.time, Some(s.pid));
        }
        self.agenda.wake_device(WORKER, before + WORKER_DELAY, 0);
        self.work = Some(Work::AtTime);
    }

    /// Calls into the queue and carries out what it asks for.
    fn enter<R>(&mut self, running: Running, f: impl FnOnce(&mut Queue, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx {
            queue: QueueNo::FIRST,
            now: self.agenda.now(),
            jiffies: self.agenda.timers.jiffies(),
            running,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut self.trace,
            truth: match &mut self.truth {
                Some(truth) => Some(&mut **truth),
                None => None,
            },
            effects: &mut self.effects,
        };
        let r = f(&mut self.queue, &mut cx);
        if !self.effects.is_empty() {
            let mut effects = std::mem::take(&mut self.effects);
            for (_, effect) in effects.drain(..) {
                self.carry_out(effect);
            }
            // Kept for the next call.
            self.effects = effects;
        }
        r
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(rq) => self.hand_over(rq),
            Effect::RunWork => self.want_work(),
            Effect::UnplugWork => {
                self.unplugs = true;
                self.want_work();
            }
            Effect::Wake(task) => {
                // Tasks are numbered in the order of the submitters.
                let who = task.idx();
                let now = self.agenda.now();
                let granted = self.steps.next_grant(self.submitters[who].pid);
                let granted = granted.map_or(now, |time| time.max(now));
                let vain = (self.plugs == PlugsShow::ByIssue)
                    .then(|| self.steps.looks_in_vain(now, granted));
                let time = vain.flatten().unwrap_or(granted);
                self.submitters[who].resumes = Some((time, granted));
                self.agenda.wake_device(RESUME, time, who as u64);
            }
            Effect::BioDone {
                completion: Completion::Task(task),
                ..
            } => self.bio_ends(task.idx()),
            Effect::BioDone { .. } | Effect::Uncongested | Effect::ReleaseWork => {}
        }
    }

    /// A bio of a task is over. The task may end, too.
    fn bio_ends(&mut self, who: usize) {
        let now = self.agenda.now();
        let s = &mut self.submitters[who];
        s.nr_bios = s.nr_bios.saturating_sub(1);
        if s.nr_bios == 0 && s.last_bio.is_some_and(|last| last <= now) {
            self.agenda.wake_device(EXIT, now + EXIT_DELAY, who as u64);
        }
    }

    /// A task ends, unless something of it has come meanwhile.
    fn exit(&mut self, who: usize) {
        let s = &mut self.submitters[who];
        if s.nr_bios > 0 || s.last_bio.take().is_none() {
            return;
        }
        let task = s.task;
        self.enter(self.running(who), |q, cx| q.exit_task(cx, task));
    }

    fn hand_over(&mut self, rq: RqId) {
        let r = &self.queue.requests()[rq];
        let command = Dispatched {
            time: self.agenda.now(),
            op: r.op,
            sector: r.sector,
            nr_sectors: r.nr_sectors,
        };
        let queued = self.queue.requests().first_queued(rq);
        self.handed_over.push(HandedOver {
            command,
            request: rq.0,
            queued,
            granted: r.allocated,
            pid: queued.map_or(0, |_| self.tasks.get(r.task).pid),
            is_sync: r.is_sync(),
            is_ordered: r.state.has(RqState::FLUSH_SEQ),
            slept: self.slept.remove(&(command.op, command.sector)),
        });
        if !self.differs {
            let recorded = self.recorded.pop_front();
            self.differs = recorded.is_none_or(|d| !d.is_same(&command));
        }
        let same = self.ahead.iter().position(|c| c.is_same(&command));
        let any = (self.differs && !self.ahead.is_empty()).then_some(0);
        match same.or(any) {
            Some(at) => {
                self.ahead.remove(at);
                self.enter(self.interrupt_of(rq), |q, cx| q.complete(cx, rq, 0));
            }
            None => self.at_device.push_back((rq, command)),
        }
    }
}

/// Whether no event says that a plug ends.
fn shows_no_end(e: &Experiment) -> bool {
    mq::Features::of(e.kernel).plug_issues_directly && e.scheduler == "none"
}

/// When the first step is.
fn step_time(steps: &Steps) -> Time {
    steps.steps.front().map_or(Time::ZERO, |s| s.time)
}
