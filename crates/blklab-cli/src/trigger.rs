// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a recording: an I/O that takes long.

use crate::output::time;
use blklab::analysis::lifecycle::{BioLife, LifeSink, Lifecycles};
use blklab::trace::{Event, TraceSink};
use blklab::types::{Pid, Time};
use std::collections::BTreeMap;
use std::fmt;

/// A part of an I/O's life, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    phase: Phase,
    limit_ns: u64,
}

/// Parts that may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Q2c,
    Q2d,
    D2c,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Q2c, Phase::Q2d, Phase::D2c];

    fn name(self) -> &'static str {
        match self {
            Phase::Q2c => "q2c",
            Phase::Q2d => "q2d",
            Phase::D2c => "d2c",
        }
    }

    /// How long it took of a bio that has ended; none if it was not seen.
    fn of_bio(self, bio: &BioLife) -> Option<u64> {
        let (from, to) = match self {
            Phase::Q2c => (bio.queue, bio.complete?),
            Phase::Q2d => (bio.queue, bio.issue?),
            Phase::D2c => (bio.issue?, bio.complete?),
        };
        Some(to.since(from).0)
    }
}

impl Trigger {
    /// Reads `q2c>100ms`; `duration_ns` reads the time.
    pub(crate) fn parse(
        text: &str,
        duration_ns: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<Trigger, String> {
        let expected = "expected q2c, q2d or d2c and a time, as in 'q2c>100ms'";
        let (phase, limit) = text.split_once('>').ok_or(expected)?;
        let phase = phase.trim();
        let phase = Phase::ALL.into_iter().find(|p| p.name() == phase);
        Ok(Trigger {
            phase: phase.ok_or(expected)?,
            limit_ns: duration_ns(limit.trim())?,
        })
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}>{}", self.phase.name(), time(self.limit_ns as f64))
    }
}

/// Waits for such an I/O among the events of a recording.
pub(crate) struct Watch(Lifecycles<Waiting>);

struct Waiting {
    trigger: Trigger,
    names: BTreeMap<Pid, String>,
    hit: Option<String>,
}

impl Watch {
    pub(crate) fn new(trigger: Trigger) -> Watch {
        Watch(Lifecycles::new(Waiting {
            trigger,
            names: BTreeMap::new(),
            hit: None,
        }))
    }

    /// The I/O that took long, in words, once there was one.
    pub(crate) fn hit(&mut self) -> Option<String> {
        self.0.sink().hit.take()
    }
}

impl LifeSink for Waiting {
    fn bio(&mut self, bio: &BioLife) {
        let took_ns = self.trigger.phase.of_bio(bio);
        let Some(ns) = took_ns.filter(|ns| *ns > self.trigger.limit_ns) else {
            return;
        };
        let who = match self.names.get(&bio.pid) {
            Some(comm) => format!("{comm} ({})", bio.pid),
            None => format!("process {}", bio.pid),
        };
        self.hit.get_or_insert_with(|| {
            format!(
                "{} {} + {} of {who} on {} took {}, {}",
                bio.rwbs,
                bio.sector,
                bio.bytes / 512,
                bio.dev,
                time(ns as f64),
                self.trigger
            )
        });
    }
}

impl TraceSink for Watch {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.0.sink().names.insert(pid, comm.to_owned());
        self.0.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.0.new_recording();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab::trace::{Action, Rwbs};
    use blklab::types::Dev;

    fn trigger(text: &str) -> Result<Trigger, String> {
        let ms = |text: &str| text.strip_suffix("ms")?.parse::<u64>().ok();
        Trigger::parse(text, |text| Ok(ms(text).ok_or("no time")? * 1_000_000))
    }

    #[test]
    fn triggers_are_read_and_shown() {
        let read = trigger("q2c>100ms").expect("a trigger");
        assert_eq!(read.to_string(), "q2c>100ms");
        for wrong in ["", "q2c", "q2x>1ms", "q2c>soon", "100ms"] {
            assert!(trigger(wrong).is_err(), "{wrong}");
        }
    }

    fn hit(text: &str, times_ms: [u64; 3]) -> Option<String> {
        let mut watch = Watch::new(trigger(text).expect("a trigger"));
        watch.process(Time(0), 7, "fio");
        for (ms, action) in
            times_ms
                .into_iter()
                .zip([Action::Queue, Action::Issue, Action::Complete])
        {
            if action == Action::Issue {
                for action in [Action::GetRequest, Action::Insert] {
                    watch.event(&event(times_ms[0], action));
                }
            }
            watch.event(&event(ms, action));
        }
        watch.hit()
    }

    fn event(ms: u64, action: Action) -> Event {
        Event {
            time: Time(ms * 1_000_000),
            sector: 64,
            arg: 0,
            bytes: 4096,
            pid: 7,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action,
        }
    }

    #[test]
    fn what_takes_long_is_named() {
        let said = hit("q2c>100ms", [5, 50, 155]);
        let said = said.expect("150 ms are longer");
        assert_eq!(said, "R 64 + 8 of fio (7) on 8,0 took 150ms, q2c>100ms");
        assert_eq!(hit("q2c>200ms", [5, 50, 155]), None);
        assert_eq!(hit("q2d>50ms", [5, 50, 155]), None);
        assert!(hit("d2c>100ms", [5, 50, 155]).is_some());
    }
}
