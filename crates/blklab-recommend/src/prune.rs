// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of an answer adds nothing. Each step is left out in turn, with the seeds that the
//! finalists had; the one that is missed least goes if nothing is lost, and what is left is
//! tried in the same way.

use crate::answer::{LeftOut, Pruned};
use crate::bench::{Bench, Wanted};
use crate::judge::{AS_GOOD, Judge, Trial, is_sure};
use crate::step::{Candidate, Knob};
use blklab::job_rows::JobRow;
use blklab::statistics::{Change as Difference, Verdict, adjust};
use blklab_types::Error;

/// The round of seeds after the finals.
const FIRST_ROUND: u32 = crate::finals::ROUND + 1;

/// What it runs with.
pub(crate) struct Pruning<'a> {
    pub(crate) bench: &'a Bench<'a>,
    pub(crate) judge: &'a Judge,
    pub(crate) repetitions: u32,
    pub(crate) runs_max: usize,
}

/// A part whose runs with some seeds are missing.
struct Missing {
    part: Candidate,
    /// Its place among the trials, if it was run before.
    place: Option<usize>,
    /// Seeds that it was run with.
    seeds: u32,
}

/// The candidate without each of its steps. A tunable goes with the scheduler that has it.
fn parts(candidate: &Candidate) -> Vec<Candidate> {
    let without = |i: usize| {
        let gone = &candidate.steps[i].knob;
        let stays = |(other, knob): (usize, &Knob)| {
            let belongs = *gone == Knob::Scheduler && matches!(knob, Knob::Tunable(_));
            other != i && !belongs
        };
        let steps = candidate.steps.iter().enumerate();
        let left = steps.filter(|(other, step)| stays((*other, &step.knob)));
        Candidate::new(left.map(|(_, step)| step.clone()).collect())
    };
    let all = (0..candidate.steps.len()).map(without);
    all.filter(|part| !part.steps.is_empty()).collect()
}

impl Pruning<'_> {
    /// Leaves out of the trial at this place what adds nothing. Places do not change; new parts
    /// stand at the end.
    ///
    /// # Errors
    /// If somebody ended it.
    pub(crate) fn run(
        &self,
        whole: usize,
        trials: &mut Vec<Trial>,
        not_tried: &mut Vec<String>,
    ) -> Result<(usize, Pruned), Error> {
        let (before, not_tried_before) = (self.bench.runs(), not_tried.len());
        let (mut left, mut left_out) = (whole, Vec::new());
        let mut round = FIRST_ROUND;
        loop {
            let parts = parts(&trials[left].candidate);
            let ran = self.with_all_seeds(parts, round, trials, not_tried)?;
            let Some(next) = self.least_missed(whole, &ran, trials) else {
                break;
            };
            let gone = trials[left].candidate.without(&trials[next].candidate);
            left_out.push(LeftOut {
                what: gone.what(),
                with: self.judge.text(&trials[left]),
                without: self.judge.text(&trials[next]),
            });
            left = next;
            round += 1;
        }
        let pruned = Pruned {
            left_out,
            not_run: not_tried.len() - not_tried_before,
            runs: self.bench.runs() - before,
        };
        Ok((left, pruned))
    }

    /// Runs parts with the seeds that they miss, as many as may be, and says where they are.
    fn with_all_seeds(
        &self,
        parts: Vec<Candidate>,
        round: u32,
        trials: &mut Vec<Trial>,
        not_tried: &mut Vec<String>,
    ) -> Result<Vec<usize>, Error> {
        let mut missing = self.missing(parts, trials);
        let mut allowed = self.runs_max.saturating_sub(self.bench.runs());
        missing.retain(|m| {
            let runs = (self.repetitions - m.seeds) as usize;
            let is_allowed = runs <= allowed;
            if is_allowed {
                allowed -= runs;
            } else {
                not_tried.push(format!(
                    "{}, as a part of the answer: {} runs are not enough",
                    m.part.what(),
                    self.runs_max
                ));
            }
            is_allowed
        });
        let wanted = missing.iter().flat_map(|m| {
            let seeds = m.seeds..self.repetitions;
            seeds.map(|seed| Wanted::new(m.part.changes(), seed))
        });
        let mut ran = self.bench.run_all(&wanted.collect::<Vec<_>>())?.into_iter();
        let mut places = Vec::new();
        for m in missing {
            let more = ran.by_ref().take((self.repetitions - m.seeds) as usize);
            // All of its results are taken, also where one could not run.
            let more: Vec<Result<Vec<JobRow>, Error>> = more.collect();
            match more.into_iter().collect::<Result<Vec<_>, Error>>() {
                Ok(more) => places.push(self.place(m, more, round, trials)),
                Err(why) => not_tried.push(format!("{}: {}", m.part.what(), why.what)),
            }
        }
        Ok(places)
    }

    /// What seeds the parts miss, those that promise most first.
    fn missing(&self, parts: Vec<Candidate>, trials: &[Trial]) -> Vec<Missing> {
        let missing = parts.into_iter().map(|part| {
            let place = trials.iter().position(|t| t.candidate.is_same(&part));
            let runs = place.map_or(0, |place| trials[place].runs.len());
            Missing {
                part,
                place,
                seeds: (runs as u32).min(self.repetitions),
            }
        });
        let mut missing: Vec<Missing> = missing.collect();
        let gain = |m: &Missing| m.place.map_or(0.0, |place| trials[place].gain);
        missing.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        missing
    }

    /// Puts a part with all its runs among the trials, and says where.
    fn place(
        &self,
        m: Missing,
        more: Vec<Vec<JobRow>>,
        round: u32,
        trials: &mut Vec<Trial>,
    ) -> usize {
        let Some(place) = m.place else {
            let trial = self.judge.judge(m.part, more);
            trials.push(trial.in_round(round));
            return trials.len() - 1;
        };
        if !more.is_empty() {
            let mut runs = std::mem::take(&mut trials[place].runs);
            runs.extend(more);
            let candidate = trials[place].candidate.clone();
            trials[place] = self.judge.judge(candidate, runs).in_round(round);
        }
        place
    }

    /// The part that is to stay, if one loses nothing of the whole.
    fn least_missed(&self, whole: usize, parts: &[usize], trials: &[Trial]) -> Option<usize> {
        let judged = self.judge.differences(trials);
        let aim = self.judge.goal.metric.aim;
        let beside = |&part: &usize| self.judge.between(&trials[part].runs, &trials[whole].runs);
        let mut beside: Vec<Difference> = parts.iter().map(beside).collect();
        adjust(&mut beside);
        let tested = parts.iter().zip(&beside).map(|(&place, beside)| {
            let trial = &trials[place];
            Part {
                place,
                gain: trial.gain,
                is_answer: trial.keeps() && is_sure(judged[place].verdict(aim), trial.gain),
                whole_beside: beside.verdict(aim),
            }
        });
        let whole = Whole {
            gain: trials[whole].gain,
            interval: judged[whole].interval.map(|ends| self.judge.gains(ends)),
        };
        whole.least_missed(tested)
    }
}

/// What is pruned.
struct Whole {
    gain: f64,
    /// Of its gain.
    interval: Option<[f64; 2]>,
}

/// What is left without a step of it.
struct Part {
    place: usize,
    gain: f64,
    /// Whether it is surely better than the experiment as it is, and keeps to the bounds.
    is_answer: bool,
    /// What the whole is beside it.
    whole_beside: Verdict,
}

impl Whole {
    /// Whether nothing is lost that the seeds show: it is as good, or not surely worse and
    /// within what the whole's gain may be.
    fn loses_nothing_with(&self, part: &Part) -> bool {
        let is_unsure = !matches!(part.whole_beside, Verdict::Better | Verdict::NoSpread);
        let is_inside = self
            .interval
            .is_some_and(|[low, high]| (low..=high).contains(&part.gain));
        part.gain * AS_GOOD >= self.gain || is_unsure && is_inside
    }

    /// The place of the best part that loses nothing and is an answer itself.
    fn least_missed(&self, parts: impl Iterator<Item = Part>) -> Option<usize> {
        let fit = parts.filter(|part| part.is_answer && self.loses_nothing_with(part));
        let best = fit.max_by(|a, b| a.gain.total_cmp(&b.gain));
        best.map(|part| part.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    fn names(candidate: &Candidate) -> Vec<String> {
        parts(candidate).iter().map(Candidate::what).collect()
    }

    #[test]
    fn each_step_is_left_out_once_and_a_tunable_goes_with_its_scheduler() {
        let requests = Step::queue("nr_requests", 7);
        let (depth, dirty) = (
            Step::tunable("async_depth", "4"),
            Step::dirty_bytes(8 << 20),
        );
        let three = Candidate::new(vec![requests.clone(), depth.clone(), dirty]);
        let pairs = [
            "async_depth=4, dirty_bytes=8m",
            "nr_requests=7, dirty_bytes=8m",
            "nr_requests=7, async_depth=4",
        ];
        assert_eq!(names(&three), pairs);
        let with_scheduler = Candidate::new(vec![requests, Step::scheduler("kyber"), depth]);
        let parts = [
            "scheduler kyber, async_depth=4",
            "nr_requests=7",
            "nr_requests=7, scheduler kyber",
        ];
        assert_eq!(names(&with_scheduler), parts);
        // Nothing is left of one step: that is the experiment as it is.
        assert!(names(&Candidate::new(vec![Step::scheduler("kyber")])).is_empty());
    }

    fn part(place: usize, gain: f64, whole_beside: Verdict) -> Part {
        Part {
            place,
            gain,
            is_answer: true,
            whole_beside,
        }
    }

    /// What of a whole that is eight times better stays in the end.
    fn left(parts: Vec<Part>) -> Option<usize> {
        let whole = Whole {
            gain: 8.0,
            interval: Some([6.5, 9.5]),
        };
        whole.least_missed(parts.into_iter())
    }

    #[test]
    fn what_adds_less_than_counts_goes_and_the_least_useful_first() {
        let (slight, none) = (
            part(1, 7.7, Verdict::Better),
            part(2, 8.1, Verdict::NoDifference),
        );
        assert_eq!(left(vec![slight, none]), Some(2));
        assert_eq!(left(vec![part(1, 7.7, Verdict::Better)]), Some(1));
        assert_eq!(left(vec![part(1, 7.5, Verdict::Better)]), None);
        assert_eq!(left(vec![part(1, 7.7, Verdict::NoSpread)]), Some(1));
        assert_eq!(left(vec![part(1, 7.5, Verdict::NoSpread)]), None);
    }

    #[test]
    fn what_is_not_surely_worse_goes_if_it_is_within_the_interval() {
        assert_eq!(left(vec![part(1, 7.0, Verdict::NoDifference)]), Some(1));
        assert_eq!(left(vec![part(1, 6.0, Verdict::NoDifference)]), None);
    }

    #[test]
    fn what_is_no_answer_itself_does_not_stay() {
        let broken = Part {
            is_answer: false,
            ..part(1, 8.1, Verdict::Same)
        };
        assert_eq!(left(vec![broken]), None);
    }
}
