// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why`.

mod matrix;
mod sums;

use crate::Outcome;
use crate::again::{Again, Known};
use crate::args::{PlainFormat, WhyArgs};
use crate::asked::Answers;
use crate::examine::{self, Examined};
use crate::interrupt::Interrupt;
use crate::output::{hanging, paragraph, part};
use crate::what_if::{self, Seen};
use anyhow::{Result, bail};
use blklab::explain::Request;
use blklab::findings::{
    Confidence, Context, Evidence, Finding, Instance, Party, Report, Verdict, Weight, counted,
    parties, time_text,
};
use blklab::run_directory::{is_run, is_trace};
use blklab::scheduler::Schedulers;
use blklab::verdict::{Application, Measured};
use serde::Serialize;
use std::io::Write;

/// Lines of evidence that are shown of an instance: so that a finding fits a screen, and with all
/// details.
const EVIDENCE_SHORT: usize = 3;
const EVIDENCE_MAX: usize = 10;

/// Requests of a re-enactment that are given.
const WORST: usize = 10;

/// What is said about a trace; what the model says is kept apart from what its events
/// say.
#[derive(Serialize)]
struct Answer<'a> {
    basis: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<&'a Application>,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    answers: &'a Answers,
    #[serde(flatten)]
    again: Again,
    #[serde(flatten)]
    asked: Option<what_if::Asked>,
}

pub(crate) fn why(a: &WhyArgs, schedulers: Schedulers) -> Result<Outcome> {
    if a.file.is_dir() && !is_run(&a.file) && !is_trace(&a.file) {
        if let Some(option) = a.about_one() {
            bail!(
                "{option}: is about one trace or run, and {} holds several",
                a.file.display()
            );
        }
        return matrix::why(a, schedulers);
    }
    let changes = what_if::changes(&a.what_if)?;
    // Columns are of rows.
    let is_experiment = a.stack.read.columns().is_none() && crate::source::is_experiment(&a.file);
    let known = if is_experiment {
        Known::of_experiment(examine::experiment(a, schedulers)?, schedulers)?
    } else {
        Known::new(&a.file, &a.stack, schedulers)?
    };
    let interrupt = is_experiment.then(Interrupt::watch);
    let examined = match &interrupt {
        Some(interrupt) => examine::run(a, &known, interrupt),
        None => examine::trace(a, &known),
    };
    let Examined {
        mut report,
        measured,
        answers,
        survey,
        recording,
        kinds,
        times_as_given,
    } = match examined {
        Ok(examined) => examined,
        Err(e) => return sums::why(a, sums::found(e)?),
    };
    let application = measured.as_ref().and_then(Measured::application);
    let request = Request {
        worst: WORST,
        wanted: answers.wanted(),
        schedulers,
    };
    let again = if interrupt.as_ref().is_some_and(Interrupt::happened) {
        Again::refused("the run was interrupted")
    } else {
        known.re_enact(&a.file, &survey, report.reading, &request)?
    };
    // Until here a signal ends the program: nothing is known that could be shown.
    let asks = !a.what_if.is_empty();
    let interrupt = interrupt.or_else(|| asks.then(Interrupt::watch));
    let asked = match (recording, &interrupt) {
        (Some(recording), Some(interrupt)) => {
            let seen = Seen {
                recording,
                kinds,
                survey: &survey,
                report: &report,
                again: &again,
            };
            Some(what_if::ask(&known, seen, &changes, interrupt)?.by_calls(measured.as_ref()))
        }
        _ => None,
    };
    if let Some(limit) = a.limit {
        report.findings.truncate(limit as usize);
    }
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            let answer = Answer {
                basis: "inferred from events",
                application: application.as_ref(),
                report: &report,
                answers: &answers,
                again,
                asked,
            };
            serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => {
            let mut text = Text {
                out: &mut out,
                report: &report,
                application: application.as_ref(),
                times_as_given,
                is_verbose: a.verbose,
            };
            let how = known.says_how().then_some(&again);
            text.heading(known.context())?;
            answers.show(&mut *text.out, &report, how, times_as_given)?;
            text.all()?;
            if known.says_how() {
                again.show(&mut out)?;
            }
            if let Some(asked) = &asked {
                asked.show(&mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(if interrupt.is_some_and(|i| i.happened()) {
        Outcome::Interrupted
    } else {
        Outcome::Done
    })
}

/// The report for people.
struct Text<'a, W> {
    out: &'a mut W,
    report: &'a Report,
    application: Option<&'a Application>,
    times_as_given: bool,
    is_verbose: bool,
}

impl<W: Write> Text<'_, W> {
    fn all(&mut self) -> Result<()> {
        let report = self.report;
        let complaints = report
            .findings
            .iter()
            .filter(|f| f.weight < Weight::Note)
            .count();
        if let Some(told) = self.application {
            let text = format!(
                "What the application sees: {} is {}. The requests below explain it.",
                told.figure, told.text
            );
            hanging(self.out, "", 0, &text)?;
        }
        let verdict = &report.verdict;
        if complaints == 0 {
            writeln!(self.out)?;
            hanging(self.out, "", 0, &verdict.sentence)?;
            if let Some(slowest) = &verdict.slowest {
                part(self.out, "slowest", slowest)?;
            }
        }
        for (i, finding) in report.findings.iter().enumerate() {
            writeln!(self.out)?;
            self.finding(i + 1, finding)?;
        }
        // A cause that is only possible leaves open whether the slowest is long at all.
        let is_open = verdict.confidence == Some(Confidence::Possible);
        if let Some(slowest) = verdict.slowest.as_ref().filter(|_| is_open) {
            writeln!(self.out, "\nThe slowest")?;
            paragraph(self.out, slowest)?;
        }
        if complaints > 0 && !self.is_verbose {
            writeln!(
                self.out,
                "\nwhy -v shows how it came about, all remedies and all evidence."
            )?;
        }
        self.beside(verdict)?;
        writeln!(self.out, "\nWhere the time went")?;
        for disk in &report.devices {
            let name = disk.dev.to_string();
            let words = if disk.words.is_empty() {
                "no I/O whose time the trace shows.".to_owned()
            } else {
                disk.words.join(" ")
            };
            part(self.out, &name, &words)?;
        }
        if report.reading.lost > 0 || report.reading.elided > 0 {
            let (lost, elided) = (report.reading.lost, report.reading.elided);
            let is_missing = match lost {
                1 => "is missing",
                _ => "are missing",
            };
            let text = match (lost, elided) {
                (0, n) => format!("lines left out in {}.", counted(n, "places")),
                (n, 0) => format!("{} {is_missing} from the trace.", counted(n, "events")),
                (n, m) => format!(
                    "{} {is_missing}; lines left out in {}.",
                    counted(n, "events"),
                    counted(m, "places")
                ),
            };
            part(self.out, "missing", &text)?;
        } else if report.reading.losses_unsaid {
            part(
                self.out,
                "missing",
                "not known: this format does not say whether events were lost.",
            )?;
        }
        Ok(())
    }

    fn heading(&mut self, context: &Context) -> Result<()> {
        let r = self.report;
        let mut parts = vec![counted(r.nr_events, "events")];
        if r.nr_captures > 1 {
            parts.push(format!("{} captures", r.nr_captures));
        }
        if let Some(kernel) = context.kernel() {
            parts.push(format!("Linux {kernel}"));
        }
        if let Some(scheduler) = context.scheduler() {
            parts.push(format!("scheduler {scheduler}"));
        }
        writeln!(self.out, "{}", parts.join(", "))?;
        Ok(())
    }

    /// What is ruled out, and what the trace does not show.
    fn beside(&mut self, verdict: &Verdict) -> Result<()> {
        if !verdict.ruled_out.is_empty() {
            writeln!(self.out, "\nRuled out")?;
        }
        for r in &verdict.ruled_out {
            let text = format!("{}: {}", r.what, r.figure);
            part(self.out, &r.dev.to_string(), &text)?;
        }
        if verdict.not_visible.is_empty() && verdict.record.is_none() {
            return Ok(());
        }
        writeln!(self.out, "\nNot visible in this trace")?;
        for n in &verdict.not_visible {
            let text = format!("{}: {}", n.what, n.because);
            part(self.out, &n.dev.to_string(), &text)?;
        }
        if let Some(command) = &verdict.record {
            part(self.out, "to see it", command)?;
        }
        Ok(())
    }

    fn finding(&mut self, number: usize, f: &Finding) -> Result<()> {
        writeln!(
            self.out,
            "{number}. {} on {}: {}",
            f.kind,
            f.dev,
            f.confidence.word()
        )?;
        paragraph(self.out, &f.what)?;
        if self.is_verbose && !f.how.is_empty() {
            paragraph(self.out, &f.how)?;
        }
        part(self.out, "how much", &f.amounts())?;
        self.parties("suffers", &f.victims)?;
        match (&f.cause, f.causes.is_empty()) {
            (Some(cause), true) => part(self.out, "cause", cause)?,
            (Some(cause), false) => {
                part(self.out, "cause", cause)?;
                self.parties("causes", &f.causes)?;
            }
            (None, _) => self.parties("causes", &f.causes)?,
        }
        let most = if self.is_verbose { usize::MAX } else { 1 };
        for missing in f.missing.iter().take(most) {
            part(self.out, "not known", missing)?;
        }
        for remedy in f.remedies.iter().take(most) {
            part(self.out, "change", &remedy.to_string())?;
        }
        if !f.explains.is_empty() {
            part(self.out, "explains", &f.explains.join(", "))?;
        }
        let instance = f.worst.as_ref().or(f.first.as_ref());
        if let Some(instance) = instance {
            self.evidence(instance, f.count > 1 && f.worst.is_some())?;
        }
        Ok(())
    }

    fn evidence(&mut self, instance: &Instance, is_worst: bool) -> Result<()> {
        if instance.evidence.is_empty() {
            return Ok(());
        }
        let took = instance.delay_ns.filter(|ns| *ns > 0).map(time_text);
        writeln!(
            self.out,
            "   {}{}:",
            if is_worst { "the worst" } else { "the first" },
            took.map(|t| format!(", {t}")).unwrap_or_default()
        )?;
        let all = &instance.evidence;
        let shown = if self.is_verbose {
            all.iter().take(EVIDENCE_MAX).collect()
        } else {
            telling(all)
        };
        for e in &shown {
            let line = blklab::why::line(e, self.report, self.times_as_given);
            writeln!(self.out, "   {line}")?;
        }
        let more = all.len() - shown.len();
        if more > 0 {
            writeln!(self.out, "   and {more} more")?;
        }
        if let Some(way) = instance.way_in() {
            part(self.out, "way in", &way)?;
        }
        Ok(())
    }

    fn parties(&mut self, name: &str, all: &[Party]) -> Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        Ok(part(self.out, name, &parties(all))?)
    }
}

/// The events that tell most: those before and behind the longest pause, and what began or ended
/// it all.
fn telling(all: &[Evidence]) -> Vec<&Evidence> {
    if all.len() <= EVIDENCE_SHORT {
        return all.iter().collect();
    }
    let pause = |i: &usize| all[i + 1].event.time.0.saturating_sub(all[*i].event.time.0);
    let before = (0..all.len() - 1).rev().max_by_key(pause).unwrap_or(0);
    let other = if before > 0 { 0 } else { all.len() - 1 };
    let mut places = [before, before + 1, other];
    places.sort_unstable();
    places.iter().map(|i| &all[*i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab::trace::{Action, Event, Rwbs};
    use blklab::types::{Dev, Time};

    #[test]
    fn the_longest_pause_is_shown() {
        let at = |number, ns| Evidence {
            number,
            event: Event {
                time: Time(ns),
                sector: 8,
                arg: 0,
                bytes: 4096,
                pid: 1,
                dev: Dev { major: 8, minor: 0 },
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: Rwbs::READ,
                action: Action::Queue,
            },
            text: None,
            stack: None,
        };
        let numbers = |times: &[u64]| {
            let all: Vec<Evidence> = (1..).zip(times).map(|(n, ns)| at(n, *ns)).collect();
            telling(&all).iter().map(|e| e.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[0, 1, 2, 900, 901]), [1, 3, 4]);
        assert_eq!(numbers(&[0, 900, 901, 902]), [1, 2, 4]);
        assert_eq!(numbers(&[0, 5]), [1, 2]);
    }
}
