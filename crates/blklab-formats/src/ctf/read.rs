// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of all channels in order of time.

use super::channel::{Channel, Next};
use super::decode::Value;
use super::folder;
use super::metadata::{EventClass, Metadata};
use super::types::Scope;
use crate::fields::Fields;
use crate::kernel;
use crate::limit::with_room;
use crate::lttng;
use crate::names::{self, Comm};
use crate::order::{Given, Held, Said};
use crate::source::{FileId, Progress, Source};
use crate::store::Store;
use crate::tracepoints::{Kind, Kinds};
use crate::{FormatError, ReadCounts, plausible};
use blklab_trace::{Item, TraceHeader, TraceSource};
use blklab_types::{Pid, Time};
use std::collections::HashMap;
use std::path::Path;

/// Reads the kernel's traces in a folder of LTTng.
///
/// Times are those of the kernel's clock, which begins when the machine does. Events of one
/// file are in its order, those of several in order of time. Events of other parts of the
/// kernel are counted by name.
#[derive(Debug)]
pub struct CtfReader {
    traces: Vec<Metadata>,
    channels: Vec<Part>,
    header: TraceHeader,
    is_begun: bool,
    /// Who runs on each CPU, where switches are in the trace.
    running: HashMap<u16, (Pid, Option<Comm>)>,
    kinds: Kinds,
    given: Given,
    counts: ReadCounts,
}

/// A file of a trace.
#[derive(Debug)]
struct Part {
    /// For what is said of it.
    name: String,
    /// Which of the traces it belongs to.
    trace: usize,
    channel: Channel,
    /// The time of its next event; none at its end.
    head_ns: Option<u64>,
}

/// A trace's files.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) ids: Vec<FileId>,
    pub(crate) progress: Progress,
}

impl CtfReader {
    /// Opens a folder with a trace, or with folders that have some: what `lttng create`
    /// made. Traces of programs beside those of kernels are left out and named among the
    /// examples of the counts.
    ///
    /// # Errors
    /// If there is none, or none of a kernel, if metadata make no sense or are of another
    /// version, and if a file cannot be read.
    pub fn open(folder: &Path) -> Result<CtfReader, FormatError> {
        CtfReader::open_files(folder).map(|(reader, _)| reader)
    }

    pub(crate) fn open_files(folder: &Path) -> Result<(CtfReader, Opened), FormatError> {
        let (mut traces, mut channels, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let (mut progress, mut others) = (Vec::new(), Vec::new());
        for folder in folder::folders(folder)? {
            let metadata = folder::metadata(&folder)?;
            if !metadata.is_of_kernel() {
                others.push(folder);
                continue;
            }
            let files = folder::stream_files(&folder)?;
            for path in &files {
                let source = with_room(|| Ok(Source::one_of(files.len(), path)))
                    .map_err(|e| FormatError::at("open", path, e))??;
                ids.extend(source.id());
                progress.push(source.progress());
                let name = path.to_string_lossy().into_owned();
                let store = match source.file() {
                    Some(file) => Store::File(file),
                    None => Store::of_reader(source, &name)?,
                };
                channels.push((name, traces.len(), store));
            }
            traces.push(metadata);
        }
        if channels.is_empty() {
            return Err(FormatError::Header {
                input: folder.to_string_lossy().into_owned(),
                problem: "no packets of a kernel's trace beside metadata",
            });
        }
        let mut reader = CtfReader::with_files(traces, channels);
        for other in others {
            let text = || format!("{}: a program's trace, left out", other.display());
            reader.counts.example(text);
        }
        let progress = Progress::join(progress.into_iter());
        Ok((reader, Opened { ids, progress }))
    }

    /// Reads from the bytes of metadata and of the files beside them; `name` is for errors.
    ///
    /// # Errors
    /// As [`CtfReader::open`].
    pub fn of_bytes(
        metadata: &[u8],
        files: Vec<Vec<u8>>,
        name: &str,
    ) -> Result<CtfReader, FormatError> {
        let metadata = folder::described(metadata, name)?;
        let files = files
            .into_iter()
            .map(|file| (name.to_owned(), 0, Store::Memory(file)));
        Ok(CtfReader::with_files(vec![metadata], files.collect()))
    }

    fn with_files(traces: Vec<Metadata>, files: Vec<(String, usize, Store)>) -> CtfReader {
        let env = |name: &str| traces.iter().find_map(|t| t.env.get(name));
        let kernel = env("kernel_release").cloned().unwrap_or_default();
        let files = files.into_iter().enumerate();
        CtfReader {
            header: TraceHeader {
                kernel,
                ..TraceHeader::default()
            },
            traces,
            channels: files
                .map(|(idx, (name, trace, store))| Part {
                    name,
                    trace,
                    channel: Channel::new(store, idx),
                    head_ns: None,
                })
                .collect(),
            is_begun: false,
            running: HashMap::new(),
            kinds: Kinds::default(),
            given: Given::default(),
            counts: ReadCounts::default(),
        }
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    /// The kernel that recorded it, if the metadata say so.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Goes to the next event of a file.
    fn advance(&mut self, idx: usize) -> Result<(), FormatError> {
        let part = &mut self.channels[idx];
        let metadata = &self.traces[part.trace];
        let counts = &mut self.counts;
        loop {
            let next = part.channel.next(metadata);
            let next = next.map_err(|e| FormatError::io(format!("read {}", part.name), e))?;
            part.head_ns = match next {
                Next::Event { ticks } => Some(to_ns(ticks, metadata.clock_hz)),
                Next::End => None,
                Next::Lost(nr) => {
                    counts.gaps += 1;
                    counts.lost = counts.lost.saturating_add(nr);
                    continue;
                }
                Next::Damaged(what, nr_bytes) => {
                    counts.damaged += 1;
                    counts.skipped_bytes = counts.skipped_bytes.saturating_add(nr_bytes);
                    counts.example(|| format!("{}: {what}", part.name));
                    continue;
                }
                Next::Truncated(nr_bytes) => {
                    counts.truncated = true;
                    counts.example(|| {
                        format!(
                            "{}: {nr_bytes} bytes of its last packet are missing",
                            part.name
                        )
                    });
                    continue;
                }
            };
            return Ok(());
        }
    }

    /// What an event of another part of the kernel says, if it is one that is read.
    fn other(&mut self, idx: usize, time: Time) -> Option<Held> {
        let part = &self.channels[idx];
        let (channel, metadata) = (&part.channel, &self.traces[part.trace]);
        let class = channel.class(metadata)?;
        let fields = Decoded { channel, metadata };
        let Some(said) = kernel::decode(class.name.as_bytes(), &fields) else {
            return other(class, &mut self.counts);
        };
        let (Some(said), true) = (said, plausible::is_time(time)) else {
            self.counts.damaged += 1;
            let text = || format!("{}: the fields of {} do not fit", part.name, class.name);
            self.counts.example(text);
            return None;
        };
        let running = || self.running.get(&channel.cpu).copied();
        let task = fields.context_task().or_else(running);
        let (pid, comm) = task.unwrap_or_default();
        let event = kernel::event(time, pid, channel.cpu, said);
        self.counts.kernel_events += 1;
        let comm = comm.filter(|comm| pid != 0 && !names::bytes(comm).is_empty());
        Some(Held::kernel(&event, comm))
    }

    /// What the event of a file says; none if it is none of ours.
    fn take(&mut self, idx: usize, time_ns: u64) -> Option<Held> {
        let part = &self.channels[idx];
        let (channel, metadata) = (&part.channel, &self.traces[part.trace]);
        let class = channel.class(metadata)?;
        let fields = Decoded { channel, metadata };
        let Some(kind) = self.kinds.kind(class.name.as_bytes()) else {
            if class.name == "sched_switch"
                && let Some(next) = fields.number("next_tid")
            {
                let comm = fields.text("next_comm").map(names::comm);
                self.running.insert(channel.cpu, (next as Pid, comm));
            }
            return self.other(idx, Time(time_ns));
        };
        let running = || self.running.get(&channel.cpu).copied();
        let (pid, comm) = fields.task().or_else(running).unwrap_or_default();
        let (time, cpu) = (Time(time_ns), channel.cpu);
        let Some(event) = lttng::event(kind, time, cpu, pid, &fields, &self.kinds) else {
            if matches!(kind, Kind::Plug(_)) {
                return other(class, &mut self.counts);
            }
            self.counts.damaged += 1;
            let text = || format!("{}: the fields of {} do not fit", part.name, class.name);
            self.counts.example(text);
            return None;
        };
        if !plausible::admits(&event, &mut self.counts, || part.name.clone()) {
            return None;
        }
        self.kinds.saw(&event);
        let comm = comm.filter(|comm| event.pid != 0 && !names::bytes(comm).is_empty());
        let said = comm.map_or(Said::Event, Said::Named);
        Some(Held::new(event, said))
    }
}

/// Counts an event that is not read.
fn other(class: &EventClass, counts: &mut ReadCounts) -> Option<Held> {
    counts.other_event(class.name.as_bytes());
    None
}

/// Ticks of a clock as nanoseconds.
fn to_ns(ticks: u64, hz: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    if hz == SECOND_NS {
        return ticks;
    }
    let ns = u128::from(ticks) * u128::from(SECOND_NS) / u128::from(hz);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The fields of an event, then what its context says.
struct Decoded<'a> {
    channel: &'a Channel,
    metadata: &'a Metadata,
}

/// Where an event says something.
const ALL: [Scope; 3] = [
    Scope::Fields,
    Scope::EventContext,
    Scope::StreamEventContext,
];

impl Fields for Decoded<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        let value = self.own(name)?;
        value.text.is_empty().then_some(value.number)
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        self.channel.text(self.own(name)?)
    }
}

impl Decoded<'_> {
    /// One of the event's own fields.
    fn own(&self, name: &str) -> Option<&Value> {
        let types = &self.metadata.types;
        self.channel.value(|s| types.name(s) == name, &ALL[..1])
    }

    fn context(&self, names: &[&str]) -> Option<&Value> {
        let types = &self.metadata.types;
        let is_it = |symbol| names.contains(&types.name(symbol));
        self.channel.value(is_it, &ALL[1..])
    }

    /// The task that its context says. The `tid` of other events than those of the block
    /// layer is that of somebody else.
    fn context_task(&self) -> Option<(Pid, Option<Comm>)> {
        let tid = self.context(&["tid", "vtid"])?;
        Some(self.named(tid, self.context(&["procname"])))
    }

    fn named(&self, tid: &Value, comm: Option<&Value>) -> (Pid, Option<Comm>) {
        let comm = comm.and_then(|value| self.channel.text(value));
        (tid.number as Pid, comm.map(names::comm))
    }

    /// The task and its name: of the event itself, else of its context.
    fn task(&self) -> Option<(Pid, Option<Comm>)> {
        let Some(tid) = self.own("tid") else {
            return self.context_task();
        };
        let comm = self.own("comm").or_else(|| self.context(&["procname"]));
        Some(self.named(tid, comm))
    }
}

impl TraceSource for CtfReader {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(item) = self.given.pending() {
            return Ok(Some(item));
        }
        if !self.is_begun {
            self.is_begun = true;
            for idx in 0..self.channels.len() {
                self.advance(idx)?;
            }
        }
        loop {
            let heads = self.channels.iter().enumerate();
            let next = heads.filter_map(|(idx, part)| Some((part.head_ns?, idx)));
            let Some((time, idx)) = next.min() else {
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
