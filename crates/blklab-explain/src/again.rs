// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace fed into the model of its machine, and what the model says.

use crate::account::{Account, Known, explained};
use crate::agree::{Compare, Matched};
use crate::decisions::{DecisionLog, Decisions};
use crate::processes::Processes;
use crate::reason::{Cause, Words};
use crate::report::{ReEnacted, Tried};
use crate::stack::Stack;
use crate::survey::{DiskSurvey, Survey};
use crate::vet::{Vet, Vetted};
use blklab_analysis::names::Names;
use blklab_sim::replay::{Dispatched, HandedOver, Process, Replay};
use blklab_trace::truth::{Kind, NO_REQUEST, Truth, TruthSink};
use blklab_trace::{Action, Event, Label, Rwbs, TraceSink, WaitLabels, Waited};
use blklab_types::{Dev, Error, Op, Pid, Time};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Processes that may submit: a task is kept for each.
const TASKS_MAX: usize = 1 << 20;

/// Messages of the scheduler that are kept for requests that wait.
const NOTES_MAX: usize = 4096;

/// Messages that are shown with a request.
const NOTES_SHOWN: usize = 6;

/// What is wanted of a re-enactment.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Sync writes are taken for direct ones, which a trace does not show.
    pub direct: bool,
    /// So many of the requests that waited longest.
    pub worst: usize,
    /// Requests by the number of their D.
    pub wanted: BTreeSet<u64>,
    /// What no event shows of processes.
    pub processes: Processes,
}

/// What the model says of requests in its queue, by slot.
#[derive(Debug, Default)]
struct Said {
    slots: Vec<OfSlot>,
    /// Messages about queues that were merged or raised: when, and what.
    notes: VecDeque<(Time, String)>,
}

#[derive(Debug, Default)]
struct OfSlot {
    issued: Option<Time>,
    inserted: Option<Time>,
    labels: Vec<Label>,
}

impl Said {
    fn slot(&mut self, slot: u32) -> &mut OfSlot {
        let at = slot as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, OfSlot::default);
        }
        &mut self.slots[at]
    }
}

/// Writes down what the model says.
struct Listener<F> {
    said: Rc<RefCell<Said>>,
    decisions: Rc<RefCell<DecisionLog>>,
    labels: WaitLabels<F>,
}

fn listener(said: &Rc<RefCell<Said>>, decisions: &Rc<RefCell<DecisionLog>>) -> Box<dyn TruthSink> {
    let of_labels = Rc::clone(said);
    let labels = WaitLabels::new(move |w: &Waited<'_>| {
        let mut said = of_labels.borrow_mut();
        let slot = said.slot(w.request.request);
        slot.inserted = Some(w.inserted);
        slot.labels.extend_from_slice(w.labels);
    });
    Box::new(Listener {
        said: Rc::clone(said),
        decisions: Rc::clone(decisions),
        labels,
    })
}

impl<F: FnMut(&Waited<'_>)> TruthSink for Listener<F> {
    fn truth(&mut self, record: &Truth, text: &str) {
        match record.kind {
            Kind::Issue if record.request != NO_REQUEST => {
                self.said.borrow_mut().slot(record.request).issued = Some(record.time);
            }
            Kind::Message if is_of_state(text) => {
                let mut said = self.said.borrow_mut();
                said.notes.push_back((record.time, text.trim().to_owned()));
                if said.notes.len() > NOTES_MAX {
                    said.notes.pop_front();
                }
            }
            _ => {}
        }
        self.decisions.borrow_mut().truth(record);
        self.labels.truth(record, text);
    }
}

/// Whether a message says what a scheduler made of a queue: joined it, raised its
/// weight.
fn is_of_state(text: &str) -> bool {
    let is_depth = text.contains("limit_depth");
    !is_depth && (text.contains("merg") || text.contains("wrais") || text.contains("raising"))
}

/// A dispatch of the model that waits for its recorded counterpart.
struct Pending {
    of_model: HandedOver,
    causes: Vec<(Cause, Pid, u64)>,
}

/// Re-enacts a trace: a sink for all of its events.
pub struct ReEnactment {
    stack: Stack,
    options: Options,
    dev: Dev,
    /// From recorded times to those of the model, ns.
    ahead_ns: i128,
    start: Time,
    replay: Replay<'static>,
    vet: Vet,
    left_over: Vec<Event>,
    nr_at_device: usize,
    /// Recorded commands that the model has not come to yet.
    recorded: VecDeque<(u64, Dispatched)>,
    began: bool,
    said: Rc<RefCell<Said>>,
    decisions: Rc<RefCell<DecisionLog>>,
    /// Emptied and kept for its capacity.
    handed_over: Vec<HandedOver>,
    compare: Compare<Pending>,
    account: Account,
    wanted: Vec<Known>,
    /// Event numbers start from 1.
    nr_events: u64,
    names: Names,
    /// The processes that submit, and what is known of them.
    known: Rc<RefCell<BTreeMap<Pid, Process>>>,
    full: bool,
}

impl ReEnactment {
    /// Ready for the first event of a trace that a survey has seen whole.
    ///
    /// # Errors
    /// If the stack is not possible: in a clause.
    pub fn new(
        stack: Stack,
        survey: &Survey,
        (dev, disk): (Dev, &DiskSurvey),
        options: Options,
    ) -> Result<ReEnactment, Error> {
        let said = Rc::new(RefCell::new(Said::default()));
        // The trace's start on the model's clock.
        let ahead_ns = clock(&stack, survey, disk);
        let began_ns = i128::from(survey.start().0) + ahead_ns;
        let began = Time(u64::try_from(began_ns).unwrap_or_default());
        let decisions = Rc::new(RefCell::new(DecisionLog::new(began)));
        let known = Rc::new(RefCell::new(BTreeMap::new()));
        let shared = Rc::clone(&known);
        let direct = options.direct;
        let known_of = move |pid: Pid| Process {
            direct,
            ..shared.borrow().get(&pid).copied().unwrap_or_default()
        };
        let replay = Replay::new(
            &stack.experiment,
            stack.schedulers,
            known_of,
            Some(listener(&said, &decisions)),
        );
        let mut replay = replay?;
        if !stack.begins_idle {
            replay.find_before(&stack.experiment, stack.schedulers);
        }
        let mut vet = Vet::new(dev);
        for e in &disk.left_over[..disk.nr_at_device] {
            vet.is_at_device(e);
        }
        Ok(ReEnactment {
            ahead_ns,
            start: survey.start(),
            account: Account::new(options.worst),
            stack,
            options,
            dev,
            replay,
            vet,
            left_over: disk.left_over.clone(),
            nr_at_device: disk.nr_at_device,
            recorded: VecDeque::new(),
            began: false,
            said,
            decisions,
            handed_over: Vec::new(),
            compare: Compare::default(),
            wanted: Vec::new(),
            nr_events: 0,
            names: Names::default(),
            known,
            full: false,
        })
    }

    /// A recorded time on the model's clock.
    fn time(&self, recorded: Time) -> Time {
        let ns = i128::from(recorded.0) + self.ahead_ns;
        Time(u64::try_from(ns).unwrap_or_default())
    }

    /// What was queued before the trace began comes first.
    fn begin(&mut self) {
        let time = self.time(self.start);
        let left_over = self.left_over.clone();
        let mut feed = |left: &Event, action, rwbs| {
            self.replay.event(&Event {
                time,
                action,
                rwbs,
                pid: 0,
                ..*left
            });
        };
        for left in &left_over {
            feed(left, Action::Queue, left.rwbs);
            // Where plugs belong to the queue, this one has none.
            feed(left, Action::Unplug, Rwbs::NONE);
        }
        for left in &left_over[..self.nr_at_device] {
            feed(left, Action::Issue, left.rwbs);
        }
        self.left_over.truncate(self.nr_at_device);
    }

    /// Whether the device had it when the trace began: no D of it is recorded.
    fn had(&mut self, h: &HandedOver) -> bool {
        let c = &h.command;
        let place = self.left_over.iter().position(|e| {
            (e.rwbs.op(), e.sector, e.nr_sectors())
                == (Some(c.op), c.sector, u64::from(c.nr_sectors))
        });
        let place = place.filter(|_| h.queued == Some(self.time(self.start)));
        place.map(|i| self.left_over.swap_remove(i)).is_some()
    }

    fn feed(&mut self, e: &Event) {
        if e.action == Action::Queue {
            self.meet(e.pid);
        }
        if self.full {
            return;
        }
        self.replay.event(&Event {
            time: self.time(e.time),
            ..*e
        });
        self.collect();
    }

    /// A process submits.
    fn meet(&mut self, pid: Pid) {
        let mut known = self.known.borrow_mut();
        self.full |= known.len() >= TASKS_MAX && !known.contains_key(&pid);
        known.entry(pid).or_insert_with(|| {
            let (e, processes) = (&self.stack.experiment, &self.options.processes);
            Process {
                last_bio: processes.last_bio(pid).map(|time| self.time(time)),
                ..processes.process(e, pid)
            }
        });
    }

    /// Compares what the recorded device got up to a time of the model.
    fn follow(&mut self, now: Time) {
        while let Some((event, command)) = self.next_recorded(now) {
            if let Some((matched, p)) = self.compare.recorded(event, command) {
                self.explain(&matched, p);
            }
        }
    }

    fn next_recorded(&mut self, now: Time) -> Option<(u64, Dispatched)> {
        let (_, command) = self.recorded.front()?;
        if command.time > now {
            return None;
        }
        self.recorded.pop_front()
    }

    /// Takes what the model's device got, and compares it.
    fn collect(&mut self) {
        let mut handed_over = std::mem::take(&mut self.handed_over);
        handed_over.extend(self.replay.handed_over());
        self.follow(self.replay.now());
        for h in handed_over.drain(..) {
            if !self.left_over.is_empty() && self.had(&h) {
                self.pending(h);
                continue;
            }
            let (command, pending) = self.pending(h);
            let since = pending.of_model.queued.unwrap_or(command.time);
            if let Some((matched, pending)) = self.compare.model(command, since, pending) {
                self.explain(&matched, pending);
            }
        }
        self.handed_over = handed_over;
    }

    fn pending(&mut self, mut h: HandedOver) -> (Dispatched, Pending) {
        let mut said = self.said.borrow_mut();
        let slot = said.slot(h.request);
        let handed_over = h.command.time;
        let issued = slot.issued.take().unwrap_or(handed_over);
        let mut causes = Vec::new();
        let mut push = |cause, pid, ns: u64| {
            if ns > 0 {
                causes.push((cause, pid, ns));
            }
        };
        if let Some(slept) = h.slept {
            push(
                Cause::of_sleep(slept.cause),
                0,
                slept.to.since(slept.from).0,
            );
        }
        let inserted = slot.inserted.take().unwrap_or(issued);
        let granted = h.granted.max(h.queued.unwrap_or(h.granted));
        let held = if h.is_ordered {
            Cause::Flush
        } else {
            Cause::TaskPlug
        };
        push(held, 0, inserted.0.saturating_sub(granted.0));
        // What is left of the way to the driver when it was shown the request.
        let mut left = issued.0.saturating_sub(inserted.0);
        for label in slot.labels.drain(..) {
            let before = label.span.0.min(left);
            left -= before;
            push(Cause::Decided(label.why), label.pid, before);
        }
        push(Cause::Driver, 0, handed_over.0.saturating_sub(issued.0));
        h.command.time = issued;
        let pending = Pending {
            of_model: h,
            causes,
        };
        (h.command, pending)
    }

    fn explain(&mut self, m: &Matched, p: Pending) {
        let h = &p.of_model;
        let Some(queued) = h.queued else {
            return;
        };
        if !m.agrees || !self.compare.agreed_since(queued) {
            return;
        }
        let wait_ns = m.time.0.saturating_sub(queued.0);
        let is_worst = self.account.count((h.pid, h.is_sync), wait_ns, &p.causes);
        let is_wanted = self.options.wanted.contains(&m.event);
        if !is_worst && !is_wanted {
            return;
        }
        let known = Known {
            event: m.event,
            time_ns: m.time.0.saturating_sub(self.time(self.start).0),
            pid: h.pid,
            is_sync: h.is_sync,
            rwbs: letters(h),
            sector: h.command.sector,
            sectors: h.command.nr_sectors,
            wait_ns,
            causes: p.causes,
            notes: notes(&self.said.borrow().notes, queued, h.command.time),
        };
        if is_wanted {
            self.wanted.push(known.clone());
        }
        if is_worst {
            self.account.keep(known);
        }
    }

    /// What came of it.
    ///
    /// # Errors
    /// If the trace has more processes than can be followed: in a clause.
    pub fn finish(mut self) -> Result<ReEnacted, Error> {
        if self.full {
            return Err(Error::new(format!(
                "more than {TASKS_MAX} processes submit in it"
            )));
        }
        while self.replay.step() {
            self.collect();
        }
        self.follow(Time::MAX);
        let e = &self.stack.experiment;
        let catalogue = blklab_sim::catalogue_with(self.stack.schedulers);
        let words = Words::new(e, &catalogue, self.replay.depth_of_requests());
        let agreement = self.compare.finish();
        let is_good = agreement.is_good();
        let nr_explained = if is_good {
            self.account.nr_explained
        } else {
            0
        };
        let (waiting, worst) = if is_good {
            self.account.finish(&words, &self.names)
        } else {
            (Vec::new(), Vec::new())
        };
        let wanted = self.wanted.into_iter().filter(|_| is_good);
        let mut assumed = self.stack.assumed;
        if self.options.direct {
            assumed.push("sync writes are direct ones".to_owned());
        }
        if let Some(before) = self.replay.before() {
            assumed.push(format!(
                "{before} (no trace shows it, and so it agrees longest)"
            ));
        }
        let decisions = self.decisions.borrow_mut().take();
        Ok(ReEnacted {
            decisions: if is_good {
                decisions
            } else {
                Decisions::default()
            },
            dev: self.dev,
            kernel: e.kernel.to_string(),
            scheduler: e.scheduler.clone(),
            tried: Vec::new(),
            assumed,
            is_good,
            nr_explained,
            waiting,
            worst,
            wanted: wanted.map(|k| explained(k, &words, &self.names)).collect(),
            agreement,
        })
    }
}

impl ReEnacted {
    /// How it fits: for the list of those that were tried.
    pub fn as_tried(&self) -> Tried {
        Tried {
            scheduler: self.scheduler.clone(),
            order_share: self.agreement.order_share(),
            time_share: self.agreement.time_share(),
        }
    }

    /// The better it fits the larger.
    pub fn fit(&self) -> f64 {
        self.agreement.order_share() + self.agreement.time_share()
    }
}

impl TraceSink for ReEnactment {
    fn event(&mut self, event: &Event) {
        self.nr_events += 1;
        if !std::mem::replace(&mut self.began, true) {
            self.begin();
        }
        match self.vet.event(event) {
            Vetted::Dropped => {}
            Vetted::Passed(e) => self.feed(&e),
            Vetted::Issued(e) => {
                let command = Dispatched {
                    time: self.time(e.time),
                    op: e.rwbs.op().unwrap_or_default(),
                    sector: e.sector,
                    nr_sectors: e.nr_sectors() as u32,
                };
                self.recorded.push_back((self.nr_events, command));
                self.feed(&e);
            }
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.set(pid, comm);
    }
}

/// How far the model's clock is ahead of the recorded one, ns. It begins with the
/// trace; where plug timers show the phase of the ticks, they come with the model's.
fn clock(stack: &Stack, survey: &Survey, disk: &DiskSurvey) -> i128 {
    if stack.is_own_run {
        return 0;
    }
    let start = survey.start().0;
    let tick = 1_000_000_000 / u64::from(stack.experiment.hz.0);
    // Later kernels write UT where a task goes to sleep with a plug.
    let has_timer = stack.experiment.kernel.has_single_queue();
    let phase = disk.unplug_timer.filter(|_| has_timer).map_or(0, |t| {
        let since = t.0.saturating_sub(start) % tick;
        (tick - since) % tick
    });
    i128::from(phase) - i128::from(start)
}

/// Direction, with S where somebody waits for a write.
fn letters(h: &HandedOver) -> String {
    let rwbs = Rwbs::of_op(h.command.op);
    let is_sync_write = h.is_sync && h.command.op == Op::Write;
    let rwbs = if is_sync_write {
        rwbs.with(Rwbs::SYNC)
    } else {
        rwbs
    };
    rwbs.to_string()
}

/// Messages between two times, the last ones.
fn notes(all: &VecDeque<(Time, String)>, from: Time, to: Time) -> Vec<String> {
    let newest = all.iter().rev().skip_while(|(time, _)| *time > to);
    let within = newest.take_while(|(time, _)| *time >= from);
    let mut notes: Vec<String> = within.take(NOTES_SHOWN).map(|(_, t)| t.clone()).collect();
    notes.reverse();
    notes
}
