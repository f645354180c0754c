// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of events in a text: lines of several CPUs are often not in that
//! of time, and a line about a whole I/O tells its beginning when it is over.

use crate::names::Comm;
use blklab_trace::{Event, KernelEvent, Tracepoint};
use blklab_types::{Dev, Pid, Time};
use std::collections::VecDeque;

/// What waits for its turn.
#[derive(Debug)]
pub(crate) enum Said {
    /// An event.
    Event,
    /// An event, and the name of its process.
    Named(Comm),
    /// A message.
    Message(Box<str>),
    /// An event of another part of the kernel, and the name of its process.
    Kernel(Box<(Tracepoint, Option<Comm>)>),
    /// The functions through which the task came to its last event.
    Stack(Box<str>),
    /// Another recording begins.
    NewRecording,
}

/// Something of which the text told, and its time in the bits of the event.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) event: Event,
    pub(crate) said: Said,
    /// The number that its recorder gave it; 0 where there is none.
    pub(crate) sequence: u32,
}

impl Held {
    /// Without a number.
    pub(crate) fn new(event: Event, said: Said) -> Held {
        Held {
            event,
            said,
            sequence: 0,
        }
    }

    /// An event of another part of the kernel, its place in the order in an event without
    /// a sector.
    pub(crate) fn kernel(event: &KernelEvent, comm: Option<Comm>) -> Held {
        Held {
            event: Event::message(event.time, event.cpu, event.pid, event.dev),
            said: Said::Kernel(Box::new((event.point, comm))),
            sequence: 0,
        }
    }

    /// The stack of a task, its place in the order likewise.
    pub(crate) fn stack(time: Time, pid: Pid, cpu: u16, functions: String) -> Held {
        Held::new(
            Event::message(time, cpu, pid, Dev::default()),
            Said::Stack(functions.into()),
        )
    }

    pub(crate) fn at_ns(&self) -> i64 {
        self.event.time.0 as i64
    }
}

/// Events in order of time, within each recording. Those of one time stay in the
/// order of the text.
#[derive(Debug, Default)]
pub(crate) struct Window {
    entries: VecDeque<Held>,
    /// Entries up to the beginning of the last recording: nothing is put among
    /// them.
    nr_closed: usize,
}

impl Window {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Puts an event in its place; says whether others of later times were
    /// there.
    #[inline]
    pub(crate) fn push(&mut self, held: Held) -> bool {
        let is_late = match self.entries.back() {
            Some(last) => self.nr_closed < self.entries.len() && last.at_ns() > held.at_ns(),
            None => false,
        };
        if !is_late {
            self.entries.push_back(held);
            return false;
        }
        let (mut low, mut high) = (self.nr_closed, self.entries.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.entries[middle].at_ns() <= held.at_ns() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.entries.insert(low, held);
        true
    }

    /// What comes from now on is of another recording.
    pub(crate) fn close(&mut self, mark: Held) {
        self.entries.push_back(mark);
        self.nr_closed = self.entries.len();
    }

    /// What is first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Held> {
        let held = self.entries.pop_front();
        self.nr_closed = self.nr_closed.saturating_sub(1);
        held
    }
}
