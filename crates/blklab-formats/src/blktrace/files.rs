// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of all CPUs, merged by time.

use super::read::{Said, Stream};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Item, TraceSource};
use blklab_types::Time;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads blktrace binary, version 7, of either byte order.
///
/// Times are those of the recording machine; blkparse subtracts that of the
/// first event. Events of equal time come in blkparse's order. The name of a
/// process comes before the event that follows it in its file, which can be
/// a little early with regard to its time.
#[derive(Debug)]
pub struct BlktraceReader<R> {
    streams: Vec<Stream<R>>,
    /// The event each stream has next, with the text of a message.
    heads: Vec<Option<(Event, String)>>,
    /// Streams that have an event, in the order they are taken from.
    queue: Vec<usize>,
    /// The stream whose next event is looked for.
    loading: Option<usize>,
    /// Whether a first event was looked for in all streams.
    primed: bool,
    counts: ReadCounts,
    last_time: Time,
    text: String,
}

impl BlktraceReader<File> {
    /// Opens `NAME.blktrace.0`, `NAME.blktrace.1`, … for `NAME`, or for the
    /// name of one of them; otherwise the file `path` itself, in which all
    /// CPUs are mixed, as `blkparse -d` writes it.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn open(path: &Path) -> Result<BlktraceReader<File>, FormatError> {
        let text = path.to_string_lossy();
        let base = text.find(".blktrace.").map_or(&*text, |at| &text[..at]);
        let mut streams = Vec::new();
        for cpu in 0..=u16::MAX {
            let name = format!("{base}.blktrace.{cpu}");
            let file = match File::open(&name) {
                Ok(file) => file,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => break,
                Err(e) => return Err(FormatError::at("open", &PathBuf::from(name), e)),
            };
            streams.push(Stream::new(file, &name, Some(cpu)));
        }
        if streams.is_empty() {
            let file = File::open(path).map_err(|e| FormatError::at("open", path, e))?;
            streams.push(Stream::new(file, &text, None));
        }
        Ok(BlktraceReader::of(streams))
    }
}

impl<R: Read> BlktraceReader<R> {
    /// Reads one stream in which all CPUs are mixed; `name` is for errors.
    pub fn from_stream(inner: R, name: &str) -> BlktraceReader<R> {
        BlktraceReader::of(vec![Stream::new(inner, name, None)])
    }

    fn of(streams: Vec<Stream<R>>) -> BlktraceReader<R> {
        BlktraceReader {
            heads: streams.iter().map(|_| None).collect(),
            queue: Vec::with_capacity(streams.len()),
            loading: if streams.is_empty() { None } else { Some(0) },
            primed: false,
            streams,
            counts: ReadCounts::default(),
            last_time: Time::ZERO,
            text: String::new(),
        }
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    fn time(&self, stream: usize) -> Time {
        self.heads[stream]
            .as_ref()
            .map_or(Time::MAX, |(event, _)| event.time)
    }

    /// Puts a stream in its place: by time, before others of the same time
    /// except the very first, as blkparse does.
    fn enqueue(&mut self, stream: usize) {
        let time = self.time(stream);
        let place = match self.queue.first() {
            Some(first) if self.time(*first) <= time => {
                let later = &self.queue[1..];
                1 + later.partition_point(|s| self.time(*s) < time)
            }
            _ => 0,
        };
        self.queue.insert(place, stream);
    }

    /// A stream found its next event, or its end.
    fn loaded(&mut self, stream: usize, event: Option<Event>) {
        if let Some(event) = event {
            let text = match event.action {
                Action::Message => std::mem::take(&mut self.streams[stream].text),
                _ => String::new(),
            };
            self.heads[stream] = Some((event, text));
        }
        if !self.primed {
            if event.is_some() {
                self.enqueue(stream);
            }
            self.loading = Some(stream + 1).filter(|next| *next < self.streams.len());
            self.primed = self.loading.is_none();
            return;
        }
        // The stream was and is the first; it stays if not later than the next.
        self.loading = None;
        let stays = event.is_some()
            && self
                .queue
                .get(1)
                .is_none_or(|next| self.time(stream) <= self.time(*next));
        if !stays {
            self.queue.remove(0);
            if event.is_some() {
                self.enqueue(stream);
            }
        }
    }
}

impl<R: Read> TraceSource for BlktraceReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        while let Some(stream) = self.loading {
            match self.streams[stream].next(&mut self.counts)? {
                Some(Said::Process(time, pid)) => {
                    self.counts.processes += 1;
                    let comm = &self.streams[stream].text;
                    return Ok(Some(Item::Process { time, pid, comm }));
                }
                Some(Said::Event(event)) => self.loaded(stream, Some(event)),
                None => self.loaded(stream, None),
            }
        }
        let Some(&first) = self.queue.first() else {
            return Ok(None);
        };
        self.loading = Some(first);
        let Some((event, text)) = self.heads[first].take() else {
            return Ok(None);
        };
        self.counts.backwards += u64::from(event.time < self.last_time);
        self.last_time = event.time;
        if event.action == Action::Message {
            self.counts.messages += 1;
            self.text = text;
            return Ok(Some(Item::Message(event, &self.text)));
        }
        self.counts.events += 1;
        Ok(Some(Item::Event(event)))
    }
}
