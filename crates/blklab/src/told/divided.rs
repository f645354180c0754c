// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio says beside what the trace shows of the same I/Os.

use super::fio::{Told, ToldKind};
use super::seen::{IoSums, Seen};
use blklab_analysis::distribution::Distribution;
use blklab_analysis::findings::calls::{CallSum, CallSums, Outside};
use blklab_analysis::findings::{counted, time_text};
use blklab_analysis::names::Names;
use blklab_trace::Part as KernelPart;
use blklab_types::{Op, Pid};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The name of fio's processes, where a job does not give them another.
const FIO: &str = "fio";

/// Bytes of a name that the kernel keeps.
const COMM_BYTES: usize = 15;

/// A difference of less than a tenth is none: what is measured costs time itself.
const SAME_PERCENT: u64 = 10;

/// Numbers of I/Os that differ by less are the same: a trace begins and ends a little beside.
const COUNT_PERCENT: u64 = 5;

/// What a process waits for that is worth a line, in percent of what is outside.
const WORTH_PERCENT: u64 = 1;

/// What fio was told of its I/Os, divided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divided {
    /// The jobs, with what they were told.
    pub told: Told,
    /// The processes whose I/Os in the trace these are, in words.
    pub processes: String,
    /// From Q to C; none if the trace shows no such I/O.
    pub block_layer: Option<Part>,
    /// From Q to D.
    pub queue: Option<Part>,
    /// From D to C.
    pub device: Option<Part>,
    /// I/Os of those processes that are not fio's.
    pub left_out: LeftOut,
    /// The mean of what is neither, ns; none where the two cannot be compared.
    pub outside_ns: Option<u64>,
    /// What those processes waited for outside of the block layer, as far as the trace shows it.
    pub calls: Vec<(Outside, CallSum)>,
    /// What follows, in sentences.
    pub words: Vec<String>,
    /// The command that would show more; none if nothing is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

/// How many I/Os of a job's processes are not what fio was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Of metadata of the filesystem.
    pub metadata: u64,
    /// Longer than the job's.
    pub longer: u64,
    /// Shorter than the job's.
    pub shorter: u64,
}

impl LeftOut {
    /// Takes of what is seen what may be what was told, and counts the others.
    fn new(told: &Told, seen: Seen) -> (IoSums, LeftOut) {
        let mut left = LeftOut {
            metadata: seen.nr_metadata,
            ..LeftOut::default()
        };
        let mut sums = seen.exact;
        // With as many of the job's length as fio counts, the others are not of it.
        let are_all = percent(sums.whole.count(), told.nr) >= 100 - COUNT_PERCENT;
        if are_all {
            left.shorter = seen.shorter.whole.count();
        } else {
            sums.merge(&seen.shorter);
        }
        if are_all || told.direct {
            left.longer = seen.longer.whole.count();
        } else {
            sums.merge(&seen.longer);
        }
        (sums, left)
    }

    /// It in words; none if nothing is left out.
    fn words(self, told: &Told) -> Option<String> {
        let length = match told.bytes {
            Some(bytes) if bytes % 1024 == 0 => format!("{} KiB", bytes / 1024),
            Some(bytes) => format!("{bytes} bytes"),
            None => "length".to_owned(),
        };
        let all = [
            (self.metadata, "of the filesystem's metadata".to_owned()),
            (
                self.longer,
                format!(
                    "longer than the job's {length} (of files that fio lays out, or of other jobs)"
                ),
            ),
            (self.shorter, format!("shorter than the job's {length}")),
        ];
        let some = all.into_iter().filter(|(nr, _)| *nr > 0);
        let some: Vec<String> = some.map(|(nr, what)| format!("{nr} {what}")).collect();
        let nr = self.metadata + self.longer + self.shorter;
        (nr > 0).then(|| {
            format!(
                "without {} of these processes: {}",
                counted(nr, told.kind.word()),
                some.join(", ")
            )
        })
    }
}

/// Times of I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// How many.
    pub nr: u64,
    /// Their mean, ns.
    pub mean_ns: f64,
    /// The median, ns.
    pub p50_ns: u64,
    /// What 99 of 100 do not exceed, ns.
    pub p99_ns: u64,
    /// What 999 of 1000 do not exceed, ns.
    pub p999_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

impl Part {
    fn new(times: &Distribution) -> Option<Part> {
        (times.count() > 0).then(|| Part {
            nr: times.count(),
            mean_ns: times.mean(),
            p50_ns: times.percentile(50.0),
            p99_ns: times.percentile(99.0),
            p999_ns: times.percentile(99.9),
            max_ns: times.max(),
        })
    }
}

/// What a trace shows that fio's figures are divided by.
pub struct Shown<'a> {
    /// The I/Os of processes.
    pub sums: &'a BTreeMap<(Pid, Op), Seen>,
    /// What they waited for outside of the block layer.
    pub calls: &'a CallSums,
    /// Which other parts of the kernel the trace has events of.
    pub parts: &'a BTreeSet<KernelPart>,
    /// Names of processes.
    pub names: &'a Names,
    /// The command that records more.
    pub record: &'a str,
}

/// Divides what was told of jobs by what a trace shows.
pub fn divide(told: &[Told], shown: &Shown<'_>) -> Vec<Divided> {
    let known: BTreeSet<Pid> = shown.sums.keys().map(|(pid, _)| *pid).collect();
    let calls = shown.calls.keys().copied();
    let known: BTreeSet<Pid> = known.into_iter().chain(calls).collect();
    // Jobs whose processes have a name of their own are told apart; those that are all called
    // fio are not.
    let mut groups: BTreeMap<(ToldKind, Vec<Pid>), Vec<&Told>> = BTreeMap::new();
    for one in told {
        let pids = processes(&known, shown.names, &one.job);
        groups.entry((one.kind, pids)).or_default().push(one);
    }
    let all = groups.into_iter();
    all.map(|((_, pids), told)| divided(pooled(&told), &pids, shown))
        .collect()
}

/// The processes of a job: those of its name, else those that are called fio.
fn processes(known: &BTreeSet<Pid>, names: &Names, job: &str) -> Vec<Pid> {
    let mut end = job.len().min(COMM_BYTES);
    while !job.is_char_boundary(end) {
        end -= 1;
    }
    let named = |comm: &str| {
        let are = |pid: &&Pid| names.get(**pid) == Some(comm);
        known.iter().filter(are).copied().collect::<Vec<Pid>>()
    };
    match named(&job[..end]) {
        own if own.is_empty() => named(FIO),
        own => own,
    }
}

/// Figures of several jobs as one.
fn pooled(told: &[&Told]) -> Told {
    let [first, rest @ ..] = told else {
        unreachable!("a group has a job");
    };
    if rest.is_empty() {
        return (*first).clone();
    }
    let nr: u64 = told.iter().map(|t| t.nr).sum();
    let sum: f64 = told.iter().map(|t| t.mean_ns * t.nr as f64).sum();
    let mut jobs: Vec<&str> = told.iter().map(|t| t.job.as_str()).collect();
    jobs.dedup();
    let is_same = told.iter().all(|t| t.bytes == first.bytes);
    Told {
        job: jobs.join(", "),
        nr,
        mean_ns: sum / nr.max(1) as f64,
        max_ns: told.iter().map(|t| t.max_ns).max().unwrap_or(0),
        // Percentiles of several cannot be added up.
        percentiles: Vec::new(),
        bytes: first.bytes.filter(|_| is_same),
        direct: told.iter().all(|t| t.direct),
        max_at_ns: None,
        ..(*first).clone()
    }
}

fn divided(told: Told, pids: &[Pid], shown: &Shown<'_>) -> Divided {
    let mut seen = Seen::default();
    let mut calls: BTreeMap<Outside, CallSum> = BTreeMap::new();
    for pid in pids {
        let own = told.kind.op().and_then(|op| shown.sums.get(&(*pid, op)));
        if let Some(own) = own {
            seen.merge(own);
        }
        for (what, sum) in shown.calls.get(pid).into_iter().flatten() {
            let all = calls.entry(*what).or_default();
            *all = all.with(*sum);
        }
    }
    let (sums, left_out) = LeftOut::new(&told, seen);
    let mut all = Divided {
        processes: in_words(pids, shown.names),
        block_layer: Part::new(&sums.whole),
        queue: Part::new(&sums.queue),
        device: Part::new(&sums.device),
        left_out,
        outside_ns: None,
        calls: calls.into_iter().collect(),
        words: Vec::new(),
        record: None,
        told,
    };
    if pids.is_empty() {
        all.words.push(format!(
            "the trace shows no process called {} or fio with I/O, so it is not known which I/O of \
             it fio's is",
            all.told.job
        ));
    } else if all.told.kind == ToldKind::Syncs {
        all.syncs(shown);
    } else {
        all.ios(shown);
    }
    all
}

/// Processes in words: at most three.
fn in_words(pids: &[Pid], names: &Names) -> String {
    let mut shown: Vec<String> = pids.iter().take(3).map(|pid| names.who(*pid)).collect();
    if pids.len() > 3 {
        shown.push(format!("{} more", pids.len() - 3));
    }
    shown.join(", ")
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

impl Divided {
    /// What follows for I/Os.
    fn ios(&mut self, shown: &Shown<'_>) {
        let kind = self.told.kind.word();
        self.words.extend(self.left_out.words(&self.told));
        let Some(block) = self.block_layer else {
            self.words.push(format!(
                "the trace shows no {kind} of {} from Q to C: the page cache has them, others write \
                 them back, or the trace is of another time",
                self.processes
            ));
            return self.say_record(shown);
        };
        if percent(block.nr.abs_diff(self.told.nr), self.told.nr) >= COUNT_PERCENT {
            self.words.push(format!(
                "the trace has {} of these processes and fio counts {}: {}",
                counted(block.nr, "I/Os"),
                self.told.nr,
                if block.nr < self.told.nr {
                    "it is of a part of the time, or the page cache has the others, so the two are \
                     not of the same I/Os"
                } else {
                    "they had other I/O, too (files that are written before the job begins, metadata), or \
                     it is of more than one run"
                }
            ));
        }
        let told_ns = self.told.mean_ns as u64;
        let block_ns = block.mean_ns as u64;
        if block_ns > told_ns.saturating_add(told_ns / SAME_PERCENT) {
            self.words.push(format!(
                "the block layer has them for longer ({} on average) than fio says: fio does not \
                 wait for these, or the trace is of another time",
                time_text(block_ns)
            ));
            return;
        }
        let outside = told_ns.saturating_sub(block_ns);
        self.outside_ns = Some(outside);
        self.longest(&block);
        let part = percent(outside, told_ns);
        if part < SAME_PERCENT {
            self.words.push(format!(
                "on average {} % of what fio sees is in the block layer: what is below explains it",
                100 - part
            ));
            return;
        }
        self.words.push(format!(
            "on average {} of {} ({part} %) are outside of the block layer: before Q or behind C",
            time_text(outside),
            time_text(told_ns)
        ));
        self.explain(outside.saturating_mul(self.told.nr), shown);
    }

    /// What the longest says: at least so much of it is outside.
    fn longest(&mut self, block: &Part) {
        let beyond = self.told.max_ns.saturating_sub(block.max_ns);
        if percent(beyond, self.told.max_ns) < SAME_PERCENT {
            return;
        }
        let at = match self.told.max_at_ns {
            Some(ns) => format!(", which ended {} after the log began", time_text(ns)),
            None => String::new(),
        };
        self.words.push(format!(
            "of the longest ({}{at}) {} or more are outside of the block layer: there the longest \
             takes {}",
            time_text(self.told.max_ns),
            time_text(beyond),
            time_text(block.max_ns)
        ));
    }

    /// What follows for calls of fsync.
    fn syncs(&mut self, shown: &Shown<'_>) {
        let told_ns = (self.told.mean_ns as u64).saturating_mul(self.told.nr);
        let is_shown = self
            .calls
            .iter()
            .any(|(what, _)| *what == Outside::Fsync || *what == Outside::LogForce);
        if !is_shown {
            self.words.push(
                "the trace does not show the calls of fsync, so it cannot say how much of them is \
                 I/O: an fsync waits for data, for a commit of the journal and for a flush, most of \
                 them of other threads"
                    .to_owned(),
            );
        }
        self.explain(told_ns, shown);
    }

    /// What the trace shows of the time outside of the block layer.
    fn explain(&mut self, outside_ns: u64, shown: &Shown<'_>) {
        let worth = self
            .calls
            .iter()
            .filter(|(_, sum)| percent(sum.total_ns, outside_ns) >= WORTH_PERCENT);
        let mut explained = 0_u64;
        let mut words = Vec::new();
        // A sync is a call that holds I/O; of an I/O such calls say nothing.
        let is_sync = self.told.kind == ToldKind::Syncs;
        for (what, sum) in worth.filter(|(what, _)| what.holds_io() == is_sync) {
            explained = explained.saturating_add(sum.total_ns);
            words.push(format!(
                "these processes were {} {}{} ({}, {} the worst)",
                time_text(sum.total_ns),
                what.words(),
                if is_sync { ", their I/O with it" } else { "" },
                counted(sum.nr, "times"),
                time_text(sum.worst_ns)
            ));
        }
        self.words.extend(words);
        if percent(explained, outside_ns) < 100 - SAME_PERCENT {
            if explained == 0 {
                self.words
                    .push("nothing in the trace shows what it waits for there".to_owned());
            }
            self.say_record(shown);
        }
    }

    /// Says what the trace lacks, and what records it.
    fn say_record(&mut self, shown: &Shown<'_>) {
        let wanted: [(&[KernelPart], &str); 3] = [
            (&[KernelPart::Sched], "whether it runs (sched)"),
            (
                &[KernelPart::Writeback],
                "whether it is held back since too much is dirty (writeback)",
            ),
            (
                &[KernelPart::Jbd2, KernelPart::Xfs],
                "whether it waits for the journal (jbd2 and ext4, xfs)",
            ),
        ];
        let lacks = wanted.into_iter().filter(|(parts, _)| {
            let has = |part| shown.parts.contains(part);
            !parts.iter().any(has)
        });
        let lacks: Vec<&str> = lacks.map(|(_, what)| what).collect();
        if !lacks.is_empty() {
            self.words.push(format!(
                "the trace has no events that say {}",
                lacks.join(", ")
            ));
            self.record = Some(shown.record.to_owned());
        }
    }
}
