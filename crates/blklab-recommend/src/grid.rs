// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exhaustive grid beside an answer: every combination of some things of different kinds, so that one can see what the search of the answer has missed.

use crate::answer::Grid;
use crate::bench::{Bench, Wanted};
use crate::candidates;
use crate::judge::{Judge, Trial, mean};
use crate::step::{Candidate, Knob, Step};
use blklab_types::Error;

/// Runs whose results are held at a time.
const HELD: usize = 256;

/// The best, which are run with other seeds.
const FINALISTS: usize = 10;

/// What stands in the way of each other: one of each kind is set.
#[derive(PartialEq)]
enum Kind<'a> {
    /// A scheduler, with one of its tunables.
    Scheduler,
    /// What control groups say.
    Share,
    /// An attribute of the queue.
    Queue,
    /// Dirty pages.
    Dirty,
    /// What a job does.
    Job(&'a str),
}

fn kind(knob: &Knob) -> Kind<'_> {
    match knob {
        Knob::Scheduler | Knob::Tunable(_) => Kind::Scheduler,
        Knob::Limit(_) | Knob::Share => Kind::Share,
        Knob::Queue(_) => Kind::Queue,
        Knob::Dirty => Kind::Dirty,
        Knob::Job(name) => Kind::Job(name),
    }
}

/// All that is set of one kind, by kind: single steps, and other schedulers with one tunable.
fn by_kind(steps: &[Step], bench: &Bench<'_>) -> Result<Vec<Vec<Candidate>>, Error> {
    let mut kinds: Vec<Vec<Candidate>> = Vec::new();
    for step in steps {
        let mut own = vec![Candidate::new(vec![step.clone()])];
        if step.knob == Knob::Scheduler {
            own.extend(candidates::with_tunables(step, bench)?);
        }
        let is_of_kind =
            |all: &&mut Vec<Candidate>| kind(&all[0].steps[0].knob) == kind(&step.knob);
        match kinds.iter_mut().find(is_of_kind) {
            Some(all) => all.extend(own),
            None => kinds.push(own),
        }
    }
    Ok(kinds)
}

/// Every combination of up to so many candidates of different kinds that go together.
fn combinations(kinds: &[Vec<Candidate>], together: usize) -> Vec<Candidate> {
    // Each with the number of its parts.
    let mut all: Vec<(usize, Candidate)> = Vec::new();
    for options in kinds {
        let smaller = all.iter().filter(|(parts, _)| *parts < together);
        let joined = smaller.flat_map(|(parts, candidate)| {
            let fit = options.iter().filter(|o| candidate.goes_with(o));
            fit.map(move |o| (parts + 1, candidate.and_all(&o.steps)))
        });
        let joined: Vec<(usize, Candidate)> = joined.collect();
        all.extend(options.iter().map(|o| (1, o.clone())));
        all.extend(joined);
    }
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// What grid is wanted.
pub(crate) struct Grids {
    pub(crate) together: usize,
    pub(crate) repetitions: u32,
}

impl Grids {
    /// Runs all of it beside an answer with this value of the goal.
    ///
    /// # Errors
    /// If somebody ended it.
    pub(crate) fn run(
        &self,
        steps: &[Step],
        bench: &Bench<'_>,
        judge: &mut Judge,
        answer: f64,
    ) -> Result<Grid, Error> {
        let before = bench.runs();
        let all = combinations(&by_kind(steps, bench)?, self.together);
        let (promising, refused) = promising(&all, bench, judge)?;
        let missing = judge.base.len() as u32..self.repetitions;
        let missing: Vec<Wanted> = missing.map(|i| Wanted::new(Vec::new(), i)).collect();
        let base: Result<Vec<_>, Error> = bench.run_all(&missing)?.into_iter().collect();
        judge.base.extend(base?);
        let as_it_is = mean(&judge.goal, &judge.base).unwrap_or(answer);
        let found = self.best(promising, bench, judge)?;
        let found = found.filter(|(_, value)| judge.goal.gain(as_it_is, *value) > 1.0);
        let (what, value) = found.map_or((None, as_it_is), |(what, value)| (Some(what), value));
        Ok(Grid {
            together: self.together,
            combinations: all.len() - refused,
            refused,
            runs: bench.runs() - before,
            what,
            value,
            text: judge.goal.text(value),
            answer,
            answer_text: judge.goal.text(answer),
            ahead: judge.goal.gain(answer, value),
        })
    }

    /// The best over all seeds that keeps to the bounds, with its value.
    fn best(
        &self,
        promising: Vec<Trial>,
        bench: &Bench<'_>,
        judge: &Judge,
    ) -> Result<Option<(String, f64)>, Error> {
        let mut found: Option<(String, f64)> = None;
        for trial in promising {
            let wanted = (1..self.repetitions).map(|i| Wanted::new(trial.candidate.changes(), i));
            let wanted: Vec<Wanted> = wanted.collect();
            let more: Result<Vec<_>, Error> = bench.run_all(&wanted)?.into_iter().collect();
            let mut runs = trial.runs;
            runs.extend(more?);
            let trial = judge.judge(trial.candidate, runs);
            let Some(value) = mean(&judge.goal, &trial.runs).filter(|_| trial.keeps()) else {
                continue;
            };
            let is_better = |(_, other): &(String, f64)| judge.goal.gain(*other, value) > 1.0;
            if found.as_ref().is_none_or(is_better) {
                found = Some((trial.candidate.what(), value));
            }
        }
        Ok(found)
    }
}

/// Runs all of them once: the best that keep to the bounds, and how many could not run.
fn promising(
    all: &[Candidate],
    bench: &Bench<'_>,
    judge: &Judge,
) -> Result<(Vec<Trial>, usize), Error> {
    let mut refused = 0;
    let mut best: Vec<Trial> = Vec::new();
    for some in all.chunks(HELD) {
        let wanted = some.iter().map(|c| Wanted::new(c.changes(), 0));
        let ran = bench.run_all(&wanted.collect::<Vec<_>>())?;
        for (candidate, ran) in some.iter().zip(ran) {
            match ran {
                Ok(rows) => best.push(judge.judge(candidate.clone(), vec![rows])),
                Err(_) => refused += 1,
            }
        }
        best.retain(Trial::keeps);
        best.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        best.truncate(FINALISTS);
    }
    Ok((best, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_combinations_of_three_kinds_are_there_once() {
        let one = |step: Step| vec![Candidate::new(vec![step])];
        let two = |a: Step, b: Step| [one(a), one(b)].concat();
        let kinds = [
            two(Step::scheduler("bfq"), Step::tunable("fifo_batch", "1")),
            two(Step::queue("nr_requests", 8), Step::queue("nr_requests", 9)),
            one(Step::dirty_bytes(8 << 20)),
            one(Step {
                knob: Knob::Job("a".to_owned()),
                ..Step::dirty_bytes(1 << 20)
            }),
        ];
        // Of kinds with 2, 2, 1 and 1: pairs, and triples.
        let (pairs, triples) = (4 + 2 + 2 + 2 + 2 + 1, 4 + 4 + 2 + 2);
        assert_eq!(combinations(&kinds, 1).len(), 6);
        assert_eq!(combinations(&kinds, 2).len(), 6 + pairs);
        let all = combinations(&kinds, 3);
        assert_eq!(all.len(), 6 + pairs + triples);
        let mut names: Vec<String> = all.iter().map(Candidate::what).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn what_does_not_go_together_is_left_out() {
        let weights = Step {
            knob: Knob::Share,
            ..Step::scheduler("bfq")
        };
        let kinds = [
            vec![Candidate::new(vec![Step::scheduler("kyber")])],
            vec![Candidate::new(vec![weights])],
        ];
        assert_eq!(combinations(&kinds, 3).len(), 2);
    }
}
