// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the block layer writes its events to: they go to the sink in batches, so that
//! an event costs its writer a few stores and its readers find many at a time.

use crate::{Event, TraceSink};
use blklab_types::{Pid, Time};

/// Events of a batch: so few that they are still in the processor's first cache when
/// they are read.
const BATCH_EVENTS: usize = 256;

/// Collects events for a sink, which gets them all, in order, by
/// [`Tracer::hand_over`] at the latest.
pub struct Tracer {
    sink: Box<dyn TraceSink>,
    batch: Vec<Event>,
    /// Events of a whole batch.
    full: usize,
    wants_events: bool,
    wants_messages: bool,
}

impl Tracer {
    /// For a sink that takes batches.
    pub fn new(sink: Box<dyn TraceSink>) -> Tracer {
        Tracer::with_batches_of(BATCH_EVENTS, sink)
    }

    /// For a sink that is to get each event at once, because it joins them with another
    /// stream.
    pub fn at_once(sink: Box<dyn TraceSink>) -> Tracer {
        Tracer::with_batches_of(1, sink)
    }

    fn with_batches_of(full: usize, sink: Box<dyn TraceSink>) -> Tracer {
        Tracer {
            wants_events: sink.wants_events(),
            wants_messages: sink.wants_messages(),
            sink,
            batch: Vec::with_capacity(full),
            full,
        }
    }

    /// One event, if the sink reads any.
    #[inline]
    pub fn event(&mut self, event: Event) {
        if !self.wants_events {
            return;
        }
        self.batch.push(event);
        if self.batch.len() == self.full {
            self.hand_over();
        }
    }

    /// A text message, see [`TraceSink::message`].
    pub fn message(&mut self, event: &Event, text: &str) {
        self.hand_over();
        self.sink.message(event, text);
    }

    /// Whether the sink reads events.
    #[inline]
    pub fn wants_events(&self) -> bool {
        self.wants_events
    }

    /// Whether the sink reads messages.
    #[inline]
    pub fn wants_messages(&self) -> bool {
        self.wants_messages
    }

    /// From now on `pid` is known as `comm`.
    pub fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.hand_over();
        self.sink.process(time, pid, comm);
    }

    /// The sink gets what it has not got yet.
    #[cold]
    pub fn hand_over(&mut self) {
        self.sink.events(&self.batch);
        self.batch.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Rwbs};
    use blklab_types::Dev;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn event(sector: u64) -> Event {
        Event {
            time: Time(sector),
            sector,
            arg: 0,
            bytes: 4096,
            pid: 1,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action: Action::Queue,
        }
    }

    /// Says what it is told, in order.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl TraceSink for Told {
        fn event(&mut self, event: &Event) {
            self.0.push(event.sector.to_string());
        }

        fn message(&mut self, _: &Event, text: &str) {
            self.0.push(text.to_owned());
        }

        fn process(&mut self, _: Time, _: Pid, comm: &str) {
            self.0.push(comm.to_owned());
        }
    }

    #[test]
    fn the_sink_gets_everything_in_order() {
        let told = Rc::new(RefCell::new(Told::default()));
        let mut tracer = Tracer::new(Box::new(Rc::clone(&told)));
        tracer.event(event(1));
        assert!(told.borrow().0.is_empty());
        tracer.process(Time(2), 7, "cat");
        tracer.event(event(3));
        tracer.message(&event(4), "idle");
        tracer.event(event(5));
        tracer.hand_over();
        tracer.hand_over();
        assert_eq!(told.borrow().0, ["1", "cat", "3", "idle", "5"]);
        (0..BATCH_EVENTS as u64).for_each(|n| tracer.event(event(n)));
        assert_eq!(told.borrow().0.len(), 5 + BATCH_EVENTS);
    }

    /// Counts what it is told although it reads no events.
    #[derive(Default)]
    struct Deaf(usize);

    impl TraceSink for Deaf {
        fn event(&mut self, _: &Event) {
            self.0 += 1;
        }

        fn wants_events(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_sink_that_reads_no_events_is_told_none() {
        let deaf = Rc::new(RefCell::new(Deaf::default()));
        let mut tracer = Tracer::at_once(Box::new(Rc::clone(&deaf)));
        tracer.event(event(1));
        tracer.hand_over();
        assert_eq!(deaf.borrow().0, 0);
    }

    #[test]
    fn at_once_is_at_once() {
        let told = Rc::new(RefCell::new(Told::default()));
        let mut tracer = Tracer::at_once(Box::new(Rc::clone(&told)));
        tracer.event(event(1));
        assert_eq!(told.borrow().0, ["1"]);
    }
}
