// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recorded trace of a device says about those who used its queue: what they submitted, when, under which plug, when they slept, and
//! when the device finished what.
//!
//! A trace shows plugs only by their effects. A task's plug was open when a
//! bio's request was followed by P; it stayed open for requests without P as
//! long as there was something in it; it was emptied by U, and without a
//! scheduler, where nothing says so, by the task's next D. U followed by P
//! without a Q in between is the block layer's own (the plug was full, or its
//! last request large), any other the end of the plug. UT is a task that goes
//! to sleep. Up to 2.6.38 plugs belong to the queue, which makes them itself:
//! there U says that somebody unplugs it ([`PlugsShow`]).

use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{BioFlags, Op, Pid, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// From an interrupt to a task that it woke, and from there back to the idle task, is
/// longer than this.
const TURN: Span = Span(8_000);

/// A command as traces show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// When the driver got it.
    pub time: Time,
    /// Direction.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
}

impl Dispatched {
    /// Whether both are the same command, whenever it was.
    pub fn is_same(&self, o: &Dispatched) -> bool {
        (self.op, self.sector, self.nr_sectors) == (o.op, o.sector, o.nr_sectors)
    }
}

/// What happened at one recorded event, as far as it has to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A task submitted a bio.
    Submit {
        op: Op,
        flags: BioFlags,
        sector: u64,
        nr_sectors: u32,
        /// Whether the task's plug was open; none if nothing shows it.
        plugged: Option<bool>,
        /// Whether the driver got something right away, in the task.
        unplugs: bool,
    },
    /// A task got a request.
    Grant,
    /// The task ended its plug; before 2.6.39 somebody unplugged the queue.
    FinishPlug,
    /// The task went to sleep with requests in its plug.
    Sleep,
    /// The device finished a command.
    Complete(Dispatched),
    /// Somebody handed something to the driver.
    Issue,
    /// Something that the queue did by itself.
    Other,
}

/// One recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) time: Time,
    pub(super) pid: Pid,
    pub(super) cpu: u16,
    pub(super) what: What,
}

/// How a trace shows plugs, which depends on kernel and scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugsShow {
    /// U is the end of a task's plug (2.6.39).
    ByUnplug,
    /// Nothing but the next D of the task (5.16, without a scheduler).
    ByIssue,
    /// Plugs belong to the queue (to 2.6.38): U says that somebody unplugs it.
    OfQueue,
}

/// A recorded trace, ready to be fed into a queue. It is a sink: send the
/// trace to it, then call [`Recorder::finish`].
#[derive(Debug, Default)]
pub struct Recorder {
    events: Vec<Event>,
}

/// What a trace says that has to be repeated.
#[derive(Debug)]
pub struct Recording {
    pub(super) steps: Steps,
    /// Commands in the order in which the driver got them.
    pub dispatches: Vec<Dispatched>,
    /// Processes that submitted bios, in order of their pids.
    pub submitters: Vec<Pid>,
}

impl TraceSink for Recorder {
    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }

    fn message(&mut self, event: &Event, _text: &str) {
        self.events.push(*event);
    }
}

impl Recorder {
    /// What was recorded, in order of time. `with_scheduler`: whether the
    /// queue had one; without one a plug's end shows by D.
    pub fn finish(mut self, with_scheduler: bool) -> Recording {
        self.events.sort_by_key(|e| e.time);
        let mut steps = Steps::new(if with_scheduler {
            PlugsShow::ByUnplug
        } else {
            PlugsShow::ByIssue
        });
        for event in &self.events {
            steps.push(event);
        }
        let issued = self.events.iter().filter(|e| e.action == Action::Issue);
        let submitters = steps.writing.iter().filter(|(_, w)| w.submits);
        Recording {
            dispatches: issued.filter_map(command).collect(),
            submitters: submitters.map(|(pid, _)| *pid).collect(),
            steps,
        }
    }
}

/// Steps that wait to be taken, and what each of their tasks is about to do: later
/// events of a task say what its earlier ones meant.
#[derive(Debug)]
pub(super) struct Steps {
    plugs: PlugsShow,
    /// In order of time.
    pub(super) steps: VecDeque<Step>,
    /// Number of the first of them.
    first_number: u64,
    writing: BTreeMap<Pid, Writing>,
    /// The processor of all events, as far as they are known.
    cpu: Option<u16>,
    /// There is no event of another.
    one_cpu: bool,
}

/// A task whose events are being read.
#[derive(Clone, Debug, Default)]
struct Writing {
    /// Its last bio.
    submit: Option<u64>,
    /// Whether it ever submitted one.
    submits: bool,
    /// Whether its plug holds something.
    filled: bool,
    /// The same at its last bio, until it unplugged.
    filled_then: bool,
    /// Whether it is getting a request.
    in_submit: bool,
    /// Ends of its plug that are the block layer's own if P comes before Q.
    ends: Vec<u64>,
}

/// Ends of a plug in a row that are remembered: more never have one cause.
const ENDS_MAX: usize = 8;

impl Steps {
    pub(super) fn new(plugs: PlugsShow) -> Steps {
        Steps {
            plugs,
            steps: VecDeque::new(),
            first_number: 0,
            writing: BTreeMap::new(),
            cpu: None,
            one_cpu: true,
        }
    }

    /// The first `n` steps of them.
    pub(super) fn first(&self, n: usize) -> Steps {
        Steps {
            steps: self.steps.iter().take(n).copied().collect(),
            writing: self.writing.clone(),
            ..*self
        }
    }

    /// How often something was handed to the driver.
    pub(super) fn nr_issued(&self) -> usize {
        let issued = self.steps.iter().filter(|s| s.what == What::Issue);
        issued.count()
    }

    /// Takes the first step.
    pub(super) fn pop(&mut self) -> Option<Step> {
        self.first_number += u64::from(!self.steps.is_empty());
        self.steps.pop_front()
    }

    /// What interrupted a task that had submitted a bio comes before that: the bio
    /// did not have its request yet (Q comes 1 us before it is looked for).
    pub(super) fn put_interrupt_first(&mut self) {
        let (Some(submit), Some(next)) = (self.steps.front(), self.steps.get(1)) else {
            return;
        };
        let is_submit = matches!(submit.what, What::Submit { .. });
        let interrupts = matches!(next.what, What::Complete(_)) && next.pid == submit.pid;
        if is_submit && interrupts {
            let time = submit.time;
            self.steps.swap(0, 1);
            self.steps[0].time = time;
        }
    }

    /// When a task got the next request, if it submits no other bio before.
    pub(super) fn next_grant(&self, pid: Pid) -> Option<Time> {
        let mut own = self.steps.iter().filter(|step| step.pid == pid);
        let next = own.find(|s| matches!(s.what, What::Grant | What::Submit { .. }))?;
        (next.what == What::Grant).then_some(next.time)
    }

    /// When a task that was woken at `now` to get a request, and got none before
    /// `granted`, has looked for one: on the only processor as soon as whoever got one
    /// instead has done what it had to do, and before there is nothing to do.
    pub(super) fn looks_in_vain(&self, now: Time, granted: Time) -> Option<Time> {
        let mut taker: Option<(Pid, Time)> = None;
        for step in self.steps.iter().take_while(|step| step.time < granted) {
            match (step.what, taker) {
                (What::Complete(_), _) if self.was_idle(step) && step.time > now + TURN => {
                    let idle = Time(step.time.ns() - 1);
                    return Some(taker.map_or(idle, |(_, last)| Time(last.ns() + 1)));
                }
                (What::Complete(_), _) => {}
                (_, Some((pid, last))) if step.pid != pid => return Some(Time(last.ns() + 1)),
                (_, Some(_)) => taker = Some((step.pid, step.time)),
                (What::Grant, None) if self.one_cpu => taker = Some((step.pid, step.time)),
                _ => {}
            }
        }
        None
    }

    /// Whether a step interrupted the idle task of the only processor.
    fn was_idle(&self, step: &Step) -> bool {
        step.pid == 0 && self.one_cpu
    }

    /// Appends the step of an event, which is not earlier than the last one.
    pub(super) fn push(&mut self, e: &Event) {
        let number = self.first_number + self.steps.len() as u64;
        self.steps.push_back(step(e));
        self.one_cpu &= *self.cpu.get_or_insert(e.cpu) == e.cpu;
        if e.is_refusal() && self.refuse(e) {
            self.set(number, What::Other);
            return;
        }
        if matches!(e.action, Action::Complete | Action::Message) {
            return;
        }
        let mut w = std::mem::take(self.writing.entry(e.pid).or_default());
        self.interpret(number, e, &mut w);
        self.writing.insert(e.pid, w);
    }

    /// The last bio of the task was refused, which says that the task does not sleep for
    /// requests. False if it has one.
    fn refuse(&mut self, e: &Event) -> bool {
        let asks = self.writing.get(&e.pid).filter(|w| w.in_submit);
        let submit = asks.and_then(|w| w.submit);
        let Some(step) = submit.and_then(|number| self.at(number)) else {
            return false;
        };
        match &mut step.what {
            What::Submit { sector, flags, .. } if *sector == e.sector => {
                *flags |= BioFlags::NOWAIT;
                true
            }
            _ => false,
        }
    }

    fn interpret(&mut self, number: u64, e: &Event, w: &mut Writing) {
        match e.action {
            Action::Queue => {
                w.submits |= e.rwbs.op().is_some();
                w.submit = Some(number);
                w.filled_then = w.filled;
                w.in_submit = true;
                w.ends.clear();
            }
            Action::GetRequest => {
                w.in_submit = false;
                let is_alone = !w.filled_then;
                self.of_submit(w, |plugged, _| {
                    *plugged = plugged.or(is_alone.then_some(false));
                });
            }
            Action::BackMerge | Action::FrontMerge => w.in_submit = false,
            Action::Insert => self.submit_at(number, e, w),
            Action::Plug => {
                w.filled = true;
                self.of_submit(w, |plugged, _| *plugged = Some(true));
                for end in w.ends.drain(..) {
                    self.set(end, What::Other);
                }
            }
            Action::UnplugTimer => {
                w.filled = false;
                w.filled_then = false;
            }
            Action::Unplug => {
                w.filled = false;
                w.filled_then = false;
                self.end_plug(number, w);
                if self.plugs == PlugsShow::OfQueue {
                    w.submit = None;
                }
            }
            Action::Issue if self.plugs == PlugsShow::ByIssue && w.filled && !w.in_submit => {
                w.filled = false;
                self.end_plug(number, w);
            }
            Action::Issue => self.of_submit(w, |_, unplugs| *unplugs = true),
            _ => {}
        }
    }

    /// A bio that went straight to the scheduler is submitted when that got it, if nothing else
    /// happened since: schedulers look at the time.
    fn submit_at(&mut self, number: u64, e: &Event, w: &mut Writing) {
        let Some(submit) = w.submit.filter(|submit| submit + 2 == number) else {
            return;
        };
        let granted = Some((e.pid, What::Grant));
        if self.at(submit + 1).map(|step| (step.pid, step.what)) != granted {
            return;
        }
        let Some(what) = self.at(submit).map(|step| step.what) else {
            return;
        };
        if let What::Submit { sector, .. } = what
            && sector == e.sector
        {
            self.set(submit, What::Other);
            self.set(number, what);
            w.submit = Some(number);
        }
    }

    fn end_plug(&mut self, number: u64, w: &mut Writing) {
        self.set(number, What::FinishPlug);
        if self.plugs != PlugsShow::OfQueue && w.ends.len() < ENDS_MAX {
            w.ends.push(number);
        }
    }

    fn at(&mut self, number: u64) -> Option<&mut Step> {
        let place = number.checked_sub(self.first_number)?;
        self.steps.get_mut(usize::try_from(place).ok()?)
    }

    fn set(&mut self, number: u64, what: What) {
        if let Some(step) = self.at(number) {
            step.what = what;
        }
    }

    /// Changes what is known of the task's last bio, if that still waits.
    fn of_submit(&mut self, w: &Writing, change: impl FnOnce(&mut Option<bool>, &mut bool)) {
        if let Some(step) = w.submit.and_then(|number| self.at(number))
            && let What::Submit {
                plugged, unplugs, ..
            } = &mut step.what
        {
            change(plugged, unplugs);
        }
    }
}

fn step(e: &Event) -> Step {
    let what = match e.action {
        Action::Queue => match e.rwbs.op() {
            Some(op) => What::Submit {
                op,
                flags: e.rwbs.bio_flags(),
                sector: e.sector,
                nr_sectors: e.nr_sectors() as u32,
                plugged: None,
                unplugs: false,
            },
            None => What::Other,
        },
        Action::Complete => command(e).map_or(What::Other, What::Complete),
        Action::GetRequest => What::Grant,
        Action::UnplugTimer => What::Sleep,
        Action::Issue => What::Issue,
        _ => What::Other,
    };
    Step {
        time: e.time,
        pid: e.pid,
        cpu: e.cpu,
        what,
    }
}

/// The command of a D or C event; none if it moved no data of a file system.
pub(super) fn command(e: &Event) -> Option<Dispatched> {
    if e.rwbs.has(Rwbs::PC) {
        return None;
    }
    Some(Dispatched {
        time: e.time,
        op: e.rwbs.op()?,
        sector: e.sector,
        nr_sectors: e.nr_sectors() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `time action pid [rwbs sector nr_sectors]`.
    fn recording(text: &str, with_scheduler: bool) -> Recording {
        let mut recorder = Recorder::default();
        for line in text.lines() {
            let f: Vec<&str> = line.split_whitespace().collect();
            let number = |i: usize| f.get(i).map_or(0, |t| t.parse::<u64>().expect(line));
            let rwbs = match f.get(3) {
                Some(&"RS") => Rwbs::READ.with(Rwbs::SYNC),
                Some(&"W") => Rwbs::WRITE,
                _ => Rwbs::NONE,
            };
            recorder.event(&Event {
                time: Time(number(0)),
                sector: number(4),
                arg: 0,
                bytes: 512 * number(5) as u32,
                pid: number(2) as Pid,
                dev: blklab_types::Dev::default(),
                from_dev: blklab_types::Dev::default(),
                error: 0,
                cpu: 0,
                rwbs,
                action: Action::from_letters(f[1]).expect(line),
            });
        }
        recorder.finish(with_scheduler)
    }

    fn plugged(r: &Recording) -> Vec<Option<bool>> {
        let submits = r.steps.steps.iter().filter_map(|s| match s.what {
            What::Submit { plugged, .. } => Some(plugged),
            _ => None,
        });
        submits.collect()
    }

    fn ends(r: &Recording) -> Vec<u64> {
        let ends = r.steps.steps.iter().filter(|s| s.what == What::FinishPlug);
        ends.map(|s| s.time.0).collect()
    }

    #[test]
    fn a_plug_is_open_from_the_bio_before_p_to_u() {
        let r = recording(
            "0 Q 9 RS 0 8\n1 G 9 RS 0 8\n2 P 9\n3 Q 9 RS 8 8\n4 M 9 RS 8 8\n5 Q 9 RS 80 8\n\
             6 G 9 RS 80 8\n7 U 9\n8 I 9 RS 0 16\n9 D 9 RS 0 16\n10 C 0 RS 0 16\n\
             11 Q 9 RS 800 8\n12 G 9 RS 800 8\n13 I 9 RS 800 8\n14 D 37 RS 800 8",
            true,
        );
        assert_eq!(plugged(&r), [Some(true), None, None, Some(false)]);
        assert_eq!(ends(&r), [7]);
        assert_eq!(r.submitters, [9]);
        assert_eq!(r.dispatches.len(), 2);
        assert_eq!(r.steps.steps.back().unwrap().what, What::Issue);
    }

    #[test]
    fn a_flush_of_a_full_plug_is_no_end_of_it() {
        let r = recording(
            "0 Q 9 W 0 2048\n1 X 9 W 0 1024\n2 G 9 W 0 1024\n3 P 9\n4 G 9 W 1024 1024\n5 U 9\n\
             6 I 9 W 0 1024\n7 D 9 W 0 1024\n8 P 9\n9 UT 9\n10 I 9 W 1024 1024",
            true,
        );
        assert_eq!(plugged(&r), [Some(true)]);
        assert!(ends(&r).is_empty());
        assert_eq!(r.steps.steps[9].what, What::Sleep);
        let mut steps = r.steps;
        steps.pop();
        for granted in [2, 4] {
            assert_eq!(steps.next_grant(9), Some(Time(granted)), "of each part");
            while steps.pop().is_some_and(|s| s.time < Time(granted)) {}
        }
        assert_eq!(steps.next_grant(9), None);
    }

    #[test]
    fn a_bio_without_a_plug_is_submitted_when_the_scheduler_got_it() {
        let text = "0 Q 9 RS 0 8\n1 G 9 RS 0 8\n2 I 9 RS 0 8\n3 D 37 RS 0 8";
        let submits = |text: &str| {
            let r = recording(text, true);
            let is_submit = |s: &&Step| matches!(s.what, What::Submit { .. });
            let found = r.steps.steps.iter().filter(is_submit).map(|s| s.time.0);
            found.collect::<Vec<u64>>()
        };
        assert_eq!(submits(text), [2]);
        // Something happened meanwhile.
        assert_eq!(submits(&text.replace("1 G", "1 C 0 RS 80 8\n1 G")), [0]);
        assert_eq!(submits(&text.replace("2 I", "1 P 9\n2 I")), [0]);
    }

    #[test]
    fn who_was_refused_a_request_does_not_sleep_for_one() {
        let mut recorder = Recorder::default();
        let bio = Event {
            action: Action::Queue,
            rwbs: Rwbs::READ,
            sector: 8,
            bytes: 4096,
            ..Event::message(Time(1), 0, 9, blklab_types::Dev::default())
        };
        for e in [bio, bio.refused(), bio] {
            recorder.event(&e);
        }
        let r = recorder.finish(true);
        let waits = r.steps.steps.iter().map(|s| match s.what {
            What::Submit { flags, .. } => Some(flags.has(BioFlags::NOWAIT)),
            _ => None,
        });
        assert_eq!(waits.collect::<Vec<_>>(), [Some(true), None, Some(false)]);
    }

    #[test]
    fn without_a_scheduler_the_plug_ends_at_the_next_hand_over() {
        let text = "0 Q 9 RS 0 8\n1 G 9 RS 0 8\n2 P 9\n3 Q 9 RS 80 8\n4 G 9 RS 80 8\n\
                    5 D 9 RS 80 8\n6 D 9 RS 0 8\n7 Q 9 RS 0 8\n8 G 9 RS 0 8\n9 D 9 RS 0 8";
        let r = recording(text, false);
        assert_eq!(plugged(&r), [Some(true), None, Some(false)]);
        assert_eq!(ends(&r), [5]);
        assert!(ends(&recording(text, true)).is_empty());
    }

    #[test]
    fn who_is_woken_looks_after_who_was_faster_and_before_the_processor_is_idle() {
        let (now, granted) = (Time(4_000), Time(1_056_000));
        let looks = |text: &str| {
            let steps = recording(text, false).steps;
            steps.looks_in_vain(now, granted)
        };
        let idle = "1050000 C 0 RS 8 8\n1056000 G 8 RS 16 8";
        let taken = "10000 G 9 RS 8 8\n10500 D 9 RS 8 8\n";
        assert_eq!(looks(&format!("{taken}{idle}")), Some(Time(10_501)));
        let other = "20000 Q 7 RS 24 8\n";
        assert_eq!(looks(&format!("{taken}{other}{idle}")), Some(Time(10_501)));
        assert_eq!(looks(idle), Some(Time(1_049_999)));
        // The same interrupt, or a processor that had something to do.
        assert_eq!(looks(&format!("9000 C 0 RS 80 8\n{}", &idle[19..])), None);
        assert_eq!(looks(&idle.replace("C 0", "C 5")), None);
    }
}
