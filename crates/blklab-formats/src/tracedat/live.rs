// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of pages while they are recorded, in order of time.

use super::container::Container;
use super::formats::EventFormat;
use super::pages::{Next, OnePage};
use super::read::Fields;
use crate::names::{self, Comm, Names};
use crate::plausible;
use crate::tracepoints::Kinds;
use blklab_trace::{Event, TraceSink};
use blklab_types::Time;
use std::collections::HashMap;

/// Decodes pages of block events as they come.
#[derive(Debug)]
pub struct Live {
    container: Container,
    formats: HashMap<u16, EventFormat>,
    kinds: Kinds,
    names: Names,
    held: Vec<(Event, Option<Comm>)>,
    /// Events were lost: nothing that began before is to be taken for what ends now.
    has_gap: bool,
}

impl Live {
    /// For pages of this machine, with the formats of the events of the block layer.
    pub fn new<'f>(page_bytes: u32, formats: impl IntoIterator<Item = &'f str>) -> Live {
        let formats = formats.into_iter().filter_map(EventFormat::parse);
        Live {
            container: Container::of_this_machine(page_bytes),
            formats: formats.map(|f| (f.id, f)).collect(),
            kinds: Kinds::default(),
            names: Names::default(),
            held: Vec::new(),
            has_gap: false,
        }
    }

    /// Takes a page of a CPU.
    pub fn page(&mut self, cpu: u16, page: &[u8]) {
        let mut page = OnePage::new(&self.container, cpu, page);
        while let Some(next) = page.next() {
            if let Next::Record { time_ns } = next {
                self.record(cpu, Time(time_ns), page.record());
            } else {
                self.has_gap = true;
            }
        }
    }

    fn record(&mut self, cpu: u16, time: Time, data: &[u8]) {
        let order = self.container.order;
        let Some(format) = order.u16(data).and_then(|id| self.formats.get(&id)) else {
            return;
        };
        let Some(kind) = self.kinds.kind(format.name.as_bytes()) else {
            return;
        };
        let fields = Fields { order, data };
        let Some(event) = fields.event(kind, format, &self.kinds) else {
            return;
        };
        let event = Event { time, cpu, ..event };
        if plausible::is_time(time) && plausible::is_event(&event) {
            self.kinds.saw(&event);
            self.held.push((event, fields.comm(format)));
        }
    }

    /// Sends what was before `time`, in order: all of it must have been taken.
    pub fn send_before(&mut self, time: Time, sink: &mut dyn TraceSink) {
        self.held.sort_by_key(|(event, _)| event.time);
        if std::mem::take(&mut self.has_gap) {
            sink.new_recording();
        }
        let nr = self.held.partition_point(|(event, _)| event.time < time);
        for (event, comm) in self.held.drain(..nr) {
            if let Some(comm) = comm
                && self.names.change(event.pid, names::bytes(&comm))
            {
                let name = String::from_utf8_lossy(names::bytes(&comm));
                sink.process(event.time, event.pid, &name);
            }
            sink.event(&event);
        }
    }
}
