// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sentences of a page: what ran, who waited, how long, why, what would help.

use crate::model::Answer;
use blklab::findings::{Finding, Report, Weight, counted, time_text};
use blklab::record::RunRecord;

use blklab_experiment::{Experiment, Workload};
use blklab_formats::TraceFile;

/// Remedies that the first screen has.
const REMEDIES_MAX: usize = 3;

/// An experiment in a sentence.
pub(crate) fn of_run(e: &Experiment, record: &RunRecord) -> String {
    let what = if e.title.is_empty() { &e.id } else { &e.title };
    let workload = match &e.workload {
        Workload::Fio { .. } => "a fio job",
        Workload::Processes(_) => "explicit processes",
        Workload::Scenario(_) => "a scenario",
        Workload::Trace(_) => "a trace run again",
    };
    let depth = match record.queue_depth {
        0 => String::new(),
        depth => format!(", queue depth {depth}"),
    };
    let md = e.md.map_or(String::new(), |md| format!(" as {md}"));
    let dm = if e.dm.is_none() {
        String::new()
    } else {
        format!(" below {}", e.dm)
    };
    let patches = match e.patches.as_slice() {
        [] => String::new(),
        patches => format!(" with {}", patches.join(" and ")),
    };
    format!(
        "{what}: {workload} on Linux {}{patches} under {}, on {}{md}{dm}{depth}; {} simulated, seed {}.",
        e.kernel,
        e.scheduler,
        e.device.name,
        time_text(record.end_ns),
        e.seed
    )
}

/// A trace in a sentence.
pub(crate) fn of_trace(input: &TraceFile, report: &Report, span_ns: u64) -> String {
    let captures = match report.nr_captures {
        1 => String::new(),
        n => format!(", put together from {n} captures"),
    };
    let devices = match report.devices.len() {
        1 => "a device".to_owned(),
        n => format!("{n} devices"),
    };
    format!(
        "A trace in {}: {} of {devices} over {}{captures}.",
        input.format().summary,
        counted(report.nr_events, "events"),
        time_text(span_ns)
    )
}

/// What is said first.
pub(crate) fn answer(report: &Report) -> Answer {
    let complaints = || report.findings.iter().filter(|f| f.weight < Weight::Note);
    let Some(first) = complaints().next() else {
        return nothing(report);
    };
    let others = complaints().count() - 1;
    let mut why = format!("{} {}", first.what, first.how);
    if let Some(cause) = &first.cause {
        why = format!("{} Cause: {cause}.", why.trim_end());
    }
    if others > 0 {
        let findings = if others == 1 { "finding" } else { "findings" };
        why = format!("{} ({others} more {findings} below.)", why.trim_end());
    }
    Answer {
        kind: Some(first.kind),
        confidence: Some(first.confidence.word()),
        application: None,
        who: capitalised(&first.victim_names()),
        how_long: how_long(first),
        why: why.trim_end().to_owned(),
        help: first
            .remedies
            .iter()
            .take(REMEDIES_MAX)
            .map(ToString::to_string)
            .collect(),
    }
}

fn how_long(f: &Finding) -> String {
    let mut parts = Vec::new();
    if let Some(worst) = f.worst_ns {
        parts.push(format!("{} the worst", time_text(worst)));
    }
    if let (Some(total), true) = (f.total_ns, f.count > 1) {
        parts.push(format!("{} on average", time_text(total / f.count)));
    }
    if let Some(total) = f.total_ns {
        parts.push(format!("{} in all", time_text(total)));
    }
    if f.count > 0 {
        parts.push(counted(f.count, f.of));
    }
    parts.join(", ")
}

fn nothing(report: &Report) -> Answer {
    let verdict = &report.verdict;
    let is_right = verdict.answer == blklab::findings::Answer::NothingWrong;
    let worst = report.devices.iter().map(|d| d.sum.waited.worst_ns).max();
    let words: Vec<&str> = report
        .devices
        .iter()
        .flat_map(|d| &d.words)
        .map(String::as_str)
        .collect();
    Answer {
        who: if is_right {
            "No process without need"
        } else {
            "Not known"
        }
        .to_owned(),
        how_long: match worst.filter(|ns| *ns > 0) {
            Some(ns) => format!(
                "{} the longest request that a process waited for",
                time_text(ns)
            ),
            None => "the trace shows no request that a process waited for to its end".to_owned(),
        },
        why: format!("{} {}", verdict.sentence, words.join(" "))
            .trim_end()
            .to_owned(),
        ..Answer::default()
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if text.starts_with("process") || text.starts_with("no ") => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
