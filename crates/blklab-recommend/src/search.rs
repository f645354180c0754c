// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds of runs: all steps once, what goes together, the best with other seeds.

use crate::answer::{Confirmed, Price, Recommendation, Tried};
use crate::bench::{Bench, Wanted};
use crate::candidates::{self, Known};
use crate::goal::{Goal, Keep, others, settled_keeps};
use crate::jobs::JobFacts;
use crate::step::{Candidate, Knob, Step};
use crate::{Ask, How};
use blklab::figure::{Calls, Figure};
use blklab::job_rows::JobRow;
use blklab::statistics::{Change as Difference, Figure as Values, Verdict, adjust};
use blklab::whatif::Change;
use blklab_experiment::{Catalogue, Experiment};
use blklab_types::Error;

/// What helps less is not combined with anything.
const HELPS: f64 = 1.03;

/// Steps that are combined with each other.
const COMBINED: usize = 5;

/// Candidates that are run with several seeds.
const FINALISTS: usize = 4;

/// A candidate with fewer steps is preferred to one that is better by less.
const AS_GOOD: f64 = 1.05;

/// What one run with a candidate came to.
struct Trial {
    candidate: Candidate,
    /// What jobs got, by repetition.
    runs: Vec<Vec<JobRow>>,
    gain: f64,
    /// The same with the first seed alone.
    gain_once: f64,
    breaks: Vec<String>,
}

/// What trials are judged by.
struct Judge {
    goal: Figure,
    keeps: Vec<Keep>,
    /// The runs without a change, by repetition.
    base: Vec<Vec<JobRow>>,
    others: Vec<String>,
}

/// The mean of a figure over runs; none if one has none.
fn mean(figure: &Figure, runs: &[Vec<JobRow>]) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|rows| figure.value(rows)).collect();
    let values = values.filter(|v| !v.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

impl Judge {
    /// The runs without a change beside so many with one.
    fn base(&self, runs: usize) -> &[Vec<JobRow>] {
        &self.base[..runs.min(self.base.len())]
    }

    fn judge(&self, candidate: Candidate, runs: Vec<Vec<JobRow>>) -> Trial {
        let base = self.base(runs.len());
        let gain = |base: &[Vec<JobRow>], runs: &[Vec<JobRow>]| match (
            mean(&self.goal, base),
            mean(&self.goal, runs),
        ) {
            (Some(before), Some(after)) => self.goal.gain(before, after),
            _ => 0.0,
        };
        let breaks = self.keeps.iter().filter(|keep| {
            let (before, after) = (mean(&keep.figure, base), mean(&keep.figure, &runs));
            !keep.holds(before, after)
        });
        Trial {
            breaks: breaks.map(Keep::to_string).collect(),
            candidate,
            gain: gain(base, &runs),
            gain_once: gain(&base[..1], &runs[..1]),
            runs,
        }
    }

    /// What others pay: bandwidth, and latency where they wait.
    fn prices(&self, runs: &[Vec<JobRow>]) -> Vec<Price> {
        let base = self.base(runs.len());
        let figures = self.others.iter().flat_map(|job| {
            ["bandwidth", "clat_p99"].map(|key| Figure::of_job(key, Calls::Main, job))
        });
        let price = |figure: Figure| {
            let before = mean(&figure, base)?;
            let after = mean(&figure, runs);
            Some(Price {
                figure: figure.to_string(),
                before: figure.text(before),
                after: after.map_or("none".to_owned(), |after| figure.text(after)),
                gain: after.map(|after| figure.gain(before, after)),
            })
        };
        figures.filter_map(price).collect()
    }

    fn difference(&self, runs: &[Vec<JobRow>]) -> Difference {
        let values = |runs: &[Vec<JobRow>]| {
            let all = runs.iter().filter_map(|rows| self.goal.value(rows));
            Values::mean(all.collect())
        };
        Difference::between(&values(self.base(runs.len())), &values(runs), true)
    }
}

impl Trial {
    fn keeps(&self) -> bool {
        self.breaks.is_empty() && self.gain > 0.0
    }
}

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
    search.singles(found.steps)?;
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

    /// The best step of each knob, as far as it helps.
    fn helpful(&mut self) -> Vec<Step> {
        sort(&mut self.trials);
        let mut best: Vec<Step> = Vec::new();
        for trial in &self.trials {
            let [step] = trial.candidate.steps.as_slice() else {
                continue;
            };
            let is_new = best.iter().all(|other| other.knob != step.knob);
            if trial.keeps() && trial.gain > HELPS && is_new && best.len() < COMBINED {
                best.push(step.clone());
            }
        }
        best
    }

    /// What goes together: pairs of steps that help, tunables of another scheduler that helps,
    /// and one step more for the best pair.
    fn combinations(&mut self) -> Result<(), Error> {
        let best = self.helpful();
        let mut pairs: Vec<Candidate> = Vec::new();
        for (i, first) in best.iter().enumerate() {
            let others = best[i + 1..].iter().filter(|s| first.goes_with(s));
            pairs.extend(others.map(|s| Candidate::new(vec![first.clone(), s.clone()])));
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
        let catalogue: &Catalogue = self.bench.how.planner.catalogue();
        let e = blklab::whatif::changed(&self.bench.experiment, &scheduler.changes, catalogue)?;
        let own = candidates::tunables(&e, catalogue).into_iter();
        let with = |s: Step| Candidate::new(vec![scheduler.clone(), s]);
        Ok(own.map(with).collect())
    }

    /// Runs the best with other seeds, and says how many of the first trials these are.
    fn finals(&mut self, repetitions: u32) -> Result<usize, Error> {
        sort(&mut self.trials);
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
