// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment on both targets, and how what came out compares.

use super::given::{Given, given};
use super::starts;
use blklab::analysis::divergence::{self, Comparison, Kind, PhaseError, Side, phase_errors};
use blklab::analysis::middle;
use blklab::kernel::KernelVersion;
use blklab::metric::{self, Numbers};
use blklab::run::{RunOptions, RunOutput, run};
use blklab::targets::{self, Planner};
use blklab_experiment::Experiment;
use blklab_fiostat::Ddir;
use blklab_types::{Dev, Error};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is compared, per job and direction.
const FIGURES: [&str; 5] = [
    "group_bandwidth_kib_s",
    "group_iops",
    "clat_mean_us",
    "fio_clat_p50_us",
    "fio_clat_p99_us",
];
/// A figure agrees that is no further off,
const TOLERANCE: f64 = 0.10;
/// or, if it is a time, by no more than this, in us.
const SLACK_US: f64 = 2.0;
/// What a look of fio's main process takes on the kernel while all jobs run, in ns, beside the
/// changes of tasks: readings of the clock (a look holds up a busy job for 6.9 us on 6.12 and
/// 7.3, of which two changes are 4).
const LOOK_NS: u32 = 2_900;
/// What a look of fio's main process takes on the kernel while jobs wait to be started, in ns:
/// changes to a job that prepares itself and back, and readings of the clock. (Jobs that
/// start at looks one after another begin 200.123 ms after each other on 7.3 and 200.127 on
/// 6.12, of which two sleeps are 200.1 and changes of tasks in the models 0.004.)
const START_LOOK_NS: u32 = 10_500;
/// Directions of fio's results.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// What the two sides are called.
pub(super) const NAMES: [&str; 2] = ["kernel", "sim"];

/// The two targets.
pub struct Pair {
    planner: Planner,
    stop: Arc<AtomicBool>,
}

/// One figure of one job and direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigurePair {
    /// Name of the job.
    pub job: String,
    /// Its place in fio's list, from 0.
    pub n: usize,
    /// read, write or trim.
    pub rw: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Unit of both values.
    pub unit: &'static str,
    /// On the kernel.
    pub kernel: f64,
    /// On the models.
    pub sim: f64,
    /// Whether they agree.
    pub within: bool,
}

impl FigurePair {
    /// Distance of the ratio from 1.
    pub fn error(&self) -> f64 {
        (self.sim / self.kernel - 1.0).abs()
    }
}

/// What a comparison comes to, in a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "verdict", content = "kind", rename_all = "lowercase")]
pub enum Verdict {
    /// The order is the same, and all figures agree.
    Same,
    /// The orders part.
    Order(Kind),
    /// The order is the same; a figure is off by what this phase takes longer on the models
    /// or on the kernel.
    Figure {
        /// btt's name of the phase.
        phase: &'static str,
        /// Whether it is the models where it is longer.
        sim: bool,
    },
}

impl Verdict {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Verdict::Same => "the same".to_owned(),
            Verdict::Order(kind) => kind.words(NAMES),
            Verdict::Figure { phase, sim } => {
                format!("same order; {phase} longer in {}", NAMES[usize::from(*sim)])
            }
        }
    }

    /// Whether it is a difference that is no chance.
    pub fn is_difference(&self) -> bool {
        match self {
            Verdict::Same => false,
            Verdict::Order(kind) => !kind.is_chance(),
            Verdict::Figure { .. } => true,
        }
    }
}

/// How what came out of the two targets compares.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the experiment.
    pub id: String,
    /// Release.
    pub kernel: String,
    /// The release of the models, where they do not know that one.
    pub models: Option<String>,
    /// Scheduler.
    pub scheduler: String,
    /// Device.
    pub device: String,
    /// In a word.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Dispatch orders.
    pub order: Comparison,
    /// Dispatch orders where the models get the kernel's bios and completions.
    pub given: Given,
    /// Figures of the jobs.
    pub figures: Vec<FigurePair>,
    /// Mean times of the phases of bios: kernel, then models.
    pub phases: Vec<PhaseError>,
    /// The difference in words.
    pub sentence: String,
}

impl Compared {
    /// Figures that do not agree, the furthest off first.
    pub fn outside(&self) -> Vec<&FigurePair> {
        let mut all: Vec<&FigurePair> = self.figures.iter().filter(|f| !f.within).collect();
        all.sort_by(|a, b| b.error().total_cmp(&a.error()));
        all
    }

    /// Median over the figures of the ratio's distance from 1.
    pub fn median_error(&self) -> Option<f64> {
        middle(self.figures.iter().map(FigurePair::error).collect())
    }
}

impl Pair {
    /// Both targets. Setting `stop` from outside ends their runs.
    pub fn new(planner: Planner, stop: Arc<AtomicBool>) -> Pair {
        Pair { planner, stop }
    }

    /// What experiments choose from.
    pub fn catalogue(&self) -> &blklab_experiment::Catalogue {
        self.planner.catalogue()
    }

    /// The same experiment for the kernel and for the models.
    fn sides(&self, e: &Experiment) -> [Experiment; 2] {
        let with = |target: &str| Experiment {
            target: target.to_owned(),
            ..e.clone()
        };
        let kernel = with("kernel");
        let mut sim = targets::models_of(&kernel, self.planner.catalogue());
        // Where it pays for its looks it makes them when fio does.
        sim.vm.look_cost_ns.get_or_insert(LOOK_NS);
        sim.vm.start_look_cost_ns.get_or_insert(START_LOOK_NS);
        if self.planner.survey(&sim).is_err() {
            // A kernel that the models do not know is compared with the newest they do.
            sim.kernel = sim.kernel.min(KernelVersion::NEWEST);
            sim.drop_absent();
        }
        [kernel, sim]
    }

    /// Whether both targets take it.
    ///
    /// # Errors
    /// What one of them refuses.
    pub fn check(&self, e: &Experiment) -> Result<(), Error> {
        for side in self.sides(e) {
            self.planner.plan(&side)?;
        }
        Ok(())
    }

    /// Runs it on both and compares. None if a stop was asked for.
    ///
    /// # Errors
    /// If a target refuses it or fails.
    pub fn compare(&self, e: &Experiment) -> Result<Option<Compared>, Error> {
        let mut sides = self.sides(e);
        let models = sides[1].clone();
        let mut outputs: Vec<RunOutput> = Vec::with_capacity(2);
        for side in &mut sides {
            let starts = outputs.first().and_then(starts::start_times);
            if let Some(given) = starts.and_then(|starts| starts::given(side, &starts)) {
                *side = given;
            }
            let plan = self.planner.plan(side)?;
            let options = RunOptions {
                stop: Arc::clone(&self.stop),
                kept_events_max: usize::MAX,
                ..RunOptions::default()
            };
            let output = run(&plan, &options)?;
            if output.interrupted {
                return Ok(None);
            }
            outputs.push(output);
        }
        let sides: [RunOutput; 2] = outputs.try_into().expect("two sides");
        let order = orders(&sides);
        let given = given(&sides[0], &models);
        let figures = figures(&sides);
        let phases = phase_errors([&sides[0].stats.all, &sides[1].stats.all]);
        let verdict = verdict(&order, &figures, &phases);
        let sentence = sentence(&verdict, &order, &figures, &phases);
        Ok(Some(Compared {
            id: e.id.clone(),
            kernel: e.kernel.to_string(),
            models: (models.kernel != e.kernel).then(|| models.kernel.to_string()),
            scheduler: e.scheduler.clone(),
            device: e.device.name.clone(),
            verdict,
            order,
            given,
            figures,
            phases,
            sentence,
        }))
    }
}

fn orders(sides: &[RunOutput; 2]) -> Comparison {
    let devices = [0, 1].map(|i| {
        let all = sides[i].disks.iter().map(|d| d.dev);
        all.take(1).collect::<Vec<Dev>>()
    });
    let side = |i: usize| Side {
        name: NAMES[i],
        events: &sides[i].events,
        devices: &devices[i],
    };
    let mut all = divergence::compare([side(0), side(1)]);
    all.remove(0)
}

fn figures(sides: &[RunOutput; 2]) -> Vec<FigurePair> {
    let wanted = FIGURES.map(|f| metric::find(f).expect("a metric"));
    let mut all = Vec::new();
    let jobs = sides[0].jobs.iter().zip(&sides[1].jobs).enumerate();
    for (n, (kernel, sim)) in jobs {
        for (rw, dir) in DIRECTIONS.into_iter().zip(Ddir::ALL) {
            let numbers = [kernel, sim].map(|job| Numbers::new([job], Some(dir)));
            let ran_ms = [kernel, sim].map(|job| job.stat.dir(dir).runtime_ms);
            for w in &wanted {
                let value = |i: usize| w.metric.of_jobs(&numbers[i]).map(|v| w.convert(v));
                let (Some(a), Some(b)) = (value(0), value(1)) else {
                    continue;
                };
                if a <= 0.0 {
                    continue;
                }
                let unit = w.unit.text();
                // Rates are of whole milliseconds.
                let near = match unit {
                    "us" => (a - b).abs() <= SLACK_US,
                    _ => ran_ms[0].abs_diff(ran_ms[1]) <= 1,
                };
                all.push(FigurePair {
                    job: kernel.job.name.clone(),
                    n,
                    rw,
                    name: w.metric.title,
                    unit,
                    kernel: a,
                    sim: b,
                    within: near || (b / a - 1.0).abs() <= TOLERANCE,
                });
            }
        }
    }
    all
}

/// The phase whose means differ most, of those that add up to the whole.
fn worst_phase(phases: &[PhaseError]) -> Option<&PhaseError> {
    let parts = phases.iter().filter(|p| !["Q2Q", "Q2C"].contains(&p.name));
    parts.max_by(|a, b| {
        let weight = |p: &PhaseError| p.difference_ns().abs();
        weight(a).total_cmp(&weight(b))
    })
}

fn verdict(order: &Comparison, figures: &[FigurePair], phases: &[PhaseError]) -> Verdict {
    if let Some(first) = &order.first {
        return Verdict::Order(first.kind);
    }
    if figures.iter().all(|f| f.within) {
        return Verdict::Same;
    }
    let worst = worst_phase(phases);
    Verdict::Figure {
        phase: worst.map_or("none", |p| p.name),
        sim: worst.is_some_and(|p| p.difference_ns() > 0.0),
    }
}

fn sentence(
    verdict: &Verdict,
    order: &Comparison,
    figures: &[FigurePair],
    phases: &[PhaseError],
) -> String {
    let Verdict::Figure { .. } = verdict else {
        return order.to_string();
    };
    let off = figures.iter().filter(|f| !f.within);
    let off = off.max_by(|a, b| a.error().total_cmp(&b.error()));
    let figure = off.map_or_else(String::new, |f| {
        format!(
            "; {} {} {}: kernel {:.1} {}, sim {:.1}",
            f.job, f.rw, f.name, f.kernel, f.unit, f.sim
        )
    });
    let phase = worst_phase(phases).map_or_else(String::new, |p| {
        format!(
            "; {} takes {:.1} us on the kernel, {:.1} in sim",
            p.name,
            p.mean_ns[0] / 1000.0,
            p.mean_ns[1] / 1000.0
        )
    });
    format!("{order}{figure}{phase}")
}
