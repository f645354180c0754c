// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading blkparse's default text, whole or quoted in mail.

use super::parse::{Line, parse};
use crate::input::Input;
use crate::names::Names;
use crate::plausible;
use crate::sequence::Sequences;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Event, Item, TraceSource};
use blklab_types::Time;
use std::io::Read;

/// Longest line that is believed.
const LINE_BYTES_MAX: usize = 128 * 1024;

/// Reads what blkparse prints by default; accepts quoting (`> `), places
/// where lines were left out (`...`), a missing summary, and the elapsed
/// times of `-t`.
///
/// Names of processes come from the `[comm]` of the lines. Times are as
/// printed, from the first event of the original trace. Sectors of events
/// without data are not in the text and read as 0.
#[derive(Debug)]
pub struct BlkparseReader<R> {
    input: Input<R>,
    line_number: u64,
    in_summary: bool,
    names: Names,
    sequences: Sequences,
    /// The event whose process's name was given just before it.
    pending: Option<Event>,
    last_time: Time,
    text: String,
    counts: ReadCounts,
}

/// What became of a line.
enum Taken {
    Event { event: Event, name_is_new: bool },
    Message(Event),
    Nothing,
}

impl<R: Read> BlkparseReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> BlkparseReader<R> {
        BlkparseReader::from_input(Input::new(inner, name))
    }

    /// As [`BlkparseReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> BlkparseReader<R> {
        BlkparseReader {
            input,
            line_number: 0,
            in_summary: false,
            names: Names::default(),
            sequences: Sequences::default(),
            pending: None,
            last_time: Time::ZERO,
            text: String::new(),
            counts: ReadCounts::default(),
        }
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
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
        self.line_number += 1;
        let line = &self.input.available()[..len];
        if len > LINE_BYTES_MAX {
            return self.damaged("line too long", len);
        }
        match parse(line) {
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
                self.sequences.check(event.cpu, sequence, &mut self.counts);
                self.check_time(event.time);
                let (name, number) = (&self.input.name, self.line_number);
                let place = || format!("{name}:{number}");
                plausible::check(&event, &mut self.counts, place);
                self.counts.events += 1;
                Taken::Event { event, name_is_new }
            }
            Line::Message { event, text } => {
                self.in_summary = false;
                self.text.clear();
                self.text.push_str(&String::from_utf8_lossy(text));
                self.check_time(event.time);
                self.counts.messages += 1;
                Taken::Message(event)
            }
            Line::Elided => {
                self.counts.elided += 1;
                Taken::Nothing
            }
            Line::Blank => Taken::Nothing,
            Line::Note { begins_summary } => {
                self.in_summary |= begins_summary;
                self.counts.notes += 1;
                Taken::Nothing
            }
            Line::Other(_) if self.in_summary => {
                self.counts.notes += 1;
                Taken::Nothing
            }
            Line::Other(problem) => self.damaged(problem, len),
        }
    }

    fn damaged(&mut self, problem: &str, len: usize) -> Taken {
        self.counts.damaged += 1;
        self.counts.skipped_bytes += len as u64;
        let (name, line) = (&self.input.name, self.line_number);
        self.counts.example(|| format!("{name}:{line}: {problem}"));
        Taken::Nothing
    }

    fn check_time(&mut self, time: Time) {
        self.counts.backwards += u64::from(time < self.last_time);
        self.last_time = time;
    }
}

impl<R: Read> TraceSource for BlkparseReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(event) = self.pending.take() {
            return Ok(Some(Item::Event(event)));
        }
        loop {
            let Some((len, total)) = self.next_line()? else {
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
                    self.pending = Some(event);
                    self.counts.processes += 1;
                    let Event { time, pid, .. } = event;
                    return Ok(Some(Item::Process {
                        time,
                        pid,
                        comm: &self.text,
                    }));
                }
                Taken::Message(event) => return Ok(Some(Item::Message(event, &self.text))),
                Taken::Nothing => {}
            }
        }
    }
}
