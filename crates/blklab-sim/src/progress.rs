// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether virtual time goes on: a run in which it stands still would never end.

use blklab_types::Time;
use std::cell::Cell;

/// Steps of tasks at one instant that can only be a fault.
const STEPS_MAX: u32 = 1_000_000;
/// Events at one instant that can only be a fault. There may be more of them
/// than steps: a device may finish everything that it holds at once.
const EVENTS_MAX: u32 = 16_000_000;

/// Counts what happens while the clock stands still.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    at: Cell<Time>,
    steps: Cell<u32>,
    events: Cell<u32>,
    stalled: Cell<bool>,
}

impl Progress {
    /// A task takes a step; whether there have been too many.
    #[inline]
    pub(crate) fn step(&self, now: Time) -> bool {
        self.count(now, &self.steps, STEPS_MAX)
    }

    /// An event is due; whether there have been too many.
    #[inline]
    pub(crate) fn event(&self, now: Time) -> bool {
        self.count(now, &self.events, EVENTS_MAX)
    }

    #[inline]
    fn count(&self, now: Time, counter: &Cell<u32>, max: u32) -> bool {
        if self.at.get() != now {
            self.at.set(now);
            self.steps.set(0);
            self.events.set(0);
        }
        counter.set(counter.get() + 1);
        if counter.get() >= max {
            self.stalled.set(true);
        }
        self.stalled.get()
    }

    /// A task found out by itself that it makes no progress.
    pub(crate) fn stall(&self) {
        self.stalled.set(true);
    }

    /// Whether the run came to a halt.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Sinks, build_machine, check_progress};
    use blklab_experiment::{Experiment, Workload};
    use blklab_types::{IoPrio, Span};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn machine(stop: bool) -> Machine {
        let e = Experiment::new("x", Workload::Processes(Vec::new()));
        let sinks = Sinks::of_events(Box::new(blklab_trace::NullSink));
        build_machine(&e, sinks, Arc::new(AtomicBool::new(stop))).expect("a machine")
    }

    fn run_for_ever(m: &Machine) {
        let own = m.clone();
        m.spawn_at("a", 1, IoPrio::default(), true, Time::ZERO, async move {
            loop {
                own.compute(Span::ZERO).await;
            }
        });
        m.run(Time::MAX);
    }

    #[test]
    fn a_task_that_turns_on_the_spot_ends_the_run() {
        let m = machine(false);
        run_for_ever(&m);
        let error = check_progress(&m).unwrap_err().to_string();
        assert!(
            error.contains("a fault in blklab; please report"),
            "{error}"
        );
    }

    #[test]
    fn tasks_that_wake_each_other_at_one_instant_end_the_run() {
        let m = machine(false);
        let own = m.clone();
        m.spawn_at("a", 1, IoPrio::default(), true, Time::ZERO, async move {
            loop {
                own.suspend_until(own.now()).await;
            }
        });
        m.run(Time::MAX);
        assert!(m.has_stalled());
    }

    #[test]
    fn a_million_steps_at_one_instant_are_too_many() {
        let progress = Progress::default();
        assert!((1..STEPS_MAX).all(|_| !progress.step(Time(5))));
        assert!(!progress.step(Time(6)), "the clock has moved");
        assert!((2..STEPS_MAX).all(|_| !progress.step(Time(6))));
        assert!(progress.step(Time(6)));
        assert!(progress.has_stalled());
    }
}
