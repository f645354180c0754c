// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios of a trace over time, in windows: where a run becomes steady, and the numbers
//! of what comes after. Memory does not grow with the trace.

use super::figures::{NAMES_MAX, RowFigures, Source, WhatOf};
use blklab_analysis::lifecycle::{BioLife, LifeSink};
use blklab_analysis::names::Names;
use blklab_compare::{BATCHES, warm_up};
use blklab_fiostat::LatencyHist;
use blklab_types::{Op, Pid, Time};
use std::collections::BTreeMap;

/// Windows at most: then each becomes twice as long.
const WINDOWS_MAX: usize = 512;

/// How long a window is at first.
const FIRST_NS: u64 = 1_000_000;

/// Processes that are told apart; further ones are one.
const ROWS_MAX: usize = 64;

/// The bios of somebody that ended in a window.
#[derive(Clone, Debug, Default)]
struct Window {
    bios: u64,
    bytes: u64,
    q2c_ns: u64,
    q2d_ns: u64,
    d2c_ns: u64,
    max_ns: u64,
    latencies: LatencyHist,
}

impl Window {
    fn add(&mut self, other: &Window) {
        self.bios += other.bios;
        self.bytes += other.bytes;
        self.q2c_ns += other.q2c_ns;
        self.q2d_ns += other.q2d_ns;
        self.d2c_ns += other.d2c_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.latencies.merge(&other.latencies);
    }
}

/// Gathers the bios of a trace.
#[derive(Debug)]
pub(super) struct Windows {
    start: Option<Time>,
    width_ns: u64,
    /// By process and direction.
    rows: BTreeMap<(Pid, &'static str), Vec<Window>>,
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

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            start: None,
            width_ns: FIRST_NS,
            rows: BTreeMap::new(),
        }
    }
}

impl LifeSink for Windows {
    fn bio(&mut self, bio: &BioLife) {
        let (Some(complete), false) = (bio.complete, bio.is_part) else {
            return;
        };
        let start = *self.start.get_or_insert(bio.queue);
        let at_ns = complete.0.saturating_sub(start.0);
        while at_ns / self.width_ns >= WINDOWS_MAX as u64 {
            self.widen();
        }
        let direction = match bio.op() {
            Some(Op::Read) => "read",
            Some(Op::Write) => "write",
            Some(Op::Discard) => "trim",
            _ => "other",
        };
        let mut key = (bio.pid, direction);
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            key.0 = Pid::MAX;
        }
        let idx = (at_ns / self.width_ns) as usize;
        let windows = self.rows.entry(key).or_default();
        if windows.len() <= idx {
            windows.resize_with(idx + 1, Window::default);
        }
        let q2c_ns = complete.0.saturating_sub(bio.queue.0);
        let issue = bio.issue.unwrap_or(complete);
        let window = &mut windows[idx];
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
    /// Makes one window of two.
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for windows in self.rows.values_mut() {
            let pairs = windows.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|w| sum.add(w));
                sum
            });
            *windows = pairs.collect();
        }
    }

    fn nr_windows(&self) -> usize {
        self.rows.values().map(Vec::len).max().unwrap_or(0)
    }

    /// The first window that is steady: of the mean latency of all bios.
    fn cut(&self) -> Option<usize> {
        let mut means = Vec::new();
        for idx in 0..self.nr_windows() {
            let windows = self.rows.values().filter_map(|w| w.get(idx));
            let (bios, ns) = windows.fold((0, 0u64), |(bios, ns), w| {
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
        let of_ns = self.nr_windows() as u64 * self.width_ns;
        match self.cut() {
            Some(idx) => WarmUp::Until {
                ns: idx as u64 * self.width_ns,
                of_ns,
            },
            None => WarmUp::Never,
        }
    }

    /// What comes after the warm-up, as one.
    pub(super) fn whole(&self, names: &Names) -> Source {
        let first = self.cut().unwrap_or(0);
        self.source(first..self.nr_windows(), names, false)
    }

    /// The same in batches of one length.
    pub(super) fn batches(&self, names: &Names) -> Vec<Source> {
        let first = self.cut().unwrap_or(0);
        let windows = self.nr_windows() - first;
        let batches = BATCHES.min(windows);
        let edge = |i: usize| first + windows * i / batches;
        let of = (0..batches).map(|i| self.source(edge(i)..edge(i + 1), names, true));
        of.collect()
    }

    /// What is before the numbers of names that many processes share but for these.
    fn families<'n>(&self, names: &'n Names) -> BTreeMap<&'n str, usize> {
        let mut pids: Vec<Pid> = self.rows.keys().map(|(pid, _)| *pid).collect();
        pids.dedup();
        let mut families = BTreeMap::new();
        for comm in pids.iter().filter_map(|pid| names.get(*pid)) {
            *families.entry(stem(comm)).or_default() += 1;
        }
        families.retain(|_, members| *members > NAMES_MAX);
        families
    }

    fn source(&self, range: std::ops::Range<usize>, names: &Names, is_batch: bool) -> Source {
        let seconds = range.len() as f64 * self.width_ns as f64 / 1e9;
        let families = self.families(names);
        // Processes of one name are one: numbers differ from boot to boot.
        let mut sums: BTreeMap<WhatOf, Window> = BTreeMap::new();
        for ((pid, direction), windows) in &self.rows {
            let who = match names.get(*pid) {
                _ if *pid == Pid::MAX => "others".to_owned(),
                Some(comm) => family(comm, &families).unwrap_or_else(|| comm.to_owned()),
                None => format!("process {pid}"),
            };
            let direction = (*direction).to_owned();
            let sum = sums.entry(WhatOf { who, direction }).or_default();
            let end = range.end.min(windows.len());
            for window in windows.get(range.start..end).into_iter().flatten() {
                sum.add(window);
            }
        }
        let rows = sums.into_iter().map(|(key, sum)| {
            let mut figures = RowFigures {
                is_batch,
                ..RowFigures::default()
            };
            let n = sum.bios as f64;
            let mut put = |column: &str, value: f64| {
                figures.values.insert(column.to_owned(), value);
            };
            put("bandwidth_bytes_per_s", sum.bytes as f64 / seconds);
            put("iops", n / seconds);
            if sum.bios > 0 {
                put("q2c_mean_ns", sum.q2c_ns as f64 / n);
                put("q2c_max_ns", sum.max_ns as f64);
                put("q2d_mean_ns", sum.q2d_ns as f64 / n);
                put("d2c_mean_ns", sum.d2c_ns as f64 / n);
                figures.latencies = sum.latencies;
            }
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

fn stem(comm: &str) -> &str {
    comm.trim_end_matches(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;
    use blklab_types::Dev;

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
        assert!(windows.nr_windows() <= WINDOWS_MAX);
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
