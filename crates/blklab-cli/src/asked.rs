// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked beside the findings: about a process (`--slow`), a moment (`--at`), what fio was
//! told (`--fio`).

use crate::again::Again;
use crate::args::{SECOND_NS, WhyArgs};
use crate::lives::{issue_of, show, show_again};
use crate::output::{hanging, part};
use anyhow::{Result, bail};
use blklab::analysis::names::Who;
use blklab::explain::Explained;
use blklab::findings::calls::Calls;
use blklab::findings::instant::{Held, Instant, Moment};
use blklab::findings::slow::{Life, Lives, Which};
use blklab::findings::{Report, Search, counted, time_text};
use blklab::told::{self, ApplicationIo, Divided, Part, Shown, Told};
use blklab::types::Op;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// I/Os of a process that are shown: so that they fit a screen, and with all details.
const SLOW_SHOWN: usize = 3;
const SLOW_VERBOSE: usize = 10;

/// Requests of a moment that are shown.
const HELD_SHOWN: usize = 10;

/// Calls of a moment that are shown.
const CALLS_SHOWN: usize = 6;

/// What is asked, and what has been gathered for it.
pub(crate) struct Questions {
    slow: Option<(Who, Lives)>,
    moment: Option<Moment>,
    told: Vec<Told>,
    calls: Calls,
}

/// What is answered.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answers {
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<Slow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Instant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fio: Vec<Divided>,
}

#[derive(Debug, Serialize)]
struct Slow {
    whose: String,
    lives: Vec<Life>,
}

impl Questions {
    /// What the options ask; the moment counts as the lines of the trace do.
    pub(crate) fn new(a: &WhyArgs, has_printed_times: bool) -> Result<Questions> {
        let count = if a.verbose { SLOW_VERBOSE } else { SLOW_SHOWN };
        let slow = |who: &Who| {
            (
                who.clone(),
                Lives::whose(Which::Slowest(count), who.clone()),
            )
        };
        let moment = |ns| {
            if has_printed_times {
                Moment::of_clock(ns)
            } else {
                Moment::after_start(ns)
            }
        };
        let mut told = Vec::new();
        for file in &a.fio {
            told.extend(told::read(file)?);
        }
        Ok(Questions {
            slow: a.slow.as_ref().map(slow),
            moment: a.at.map(moment),
            told,
            calls: Calls::default(),
        })
    }

    /// A search that looks at what is asked, too.
    pub(crate) fn added_to(&self, mut search: Search) -> Search {
        if let Some((_, lives)) = &self.slow {
            search = search.and(Box::new(lives.clone()));
        }
        if let Some(moment) = &self.moment {
            search = search.and(Box::new(moment.clone()));
        }
        if !self.told.is_empty() {
            search = search.and(Box::new(self.calls.clone()));
        }
        search
    }

    /// Who puts the I/Os together that fio was told of; nobody if that is not asked.
    pub(crate) fn application_io(&self) -> Option<ApplicationIo> {
        if self.told.is_empty() {
            return None;
        }
        let mut lengths: BTreeMap<Op, Option<u64>> = BTreeMap::new();
        for told in &self.told {
            let Some(op) = told.kind.op() else { continue };
            let length = lengths.entry(op).or_insert(told.bytes);
            *length = length.filter(|bytes| Some(*bytes) == told.bytes);
        }
        let known = lengths.into_iter().filter_map(|(op, n)| Some((op, n?)));
        Some(ApplicationIo::new(known.collect()))
    }

    /// The answers.
    pub(crate) fn answers(
        self,
        file: &Path,
        report: &Report,
        seen: Option<ApplicationIo>,
    ) -> Result<Answers> {
        let slow = match self.slow {
            Some((who, lives)) => Some(slow(file, report, &who, lives.take())?),
            None => None,
        };
        let at = match self.moment.map(|m| m.take()) {
            Some(Ok(instant)) => Some(instant),
            Some(Err([first, last])) => bail!(
                "--at: {} goes from {} to {}",
                file.display(),
                seconds(first),
                seconds(last)
            ),
            None => None,
        };
        let fio = match seen {
            Some(seen) => {
                let parts = seen.parts().clone();
                let shown = Shown {
                    sums: &seen.finish(),
                    calls: &self.calls.take(),
                    parts: &parts,
                    names: &report.names,
                    record: &self.calls.record(),
                };
                told::divide(&self.told, &shown)
            }
            None => Vec::new(),
        };
        Ok(Answers { slow, at, fio })
    }
}

fn slow(file: &Path, report: &Report, who: &Who, lives: Vec<Life>) -> Result<Slow> {
    if lives.is_empty() {
        let others = report.waiters.iter().map(|pid| report.names.who(*pid));
        let others: Vec<String> = others.collect();
        let most = if others.is_empty() {
            "none".to_owned()
        } else {
            others.join(", ")
        };
        bail!(
            "--slow: no I/O of {who} ends in {}; processes that wait for I/O in it: {most}",
            file.display()
        );
    }
    Ok(Slow {
        whose: who.to_string(),
        lives,
    })
}

fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / SECOND_NS, ns / 1000 % 1_000_000)
}

impl Answers {
    /// The events with which the slow I/Os went to the device: their reasons are wanted.
    pub(crate) fn wanted(&self) -> BTreeSet<u64> {
        let lives = self.slow.iter().flat_map(|s| &s.lives);
        lives.filter_map(issue_of).collect()
    }

    /// Them for people.
    pub(crate) fn show(
        &self,
        out: &mut impl Write,
        report: &Report,
        again: Option<&Again>,
        times_as_given: bool,
    ) -> Result<()> {
        for divided in &self.fio {
            writeln!(out)?;
            show_divided(out, divided)?;
        }
        if let Some(instant) = &self.at {
            writeln!(out)?;
            show_instant(out, instant, report)?;
        }
        let Some(slow) = &self.slow else {
            return Ok(());
        };
        writeln!(out, "\nThe slowest of {}", slow.whose)?;
        for (i, life) in slow.lives.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            show(out, life, report, times_as_given)?;
            if let Some(again) = again {
                show_again(out, again, explained(again, life))?;
            }
        }
        Ok(())
    }
}

fn explained<'a>(again: &'a Again, life: &Life) -> Option<&'a Explained> {
    again.re_enacted.as_ref()?.of_event(issue_of(life)?)
}

fn show_divided(out: &mut impl Write, d: &Divided) -> Result<()> {
    let told = &d.told;
    let head = format!(
        "fio: {} of {} ({})",
        told.kind.word(),
        told.job,
        told.latency
    );
    writeln!(out, "{head}")?;
    let at = |percent: f64| {
        let near = |(p, _): &&(f64, f64)| (p - percent).abs() < 1e-6;
        told.percentiles.iter().find(near).map(|(_, ns)| *ns as u64)
    };
    let row = |name: &str, nr: u64, times: [Option<u64>; 5]| {
        let cells = times.map(|t| format!("{:>9}", t.map_or("-".to_owned(), time_text)));
        format!("   {name:<24}{nr:>8}{}", cells.concat())
    };
    writeln!(
        out,
        "   {:<24}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "I/Os", "mean", "p50", "p99", "p99.9", "longest"
    )?;
    let own = [
        Some(told.mean_ns as u64),
        at(50.0),
        at(99.0),
        at(99.9),
        Some(told.max_ns),
    ];
    writeln!(out, "{}", row("fio", told.nr, own))?;
    for (name, shown) in [
        ("in the block layer (Q-C)", d.block_layer),
        ("  in the queue (Q-D)", d.queue),
        ("  at the device (D-C)", d.device),
    ] {
        let Some(p) = shown else { continue };
        writeln!(out, "{}", row(name, p.nr, times(&p)))?;
    }
    if !told.percentiles.is_empty() && told.percentiles_of != told.latency {
        writeln!(
            out,
            "   fio's percentiles are of its {}",
            told.percentiles_of
        )?;
    }
    if !d.processes.is_empty() {
        part(out, "in the trace", &d.processes)?;
    }
    for words in &d.words {
        hanging(out, "   - ", 5, &format!("{words}."))?;
    }
    if let Some(record) = &d.record {
        part(out, "to see it", record)?;
    }
    Ok(())
}

fn times(p: &Part) -> [Option<u64>; 5] {
    [p.mean_ns as u64, p.p50_ns, p.p99_ns, p.p999_ns, p.max_ns].map(Some)
}

fn show_instant(out: &mut impl Write, i: &Instant, report: &Report) -> Result<()> {
    writeln!(out, "At {}", seconds(i.at_ns))?;
    if i.places.is_empty() {
        let last = i
            .last_end_ns
            .map(|ns| format!("the last one ended {} before", time_text(ns)));
        let next = i
            .next_begin_ns
            .map(|ns| format!("the next begins {} later", time_text(ns)));
        let beside: Vec<String> = last.into_iter().chain(next).collect();
        let text = if beside.is_empty() {
            "no I/O is under way.".to_owned()
        } else {
            format!("no I/O is under way: {}.", beside.join(", "))
        };
        hanging(out, "   ", 3, &text)?;
    } else {
        let all: u64 = i.places.iter().map(|(_, n)| n).sum();
        let places = i
            .places
            .iter()
            .map(|(place, n)| format!("{n} {}", place.words()));
        let places: Vec<String> = places.collect();
        let text = format!("{} under way: {}.", counted(all, "I/Os"), places.join(", "));
        hanging(out, "   ", 3, &text)?;
        for held in i.requests.iter().take(HELD_SHOWN) {
            hanging(out, "   - ", 5, &held_text(held, report))?;
        }
        let more = all.saturating_sub(HELD_SHOWN as u64);
        if more > 0 {
            writeln!(out, "   and {more} that began later")?;
        }
    }
    for call in i.calls.iter().take(CALLS_SHOWN) {
        let text = format!(
            "{}: for {} so far, {} more",
            call.what,
            time_text(call.since_ns),
            time_text(call.left_ns)
        );
        part(out, "beside", &text)?;
    }
    Ok(())
}

fn held_text(held: &Held, report: &Report) -> String {
    let left = match held.left_ns {
        Some(ns) => format!("{} more", time_text(ns)),
        None => "with no end in the trace".to_owned(),
    };
    format!(
        "{} {} + {} of {} on {}, for {} so far, {left}: {}",
        held.rwbs,
        held.sector,
        held.sectors,
        report.names.who(held.pid),
        held.dev,
        time_text(held.since_ns),
        held.what
    )
}
