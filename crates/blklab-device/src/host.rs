// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host for tests: an event queue, a driver with a queue depth, and checks
//! that hold for every device.

use crate::device::{CmdId, Command, Device, DeviceCx, Done};
use blklab_types::{BioFlags, Op, Slab, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One finished command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) cmd: Command,
    pub(crate) submitted: Time,
    pub(crate) started: Time,
    pub(crate) ended: Time,
    pub(crate) error: u16,
}

/// Runs one device in virtual time and asserts what must always hold: a
/// command finishes exactly once, not before it was handed over, and time does
/// not go back.
pub(crate) struct Host {
    device: Box<dyn Device>,
    pub(crate) now: Time,
    events: BinaryHeap<Reverse<(Time, u64, u64)>>,
    pushed: u64,
    /// With the time of the hand-over.
    in_flight: Slab<CmdId, (Command, Time)>,
    wakes: Vec<(Time, u64)>,
    done: Vec<Done>,
}

impl Host {
    pub(crate) fn new(device: Box<dyn Device>) -> Host {
        Host {
            device,
            now: Time::ZERO,
            events: BinaryHeap::new(),
            pushed: 0,
            in_flight: Slab::default(),
            wakes: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Builds a device by name and parameters as on the command line.
    pub(crate) fn build(spec: &str, depth: u32) -> Host {
        let (info, params) = crate::parse_spec(spec).expect("a valid device");
        Host::new(
            crate::build(info.name, &params, depth, &|path| {
                std::fs::read_to_string(path).map_err(|e| e.to_string())
            })
            .expect("a valid device"),
        )
    }

    pub(crate) fn capacity(&self) -> Option<u64> {
        self.device.capacity_sectors()
    }

    pub(crate) fn nr_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Hands over a command now; returns what finishes at once.
    pub(crate) fn submit(&mut self, op: Op, flags: BioFlags, sector: u64, n: u32) -> Vec<Finished> {
        let mut cmd = Command {
            id: CmdId::default(),
            op,
            flags,
            sector,
            nr_sectors: n,
        };
        cmd.id = self.in_flight.insert((cmd, self.now));
        self.in_flight[cmd.id].0.id = cmd.id;
        self.call(|device, cx| device.submit(cx, &cmd))
    }

    /// Time of the next wake-up.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.events.peek().map(|Reverse((time, _, _))| *time)
    }

    /// Delivers the next wake-up; `None` if there is none.
    pub(crate) fn step(&mut self) -> Option<Vec<Finished>> {
        let Reverse((time, _, token)) = self.events.pop()?;
        self.now = time;
        Some(self.call(|device, cx| device.wake(cx, token)))
    }

    /// Lets time pass up to `until` (inclusive).
    pub(crate) fn run_until(&mut self, until: Time) -> Vec<Finished> {
        let mut finished = Vec::new();
        while self.next_time().is_some_and(|t| t <= until) {
            finished.extend(self.step().unwrap_or_default());
        }
        self.now = self.now.max(until);
        finished
    }

    /// Lets everything finish.
    pub(crate) fn drain(&mut self) -> Vec<Finished> {
        let mut finished = Vec::new();
        while let Some(f) = self.step() {
            finished.extend(f);
        }
        assert_eq!(self.nr_in_flight(), 0, "commands are lost");
        finished
    }

    /// Submits one read or write and waits for it.
    pub(crate) fn one(&mut self, op: Op, sector: u64, n: u32) -> Finished {
        let mut finished = self.submit(op, BioFlags::NONE, sector, n);
        while finished.is_empty() {
            finished = self.step().expect("the device forgot its command");
        }
        finished[0]
    }

    fn call(&mut self, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) -> Vec<Finished> {
        let mut cx = DeviceCx {
            now: self.now,
            wakes: &mut self.wakes,
            done: &mut self.done,
        };
        f(self.device.as_mut(), &mut cx);
        for (time, token) in self.wakes.drain(..) {
            assert!(time >= self.now, "a wake-up in the past");
            self.events.push(Reverse((time, self.pushed, token)));
            self.pushed += 1;
        }
        let mut finished = Vec::new();
        for done in self.done.drain(..) {
            // Debug builds see to it that it finishes once.
            let (cmd, submitted) = *self.in_flight.remove(done.id);
            assert!(done.started >= submitted && done.started <= self.now);
            finished.push(Finished {
                cmd,
                submitted,
                started: done.started,
                ended: self.now,
                error: done.error,
            });
        }
        finished
    }
}
