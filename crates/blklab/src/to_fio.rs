// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a trace to a fio job, and how near the job comes to it: the job is run in the
//! simulation and its trace compared with the recorded one.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::findings::Context;
use blklab_analysis::stats::TraceStats;
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_explain::{DiskSurvey, Stack, Survey};
use blklab_formats::{FormatError, TraceFile};
use blklab_infer::{Bio, Collector, Marks, Recorded};
use blklab_sched::Schedulers;
use blklab_target::{Plan, Sinks};
use blklab_trace::{Action, Actions, Event, TraceSink, TraceSource as _};
use blklab_types::{Dev, Error, Op, Pid, SECTOR_BYTES, Span, Time};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use blklab_infer::device::DeviceFit;
pub use blklab_infer::job::{ExactJob, JobFile, Section, exact_job, job_file};

/// A trace as far as it is compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Its processes and their bios.
    pub recorded: Recorded,
    /// Its statistics.
    pub stats: TraceStats,
    /// What it shows of its machine.
    survey: Survey,
    /// I and D events.
    nr_inserted: u64,
    nr_issued: u64,
}

/// Takes a trace for a [`Summary`].
#[derive(Default)]
struct Taker {
    collector: Collector,
    stats: StatsCollector,
    survey: Survey,
    nr_inserted: u64,
    nr_issued: u64,
}

impl TraceSink for Taker {
    fn event(&mut self, event: &Event) {
        self.collector.event(event);
        self.stats.event(event);
        self.survey.event(event);
        self.nr_inserted += u64::from(event.action == Action::Insert);
        self.nr_issued += u64::from(event.action == Action::Issue);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.collector.process(time, pid, comm);
        self.stats.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.collector.new_recording();
        self.stats.new_recording();
    }
}

impl Taker {
    fn finish(self, kinds: Actions, dev: Option<Dev>) -> Result<Summary, Error> {
        let recorded = self.collector.finish(kinds, dev);
        Ok(Summary {
            recorded: recorded.map_err(|e| Error::new(e.to_string()))?,
            stats: self.stats.finish(),
            survey: self.survey,
            nr_inserted: self.nr_inserted,
            nr_issued: self.nr_issued,
        })
    }
}

/// Reads a trace; `dev` is the device that counts, where there are several.
///
/// # Errors
/// If it cannot be read, or has nothing to repeat.
pub fn read(input: &mut TraceFile, name: &Path, dev: Option<Dev>) -> Result<Summary, Error> {
    let failed = |e: FormatError| Error::new(e.to_string());
    let mut taker = Taker::default();
    input.send_all(&mut taker).map_err(failed)?;
    let kinds = input.header().map_or(Actions::ALL, |h| h.recorded);
    let read = taker.finish(kinds, dev);
    read.map_err(|e| e.in_file(&name.display().to_string()))
}

/// The machine that a trace was recorded on, as far as it shows, with a device that was fitted
/// to it.
#[derive(Clone, Debug)]
pub struct ShownStack {
    /// The machine; its workload is empty.
    pub experiment: Experiment,
    /// How the device was found.
    pub device: DeviceFit,
    /// What nobody said and the trace does not show, in sentences.
    pub assumed: Vec<String>,
}

/// The machine of a trace, where `context` says what else is known of it.
///
/// # Errors
/// If the trace does not show what its device did, or there is no such machine: in a clause.
pub fn shown_stack(
    trace: &Summary,
    context: &Context,
    schedulers: Schedulers,
) -> Result<ShownStack, Error> {
    let device = trace.recorded.device()?;
    let mut context = context.clone();
    let mut assumed = Vec::new();
    let none = blklab_experiment::Workload::Processes(Vec::new());
    let mut usual = Experiment::new("trace", none);
    let kernel = match context.kernel() {
        Some(kernel) => kernel,
        None => {
            let kernel = usual.kernel.to_string();
            assumed.push(format!(
                "the kernel is taken to be {kernel}: the newest that was measured"
            ));
            context
                .set("kernel", &kernel)
                .map_err(|e| Error::new(e.to_string()))?;
            context
                .kernel()
                .ok_or_else(|| Error::new("the kernel is not known"))?
        }
    };
    usual.choose_kernel(kernel, &blklab_sim::catalogue_with(schedulers));
    let scheduler = match context.scheduler() {
        Some(name) => name.to_owned(),
        None => {
            let direct = !kernel.has_single_queue() && trace.nr_inserted * 2 < trace.nr_issued;
            let (name, why) = if direct {
                ("none".to_owned(), "requests go past the scheduler")
            } else {
                (usual.scheduler.clone(), "the kernel's default")
            };
            assumed.push(format!("the scheduler is taken to be {name}: {why}"));
            name
        }
    };
    let nothing = DiskSurvey::default();
    let disk = trace
        .survey
        .found_on(trace.recorded.dev)
        .unwrap_or(&nothing);
    let stack = Stack::of_context(&context, &scheduler, schedulers, disk)?;
    assumed.extend(stack.assumed);
    let mut experiment = stack.experiment;
    // Tasks of the job compete for no processor.
    experiment.vm.cpus = None;
    set_device(&mut experiment, &device);
    Ok(ShownStack {
        experiment,
        device,
        assumed,
    })
}

/// Puts a fitted device into a machine; its queue depth, unless that is set.
pub fn set_device(e: &mut Experiment, device: &DeviceFit) {
    e.device = DeviceSpec {
        name: DeviceFit::NAME.to_owned(),
        params: device.params.clone(),
    };
    e.queue.queue_depth.get_or_insert(device.queue_depth);
}

/// Runs a plan and takes its trace; that of the array, where there is one.
///
/// # Errors
/// If the target fails, or nothing was queued.
pub fn simulate(plan: &Plan, stop: Arc<AtomicBool>) -> Result<Summary, Error> {
    let taker = Rc::new(RefCell::new(Taker::default()));
    let sinks = Sinks::of_events(Box::new(Rc::clone(&taker)));
    plan.run(sinks, stop)?;
    let dev = plan.site().devices.first().map(|(dev, _)| *dev);
    let taker = std::mem::take(&mut *taker.borrow_mut());
    taker.finish(Actions::ALL, dev)
}

/// A number of the recorded trace beside that of the simulated one.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What it is about: arrivals, sizes, seeks, merges, depth, dependency, latency.
    pub group: &'static str,
    /// Which number.
    pub name: String,
    /// Unit: `ns`, `bytes`, `sectors`, or none.
    pub unit: &'static str,
    /// Of the trace.
    pub recorded: f64,
    /// Of the job's run.
    pub simulated: f64,
}

impl Compared {
    /// Simulated over recorded; none where nothing was recorded.
    pub fn ratio(&self) -> Option<f64> {
        (self.recorded > 0.0).then(|| self.simulated / self.recorded)
    }

    /// Whether both differ by at most a fifth of the recorded.
    pub fn is_near(&self) -> bool {
        (self.simulated - self.recorded).abs() <= NEAR * self.recorded
    }
}

/// What counts as near.
const NEAR: f64 = 0.2;

/// How near a job comes to its trace.
pub fn compared(trace: &Summary, run: &Summary) -> Vec<Compared> {
    let (a, b) = (Numbers::new(trace), Numbers::new(run));
    let pairs = a.all.into_iter().zip(b.all);
    let rows = pairs.map(|(x, y)| Compared {
        group: x.group,
        name: x.name,
        unit: x.unit,
        recorded: x.value,
        simulated: y.value,
    });
    rows.filter(|r| r.recorded > 0.0 || r.simulated > 0.0)
        .collect()
}

struct Number {
    group: &'static str,
    name: String,
    unit: &'static str,
    value: f64,
}

struct Numbers {
    all: Vec<Number>,
}

impl Numbers {
    fn new(s: &Summary) -> Numbers {
        let mut n = Numbers { all: Vec::new() };
        let mut bios: Vec<&Bio> = s.recorded.processes.iter().flat_map(|p| &p.bios).collect();
        bios.sort_by_key(|b| b.at);
        n.arrivals(&bios, s);
        n.sizes(&bios);
        n.seeks(s);
        n.queue(s);
        n.dependency(s);
        n.latencies(&bios);
        n
    }

    fn add(
        &mut self,
        group: &'static str,
        name: impl Into<String>,
        unit: &'static str,
        value: f64,
    ) {
        let name = name.into();
        self.all.push(Number {
            group,
            name,
            unit,
            value,
        });
    }

    fn arrivals(&mut self, bios: &[&Bio], s: &Summary) {
        let bytes = |op: Op| {
            let of = bios.iter().filter(|b| b.op == op);
            of.map(|b| f64::from(b.nr_sectors) * SECTOR_BYTES as f64)
                .sum::<f64>()
        };
        self.add("arrivals", "bios", "", bios.len() as f64);
        self.add("arrivals", "bytes read", "bytes", bytes(Op::Read));
        self.add("arrivals", "bytes written", "bytes", bytes(Op::Write));
        self.add(
            "arrivals",
            "time from first to last",
            "ns",
            s.recorded.length.ns() as f64,
        );
        let gaps = bios.windows(2).map(|p| p[1].at.ns() - p[0].at.ns());
        let mut gaps: Vec<u64> = gaps.collect();
        gaps.sort_unstable();
        self.add("arrivals", "between two, p50", "ns", percentile(&gaps, 50));
        self.add("arrivals", "between two, p99", "ns", percentile(&gaps, 99));
    }

    fn sizes(&mut self, bios: &[&Bio]) {
        let with_data = bios.iter().map(|b| u64::from(b.nr_sectors) * SECTOR_BYTES);
        let mut sizes: Vec<u64> = with_data.filter(|n| *n > 0).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len().max(1) as f64;
        self.add("sizes", "mean", "bytes", mean);
        self.add("sizes", "p50", "bytes", percentile(&sizes, 50));
    }

    fn seeks(&mut self, s: &Summary) {
        let (mut next, mut steps) = (0_u64, Vec::new());
        for p in &s.recorded.processes {
            for pair in p.bios.windows(2) {
                steps.push(pair[1].sector.abs_diff(pair[0].end()));
                next += u64::from(pair[1].sector == pair[0].end());
            }
        }
        let share = next as f64 / steps.len().max(1) as f64;
        steps.sort_unstable();
        self.add(
            "seeks",
            "right behind the last of its process",
            "%",
            share * 100.0,
        );
        self.add(
            "seeks",
            "distance from it, p50",
            "sectors",
            percentile(&steps, 50),
        );
        self.add(
            "seeks",
            "distance from it, p90",
            "sectors",
            percentile(&steps, 90),
        );
    }

    fn queue(&mut self, s: &Summary) {
        let device = s.stats.devices.iter().find(|d| d.dev == s.recorded.dev);
        let Some(device) = device else { return };
        self.add("merges", "bios in a request", "", device.merge_ratio());
        self.add("depth", "bios under way, mean", "", device.depth.mean);
        self.add(
            "depth",
            "bios under way, most",
            "",
            f64::from(device.depth.max),
        );
    }

    fn dependency(&mut self, s: &Summary) {
        let bios = || s.recorded.processes.iter().flat_map(|p| &p.bios);
        let share = |mark: Marks| {
            let n = bios().filter(|b| b.marks.has(mark)).count();
            100.0 * n as f64 / s.recorded.nr_bios().max(1) as f64
        };
        self.add(
            "dependency",
            "bios that are waited for",
            "%",
            share(Marks::AWAITED),
        );
        self.add(
            "dependency",
            "bios after the end of another",
            "%",
            share(Marks::WOKE),
        );
    }

    fn latencies(&mut self, bios: &[&Bio]) {
        for (who, op) in [
            ("all", None),
            ("reads", Some(Op::Read)),
            ("writes", Some(Op::Write)),
        ] {
            let of = bios.iter().filter(|b| op.is_none_or(|op| b.op == op));
            let known = of.filter_map(|b| b.latency()).map(Span::ns);
            let mut known: Vec<u64> = known.collect();
            known.sort_unstable();
            for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
                let value = percentile(&known, percent);
                self.add("latency", format!("{who}, {name}"), "ns", value);
            }
        }
    }
}

/// The nearest rank; 0 of nothing.
fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).map_or(0.0, |v| *v as f64)
}

/// The experiment that runs a job file on a stack, from a file of that name.
pub fn job_on(stack: &Experiment, name: &str, text: String) -> Experiment {
    Experiment {
        workload: blklab_experiment::Workload::Fio {
            name: name.to_owned(),
            text,
        },
        file: String::new(),
        sections: Vec::new(),
        published: Vec::new(),
        variants: Vec::new(),
        ..stack.clone()
    }
}
