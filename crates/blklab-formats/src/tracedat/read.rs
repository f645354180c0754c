// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the records of all CPUs in order of time.

use super::container::Container;
use super::formats::{EventFormat, Field, KernelFormat};
use super::pages::{Next, Pages};
use super::stacks::{StackFormat, Symbols};
use crate::fields;
use crate::input::Input;
use crate::kernel;
use crate::names::{self, Comm};
use crate::order::{Given, Held, Said};
use crate::source::Source;
use crate::store::{Order, Store};
use crate::text::rwbs;
use crate::tracepoints::{Kind, Kinds, place};
use crate::{FormatError, ReadCounts, plausible};
use blklab_trace::{Action, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, Pid, Time};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

/// Reads `trace.dat`.
///
/// Events of one CPU are in the order of its buffer, those of several in order of time.
/// Events of other parts of the kernel are counted by name.
#[derive(Debug)]
pub struct TraceDatReader {
    name: String,
    store: Store,
    order: Order,
    header: TraceHeader,
    events: HashMap<u16, EventFormat>,
    kernel_events: HashMap<u16, KernelFormat>,
    long_bytes: usize,
    stacks: Option<StackFormat>,
    symbols: Symbols,
    others: HashMap<u16, String>,
    comms: HashMap<Pid, Comm>,
    cpus: Vec<Pages>,
    /// The time of what each CPU has next; none at its end.
    heads: Vec<Option<u64>>,
    is_begun: bool,
    /// Lost events that the recorder counted.
    nr_lost: u64,
    kinds: Kinds,
    given: Given,
    counts: ReadCounts,
}

impl TraceDatReader {
    /// Reads from a file where its parts are.
    ///
    /// # Errors
    /// If it is no `trace.dat`, of another version, or damaged before its pages.
    pub fn of_file(file: File, name: &str) -> Result<TraceDatReader, FormatError> {
        TraceDatReader::from_store(Store::File(file), name)
    }

    /// Reads all of `inner` into memory first.
    ///
    /// # Errors
    /// As [`TraceDatReader::of_file`], and beyond 1 GiB.
    pub fn new(inner: impl Read, name: &str) -> Result<TraceDatReader, FormatError> {
        TraceDatReader::from_store(Store::of_reader(inner, name)?, name)
    }

    pub(crate) fn from_input(input: Input<Source>) -> Result<TraceDatReader, FormatError> {
        let name = input.name.clone();
        match input.file() {
            Some(file) => TraceDatReader::of_file(file, &name),
            None => TraceDatReader::new(input.into_rest(), &name),
        }
    }

    fn from_store(store: Store, name: &str) -> Result<TraceDatReader, FormatError> {
        let container = Container::read(&store, name)?;
        let cpus = container.buffers.iter();
        let cpus: Vec<Pages> = cpus.map(|buffer| Pages::new(&container, *buffer)).collect();
        let events = container.events.into_iter().map(|event| (event.id, event));
        let by_id = container.kernel_events.into_iter().map(|e| (e.id, e));
        Ok(TraceDatReader {
            name: name.to_owned(),
            store,
            order: container.order,
            header: TraceHeader {
                kernel: container.kernel,
                ..TraceHeader::default()
            },
            events: events.collect(),
            kernel_events: by_id.collect(),
            long_bytes: container.long_bytes,
            stacks: container.stacks,
            symbols: container.symbols,
            others: container.others.into_iter().collect(),
            comms: comms(&container.comms),
            heads: vec![None; cpus.len()],
            cpus,
            is_begun: false,
            nr_lost: container.nr_lost,
            kinds: Kinds::default(),
            given: Given::default(),
            counts: ReadCounts::default(),
        })
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    /// The kernel that recorded it, if the file says so.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Goes to the next record of a CPU.
    fn advance(&mut self, idx: usize) -> Result<(), FormatError> {
        loop {
            let next = self.cpus[idx].next(&self.store);
            let next = next.map_err(|e| FormatError::io(format!("read {}", self.name), e))?;
            self.heads[idx] = match next {
                Next::Record { time_ns } => Some(time_ns),
                Next::End => None,
                Next::Lost(nr) => {
                    self.counts.gaps += 1;
                    self.counts.lost = self.counts.lost.saturating_add(nr.max(1));
                    continue;
                }
                Next::Damaged => {
                    self.counts.damaged += 1;
                    let (name, cpu) = (&self.name, self.cpus[idx].cpu);
                    self.counts
                        .example(|| format!("{name}: a page of CPU {cpu} makes no sense"));
                    continue;
                }
            };
            return Ok(());
        }
    }

    /// What the record of a CPU says; none if it is no event of ours.
    fn take(&mut self, idx: usize, time_ns: u64) -> Option<Held> {
        let pages = &self.cpus[idx];
        let (data, cpu) = (pages.record(), pages.cpu);
        let id = self.order.u16(data)?;
        let Some(format) = self.events.get(&id) else {
            if self.kernel_events.contains_key(&id) {
                return self.kernel_event(idx, id, Time(time_ns));
            }
            if self.stacks.as_ref().is_some_and(|s| s.id == id) {
                return self.stack(idx, Time(time_ns));
            }
            let name = self.others.get(&id).map_or("unknown", String::as_str);
            self.counts.other_event(name.as_bytes());
            return None;
        };
        let Some(kind) = self.kinds.kind(format.name.as_bytes()) else {
            self.counts.other_event(format.name.as_bytes());
            return None;
        };
        let fields = Fields {
            order: self.order,
            data,
        };
        let event = match fields.event(kind, format, &self.kinds) {
            Some(event) => Event {
                time: Time(time_ns),
                cpu,
                ..event
            },
            None if matches!(kind, Kind::Plug(_)) => {
                self.counts.other_event(format.name.as_bytes());
                return None;
            }
            None => {
                self.counts.damaged += 1;
                let name = &format.name;
                self.counts
                    .example(|| format!("{name} of CPU {cpu} makes no sense"));
                return None;
            }
        };
        if !plausible::admits(&event, &mut self.counts, || format!("event of CPU {cpu}")) {
            return None;
        }
        self.kinds.saw(&event);
        // The kernel remembers the names of few processes; most events tell their own.
        let comm = self.comms.get(&event.pid).copied();
        let comm = comm.or_else(|| fields.comm(format));
        let said = comm.map_or(Said::Event, Said::Named);
        Some(Held::new(event, said))
    }
}

impl TraceDatReader {
    /// The stack in the record of a CPU; none if nothing says what its functions are called.
    fn stack(&mut self, idx: usize, time: Time) -> Option<Held> {
        let (pages, format) = (&self.cpus[idx], self.stacks.as_ref()?);
        let (data, order) = (pages.record(), self.order);
        let addresses = format.addresses(order, self.long_bytes, data);
        let words = self.symbols.words(addresses);
        let pid = format.pid(order, data).filter(|_| plausible::is_time(time));
        let (Some(words), Some(pid)) = (words, pid) else {
            self.counts.other_event(b"kernel_stack");
            return None;
        };
        self.counts.stacks += 1;
        Some(Held::stack(time, pid, pages.cpu, words))
    }

    /// What the record of a CPU says of another part of the kernel.
    fn kernel_event(&mut self, idx: usize, id: u16, time: Time) -> Option<Held> {
        let (pages, format) = (&self.cpus[idx], self.kernel_events.get(&id)?);
        let cpu = pages.cpu;
        let record = Record {
            order: self.order,
            data: pages.record(),
            format,
        };
        let said = kernel::decode(format.name.as_bytes(), &record).flatten();
        let pid = fields::Fields::number(&record, "common_pid").map(|pid| pid as Pid);
        let is_time = plausible::is_time(time);
        let (Some(said), Some(pid), true) = (said, pid, is_time) else {
            self.counts.damaged += 1;
            let name = &format.name;
            self.counts
                .example(|| format!("{name} of CPU {cpu} makes no sense"));
            return None;
        };
        let event = kernel::event(time, pid, cpu, said);
        self.counts.kernel_events += 1;
        Some(Held::kernel(&event, self.comms.get(&pid).copied()))
    }
}

/// The record of an event of another part of the kernel.
struct Record<'a> {
    order: Order,
    data: &'a [u8],
    format: &'a KernelFormat,
}

impl fields::Fields for Record<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        self.format.number(self.order, self.data, name)
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        let bytes = self.format.content(self.order, self.data, name)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }

    fn bytes(&self, name: &str, to: &mut [u8]) -> usize {
        let content = self.format.content(self.order, self.data, name);
        let content = content.unwrap_or_default();
        let nr = content.len().min(to.len());
        to[..nr].copy_from_slice(&content[..nr]);
        nr
    }
}

/// Names of processes from lines of `PID COMM`.
fn comms(lines: &[u8]) -> HashMap<Pid, Comm> {
    let lines = lines.split(|b| *b == b'\n');
    let pairs = lines.filter_map(|line| {
        let space = line.iter().position(|b| *b == b' ')?;
        let pid = crate::text::decimal(&line[..space])?.try_into().ok()?;
        let comm = line[space + 1..].trim_ascii();
        (comm != b"<...>").then(|| (pid, names::comm(comm)))
    });
    pairs.collect()
}

/// The fields of a record.
pub(super) struct Fields<'a> {
    pub(super) order: Order,
    pub(super) data: &'a [u8],
}

impl Fields<'_> {
    fn number(&self, field: Option<Field>) -> Option<u64> {
        self.order.number(field?.bytes(self.data)?)
    }

    fn device(&self, field: Option<Field>) -> Option<Dev> {
        Some(fields::device(self.number(field)?))
    }

    fn letters(&self, field: Option<Field>) -> Option<Rwbs> {
        let bytes = field?.bytes(self.data)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        rwbs(&bytes[..end])
    }

    /// The name of the task, where the event has it.
    pub(super) fn comm(&self, format: &EventFormat) -> Option<Comm> {
        let comm = names::comm(format.comm?.bytes(self.data)?);
        Some(comm).filter(|comm| !names::bytes(comm).is_empty())
    }

    fn length(&self, format: &EventFormat) -> Option<u32> {
        crate::text::length(self.number(format.nr_sector)?)
    }

    pub(super) fn event(&self, kind: Kind, format: &EventFormat, kinds: &Kinds) -> Option<Event> {
        let (Kind::Bio(action) | Kind::Request(action) | Kind::Done(action) | Kind::Plug(action)) =
            kind;
        let pid = self.number(format.pid)? as u32;
        let mut event = Event {
            time: Time::ZERO,
            sector: 0,
            arg: 0,
            bytes: 0,
            pid,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::NONE,
            action,
        };
        if let Kind::Plug(_) = kind {
            event.dev = kinds.plugged(pid)?;
            event.arg = self.number(format.nr_rq).unwrap_or(0);
            return Some(event);
        }
        event.dev = self.device(format.dev)?;
        event.rwbs = self.letters(format.rwbs)?;
        let sector = self.number(format.sector)?;
        match (kind, action) {
            (_, Action::Split) => {
                event.sector = sector;
                event.arg = self.number(format.new_sector)?;
                let front = event.arg.checked_sub(sector);
                event.bytes = front.and_then(crate::text::length).unwrap_or(0);
                return Some(event);
            }
            (_, Action::Remap) => {
                event.from_dev = self.device(format.old_dev)?;
                event.arg = self.number(format.old_sector)?;
                (event.sector, event.bytes) = (sector, self.length(format)?);
            }
            (Kind::Bio(_), _) => (event.sector, event.bytes) = (sector, self.length(format)?),
            _ => {
                let bytes = self.number(format.bytes).unwrap_or(0) as u32;
                place(&mut event, sector, self.length(format)?, bytes);
            }
        }
        if action == Action::Complete {
            let code = self.number(format.error).unwrap_or(0) as i32;
            event.error = code.unsigned_abs().try_into().unwrap_or(u16::MAX);
        }
        Some(event)
    }
}

impl TraceSource for TraceDatReader {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(item) = self.given.pending() {
            return Ok(Some(item));
        }
        if !self.is_begun {
            self.is_begun = true;
            for idx in 0..self.cpus.len() {
                self.advance(idx)?;
            }
        }
        loop {
            let heads = self.heads.iter().enumerate();
            let next = heads.filter_map(|(idx, head)| Some((head.as_ref()?, idx)));
            let Some((time, idx)) = next.min().map(|(time, idx)| (*time, idx)) else {
                // Pages tell of gaps, but not always how many events are missing in one, nor what
                // was lost behind the last of them.
                self.counts.lost = self.counts.lost.max(self.nr_lost);
                return Ok(None);
            };
            let held = self.take(idx, time);
            self.advance(idx)?;
            if let Some(held) = held {
                return Ok(Some(self.given.item(held, &mut self.counts)));
            }
        }
    }
}
