// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms in which users have a trace of a run: written as text and read again, as a
//! file that somebody sends.

use super::scenario::{Ran, Trace};
use blklab::analysis::lifecycle::{LifeSink, Lifecycles, RequestLife};
use blklab::findings::{Context, Report};
use blklab::trace::TraceFile;
use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Error, Op, Pid, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Cursor;

/// A form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All block events, as blkparse prints them.
    Full,
    /// Only D and C of them.
    IssueComplete,
    /// A line for each request when it is over, as biosnoop prints it.
    Biosnoop,
    /// Forty lines of blkparse around the slowest I/O of whoever suffers.
    Excerpt,
}

/// All forms.
pub const FORMS: [Form; 4] = [
    Form::Full,
    Form::IssueComplete,
    Form::Biosnoop,
    Form::Excerpt,
];

/// Lines of an excerpt.
const EXCERPT_LINES: usize = 40;

impl Form {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Form::Full => "full",
            Form::IssueComplete => "d-and-c",
            Form::Biosnoop => "biosnoop",
            Form::Excerpt => "excerpt",
        }
    }

    /// The trace of a run in this form. An excerpt shows the slowest I/O of these processes,
    /// or of all if none is named.
    pub(super) fn text(self, ran: &Ran, victims: &[&str]) -> String {
        let trace = &ran.trace;
        match self {
            Form::Full => blkparse(trace, 0..trace.events.len()),
            Form::IssueComplete => {
                let keeps = |e: &&Event| matches!(e.action, Action::Issue | Action::Complete);
                let events: Vec<Event> = trace.events.iter().filter(keeps).copied().collect();
                let part = Trace {
                    messages: Vec::new(),
                    names: trace.names.clone(),
                    events,
                };
                blkparse(&part, 0..part.events.len())
            }
            Form::Biosnoop => biosnoop(trace),
            Form::Excerpt => excerpt(trace, victims),
        }
    }
}

/// What `why` says of a trace in a form, with the context that was recorded beside it.
///
/// # Errors
/// If the text or the context cannot be read: a fault of ours.
pub(super) fn ask(text: &str, context: &str) -> Result<Report, Error> {
    let fail = |e: &dyn std::fmt::Display| Error::new(e.to_string());
    let context = Context::parse(context).map_err(|e| fail(&e))?;
    let input = Cursor::new(text.as_bytes().to_vec());
    let mut input = TraceFile::from_reader(input, "trace").map_err(|e| fail(&e))?;
    blklab::why::why(&mut input, context).map_err(|e| fail(&e))
}

/// What blkparse prints of some events.
fn blkparse(trace: &Trace, events: std::ops::Range<usize>) -> String {
    let options = BlkparseOptions {
        summary: false,
        ..BlkparseOptions::default()
    };
    let mut out = BlkparseWriter::new(Vec::new(), options);
    for (pid, name) in &trace.names {
        out.process(Time::ZERO, *pid, name);
    }
    let mut messages = trace.messages.iter().peekable();
    while messages.next_if(|(at, _, _)| *at < events.start).is_some() {}
    for (place, event) in trace.events[events.clone()].iter().enumerate() {
        let place = events.start + place;
        while let Some((_, event, text)) = messages.next_if(|(at, _, _)| *at <= place) {
            out.message(event, text);
        }
        out.event(event);
    }
    let bytes = out.finish().expect("memory takes everything");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What biosnoop of bcc prints.
fn biosnoop(trace: &Trace) -> String {
    let mut lives = Lifecycles::new(Ended::default());
    for event in &trace.events {
        lives.event(event);
    }
    let (ended, _) = lives.finish();
    let mut text =
        "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n".to_owned();
    let start = trace.events.first().map_or(0, |e| e.time.0);
    let mut rows = ended.0;
    rows.sort_by_key(|(_, end, _)| *end);
    for (request, end, issue) in rows {
        let name = trace.names.get(&request.pid).map_or("?", String::as_str);
        let letter = match request.rwbs.op() {
            Some(Op::Read) => 'R',
            _ if request.rwbs.has(Rwbs::DISCARD) => 'D',
            _ => 'W',
        };
        let at_us = end.0.saturating_sub(start) / 1000;
        writeln!(
            text,
            "{:<11} {:<14.14} {:<7} {:<7} {letter} {:<10} {:<6} {:>7.3}",
            format!("{}.{:06}", at_us / 1_000_000, at_us % 1_000_000),
            name.replace(' ', "_"),
            request.pid,
            "sda",
            request.sector,
            request.bytes,
            end.since(issue).0 as f64 / 1e6
        )
        .expect("a string takes everything");
    }
    text
}

/// Requests that were at the device, with their end and their D.
#[derive(Debug, Default)]
struct Ended(Vec<(RequestLife, Time, Time)>);

impl LifeSink for Ended {
    fn request(&mut self, request: &RequestLife) {
        if let (Some(end), Some(issue)) = (request.complete, request.issue) {
            self.0.push((*request, end, issue));
        }
    }
}

/// The lines around the slowest I/O of some processes: up to its end, or, if it takes more
/// lines, its beginning and its end with `...` between.
fn excerpt(trace: &Trace, victims: &[&str]) -> String {
    let Some((begin, end)) = slowest(trace, victims) else {
        return blkparse(trace, 0..trace.events.len().min(EXCERPT_LINES));
    };
    let nr = trace.events.len();
    let (before, behind) = (2, 2);
    let end = (end + 1 + behind).min(nr);
    let begin = begin.saturating_sub(before);
    if end - begin <= EXCERPT_LINES {
        return blkparse(trace, end.saturating_sub(EXCERPT_LINES)..end);
    }
    let half = EXCERPT_LINES / 2;
    let all = blkparse(trace, 0..end);
    // Numbers and times are those of the whole trace.
    let is_event = |line: &&str| !line.contains(" m   N ");
    let lines: Vec<&str> = all.lines().filter(is_event).collect();
    let (first, last) = (&lines[begin..begin + half], &lines[lines.len() - half..]);
    format!("{}\n...\n{}\n", first.join("\n"), last.join("\n"))
}

/// The places of Q and C of the slowest I/O of some processes; of all if none is named, or
/// if they have none.
fn slowest(trace: &Trace, victims: &[&str]) -> Option<(usize, usize)> {
    let is_victim = |pid: Pid| {
        let name = trace.names.get(&pid).map_or("", String::as_str);
        victims.is_empty() || victims.contains(&name)
    };
    let worst_of = |is_wanted: &dyn Fn(Pid) -> bool| {
        let mut under_way: BTreeMap<u64, usize> = BTreeMap::new();
        let mut worst: Option<(u64, usize, usize)> = None;
        for (place, e) in trace.events.iter().enumerate() {
            match e.action {
                Action::Queue if e.bytes > 0 && is_wanted(e.pid) => {
                    under_way.insert(e.sector, place);
                }
                Action::Complete => {
                    let Some(begin) = under_way.remove(&e.sector) else {
                        continue;
                    };
                    let took = e.time.since(trace.events[begin].time).0;
                    if worst.is_none_or(|(ns, _, _)| took > ns) {
                        worst = Some((took, begin, place));
                    }
                }
                _ => {}
            }
        }
        worst.map(|(_, begin, end)| (begin, end))
    };
    worst_of(&is_victim).or_else(|| worst_of(&|_| true))
}
