// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace for Perfetto (ui.perfetto.dev, `trace_processor`).
//!
//! ```text
//! process dd 4711
//!   I/O                 WS ███████████████████      Q to C, with its phases below
//! 8,0 sda
//!   in queue   (counter)                            bios between Q and C
//!   in device  (counter)                            requests between D and C
//!   scheduler           WS     ████                 I to D
//!   hardware queue of CPU 0     ◆                   D, R
//!   slot 0              WS         ██████████       D to C
//! ```
//!
//! A flow leads from the Q of each bio over I and D of its request to its C. A trace
//! names neither tags nor hardware queues: a slot is one that was free, and each CPU
//! has one hardware queue, though several CPUs may share it. Beside the tracks stands each event
//! as Perfetto records it, of ftrace.

mod ftrace;
mod lanes;
mod messages;
mod stream;

pub(crate) use stream::is_head;

use crate::people::People;
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_formats::FormatError;
use blklab_trace::{Action, Event, Rwbs, TraceHeader, TraceSink};
use blklab_types::{Dev, Pid, Time};
use lanes::Lanes;
use messages::{
    CounterDescriptor, DebugAnnotation, EventType, ORDER_EXPLICIT, ProcessDescriptor,
    TrackDescriptor, TrackEvent,
};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use stream::Stream;

/// Processes with a track of their own; further ones share that of none.
const PROCESSES_MAX: usize = 8192;

/// Between two recordings of a trace, whose times may begin anew.
const BETWEEN_RECORDINGS_NS: u64 = 1_000_000_000;

/// A track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Process(Pid),
    /// What a process has under way, side by side.
    Bios(Pid, usize),
    Device(Dev),
    InQueue(Dev),
    InDevice(Dev),
    Messages(Dev),
    Scheduler(Dev, usize),
    HardwareQueue(Dev, u16),
    Slot(Dev, usize),
}

/// Writes a trace as Perfetto reads it.
pub struct PerfettoWriter<W: Write> {
    tracker: Lifecycles<Tracks<W>>,
}

/// The tracks, and the file that they are written to.
struct Tracks<W: Write> {
    stream: Stream<W>,
    uuids: HashMap<Track, u64>,
    names: BTreeMap<Dev, String>,
    people: People,
    nr_processes: usize,
    bios: HashMap<Pid, Lanes>,
    schedulers: HashMap<Dev, Lanes>,
    slots: HashMap<Dev, Lanes>,
    depths: HashMap<Dev, [u32; 2]>,
    nr_flows: u64,
    /// Flows of the bios that were given since the last request.
    flows: Vec<u64>,
    offset_ns: u64,
    last_ns: u64,
}

impl<W: Write> PerfettoWriter<W> {
    /// Writes to `inner`, which should be buffered.
    pub fn new(inner: W, header: &TraceHeader) -> PerfettoWriter<W> {
        PerfettoWriter {
            tracker: Lifecycles::new(Tracks {
                stream: Stream::new(inner),
                uuids: HashMap::new(),
                names: header.devices.iter().cloned().collect(),
                people: People::default(),
                nr_processes: 0,
                bios: HashMap::new(),
                schedulers: HashMap::new(),
                slots: HashMap::new(),
                depths: HashMap::new(),
                nr_flows: 0,
                flows: Vec::new(),
                offset_ns: 0,
                last_ns: 0,
            }),
        }
    }

    /// Writes the rest and returns what was written to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(self) -> Result<W, FormatError> {
        let (tracks, _) = self.tracker.finish();
        tracks.stream.finish().map_err(|source| FormatError::Io {
            doing: "write a Perfetto trace".into(),
            source,
        })
    }
}

impl<W: Write> Tracks<W> {
    /// The track's number; its first mention describes it.
    fn uuid(&mut self, track: Track) -> u64 {
        if let Some(uuid) = self.uuids.get(&track) {
            return *uuid;
        }
        let described = self.describe(track);
        let uuid = self.uuids.len() as u64 + 1;
        self.uuids.insert(track, uuid);
        self.stream.track(TrackDescriptor { uuid, ..described });
        uuid
    }

    fn describe(&mut self, track: Track) -> TrackDescriptor {
        let child = |parent, name: String, rank: usize| TrackDescriptor {
            name: Some(name),
            parent_uuid: Some(parent),
            sibling_order_rank: Some(i32::try_from(rank).unwrap_or(i32::MAX)),
            ..TrackDescriptor::default()
        };
        let counter = |track| TrackDescriptor {
            counter: Some(CounterDescriptor {
                unit_name: Some("requests".to_owned()),
            }),
            ..track
        };
        match track {
            Track::Process(pid) => TrackDescriptor {
                process: Some(ProcessDescriptor {
                    pid: i32::try_from(pid).unwrap_or(i32::MAX),
                    process_name: self.people.name_of(pid).map(|comm| comm.to_string()),
                }),
                ..TrackDescriptor::default()
            },
            Track::Bios(pid, lane) => child(self.uuid(Track::Process(pid)), "I/O".into(), lane),
            Track::Device(dev) => TrackDescriptor {
                name: Some(match self.names.get(&dev) {
                    Some(name) => format!("{dev} {name}"),
                    None => dev.to_string(),
                }),
                child_ordering: Some(ORDER_EXPLICIT),
                ..TrackDescriptor::default()
            },
            Track::InQueue(dev) => {
                let device = self.uuid(Track::Device(dev));
                counter(child(device, "in queue (Q to C)".into(), 0))
            }
            Track::InDevice(dev) => {
                let device = self.uuid(Track::Device(dev));
                counter(child(device, "in device (D to C)".into(), 1))
            }
            Track::Messages(dev) => child(self.uuid(Track::Device(dev)), "messages".into(), 2),
            Track::Scheduler(dev, lane) => {
                let device = self.uuid(Track::Device(dev));
                child(device, "scheduler".into(), 3 + lane)
            }
            Track::HardwareQueue(dev, cpu) => {
                let device = self.uuid(Track::Device(dev));
                let name = format!("hardware queue of CPU {cpu}");
                child(device, name, (1 << 24) + usize::from(cpu))
            }
            Track::Slot(dev, slot) => {
                let device = self.uuid(Track::Device(dev));
                child(device, format!("slot {slot}"), (1 << 25) + slot)
            }
        }
    }

    fn time(&mut self, time: Time) -> u64 {
        let ns = time.0.saturating_add(self.offset_ns);
        self.last_ns = self.last_ns.max(ns);
        ns
    }

    fn begin(&mut self, time: Time, event: TrackEvent) {
        let ns = self.time(time);
        self.stream.event(ns, EventType::SliceBegin, event);
    }

    fn end(&mut self, time: Time, track_uuid: u64) {
        let ns = self.time(time);
        let event = TrackEvent {
            track_uuid,
            ..TrackEvent::default()
        };
        self.stream.event(ns, EventType::SliceEnd, event);
    }

    fn instant(&mut self, time: Time, event: TrackEvent) {
        let ns = self.time(time);
        self.stream.event(ns, EventType::Instant, event);
    }

    fn count(&mut self, time: Time, track: Track, value: u32) {
        let event = TrackEvent {
            track_uuid: self.uuid(track),
            counter_value: Some(value.into()),
            ..TrackEvent::default()
        };
        let ns = self.time(time);
        self.stream.event(ns, EventType::Counter, event);
    }

    /// The process whose track shows what `pid` does.
    fn shown_as(&mut self, pid: Pid) -> Pid {
        if self.uuids.contains_key(&Track::Process(pid)) {
            return pid;
        }
        if self.nr_processes == PROCESSES_MAX {
            return 0;
        }
        self.nr_processes += 1;
        pid
    }

    /// What a process or the machine does at a moment that belongs to no request.
    fn moment(&mut self, event: &Event) {
        let letters = event.action.letters();
        let (track, name) = match event.action {
            Action::Issue | Action::Requeue => {
                let name = format!("{letters} {}", event.rwbs);
                (Track::HardwareQueue(event.dev, event.cpu), name)
            }
            Action::Plug => (Track::Process(self.shown_as(event.pid)), letters.to_owned()),
            Action::Unplug | Action::UnplugTimer => {
                let name = format!("{letters} {}", event.arg);
                (Track::Process(self.shown_as(event.pid)), name)
            }
            _ => return,
        };
        let track_uuid = self.uuid(track);
        let debug_annotations = match event.action {
            Action::Issue | Action::Requeue => place(event.dev, event.sector, event.bytes.into()),
            _ => Vec::new(),
        };
        self.instant(
            event.time,
            TrackEvent {
                track_uuid,
                name: Some(name),
                categories: vec!["event".to_owned()],
                debug_annotations,
                ..TrackEvent::default()
            },
        );
    }

    /// A slice, with a name and a category.
    fn slice(&mut self, track_uuid: u64, name: &str, category: &str) -> TrackEvent {
        TrackEvent {
            track_uuid,
            name: Some(name.to_owned()),
            categories: vec![category.to_owned()],
            ..TrackEvent::default()
        }
    }

    /// The phases of a bio, one after the other, within its slice.
    fn phases(&mut self, track_uuid: u64, bio: &BioLife, complete: Time) {
        let merge = bio.merge.map(|(time, _)| time);
        let ends = [
            ("Q2G", bio.get),
            ("G2I", bio.insert),
            ("Q2M", merge),
            (if merge.is_some() { "M2D" } else { "I2D" }, bio.issue),
            ("D2C", bio.issue.map(|_| complete)),
        ];
        let mut from = bio.queue;
        for (name, end) in ends {
            // Of a damaged trace, times may go back.
            let Some(end) = end.filter(|end| (from..=complete).contains(end)) else {
                continue;
            };
            if end > from {
                let slice = self.slice(track_uuid, name, "phase");
                self.begin(from, slice);
                self.end(end, track_uuid);
            }
            from = end;
        }
    }
}

/// Where an I/O lies.
fn place(dev: Dev, sector: u64, bytes: u64) -> Vec<DebugAnnotation> {
    let device = DebugAnnotation {
        name: "device".to_owned(),
        string_value: Some(dev.to_string()),
        ..DebugAnnotation::default()
    };
    let number = |name: &str, value| DebugAnnotation {
        name: name.to_owned(),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    };
    vec![device, number("sector", sector), number("bytes", bytes)]
}

impl<W: Write> LifeSink for Tracks<W> {
    fn bio(&mut self, bio: &BioLife) {
        let pid = self.shown_as(bio.pid);
        let name = bio.rwbs.to_string();
        let debug_annotations = place(bio.dev, bio.sector, bio.bytes.into());
        let Some(complete) = bio.complete.filter(|c| *c >= bio.queue) else {
            let track_uuid = self.uuid(Track::Process(pid));
            let event = self.slice(track_uuid, &format!("{name} without end"), "bio");
            return self.instant(
                bio.queue,
                TrackEvent {
                    debug_annotations,
                    ..event
                },
            );
        };
        let lane = self.bios.entry(pid).or_default().take(bio.queue, complete);
        let track_uuid = self.uuid(Track::Bios(pid, lane));
        self.nr_flows += 1;
        let flow = self.nr_flows;
        let slice = TrackEvent {
            debug_annotations,
            flow_ids: vec![flow],
            ..self.slice(track_uuid, &name, "bio")
        };
        self.begin(bio.queue, slice);
        self.phases(track_uuid, bio, complete);
        let end = TrackEvent {
            terminating_flow_ids: vec![flow],
            ..self.slice(track_uuid, "C", "event")
        };
        self.instant(complete, end);
        self.end(complete, track_uuid);
        if bio.request.is_some() {
            self.flows.push(flow);
        }
    }

    fn request(&mut self, request: &RequestLife) {
        let flow_ids = std::mem::take(&mut self.flows);
        let name = request.rwbs.to_string();
        let Some(issue) = request.issue else { return };
        if let Some(insert) = request.insert.filter(|insert| *insert <= issue) {
            let lanes = self.schedulers.entry(request.dev).or_default();
            let lane = lanes.take(insert, issue);
            let track_uuid = self.uuid(Track::Scheduler(request.dev, lane));
            let slice = TrackEvent {
                debug_annotations: place(request.dev, request.sector, request.bytes),
                flow_ids: flow_ids.clone(),
                ..self.slice(track_uuid, &name, "scheduler")
            };
            self.begin(insert, slice);
            self.end(issue, track_uuid);
        }
        let Some(complete) = request.complete.filter(|c| *c >= issue) else {
            return;
        };
        let lanes = self.slots.entry(request.dev).or_default();
        let slot = lanes.take(issue, complete);
        let track_uuid = self.uuid(Track::Slot(request.dev, slot));
        let slice = TrackEvent {
            debug_annotations: place(request.dev, request.sector, request.bytes),
            flow_ids,
            ..self.slice(track_uuid, &name, "device")
        };
        self.begin(issue, slice);
        self.end(complete, track_uuid);
    }

    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let new = [nr_bios, nr_issued];
        let before = self.depths.insert(dev, new);
        for (idx, track) in [Track::InQueue(dev), Track::InDevice(dev)]
            .into_iter()
            .enumerate()
        {
            if before.is_none_or(|before| before[idx] != new[idx]) {
                self.count(time, track, new[idx]);
            }
        }
    }
}

impl<W: Write> TraceSink for PerfettoWriter<W> {
    fn event(&mut self, event: &Event) {
        let tracks = self.tracker.sink();
        let ns = tracks.time(event.time);
        let name = tracks.people.name_of(event.pid);
        let bundle = ftrace::bundle(event, ns, name.as_deref().unwrap_or_default());
        tracks.stream.ftrace(bundle);
        if !event.rwbs.has(Rwbs::PC) {
            tracks.moment(event);
        }
        self.tracker.event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        let tracks = self.tracker.sink();
        let ns = tracks.time(event.time);
        tracks.stream.ftrace(ftrace::print(event, ns, text));
        let track_uuid = tracks.uuid(Track::Messages(event.dev));
        let message = tracks.slice(track_uuid, text, "message");
        tracks.instant(event.time, message);
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.tracker.sink().people.name(pid, comm);
    }

    fn new_recording(&mut self) {
        self.tracker.new_recording();
        let tracks = self.tracker.sink();
        tracks.offset_ns = tracks.last_ns.saturating_add(BETWEEN_RECORDINGS_NS);
        // Lanes are free, and all depths begin anew.
        tracks.bios.clear();
        tracks.schedulers.clear();
        tracks.slots.clear();
    }
}

#[cfg(test)]
mod tests;
