// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace event: what a kernel can record about one I/O, and nothing else.
//!
//! Simulated runs, imported files and real kernels all end in this stream;
//! analysis sees only it. What only a simulator knows goes to a separate
//! stream of [`truth::Truth`] records that tests and conformance checks read.

mod actions;
mod counters;
mod digest;
mod event;
mod group;
mod kernel;
mod source;
mod tracer;
pub mod truth;
mod waits;

pub use actions::Actions;
pub use counters::{Counter, CounterSink};
pub use digest::{Digest, DigestSink};
pub use event::{Action, Event, Rwbs};
pub use group::{GroupPath, GroupShare};
pub use kernel::{
    CommitStep, IclogStep, KernelEvent, MmcRequest, NvmeCommand, POINTS, Part, Point, ScsiCommand,
    ScsiResult, TaskState, Tracepoint, WbtStatus, WritebackReason, WritebackStep,
};
pub use source::{Item, OrderCheck, TraceSource};
pub use tracer::Tracer;
pub use waits::{Label, WaitLabels, Waited};

use blklab_types::{Dev, Pid, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Consumer of trace events, in order of time.
///
/// Every method is infallible: a sink that writes a file keeps its first
/// error and reports it when it is finished.
pub trait TraceSink {
    /// One event.
    fn event(&mut self, event: &Event);

    /// Several events, in order.
    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.event(event);
        }
    }

    /// Whether events are of any use: if not, nobody writes them.
    fn wants_events(&self) -> bool {
        true
    }

    /// A text message of the scheduler or another part (`m` events). The
    /// event carries time, cpu, device and pid.
    fn message(&mut self, event: &Event, text: &str) {
        let _ = (event, text);
    }

    /// Whether [`TraceSink::message`] is of any use: if not, nobody writes
    /// messages.
    fn wants_messages(&self) -> bool {
        false
    }

    /// Something that another part of the kernel did: the journal, write-back, a driver.
    /// Where a trace has these, they are in order of time with the events.
    fn kernel_event(&mut self, event: &KernelEvent) {
        let _ = event;
    }

    /// The functions of the kernel through which a task came to its last event, where a recorder
    /// has kept them: their names, the innermost first, with [`BETWEEN_FRAMES`] between them.
    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        let _ = (time, pid, functions);
    }

    /// From now on `pid` is known as `comm` (at most 15 bytes are shown).
    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        let _ = (time, pid, comm);
    }

    /// Another recording begins, as in a mail that quotes two: nothing that is
    /// under way is heard of again, and times may begin anew.
    fn new_recording(&mut self) {}
}

/// What stands between the functions of a stack, each of which is called by the next.
pub const BETWEEN_FRAMES: &str = " < ";

/// What a trace says about itself, once, before the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// Device whose queue was traced, with the name a user would call it.
    pub devices: Vec<(Dev, String)>,
    /// Number of CPUs that may appear in events.
    pub nr_cpus: u16,
    /// Kernel release that recorded or was modelled, e.g. `2.6.28`.
    pub kernel: String,
    /// Free text: the experiment, seed and version that made the trace.
    pub origin: String,
    /// The kinds of events that its recorder writes down. That there is none of
    /// another kind says nothing. A trace that has only the beginning, the end
    /// and the place of each I/O has the events that follow from them, and names
    /// here what was really observed.
    pub recorded: Actions,
}

/// A sink that keeps nothing: for benchmarks and for runs without a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl TraceSink for NullSink {
    fn event(&mut self, _: &Event) {}

    fn wants_events(&self) -> bool {
        false
    }
}

impl<S: TraceSink + ?Sized> TraceSink for &mut S {
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn events(&mut self, events: &[Event]) {
        (**self).events(events);
    }

    fn wants_events(&self) -> bool {
        (**self).wants_events()
    }

    fn message(&mut self, event: &Event, text: &str) {
        (**self).message(event, text);
    }

    fn wants_messages(&self) -> bool {
        (**self).wants_messages()
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        (**self).kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        (**self).stack(time, pid, functions);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        (**self).process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        (**self).new_recording();
    }
}

/// A handle that a machine can own while somebody else keeps the sink.
impl<S: TraceSink> TraceSink for Rc<RefCell<S>> {
    fn event(&mut self, event: &Event) {
        self.borrow_mut().event(event);
    }

    fn events(&mut self, events: &[Event]) {
        self.borrow_mut().events(events);
    }

    fn wants_events(&self) -> bool {
        self.borrow().wants_events()
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.borrow_mut().message(event, text);
    }

    fn wants_messages(&self) -> bool {
        self.borrow().wants_messages()
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.borrow_mut().kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.borrow_mut().stack(time, pid, functions);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.borrow_mut().process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.borrow_mut().new_recording();
    }
}

/// Both get everything, the first one first.
impl<A: TraceSink, B: TraceSink> TraceSink for (A, B) {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }

    fn wants_events(&self) -> bool {
        self.0.wants_events() || self.1.wants_events()
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.0.message(event, text);
        self.1.message(event, text);
    }

    fn wants_messages(&self) -> bool {
        self.0.wants_messages() || self.1.wants_messages()
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.0.kernel_event(event);
        self.1.kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.0.stack(time, pid, functions);
        self.1.stack(time, pid, functions);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.0.process(time, pid, comm);
        self.1.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.0.new_recording();
        self.1.new_recording();
    }
}

/// Gets everything if it is there.
impl<S: TraceSink> TraceSink for Option<S> {
    fn event(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }

    fn wants_events(&self) -> bool {
        self.as_ref().is_some_and(TraceSink::wants_events)
    }

    fn message(&mut self, event: &Event, text: &str) {
        if let Some(sink) = self {
            sink.message(event, text);
        }
    }

    fn wants_messages(&self) -> bool {
        self.as_ref().is_some_and(TraceSink::wants_messages)
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        if let Some(sink) = self {
            sink.kernel_event(event);
        }
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        if let Some(sink) = self {
            sink.stack(time, pid, functions);
        }
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        if let Some(sink) = self {
            sink.process(time, pid, comm);
        }
    }

    fn new_recording(&mut self) {
        if let Some(sink) = self {
            sink.new_recording();
        }
    }
}

impl TraceSink for Vec<Event> {
    fn event(&mut self, event: &Event) {
        self.push(*event);
    }
}
