// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorded machine rebuilt, its processes run on it as they were and with something
//! changed.

use crate::change::{Change, apply_all};
use crate::figures::{Figures, figures};
use crate::law::{Commands, Hints};
use crate::remedy;
use crate::report::{COUNT_MIN, Device, Row, Trial, WhatIf};
use blklab_analysis::findings::{Context, Report};
use blklab_experiment::{DeviceSpec, Experiment, Timing, Workload};
use blklab_explain::{DiskSurvey, Stack, Survey};
use blklab_infer::{Collector, Recorded};
use blklab_sched::Schedulers;
use blklab_target::{Planner, Replay, Sinks};
use blklab_trace::Actions;
use blklab_types::{Error, Pid, Span};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A pause that a limit of a control group may have made is longer.
const HELD_MIN: Span = Span(5_000_000);

/// A model whose run without a change is farther from the recording, as a factor, says
/// nothing about changes.
pub(crate) const TRUSTED: f64 = 1.5;

/// A law that explains less of a disk's times than this is tried against a model of disks.
const DISK_UNEXPLAINED: f64 = 0.2;

/// Another law counts as the better one if it is nearer to the recording by this factor.
const CLEARLY: f64 = 0.9;

/// A process counts if it has this share of all bios or of their time.
const COUNTS: f64 = 0.05;

/// What is known of a recorded machine, and what was found in its trace.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Kernel, queue, device.
    pub context: &'a Context,
    /// The scheduler: of the context, or the one that a re-enactment fits best.
    pub scheduler: &'a str,
    /// What the trace says about the machine.
    pub survey: &'a Survey,
    /// Events that are known to be missing.
    pub lost: u64,
    /// What was found.
    pub report: &'a Report,
    /// The schedulers that there are.
    pub schedulers: Schedulers,
    /// Who plans runs of the rebuilt machine.
    pub planner: &'a Planner,
}

/// The recorded machine and its processes.
pub struct Stage<'a> {
    known: Known<'a>,
    experiment: Experiment,
    recorded: Recorded,
    limited: Option<Pid>,
    device: Device,
    assumed: Vec<String>,
    before: [Before; 2],
    main: Timing,
    stop: Arc<AtomicBool>,
}

/// The run without a change.
#[derive(Clone, Debug)]
struct Before {
    timing: Timing,
    figures: Vec<Figures>,
    /// How far it is from the recording: a factor, 1 or more.
    off: f64,
}

impl<'a> Stage<'a> {
    /// The machine that the trace was recorded on, tried against the recording.
    ///
    /// # Errors
    /// If too little is known or the trace does not show enough: in a clause.
    pub fn new(
        mut recorded: Recorded,
        commands: &Commands,
        known: Known<'a>,
        stop: Arc<AtomicBool>,
    ) -> Result<Stage<'a>, Error> {
        let (dev, disk) = known.survey.disk(known.lost)?;
        if recorded.dev != dev {
            return Err(Error::new(
                "its bios and its commands are of different devices",
            ));
        }
        if !recorded.has_completions() {
            return Err(Error::new("no C event says when a bio ended"));
        }
        let stack = Stack::of_context(known.context, known.scheduler, known.schedulers, disk)?;
        let mut experiment = stack.experiment;
        experiment.workload = Workload::Processes(Vec::new());
        let mut assumed = stack.assumed;
        let limited = release(&mut recorded, &mut experiment, &known, &mut assumed);
        blklab_infer::link(&mut recorded);
        for p in recorded
            .processes
            .iter_mut()
            .filter(|p| commands.slept(p.pid))
        {
            p.submit_freely();
            let name = p.name.as_deref().unwrap_or("a process");
            assumed.push(format!(
                "{name} would have as many I/Os under way as there are requests: it always \
                 waited for one"
            ));
        }
        let hints = Hints {
            servers: servers(known.context),
            rotates: known.context.rotates() == Some(true),
        };
        let devices = devices(&recorded, commands, hints, &experiment, disk)?;
        recorded.commands = Vec::new();
        let mut stage = Stage {
            known,
            experiment,
            recorded,
            limited,
            device: Device::default(),
            assumed,
            before: [Timing::Closed, Timing::Open].map(|timing| Before {
                timing,
                figures: Vec::new(),
                off: f64::MAX,
            }),
            main: Timing::Closed,
            stop,
        };
        stage.choose(devices)?;
        Ok(stage)
    }

    /// Takes the device on which the recorded processes fare most as they did.
    fn choose(&mut self, devices: Vec<Candidate>) -> Result<(), Error> {
        let seen = figures(&self.recorded);
        let mut best: Option<(f64, Candidate, [Before; 2])> = None;
        for candidate in devices {
            let mut e = self.experiment.clone();
            e.device.clone_from(&candidate.0);
            let before = [Timing::Closed, Timing::Open].map(|timing| {
                let figures = self.run(&e, &self.recorded, timing)?;
                let off = off(&seen, &figures);
                Ok::<Before, Error>(Before {
                    timing,
                    figures,
                    off,
                })
            });
            let [closed, open] = before;
            let before = [closed?, open?];
            let off = before[0].off.min(before[1].off);
            // The first one knows most: flushes, what the driver does.
            if best.as_ref().is_none_or(|b| off < CLEARLY * b.0) {
                best = Some((off, candidate, before));
            }
        }
        let best = best.ok_or_else(|| Error::new("there is no device"))?;
        let (_, (spec, device, assumed), before) = best;
        let [closed, open] = &before;
        // Only a loop says what faster requests do for throughput.
        self.main = if closed.off <= TRUSTED.max(open.off) {
            Timing::Closed
        } else {
            Timing::Open
        };
        self.experiment.device = spec;
        self.device = device;
        self.assumed.extend(assumed);
        self.before = before;
        Ok(())
    }

    /// What recorded processes get on a machine.
    fn run(
        &self,
        e: &Experiment,
        recorded: &Recorded,
        timing: Timing,
    ) -> Result<Vec<Figures>, Error> {
        let collector = Rc::new(RefCell::new(Collector::default()));
        let replay = Replay::for_recorded_time(Arc::new(recorded.clone()), timing);
        let sinks = Sinks::of_events(Box::new(Rc::clone(&collector)));
        let plan = self.known.planner.plan_recorded(e, replay)?;
        if plan.run(sinks, Arc::clone(&self.stop))?.interrupted {
            return Err(Error::interrupted());
        }
        let collector = Rc::into_inner(collector);
        let collector = collector.ok_or_else(|| Error::new("a run keeps its events"))?;
        let ran = collector.into_inner().finish(Actions::ALL, None);
        let mut ran = ran.map_err(|e| Error::new(e.to_string()))?;
        if let Some(pid) = self.limited {
            give_back(&mut ran, pid);
        }
        Ok(figures(&ran))
    }

    /// What comes of changes.
    ///
    /// # Errors
    /// If they are not possible: one line.
    pub fn what_if(&self, changes: &[Change]) -> Result<Trial, Error> {
        remedy::asked(changes, |changes, trial| self.compare(changes, trial))
    }

    fn compare(&self, changes: &[Change], trial: &mut Trial) -> Result<(), Error> {
        let mut e = self.experiment.clone();
        let mut recorded = self.recorded.clone();
        apply_all(
            changes,
            &mut e,
            &mut recorded,
            self.known.planner.catalogue(),
        )?;
        let seen = figures(&self.recorded);
        let of_application = changes.iter().any(Change::is_of_application);
        for before in &self.before {
            let after = self.run(&e, &recorded, before.timing)?;
            let rows = rows(Some(&seen), &before.figures, &after);
            match before.timing {
                Timing::Closed => trial.closed_loop = rows,
                // When it would do what it does then, nobody knows.
                Timing::Open if of_application => {}
                Timing::Open => trial.open_loop = rows,
            }
        }
        trial.is_closed = self.main == Timing::Closed || trial.open_loop.is_empty();
        Ok(())
    }

    /// What comes of each finding's remedies.
    pub fn remedies(&self) -> Vec<Trial> {
        let facts = remedy::Facts {
            context: self.known.context,
            recorded: &self.recorded,
            experiment: &self.experiment,
            catalogue: self.known.planner.catalogue(),
            is_rerun: false,
        };
        let findings = self.known.report.findings.iter();
        let own = findings.filter(|f| f.dev == self.recorded.dev);
        remedy::trials(own, &facts, |changes, trial| self.compare(changes, trial))
    }

    /// All that is to be said, with these trials.
    pub fn report(&self, trials: Vec<Trial>) -> WhatIf {
        let off = |timing| {
            let found = self.before.iter().find(|b| b.timing == timing);
            found.map_or(f64::MAX, |b| b.off)
        };
        let main = off(self.main);
        WhatIf {
            dev: self.recorded.dev,
            kernel: self.experiment.kernel.to_string(),
            scheduler: self.experiment.scheduler.clone(),
            device: self.device.clone(),
            assumed: self.assumed.clone(),
            is_closed: self.main == Timing::Closed,
            closed_loop_off: off(Timing::Closed),
            open_loop_off: off(Timing::Open),
            is_trusted: main <= TRUSTED,
            is_rerun: false,
            trials,
        }
    }
}

/// A device that may be that of a trace: what it is, in words, what was assumed of it.
type Candidate = (DeviceSpec, Device, Vec<String>);

/// The devices that may be that of a trace, the most likely one first.
fn devices(
    recorded: &Recorded,
    commands: &Commands,
    hints: Hints,
    experiment: &Experiment,
    disk: &DiskSurvey,
) -> Result<Vec<Candidate>, Error> {
    let law = commands.law(recorded.dev, hints);
    let law = law.ok_or_else(|| Error::new("no command of the device ends in it"))?;
    let scsi = experiment.device.name == "sata-7200-2008";
    let budget = scsi && !experiment.kernel.has_single_queue();
    let mut devices = vec![(
        law.device(disk.nr_fua > 0, budget),
        Device {
            words: law.words(),
            unexplained: Some(law.unexplained),
        },
        law.assumed.clone(),
    )];
    if hints.rotates && law.unexplained > DISK_UNEXPLAINED {
        let device = DeviceSpec {
            name: "sata-7200-2008".to_owned(),
            params: Vec::new(),
        };
        let words = "the model of a SATA disk of 7200 rpm".to_owned();
        let unexplained = None;
        devices.push((device, Device { words, unexplained }, Vec::new()));
    }
    if let Ok(fit) = recorded.device() {
        let words = format!("the law 'measured', {fit}");
        let device = DeviceSpec {
            name: blklab_infer::device::DeviceFit::NAME.to_owned(),
            params: fit.params,
        };
        let unexplained = None;
        devices.push((device, Device { words, unexplained }, Vec::new()));
    }
    Ok(devices)
}

/// The commands that a device works on at a time, where its driver says so: null_blk all;
/// loop one, since a worker takes them one by one (drivers/block/loop.c) and what is below
/// is shared.
fn servers(context: &Context) -> Option<u32> {
    match context.device()? {
        name if name.starts_with("nullb") => Some(0),
        name if name.starts_with("loop") => Some(1),
        _ => None,
    }
}

/// How far figures are from recorded ones: of means and rates of those who count, the
/// factor that is farthest from 1.
pub(crate) fn off(seen: &[Figures], got: &[Figures]) -> f64 {
    let nr: u64 = seen.iter().map(|f| f.count).sum();
    let time: u64 = seen.iter().map(Figures::total_ns).sum();
    let counts = |f: &&Figures| {
        let of_nr = f.count as f64 >= COUNTS * nr as f64;
        let of_time = f.total_ns() as f64 >= COUNTS * time as f64;
        (of_nr || of_time) && (f.count >= COUNT_MIN || nr < COUNT_MIN * 4)
    };
    let factor = |a: f64, b: f64| match (a, b) {
        (a, b) if a > 0.0 && b > 0.0 => (a / b).max(b / a),
        (a, b) if a == b => 1.0,
        _ => f64::MAX,
    };
    let farthest = |f: &Figures| match got.iter().find(|g| g.is_of(f)) {
        Some(g) => factor(f.mean_ns as f64, g.mean_ns as f64).max(factor(f.per_s, g.per_s)),
        None => f64::MAX,
    };
    seen.iter().filter(counts).map(farthest).fold(1.0, f64::max)
}

/// A row for each process and direction that is there before and after.
pub(crate) fn rows(seen: Option<&[Figures]>, before: &[Figures], after: &[Figures]) -> Vec<Row> {
    let among = |list: &[Figures], f: &Figures| list.iter().find(|g| g.is_of(f)).cloned();
    let row = |f: &Figures| {
        Some(Row {
            recorded: seen.map(|_| f.clone()),
            before: among(before, f)?,
            after: among(after, f)?,
        })
    };
    seen.unwrap_or(before).iter().filter_map(row).collect()
}

/// Puts processes that a limit of a control group held back into the group, and undoes
/// what it did to them: the model's limit is to do it.
fn release(
    recorded: &mut Recorded,
    e: &mut Experiment,
    known: &Known<'_>,
    assumed: &mut Vec<String>,
) -> Option<Pid> {
    let findings = known.report.findings.iter();
    let found = findings.filter(|f| f.kind == "cgroup-limit" && f.dev == recorded.dev);
    let victims: Vec<Pid> = found
        .flat_map(|f| f.victims.iter().map(|v| v.pid))
        .collect();
    let groups: Vec<(&str, &str)> = known.context.io_max().collect();
    let (&[victim], &[(group, limits)]) = (&victims[..], &groups[..]) else {
        return None;
    };
    let words = limits.split_whitespace().filter(|w| w.contains('='));
    let words = words.collect::<Vec<_>>().join(" ");
    let key = format!("cgroup.{group}.io.max");
    e.set(&key, &words, known.planner.catalogue()).ok()?;
    recorded.release(victim, HELD_MIN);
    let p = recorded.process_mut(victim)?;
    group.clone_into(&mut p.group);
    assumed.push(format!(
        "{} is in the control group {group}; without its limit it would pause between I/Os as \
         it does while the limit lets it",
        p.name.as_deref().unwrap_or("the process that is held back")
    ));
    Some(victim)
}

/// What the worker of blk-throttle queued was the limited process's.
fn give_back(ran: &mut Recorded, pid: Pid) {
    let worker = ran.processes.iter();
    let mut worker = worker
        .enumerate()
        .filter(|(_, p)| p.name.as_deref() == Some("kthrotld"));
    let Some((place, _)) = worker.next() else {
        return;
    };
    let worker = ran.processes.remove(place);
    if let Some(p) = ran.process_mut(pid) {
        p.bios.extend(worker.bios);
        p.bios.sort_by_key(|b| b.at);
    }
}
