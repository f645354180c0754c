// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a queue was like before the first recorded event.
//!
//! No trace shows it, and decisions depend on it: reads of the partition scan count
//! towards mq-deadline's batch (its position stays from 6.5 on), and the search for a free
//! tag begins at one that is drawn by lot, which decides when a request with a limited
//! depth finds one. So where an idle queue does something else than the recording, others
//! are tried, and the one is taken that agrees with the recording for much longer.

use super::before::Before;
use super::feeder::Replay;
use crate::catalogue::catalogue_with;
use blklab_experiment::Experiment;
use blklab_sched::Schedulers;

/// What all trials together may cost, in steps: a second or so.
const STEPS_MAX: usize = 1 << 21;

/// What it costs to make a queue for a trial, in steps.
const TRIAL_STEPS: usize = 128;

/// Steps after the idle queue's first difference that every beginning is tried on.
const LOOK: usize = 512;

/// Dispatches by which another beginning has to agree for longer than the idle queue,
/// unless it agrees to the end of what is looked at: a few can be chance.
const GAIN_MIN: usize = 16;

/// Reads that are tried at most: a partition scan has fewer.
const READS_MAX: u32 = 64;

impl Replay<'_> {
    /// What came before the first event is found when the first window of events is
    /// known; else the queue begins idle. `e` and `schedulers` are those that it was made of.
    pub fn find_before(&mut self, e: &Experiment, schedulers: Schedulers) {
        let origin = Origin {
            experiment: e.clone(),
            schedulers,
        };
        self.settle_by(Box::new(move |idle| origin.before(idle)));
    }
}

/// What replays can be made of.
struct Origin {
    experiment: Experiment,
    schedulers: Schedulers,
}

/// How far a replay agrees with the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Agrees {
    dispatches: usize,
    /// Steps up to the first difference.
    steps: usize,
    /// Nothing differs in what is known of the recording.
    to_the_end: bool,
}

impl Origin {
    /// What the window of events that are known says about the time before. None if the
    /// idle queue agrees to the end of the window, or nothing for much longer.
    fn before(&self, idle: &Replay<'_>) -> Option<Before> {
        let (reads, tags) = (self.batch(), idle.scheduler_tags());
        if reads == 0 && tags == 0 {
            return None;
        }
        let mut trials = Trials {
            origin: self,
            idle,
            steps: STEPS_MAX,
        };
        let as_idle = trials.agrees(Before::default(), usize::MAX);
        if as_idle.to_the_end {
            return None;
        }
        let near = trials.best_near(reads, tags, as_idle.steps + LOOK);
        let mut best = (Before::default(), as_idle);
        for before in near {
            let agrees = trials.agrees(before, usize::MAX);
            if agrees.dispatches > best.1.dispatches {
                best = (before, agrees);
            }
            if agrees.to_the_end || trials.steps == 0 {
                break;
            }
        }
        let (before, agrees) = best;
        let gains = agrees.dispatches >= 2 * as_idle.dispatches + GAIN_MIN;
        (agrees.to_the_end || gains).then_some(before)
    }

    /// Requests that the scheduler takes in a batch (`fifo_batch`); none if it
    /// does not count them.
    fn batch(&self) -> u32 {
        let catalogue = catalogue_with(self.schedulers);
        let scheduler = self.experiment.scheduler(&catalogue);
        let (_, tunables) = scheduler.expect("the scheduler of a queue that was made");
        if !tunables.names().any(|n| n == "fifo_batch") {
            return 0;
        }
        let batch = tunables.get("fifo_batch");
        u32::try_from(batch).map_or(READS_MAX, |n| n.min(READS_MAX))
    }
}

/// Replays of one window with one beginning after another.
struct Trials<'a, 'b> {
    origin: &'a Origin,
    idle: &'a Replay<'b>,
    /// What they may still cost.
    steps: usize,
}

impl Trials<'_, '_> {
    /// Those of all beginnings, with up to so many reads and so many tags, that agree for
    /// longest within the first steps.
    fn best_near(&mut self, reads: u32, tags: u32, steps: usize) -> Vec<Before> {
        let mut best = Vec::new();
        let mut longest = 0;
        for reads in 0..=reads {
            for first_tag in 0..tags.max(1) {
                let before = Before { reads, first_tag };
                let dispatches = self.agrees(before, steps).dispatches;
                if dispatches > longest {
                    longest = dispatches;
                    best.clear();
                }
                if dispatches == longest {
                    best.push(before);
                }
            }
        }
        best
    }

    /// How far a beginning agrees within so many steps. Not at all once the trials have
    /// cost too much.
    fn agrees(&mut self, before: Before, within: usize) -> Agrees {
        let budget = self.steps.saturating_sub(TRIAL_STEPS).min(within);
        let Origin {
            experiment,
            schedulers,
        } = self.origin;
        let known = |pid| self.idle.known_of(pid);
        let replay = Replay::new(experiment, *schedulers, known, None);
        let mut replay = replay.expect("a queue that was possible before");
        replay.begin_like(self.idle, before, budget);
        let recorded = replay.nr_recorded();
        let mut dispatches = 0;
        let mut steps = 0;
        while !replay.differs() && replay.step() {
            steps += 1;
            dispatches += replay.handed_over().count();
        }
        self.steps = self.steps.saturating_sub(TRIAL_STEPS + steps);
        // The last one may be the one that differs.
        let dispatches = dispatches.saturating_sub(usize::from(replay.differs()));
        Agrees {
            dispatches,
            steps,
            to_the_end: self.steps > 0 && (dispatches >= recorded || !replay.differs()),
        }
    }
}
