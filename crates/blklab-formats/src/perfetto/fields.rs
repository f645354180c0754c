// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of an event by name, whether Perfetto has a message for it or not.

use super::layouts::{NO_ZERO, layout_of};
use super::wire::{Message, Value};
use crate::fields::Fields;
use std::collections::HashMap;

/// `FtraceEvent.generic`: an event that has no message of its own.
const GENERIC: u32 = 327;

/// Messages that a trace itself describes have numbers from here on.
const DESCRIBED_MIN: u32 = 1 << 16;

/// Descriptions that are kept: kernels have fewer events.
const DESCRIBED_MAX: usize = 1 << 14;

/// Events whose messages the trace describes (`FtraceEventBundle.generic_event_descriptors`).
#[derive(Debug, Default)]
pub(super) struct Described(HashMap<u32, Description>);

/// An event and the names of its fields, by number.
#[derive(Debug)]
struct Description {
    name: Vec<u8>,
    fields: Vec<(u32, Vec<u8>)>,
}

impl Described {
    /// Takes a `GenericEventDescriptor`: a number, and a `DescriptorProto` with a name and its
    /// fields, each with a name and a number.
    pub(super) fn add(&mut self, descriptor: &[u8]) {
        let message = Message(descriptor);
        let number = message.field(1).and_then(Value::number);
        let described = message.field(2).and_then(Value::bytes).map(Message);
        let (Some(number), Some(described)) = (number.and_then(|n| n.try_into().ok()), described)
        else {
            return;
        };
        let Some(name) = described.field(1).and_then(Value::bytes) else {
            return;
        };
        let field = |field: &[u8]| {
            let field = Message(field);
            let number = field.field(3)?.number()?.try_into().ok()?;
            Some((number, field.field(1)?.bytes()?.to_vec()))
        };
        if self.0.len() < DESCRIBED_MAX {
            let description = Description {
                name: name.to_vec(),
                fields: described.bytes_of(2).filter_map(field).collect(),
            };
            self.0.insert(number, description);
        }
    }

    /// The event that a field of `FtraceEvent` has; none if nothing is known of it.
    pub(super) fn event<'a>(&'a self, number: u32, bytes: &'a [u8]) -> Option<EventFields<'a>> {
        let message = Message(bytes);
        if number == GENERIC {
            let name = message.field(1)?.bytes()?;
            return Some(EventFields {
                name,
                names: Names::Within,
                message,
            });
        }
        if number >= DESCRIBED_MIN {
            let description = self.0.get(&number)?;
            return Some(EventFields {
                name: &description.name,
                names: Names::Numbered(&description.fields),
                message,
            });
        }
        let layout = layout_of(number)?;
        Some(EventFields {
            name: layout.name.as_bytes(),
            names: Names::InOrder(layout.fields),
            message,
        })
    }
}

/// Where the names of fields are.
#[derive(Clone, Copy)]
enum Names<'a> {
    /// Field 1 has the first.
    InOrder(&'static [&'static str]),
    /// As the trace describes them.
    Numbered(&'a [(u32, Vec<u8>)]),
    /// In the message itself, with the values.
    Within,
}

/// An event and its fields.
pub(super) struct EventFields<'a> {
    /// Its name.
    pub(super) name: &'a [u8],
    names: Names<'a>,
    message: Message<'a>,
}

impl<'a> EventFields<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        match self.names {
            Names::InOrder(names) => {
                let place = names.iter().position(|n| *n == name)?;
                let value = self.message.field(place as u32 + 1);
                // A number that is 0 may be left out.
                value.or_else(|| (!NO_ZERO.contains(&name)).then_some(Value::Number(0)))
            }
            Names::Numbered(names) => {
                let (number, _) = names.iter().find(|(_, n)| n == name.as_bytes())?;
                self.message.field(*number)
            }
            // `GenericFtraceEvent.field`: a name, and a text or a number of either sign.
            Names::Within => {
                let named = |field: &&[u8]| {
                    let said = Message(field).field(1).and_then(Value::bytes);
                    said == Some(name.as_bytes())
                };
                let field = Message(self.message.bytes_of(2).find(named)?);
                [3, 4, 5].into_iter().find_map(|n| field.field(n))
            }
        }
    }
}

impl Fields for EventFields<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.number()
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        self.value(name)?.bytes()
    }
}
