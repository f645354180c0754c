// SPDX-License-Identifier: MIT OR Apache-2.0
//! What newer kernels change for an experiment, and which of their changes does it.
//!
//! The experiment runs on each kernel. Between two of them, each change that the models know
//! is left out of the later kernel, one at a time: what the result then loses is what the change
//! does. A change whose absence leaves every event as it was does nothing here. The later kernel
//! without all of them must run event for event as the earlier one; where it does not, what is
//! left is said.
//!
//! ```
//! use blklab::experiment::{Experiment, Workload};
//! use blklab::kernel_changes::{Asked, kernel_changes};
//! use blklab::matrix::Overrides;
//! use blklab::targets::{Planner, Sim};
//!
//! # fn main() -> Result<(), blklab::types::Error> {
//! let job = "[r]\nrw=randread\ndirect=1\nsize=64m\nio_size=64k\n";
//! let workload = Workload::Fio { name: "r.fio".to_owned(), text: job.to_owned() };
//! let planner = Planner::new(Sim::default());
//! let asked = Asked {
//!     overrides: Overrides { schedulers: vec!["none".to_owned()], ..Overrides::default() },
//!     kernels: vec!["6.1".to_owned(), "6.2".to_owned()],
//!     metrics: Vec::new(),
//!     threads: 1,
//! };
//! let e = Experiment::new("r", workload);
//! let steps = kernel_changes(&e, &asked, &planner, &blklab::run::run, &Default::default())?;
//! assert_eq!(steps[0].after, "6.2");
//! # Ok(())
//! # }
//! ```

use crate::job_rows::{JobRow, job_rows};
use crate::matrix::{self, Overrides, Refused, Setting};
use crate::metric::{Aim, Compared, JOBS, Metric};
use crate::parallel;
use crate::run::{Collect, RunOptions, RunOutput};
use crate::statistics::{Change as Difference, Figure, Verdict, adjust};
use blklab_experiment::{Experiment, can_be_without, change_name};
use blklab_kernel::{Change, KernelVersion};
use blklab_target::{Plan, Planner};
use blklab_types::{Error, no_such};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The stack and the repetitions; its kernels are not looked at.
    pub overrides: Overrides,
    /// The kernels, two or more, in the order in which they are compared.
    pub kernels: Vec<String>,
    /// Columns of metrics of jobs; the usual ones if there are none.
    pub metrics: Vec<String>,
    /// Runs at a time.
    pub threads: usize,
}

/// From one kernel to the next.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The kernel that is compared with.
    pub before: String,
    /// The other.
    pub after: String,
    /// Repetitions of each.
    pub runs: usize,
    /// How the numbers of the jobs differ.
    pub figures: Vec<FigureChange>,
    /// Changes that lie between the two, with what each does; the largest effect first.
    pub effects: Vec<Effect>,
    /// Changes between the two that do nothing here: their names.
    pub without_effect: Vec<String>,
    /// Whether the later kernel without all of them runs event for event as the earlier.
    pub is_all: bool,
}

/// How a number of some jobs differs.
#[derive(Clone, Debug, Serialize)]
pub struct FigureChange {
    /// Name of the jobs.
    pub job: String,
    /// read, write, trim, sync.
    pub direction: String,
    /// Column of the metric.
    pub metric: String,
    /// By how much: from the earlier kernel to the later, or from the later without a change
    /// to the later.
    #[serde(flatten)]
    pub change: Difference,
    /// What that comes to.
    pub verdict: Verdict,
}

impl FigureChange {
    /// How many times, up or down; 1 for none.
    pub fn factor(&self) -> f64 {
        match self.change.ratio {
            Some(ratio) if ratio > 0.0 => ratio.max(1.0 / ratio),
            _ => 1.0,
        }
    }
}

/// What a change does.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// Its name, as the setting `without` takes it.
    pub name: String,
    /// What changed.
    pub what: String,
    /// Where that was read.
    pub source: String,
    /// The numbers without it and with it.
    pub figures: Vec<FigureChange>,
}

impl Effect {
    /// The largest of its figures' changes: how many times, up or down; 1 for none.
    pub fn largest(&self) -> f64 {
        let factors = self.figures.iter().map(FigureChange::factor);
        factors.fold(1.0, f64::max)
    }
}

/// Runs a plan: [`run()`](crate::run::run), or what says more when a run fails.
pub type RunPlan<'a, E> = dyn Fn(&Plan, &RunOptions) -> Result<RunOutput, E> + Sync + 'a;

/// What is between each kernel and the next, for an experiment that `run` runs. Setting `stop`
/// ends it early.
///
/// # Errors
/// If there are not two kernels, something is not possible on one of them, or a run fails.
pub fn kernel_changes<E: From<Error> + Send>(
    e: &Experiment,
    asked: &Asked,
    planner: &Planner,
    run: &RunPlan<'_, E>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Step>, E> {
    if asked.kernels.len() < 2 {
        return Err(Error::new("name two kernels or more to compare")
            .about("kernel")
            .into());
    }
    if !e.without.is_empty() {
        let what = format!(
            "kernels are compared as they are, and changes left out one by one: take {} out of the experiment",
            e.without.join("+")
        );
        return Err(Error::new(what).about("without").into());
    }
    let lab = Lab {
        e,
        asked,
        metrics: metrics(&asked.metrics)?,
        planner,
        run,
        stop,
    };
    let pairs = asked.kernels.windows(2);
    pairs.map(|pair| lab.step(&pair[0], &pair[1])).collect()
}

/// The metrics of some columns, or the usual ones.
fn metrics(columns: &[String]) -> Result<Vec<&'static Metric>, Error> {
    if columns.is_empty() {
        let usual = JOBS.iter().filter(|m| m.compared != Compared::IfAsked);
        return Ok(usual.collect());
    }
    let all: Vec<String> = JOBS.iter().map(Metric::column).collect();
    let named = |column: &String| {
        let place = all.iter().position(|c| c == column);
        place.map(|place| &JOBS[place]).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(String::as_str).collect();
            Error::new(no_such("metric", column, &names))
        })
    };
    columns.iter().map(named).collect()
}

/// What all runs have in common.
struct Lab<'a, E> {
    e: &'a Experiment,
    asked: &'a Asked,
    metrics: Vec<&'static Metric>,
    planner: &'a Planner,
    run: &'a RunPlan<'a, E>,
    stop: &'a Arc<AtomicBool>,
}

/// The repetitions of one configuration.
struct Ran {
    digests: Vec<u64>,
    rows: Vec<Vec<JobRow>>,
}

impl<E: From<Error> + Send> Lab<'_, E> {
    fn step(&self, before: &str, after: &str) -> Result<Step, E> {
        let between = self.between(before, after)?;
        let names: Vec<&str> = between.iter().map(|(name, _)| name.as_str()).collect();
        let all = names.join("+");
        // All that differ by one thing, and the two ends.
        let mut wanted = vec![(before, ""), (after, ""), (after, all.as_str())];
        wanted.extend(names.iter().map(|name| (after, *name)));
        let mut ran = self.run(&wanted)?.into_iter();
        let mut next = || ran.next().expect("each that is wanted has run");
        let (first, last, none) = (next(), next(), next());
        let mut effects = Vec::new();
        let mut without_effect = Vec::new();
        for (name, change) in between {
            let without = next();
            if without.digests == last.digests {
                without_effect.push(name);
                continue;
            }
            effects.push(Effect {
                name,
                what: change.what.to_owned(),
                source: change.source.to_owned(),
                figures: self.figures(&without, &last),
            });
        }
        effects.sort_by(|a, b| b.largest().total_cmp(&a.largest()));
        Ok(Step {
            before: before.to_owned(),
            after: after.to_owned(),
            runs: last.digests.len(),
            figures: self.figures(&first, &last),
            effects,
            without_effect,
            is_all: none.digests == first.digests,
        })
    }

    /// What the later kernel has and the earlier does not, by name, oldest first.
    fn between(&self, before: &str, after: &str) -> Result<Vec<(String, &'static Change)>, Error> {
        let kernel = |text: &str| text.parse::<KernelVersion>().map_err(Error::from);
        let (before, after) = (kernel(before)?, kernel(after)?);
        if let Some(old) = [before, after].iter().find(|v| v.has_single_queue()) {
            let what = format!(
                "{old}: changes can be left out one at a time from 5.0 on, where the multi-queue \
                 block layer begins"
            );
            return Err(Error::new(what).about("kernel"));
        }
        let all = self.planner.catalogue().changes().into_iter();
        let new = all.filter(|(_, c)| can_be_without(c) && c.is_in(after) && !c.is_in(before));
        let mut named: Vec<(String, &'static Change)> =
            new.map(|(owner, c)| (change_name(owner, c), c)).collect();
        named.sort_by(|a, b| (a.1.release, &a.0).cmp(&(b.1.release, &b.0)));
        // Rows of one model and release are left out together.
        named.dedup_by(|b, a| a.0 == b.0);
        Ok(named)
    }

    /// Runs the repetitions of kernels, each without some changes.
    fn run(&self, wanted: &[(&str, &str)]) -> Result<Vec<Ran>, E> {
        let mut plans: Vec<Plan> = Vec::new();
        let mut counts = Vec::new();
        for (kernel, without) in wanted {
            let of_it = self.plans(kernel, without)?;
            counts.push(of_it.len());
            plans.extend(of_it);
        }
        let length = |plan: &Plan| crate::meter::length(plan);
        let outputs = parallel::map_longest_first(&plans, self.asked.threads, length, |plan| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::interrupted().into());
            }
            let options = RunOptions {
                stop: Arc::clone(self.stop),
                collect: Collect::metrics(plan),
                ..RunOptions::default()
            };
            (self.run)(plan, &options)
        });
        let outputs = outputs.into_iter().collect::<Result<Vec<RunOutput>, _>>()?;
        if outputs.iter().any(|output| output.interrupted) {
            return Err(Error::interrupted().into());
        }
        let mut outputs = outputs.iter();
        let ran = counts.into_iter().map(|count| {
            let own: Vec<&RunOutput> = outputs.by_ref().take(count).collect();
            Ran {
                digests: own.iter().map(|output| output.digest.value()).collect(),
                rows: own.iter().map(|output| job_rows(output)).collect(),
            }
        });
        Ok(ran.collect())
    }

    fn plans(&self, kernel: &str, without: &str) -> Result<Vec<Plan>, Error> {
        let mut overrides = self.asked.overrides.clone();
        overrides.kernels = vec![kernel.to_owned()];
        if !without.is_empty() {
            overrides.settings.push(Setting {
                key: "without".to_owned(),
                values: vec![without.to_owned()],
            });
        }
        let e = std::slice::from_ref(self.e);
        let told = |refused: Refused| refused.error;
        let cells = matrix::expand(e, &overrides, self.planner).map_err(told)?;
        let several = cells.iter().find(|cell| !cell.label.is_empty());
        if let Some(cell) = several {
            let what = format!("{} varies: one stack at a time", cell.name());
            return Err(Error::new(what));
        }
        matrix::plans(&cells, &overrides, self.planner).map_err(told)
    }

    /// How the numbers of all jobs differ, the pairs of one seed side by side.
    fn figures(&self, before: &Ran, after: &Ran) -> Vec<FigureChange> {
        let mut figures = Vec::new();
        for row in after.rows.first().into_iter().flatten() {
            for metric in self.metrics.iter().filter(|m| is_of(m, row)) {
                let [was, is] = [before, after].map(|side| values(side, row, metric));
                if was.len() != is.len() || is.is_empty() {
                    continue;
                }
                let change = Difference::between(&Figure::mean(was), &Figure::mean(is), true);
                figures.push((
                    metric.aim,
                    FigureChange {
                        job: row.job.clone().unwrap_or_default(),
                        direction: row.direction.to_owned(),
                        metric: metric.column(),
                        change,
                        verdict: change.verdict(metric.aim),
                    },
                ));
            }
        }
        adjust(figures.iter_mut().map(|(_, figure)| &mut figure.change));
        let verdict = |(aim, figure): (Aim, FigureChange)| FigureChange {
            verdict: figure.change.verdict(aim),
            ..figure
        };
        figures.into_iter().map(verdict).collect()
    }
}

/// Whether a metric is one of such jobs: syncs move no bytes.
fn is_of(metric: &Metric, row: &JobRow) -> bool {
    let is_job = row.level != "group";
    is_job
        && match metric.compared {
            Compared::Transfers => row.direction != "sync",
            Compared::Syncs => row.direction == "sync",
            Compared::Always | Compared::IfAsked => true,
        }
}

/// A metric of the same jobs in each run that has it.
fn values(ran: &Ran, row: &JobRow, metric: &Metric) -> Vec<f64> {
    let same = |other: &&JobRow| {
        (&other.job, &other.cgroup, other.direction) == (&row.job, &row.cgroup, row.direction)
            && other.level == row.level
    };
    let of_run = |rows: &Vec<JobRow>| {
        let found = rows.iter().find(same)?;
        metric.of_jobs(&found.numbers)
    };
    ran.rows.iter().filter_map(of_run).collect()
}
