// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a trace in text, whole or quoted in mail.

use super::frames::Frames;
use super::recording::Recording;
use super::{Io, Line, unmarked};
use crate::input::Input;
use crate::names;
use crate::order::{Given, Held, Said, Window};
use crate::plausible;
use crate::sequence::TextSequences;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Item, KernelEvent, TraceHeader};
use blklab_types::Time;
use std::fmt;
use std::io::Read;

/// Longest line that is believed.
const LINE_BYTES_MAX: usize = 128 * 1024;
/// Lines into which a mail wraps an event, at most: one that only lacks its end, and one that is
/// none without the others (commands of SCSI with their result are long).
const WRAPPED_LINES_MAX: u32 = 3;
const CUT_LINES_MAX: u32 = 8;
/// A kind of text.
pub(crate) trait Dialect: fmt::Debug + Send {
    /// Takes a line apart.
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a>;

    /// How many events a line may come too late.
    fn window(&self) -> usize {
        1024
    }

    /// Whether it is found in mails: quoted, wrapped, several recordings in
    /// one text, beside other kinds.
    fn is_mailed(&self) -> bool {
        true
    }

    /// What the trace says about itself so far.
    fn header(&self) -> Option<&TraceHeader> {
        None
    }
}

/// Reads text of a dialect; lines that are none of it may be of `others`. Names
/// of processes come from the lines.
#[derive(Debug)]
pub(crate) struct TextReader<R, D> {
    dialect: D,
    others: Vec<Box<dyn Dialect>>,
    input: Input<R>,
    at_end: bool,
    /// The beginning of an event that may go on in the next line.
    wrapped: Wrapped,
    found: Found,
    given: Given,
}

/// Lines that may be one.
#[derive(Debug, Default)]
struct Wrapped {
    text: Vec<u8>,
    nr_lines: u32,
    /// Number of the first.
    line_number: u64,
    /// What is wrong if they are not; nothing, if they are an event as they are.
    problem: Option<&'static str>,
}

/// What was found so far.
#[derive(Debug)]
struct Found {
    /// What to call the input in examples.
    name: String,
    line_number: u64,
    in_summary: bool,
    is_mailed: bool,
    /// Which of the dialects the last event was of.
    last_dialect: usize,
    recording: Recording,
    sequences: TextSequences,
    window: Window,
    frames: Frames,
    counts: ReadCounts,
}

impl<R: Read, D: Dialect> TextReader<R, D> {
    /// Reads from `input`.
    pub(crate) fn new(input: Input<R>, dialect: D) -> TextReader<R, D> {
        TextReader {
            found: Found {
                name: input.name.clone(),
                line_number: 0,
                in_summary: false,
                is_mailed: dialect.is_mailed(),
                last_dialect: 0,
                recording: Recording::default(),
                sequences: TextSequences::default(),
                window: Window::default(),
                frames: Frames::default(),
                counts: ReadCounts::default(),
            },
            dialect,
            others: Vec::new(),
            input,
            at_end: false,
            wrapped: Wrapped::default(),
            given: Given::default(),
        }
    }

    /// The same, with lines of these dialects among the others.
    pub(crate) fn with_others(mut self, others: Vec<Box<dyn Dialect>>) -> TextReader<R, D> {
        self.others = others;
        self
    }

    /// What was found so far; complete after the last item.
    pub(crate) fn counts(&self) -> &ReadCounts {
        &self.found.counts
    }

    /// What the trace says about itself; complete after the last item.
    pub(crate) fn header(&self) -> Option<&TraceHeader> {
        let mut all = self.others.iter().map(|d| d.header());
        self.dialect.header().or_else(|| all.find_map(|h| h))
    }

    /// The next item.
    pub(crate) fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(item) = self.given.pending() {
            return Ok(Some(item));
        }
        let window = match self.found.last_dialect {
            0 => self.dialect.window(),
            other => self.others[other - 1].window(),
        };
        while !self.at_end && self.found.window.len() <= window {
            self.read_line()?;
        }
        let held = self.found.window.pop();
        Ok(held.map(|held| self.given.item(held, &mut self.found.counts)))
    }

    /// Reads a line, and puts what it says in its place.
    fn read_line(&mut self) -> Result<(), FormatError> {
        let Some((len, total)) = self.next_line()? else {
            self.end_wrapped();
            self.found.end_stack();
            self.at_end = true;
            return Ok(());
        };
        let before = self.found.counts.foreign;
        self.take_line(len);
        self.input.skip(total);
        if len == total && !self.found.is_mailed && self.found.counts.foreign > before {
            // A row without its end.
            self.found.counts.foreign = before;
            self.found.counts.truncated = true;
        }
        Ok(())
    }

    /// Makes the next line available: its length, without and with its end.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, FormatError> {
        let mut looked_at = 0;
        loop {
            let have = self.input.available();
            if let Some(at) = memchr::memchr(b'\n', &have[looked_at..]) {
                let len = looked_at + at;
                return Ok(Some((len, len + 1)));
            }
            looked_at = have.len();
            let now = self.input.fill(looked_at + 1)?.len();
            if now == looked_at || now > LINE_BYTES_MAX {
                return Ok(Some((now, now)).filter(|_| now > 0));
            }
        }
    }

    fn take_line(&mut self, len: usize) {
        self.found.line_number += 1;
        if len > LINE_BYTES_MAX {
            let number = self.found.line_number;
            return self.found.damaged(number, "line too long", len);
        }
        if self.wrapped.nr_lines > 0 {
            let bytes = &self.input.available()[..len];
            let may_go_on = matches!(self.dialect.parse(bytes), Line::Other(_));
            if may_go_on && self.joined(len) {
                return;
            }
            self.end_wrapped();
        }
        let bytes = &self.input.available()[..len];
        let line = self.dialect.parse(bytes);
        let problem = match line {
            Line::Incomplete(problem) if !self.found.in_summary => Some(problem),
            Line::Event { is_whole, .. } if !is_whole && self.found.is_mailed => None,
            Line::Other(_) if !self.others.is_empty() => return self.take_other_line(len),
            _ => return self.found.take(line, 0, len),
        };
        self.wrapped.problem = problem;
        self.wrapped.line_number = self.found.line_number;
        self.wrapped.add(bytes);
    }

    /// A line that is none of the dialect.
    #[cold]
    fn take_other_line(&mut self, len: usize) {
        let bytes = &self.input.available()[..len];
        for (i, dialect) in self.others.iter_mut().enumerate() {
            let line = dialect.parse(bytes);
            if !matches!(
                line,
                Line::Other(_) | Line::Incomplete(_) | Line::Damaged(_)
            ) {
                return self.found.take(line, i + 1, len);
            }
        }
        let line = self.dialect.parse(bytes);
        self.found.take(line, 0, len);
    }

    /// Whether the line is the next part of an event, which it then takes.
    fn joined(&mut self, len: usize) -> bool {
        let bytes = &self.input.available()[..len];
        let before = self.wrapped.text.len();
        self.wrapped.add(bytes);
        match self.dialect.parse(&self.wrapped.text) {
            joined @ (Line::Event { is_whole: true, .. }
            | Line::Kernel { .. }
            | Line::OtherEvent(_)) => {
                self.found.take(joined, 0, len);
                self.wrapped.clear();
                true
            }
            Line::Incomplete(_) if self.wrapped.nr_lines < CUT_LINES_MAX => true,
            Line::Event { .. } if self.wrapped.nr_lines < WRAPPED_LINES_MAX => true,
            _ => {
                self.wrapped.text.truncate(before);
                false
            }
        }
    }

    /// What was held does not go on: it is an event as it is, or none.
    fn end_wrapped(&mut self) {
        if self.wrapped.nr_lines == 0 {
            return;
        }
        let len = self.wrapped.text.len();
        match self.wrapped.problem {
            None => {
                let line = self.dialect.parse(&self.wrapped.text);
                self.found.take(line, 0, len);
            }
            Some(problem) => self.found.damaged(self.wrapped.line_number, problem, len),
        }
        self.wrapped.clear();
    }
}

impl Wrapped {
    fn add(&mut self, line: &[u8]) {
        if self.nr_lines > 0 {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(unmarked(line));
        self.nr_lines += 1;
    }

    fn clear(&mut self) {
        self.text.clear();
        self.nr_lines = 0;
    }
}

impl Found {
    /// Takes a line that one of the dialects has taken apart.
    fn take(&mut self, line: Line<'_>, dialect: usize, len: usize) {
        if !matches!(line, Line::Frame(_)) {
            self.end_stack();
        }
        match line {
            Line::Event {
                event,
                sequence,
                comm,
                has_time,
                ..
            } => {
                self.in_summary = false;
                let comm = comm.filter(|c| *c != b"(null)").map(names::comm);
                self.counts.untimed += u64::from(!has_time);
                self.begin(&event, sequence, dialect);
                if let Some(sequence) = sequence {
                    self.sequences
                        .check(event.cpu, event.dev, sequence, &mut self.counts);
                }
                self.push(event, comm, sequence, true);
                self.frames.begin(event.time, event.pid, event.cpu);
            }
            Line::Stack { time, pid, cpu } => self.frames.begin(time, pid, cpu),
            Line::Frame(name) => self.frames.add(name),
            Line::Io(io) => self.take_io(&io, dialect),
            Line::Kernel {
                event,
                comm,
                has_time,
            } => self.take_kernel(&event, comm, has_time, dialect),
            Line::Message { event, text } => {
                self.in_summary = false;
                self.begin(&event, None, dialect);
                let text = String::from_utf8_lossy(text).into();
                self.counts.messages += 1;
                let said = Said::Message(text);
                self.counts.reordered += u64::from(self.window.push(Held::new(event, said)));
            }
            Line::Lost(events) => {
                self.counts.gaps += 1;
                self.counts.lost = self.counts.lost.saturating_add(events);
            }
            Line::OtherEvent(name) => {
                self.counts.other_event(name);
            }
            Line::Elided => {
                self.counts.elided += 1;
                self.recording.interrupted();
            }
            Line::Blank => self.recording.interrupted(),
            Line::Note { begins_summary } => {
                self.in_summary |= begins_summary;
                self.counts.notes += 1;
                self.recording.interrupted();
            }
            Line::Incomplete(_) | Line::Damaged(_) | Line::Other(_) if self.in_summary => {
                self.counts.notes += 1;
            }
            Line::Incomplete(problem) | Line::Damaged(problem) => {
                self.damaged(self.line_number, problem, len);
            }
            Line::Other(problem) => {
                self.recording.interrupted();
                self.counts.foreign += 1;
                self.counts.skipped_bytes += len as u64;
                let (name, line) = (&self.name, self.line_number);
                self.counts.example(|| format!("{name}:{line}: {problem}"));
            }
        }
    }

    /// Puts a stack that has ended in its place, behind its event.
    #[inline]
    fn end_stack(&mut self) {
        if let Some(stack) = self.frames.end() {
            self.counts.stacks += 1;
            self.window.push(stack);
        }
    }

    /// An event of another part of the kernel.
    fn take_kernel(
        &mut self,
        event: &KernelEvent,
        comm: Option<&[u8]>,
        has_time: bool,
        dialect: usize,
    ) {
        self.in_summary = false;
        self.counts.untimed += u64::from(!has_time);
        let held = Held::kernel(event, comm.map(names::comm));
        self.begin(&held.event, None, dialect);
        self.counts.kernel_events += 1;
        let is_late = self.window.push(held);
        self.counts.reordered += u64::from(is_late);
    }

    /// The events of an I/O.
    fn take_io(&mut self, io: &Io<'_>, dialect: usize) {
        self.in_summary = false;
        let comm = io.comm.map(names::comm);
        let mut event = io.event;
        self.counts.untimed += u64::from(!io.has_time);
        if let Some(last) = io.times.iter().flatten().last() {
            event.time = Time(*last as u64);
            self.begin(&event, io.sequence, dialect);
        }
        if let Some(sequence) = io.sequence {
            self.sequences
                .check(event.cpu, event.dev, sequence, &mut self.counts);
        }
        let actions = [
            Action::Queue,
            Action::Insert,
            Action::Issue,
            Action::Complete,
        ];
        for (action, time) in actions.into_iter().zip(io.times) {
            if let Some(time) = time {
                let is_end = action == Action::Complete;
                let event = Event {
                    time: Time(time as u64),
                    action,
                    error: if is_end { event.error } else { 0 },
                    ..event
                };
                // The line has the number of its last event.
                let sequence = io.sequence.filter(|_| is_end);
                self.push(event, comm, sequence, false);
            }
        }
    }

    /// An event: perhaps the first one of another recording.
    #[inline]
    fn begin(&mut self, event: &Event, sequence: Option<u32>, dialect: usize) {
        let at_ns = event.time.0 as i64;
        let mut is_new = if self.is_mailed {
            let of_device = || self.sequences.last(event.cpu, event.dev);
            self.recording.event(event.cpu, sequence, of_device, at_ns)
        } else {
            self.recording.row(at_ns)
        };
        if dialect != self.last_dialect {
            is_new |= self.counts.events + self.counts.kernel_events > 0;
            self.last_dialect = dialect;
        }
        if is_new {
            self.sequences = TextSequences::default();
            let (event, said) = (*event, Said::NewRecording);
            self.window.close(Held::new(event, said));
        }
    }

    #[inline]
    fn push(
        &mut self,
        event: Event,
        comm: Option<names::Comm>,
        sequence: Option<u32>,
        is_in_order: bool,
    ) {
        let (name, number) = (&self.name, self.line_number);
        let place = || format!("{name}:{number}");
        plausible::check(&event, &mut self.counts, place);
        self.counts.events += 1;
        let said = comm.map_or(Said::Event, Said::Named);
        let is_late = self.window.push(Held {
            event,
            said,
            sequence: sequence.unwrap_or(0),
        });
        self.counts.reordered += u64::from(is_late && is_in_order);
    }

    #[cold]
    fn damaged(&mut self, line: u64, problem: &str, len: usize) {
        self.counts.damaged += 1;
        self.counts.skipped_bytes += len as u64;
        let name = &self.name;
        self.counts.example(|| format!("{name}:{line}: {problem}"));
    }
}
