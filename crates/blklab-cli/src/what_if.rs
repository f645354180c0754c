// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why --what-if`: what changes would have made of a trace.

use crate::again::{Again, Known};
use crate::interrupt::Interrupt;
use crate::output::{figures, hanging, paragraph, part};
use anyhow::{Result, bail};
use blklab::explain::Survey;
use blklab::findings::{Report, time_text};
use blklab::metric::Unit;
use blklab::trace::Actions;
use blklab::types::Error;
use blklab::verdict::Measured;
use blklab::whatif::{
    self, COLUMNS, Change, Figures, OwnRun, Recording, Row, Stage, Trial, Verdict, WhatIf,
};
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Processes that are shown of a trial.
const ROWS_SHOWN: usize = 6;

/// Calls whose number differs by less are as many.
const AS_MANY: f64 = 1.2;

/// Bios of a process that is shown, if any has as many.
const COUNT_MIN: u64 = 4;

/// What came of it, or why nothing did.
#[derive(Default, Serialize)]
pub(crate) struct Asked {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) what_if: Option<Box<WhatIf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_what_if: Option<String>,
    /// What the application sees with each trial's change, where the experiment itself ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    applications: Vec<Option<whatif::Seen>>,
}

/// The changes of the command line: each by itself; none for the findings' remedies.
pub(crate) fn changes(texts: &[String]) -> Result<Vec<Vec<Change>>> {
    let mut all = Vec::new();
    for text in texts.iter().filter(|t| !t.is_empty()) {
        match whatif::parse(text) {
            Ok(changes) => all.push(changes),
            Err(e) => bail!("--what-if {e}"),
        }
    }
    Ok(all)
}

/// What the first pass has seen.
pub(crate) struct Seen<'a> {
    pub(crate) recording: Recording,
    pub(crate) kinds: Actions,
    pub(crate) survey: &'a Survey,
    pub(crate) report: &'a Report,
    pub(crate) again: &'a Again,
}

/// Tries changes, or without any the remedies of all findings: on the experiment itself,
/// where it is at hand, else on what the trace says of its processes and its device.
pub(crate) fn ask(
    known: &Known,
    seen: Seen<'_>,
    changes: &[Vec<Change>],
    interrupt: &Interrupt,
) -> Result<Asked> {
    let stop = interrupt.stop.clone();
    let tried = match known.run() {
        Some(experiment) => {
            let own = OwnRun {
                experiment,
                context: known.context(),
                report: seen.report,
                planner: known.planner(),
                is_new: known.is_made(),
            };
            whatif::rerun(seen.recording, own, stop).map(|rerun| {
                tried(changes, |c| rerun.what_if(c), || rerun.remedies())
                    .map(|trials| rerun.report(trials))
            })
        }
        None => on_stage(known, seen, stop).map(|stage| {
            tried(changes, |c| stage.what_if(c), || stage.remedies())
                .map(|trials| stage.report(trials))
        }),
    };
    Ok(match tried {
        Ok(what_if) => Asked {
            what_if: Some(Box::new(what_if?)),
            ..Asked::default()
        },
        Err(why) => Asked {
            no_what_if: Some(why.to_string()),
            ..Asked::default()
        },
    })
}

/// The recorded machine, or why there is none.
fn on_stage<'a>(
    known: &'a Known,
    seen: Seen<'a>,
    stop: Arc<AtomicBool>,
) -> Result<Stage<'a>, Error> {
    let fits = seen.again.re_enacted.as_ref();
    let fits = fits.map(|r| r.scheduler.as_str());
    let Some(scheduler) = known.context().scheduler().or(fits) else {
        let why = seen.again.not_re_enacted.as_deref();
        return Err(Error::new(
            why.unwrap_or("the scheduler is not known (--sched)"),
        ));
    };
    let of_trace = whatif::Known {
        context: known.context(),
        scheduler,
        survey: seen.survey,
        lost: seen.report.reading.lost + seen.report.reading.elided,
        report: seen.report,
        schedulers: known.schedulers(),
        planner: known.planner(),
    };
    whatif::stage(seen.recording, seen.kinds, of_trace, stop)
}

/// The given changes, each by itself; without any, the remedies.
fn tried(
    changes: &[Vec<Change>],
    one: impl Fn(&[Change]) -> Result<Trial, Error>,
    remedies: impl FnOnce() -> Vec<Trial>,
) -> Result<Vec<Trial>> {
    if changes.is_empty() {
        return Ok(remedies());
    }
    let trials = changes.iter().map(|c| one(c)).collect();
    let trials: Result<Vec<Trial>, Error> = trials;
    trials.map_err(|why| anyhow::anyhow!("--what-if: {why}"))
}

impl Asked {
    /// Judged by what the application sees, where the experiment itself ran.
    pub(crate) fn by_calls(mut self, before: Option<&Measured>) -> Asked {
        if let (Some(before), Some(w)) = (before, &mut self.what_if) {
            self.applications = whatif::judge_calls(w, before);
        }
        self
    }

    /// For people.
    pub(crate) fn show(&self, out: &mut impl Write) -> Result<()> {
        if let Some(why) = &self.no_what_if {
            writeln!(out)?;
            hanging(out, "", 0, &format!("No what-if: {why}."))?;
        }
        match &self.what_if {
            Some(w) => show(out, w, self),
            None => Ok(()),
        }
    }
}

fn show(out: &mut impl Write, w: &WhatIf, asked: &Asked) -> Result<()> {
    writeln!(
        out,
        "\nWhat if, on {}: the model of Linux {}, {}",
        w.dev, w.kernel, w.scheduler
    )?;
    part(out, "device", &device(w))?;
    for assumed in &w.assumed {
        part(out, "assumed", &format!("{assumed}."))?;
    }
    part(out, "before", &before(w))?;
    if w.trials.is_empty() {
        paragraph(out, "No finding has a remedy to try.")?;
    }
    for (i, t) in w.trials.iter().enumerate() {
        let seen = asked.applications.get(i).and_then(Option::as_ref);
        trial(out, t, seen)?;
    }
    Ok(())
}

/// What a change does to what the application sees; all such figures are times.
fn of_application(seen: &whatif::Seen) -> String {
    let change = match seen.faster() {
        f if f > 1.02 => format!("{f:.2} times better"),
        f if f < 0.98 => format!("{:.2} times worse", 1.0 / f.max(1e-9)),
        _ => "no change".to_owned(),
    };
    let (before, after) = (&seen.before, &seen.after);
    let mut text = format!(
        "{} goes from {} to {}: {change}",
        before.figure, before.text, after.text
    );
    let more = seen.more();
    if !(1.0 / AS_MANY..=AS_MANY).contains(&more) {
        text += &format!(
            ", {:.3} times as many calls in the same time ({} a second instead of {})",
            more,
            figures(after.calls_per_s.unwrap_or_default()),
            figures(before.calls_per_s.unwrap_or_default())
        );
    }
    text
}

fn device(w: &WhatIf) -> String {
    let mut text = w.device.words.clone();
    if let Some(share) = w.device.unexplained {
        let percent = (share * 100.0).min(999.0);
        text += &format!(" (fitted to the trace; times vary by {percent:.1} %)");
    }
    text + "."
}

/// How far the model is from the recording.
fn before(w: &WhatIf) -> String {
    if w.is_rerun && w.is_trusted {
        return "the experiment itself runs again: nothing is inferred.".to_owned();
    }
    if w.is_rerun {
        return "the experiment, run again, does not do what was recorded: another blklab made \
                the run, or it was interrupted; what follows is about the run of now."
            .to_owned();
    }
    let far = |off: f64| match off {
        off if off > 100.0 => "nothing like it".to_owned(),
        off if off < 1.005 => "the same".to_owned(),
        off => format!("within a factor of {off:.2}"),
    };
    let (closed, open) = (far(w.closed_loop_off), far(w.open_loop_off));
    let name = if w.is_closed { "closed" } else { "open" };
    let mut text = format!(
        "without a change the model is, of the recording, {closed} in closed loop and {open} \
         in open loop; the {name} loop counts."
    );
    if !w.is_trusted {
        text += " That is too far: what follows cannot be trusted.";
    }
    text
}

fn trial(out: &mut impl Write, t: &Trial, seen: Option<&whatif::Seen>) -> Result<()> {
    writeln!(out)?;
    let of = t.finding.map(|k| format!("{k}: ")).unwrap_or_default();
    hanging(out, "What if ", 8, &format!("{of}{}", t.what))?;
    if let Some(why) = &t.not_tried {
        return Ok(part(out, "not tried", &format!("{why}."))?);
    }
    for change in &t.changes {
        part(out, "tried", change)?;
    }
    for warning in &t.warnings {
        part(out, "warning", &format!("{warning}."))?;
    }
    if let Some(v) = &t.verdict {
        part(out, "result", &verdict(t, v, seen))?;
    }
    if let Some(v) = &t.requests {
        part(out, "requests", &of_requests(v))?;
    }
    let mut rows: Vec<&Row> = t.rows().iter().filter(|r| counts(t, r)).collect();
    if rows.is_empty() {
        rows = t.rows().iter().collect();
    }
    rows.sort_by_key(|r| {
        let suffers = t.suffer.contains(&r.seen().pid);
        (!suffers, std::cmp::Reverse(r.seen().total_ns()))
    });
    for r in rows.iter().take(ROWS_SHOWN) {
        row(out, r)?;
    }
    if rows.len() > ROWS_SHOWN {
        part(out, "", &format!("and {} more", rows.len() - ROWS_SHOWN))?;
    }
    other_loop(out, t)
}

/// Whether somebody wants to see it: who suffers, and whose figures mean something.
fn counts(t: &Trial, r: &Row) -> bool {
    t.suffer.contains(&r.seen().pid) || r.seen().count >= COUNT_MIN
}

fn verdict(t: &Trial, v: &Verdict, seen: Option<&whatif::Seen>) -> String {
    let whom = if t.finding.is_some() {
        " those who suffer"
    } else {
        ""
    };
    let mut text = match (v.helps, v.harms) {
        (true, _) => format!("it helps{whom}"),
        (false, true) => format!("it does not help but harm{whom}"),
        (false, false) => format!("it does not help{whom}"),
    };
    if let Some(seen) = seen {
        text += &format!(": {}", of_application(seen));
    }
    if !v.pay.is_empty() {
        text += &format!("; worse off: {}", v.pay.join(", "));
    }
    text + "."
}

/// What requests alone would say.
fn of_requests(v: &Verdict) -> String {
    let text = match (v.helps, v.harms) {
        (true, _) => "from Q to C they are better off",
        (false, true) => "from Q to C they are worse off",
        (false, false) => "from Q to C they are as well off as before",
    };
    format!("{text}.")
}

fn row(out: &mut impl Write, r: &Row) -> Result<()> {
    let name = format!("{} {}", r.seen().who(), r.seen().direction);
    write!(out, "   {name:<22.22}")?;
    for column in &COLUMNS {
        write!(out, " {:>8}", column.title)?;
    }
    writeln!(out)?;
    if let Some(recorded) = &r.recorded {
        line(out, "recorded", &cells(recorded))?;
        line(out, "model, before", &cells(&r.before))?;
        line(out, "model, after", &cells(&r.after))?;
    } else {
        line(out, "before", &cells(&r.before))?;
        line(out, "after", &cells(&r.after))?;
    }
    let times = |after: f64, before: f64| match after / before {
        f if !f.is_finite() || f == 0.0 => "-".to_owned(),
        f if (0.995..1.005).contains(&f) => "same".to_owned(),
        f if f >= 1.0 => format!("x {}", figures(f)),
        f => format!("/ {}", figures(1.0 / f)),
    };
    let change = COLUMNS.map(|c| times((c.value)(&r.after), (c.value)(&r.before)));
    line(out, "change", &change)
}

fn cells(f: &Figures) -> [String; 6] {
    COLUMNS.map(|c| {
        let value = (c.value)(f);
        match c.unit {
            Unit::Ns => time_text(value as u64),
            Unit::One => value.to_string(),
            _ => figures(value),
        }
    })
}

fn line(out: &mut impl Write, name: &str, cells: &[String]) -> Result<()> {
    write!(out, "     {name:<20}")?;
    for cell in cells {
        write!(out, " {cell:>8}")?;
    }
    Ok(writeln!(out)?)
}

/// What the other loop says, in a line.
fn other_loop(out: &mut impl Write, t: &Trial) -> Result<()> {
    let worst = t.other_rows().iter().max_by_key(|r| r.seen().total_ns());
    let Some(r) = worst else {
        return Ok(());
    };
    let name = if t.is_closed {
        "open loop"
    } else {
        "closed loop"
    };
    let text = format!(
        "{} {}: median {} before, {} after; longest {} before, {} after",
        r.seen().who(),
        r.seen().direction,
        time_text(r.before.p50_ns),
        time_text(r.after.p50_ns),
        time_text(r.before.max_ns),
        time_text(r.after.max_ns)
    );
    Ok(part(out, name, &text)?)
}
