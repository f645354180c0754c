// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream of trace events from one thread to another, in its order, so that who makes
//! the events and who makes something of them have a processor each.

use blklab_trace::{Event, KernelEvent, TraceSink, TraceSource};
use blklab_types::{Pid, Time};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// What is handed over at a time: so many events and other things.
const BATCH: usize = 1024;

/// Batches on their way before who makes them waits: there are to be no more in memory
/// than a processor's cache holds.
const BATCHES: usize = 8;

/// A piece of the stream.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    /// What comes between events: before which of them, in order.
    between: Vec<(usize, Between)>,
}

/// What is no event of the block layer.
enum Between {
    Message(Event, String),
    Kernel(KernelEvent),
    Stack(Time, Pid, String),
    Process(Time, Pid, String),
    NewRecording,
}

impl Batch {
    fn len(&self) -> usize {
        self.events.len() + self.between.len()
    }

    /// Passes everything on, and is empty then.
    fn pass_on(&mut self, sink: &mut dyn TraceSink) {
        let mut from = 0;
        for (before, between) in self.between.drain(..) {
            sink.events(&self.events[from..before]);
            from = before;
            match between {
                Between::Message(event, text) => sink.message(&event, &text),
                Between::Kernel(event) => sink.kernel_event(&event),
                Between::Stack(time, pid, functions) => sink.stack(time, pid, &functions),
                Between::Process(time, pid, comm) => sink.process(time, pid, &comm),
                Between::NewRecording => sink.new_recording(),
            }
        }
        sink.events(&self.events[from..]);
        self.events.clear();
    }
}

/// The two ends of a relay.
pub(crate) fn relay() -> (Teller, Listener) {
    let (told, hears) = sync_channel(BATCHES);
    let (gives_back, empty) = channel();
    let teller = Teller {
        batch: Batch::default(),
        told,
        empty,
    };
    (teller, Listener { hears, gives_back })
}

/// The end of who makes the events. Dropped, it ends the stream.
pub(crate) struct Teller {
    batch: Batch,
    told: SyncSender<Batch>,
    /// Batches that the other end is done with.
    empty: Receiver<Batch>,
}

impl Teller {
    fn between(&mut self, between: Between) {
        self.batch.between.push((self.batch.events.len(), between));
        self.hand_over_if_full();
    }

    #[inline]
    fn hand_over_if_full(&mut self) {
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let empty = self.empty.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, empty);
        // A listener that is not there any more has panicked: its thread says so.
        let _ = self.told.send(batch);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl TraceSink for Teller {
    fn event(&mut self, event: &Event) {
        self.batch.events.push(*event);
        self.hand_over_if_full();
    }

    fn events(&mut self, events: &[Event]) {
        self.batch.events.extend_from_slice(events);
        self.hand_over_if_full();
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.between(Between::Message(*event, text.to_owned()));
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.between(Between::Kernel(*event));
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.between(Between::Stack(time, pid, functions.to_owned()));
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.between(Between::Process(time, pid, comm.to_owned()));
    }

    fn new_recording(&mut self) {
        self.between(Between::NewRecording);
    }
}

/// The end of who makes something of the events.
pub(crate) struct Listener {
    hears: Receiver<Batch>,
    gives_back: Sender<Batch>,
}

impl Listener {
    /// Passes everything on until the stream ends.
    pub(crate) fn pass_on(self, sink: &mut dyn TraceSink) {
        for mut batch in self.hears {
            batch.pass_on(sink);
            // The stream may have ended.
            let _ = self.gives_back.send(batch);
        }
    }
}

/// Everything that is left in a trace, as [`TraceSource::send_all`]. Where there is more
/// than one processor, it is read and decoded beside what `sink` does.
///
/// # Errors
/// When it cannot be read; what came before has been sent.
pub fn send_all<R>(source: &mut R, sink: &mut dyn TraceSink) -> Result<(), R::Error>
where
    R: TraceSource + Send,
    R::Error: Send,
{
    if !std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
        return source.send_all(sink);
    }
    std::thread::scope(|scope| {
        let (mut teller, listener) = relay();
        let reading = scope.spawn(move || source.send_all(&mut teller));
        listener.pass_on(sink);
        match reading.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::{Action, CommitStep, Item, Rwbs, Tracepoint};
    use blklab_types::Dev;

    /// Everything that it is told, as text.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl TraceSink for Log {
        fn event(&mut self, event: &Event) {
            self.0.push(format!("event {}", event.time.ns()));
        }

        fn message(&mut self, event: &Event, text: &str) {
            self.0.push(format!("message {} {text}", event.time.ns()));
        }

        fn kernel_event(&mut self, event: &KernelEvent) {
            self.0.push(format!("kernel {}", event.time.ns()));
        }

        fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
            self.0
                .push(format!("stack {} {pid} {functions}", time.ns()));
        }

        fn process(&mut self, time: Time, pid: Pid, comm: &str) {
            self.0.push(format!("process {} {pid} {comm}", time.ns()));
        }

        fn new_recording(&mut self) {
            self.0.push("new recording".to_owned());
        }
    }

    /// So many items of all kinds, then perhaps an error.
    struct Made {
        nr: u64,
        at: u64,
        fails: bool,
    }

    impl TraceSource for Made {
        type Error = &'static str;

        fn next_item(&mut self) -> Result<Option<Item<'_>>, &'static str> {
            if self.at == self.nr {
                return if self.fails { Err("torn") } else { Ok(None) };
            }
            self.at += 1;
            let time = Time(self.at);
            let event = Event {
                time,
                sector: 0,
                arg: 0,
                bytes: 512,
                pid: 7,
                dev: Dev::default(),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: Rwbs::default(),
                action: Action::Queue,
            };
            let kernel = KernelEvent {
                time,
                pid: 7,
                dev: Dev::default(),
                cpu: 0,
                point: Tracepoint::Commit {
                    step: CommitStep::Start,
                    tid: 1,
                },
            };
            Ok(Some(match self.at % 701 {
                3 => Item::Message(event, "cfq slice expired"),
                5 => Item::Process {
                    time,
                    pid: 7,
                    comm: "ls",
                },
                7 => Item::Stack {
                    time,
                    pid: 7,
                    functions: "submit_bio",
                },
                9 => Item::NewRecording,
                11 | 12 => Item::Kernel(kernel),
                _ => Item::Event(event),
            }))
        }
    }

    #[test]
    fn everything_arrives_in_order() {
        for nr in [0, 1, 3, BATCH as u64, 10_000, 50_000] {
            for fails in [false, true] {
                let made = || Made { nr, at: 0, fails };
                let (mut straight, mut passed_on) = (Log::default(), Log::default());
                let expected = made().send_all(&mut straight);
                assert_eq!(send_all(&mut made(), &mut passed_on), expected);
                assert_eq!(passed_on.0, straight.0);
                assert_eq!(straight.0.len() as u64, nr);
            }
        }
    }

    /// Who makes something of the events may fail: the reader's thread does not wait for it.
    #[test]
    fn a_listener_that_panics_ends_the_reading() {
        struct Panics;
        impl TraceSink for Panics {
            fn event(&mut self, event: &Event) {
                assert!(event.time < Time(100), "it is late");
            }
        }
        let mut made = Made {
            nr: 100_000,
            at: 0,
            fails: false,
        };
        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            send_all(&mut made, &mut Panics)
        }));
        assert!(sent.is_err());
    }
}
