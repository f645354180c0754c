// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of one device as the model can be fed with them: nothing that a queue
//! cannot have been through comes past here.

use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, SECTOR_BYTES};
use std::collections::BTreeMap;

/// Largest bio in sectors, 1 GiB: more is no bio.
const BIO_SECTORS_MAX: u64 = 1 << 21;

/// Lets pass what concerns a device, and makes whole commands of completions.
#[derive(Debug)]
pub(crate) struct Vet {
    dev: Dev,
    /// Recorded commands at the device: length, by first sector and direction.
    at_device: BTreeMap<(u64, Op), u32>,
    /// Empty ones.
    empty: u32,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vetted {
    /// It is none of the model's business.
    Dropped,
    /// The model is to be fed with it.
    Passed(Event),
    /// The same; it is a command that is compared.
    Issued(Event),
}

impl Vet {
    pub(crate) fn new(dev: Dev) -> Vet {
        Vet {
            dev,
            at_device: BTreeMap::new(),
            empty: 0,
        }
    }

    /// The device has this command when the trace begins.
    pub(crate) fn is_at_device(&mut self, e: &Event) {
        if let Some(op) = e.rwbs.op() {
            self.at_device.insert((e.sector, op), e.bytes);
        }
    }

    pub(crate) fn event(&mut self, e: &Event) -> Vetted {
        if e.dev != self.dev {
            return Vetted::Dropped;
        }
        let op = e.rwbs.op().filter(|_| !e.rwbs.has(Rwbs::PC));
        match (e.action, op) {
            (Action::Queue, Some(op)) => {
                let is_flush = op == Op::Flush || e.rwbs.has(Rwbs::FLUSH);
                let is_empty = e.nr_sectors() == 0;
                let is_barrier = e.rwbs.has(Rwbs::BARRIER);
                let possible = e.nr_sectors() <= BIO_SECTORS_MAX;
                if possible && (!is_empty || is_flush || is_barrier) {
                    Vetted::Passed(*e)
                } else {
                    Vetted::Dropped
                }
            }
            (Action::Issue, Some(op)) => self.issue(e, op),
            (Action::Complete, Some(op)) => self.complete(e, op),
            (Action::Requeue, Some(op)) => {
                self.at_device.remove(&(e.sector, op));
                Vetted::Dropped
            }
            (Action::Queue | Action::Issue | Action::Complete | Action::Requeue, None)
            | (Action::Message, _) => Vetted::Dropped,
            _ => Vetted::Passed(*e),
        }
    }

    fn issue(&mut self, e: &Event, op: Op) -> Vetted {
        if e.bytes == 0 {
            self.empty = self.empty.saturating_add(1);
            return Vetted::Issued(*e);
        }
        match self.at_device.insert((e.sector, op), e.bytes) {
            None => Vetted::Issued(*e),
            // A second D of one command.
            Some(_) => Vetted::Dropped,
        }
    }

    /// A completion of what the device has, as long as the command was.
    fn complete(&mut self, e: &Event, op: Op) -> Vetted {
        if e.bytes == 0 {
            let known = self.empty > 0;
            self.empty = self.empty.saturating_sub(1);
            return if known {
                Vetted::Passed(*e)
            } else {
                Vetted::Dropped
            };
        }
        let mut places = self.at_device.range(..=(e.sector, op)).rev();
        let place = places.find(|((_, o), _)| *o == op).map(|(k, n)| (*k, *n));
        match place {
            Some(((sector, _), bytes))
                if sector + u64::from(bytes) / SECTOR_BYTES == e.end_sector() =>
            {
                self.at_device.remove(&(sector, op));
                Vetted::Passed(Event {
                    sector,
                    bytes,
                    ..*e
                })
            }
            _ => Vetted::Dropped,
        }
    }
}
