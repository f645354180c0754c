// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a recorded machine, and its trace re-enacted.

use crate::args::StackArgs;
use crate::output::{hanging, paragraph, part};
use anyhow::{Result, bail};
use blklab::experiment::Experiment;
use blklab::explain::{
    Explained, Machine, Outcome, ReEnacted, Request, Shared, Survey, Waiting, re_enact,
};
use blklab::findings::{Context, Reading, time_text};
use blklab::run_directory::{RunDir, is_trace};
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab::targets::Planner;
use blklab::trace::TraceSource as _;
use blklab::trace_file::Columns;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Processes that are shown.
const WAITING_SHOWN: usize = 6;

/// Reasons that are shown of a process.
const REASONS_SHOWN: usize = 4;

/// Waits that are shorter are not shown.
const SHORT_NS: u64 = 100_000;

/// Requests that are shown.
const WORST_SHOWN: usize = 3;

/// What is known of the machine that a trace was recorded on.
pub(crate) struct Known {
    context: Context,
    /// Whether the scheduler is to be tried out.
    tries: bool,
    /// The trace is one of a run of this experiment.
    run: Option<Experiment>,
    /// The run is made anew whenever its events are wanted: there is no file of them.
    is_made: bool,
    /// How the trace is to be read.
    columns: Option<Columns>,
    schedulers: Schedulers,
    planner: Planner,
}

/// What came of a re-enactment, or why there was none.
#[derive(Serialize)]
pub(crate) struct Again {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) re_enacted: Option<Box<ReEnacted>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_re_enacted: Option<String>,
}

impl Known {
    /// All that is said beside the trace; what is said on the command line counts
    /// last.
    pub(crate) fn new(file: &Path, a: &StackArgs, schedulers: Schedulers) -> Result<Known> {
        let planner = targets::planner(schedulers);
        let catalogue = planner.catalogue();
        let mut run = None;
        let mut context = Context::default();
        if !is_trace(file) {
            let experiment = RunDir::open(file, catalogue)?.experiment;
            context = blklab::why::context_of(&experiment, catalogue)?;
            run = Some(experiment);
        }
        let beside = if a.context.is_empty() {
            crate::source::context_beside(file)
        } else {
            None
        };
        for path in a.context.iter().chain(&beside) {
            context.add(blklab::why::context_at(path, catalogue)?);
        }
        if let Some(kernel) = &a.kernel
            && context.set("kernel", kernel).is_err()
        {
            let shown = blklab::types::shown(kernel);
            bail!("--kernel {shown}: expected a release, as in 6.12");
        }
        let tries = a.sched.as_deref() == Some("try");
        if let Some(name) = a.sched.as_ref().filter(|_| !tries) {
            let known: Vec<&str> = schedulers.iter().map(|s| s.name).collect();
            if !known.contains(&name.as_str()) {
                bail!(
                    "--sched: {}",
                    blklab::types::no_such("scheduler", name, &known)
                );
            }
            context.set("queue/scheduler", name)?;
        }
        for setting in &a.set {
            if let Err(e) = blklab::why::set(&mut context, setting, schedulers) {
                bail!("--set {e}");
            }
        }
        // Who says something about a run asks how it would have been with that.
        run = run.filter(|_| !a.says_something());
        Ok(Known {
            context,
            tries,
            run,
            is_made: false,
            columns: a.read.columns.clone(),
            schedulers,
            planner,
        })
    }

    /// All that an experiment says that runs first.
    pub(crate) fn of_experiment(e: Experiment, schedulers: Schedulers) -> Result<Known> {
        let planner = targets::planner(schedulers);
        Ok(Known {
            context: blklab::why::context_of(&e, planner.catalogue())?,
            tries: false,
            run: Some(e),
            is_made: true,
            columns: None,
            schedulers,
            planner,
        })
    }

    /// Whether enough is known to re-enact a trace: the kernel, at least.
    pub(crate) fn says_how(&self) -> bool {
        self.run.is_some() || self.context.kernel().is_some()
    }

    /// The experiment that the trace is a run of, if nothing else is said.
    pub(crate) fn run(&self) -> Option<&Experiment> {
        self.run.as_ref()
    }

    /// Whether that experiment has run just now, to be examined.
    pub(crate) fn is_made(&self) -> bool {
        self.is_made
    }

    pub(crate) fn schedulers(&self) -> Schedulers {
        self.schedulers
    }

    pub(crate) fn planner(&self) -> &Planner {
        &self.planner
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Re-enacts the trace that a survey has seen whole.
    pub(crate) fn re_enact(
        &self,
        file: &Path,
        survey: &Survey,
        reading: Reading,
        request: &Request,
    ) -> Result<Again> {
        let is_pipe = || std::fs::metadata(file).is_ok_and(|m| !m.is_file() && !m.is_dir());
        if !self.says_how() {
            return Ok(Again::refused(
                "the kernel is not known (--kernel, --context)",
            ));
        }
        if !self.is_made && (file == Path::new("-") || is_pipe()) {
            return Ok(Again::refused("a pipe can be read only once"));
        }
        let machine = match &self.run {
            Some(e) => Machine::Simulated(e),
            None => Machine::Recorded(&self.context, self.tries),
        };
        let lost = reading.lost + reading.elided;
        let send = |sink| self.send(file, sink);
        Ok(match re_enact(send, survey, lost, machine, request)? {
            Outcome::Done(re_enacted) => Again {
                re_enacted: Some(re_enacted),
                not_re_enacted: None,
            },
            Outcome::Refused(e) => Again::refused(&e.to_string()),
        })
    }
}

impl Known {
    /// Sends the events once more.
    fn send(&self, file: &Path, mut sink: Shared) -> Result<()> {
        match &self.run {
            Some(e) if self.is_made => {
                let plan = self.planner.plan(e)?;
                blklab::why::send_run(&plan, sink, Arc::default())?;
            }
            _ => crate::source::open(file, self.columns.as_ref())?.send_all(&mut sink)?,
        }
        Ok(())
    }
}

impl Again {
    /// None, for a reason in a clause.
    pub(crate) fn refused(why: &str) -> Again {
        Again {
            re_enacted: None,
            not_re_enacted: Some(why.to_owned()),
        }
    }

    /// For people.
    pub(crate) fn show(&self, out: &mut impl Write) -> Result<()> {
        if let Some(why) = &self.not_re_enacted {
            writeln!(out)?;
            hanging(out, "", 0, &format!("Not re-enacted: {why}."))?;
        }
        match &self.re_enacted {
            Some(r) => show(out, r),
            None => Ok(()),
        }
    }
}

fn show(out: &mut impl Write, r: &ReEnacted) -> Result<()> {
    writeln!(
        out,
        "\nRe-enacted on {}: the model of Linux {}, {}",
        r.dev, r.kernel, r.scheduler
    )?;
    if !r.tried.is_empty() {
        let tried = r.tried.iter().map(|t| {
            let (order, time) = (percent(t.order_share), percent(t.time_share));
            format!("{} {order} in order, {time} in time", t.scheduler)
        });
        part(out, "tried", &tried.collect::<Vec<_>>().join("; "))?;
    }
    for assumed in &r.assumed {
        part(out, "assumed", &format!("{assumed}."))?;
    }
    part(out, "agreement", &agreement(r))?;
    if !r.is_good {
        let none = "The model does not do what this kernel did: it can give no reasons.";
        return Ok(part(out, "", none)?);
    }
    let long = r.waiting.iter().filter(|w| w.worst_ns >= SHORT_NS);
    for w in long.clone().take(WAITING_SHOWN) {
        waiting(out, w)?;
    }
    match long.count() {
        0 => paragraph(
            out,
            "No process waited for 100 us or more before the device.",
        )?,
        n if n > WAITING_SHOWN => {
            part(out, "", &format!("and {} more", n - WAITING_SHOWN))?;
        }
        _ => {}
    }
    let worst = r.worst.iter().filter(|x| x.wait_ns >= SHORT_NS);
    for x in worst.take(WORST_SHOWN) {
        explained(out, x)?;
    }
    Ok(())
}

fn agreement(r: &ReEnacted) -> String {
    let a = &r.agreement;
    let mut text = format!(
        "{} of {} dispatches in the recorded order ({}), {} within 100 us of the recorded time",
        a.in_order,
        a.dispatches,
        percent(a.order_share()),
        percent(a.time_share()),
    );
    if let Some(d) = &a.first_difference {
        let at = d.event.map(|n| format!(" (#{n})")).unwrap_or_default();
        text.push_str(&format!(
            "; the first difference is dispatch {}{at}: recorded {}, model {}",
            a.prefix + 1,
            d.recorded,
            d.model
        ));
    }
    text.push('.');
    text
}

fn waiting(out: &mut impl Write, w: &Waiting) -> Result<()> {
    let kind = if w.is_sync { "" } else { ", in the background" };
    let text = format!(
        "{} waited {} before the device{kind} ({} of its requests; {} the worst):",
        w.who(),
        time_text(w.wait_ns),
        w.requests,
        time_text(w.worst_ns)
    );
    paragraph(out, &text)?;
    for reason in w.reasons.iter().take(REASONS_SHOWN) {
        let took = time_text(reason.ns);
        detail(out, &took, &reason.words)?;
    }
    Ok(())
}

/// One request and what it waited for.
pub(crate) fn explained(out: &mut impl Write, x: &Explained) -> Result<()> {
    let text = format!(
        "#{}: {} {} + {} of {} waited {}:",
        x.event,
        x.rwbs,
        x.sector,
        x.sectors,
        x.who(),
        time_text(x.wait_ns)
    );
    paragraph(out, &text)?;
    reasons(out, x)
}

/// What a request waited for, a line each.
pub(crate) fn reasons(out: &mut impl Write, x: &Explained) -> Result<()> {
    for reason in &x.reasons {
        detail(out, &time_text(reason.ns), &reason.words)?;
    }
    for note in &x.notes {
        detail(out, "", &format!("meanwhile: {note}"))?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).floor() / 10.0;
    format!("{tenths} %")
}

fn detail(out: &mut impl Write, took: &str, text: &str) -> Result<()> {
    Ok(hanging(out, &format!("   {took:>12}  "), 17, text)?)
}
