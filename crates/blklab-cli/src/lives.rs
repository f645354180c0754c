// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace slow` and `blklab trace life`.

use crate::again::{Again, Known, reasons};
use crate::args::{PlainFormat, ReadArgs};
use crate::output::part;
use crate::progress::Watcher;
use anyhow::{Result, bail};
use blklab::explain::{Explained, Request, Survey};
use blklab::findings::slow::{Life, Which};
use blklab::findings::{Report, counted, time_text, way_in};
use blklab::trace::Action;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// A life, and what the model says of it, which is no part of what the events say.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    life: &'a Life,
    #[serde(skip_serializing_if = "Option::is_none")]
    re_enacted: Option<&'a Explained>,
}

/// What is asked for: a sector, or `#N`.
pub(crate) fn which(text: &str, count: usize) -> Result<Which> {
    let number = |text: &str| text.parse::<u64>().ok();
    let which = match text.strip_prefix('#') {
        Some(event) => number(event).filter(|n| *n > 0).map(Which::OfEvent),
        None => number(text).map(|sector| Which::At(sector, count)),
    };
    match which {
        Some(which) => Ok(which),
        None => bail!(
            "{}: expected a sector, as in 18541088, or the number of an event, as in #12",
            blklab::types::shown(text)
        ),
    }
}

pub(crate) fn lives(
    file: &Path,
    read: &ReadArgs,
    which: Which,
    known: &Known,
    format: PlainFormat,
) -> Result<()> {
    let mut input = crate::source::open(file, read.columns())?;
    let shown = Watcher::reading(input.progress());
    let mut survey = Survey::default();
    let (lives, report) = blklab::why::lives_and(&mut input, which, &mut survey)?;
    drop(shown);
    crate::source::report_damage(file, input.counts());
    if lives.is_empty() {
        match which {
            Which::Slowest(_) => bail!("{}: no I/O that ended in it", file.display()),
            Which::At(sector, _) => bail!("{}: no request at sector {sector}", file.display()),
            Which::OfEvent(n) => bail!("{}: event {n} belongs to no request", file.display()),
        }
    }
    let again = if known.says_how() {
        let request = Request {
            worst: 0,
            wanted: lives.iter().filter_map(issue_of).collect(),
            schedulers: known.schedulers(),
        };
        Some(known.re_enact(file, &survey, report.reading, &request)?)
    } else {
        None
    };
    let re_enacted = |life: &Life| {
        again
            .as_ref()?
            .re_enacted
            .as_ref()?
            .of_event(issue_of(life)?)
    };
    let mut out = std::io::stdout().lock();
    match format {
        PlainFormat::Json => {
            let told = lives.iter().map(|life| Told {
                life,
                re_enacted: re_enacted(life),
            });
            let told: Vec<Told<'_>> = told.collect();
            serde_json::to_writer_pretty(&mut out, &told).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => {
            for (i, life) in lives.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                show(&mut out, life, &report, input.format().has_printed_times)?;
                if let Some(again) = &again {
                    show_again(&mut out, again, re_enacted(life))?;
                }
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The number of the event with which a request went to the device.
pub(crate) fn issue_of(life: &Life) -> Option<u64> {
    let is_issue = |action| action == Action::Issue;
    let issues = life.events.iter().filter(|e| is_issue(e.event.action));
    issues.map(|e| e.number).next_back()
}

/// What the model says of a life, or why it says nothing.
pub(crate) fn show_again(
    out: &mut impl Write,
    again: &Again,
    of: Option<&Explained>,
) -> Result<()> {
    match (&again.re_enacted, &again.not_re_enacted, of) {
        (Some(r), _, Some(x)) => {
            writeln!(out, "  re-enacted (Linux {}, {}):", r.kernel, r.scheduler)?;
            if x.reasons.is_empty() {
                writeln!(out, "   it did not wait before the device")?;
            }
            reasons(out, x)?;
        }
        (Some(r), _, None) if !r.is_good => {
            writeln!(
                out,
                "  not re-enacted: the model does not do what this kernel did"
            )?;
        }
        (_, Some(why), _) => writeln!(out, "  not re-enacted: {why}")?,
        _ => writeln!(out, "  re-enacted: here the model did something else")?,
    }
    Ok(())
}

/// A life for people.
pub(crate) fn show(
    out: &mut impl Write,
    life: &Life,
    report: &Report,
    times_as_given: bool,
) -> Result<()> {
    let who = report.names.who(life.pid);
    writeln!(
        out,
        "{} {} + {} of {who}: {}",
        life.rwbs,
        life.sector,
        life.sectors,
        life.whole_ns
            .map_or("no end in the trace".to_owned(), time_text)
    )?;
    for (ns, what) in [
        (life.get_ns, "for a request or tag (Q-G)"),
        (life.plug_ns, "on a plug (G-I)"),
        (life.idle_ns, "in the scheduler (I-D), the device idle"),
        (life.ahead_ns, "in the scheduler (I-D), the device busy"),
        (
            life.alone_ns,
            "at the device (D-C), as long as one takes alone",
        ),
        (life.behind_ns, "at the device (D-C), beyond that"),
        (life.flush_ns, "while the device emptied its cache"),
    ] {
        if ns > 0 {
            writeln!(out, "  {:>9}  {what}", time_text(ns))?;
        }
    }
    let [reads, writes] = life.issued_before;
    let depth = match life.depth_at_issue {
        Some(n) => format!("; the device had {n} when it came there"),
        None => String::new(),
    };
    writeln!(
        out,
        "  meanwhile to the device: {}, {}{depth}",
        counted(reads, "reads"),
        counted(writes, "writes")
    )?;
    for b in &life.beside {
        let text = format!(
            "{} of {}: {}",
            time_text(b.overlap_ns),
            time_text(b.ns),
            b.what
        );
        part(out, "beside", &text)?;
    }
    for e in &life.events {
        writeln!(out, "  {}", blklab::why::line(e, report, times_as_given))?;
    }
    if let Some(way) = way_in(&life.events) {
        part(out, "way in", &way)?;
    }
    Ok(())
}
