// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of one device as the model can be fed with them: nothing that a queue
//! cannot have been through comes past here.

use crate::asking::{Answer, Asking};
use crate::commands::{Commands, Ended};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op};
use std::collections::BTreeMap;

/// Largest bio in sectors, 1 GiB: more is no bio.
const BIO_SECTORS_MAX: u64 = 1 << 21;

/// Requests whose G is remembered; those that were merged into others have no D.
const GRANTED_MAX: usize = 1 << 16;

/// Lets pass what concerns a device, and makes whole commands of completions.
#[derive(Debug)]
pub(crate) struct Vet {
    dev: Dev,
    /// Recorded commands.
    at_device: Commands,
    asking: Asking,
    /// Requests that were granted and are not there yet, by first sector and direction.
    granted: BTreeMap<(u64, Op), u32>,
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
            at_device: Commands::default(),
            asking: Asking::default(),
            granted: BTreeMap::new(),
            empty: 0,
        }
    }

    /// The device has this command when the trace begins.
    pub(crate) fn is_at_device(&mut self, e: &Event) {
        if let Some(op) = e.rwbs.op() {
            self.at_device.add(e, op);
        }
    }

    pub(crate) fn event(&mut self, e: &Event) -> Vetted {
        if e.dev != self.dev {
            return Vetted::Dropped;
        }
        let op = e.rwbs.op().filter(|_| !e.rwbs.has(Rwbs::PC));
        if self.asking.event(e) == Some(Answer::Refused) {
            return Vetted::Passed(*e);
        }
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
                self.at_device.requeue(e, op);
                Vetted::Dropped
            }
            (Action::GetRequest, Some(op)) => {
                if self.granted.len() >= GRANTED_MAX {
                    self.granted.clear();
                }
                *self.granted.entry((e.sector, op)).or_default() += 1;
                Vetted::Passed(*e)
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
        let key = (e.sector, op);
        let is_granted = match self.granted.get_mut(&key) {
            Some(nr) if *nr > 1 => {
                *nr -= 1;
                true
            }
            _ => self.granted.remove(&key).is_some(),
        };
        // A second D of one command, unless another request was granted there.
        if self.at_device.has(e.sector, op) && !is_granted {
            return Vetted::Dropped;
        }
        self.at_device.add(e, op);
        Vetted::Issued(*e)
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
        match self.at_device.complete(e, op) {
            Ended::Whole(sector, bytes) => Vetted::Passed(Event {
                sector,
                bytes,
                ..*e
            }),
            Ended::Part | Ended::Unknown => Vetted::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Survey;
    use blklab_trace::TraceSink as _;
    use blklab_types::Time;

    const DEV: Dev = Dev { major: 8, minor: 0 };

    /// Events of reads of 4 KiB at sector 8.
    fn events(actions: &[Action]) -> Vec<Event> {
        let event = |(i, action): (usize, &Action)| Event {
            time: Time(i as u64 * 1000),
            sector: 8,
            arg: 0,
            bytes: 4096,
            pid: 7,
            dev: DEV,
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action: *action,
        };
        actions.iter().enumerate().map(event).collect()
    }

    use Action::{Complete as C, GetRequest as G, Issue as D, Queue as Q};

    #[test]
    fn two_commands_of_the_same_sectors_are_two() {
        let mut vet = Vet::new(DEV);
        let became = |vet: &mut Vet, actions: &[Action]| {
            let letter = |e: &Event| match vet.event(e) {
                Vetted::Dropped => '-',
                Vetted::Passed(_) => 'p',
                Vetted::Issued(_) => 'i',
            };
            events(actions).iter().map(letter).collect::<String>()
        };
        let both = [Q, G, Q, G, D, D, C, C];
        assert_eq!(became(&mut vet, &both), "ppppiipp");
        // The second D of one, and a C of nothing.
        assert_eq!(became(&mut vet, &[Q, G, D, D, C, C]), "ppi-p-");
    }

    #[test]
    fn none_of_them_was_there_before_the_trace() {
        for actions in [
            &[Q, G, Q, G, D, D, C, C][..],
            &[Q, G, D, Q, G, D, C, C],
            &[Q, Q, G, D, C, G, D, C],
        ] {
            let mut survey = Survey::default();
            events(actions).iter().for_each(|e| survey.event(e));
            let (_, disk) = survey.disk(0).expect("it can be re-enacted");
            assert!(
                disk.left_over.is_empty(),
                "{actions:?}: {:?}",
                disk.left_over
            );
        }
    }
}
