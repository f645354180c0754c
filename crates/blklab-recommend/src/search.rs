// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds of runs: all steps once, what goes together, the best with other seeds, the parts of
//! the best.

use crate::answer::{Confirmed, Pruned, Recommendation, Tried};
use crate::bench::{Bench, Wanted};
use crate::candidates::{self, Known};
use crate::finals::{self, FINALISTS, Places};
use crate::goal::{Goal, Keep, others, settled_keeps};
use crate::grid;
use crate::jobs::JobFacts;
use crate::judge::{AS_GOOD, HELPS, Judge, Trial, is_sure, mean, sort};
use crate::prune::Pruning;
use crate::step::{Candidate, Knob, Step};
use crate::{Ask, How};
use blklab::figure::Figure;
use blklab::job_rows::JobRow;
use blklab::whatif::Change;
use blklab_experiment::Experiment;
use blklab_types::Error;
use std::ops::Range;

/// Steps that are combined with each other.
const COMBINED: usize = 5;

/// Of these, those that are combined with each other and not with the best alone.
const PAIRED: usize = 3;

/// What makes it worse than this by itself is not tried beside the best either.
const WORSE: f64 = 0.9;

/// The step that helps most, and one that helps more and breaks a bound: what is set beside it
/// may keep it. Of steps that help alike it is the one that stands first, as elsewhere.
fn leaders(trials: &mut [Trial]) -> Vec<Step> {
    sort(trials);
    let singles = trials.iter().filter(|t| t.candidate.steps.len() == 1);
    let helpful = singles.filter(|t| t.gain > HELPS);
    let (keep, break_them): (Vec<&Trial>, Vec<&Trial>) = helpful.partition(|t| t.keeps());
    let first = keep.first();
    let least = first.map_or(0.0, |t| t.gain);
    let other = break_them.first().filter(|t| t.gain > least);
    let both = first.into_iter().chain(other);
    both.map(|t| t.candidate.steps[0].clone()).collect()
}

/// Tries what may help, and says what does.
///
/// # Errors
/// If the experiment cannot run, nobody has the figures that are asked about, or it is
/// interrupted.
pub fn recommend(e: &Experiment, ask: &Ask, how: &How<'_>) -> Result<Recommendation, Error> {
    let plan = how.planner.plan(e)?;
    let jobs = plan
        .jobs()
        .map(|text| text.jobs.jobs.as_slice())
        .unwrap_or_default();
    let bench = Bench::new(e, how);
    let as_it_is = Wanted::new(Vec::new(), 0);
    let base = bench.run_all(&[as_it_is])?.remove(0)?;
    let goal = Goal::settled(ask.goal.as_ref(), &base).map_err(|err| err.about("goal"))?;
    let keeps = settled_keeps(&ask.keeps, &goal, &base).map_err(|err| err.about("keep"))?;
    let facts = JobFacts::all(jobs, &base);
    let mut judge = Judge {
        others: others(&goal, &base),
        goal,
        keeps,
        base: vec![base],
    };
    let found = candidates::steps(&Known {
        experiment: e,
        catalogue: how.planner.catalogue(),
        jobs: &facts,
        goal: &judge.goal,
        keeps: &judge.keeps,
    });
    let mut search = Search {
        bench: &bench,
        judge: &mut judge,
        trials: Vec::new(),
        not_tried: Vec::new(),
        runs_max: ask.runs_max,
        places: Places::new(ask.runs_max, ask.repetitions),
    };
    search.singles(found.steps.clone())?;
    search.combinations()?;
    search.finals(ask.repetitions)?;
    let (best, pruned) = search.pruned(ask.repetitions)?;
    let (trials, not_tried) = (search.trials, search.not_tried);
    let device = e.device.to_string().replace(',', ", ");
    let mut answer = Recommendation {
        goal: judge.goal.to_string(),
        before: mean(&judge.goal, &judge.base).map_or(String::new(), |v| judge.goal.text(v)),
        keeps: judge.keeps.iter().map(Keep::to_string).collect(),
        on: format!("Linux {}, {}, {device}", e.kernel, e.scheduler),
        disks: plan
            .site()
            .devices
            .iter()
            .map(|(_, name)| name.clone())
            .collect(),
        tried: said(&judge, &trials),
        answer: best,
        pruned,
        confirmed: None,
        grid: None,
        left_out: found.left_out,
        not_tried,
        runs: 0,
        repetitions: ask.repetitions,
        notes: plan.notes().to_vec(),
    };
    if let (Some(target), Some(best)) = (&ask.confirm, answer.best()) {
        answer.confirmed = Some(confirm(&bench, &judge.goal, target, &best.changes)?);
    }
    answer.runs = bench.runs();
    if let Some(together) = ask.exhaustive {
        let as_it_is = || mean(&judge.goal, &judge.base).unwrap_or_default();
        let value = answer.best().map_or_else(as_it_is, |best| best.after);
        let wanted = grid::Grids {
            together: usize::from(together),
            repetitions: ask.repetitions,
        };
        answer.grid = Some(wanted.run(&found.steps, &bench, &mut judge, value)?);
    }
    Ok(answer)
}

/// The rounds of one question.
struct Search<'a> {
    bench: &'a Bench<'a>,
    judge: &'a mut Judge,
    trials: Vec<Trial>,
    not_tried: Vec<String>,
    runs_max: usize,
    /// Who is run with other seeds; the runs of these are kept.
    places: Places,
}

impl Search<'_> {
    /// Runs that are left for the rounds before the last.
    fn left(&self) -> usize {
        self.runs_max
            .saturating_sub(self.bench.runs() + self.places.runs)
    }

    /// Runs candidates once, as many as may be.
    fn run(&mut self, mut all: Vec<Candidate>) -> Result<(), Error> {
        let left = self.left();
        for candidate in all.drain(left.min(all.len())..) {
            let why = format!(
                "{}: {} runs are not enough",
                candidate.what(),
                self.runs_max
            );
            self.not_tried.push(why);
        }
        let wanted: Vec<Wanted> = all.iter().map(|c| Wanted::new(c.changes(), 0)).collect();
        for (candidate, ran) in all.into_iter().zip(self.bench.run_all(&wanted)?) {
            match ran {
                Ok(rows) => self.trials.push(self.judge.judge(candidate, vec![rows])),
                Err(why) => self
                    .not_tried
                    .push(format!("{}: {}", candidate.what(), why.what)),
            }
        }
        Ok(())
    }

    fn singles(&mut self, steps: Vec<Step>) -> Result<(), Error> {
        self.run(steps.into_iter().map(|s| Candidate::new(vec![s])).collect())
    }

    /// The best step of each knob, the best first, as far as it is worth a try beside another:
    /// it helps by itself, or it is about who gets what and harms little, as what waits behind
    /// one thing shows only once that is gone.
    fn partners(&mut self) -> Vec<Step> {
        sort(&mut self.trials);
        let mut best: Vec<Step> = Vec::new();
        for trial in &self.trials {
            let [step] = trial.candidate.steps.as_slice() else {
                continue;
            };
            let least = match step.knob {
                Knob::Limit(_) | Knob::Share | Knob::Job(_) => WORSE,
                _ => HELPS,
            };
            if trial.gain > least && best.iter().all(|other| other.knob != step.knob) {
                best.push(step.clone());
            }
        }
        best
    }

    /// Those that keep to the bounds and help.
    fn helpful(&mut self) -> Vec<Step> {
        sort(&mut self.trials);
        let out = self.trials.iter().filter(|t| !t.keeps());
        let out: Vec<String> = out.map(|t| t.candidate.what()).collect();
        let mut best = self.partners();
        best.retain(|step| !out.contains(&step.what) && self.helps(step));
        best.truncate(COMBINED);
        best
    }

    /// Whether a step helps by itself.
    fn helps(&self, step: &Step) -> bool {
        let mut own = self
            .trials
            .iter()
            .filter(|t| t.candidate.what() == step.what);
        own.any(|t| t.gain > HELPS)
    }

    /// What goes together: the best step, and a better one that breaks a bound, with one of each
    /// other kind; the next with each other; tunables of another scheduler that helps; and one
    /// step more for the best pair.
    fn combinations(&mut self) -> Result<(), Error> {
        let best = self.helpful();
        let partners = self.partners();
        let mut pairs: Vec<Candidate> = Vec::new();
        for leader in leaders(&mut self.trials) {
            let others = partners.iter().filter(|s| leader.goes_with(s));
            pairs.extend(others.map(|s| Candidate::new(vec![leader.clone(), s.clone()])));
        }
        let paired = &best[best.len().min(1)..best.len().min(PAIRED)];
        for (i, one) in paired.iter().enumerate() {
            let others = paired[i + 1..].iter().filter(|s| one.goes_with(s));
            pairs.extend(others.map(|s| Candidate::new(vec![one.clone(), s.clone()])));
        }
        pairs.extend(self.tunables_of_others(&best)?);
        self.run(pairs)?;
        sort(&mut self.trials);
        let best_of_all = self.trials.first().map(|t| t.candidate.clone());
        if let Some(pair) = best_of_all.filter(|c| c.steps.len() == 2) {
            let fits = |s: &&Step| pair.steps.iter().all(|own| own.goes_with(s));
            let triples = best.iter().filter(fits).map(|s| pair.and(s));
            self.run(triples.collect())?;
        }
        Ok(())
    }

    /// Another scheduler that helps, with each of its own tunables.
    fn tunables_of_others(&self, best: &[Step]) -> Result<Vec<Candidate>, Error> {
        let Some(scheduler) = best.iter().find(|s| s.knob == Knob::Scheduler) else {
            return Ok(Vec::new());
        };
        candidates::with_tunables(scheduler, self.bench)
    }

    /// Runs the most promising with a second seed and the best of these with all. These stand
    /// first.
    fn finals(&mut self, repetitions: u32) -> Result<(), Error> {
        let second = repetitions.min(2);
        let promising = finals::ahead(&mut self.trials, self.places.promising);
        let mut rest = self.trials.split_off(promising);
        self.more_seeds(1..second)?;
        let finalists = finals::ahead(&mut self.trials, FINALISTS);
        rest.extend(self.trials.split_off(finalists));
        self.more_seeds(second..repetitions)?;
        let finalists = std::mem::take(&mut self.trials).into_iter();
        self.trials
            .extend(finalists.map(|t| t.in_round(finals::ROUND)));
        self.trials.extend(rest);
        self.in_order();
        Ok(())
    }

    /// Those with all seeds first, each part the best first.
    fn in_order(&mut self) {
        let (mut all_seeds, mut rest): (Vec<Trial>, Vec<Trial>) =
            self.trials.drain(..).partition(|t| t.round.is_some());
        sort(&mut all_seeds);
        sort(&mut rest);
        self.trials = all_seeds;
        self.trials.extend(rest);
    }

    /// The best of the finalists without what adds nothing, by its place, and what went.
    fn pruned(&mut self, repetitions: u32) -> Result<(Option<usize>, Option<Pruned>), Error> {
        let Some(best) = chosen(self.judge, &self.trials) else {
            return Ok((None, None));
        };
        if self.trials[best].candidate.steps.len() < 2 {
            return Ok((Some(best), None));
        }
        let pruning = Pruning {
            bench: self.bench,
            judge: self.judge,
            repetitions,
            runs_max: self.runs_max,
        };
        let (left, pruned) = pruning.run(best, &mut self.trials, &mut self.not_tried)?;
        let left = self.trials[left].candidate.clone();
        self.in_order();
        let mut trials = self.trials.iter();
        let place = trials.position(|t| t.candidate.is_same(&left));
        Ok((place, Some(pruned)))
    }

    /// Runs all trials and the experiment as it is with more seeds, if there are trials.
    fn more_seeds(&mut self, repetitions: Range<u32>) -> Result<(), Error> {
        if self.trials.is_empty() {
            return Ok(());
        }
        let changes = self.trials.iter().map(|t| t.candidate.changes());
        let sides = std::iter::once(Vec::new()).chain(changes);
        let each = |changes: Vec<Change>| {
            let all = repetitions.clone();
            all.map(move |repetition| Wanted::new(changes.clone(), repetition))
        };
        let wanted: Vec<Wanted> = sides.flat_map(each).collect();
        let ran: Result<Vec<Vec<JobRow>>, Error> =
            self.bench.run_all(&wanted)?.into_iter().collect();
        let mut ran = ran?.into_iter();
        let each = repetitions.len();
        self.judge.base.extend(ran.by_ref().take(each));
        for trial in std::mem::take(&mut self.trials) {
            let mut runs = trial.runs;
            runs.extend(ran.by_ref().take(each));
            self.trials.push(self.judge.judge(trial.candidate, runs));
        }
        Ok(())
    }
}

/// What each trial came to.
fn said(judge: &Judge, trials: &[Trial]) -> Vec<Tried> {
    let tried = trials.iter().zip(judge.differences(trials)).map(|(t, d)| {
        // Two seeds choose finalists and part nothing.
        let has_interval = t.round.is_some() && t.runs.len() > 1;
        Tried {
            what: t.candidate.what(),
            steps: t.candidate.steps.iter().map(|s| s.what.clone()).collect(),
            changes: t.candidate.changes(),
            before: d.before,
            after: d.after,
            value: judge.goal.text(d.after),
            gain: t.gain,
            gain_once: t.gain_once,
            interval: d
                .interval
                .filter(|_| has_interval)
                .map(|ends| judge.gains(ends)),
            verdict: has_interval.then(|| d.verdict(judge.goal.metric.aim)),
            seeds: t.runs.len(),
            prices: judge.prices(&t.runs),
            breaks: t.breaks.clone(),
            paste: t.candidate.pastes(),
        }
    });
    tried.collect()
}

/// The finalist that is surely better and keeps to the bounds; of those that are as good as the
/// best the one with the fewest steps.
fn chosen(judge: &Judge, trials: &[Trial]) -> Option<usize> {
    let judged = judge.differences(trials);
    let is_good = |i: &usize| {
        let t = &trials[*i];
        let verdict = judged[*i].verdict(judge.goal.metric.aim);
        t.round.is_some() && is_sure(verdict, t.gain) && t.breaks.is_empty()
    };
    let good: Vec<usize> = (0..trials.len()).filter(is_good).collect();
    let best = good.iter().map(|i| trials[*i].gain).fold(0.0, f64::max);
    let as_good = good
        .into_iter()
        .filter(|i| trials[*i].gain * AS_GOOD >= best);
    as_good.min_by_key(|i| (trials[*i].candidate.steps.len(), *i))
}

/// The answer on another target.
fn confirm(
    bench: &Bench<'_>,
    goal: &Figure,
    target: &str,
    changes: &[Change],
) -> Result<Confirmed, Error> {
    let mut there = bench.experiment.clone();
    there.set("target", target, bench.how.planner.catalogue())?;
    let bench = Bench::new(&there, bench.how);
    let sides = [Vec::new(), changes.to_vec()];
    let wanted = sides.map(|changes| Wanted::new(changes, 0));
    let values = bench.run_all(&wanted)?.into_iter().map(|ran| {
        let rows = ran.map_err(|err| err.what)?;
        goal.value(&rows)
            .ok_or_else(|| format!("{goal}: it makes no such calls"))
    });
    let values: Vec<Result<f64, String>> = values.collect();
    let text = |value: &Result<f64, String>| value.clone().map(|v| goal.text(v));
    let gain = match (&values[0], &values[1]) {
        (Ok(before), Ok(after)) => Some(goal.gain(*before, *after)),
        _ => None,
    };
    Ok(Confirmed {
        target: target.to_owned(),
        before: text(&values[0]),
        after: text(&values[1]),
        gain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(step: Step, gain: f64, breaks: &[&str]) -> Trial {
        Trial {
            candidate: Candidate::new(vec![step]),
            runs: Vec::new(),
            gain,
            gain_once: gain,
            breaks: breaks.iter().map(|b| (*b).to_owned()).collect(),
            round: None,
        }
    }

    #[test]
    fn of_steps_that_help_alike_the_first_leads_and_what_breaks_a_bound_only_if_it_helps_more() {
        let bound = ["bandwidth of scan >= 50 %"];
        let mut trials = vec![
            trial(Step::scheduler("kyber"), 5.0, &[]),
            trial(Step::queue("nr_requests", 7), 5.0, &[]),
            trial(Step::scheduler("none"), 4.0, &bound),
        ];
        let what = |steps: Vec<Step>| steps.into_iter().map(|s| s.what).collect::<Vec<_>>();
        assert_eq!(what(leaders(&mut trials)), ["scheduler kyber"]);
        trials.push(trial(Step::scheduler("bfq"), 9.0, &bound));
        assert_eq!(
            what(leaders(&mut trials)),
            ["scheduler kyber", "scheduler bfq"]
        );
    }
}
