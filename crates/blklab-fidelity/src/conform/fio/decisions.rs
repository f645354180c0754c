// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decisions: the dispatch order of the model, fed with the recorded bios and
//! completions, beside the recorded one.

use blklab::analysis::common;
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_formats::TraceFile;
use blklab_sim::cgroup_number;
use blklab_sim::replay::{Dispatched, Process, Recorder, Recording, replay};
use blklab_trace::TraceSource as _;
use blklab_types::Error;
use blklab_types::{Op, Pid};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the dispatch orders compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decisions {
    /// Whether they are the same.
    pub identical: bool,
    /// Commands that the recorded driver got.
    pub dispatches: usize,
    /// Commands that the model's driver got.
    pub dispatches_simulated: usize,
    /// Share of the recorded commands before the first that differs.
    pub prefix: f64,
    /// Length of the longest common subsequence over that of the longer
    /// order; none if they are too far apart to tell.
    pub common: Option<f64>,
    /// The first difference, in words.
    pub first_difference: Option<String>,
    /// What is taken to have come before the trace, if the queue cannot have been
    /// idle since it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Whether only the beginning of the run is recorded, as blkparse text.
    pub beginning: bool,
    /// What was wrong with the recorded trace.
    pub damage: Option<String>,
}

impl Decisions {
    /// Where the orders part, and what is taken to have come before, in words.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        let remarks = self.first_difference.iter().chain(&self.before);
        remarks.map(String::as_str)
    }
}

/// The recorded trace of a case, if there is one: of the whole run, else the
/// text of its first lines.
pub(super) fn trace_of(traces: &Path, id: &str) -> Option<PathBuf> {
    [".blktrace.0.zst", ".blktrace.0", ".txt"]
        .map(|end| traces.join(format!("{id}{end}")))
        .into_iter()
        .find(|path| path.is_file())
}

/// Feeds the model with a recorded trace and compares.
pub(super) fn compare(e: &Experiment, jobs: &[Job], trace: &Path) -> Result<Decisions, Error> {
    let (recording, damage) = read(trace, e.scheduler != "none")?;
    let known = processes(e, jobs, &recording);
    let recorded = recording.dispatches.clone();
    let (mut simulated, before) = replay(e, recording, |pid| {
        known.get(&pid).copied().unwrap_or(Process {
            direct: jobs.iter().all(|j| j.settings.direct),
            ..Process::default()
        })
    })?;
    let beginning = is_text(trace);
    if beginning {
        // What follows the last recorded event was cut off.
        simulated.truncate(recorded.len());
    }
    let mut decisions = of_orders(&recorded, &simulated);
    decisions.before = before.map(|before| before.to_string());
    decisions.beginning = beginning;
    decisions.damage = damage;
    Ok(decisions)
}

/// Compares a recorded trace with what another machine dispatched by itself.
pub(super) fn beside(
    trace: &Path,
    with_scheduler: bool,
    mut dispatched: Vec<Dispatched>,
) -> Result<Decisions, Error> {
    let (recording, damage) = read(trace, with_scheduler)?;
    let beginning = is_text(trace);
    if beginning {
        // What follows the last recorded event was cut off.
        dispatched.truncate(recording.dispatches.len());
    }
    Ok(Decisions {
        beginning,
        damage,
        ..of_orders(&recording.dispatches, &dispatched)
    })
}

fn is_text(trace: &Path) -> bool {
    trace.extension().is_some_and(|e| e == "txt")
}

/// The jobs' processes. fio starts them in order of the jobs, so their pids
/// ascend; where not every process is a job's (the kernel writes, too), nothing
/// is known.
fn processes(e: &Experiment, jobs: &[Job], recording: &Recording) -> BTreeMap<Pid, Process> {
    if jobs.len() != recording.submitters.len() {
        return BTreeMap::new();
    }
    let process = |job: &Job| Process {
        ioprio: job.ioprio(),
        direct: job.settings.direct,
        group: (job.settings.cgroup.as_deref()).map_or(0, |name| cgroup_number(e, name)),
        last_bio: None,
    };
    let pids = recording.submitters.iter().copied();
    pids.zip(jobs.iter().map(process)).collect()
}

fn read(path: &Path, with_scheduler: bool) -> Result<(Recording, Option<String>), Error> {
    let shown = path.display().to_string();
    let fail = |what: String| Error::new(what).in_file(&shown);
    // Most errors name the file, which the line begins with anyway.
    let unreadable = |what: String| {
        let what = what.strip_prefix(&format!("{shown}: ")).unwrap_or(&what);
        fail(format!("cannot read the trace: {what}"))
    };
    let mut recorder = Recorder::default();
    let mut trace = TraceFile::open(path).map_err(|e| unreadable(e.to_string()))?;
    let sent = trace.send_all(&mut recorder);
    sent.map_err(|e| unreadable(e.to_string()))?;
    let counts = trace.counts();
    let damage = (!counts.is_clean()).then(|| {
        format!(
            "the trace is not whole: {} events lost, {} damaged or unknown records",
            counts.lost,
            counts.damaged + counts.unknown
        )
    });
    Ok((recorder.finish(with_scheduler), damage))
}

fn of_orders(recorded: &[Dispatched], simulated: &[Dispatched]) -> Decisions {
    let pairs = recorded.iter().zip(simulated);
    let same = pairs.take_while(|(a, b)| a.is_same(b)).count();
    let identical = same == recorded.len() && same == simulated.len();
    // What both begin with is common anyway.
    let rest = common::length(&recorded[same..], &simulated[same..], Dispatched::is_same);
    let share = |n: usize, of: usize| match of {
        0 => 1.0,
        _ => n as f64 / of as f64,
    };
    let longer = recorded.len().max(simulated.len());
    Decisions {
        identical,
        dispatches: recorded.len(),
        dispatches_simulated: simulated.len(),
        prefix: share(same, recorded.len()),
        common: rest.map(|n| share(same + n, longer)),
        first_difference: (!identical).then(|| describe(recorded, simulated, same)),
        before: None,
        beginning: false,
        damage: None,
    }
}

/// Where the orders part, and where else the recorded command is.
fn describe(recorded: &[Dispatched], simulated: &[Dispatched], at: usize) -> String {
    let show = |d: Option<&Dispatched>| match d {
        None => "nothing".to_owned(),
        Some(d) => {
            let letter = match d.op {
                Op::Read => 'R',
                Op::Write => 'W',
                Op::Discard => 'D',
                Op::Flush => 'F',
            };
            format!("{letter} {}+{} at {} s", d.sector, d.nr_sectors, d.time)
        }
    };
    let mut text = format!(
        "dispatch {}: recorded {}, simulated {}",
        at + 1,
        show(recorded.get(at)),
        show(simulated.get(at))
    );
    if let (Some(wanted), Some(rest)) = (recorded.get(at), simulated.get(at..))
        && !rest.is_empty()
    {
        let later = rest.iter().position(|d| d.is_same(wanted));
        text.push_str(&match later {
            Some(n) => format!("; the recorded one comes {n} later"),
            None => "; the recorded one never comes in that length".to_owned(),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::Time;

    fn order(sectors: &[u64]) -> Vec<Dispatched> {
        let command = |(i, &sector): (usize, &u64)| Dispatched {
            time: Time(1_000_000_000 * i as u64),
            op: Op::Read,
            sector,
            nr_sectors: 8,
        };
        sectors.iter().enumerate().map(command).collect()
    }

    #[test]
    fn orders_are_compared_command_by_command() {
        let same = of_orders(&order(&[0, 8, 16]), &order(&[0, 8, 16]));
        assert!(same.identical && same.first_difference.is_none());
        assert_eq!((same.prefix, same.common), (1.0, Some(1.0)));
        let swapped = of_orders(&order(&[0, 8, 16, 24]), &order(&[0, 16, 8, 24]));
        assert!(!swapped.identical);
        assert_eq!((swapped.prefix, swapped.common), (0.25, Some(0.75)));
        assert_eq!(
            swapped.first_difference.unwrap(),
            "dispatch 2: recorded R 8+8 at 1.000000000 s, simulated R 16+8 at 1.000000000 s; \
             the recorded one comes 1 later"
        );
        let short = of_orders(&order(&[0, 8]), &order(&[0]));
        assert_eq!((short.prefix, short.common), (0.5, Some(0.5)));
        assert_eq!(
            short.first_difference.unwrap(),
            "dispatch 2: recorded R 8+8 at 1.000000000 s, simulated nothing"
        );
        assert!(of_orders(&[], &[]).identical);
    }
}
