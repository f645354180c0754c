// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feeds a recording into a queue.
//!
//! Every recorded event is a step in order of time. Three things are not in a
//! trace, or only in part, and are settled here:
//!
//! - *When kblockd runs.* At the next recorded hand-over, if no completion comes
//!   before; else, as it then found nothing that the device would take, in the
//!   first gap of [`GAP`] between recorded events.
//! - *Tasks that sleep for a tag here.* They go on when they are woken, but not
//!   before their request was granted in the recording: until then they had not
//!   got the processor. What they did later waits for them.
//! - *Commands that the recording does not have*, once the order differs: each
//!   recorded completion then ends the same command if the device has it, else
//!   the one that it has had longest, so that as many commands end as did.
//!
//! What is done in one call of the kernel happens at one instant here: the
//! microseconds between the end of a plug and the hand-overs it leads to are
//! left out.

use super::recording::{Dispatched, Recording, Step, What};
use crate::build::{build_queue, disk_dev};
use blklab_block::{Cx, Effect, Pending, Queue, QueueNo, RqId, Running, Submit, TaskTable};
use blklab_engine::{Agenda, DeviceId, Due};
use blklab_experiment::{Experiment, ExperimentError};
use blklab_sched::Schedulers;
use blklab_trace::NullSink;
use blklab_types::{Bio, BioFlags, IoPrio, Op, Pid, Span, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// A pause between recorded events that is long enough for kblockd to run: from
/// an insertion to the hand-over by the worker it takes 5 to 6 us in the traces.
const GAP: Span = Span(5_000);

/// From the last event before such a pause to kblockd's run.
const WORKER_DELAY: Span = Span(4_000);

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
}

/// A task of the recording.
struct Submitter {
    task: TaskId,
    pid: Pid,
    direct: bool,
    plug_is_open: bool,
    /// Its bio, if it sleeps for a request.
    pending: Option<Pending>,
    /// When that was granted in the recording.
    granted: Time,
    /// Steps that were due while it slept.
    backlog: VecDeque<usize>,
}

struct Feeder<'a> {
    steps: &'a [Step],
    /// The step that was taken last.
    at: usize,
    queue: Queue,
    agenda: Agenda,
    tasks: TaskTable,
    trace: NullSink,
    effects: Vec<(QueueNo, Effect)>,
    submitters: Vec<Submitter>,
    by_pid: BTreeMap<Pid, usize>,
    /// kblockd is to run; some time, or at the worker's next step.
    work: Option<Work>,
    /// Commands at the device.
    at_device: VecDeque<(RqId, Dispatched)>,
    /// Recorded completions of commands that the device did not have yet.
    ahead: Vec<Dispatched>,
    dispatches: Vec<Dispatched>,
    recorded: &'a [Dispatched],
    differs: bool,
}

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
    recording: &Recording,
    known: impl Fn(Pid) -> Process,
) -> Result<Vec<Dispatched>, ExperimentError> {
    let mut agenda = Agenda::new(e.hz);
    let queue = build_queue(
        e,
        Schedulers::default(),
        disk_dev(0),
        &TaskTable::default(),
        &mut agenda,
    )?;
    let mut f = Feeder {
        steps: &recording.steps,
        at: 0,
        queue,
        agenda,
        tasks: TaskTable::default(),
        trace: NullSink,
        effects: Vec::new(),
        submitters: Vec::new(),
        by_pid: BTreeMap::new(),
        work: None,
        at_device: VecDeque::new(),
        ahead: Vec::new(),
        dispatches: Vec::with_capacity(recording.dispatches.len()),
        recorded: &recording.dispatches,
        differs: false,
    };
    for pid in &recording.submitters {
        let process = known(*pid);
        let task = f.tasks.add(*pid, process.ioprio);
        f.by_pid.insert(*pid, f.submitters.len());
        f.submitters.push(Submitter {
            task,
            pid: *pid,
            direct: process.direct,
            plug_is_open: false,
            pending: None,
            granted: Time::ZERO,
            backlog: VecDeque::new(),
        });
    }
    for i in 0..f.steps.len() {
        f.take_step(i);
    }
    Ok(f.dispatches)
}

impl Feeder<'_> {
    /// Lets everything happen that is due before a step, then takes it.
    fn take_step(&mut self, i: usize) {
        let time = self.steps[i].time;
        self.agenda.wake_device(STEP, time, i as u64);
        loop {
            match self.agenda.next(time) {
                Some(Due::Timer(timer)) => {
                    self.enter(Running::INTERRUPT, |q, cx| q.timer(cx, timer));
                }
                Some(Due::Device(WORKER, _)) if self.work == Some(Work::AtTime) => self.run_work(),
                Some(Due::Device(RESUME, who)) => self.resume(who as usize),
                Some(Due::Device(STEP, _)) | None => break,
                Some(_) => {}
            }
        }
        self.at = i;
        if self.work == Some(Work::AtStep(i)) {
            self.run_work();
        }
        self.perform(i);
    }

    fn perform(&mut self, i: usize) {
        let step = self.steps[i];
        match step.what {
            What::Complete(command) => self.complete(command),
            What::Other | What::Issue => {}
            What::Submit { .. } | What::FinishPlug | What::Sleep => {
                let Some(&who) = self.by_pid.get(&step.pid) else {
                    return;
                };
                let s = &mut self.submitters[who];
                if s.pending.is_some() {
                    s.backlog.push_back(i);
                } else {
                    self.act(who, i);
                }
            }
        }
    }

    /// A task does what it did in the recording.
    fn act(&mut self, who: usize, i: usize) {
        let task = self.submitters[who].task;
        match self.steps[i].what {
            What::Submit {
                op,
                mut flags,
                sector,
                nr_sectors,
                plugged,
                granted,
            } => {
                if self.submitters[who].direct && op == Op::Write && flags.has(BioFlags::SYNC) {
                    flags |= BioFlags::IDLE;
                }
                if let Some(open) = plugged {
                    self.set_plug(who, open);
                }
                self.submitters[who].granted = granted.unwrap_or(Time::ZERO);
                let bio = Bio {
                    op,
                    flags,
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
            What::Complete(_) | What::Other | What::Issue => {}
        }
    }

    fn running(&self, who: usize) -> Running {
        let s = &self.submitters[who];
        Running {
            task: Some(s.task),
            pid: s.pid,
            cpu: 0,
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
            self.submitters[who].pending = Some(pending);
            self.sleep(who);
        }
    }

    /// A task that slept for a request got the processor.
    fn resume(&mut self, who: usize) {
        let Some(pending) = self.submitters[who].pending.take() else {
            return;
        };
        let state = self.enter(self.running(who), |q, cx| q.resume(cx, pending));
        self.after_submission(who, state);
        while self.submitters[who].pending.is_none()
            && let Some(i) = self.submitters[who].backlog.pop_front()
        {
            self.act(who, i);
        }
    }

    /// The device finished a command in the recording.
    fn complete(&mut self, command: Dispatched) {
        let same = self.at_device.iter().position(|(_, c)| c.is_same(&command));
        let oldest = (self.differs && !self.at_device.is_empty()).then_some(0);
        match same.or(oldest).and_then(|at| self.at_device.remove(at)) {
            Some((rq, _)) => self.enter(Running::INTERRUPT, |q, cx| q.complete(cx, rq, 0)),
            None => self.ahead.push(command),
        }
    }

    fn run_work(&mut self) {
        self.work = None;
        let kblockd = Running {
            task: None,
            pid: crate::KBLOCKD_PID,
            cpu: 0,
        };
        self.enter(kblockd, Queue::run_work);
    }

    /// kblockd was asked to run.
    fn want_work(&mut self) {
        if self.work.is_some() {
            return;
        }
        let rest = &self.steps[(self.at + 1).min(self.steps.len())..];
        let is_end = |s: &&Step| matches!(s.what, What::Issue | What::Complete(_));
        let next = rest.iter().position(|s| is_end(&s));
        if let Some(n) = next.filter(|n| rest[*n].what == What::Issue) {
            self.work = Some(Work::AtStep(self.at + 1 + n));
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
            truth: None,
            effects: &mut self.effects,
        };
        let r = f(&mut self.queue, &mut cx);
        for (_, effect) in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
        r
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(rq) => self.hand_over(rq),
            Effect::RunWork => self.want_work(),
            Effect::Wake(task) => {
                let who = self.submitters.iter().position(|s| s.task == task);
                if let Some(who) = who {
                    let time = self.submitters[who].granted.max(self.agenda.now());
                    self.agenda.wake_device(RESUME, time, who as u64);
                }
            }
            Effect::BioDone { .. }
            | Effect::Uncongested
            | Effect::UnplugWork
            | Effect::ReleaseWork => {}
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
        let recorded = self.recorded.get(self.dispatches.len());
        self.differs |= recorded.is_none_or(|d| !d.is_same(&command));
        self.dispatches.push(command);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Recorder;
    use blklab_experiment::Source;
    use blklab_trace::TraceSink as _;
    use blklab_trace::{Action, Event, Rwbs};
    use blklab_types::Dev;

    /// A null device of that depth under a scheduler, fed with reads of 8
    /// sectors: lines `time_us action pid sector`. Returns the sectors that the
    /// driver got.
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
                rwbs: if of_bio { Rwbs::READ } else { Rwbs::NONE },
                action: Action::from_letters(f[1]).expect(line),
            });
        }
        let recording = recorder.finish(scheduler != "none");
        let done = replay(&e, &recording, |_| Process::default()).expect("possible");
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

    #[test]
    fn completions_that_fit_no_command_end_the_oldest() {
        // The recorded driver got what the model cannot have: 150.
        let text = "0 Q 9 100\n1 G 9 100\n2 D 9 150\n20 Q 9 200\n30 C 0 150\n31 G 9 200\n\
                    32 D 9 200\n60 C 0 200";
        assert_eq!(sectors("none", 1, text), [100, 200]);
    }
}
