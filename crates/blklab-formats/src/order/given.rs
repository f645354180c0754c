// SPDX-License-Identifier: MIT OR Apache-2.0
//! Giving out what was put in order: names before the first event of their process,
//! and times that are not before 0.

use super::window::{Held, Said};
use crate::ReadCounts;
use crate::counts::Numbered;
use crate::names::{self, Comm, Names};
use blklab_trace::{Event, Item, KernelEvent};
use blklab_types::{Pid, Time};

/// What was given so far.
#[derive(Debug, Default)]
pub(crate) struct Given {
    names: Names,
    /// What follows the name of its process, which was given just before it.
    pending: Option<Item<'static>>,
    /// What is added to the times of the recording, once one was given.
    shift_ns: Option<i64>,
    last_time: Time,
    /// The last number of each CPU that has some.
    sequences: Vec<u32>,
    /// The last name or message.
    text: String,
}

impl Given {
    /// The event whose process's name was given last.
    #[inline]
    pub(crate) fn pending(&mut self) -> Option<Item<'static>> {
        // Nearly always there is none, and nothing to move.
        self.pending.as_ref()?;
        self.pending.take()
    }

    /// Gives what has waited.
    pub(crate) fn item(&mut self, held: Held, counts: &mut ReadCounts) -> Item<'_> {
        let Held {
            mut event,
            said,
            sequence,
        } = held;
        if matches!(said, Said::NewRecording) {
            self.sequences.clear();
            counts.new_recordings += 1;
            self.shift_ns = None;
            self.last_time = Time::ZERO;
            return Item::NewRecording;
        }
        event.time = self.time(event.time.0 as i64, counts);
        counts.check_time(&mut self.last_time, event.time);
        if sequence > 0 {
            self.number(&event, sequence, counts);
        }
        match said {
            Said::Event | Said::NewRecording => Item::Event(event),
            Said::Named(comm) => self.named(event.pid, comm, Item::Event(event), counts),
            Said::Message(text) => {
                self.text = text.into();
                Item::Message(event, &self.text)
            }
            Said::Stack(functions) => {
                self.text = functions.into();
                Item::Stack {
                    time: event.time,
                    pid: event.pid,
                    functions: &self.text,
                }
            }
            Said::Kernel(said) => {
                let (point, comm) = *said;
                let item = Item::Kernel(KernelEvent {
                    time: event.time,
                    pid: event.pid,
                    dev: event.dev,
                    cpu: event.cpu,
                    point,
                });
                match comm {
                    Some(comm) => self.named(event.pid, comm, item, counts),
                    None => item,
                }
            }
        }
    }

    /// Notes the number of an event that does not follow the one before on its CPU.
    fn number(&mut self, event: &Event, sequence: u32, counts: &mut ReadCounts) {
        let place = usize::from(event.cpu);
        if place >= self.sequences.len() {
            self.sequences.resize(place + 1, 0);
        }
        let last = std::mem::replace(&mut self.sequences[place], sequence);
        if sequence != last.wrapping_add(1) {
            counts.number(Numbered {
                cpu: event.cpu,
                time: event.time,
                sequence,
            });
        }
    }

    /// The name of a process, if that is new, else what it did.
    #[inline]
    fn named(
        &mut self,
        pid: Pid,
        comm: Comm,
        item: Item<'static>,
        counts: &mut ReadCounts,
    ) -> Item<'_> {
        if !self.names.change(pid, names::bytes(&comm)) {
            return item;
        }
        self.text.clear();
        let text = String::from_utf8_lossy(names::bytes(&comm));
        self.text.push_str(&text);
        counts.processes += 1;
        self.pending = Some(item);
        Item::Process {
            time: self.last_time,
            pid,
            comm: &self.text,
        }
    }

    /// The time of an event. The first one given of a recording is the earliest
    /// of the window: if that is before 0, whole seconds are added to all.
    fn time(&mut self, at_ns: i64, counts: &mut ReadCounts) -> Time {
        const SECOND_NS: i64 = 1_000_000_000;
        let shift_ns = *self.shift_ns.get_or_insert_with(|| {
            let before_ns = at_ns.min(0).saturating_neg();
            let seconds = before_ns.saturating_add(SECOND_NS - 1) / SECOND_NS;
            counts.shift_s = counts.shift_s.max(seconds as u64);
            seconds * SECOND_NS
        });
        match u64::try_from(at_ns.saturating_add(shift_ns)) {
            Ok(ns) => Time(ns),
            Err(_) => {
                counts.impossible += 1;
                counts.example(|| "an event before the beginning of the trace".to_owned());
                Time::ZERO
            }
        }
    }
}
