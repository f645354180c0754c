// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds of runs: all steps once, what goes together, the best with other seeds.

use crate::answer::{Confirmed, Recommendation, Tried};
use crate::bench::{Bench, Wanted};
use crate::candidates::{self, Known};
use crate::goal::{Goal, Keep, others, settled_keeps};
use crate::grid;
use crate::jobs::JobFacts;
use crate::judge::{Judge, Trial, mean};
use crate::step::{Candidate, Knob, Step};
use crate::{Ask, How};
use blklab::figure::Figure;
use blklab::job_rows::JobRow;
use blklab::statistics::{Change as Difference, Verdict, adjust};
use blklab::whatif::Change;
use blklab_experiment::Experiment;
use blklab_types::Error;

/// What helps less is not combined with anything.
const HELPS: f64 = 1.03;

/// Steps that are combined with each other.
const COMBINED: usize = 5;

/// Of these, those that are combined with each other and not with the best alone.
const PAIRED: usize = 3;

/// What makes it worse than this by itself is not tried beside the best either.
const WORSE: f64 = 0.9;

/// Candidates that are run with several seeds.
const FINALISTS: usize = 3;

/// A candidate with fewer steps is preferred to one that is better by less.
const AS_GOOD: f64 = 1.05;

/// The best first; of two that are alike the one with fewer steps, and of these the one that
/// no application has to know of.
fn sort(trials: &mut [Trial]) {
    let asks = |t: &Trial| {
        let mut steps = t.candidate.steps.iter();
        steps.any(|s| matches!(s.knob, Knob::Job(_)))
    };
    // Gains within two per cent count as the same.
    let gain = |t: &Trial| (t.gain.max(1e-9).ln() / 1.02f64.ln()).round() as i64;
    trials.sort_by_key(|t| {
        let is_out = !t.keeps();
        (is_out, -gain(t), t.candidate.steps.len(), asks(t))
    });
}

/// Of the best, what adds nothing to one of its parts stands behind all that does.
fn simpler_first(trials: &mut Vec<Trial>) {
    let is_part = |part: &Trial, whole: &Trial| {
        let has = |what: &str| whole.candidate.steps.iter().any(|s| s.what == what);
        let mut steps = part.candidate.steps.iter();
        part.candidate.steps.len() < whole.candidate.steps.len() && steps.all(|s| has(&s.what))
    };
    let adds = |whole: &Trial| {
        let mut parts = trials
            .iter()
            .filter(|part| part.keeps() && is_part(part, whole));
        !parts.any(|part| part.gain * AS_GOOD >= whole.gain)
    };
    let adds: Vec<bool> = trials.iter().map(adds).collect();
    let (first, rest): (Vec<_>, Vec<_>) = std::mem::take(trials)
        .into_iter()
        .zip(adds)
        .partition(|(t, adds)| *adds && t.keeps());
    trials.extend(first.into_iter().chain(rest).map(|(t, _)| t));
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
    let as_it_is = Wanted {
        changes: Vec::new(),
        repetition: 0,
    };
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
        reserved: (FINALISTS + 1) * (ask.repetitions as usize - 1),
    };
    search.singles(found.steps.clone())?;
    search.combinations()?;
    let finalists = search.finals(ask.repetitions)?;
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
        tried: Vec::new(),
        answer: None,
        confirmed: None,
        grid: None,
        left_out: found.left_out,
        not_tried,
        runs: 0,
        repetitions: ask.repetitions,
        notes: plan.notes().to_vec(),
    };
    answer.tried = said(&judge, &trials, finalists);
    answer.answer = chosen(&answer.tried, &trials, finalists);
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
    /// Runs that are kept for the last round.
    reserved: usize,
}

impl Search<'_> {
    /// Runs that are left for the rounds before the last.
    fn left(&self) -> usize {
        self.runs_max
            .saturating_sub(self.bench.runs() + self.reserved)
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
        let wanted: Vec<Wanted> = all
            .iter()
            .map(|c| Wanted {
                changes: c.changes(),
                repetition: 0,
            })
            .collect();
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

    /// The step that helps most, and one that helps more and breaks a bound: what is set beside
    /// it may keep it.
    fn leaders(&self) -> Vec<Step> {
        let singles = self.trials.iter().filter(|t| t.candidate.steps.len() == 1);
        let singles: Vec<&Trial> = singles.filter(|t| t.gain > HELPS).collect();
        let best = |all: Vec<&Trial>| {
            let best = all.into_iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
            best.map(|t| (t.candidate.steps[0].clone(), t.gain))
        };
        let (keep, break_them) = singles.into_iter().partition(|t| t.keeps());
        let (first, other) = (best(keep), best(break_them));
        let least = first.as_ref().map_or(0.0, |(_, gain)| *gain);
        let other = other.filter(|(_, gain)| *gain > least);
        first
            .into_iter()
            .chain(other)
            .map(|(step, _)| step)
            .collect()
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
        for leader in self.leaders() {
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

    /// Runs the best with other seeds, and says how many of the first trials these are.
    fn finals(&mut self, repetitions: u32) -> Result<usize, Error> {
        sort(&mut self.trials);
        simpler_first(&mut self.trials);
        let promising = self.trials.iter().take(FINALISTS);
        let finalists = promising
            .take_while(|t| t.keeps() && t.gain > HELPS)
            .count();
        if finalists == 0 {
            return Ok(0);
        }
        let mut wanted: Vec<Wanted> = Vec::new();
        let none = Vec::new();
        let changes = self.trials[..finalists]
            .iter()
            .map(|t| t.candidate.changes());
        let sides: Vec<Vec<Change>> = std::iter::once(none).chain(changes).collect();
        for changes in &sides {
            wanted.extend((1..repetitions).map(|repetition| Wanted {
                changes: changes.clone(),
                repetition,
            }));
        }
        let ran: Result<Vec<Vec<JobRow>>, Error> =
            self.bench.run_all(&wanted)?.into_iter().collect();
        let mut ran = ran?.into_iter();
        let each = repetitions as usize - 1;
        self.judge.base.extend(ran.by_ref().take(each));
        let rest = self.trials.split_off(finalists);
        for trial in std::mem::take(&mut self.trials) {
            let mut runs = trial.runs;
            runs.extend(ran.by_ref().take(each));
            self.trials.push(self.judge.judge(trial.candidate, runs));
        }
        sort(&mut self.trials);
        self.trials.extend(rest);
        Ok(finalists)
    }
}

/// What each trial came to; those of the last round stand first.
fn said(judge: &Judge, trials: &[Trial], finalists: usize) -> Vec<Tried> {
    let mut differences: Vec<Difference> =
        trials.iter().map(|t| judge.difference(&t.runs)).collect();
    adjust(&mut differences[..finalists]);
    let tried = trials.iter().zip(differences).map(|(t, d)| {
        let has_interval = t.runs.len() > 1;
        let gains = |[low, high]: [f64; 2]| {
            let [a, b] = [judge.goal.gain(1.0, low), judge.goal.gain(1.0, high)];
            [a.min(b), a.max(b)]
        };
        Tried {
            what: t.candidate.what(),
            steps: t.candidate.steps.iter().map(|s| s.what.clone()).collect(),
            changes: t.candidate.changes(),
            before: d.before,
            after: d.after,
            value: judge.goal.text(d.after),
            gain: t.gain,
            gain_once: t.gain_once,
            interval: d.interval.filter(|_| has_interval).map(gains),
            verdict: has_interval.then(|| d.verdict(judge.goal.metric.aim)),
            seeds: t.runs.len(),
            prices: judge.prices(&t.runs),
            breaks: t.breaks.clone(),
            paste: t.candidate.pastes(),
        }
    });
    tried.collect()
}

/// The best that is surely better and keeps to the bounds; of those that are as good the one
/// with the fewest steps.
fn chosen(tried: &[Tried], trials: &[Trial], finalists: usize) -> Option<usize> {
    let is_good = |i: &usize| {
        let t = &tried[*i];
        // A load that is the same with each seed is what it is.
        let is_better = match t.verdict {
            Some(Verdict::NoSpread) => t.gain > HELPS,
            verdict => verdict == Some(Verdict::Better),
        };
        is_better && t.breaks.is_empty()
    };
    let good: Vec<usize> = (0..finalists).filter(is_good).collect();
    let best = good.iter().map(|i| tried[*i].gain).fold(0.0, f64::max);
    let as_good = good
        .into_iter()
        .filter(|i| tried[*i].gain * AS_GOOD >= best);
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
    let wanted = sides.map(|changes| Wanted {
        changes,
        repetition: 0,
    });
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

    fn trial(steps: &[Step], gain: f64) -> Trial {
        Trial {
            candidate: Candidate::new(steps.to_vec()),
            runs: Vec::new(),
            gain,
            gain_once: gain,
            breaks: Vec::new(),
        }
    }

    #[test]
    fn a_combination_that_adds_nothing_stands_behind_its_parts() {
        let (depth, requests) = (
            Step::tunable("async_depth", "4"),
            Step::queue("nr_requests", 7),
        );
        let both = [depth.clone(), requests.clone()];
        let mut trials = vec![
            trial(&both, 7.7),
            trial(std::slice::from_ref(&depth), 7.5),
            trial(std::slice::from_ref(&requests), 2.0),
        ];
        simpler_first(&mut trials);
        assert_eq!(trials[0].candidate.what(), "async_depth=4");
        assert_eq!(trials[2].candidate.steps.len(), 2);
        let mut trials = vec![trial(&both, 9.0), trial(&[depth], 7.5)];
        simpler_first(&mut trials);
        assert_eq!(trials[0].candidate.steps.len(), 2);
    }
}
