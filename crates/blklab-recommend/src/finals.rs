// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last rounds: who is run with other seeds. One seed does not tell a combination from its
//! parts, so the most promising are run with a second one, and the best of these with all.

use crate::judge::{HELPS, Trial, sort};
use blklab::job_rows::JobRow;

/// Candidates that are run with a second seed.
const PROMISING: usize = 6;

/// Of these, those that are run with all seeds.
pub(crate) const FINALISTS: usize = 3;

/// The round in which finalists get all seeds.
pub(crate) const ROUND: u32 = 1;

/// Of so many runs that are allowed one is for a candidate more than the finalists.
const RUNS_EACH: usize = 40;

/// And so many are for parts of the best.
const PRUNING_RUNS_EACH: usize = 5;

/// Steps of a combination at most: the best pair gets a third.
const STEPS: usize = 3;

/// How many are run with other seeds, and how many runs that takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Candidates that are run with a second seed.
    pub(crate) promising: usize,
    /// Runs that are kept for these rounds, with those of the experiment as it is and those of
    /// parts of the best.
    pub(crate) runs: usize,
}

impl Places {
    pub(crate) fn new(runs_max: usize, repetitions: u32) -> Places {
        let more = (runs_max / RUNS_EACH).min(PROMISING - FINALISTS);
        let each = repetitions.saturating_sub(1) as usize;
        let finals = (FINALISTS + 1) * each + more * each.min(1);
        // Pairs of a triple need not have been run at all, single steps have been once.
        let all_parts = STEPS * repetitions as usize + (STEPS - 1) * each;
        let pruning = (runs_max / RUNS_EACH * PRUNING_RUNS_EACH).min(all_parts);
        Places {
            promising: FINALISTS + more,
            runs: finals + pruning,
        }
    }
}

/// Puts the best in front, by the figure, and says how many of them are worth other seeds, of
/// so many at most.
pub(crate) fn ahead(trials: &mut Vec<Trial>, most: usize) -> usize {
    sort(trials);
    alike_last(trials);
    let best = trials.iter().take(most);
    best.take_while(|t| t.keeps() && t.gain > HELPS).count()
}

/// Who got just what they get with a candidate before it, in each call, stands last: it would
/// take the place of another.
fn alike_last(trials: &mut Vec<Trial>) {
    let mut first: Vec<Trial> = Vec::new();
    let mut alike: Vec<Trial> = Vec::new();
    for trial in std::mem::take(trials) {
        if first.iter().any(|before| are_alike(before, &trial)) {
            alike.push(trial);
        } else {
            first.push(trial);
        }
    }
    first.extend(alike);
    *trials = first;
}

/// Whether all jobs got the same in all runs of both.
fn are_alike(one: &Trial, other: &Trial) -> bool {
    let row = |(a, b): (&JobRow, &JobRow)| a.job == b.job && a.numbers == b.numbers;
    let run = |(a, b): (&Vec<JobRow>, &Vec<JobRow>)| a.len() == b.len() && a.iter().zip(b).all(row);
    one.runs.len() == other.runs.len() && one.runs.iter().zip(&other.runs).all(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Candidate, Step};
    use blklab::metric::Numbers;

    /// A candidate that makes the figure so many times better; `got` tells what jobs get.
    fn trial(steps: &[Step], gain: f64, got: usize) -> Trial {
        let mut numbers = Numbers::default();
        numbers.jobs = got;
        let row = JobRow {
            level: "job",
            group: Some(0),
            job: Some("wal".to_owned()),
            cgroup: None,
            direction: "sync",
            numbers,
        };
        Trial {
            candidate: Candidate::new(steps.to_vec()),
            runs: vec![vec![row]],
            gain,
            gain_once: gain,
            breaks: Vec::new(),
            round: None,
        }
    }

    #[test]
    fn a_combination_goes_before_what_is_worse_although_the_first_seed_shows_no_gain() {
        let (weights, requests) = (Step::scheduler("kyber"), Step::queue("nr_requests", 7));
        let both = [weights.clone(), requests.clone()];
        let mut trials = vec![
            trial(&[requests], 9.4, 1),
            trial(&both, 16.93, 2),
            trial(&[weights], 16.93, 3),
        ];
        assert_eq!(ahead(&mut trials, 2), 2);
        assert_eq!(trials[0].candidate.what(), "scheduler kyber");
        assert_eq!(trials[1].candidate.steps.len(), 2);
        assert_eq!(trials[2].candidate.what(), "nr_requests=7");
    }

    #[test]
    fn a_step_that_changes_no_call_takes_no_place() {
        let (depth, requests) = (
            Step::tunable("async_depth", "4"),
            Step::queue("nr_requests", 7),
        );
        let both = [depth.clone(), requests.clone()];
        let mut trials = vec![
            trial(&both, 7.5, 1),
            trial(&[depth], 7.5, 1),
            trial(&[requests], 2.0, 2),
        ];
        assert_eq!(ahead(&mut trials, 2), 2);
        assert_eq!(trials[0].candidate.what(), "async_depth=4");
        assert_eq!(trials[1].candidate.what(), "nr_requests=7");
        assert_eq!(trials[2].candidate.steps.len(), 2);
    }

    #[test]
    fn what_does_not_help_or_breaks_a_bound_gets_no_other_seed() {
        let mut breaks = trial(&[Step::scheduler("bfq")], 300.0, 1);
        breaks.breaks.push("bandwidth of backup >= 50 %".to_owned());
        let mut trials = vec![
            breaks,
            trial(&[Step::queue("nr_requests", 7)], 1.01, 2),
            trial(&[Step::scheduler("none")], 2.0, 3),
        ];
        assert_eq!(ahead(&mut trials, 3), 1);
        assert_eq!(trials[0].candidate.what(), "scheduler none");
    }

    #[test]
    fn few_runs_leave_some_for_what_is_tried_once() {
        let few = Places::new(crate::RUNS_MIN, 5);
        assert_eq!((few.promising, few.runs), (3, 16));
        let many = Places::new(120, 5);
        assert_eq!((many.promising, many.runs), (6, 19 + 15));
        // No more than all parts of three steps take, and of what is left of these.
        assert_eq!(Places::new(120, 2).runs, 7 + 3 * 2 + 2);
    }
}
