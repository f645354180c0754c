// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traces of several devices, each in a file of its own, as one stream of events.
//!
//! Events come by time. At the same instant what goes down comes before what it leads to
//! below, and what ends comes from below to the top.

use super::stack::{Numbers, Stack};
use crate::failed::failed;
use crate::machine::Ended;
use blklab_formats::blktrace::BlktraceReader;
use blklab_trace::{Action, Event, Item, TraceSink, TraceSource as _};
use blklab_types::{Error, Pid};
use std::collections::BTreeMap;
use std::io::Read;

/// What blktrace adds to the name of a device; the number of a processor follows.
const SUFFIX: &str = ".blktrace.";

/// What a device has next.
struct Head {
    event: Event,
    /// Its text, if it is a message.
    text: String,
}

/// The trace of one device, as one processor has it.
struct Stream {
    reader: BlktraceReader<Box<dyn Read>>,
    head: Option<Head>,
}

/// Sends the events of all devices of a stack, told of by the stack's numbers, to a sink.
/// Whether there was a trace of each.
///
/// # Errors
/// If one is damaged.
pub(super) fn send(
    ended: &Ended,
    stack: &Stack,
    numbers: &Numbers,
    sink: &mut dyn TraceSink,
) -> Result<bool, Error> {
    let mut names = BTreeMap::new();
    let mut streams = Vec::new();
    for device in stack.devices() {
        for cpu in 0.. {
            let Some(file) = ended.file(&format!("{}{SUFFIX}{cpu}", device.name))? else {
                if cpu == 0 {
                    return Ok(false);
                }
                break;
            };
            let name = format!("the kernel's trace of {}", device.name);
            let mut stream = Stream {
                reader: BlktraceReader::from_stream(Box::new(file), &name),
                head: None,
            };
            stream.advance(numbers, &mut names, sink)?;
            streams.push(stream);
        }
    }
    while let Some(first) = first_of(&streams) {
        let stream = &mut streams[first];
        if let Some(head) = stream.head.take() {
            match head.event.action {
                Action::Message => sink.message(&head.event, &head.text),
                _ => sink.event(&head.event),
            }
        }
        stream.advance(numbers, &mut names, sink)?;
    }
    for stream in &streams {
        let counts = stream.reader.counts();
        if counts.damaged > 0 {
            let example = counts.examples.first().cloned().unwrap_or_default();
            return Err(failed(&format!("the kernel's trace is damaged: {example}")));
        }
    }
    Ok(true)
}

/// The stream whose event comes next.
fn first_of(streams: &[Stream]) -> Option<usize> {
    let heads = streams.iter().enumerate();
    let heads = heads.filter_map(|(i, s)| Some((i, s.head.as_ref()?)));
    let first = heads.min_by_key(|(i, head)| {
        let i = *i as i64;
        let ends = head.event.action == Action::Complete;
        (head.event.time, ends, if ends { -i } else { i })
    });
    first.map(|(i, _)| i)
}

impl Stream {
    /// Reads on to the next event. Names of processes, which each trace has anew, are
    /// passed on where they are new.
    fn advance(
        &mut self,
        numbers: &Numbers,
        names: &mut BTreeMap<Pid, String>,
        sink: &mut dyn TraceSink,
    ) -> Result<(), Error> {
        loop {
            let item = self.reader.next_item();
            let item = item.map_err(|e| failed(&e.to_string()))?;
            let (event, text) = match item {
                None => return Ok(()),
                Some(Item::Process { time, pid, comm }) => {
                    if names.get(&pid).is_none_or(|known| known != comm) {
                        names.insert(pid, comm.to_owned());
                        sink.process(time, pid, comm);
                    }
                    continue;
                }
                Some(Item::Event(event)) => (event, String::new()),
                Some(Item::Message(event, text)) => (event, text.to_owned()),
                Some(_) => continue,
            };
            let event = Event {
                dev: numbers.told(event.dev),
                from_dev: numbers.told(event.from_dev),
                ..event
            };
            self.head = Some(Head { event, text });
            return Ok(());
        }
    }
}
