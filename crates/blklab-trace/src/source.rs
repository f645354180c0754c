// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces read back: one item at a time, in the order of the file.

use crate::{Event, KernelEvent, TraceSink};
use blklab_types::{Pid, Time};

/// One thing that a trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event),
    /// A message, with the event that carries time, cpu and device.
    Message(Event, &'a str),
    /// An event of another part of the kernel.
    Kernel(KernelEvent),
    /// How a task came to its last event: see [`TraceSink::stack`].
    Stack {
        /// When it was looked at.
        time: Time,
        /// Which task.
        pid: Pid,
        /// The names of functions, the innermost first.
        functions: &'a str,
    },
    /// From now on the process has this name.
    Process {
        /// Since when.
        time: Time,
        /// Which process.
        pid: Pid,
        /// Its name.
        comm: &'a str,
    },
    /// What follows was recorded another time: see
    /// [`TraceSink::new_recording`].
    NewRecording,
}

impl Item<'_> {
    /// Hands the item to the method of `sink` that is meant for it.
    pub fn send_to(&self, sink: &mut dyn TraceSink) {
        match *self {
            Item::Event(ref event) => sink.event(event),
            Item::Message(ref event, text) => sink.message(event, text),
            Item::Kernel(ref event) => sink.kernel_event(event),
            Item::Stack {
                time,
                pid,
                functions,
            } => sink.stack(time, pid, functions),
            Item::Process { time, pid, comm } => sink.process(time, pid, comm),
            Item::NewRecording => sink.new_recording(),
        }
    }
}

/// Something that a trace can be read from. Memory is bounded whatever the
/// length of the trace; the text of an item lives until the next call.
pub trait TraceSource {
    /// Why reading can stop early.
    type Error;

    /// The next item, or `None` at the end.
    ///
    /// # Errors
    /// When the input cannot be read on. Damaged records are no error: the
    /// source skips and counts them.
    fn next_item(&mut self) -> Result<Option<Item<'_>>, Self::Error>;

    /// Everything that is left, in order.
    ///
    /// # Errors
    /// As [`TraceSource::next_item`]; what came before has been sent.
    fn send_all(&mut self, sink: &mut dyn TraceSink) -> Result<(), Self::Error> {
        while let Some(item) = self.next_item()? {
            item.send_to(sink);
        }
        Ok(())
    }
}

/// Passes a stream on and counts what a [`TraceSink`] must not be given:
/// events before the one that went ahead of them.
#[derive(Debug, Default)]
pub struct OrderCheck<S> {
    /// Where the events go.
    pub inner: S,
    /// Events with a time before that of their predecessor.
    pub nr_backwards: u64,
    last: Time,
}

impl<S: TraceSink> OrderCheck<S> {
    /// In front of `inner`.
    pub fn new(inner: S) -> OrderCheck<S> {
        OrderCheck {
            inner,
            nr_backwards: 0,
            last: Time::ZERO,
        }
    }

    fn check(&mut self, time: Time) {
        self.nr_backwards += u64::from(time < self.last);
        self.last = time;
    }
}

impl<S: TraceSink> TraceSink for OrderCheck<S> {
    fn event(&mut self, event: &Event) {
        self.check(event.time);
        self.inner.event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.check(event.time);
        self.inner.message(event, text);
    }

    fn wants_messages(&self) -> bool {
        self.inner.wants_messages()
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.check(event.time);
        self.inner.kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.inner.stack(time, pid, functions);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.inner.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.last = Time::ZERO;
        self.inner.new_recording();
    }
}
