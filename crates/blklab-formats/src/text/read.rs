// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a trace in text, whole or quoted in mail.

use super::{Line, unquoted};
use crate::input::Input;
use crate::names::Names;
use crate::plausible;
use crate::sequence::Sequences;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Event, Item};
use blklab_types::Time;
use std::io::Read;

/// Longest line that is believed.
const LINE_BYTES_MAX: usize = 128 * 1024;
/// Lines into which a mail wraps an event, at most.
const WRAPPED_LINES_MAX: u32 = 3;

/// A kind of text.
pub(crate) trait Dialect: Default {
    /// Takes a line apart.
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a>;
}

/// Reads text of a dialect. Names of processes come from the lines.
#[derive(Debug)]
pub(crate) struct TextReader<R, D> {
    dialect: D,
    input: Input<R>,
    /// The beginning of an event that may go on in the next line.
    wrapped: Wrapped,
    found: Found,
}

/// Lines that may be one.
#[derive(Debug, Default)]
struct Wrapped {
    text: Vec<u8>,
    nr_lines: u32,
    /// Number of the first.
    line_number: u64,
    /// What is wrong if they are not.
    problem: &'static str,
}

/// What was found so far.
#[derive(Debug)]
struct Found {
    /// What to call the input in examples.
    name: String,
    line_number: u64,
    in_summary: bool,
    names: Names,
    sequences: Sequences,
    /// The event whose process's name was given just before it.
    pending: Option<Event>,
    last_time: Time,
    /// The last name or message.
    text: String,
    counts: ReadCounts,
}

/// What became of a line.
enum Taken {
    Event { event: Event, name_is_new: bool },
    Message(Event),
    Nothing,
}

impl<R: Read, D: Dialect> TextReader<R, D> {
    /// Reads from `input`.
    pub(crate) fn new(input: Input<R>) -> TextReader<R, D> {
        TextReader {
            dialect: D::default(),
            found: Found {
                name: input.name.clone(),
                line_number: 0,
                in_summary: false,
                names: Names::default(),
                sequences: Sequences::default(),
                pending: None,
                last_time: Time::ZERO,
                text: String::new(),
                counts: ReadCounts::default(),
            },
            input,
            wrapped: Wrapped::default(),
        }
    }

    /// What was found so far; complete after the last item.
    pub(crate) fn counts(&self) -> &ReadCounts {
        &self.found.counts
    }

    /// The next item.
    pub(crate) fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(event) = self.found.pending.take() {
            return Ok(Some(Item::Event(event)));
        }
        loop {
            let Some((len, total)) = self.next_line()? else {
                self.wrapped.give_up(&mut self.found);
                return Ok(None);
            };
            let taken = self.take_line(len);
            self.input.skip(total);
            match taken {
                Taken::Event {
                    event,
                    name_is_new: false,
                } => return Ok(Some(Item::Event(event))),
                Taken::Event {
                    event,
                    name_is_new: true,
                } => {
                    let found = &mut self.found;
                    found.pending = Some(event);
                    found.counts.processes += 1;
                    return Ok(Some(Item::Process {
                        time: event.time,
                        pid: event.pid,
                        comm: &found.text,
                    }));
                }
                Taken::Message(event) => return Ok(Some(Item::Message(event, &self.found.text))),
                Taken::Nothing => {}
            }
        }
    }

    /// Makes the next line available: its length, without and with its end.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, FormatError> {
        let mut looked_at = 0;
        loop {
            let have = self.input.available();
            if let Some(at) = have[looked_at..].iter().position(|b| *b == b'\n') {
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

    fn take_line(&mut self, len: usize) -> Taken {
        self.found.line_number += 1;
        if len > LINE_BYTES_MAX {
            return self.found.line_is_damaged("line too long", len);
        }
        let bytes = &self.input.available()[..len];
        let line = self.dialect.parse(bytes);
        if self.wrapped.nr_lines > 0 && matches!(line, Line::Other(_)) {
            self.wrapped.add(bytes);
            match self.dialect.parse(&self.wrapped.text) {
                joined @ (Line::Event { .. } | Line::OtherEvent) => {
                    let taken = self.found.take(joined, len);
                    self.wrapped.clear();
                    return taken;
                }
                Line::Incomplete(_) if self.wrapped.nr_lines < WRAPPED_LINES_MAX => {
                    return Taken::Nothing;
                }
                _ => {}
            }
        }
        self.wrapped.give_up(&mut self.found);
        if let (Line::Incomplete(problem), false) = (&line, self.found.in_summary) {
            self.wrapped.problem = problem;
            self.wrapped.line_number = self.found.line_number;
            self.wrapped.add(bytes);
            return Taken::Nothing;
        }
        self.found.take(line, len)
    }
}

impl Wrapped {
    fn add(&mut self, line: &[u8]) {
        if self.nr_lines > 0 {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(unquoted(line));
        self.nr_lines += 1;
    }

    /// What was held is no event.
    fn give_up(&mut self, found: &mut Found) {
        if self.nr_lines > 0 {
            found.damaged(self.line_number, self.problem, self.text.len());
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.nr_lines = 0;
    }
}

impl Found {
    fn take(&mut self, line: Line<'_>, len: usize) -> Taken {
        match line {
            Line::Event {
                event,
                sequence,
                comm,
            } => {
                self.in_summary = false;
                let mut name_is_new = false;
                if let Some(comm) = comm.filter(|c| *c != b"(null)") {
                    name_is_new = self.names.change(event.pid, comm);
                    if name_is_new {
                        self.text.clear();
                        self.text.push_str(&String::from_utf8_lossy(comm));
                    }
                }
                if let Some(sequence) = sequence {
                    self.sequences.check(event.cpu, sequence, &mut self.counts);
                }
                self.check_time(event.time);
                let (name, number) = (&self.name, self.line_number);
                let place = || format!("{name}:{number}");
                plausible::check(&event, &mut self.counts, place);
                self.counts.events += 1;
                return Taken::Event { event, name_is_new };
            }
            Line::Message { event, text } => {
                self.in_summary = false;
                self.text.clear();
                self.text.push_str(&String::from_utf8_lossy(text));
                self.check_time(event.time);
                self.counts.messages += 1;
                return Taken::Message(event);
            }
            Line::Lost(events) => {
                self.counts.gaps += 1;
                self.counts.lost = self.counts.lost.saturating_add(events);
            }
            Line::OtherEvent => self.counts.other_events += 1,
            Line::Elided => self.counts.elided += 1,
            Line::Blank => {}
            Line::Note { begins_summary } => {
                self.in_summary |= begins_summary;
                self.counts.notes += 1;
            }
            Line::Incomplete(_) | Line::Other(_) if self.in_summary => self.counts.notes += 1,
            Line::Incomplete(problem) | Line::Other(problem) => {
                return self.line_is_damaged(problem, len);
            }
        }
        Taken::Nothing
    }

    fn line_is_damaged(&mut self, problem: &str, len: usize) -> Taken {
        self.damaged(self.line_number, problem, len);
        Taken::Nothing
    }

    fn damaged(&mut self, line: u64, problem: &str, len: usize) {
        self.counts.damaged += 1;
        self.counts.skipped_bytes += len as u64;
        let name = &self.name;
        self.counts.example(|| format!("{name}:{line}: {problem}"));
    }

    fn check_time(&mut self, time: Time) {
        self.counts.backwards += u64::from(time < self.last_time);
        self.last_time = time;
    }
}
