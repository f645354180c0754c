// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios of a trace over time, in windows: where a run becomes steady, and the numbers
//! of what comes after. Memory does not grow with the trace.

use super::figures::{NAMES_MAX, RowFigures, Source, WhatOf};
use crate::metric::{ENDED, EndedBios, Metric};
use crate::statistics::{BATCHES, warm_up};
use crate::summary::jobs::stem;
use blklab_analysis::bins::{Bin, Bins};
use blklab_analysis::lifecycle::{BioLife, LifeSink};
use blklab_analysis::names::Names;
use blklab_types::{Op, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// How long a window is at first.
const FIRST_NS: u64 = 1_000_000;

/// Processes that are told apart; further ones are one.
const ROWS_MAX: usize = 64;

/// The bios that ended in a window, by process and direction.
type Ended = BTreeMap<(Pid, &'static str), EndedBios>;

impl Bin for EndedBios {
    fn join(&mut self, other: EndedBios) {
        self.add(&other);
    }
}

/// Gathers the bios of a trace.
#[derive(Debug, Default)]
pub(super) struct Windows {
    windows: Option<Bins<Ended>>,
    /// Processes and directions that are told apart.
    rows: BTreeSet<(Pid, &'static str)>,
}

/// Where a run becomes steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// After so much of its time.
    Until {
        /// From the first event, in ns.
        ns: u64,
        /// The whole run, in ns.
        of_ns: u64,
    },
    /// Nowhere.
    Never,
}

impl LifeSink for Windows {
    fn bio(&mut self, bio: &BioLife) {
        let (Some(complete), false) = (bio.complete, bio.is_part) else {
            return;
        };
        let direction = match bio.op() {
            Some(Op::Read) => "read",
            Some(Op::Write) => "write",
            Some(Op::Discard) => "trim",
            _ => "other",
        };
        let mut key = (bio.pid, direction);
        if self.rows.len() >= ROWS_MAX && !self.rows.contains(&key) {
            key.0 = Pid::MAX;
        }
        self.rows.insert(key);
        let new = || Bins::with_interval(bio.queue, FIRST_NS);
        let windows = self.windows.get_or_insert_with(new);
        let window = windows.at(complete).entry(key).or_default();
        let q2c_ns = complete.0.saturating_sub(bio.queue.0);
        let issue = bio.issue.unwrap_or(complete);
        window.bios += 1;
        window.bytes += u64::from(bio.bytes);
        window.q2c_ns = window.q2c_ns.saturating_add(q2c_ns);
        let q2d_ns = issue.0.saturating_sub(bio.queue.0);
        window.q2d_ns = window.q2d_ns.saturating_add(q2d_ns);
        window.d2c_ns = window.d2c_ns.saturating_add(q2c_ns.saturating_sub(q2d_ns));
        window.max_ns = window.max_ns.max(q2c_ns);
        window.latencies.add(q2c_ns);
    }
}

impl Windows {
    fn windows(&self) -> &[Ended] {
        self.windows.as_ref().map_or(&[], Bins::as_slice)
    }

    /// How long a window is.
    fn width_ns(&self) -> u64 {
        self.windows.as_ref().map_or(FIRST_NS, Bins::interval_ns)
    }

    /// The first window that is steady: of the mean latency of all bios.
    fn cut(&self) -> Option<usize> {
        let mut means = Vec::new();
        for (idx, window) in self.windows().iter().enumerate() {
            let (bios, ns) = window.values().fold((0, 0u64), |(bios, ns), w| {
                (bios + w.bios, ns.saturating_add(w.q2c_ns))
            });
            if bios > 0 {
                means.push((idx, ns as f64 / bios as f64));
            }
        }
        let values: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
        let cut = warm_up(&values)?;
        Some(means.get(cut).map_or(0, |(idx, _)| *idx))
    }

    /// Where it becomes steady.
    pub(super) fn warm_up(&self) -> WarmUp {
        let of_ns = self.windows().len() as u64 * self.width_ns();
        match self.cut() {
            Some(idx) => WarmUp::Until {
                ns: idx as u64 * self.width_ns(),
                of_ns,
            },
            None => WarmUp::Never,
        }
    }

    /// What comes after the warm-up, as one.
    pub(super) fn whole(&self, names: &Names) -> Source {
        let first = self.cut().unwrap_or(0);
        self.source(first..self.windows().len(), names, false)
    }

    /// The same in batches of one length.
    pub(super) fn batches(&self, names: &Names) -> Vec<Source> {
        let first = self.cut().unwrap_or(0);
        let windows = self.windows().len() - first;
        let batches = BATCHES.min(windows);
        let edge = |i: usize| first + windows * i / batches;
        let of = (0..batches).map(|i| self.source(edge(i)..edge(i + 1), names, true));
        of.collect()
    }

    /// What is before the numbers of names that many processes share but for these.
    fn families<'n>(&self, names: &'n Names) -> BTreeMap<&'n str, usize> {
        let mut pids: Vec<Pid> = self.rows.iter().map(|(pid, _)| *pid).collect();
        pids.dedup();
        let mut families = BTreeMap::new();
        for comm in pids.iter().filter_map(|pid| names.get(*pid)) {
            *families.entry(stem(comm)).or_default() += 1;
        }
        families.retain(|_, members| *members > NAMES_MAX);
        families
    }

    fn source(&self, range: std::ops::Range<usize>, names: &Names, is_batch: bool) -> Source {
        let seconds = range.len() as f64 * self.width_ns() as f64 / 1e9;
        let families = self.families(names);
        // Processes of one name are one: numbers differ from boot to boot.
        let mut sums: BTreeMap<WhatOf, EndedBios> = BTreeMap::new();
        for key @ (pid, direction) in &self.rows {
            let who = match names.get(*pid) {
                _ if *pid == Pid::MAX => "others".to_owned(),
                Some(comm) => family(comm, &families).unwrap_or_else(|| comm.to_owned()),
                None => format!("process {pid}"),
            };
            let direction = (*direction).to_owned();
            let sum = sums.entry(WhatOf { who, direction }).or_default();
            let ended = self.windows()[range.clone()].iter();
            ended.filter_map(|w| w.get(key)).for_each(|w| sum.add(w));
        }
        let rows = sums.into_iter().map(|(key, sum)| {
            let sum = EndedBios { seconds, ..sum };
            let value = |m: &Metric| Some((m.column(), m.of_ended(&sum)?));
            let figures = RowFigures {
                values: ENDED.iter().filter_map(value).collect(),
                latencies: sum.latencies.clone(),
                is_batch,
            };
            (key, figures)
        });
        Source {
            rows: rows.collect(),
        }
    }
}

/// The name of its family: `file*`.
fn family(comm: &str, families: &BTreeMap<&str, usize>) -> Option<String> {
    let stem = stem(comm);
    families.contains_key(stem).then(|| format!("{stem}*"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_analysis::bins::BINS_MAX;
    use blklab_trace::Rwbs;
    use blklab_types::{Dev, Time};

    fn bio(at_ms: u64, took_ns: u64) -> BioLife {
        BioLife {
            dev: Dev::default(),
            pid: 7,
            rwbs: Rwbs::READ,
            sector: at_ms,
            bytes: 4096,
            queue: Time(at_ms * 1_000_000),
            sleep: None,
            get: None,
            merge: None,
            insert: None,
            issue: Some(Time(at_ms * 1_000_000 + took_ns / 4)),
            complete: Some(Time(at_ms * 1_000_000 + took_ns)),
            error: 0,
            is_part: false,
            request: None,
        }
    }

    #[test]
    fn windows_stay_few_and_the_warm_up_is_left_out() {
        let mut windows = Windows::default();
        let mut names = Names::default();
        names.set(7, "reader");
        for at_ms in 0..20_000 {
            let slow = if at_ms < 2_000 { 900_000 } else { 0 };
            windows.bio(&bio(at_ms, 100_000 + slow + at_ms * 7 % 13 * 1000));
        }
        assert!(windows.windows().len() <= BINS_MAX);
        let WarmUp::Until { ns, of_ns } = windows.warm_up() else {
            panic!("it becomes steady");
        };
        assert!((1_900_000_000..3_500_000_000).contains(&ns), "{ns}");
        assert!((19_900_000_000..20_300_000_000).contains(&of_ns), "{of_ns}");
        let whole = windows.whole(&names);
        let (key, row) = &whole.rows[0];
        assert_eq!(key.to_string(), "reader read");
        assert!(row.values["q2c_max_ns"] < 120_000.0, "{row:?}");
        assert!((row.values["iops"] / 1000.0 - 1.0).abs() < 0.02);
        let q2d = row.values["q2d_mean_ns"] * 4.0;
        assert!((q2d / row.values["q2c_mean_ns"] - 1.0).abs() < 0.01);
        assert_eq!(windows.batches(&names).len(), BATCHES);
        assert!(Windows::default().batches(&names).is_empty());
    }
}
