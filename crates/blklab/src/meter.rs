// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a run is, for whoever watches it from another thread.

use blklab_fio::job::Job;
use blklab_target::Plan;
use blklab_trace::{Action, Event};
use blklab_types::Time;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a run will be over, as far as its jobs tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Goal {
    /// Virtual time by which the clock has ended every job.
    end_ns: Option<u64>,
    /// Bytes that all jobs move together, if none repeats them.
    bytes: Option<u64>,
}

impl Goal {
    fn new(jobs: &[Job]) -> Goal {
        let end_ns = |job: &Job| {
            let s = &job.settings;
            let us = job.start_delay_us + s.ramp_time_us + s.runtime_us;
            (s.runtime_us > 0).then(|| us.saturating_mul(1000))
        };
        let bytes = |job: &Job| {
            let s = &job.settings;
            let bytes = if s.io_size > 0 { s.io_size } else { s.size };
            let all = bytes.checked_mul(u64::from(s.loops.max(1)))?;
            (all > 0 && !s.time_based).then_some(all)
        };
        let ends: Option<Vec<u64>> = jobs.iter().map(end_ns).collect();
        let sizes: Option<Vec<u64>> = jobs.iter().map(bytes).collect();
        Goal {
            end_ns: ends.and_then(|ends| ends.into_iter().max()),
            bytes: sizes.map(|all| all.into_iter().fold(0, u64::saturating_add)),
        }
    }
}

/// How long a run is going to take, as far as its jobs tell: I/Os, or milliseconds of
/// virtual time. Good for nothing but to compare runs; 0 for explicit processes.
pub fn length(plan: &Plan) -> u64 {
    let Some(text) = plan.jobs() else { return 0 };
    let jobs = &text.jobs.jobs;
    let ios = |job: &Job| {
        let block = job.settings.largest_bs().max(1);
        Goal::new(std::slice::from_ref(job))
            .bytes
            .map(|bytes| bytes / block)
    };
    let nr_ios = jobs.iter().filter_map(ios).fold(0, u64::saturating_add);
    let end_ms = Goal::new(jobs).end_ns.unwrap_or(0) / 1_000_000;
    nr_ios.max(end_ms)
}

/// Virtual time and work done of one run.
#[derive(Debug, Default)]
pub struct Meter {
    now_ns: AtomicU64,
    bytes: AtomicU64,
    goal: OnceLock<Goal>,
}

impl Meter {
    /// The run has these jobs.
    pub(crate) fn begin(&self, jobs: &[Job]) {
        // A second run of the same experiment has the same goal.
        let _ = self.goal.set(Goal::new(jobs));
    }

    /// An event of the run.
    pub(crate) fn event(&self, e: &Event) {
        self.now_ns.store(e.time.0, Ordering::Relaxed);
        if e.action == Action::Complete {
            self.bytes.fetch_add(e.bytes.into(), Ordering::Relaxed);
        }
    }

    /// Virtual time of the last event.
    pub fn now(&self) -> Time {
        Time(self.now_ns.load(Ordering::Relaxed))
    }

    /// Share that is done, from 0 to 1: of the time that jobs may run or of the
    /// bytes that they move, whichever is further. None if neither is known.
    pub fn share(&self) -> Option<f64> {
        let goal = self.goal.get()?;
        let share = |done: u64, all: u64| (done as f64 / all.max(1) as f64).min(1.0);
        let time = goal.end_ns.map(|end| share(self.now().0, end));
        let bytes = self.bytes.load(Ordering::Relaxed);
        let bytes = goal.bytes.map(|all| share(bytes, all));
        match (time, bytes) {
            (Some(time), Some(bytes)) => Some(time.max(bytes)),
            (time, bytes) => time.or(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{Planner, Sim};
    use blklab_experiment::{Experiment, Workload};
    use blklab_trace::Rwbs;
    use blklab_types::Dev;

    fn meter(text: &str) -> Meter {
        let workload = Workload::Fio {
            name: "a.fio".into(),
            text: text.into(),
        };
        let planner = Planner::new(Sim::default());
        let e = Experiment::new("a", workload);
        let meter = Meter::default();
        let text = planner.jobs(&e).unwrap().unwrap();
        meter.begin(&text.jobs.jobs);
        for action in [Action::Queue, Action::Complete] {
            meter.event(&Event {
                time: Time(2_000_000_000),
                sector: 0,
                arg: 0,
                bytes: 1 << 20,
                pid: 1,
                dev: Dev::default(),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: Rwbs::READ,
                action,
            });
        }
        meter
    }

    #[test]
    fn the_share_is_that_of_bytes_or_time() {
        let share = |text: &str| meter(text).share();
        assert_eq!(share("[a]\nrw=read\nsize=4m\n"), Some(0.25));
        assert_eq!(
            share("[a]\nrw=read\nsize=4m\nloops=2\n[b]\nsize=8m\n"),
            Some(0.0625)
        );
        let timed = "[a]\nrw=read\nsize=4m\ntime_based\nruntime=10\n";
        assert_eq!(share(timed), Some(0.2));
        let both = "[a]\nrw=read\nsize=4m\nruntime=4\n";
        assert_eq!(share(both), Some(0.5));
        assert_eq!(
            share(&format!("{timed}[b]\ntime_based=0\nruntime=0\nsize=1m\n")),
            None
        );
        assert_eq!(Meter::default().share(), None);
        assert_eq!(meter(both).now(), Time(2_000_000_000));
    }
}
