// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to [`TraceStats`], in one pass.
//!
//! Phases come from the lives of bios; counts, seeks and plugging from the
//! events themselves. Memory is bound by I/O in flight, devices and processes,
//! of which there are limits: a device takes some 20 KB, a process less than 2 KB,
//! more where there are many different latencies.

use crate::distribution::Distribution;
use crate::lifecycle::{LifeSink, Lifecycles};
use crate::lives::Lives;
use crate::seeks::Seeks;
use crate::stats::{
    DeviceStats, Directions, OtherDevices, Overflows, Phases, Plugs, TraceStats, UnmatchedStats,
};
use crate::tally::{add_phases, direction};
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Pid, Time};

/// Computes the statistics of the trace it is given. `S` sees the same lives.
#[derive(Debug)]
pub struct StatsCollector<S = ()> {
    tracker: Lifecycles<(Lives, S)>,
    nr_events: u64,
    nr_messages: u64,
    /// Times of the earliest and the latest event.
    span: Option<(Time, Time)>,
    last_queue: Option<Time>,
    /// Of all devices, since there are several: before it is the only one's.
    q2q: Distribution,
    /// In the order of the tracker.
    devices: Vec<DeviceEvents>,
    other_devices: Option<OtherDevices>,
    overflows: Overflows,
}

/// What is counted by event, of a device.
#[derive(Debug)]
struct DeviceEvents {
    dev: Dev,
    last_queue: Option<Time>,
    q2q: Distribution,
    last_issue: Option<Time>,
    d2d: Distribution,
    queued: Directions,
    nr_splits: u64,
    nr_issued: u64,
    nr_requeues: u64,
    completed_sectors: Distribution,
    q2q_seeks: Seeks,
    d2d_seeks: Seeks,
    plugs: Plugs,
    plugged_since: Option<Time>,
    /// Bios between Q and D, as far as counting shows it.
    waiting: u64,
    waiting_sum: u64,
}

impl DeviceEvents {
    fn new(dev: Dev) -> DeviceEvents {
        DeviceEvents {
            dev,
            last_queue: None,
            q2q: Distribution::default(),
            last_issue: None,
            d2d: Distribution::default(),
            queued: Directions::default(),
            nr_splits: 0,
            nr_issued: 0,
            nr_requeues: 0,
            completed_sectors: Distribution::default(),
            q2q_seeks: Seeks::default(),
            d2d_seeks: Seeks::default(),
            plugs: Plugs::default(),
            plugged_since: None,
            waiting: 0,
            waiting_sum: 0,
        }
    }

    #[inline]
    fn event(&mut self, e: &Event, overflows: &mut Overflows) {
        let (start, end) = (e.sector, e.end_sector());
        let has_data = e.bytes > 0;
        match e.action {
            Action::Queue => {
                if let Some(last) = self.last_queue.replace(e.time) {
                    self.q2q.add(e.time.since(last).ns());
                }
                direction(&mut self.queued, e.rwbs, e.bytes).add(e.bytes);
                if has_data {
                    self.q2q_seeks.add(start, end);
                }
                overflows.add(&mut self.waiting_sum, self.waiting);
                self.waiting += 1;
            }
            Action::BackMerge | Action::FrontMerge => {
                self.waiting = self.waiting.saturating_sub(1);
            }
            Action::Split => self.nr_splits += 1,
            Action::Issue if has_data => {
                self.nr_issued += 1;
                if let Some(last) = self.last_issue.replace(e.time) {
                    self.d2d.add(e.time.since(last).ns());
                }
                self.d2d_seeks.add(start, end);
                self.waiting = self.waiting.saturating_sub(1);
            }
            Action::Requeue => self.nr_requeues += 1,
            Action::Complete if has_data => self.completed_sectors.add(e.nr_sectors()),
            Action::Plug => {
                self.plugged_since.get_or_insert(e.time);
            }
            Action::Unplug | Action::UnplugTimer => self.unplug(e, overflows),
            _ => {}
        }
    }

    /// What lies between two recordings is no time between two events.
    fn new_recording(&mut self) {
        self.last_queue = None;
        self.last_issue = None;
        self.plugged_since = None;
        self.waiting = 0;
    }

    fn unplug(&mut self, e: &Event, overflows: &mut Overflows) {
        let Some(since) = self.plugged_since.take() else {
            return;
        };
        overflows.add(&mut self.plugs.plugged_ns, e.time.since(since).ns());
        if e.action == Action::Unplug {
            self.plugs.nr_unplugs += 1;
            overflows.add(&mut self.plugs.nr_requests, e.arg);
        } else {
            self.plugs.nr_timer_unplugs += 1;
            overflows.add(&mut self.plugs.nr_timer_requests, e.arg);
        }
    }
}

impl<S: LifeSink + Default> Default for StatsCollector<S> {
    fn default() -> StatsCollector<S> {
        StatsCollector::with(S::default())
    }
}

impl StatsCollector {
    /// For one trace.
    pub fn new() -> StatsCollector {
        StatsCollector::with(())
    }
}

impl<S: LifeSink> StatsCollector<S> {
    /// For one trace, whose lives `also` is given too.
    pub fn with(also: S) -> StatsCollector<S> {
        StatsCollector {
            tracker: Lifecycles::new((Lives::default(), also)),
            nr_events: 0,
            nr_messages: 0,
            span: None,
            last_queue: None,
            q2q: Distribution::default(),
            devices: Vec::new(),
            other_devices: None,
            overflows: Overflows::default(),
        }
    }

    /// The other sink of lives.
    pub fn also(&mut self) -> &mut S {
        &mut self.tracker.sink().1
    }

    fn extend_span(&mut self, time: Time) {
        let (start, end) = self.span.get_or_insert((time, time));
        // Records may be out of order.
        *start = (*start).min(time);
        *end = (*end).max(time);
    }

    /// Counts an event of the device at `place`.
    #[inline]
    fn of_device(&mut self, place: usize, e: &Event) {
        if place == self.devices.len() {
            if let [only] = &self.devices[..] {
                self.q2q = only.q2q.clone();
            }
            self.devices.push(DeviceEvents::new(e.dev));
        }
        self.devices[place].event(e, &mut self.overflows);
    }

    /// A bio is queued: counts what is of its process, and of all devices.
    fn queued(&mut self, e: &Event) {
        let last = self.last_queue.replace(e.time);
        if let Some(last) = last.filter(|_| self.devices.len() > 1) {
            self.q2q.add(e.time.since(last).ns());
        }
        let lives = &mut self.tracker.sink().0;
        let place = lives.place(e.pid);
        let process = lives.process(place);
        let last = process.last_queue.replace(e.time);
        if let Some(last) = last.filter(|_| place.is_some()) {
            process.q2q.add(e.time.since(last).ns());
        }
        direction(&mut process.queued, e.rwbs, e.bytes).add(e.bytes);
    }

    #[cold]
    fn of_other_device(&mut self, e: &Event) {
        let others = self.other_devices.get_or_insert_default();
        others.nr_events += 1;
        match e.action {
            Action::Queue => direction(&mut others.queued, e.rwbs, e.bytes).add(e.bytes),
            Action::Issue if e.bytes > 0 => others.nr_issued += 1,
            Action::Complete if e.bytes > 0 => others.nr_completed += 1,
            _ => {}
        }
    }

    /// The statistics of all that was given.
    pub fn finish(self) -> TraceStats {
        self.finish_with().0
    }

    /// The same, and the other sink of lives, which has been told of all of them.
    pub fn finish_with(self) -> (TraceStats, S) {
        let (start, end) = self.span.unwrap_or_default();
        let ((mut lives, also), unmatched) = self.tracker.finish();
        lives.sum_up();
        let mut all = Phases {
            q2q: match &self.devices[..] {
                [only] => only.q2q.clone(),
                _ => self.q2q,
            },
            ..Phases::default()
        };
        let devices: Vec<DeviceStats> = self
            .devices
            .into_iter()
            .map(|events| {
                let device = finish_device(events, &mut lives, start);
                add_phases(&mut all, &device.phases);
                device
            })
            .collect();
        let nr_overflows = self.overflows.0 + lives.overflows.0;
        let (processes, other_processes) = lives.into_processes();
        let events = Action::ALL.map(|a| (a.letters(), unmatched.events(a)));
        let stats = TraceStats {
            nr_events: self.nr_events,
            nr_messages: self.nr_messages,
            start_ns: start.ns(),
            end_ns: end.ns(),
            all,
            devices,
            processes,
            other_processes,
            other_devices: self.other_devices,
            nr_overflows,
            unmatched: UnmatchedStats {
                events: events.into_iter().filter(|(_, n)| *n > 0).collect(),
                unfinished_bios: unmatched.unfinished_bios,
                unfinished_requests: unmatched.unfinished_requests,
                passed_through: unmatched.passed_through,
            },
        };
        (stats, also)
    }
}

/// Joins what was counted by event and by life.
fn finish_device(events: DeviceEvents, lives: &mut Lives, start: Time) -> DeviceStats {
    let mut stats = lives.take_device(events.dev, start);
    stats.phases.q2q = events.q2q;
    let nr_queued = events.queued.total().count;
    DeviceStats {
        dev: events.dev,
        queued: events.queued,
        nr_splits: events.nr_splits,
        nr_issued: events.nr_issued,
        nr_requeues: events.nr_requeues,
        completed_sectors: events.completed_sectors,
        d2d: events.d2d,
        q2q_seeks: events.q2q_seeks,
        d2d_seeks: events.d2d_seeks,
        plugs: events.plugs,
        waiting_at_q: match nr_queued {
            0 => 0.0,
            n => events.waiting_sum as f64 / n as f64,
        },
        ..stats
    }
}

impl<S: LifeSink> StatsCollector<S> {
    #[inline(always)]
    fn count(&mut self, event: &Event) {
        if event.action == Action::Message {
            return self.message(event, "");
        }
        self.nr_events += 1;
        self.extend_span(event.time);
        if event.rwbs.has(Rwbs::PC) {
            return self.tracker.passed_through(event);
        }
        let place = self.tracker.place(event.dev);
        match place {
            Some(place) => self.of_device(place, event),
            None => self.of_other_device(event),
        }
        if event.action == Action::Queue {
            self.queued(event);
        }
        self.tracker.event_at(place, event);
    }
}

impl<S: LifeSink> TraceSink for StatsCollector<S> {
    fn event(&mut self, event: &Event) {
        self.count(event);
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.count(event));
    }

    fn message(&mut self, event: &Event, _: &str) {
        self.nr_messages += 1;
        self.extend_span(event.time);
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.tracker.sink().0.name(pid, comm);
    }

    fn new_recording(&mut self) {
        self.last_queue = None;
        for device in &mut self.devices {
            device.new_recording();
        }
        let lives = &mut self.tracker.sink().0;
        lives.new_recording();
        self.tracker.new_recording();
    }
}
