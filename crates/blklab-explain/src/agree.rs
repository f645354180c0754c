// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the model's dispatches are the recorded ones.

use blklab_sim::replay::Dispatched;
use blklab_types::{Op, Time};
use serde::Serialize;
use std::collections::VecDeque;

/// A dispatch is at the recorded time if it is within so much of it.
pub(crate) const IN_TIME_NS: u64 = 100_000;

/// Of a long wait so large a part does not matter: 1 in this.
const PART: u64 = 10;

/// Dispatches without a counterpart that others are still compared with.
const UNMATCHED_MAX: usize = 1024;

/// A dispatch without a counterpart for so many others has none that would come in
/// order.
const STRAY: u64 = 32;

/// Dispatches that are remembered to say how many agreed during a wait.
const HISTORY_MAX: usize = 1 << 16;

/// Of the dispatches during a wait so many may differ: 1 in this.
const DIFFERING: u64 = 10;

/// How the dispatches of the model compare with the recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Agreement {
    /// Commands that the recorded driver got.
    pub dispatches: u64,
    /// Commands that the model's driver got.
    pub dispatches_of_model: u64,
    /// Those that are the same, wherever they are.
    pub same: u64,
    /// Those that are the same in the same order.
    pub in_order: u64,
    /// Those that are the same, within 100 us of the recorded time.
    pub in_time: u64,
    /// Those in a row from the beginning that are the same.
    pub prefix: u64,
    /// The first difference.
    pub first_difference: Option<Difference>,
}

/// Where model and recording part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Number of the recorded event in the trace, from 1; none if the recording had
    /// ended.
    pub event: Option<u64>,
    /// What the recorded driver got.
    pub recorded: String,
    /// What the model's driver got.
    pub model: String,
}

impl Agreement {
    fn share(&self, n: u64) -> f64 {
        match self.dispatches.max(self.dispatches_of_model) {
            0 => 0.0,
            of => n as f64 / of as f64,
        }
    }

    /// Share of the dispatches that are in the recorded order.
    pub fn order_share(&self) -> f64 {
        self.share(self.in_order)
    }

    /// Share of the dispatches that are at the recorded times.
    pub fn time_share(&self) -> f64 {
        self.share(self.in_time)
    }

    /// Whether reasons can be given: at least half of the dispatches are in order
    /// and in time.
    pub fn is_good(&self) -> bool {
        self.dispatches > 0 && self.order_share() >= 0.5 && self.time_share() >= 0.5
    }
}

/// A recorded dispatch that has its counterpart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched {
    /// Of the recorded D, from 1.
    pub(crate) event: u64,
    /// When that was.
    pub(crate) time: Time,
    /// Whether the model did it when the kernel did.
    pub(crate) agrees: bool,
}

/// A dispatch of the recording or the model that waits for its counterpart.
struct Waiting<T> {
    number: u64,
    command: Dispatched,
    payload: T,
}

/// Compares dispatches as they come. A dispatch of the model carries something that
/// comes back when its counterpart is known.
pub(crate) struct Compare<T> {
    agreement: Agreement,
    recorded: VecDeque<Waiting<u64>>,
    model: VecDeque<Waiting<(Time, T)>>,
    /// Both in order until they differ.
    prefix: (VecDeque<(u64, Dispatched)>, VecDeque<Dispatched>),
    /// Recorded dispatches in order of time: when, and how many before it differ.
    history: VecDeque<(Time, u64)>,
    nr_differing: u64,
}

impl<T> Default for Compare<T> {
    fn default() -> Compare<T> {
        Compare {
            agreement: Agreement::default(),
            recorded: VecDeque::new(),
            model: VecDeque::new(),
            prefix: Default::default(),
            history: VecDeque::new(),
            nr_differing: 0,
        }
    }
}

impl<T> Compare<T> {
    /// A recorded command, with the number of its D in the trace.
    pub(crate) fn recorded(&mut self, event: u64, command: Dispatched) -> Option<(Matched, T)> {
        let number = self.agreement.dispatches;
        self.agreement.dispatches += 1;
        if self.agreement.first_difference.is_none() {
            self.prefix.0.push_back((event, command));
            self.follow();
        }
        let place = self.model.iter().position(|m| m.command.is_same(&command));
        let Some(place) = place else {
            self.recorded.push_back(Waiting {
                number,
                command,
                payload: event,
            });
            if self.recorded.len() > UNMATCHED_MAX
                && let Some(old) = self.recorded.pop_front()
            {
                self.remember(old.command.time, false);
            }
            return None;
        };
        let in_order = self.is_in_order(place.checked_sub(1), self.recorded.len().checked_sub(1));
        let m = self.model.remove(place)?;
        let matched = self.matched(event, command.time, m.command.time, m.payload.0, in_order);
        Some((matched, m.payload.1))
    }

    /// A command of the model: when it was shown to the driver, since when it waited.
    pub(crate) fn model(
        &mut self,
        command: Dispatched,
        since: Time,
        payload: T,
    ) -> Option<(Matched, T)> {
        let number = self.agreement.dispatches_of_model;
        self.agreement.dispatches_of_model += 1;
        if self.agreement.first_difference.is_none() {
            self.prefix.1.push_back(command);
            self.follow();
        }
        let place = self
            .recorded
            .iter()
            .position(|r| r.command.is_same(&command));
        let Some(place) = place else {
            self.model.push_back(Waiting {
                number,
                command,
                payload: (since, payload),
            });
            if self.model.len() > UNMATCHED_MAX {
                self.model.pop_front();
            }
            return None;
        };
        let in_order = self.is_in_order(self.model.len().checked_sub(1), place.checked_sub(1));
        let r = self.recorded.remove(place)?;
        let matched = self.matched(r.payload, r.command.time, command.time, since, in_order);
        Some((matched, payload))
    }

    /// Whether the dispatches before a pair that still wait for their counterparts
    /// are strays: the last of the model's and of the recorded ones.
    fn is_in_order(&self, model: Option<usize>, recorded: Option<usize>) -> bool {
        let is_old = |number: u64, now: u64| number + STRAY < now;
        let a = &self.agreement;
        model.is_none_or(|i| is_old(self.model[i].number, a.dispatches_of_model))
            && recorded.is_none_or(|i| is_old(self.recorded[i].number, a.dispatches))
    }

    fn matched(
        &mut self,
        event: u64,
        time: Time,
        of_model: Time,
        since: Time,
        in_order: bool,
    ) -> Matched {
        let off = time.0.abs_diff(of_model.0);
        let agrees = off <= IN_TIME_NS.max(time.0.saturating_sub(since.0) / PART);
        self.agreement.same += 1;
        self.agreement.in_order += u64::from(in_order);
        self.agreement.in_time += u64::from(off <= IN_TIME_NS);
        self.remember(time, agrees);
        Matched {
            event,
            time,
            agrees,
        }
    }

    fn remember(&mut self, time: Time, agrees: bool) {
        let time = self
            .history
            .back()
            .map_or(time, |(last, _)| time.max(*last));
        self.history.push_back((time, self.nr_differing));
        self.nr_differing += u64::from(!agrees);
        if self.history.len() > HISTORY_MAX {
            self.history.pop_front();
        }
    }

    /// Whether nearly all that was dispatched since then agrees.
    pub(crate) fn agreed_since(&self, since: Time) -> bool {
        let from = self.history.partition_point(|(time, _)| *time < since);
        let Some((_, before)) = self.history.get(from) else {
            return true;
        };
        let nr = (self.history.len() - from) as u64;
        (self.nr_differing - before) * DIFFERING <= nr
    }

    /// Compares the sequences from the beginning.
    fn follow(&mut self) {
        if self.prefix.0.len().max(self.prefix.1.len()) > HISTORY_MAX {
            // One of them does not go on: that is a difference, too.
            self.differ();
            return;
        }
        while let (Some((event, r)), Some(m)) = (self.prefix.0.front(), self.prefix.1.front()) {
            if r.is_same(m) {
                self.agreement.prefix += 1;
                self.prefix.0.pop_front();
                self.prefix.1.pop_front();
            } else {
                self.agreement.first_difference = Some(Difference {
                    event: Some(*event),
                    recorded: text(r),
                    model: text(m),
                });
                self.prefix = Default::default();
            }
        }
    }

    /// One of them has more.
    fn differ(&mut self) {
        let (r, m) = (self.prefix.0.front(), self.prefix.1.front());
        if r.is_some() || m.is_some() {
            let nothing = || "nothing".to_owned();
            self.agreement.first_difference = Some(Difference {
                event: r.map(|(event, _)| *event),
                recorded: r.map_or_else(nothing, |(_, r)| text(r)),
                model: m.map_or_else(nothing, text),
            });
            self.prefix = Default::default();
        }
    }

    /// All that can be said when both have ended.
    pub(crate) fn finish(mut self) -> Agreement {
        if self.agreement.first_difference.is_none() {
            self.differ();
        }
        self.agreement
    }
}

/// A command in words: `R 2048 + 8`.
fn text(d: &Dispatched) -> String {
    let letter = match d.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
        Op::Flush => 'F',
    };
    format!("{letter} {} + {}", d.sector, d.nr_sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the sectors of both in turn, 1 ms apart.
    fn compared(recorded: &[u64], model: &[u64]) -> Agreement {
        let mut c: Compare<()> = Compare::default();
        let command = |i: usize, sector: u64| Dispatched {
            time: Time(1_000_000 * i as u64),
            op: Op::Read,
            sector,
            nr_sectors: 8,
        };
        for i in 0..recorded.len().max(model.len()) {
            if let Some(&sector) = recorded.get(i) {
                c.recorded(10 + i as u64, command(i, sector));
            }
            if let Some(&sector) = model.get(i) {
                c.model(command(i, sector), Time::ZERO, ());
            }
        }
        c.finish()
    }

    #[test]
    fn the_same_order_agrees() {
        let a = compared(&[0, 8, 16], &[0, 8, 16]);
        assert_eq!((a.same, a.in_order, a.in_time, a.prefix), (3, 3, 3, 3));
        assert!(a.is_good() && a.first_difference.is_none());
    }

    #[test]
    fn two_that_changed_places_are_one_out_of_order() {
        let a = compared(&[0, 8, 16, 24], &[0, 16, 8, 24]);
        assert_eq!((a.same, a.in_order, a.prefix), (4, 3, 1));
        assert_eq!(a.in_time, 2);
        let d = a.first_difference.expect("one");
        assert_eq!((d.event, d.recorded.as_str()), (Some(11), "R 8 + 8"));
        assert_eq!(d.model, "R 16 + 8");
    }

    #[test]
    fn what_is_in_one_only_does_not_spoil_the_rest() {
        let sectors: Vec<u64> = (0..200).map(|i| 8 * i).collect();
        let mut more = sectors.clone();
        more.insert(10, 99_999);
        let a = compared(&sectors, &more);
        assert_eq!((a.same, a.dispatches_of_model), (200, 201));
        assert!(a.in_order >= 200 - STRAY - 2, "{a:?}");
        let ended = compared(&[0, 8], &[0]);
        assert_eq!(ended.first_difference.expect("one").model, "nothing");
    }
}
