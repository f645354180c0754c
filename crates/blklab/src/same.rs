// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments of a matrix that gave the same run, and why, as far as their
//! events show it.
//!
//! Digests do not tell: they hold every event, also those by which a request
//! goes into a scheduler, which `none` does not have. Two runs are the same if
//! every bio was queued, dispatched and completed at the same times, and the
//! jobs measured the same.

use crate::life_totals::{LifeTotals, Processes};
use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_target::JobResult;
use std::collections::BTreeMap;

pub(crate) type Runs<'a> = [(&'a Cell, &'a RunOutput)];

/// Runs of one experiment with different seeds, in succession.
pub(crate) fn repetitions<'a, 'b>(runs: &'a Runs<'b>) -> impl Iterator<Item = &'a Runs<'b>> {
    runs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx && a.0.label == b.0.label)
}

/// How many experiments there are, whatever their repetitions.
pub fn nr_experiments(runs: &Runs<'_>) -> usize {
    repetitions(runs).count()
}

/// Some experiments, each with its repetitions.
type Class<'a, 'b> = Vec<&'a Runs<'b>>;

/// Experiments of one file that gave the same run, two or more together.
fn classes<'a, 'b>(runs: &'a Runs<'b>) -> Vec<Class<'a, 'b>> {
    let mut classes: Vec<Class<'a, 'b>> = Vec::new();
    for experiment in repetitions(runs) {
        match classes.iter_mut().find(|c| is_same(c[0], experiment)) {
            Some(class) => class.push(experiment),
            None => classes.push(vec![experiment]),
        }
    }
    classes.retain(|c| c.len() > 1);
    classes
}

fn is_same(a: &Runs<'_>, b: &Runs<'_>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((_, a), (_, b))| is_same_run(a, b))
}

fn is_same_run(a: &RunOutput, b: &RunOutput) -> bool {
    let measured = |(a, b): (&JobResult, &JobResult)| a.stat == b.stat && a.started == b.started;
    a.fingerprint.is_some()
        && a.fingerprint == b.fingerprint
        && a.end == b.end
        && a.jobs.len() == b.jobs.len()
        && a.jobs.iter().zip(&b.jobs).all(measured)
        && !a.interrupted
        && !b.interrupted
}

/// Which of the runs of a matrix (an index each) should be repeated to learn
/// from the scheduler's messages whose queues it merged: those of BFQ that are
/// the same as under another scheduler although several processes had I/O.
pub fn unexplained(runs: &Runs<'_>) -> Vec<usize> {
    let files = runs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx);
    let classes = files.flat_map(|of_file| {
        classes(of_file).into_iter().filter(|class| {
            let scheduler = |of: &&Runs<'_>| of[0].0.experiment.scheduler.clone();
            class.iter().any(|of| scheduler(of) != scheduler(&class[0]))
        })
    });
    let cells = classes.flatten().map(|of| of[0]);
    let wanted = cells
        .filter(|(cell, run)| cell.experiment.scheduler == "bfq" && has_several_processes(run));
    let index = |(wanted, _): (&Cell, _)| {
        runs.iter()
            .position(|(cell, _)| std::ptr::eq(*cell, wanted))
    };
    wanted.filter_map(index).collect()
}

/// The experiments of one file that gave the same run, a line for each set of
/// them, with the reason. Their options asked for fingerprints.
pub fn same_runs(runs: &Runs<'_>) -> Vec<String> {
    let classes = classes(runs);
    classes.iter().map(|class| sentence(class)).collect()
}

fn sentence(class: &Class<'_, '_>) -> String {
    let labels: Vec<String> = class.iter().map(|of| of[0].0.name_in_file()).collect();
    let all: Vec<(&Cell, &RunOutput)> = class.iter().flat_map(|of| of.iter().copied()).collect();
    let mut text = format!("{} gave the same run: {}", listed(&labels), reason(&all));
    if let Some(merged) = all.iter().find_map(|(_, run)| merged_queues(run)) {
        text = format!("{text}; {merged}");
    }
    text
}

/// What the events of all these runs show.
fn reason(all: &Runs<'_>) -> String {
    let disks = all.iter().flat_map(|(_, run)| &run.disks);
    let disks: Vec<&LifeTotals> = disks.map(|d| &d.lives).collect();
    let inserts = disks.iter().any(|d| d.i2d.count > 0);
    if inserts && disks.iter().all(|d| d.i2d.max_ns == 0) {
        let most = disks.iter().map(|d| d.issued_max).max().unwrap_or(0);
        let depths = all.iter().map(|(_, run)| run.facts.queue_depth());
        return match depths.flatten().min() {
            Some(depth) if most <= depth => format!(
                "no request ever waited in the scheduler (I2D 0): at most {most} were at the \
                 device, which takes {depth}"
            ),
            _ => "no request ever waited in the scheduler (I2D 0)".to_owned(),
        };
    }
    if inserts && disks.iter().all(|d| d.waiting_max <= 1) {
        return "there was never more than one request in the scheduler to choose from".to_owned();
    }
    if inserts && disks.iter().all(|d| d.nr_overtaken == 0) {
        return "requests left the scheduler in the order in which they came".to_owned();
    }
    "every request was queued, dispatched and completed at the same times".to_owned()
}

/// Whether several processes had I/O.
fn has_several_processes(run: &RunOutput) -> bool {
    let devices = run.disks.iter().chain(&run.array);
    let all = devices.map(|d| d.lives.processes);
    all.fold(Processes::None, Processes::and) == Processes::Several
}

/// BFQ makes one queue of those that were created within this time of each
/// other (`bfq_burst_interval` of block/bfq-iosched.c).
const TOGETHER_NS: u64 = 180_000_000;

/// Whose queues were merged, in words.
fn merged_queues(run: &RunOutput) -> Option<String> {
    let merged = run.merged_queues.pids();
    let jobs: Vec<&JobResult> = run
        .jobs
        .iter()
        .filter(|j| merged.contains(&j.pid))
        .collect();
    if merged.is_empty() {
        return None;
    }
    let who = match jobs.len() {
        n if n < merged.len() => format!("{} processes", merged.len()),
        _ if jobs.iter().any(|j| j.job.name != jobs[0].job.name) => {
            let mut names: Vec<String> = jobs.iter().map(|j| j.job.name.clone()).collect();
            names.dedup();
            listed(&names)
        }
        n => format!("the {n} jobs of {}", jobs[0].job.name),
    };
    let starts = || jobs.iter().map(|j| j.started.0);
    let together = match (starts().min(), starts().max()) {
        (Some(first), Some(last)) if last - first <= TOGETHER_NS => ", which started within 180 ms",
        _ => "",
    };
    Some(format!("BFQ merged the queues of {who}{together}"))
}

/// `A, B and C`, with words that all share said once.
fn listed(labels: &[String]) -> String {
    let words: Vec<Vec<&str>> = labels.iter().map(|l| l.split(' ').collect()).collect();
    let shortest = words.iter().map(Vec::len).min().unwrap_or(0);
    let at_front = |n: &usize| words.iter().all(|w| w[*n] == words[0][*n]);
    let front = (0..shortest.saturating_sub(1)).take_while(at_front).count();
    let at_end = |n: &usize| {
        let word = |w: &Vec<&str>| w[w.len() - 1 - n].to_owned();
        words.iter().all(|w| word(w) == word(&words[0]))
    };
    let room = shortest.saturating_sub(1 + front);
    let end = (0..room).take_while(at_end).count();
    let middle = |w: &Vec<&str>| w[front..w.len() - end].join(" ");
    let middles: Vec<String> = words.iter().map(middle).collect();
    let list = match &middles[..] {
        [] => return String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    };
    let first = &words[0];
    let mut parts = first[..front].to_vec();
    parts.push(&list);
    parts.extend(&first[first.len() - end..]);
    parts.join(" ")
}

/// What is charged for schedulers that are compared, where that matters: on the
/// multi-queue path of a device that does not seek.
pub fn scheduler_costs(runs: &Runs<'_>) -> Option<String> {
    let fast = runs.iter().filter(|(cell, run)| {
        let rotational = run.facts.queue.is_none_or(|q| q.rotational);
        !cell.experiment.kernel.has_single_queue() && !rotational
    });
    let costs: BTreeMap<&str, u64> = fast
        .map(|(cell, run)| {
            (
                cell.experiment.scheduler.as_str(),
                run.facts.sched_cost.ns(),
            )
        })
        .collect();
    if costs.len() < 2 {
        return None;
    }
    let said = |(name, ns): (&&str, &u64)| format!("{name} {}", *ns as f64 / 1000.0);
    let charged: Vec<String> = costs.iter().filter(|(_, ns)| **ns > 0).map(said).collect();
    if charged.is_empty() {
        return Some(
            "the processor time and the locks of schedulers are left out: on a device without \
             seeks a real machine shows differences that are missing here"
                .to_owned(),
        );
    }
    Some(format!(
        "processor time of schedulers, us per request: {}; where there are several processors, \
         they wait for their locks",
        charged.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_shared_words_once() {
        let list = |labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|l| (*l).to_owned()).collect();
            listed(&labels)
        };
        assert_eq!(list(&["none", "bfq"]), "none and bfq");
        assert_eq!(list(&["6.1 a", "6.1 b", "6.1 c"]), "6.1 a, b and c");
        assert_eq!(list(&["a x=1", "b x=1"]), "a and b x=1");
        assert_eq!(list(&["v a x=1", "v a x=2"]), "v a x=1 and x=2");
        assert_eq!(list(&["a", "a b"]), "a and a b");
        assert_eq!(list(&["a b a", "a a"]), "a b a and a");
    }
}
