// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio says: its results as JSON, and its logs of latencies.

use blklab_analysis::distribution::Distribution;
use blklab_experiment::{NAMED_BYTES_MAX, read_named};
use blklab_fiostat::{Ddir, Entry, IoStat, Printed, ReadResult, UnifiedRw};
use blklab_formats::TraceFile;
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::{Error, Op, Time};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Percentiles that are shown of a log.
const PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldKind {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Trims.
    Trims,
    /// Calls of fsync, fdatasync and the like.
    Syncs,
}

impl ToldKind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            ToldKind::Reads => "reads",
            ToldKind::Writes => "writes",
            ToldKind::Trims => "trims",
            ToldKind::Syncs => "syncs",
        }
    }

    /// What the block layer does for it; none for calls.
    pub fn op(self) -> Option<Op> {
        match self {
            ToldKind::Reads => Some(Op::Read),
            ToldKind::Writes => Some(Op::Write),
            ToldKind::Trims => Some(Op::Discard),
            ToldKind::Syncs => None,
        }
    }
}

/// What was said of the I/Os of a job and direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// The job, or the file of a log.
    pub job: String,
    /// Of what.
    pub kind: ToldKind,
    /// Which latency: `lat`, `clat` or `sync`.
    pub latency: &'static str,
    /// How many I/Os.
    pub nr: u64,
    /// Their mean, ns.
    pub mean_ns: f64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Of which latency the percentiles are.
    pub percentiles_of: &'static str,
    /// Percent and ns, rising.
    pub percentiles: Vec<(f64, f64)>,
    /// Length of each, if all have the same, bytes.
    pub bytes: Option<u64>,
    /// Whether fio's options say that it goes past the page cache, so that no I/O is longer.
    pub direct: bool,
    /// When the longest ended, ns from the beginning of the log; only logs say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
}

/// Reads what fio printed as JSON, or a log of latencies.
///
/// # Errors
/// If it is neither: a line with the file.
pub fn read(path: &Path) -> Result<Vec<Told>, Error> {
    let shown = path.display().to_string();
    let text = read_named(path, NAMED_BYTES_MAX).map_err(|e| e.in_file(&shown))?;
    let told = if text.contains('{') {
        of_result(&text)
    } else {
        log(path)
    };
    let told = told.map_err(|e| e.in_file(&shown))?;
    if told.is_empty() {
        return Err(
            Error::new("no latency in it: fio had no I/O, or did not measure it").in_file(&shown),
        );
    }
    Ok(told)
}

fn of_result(text: &str) -> Result<Vec<Told>, Error> {
    let read = ReadResult::parse(text)?;
    let entries = read.result.entries.iter().zip(&read.printed);
    let global = &read.result.global_options;
    let all = entries.flat_map(|(e, printed)| {
        let options = Options(&e.info.options, global);
        let mut told = entry(e, printed);
        for one in &mut told {
            one.direct = options.are_direct();
            one.bytes = one.bytes.filter(|_| !options.have_lengths());
        }
        told
    });
    Ok(all.collect())
}

/// Options of a job as fio prints them, and those of all jobs.
struct Options<'a>(&'a [(String, String)], &'a [(String, String)]);

impl Options<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let named = |(key, _): &&(String, String)| key == name;
        let own = self.0.iter().rev().find(named);
        let any = own.or_else(|| self.1.iter().rev().find(named));
        any.map(|(_, value)| value.trim())
    }

    fn are_direct(&self) -> bool {
        // An option without a value is printed as an empty text.
        let is_set = |name: &str| self.get(name).is_some_and(|value| value != "0");
        is_set("direct") || self.get("buffered") == Some("0")
    }

    /// Whether I/Os have several lengths.
    fn have_lengths(&self) -> bool {
        let several = ["bsrange", "blocksize_range", "bssplit"];
        several.iter().any(|name| self.get(name).is_some())
    }
}

fn entry(e: &Entry, printed: &Printed) -> Vec<Told> {
    let kinds = [
        (Ddir::Read, ToldKind::Reads),
        (Ddir::Write, ToldKind::Writes),
        (Ddir::Trim, ToldKind::Trims),
    ];
    let mut all = Vec::new();
    // Reads and writes together fit no direction of a trace.
    if e.info.unified != UnifiedRw::Mixed {
        all.extend(kinds.into_iter().filter_map(|(dir, kind)| {
            let own = e.stat.dir(dir);
            let (latency, stat) = match &own.lat.stat {
                lat if lat.samples > 0 => ("lat", lat),
                _ => ("clat", &own.clat.stat),
            };
            let shown = &printed.dirs[dir.idx()];
            let (percentiles_of, percentiles) = if shown.clat_ns.is_empty() {
                ("lat", &shown.lat_ns)
            } else {
                ("clat", &shown.clat_ns)
            };
            Some(Told {
                percentiles_of,
                percentiles: percentiles.clone(),
                bytes: same_length(own.io_bytes, own.total_ios),
                nr: own.total_ios,
                ..summary(e, kind, latency, stat)?
            })
        }));
    }
    all.extend(summary(e, ToldKind::Syncs, "sync", &e.stat.sync.stat));
    all
}

fn summary(e: &Entry, kind: ToldKind, latency: &'static str, stat: &IoStat) -> Option<Told> {
    (stat.samples > 0).then(|| Told {
        job: e.info.name.clone(),
        kind,
        latency,
        nr: stat.samples,
        mean_ns: stat.mean,
        max_ns: stat.max,
        percentiles_of: latency,
        percentiles: Vec::new(),
        bytes: None,
        direct: false,
        max_at_ns: None,
    })
}

/// The length of each of so many I/Os, if it may be the same: whole sectors.
fn same_length(bytes: u64, nr: u64) -> Option<u64> {
    let each = bytes.checked_div(nr)?;
    (each * nr == bytes && each > 0 && each % 512 == 0).then_some(each)
}

fn log(path: &Path) -> Result<Vec<Told>, Error> {
    let fail = |e: &dyn std::fmt::Display| Error::new(e.to_string());
    let mut input = TraceFile::open(path).map_err(|e| fail(&e))?;
    let name = input.format().name;
    if name != "fio-lat-log" {
        return Err(Error::new(format!(
            "expected what fio --output-format=json writes, or its log of latencies \
             (write_lat_log), not {name}"
        )));
    }
    let file = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let file = file.unwrap_or_default();
    let latency = ["slat", "clat"]
        .into_iter()
        .find(|l| file.contains(&format!("_{l}.")))
        .unwrap_or("lat");
    if latency == "slat" {
        return Err(Error::new(
            "a log of submission latencies: expected NAME_lat or NAME_clat, from which the time in \
             the block layer can be taken",
        ));
    }
    let mut log = Log::default();
    crate::relay::send_all(&mut input, &mut log).map_err(|e| fail(&e))?;
    let job = file.split(&format!("_{latency}.")).next().unwrap_or(&file);
    Ok(log.told(job, latency))
}

/// The I/Os of a log: each is a Q and a C.
#[derive(Debug, Default)]
struct Log {
    /// Q of those under way, by direction and place.
    begun: BTreeMap<(Option<ToldKind>, u64), VecDeque<Time>>,
    sums: BTreeMap<ToldKind, LogSum>,
    start: Option<Time>,
}

#[derive(Debug, Default)]
struct LogSum {
    latencies: Distribution,
    lengths: [Option<u32>; 2],
    longest: Option<(u64, Time)>,
}

fn kind_of(op: Option<Op>) -> Option<ToldKind> {
    let kinds = [ToldKind::Reads, ToldKind::Writes, ToldKind::Trims];
    kinds.into_iter().find(|k| k.op() == op)
}

impl TraceSink for Log {
    fn event(&mut self, e: &Event) {
        let kind = kind_of(e.rwbs.op());
        self.start.get_or_insert(e.time);
        let key = (kind, e.sector);
        match e.action {
            Action::Queue => self.begun.entry(key).or_default().push_back(e.time),
            Action::Complete => {
                let Some(queue) = self.begun.get_mut(&key).and_then(VecDeque::pop_front) else {
                    return;
                };
                let Some(kind) = kind else { return };
                let sum = self.sums.entry(kind).or_default();
                let ns = e.time.since(queue).0;
                sum.latencies.add(ns);
                if sum.longest.is_none_or(|(longest, _)| ns > longest) {
                    sum.longest = Some((ns, e.time));
                }
                let lengths = &mut sum.lengths;
                lengths[0] = Some(lengths[0].map_or(e.bytes, |n| n.min(e.bytes)));
                lengths[1] = lengths[1].max(Some(e.bytes));
            }
            _ => {}
        }
    }
}

impl Log {
    fn told(self, job: &str, latency: &'static str) -> Vec<Told> {
        let start = self.start.unwrap_or_default();
        let told = |(kind, sum): (ToldKind, LogSum)| Told {
            job: job.to_owned(),
            kind,
            latency,
            nr: sum.latencies.count(),
            mean_ns: sum.latencies.mean(),
            max_ns: sum.latencies.max(),
            percentiles_of: latency,
            percentiles: PERCENTS
                .into_iter()
                .map(|p| (p, sum.latencies.percentile(p) as f64))
                .collect(),
            bytes: sum.lengths[0]
                .filter(|_| sum.lengths[0] == sum.lengths[1])
                .map(u64::from)
                .filter(|bytes| *bytes > 0),
            direct: false,
            max_at_ns: sum.longest.map(|(_, at)| at.since(start).0),
        };
        self.sums.into_iter().map(told).collect()
    }
}
