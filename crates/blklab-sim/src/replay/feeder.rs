// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feeds a recording into a queue.
//!
//! Every recorded event is a step in order of time. Three things are not in a
//! trace, or only in part, and are settled here:
//!
//! - *When kblockd runs.* At its next recorded hand-over, if no completion comes
//!   before; else, as it then found nothing that the device would take, in the
//!   first gap of [`GAP`] between recorded events. If there is something here that
//!   the device would take, it did not run there, but at the hand-over.
//! - *Tasks that sleep for a tag here.* They go on when they are woken, but not
//!   before their request was granted in the recording: until then they had not
//!   got the processor. Without a scheduler, if others got a tag and the only
//!   processor had nothing more to do before that, they have looked for one in vain,
//!   and who did so at the same time did it in the order in which they got theirs.
//!   What they did later waits for them.
//! - *Interrupts of a submission.* A completion in the context of a task that has
//!   submitted a bio and has no request yet comes before the bio.
//! - *Commands that the recording does not have*, once the order differs: each
//!   recorded completion then ends the same command if the device has it, else
//!   the one that it has had longest, so that as many commands end as did.
//!
//! What is done in one call of the kernel happens at one instant here: the
//! microseconds between the end of a plug and the hand-overs it leads to are
//! left out.

use super::recording::{Dispatched, PlugsShow, Recording, Step, Steps, What, command};
use crate::build::{build_queue, disk_dev};
use crate::cgroups;
use blklab_block::{
    Cx, Effect, Pending, Queue, QueueNo, RqId, RqState, Running, SleepsFor, Submit, TaskTable, mq,
};
use blklab_engine::{Agenda, DeviceId, Due};
use blklab_experiment::{Experiment, ExperimentError};
use blklab_sched::{Schedulers, Shared};
use blklab_trace::truth::TruthSink;
use blklab_trace::{Action, Event, NullSink, Tracer};
use blklab_types::{Bio, BioFlags, IoPrio, Op, Pid, Span, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// A pause between recorded events that is long enough for kblockd to run: from
/// an insertion to the hand-over by the worker it takes 5 to 6 us in the traces.
const GAP: Span = Span(5_000);

/// From the last event before such a pause to kblockd's run.
const WORKER_DELAY: Span = Span(4_000);

/// Events that are known before the first of them is fed: later ones say what
/// earlier ones meant.
const WINDOW: usize = 1 << 14;

/// Sleeps whose bios are still on their way; more belong to bios that were merged.
const SLEEPS_MAX: usize = 1 << 16;

const STEP: DeviceId = DeviceId(0);
const WORKER: DeviceId = DeviceId(1);
const RESUME: DeviceId = DeviceId(2);

/// What is known of a process beside its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The priority that it set for itself.
    pub ioprio: IoPrio,
    /// Its sync writes are direct ones (`REQ_IDLE`, which traces do not show).
    pub direct: bool,
    /// The number of its control group ([`cgroup_number`](crate::cgroup_number)).
    pub group: u16,
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

/// A task of the recording.
struct Submitter {
    task: TaskId,
    pid: Pid,
    direct: bool,
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
}

/// Recorded completions that are remembered for commands that come late.
const AHEAD_MAX: usize = 1 << 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    AtStep(usize),
    AtTime,
}

/// The dispatches of an experiment's queue if it is fed with a recording.
/// `known` says what is known of a process.
///
/// # Errors
/// If the experiment is not possible.
pub fn replay(
    e: &Experiment,
    recording: Recording,
    known: impl Fn(Pid) -> Process,
) -> Result<Vec<Dispatched>, ExperimentError> {
    let mut f = Replay::new(e, Schedulers::default(), known, None)?;
    f.steps = recording.steps;
    f.recorded = recording.dispatches.into();
    for pid in recording.submitters {
        f.submitter(pid);
    }
    while f.take_step() {}
    Ok(f.handed_over.into_iter().map(|h| h.command).collect())
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
    ) -> Result<Replay<'a>, ExperimentError> {
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
            unplugs: false,
            at_device: VecDeque::new(),
            ahead: VecDeque::new(),
            handed_over: Vec::new(),
            slept: BTreeMap::new(),
            recorded: VecDeque::new(),
            differs: false,
        })
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
            direct: process.direct,
            plug_is_open: false,
            pending: None,
            resumes: None,
            backlog: VecDeque::new(),
        });
        who
    }

    /// Lets everything happen that is due before the next step, then takes it.
    fn take_step(&mut self) -> bool {
        if self.plugs != PlugsShow::OfQueue {
            self.steps.put_interrupt_first();
        }
        let Some(step) = self.steps.steps.front() else {
            return false;
        };
        self.agenda.wake_device(STEP, step.time, 0);
        loop {
            match self.agenda.next(step_time(&self.steps)) {
                Some(Due::Timer(timer)) => {
                    self.enter(Running::INTERRUPT, |q, cx| q.timer(cx, timer));
                }
                Some(Due::Device(WORKER, _)) if self.work == Some(Work::AtTime) => {
                    self.run_or_wait();
                }
                Some(Due::Device(RESUME, _)) => self.resume_next(),
                Some(Due::Device(STEP, _)) | None => break,
                Some(_) => {}
            }
        }
        let step = self.steps.pop().expect("the step that was looked at");
        match self.work {
            Some(Work::AtStep(0)) => self.run_work(),
            Some(Work::AtStep(n)) => self.work = Some(Work::AtStep(n - 1)),
            Some(Work::AtTime) | None => {}
        }
        self.perform(&step);
        true
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
                    ..Bio::default()
                };
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
            cpu: 0,
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
        if let Submit::Sleeps(pending) = state {
            let now = self.agenda.now();
            let slept = Slept {
                cause: self.queue.sleeps_for(self.submitters[who].task),
                from: now,
                to: now,
            };
            self.submitters[who].pending = Some((pending, slept));
            self.sleep(who);
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
            Some((rq, _)) => self.enter(Running::INTERRUPT, |q, cx| q.complete(cx, rq, 0)),
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
        let mut before = self.agenda.now();
        for s in rest {
            if s.time.since(before) >= GAP {
                break;
            }
            before = s.time;
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
            Effect::BioDone { .. } | Effect::Uncongested | Effect::ReleaseWork => {}
        }
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
                self.enter(Running::INTERRUPT, |q, cx| q.complete(cx, rq, 0));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Recorder;
    use blklab_experiment::Source;
    use blklab_trace::TraceSink as _;
    use blklab_trace::{Action, Event, Rwbs};
    use blklab_types::Dev;

    /// A null device of that depth under a scheduler, fed with reads of 8
    /// sectors: lines `time_us action pid sector`; W behind that makes it a write.
    /// Returns the sectors that the driver got.
    fn sectors(scheduler: &str, depth: u32, text: &str) -> Vec<u64> {
        let file = format!(
            "kernel = '6.1'\nscheduler = '{scheduler}'\njob = \"[a]\"\n\
             [device]\nkind = 'null_blk'\nhw_queue_depth = {depth}\n[queue]\nnr_requests = 4"
        );
        let e = blklab_experiment::parse(
            "e.toml",
            Source::Toml,
            &file,
            &|_| unreachable!(),
            &crate::catalogue(),
        );
        let e = e.expect("an experiment");
        let mut recorder = Recorder::default();
        for line in text.lines() {
            let f: Vec<&str> = line.split_whitespace().collect();
            let number = |i: usize| f.get(i).map_or(0, |t| t.parse::<u64>().expect(line));
            let of_bio = !matches!(f[1], "P" | "U" | "UT");
            recorder.event(&Event {
                time: Time(1000 * number(0)),
                sector: number(3),
                arg: 0,
                bytes: if of_bio { 4096 } else { 0 },
                pid: number(2) as Pid,
                dev: Dev::default(),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: match f.get(4) {
                    Some(_) => Rwbs::WRITE,
                    None if of_bio => Rwbs::READ,
                    None => Rwbs::NONE,
                },
                action: Action::from_letters(f[1]).expect(line),
            });
        }
        let recording = recorder.finish(scheduler != "none");
        let done = replay(&e, recording, |_| Process::default()).expect("possible");
        done.iter().map(|d| d.sector).collect()
    }

    #[test]
    fn a_plug_without_a_scheduler_is_issued_newest_first() {
        let text = "0 Q 9 1000\n1 G 9 1000\n2 P 9\n3 Q 9 3000\n4 G 9 3000\n5 Q 9 2000\n\
                    6 G 9 2000\n7 D 9 2000\n8 D 9 3000\n9 D 9 1000";
        assert_eq!(sectors("none", 8, text), [2000, 3000, 1000]);
        let slept = text
            .replace("7 D 9 2000", "7 UT 9")
            .replace("8 D 9 3000\n", "");
        assert_eq!(sectors("none", 8, &slept), [1000, 3000, 2000]);
    }

    /// The worker takes one request early. Alone it is not followed by the next
    /// one in order of sectors; with the others it is.
    #[test]
    fn kblockd_runs_where_the_recording_leaves_room() {
        let begin = "0 Q 9 500\n1 G 9 500\n2 I 9 500\n8 D 37 500\n";
        let others = "109 Q 9 900\n110 G 9 900\n111 I 9 900\n112 Q 9 700\n113 G 9 700\n\
                      114 I 9 700\n500 C 0 500\n508 D 37 600\n1000 C 0 600\n1008 D 37 900";
        let early = format!("{begin}56 Q 9 600\n57 G 9 600\n58 I 9 600\n{others}");
        assert_eq!(sectors("mq-deadline", 1, &early), [500, 600, 900]);
        let late = format!("{begin}106 Q 9 600\n107 G 9 600\n108 I 9 600\n{others}");
        assert_eq!(sectors("mq-deadline", 1, &late), [500, 600, 700]);
    }

    #[test]
    fn who_sleeps_for_a_tag_goes_on_when_it_did() {
        // Two tags: 9 has both; 8 got one first although 9 came again before.
        let text = "0 Q 9 100\n1 G 9 100\n2 D 9 100\n20 Q 9 200\n21 G 9 200\n22 D 9 200\n\
                    30 Q 8 300\n40 Q 7 400\n500 C 0 100\n510 G 8 300\n511 D 8 300\n\
                    520 C 0 200\n530 G 7 400\n531 D 7 400\n900 C 0 300\n950 C 0 400";
        assert_eq!(sectors("none", 2, text), [100, 200, 300, 400]);
    }

    /// Three reads are at the device and a write waits for it.
    const FULL: &str = "0 Q 9 100\n1 G 9 100\n2 I 9 100\n8 D 37 100\n20 Q 9 150\n\
                        21 G 9 150\n22 I 9 150\n28 D 37 150\n40 Q 9 160\n41 G 9 160\n\
                        42 I 9 160\n48 D 37 160\n190 Q 9 600 W\n191 G 9 600 W\n192 I 9 600 W\n";

    #[test]
    fn a_completion_before_a_bio_has_its_request_comes_before_the_bio() {
        // All four requests are in use when 8 submits its bio, but not when it looks
        // for one: it does not sleep, and nothing is handed over before it is there.
        let rest = "195 Q 8 300\n196 C 8 100\n200 G 8 300\n201 P 8\n202 U 8\n203 I 8 300\n\
                    204 D 8 300\n500 C 0 150\n506 D 37 600 W";
        let order = sectors("mq-deadline", 3, &format!("{FULL}{rest}"));
        assert_eq!(order, [100, 150, 160, 300, 600]);
    }

    #[test]
    fn kblockd_did_not_run_in_a_pause_if_there_was_something_to_hand_over() {
        let rest = "193 Q 8 300\n194 G 8 300\n195 P 8\n196 C 8 100\n203 C 8 150\n205 U 8\n\
                    206 I 8 300\n207 D 8 300\n209 D 8 600 W";
        let full = FULL.replace("40 Q 9 160\n41 G 9 160\n42 I 9 160\n48 D 37 160\n", "");
        let order = sectors("mq-deadline", 2, &format!("{full}{rest}"));
        assert_eq!(order, [100, 150, 300, 600]);
    }

    #[test]
    fn completions_that_fit_no_command_end_the_oldest() {
        // The recorded driver got what the model cannot have: 150.
        let text = "0 Q 9 100\n1 G 9 100\n2 D 9 150\n20 Q 9 200\n30 C 0 150\n31 G 9 200\n\
                    32 D 9 200\n60 C 0 200";
        assert_eq!(sectors("none", 1, text), [100, 200]);
    }
}
