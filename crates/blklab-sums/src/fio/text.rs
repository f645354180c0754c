// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's normal output, of fio 2 and 3.

use super::{Calls, Job, Latency, Output, disk, is_synchronous};
use crate::number::number;

/// A disk, its requests and their time in ms by direction, the share of time in which it was busy.
type DiskStats = (String, [(f64, f64); 2], Option<f64>);

/// What a line of latencies is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Slat,
    Clat,
    Lat,
    Sync,
}

/// Which latencies a name means.
const PARTS: [(&str, Part); 4] = [
    ("slat", Part::Slat),
    ("clat", Part::Clat),
    ("lat", Part::Lat),
    ("sync", Part::Sync),
];

/// Reads it.
pub(super) fn read(text: &str) -> Output {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line.trim_start_matches(['>', ' ', '\t', '*']).trim_end());
    }
    reader.end()
}

#[derive(Default)]
struct Reader {
    output: Output,
    /// Depths and syncs by the names of jobs, from the lines before the run.
    heads: Vec<(String, Option<f64>, bool)>,
    /// What the command says of depth and engine, where fio's own line on that is missing.
    command: (Option<f64>, Option<bool>),
    /// The direction of the lines below.
    direction: Option<usize>,
    /// Of the percentiles below, and the ns of their unit.
    percentiles: Option<(Part, f64)>,
    /// The command or the job says that it syncs.
    syncs: bool,
    runtime_ms: Option<f64>,
    /// Disks with the share of the time in which they were busy.
    disks: Vec<DiskStats>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        self.syncs |= ["fdatasync=", "fsync=", "fsync_on_close="]
            .iter()
            .any(|o| line.contains(o));
        self.command.0 = option(line, "--iodepth=").or(self.command.0);
        self.command.1 = engine(line, "--ioengine=")
            .map(is_synchronous)
            .or(self.command.1);
        if let Some((name, rest)) = line.split_once(": (g=") {
            let is_synchronous = engine(rest, "ioengine=").is_some_and(is_synchronous);
            let depth = if is_synchronous {
                Some(1.0)
            } else {
                option(rest, "iodepth=")
            };
            self.heads.push((name.to_owned(), depth, self.syncs));
        } else if let Some((name, rest)) = line.split_once(": (groupid=") {
            self.job(name, rest);
        } else if let Some(direction) = direction(line) {
            self.calls(direction, line);
        } else if line.contains("percentiles (") {
            self.percentiles = part(line);
        } else if line.starts_with('|') {
            self.row_of_percentiles(line);
        } else if let Some((part, ns)) = part(line).filter(|_| line.contains("avg=")) {
            self.latency(part, ns, line);
        } else if line.contains("run=") && line.contains("msec") {
            let longest = line
                .split_once("run=")
                .and_then(|(_, rest)| rest.split_once('-'));
            let ms = longest.and_then(|(_, rest)| number(rest.split("msec").next()?));
            self.runtime_ms = ms.or(self.runtime_ms);
        } else if line.contains(": ios=") {
            self.disks.extend(disk_stats(line));
        }
    }

    fn job(&mut self, name: &str, rest: &str) {
        let head = self.heads.iter().find(|(head, ..)| head == name);
        let of_command = match self.command {
            (_, Some(true)) => Some(1.0),
            (depth, _) => depth,
        };
        self.output.jobs.push(Job {
            name: name.to_owned(),
            iodepth: head.map_or(of_command, |(_, depth, _)| *depth),
            nr_jobs: option(rest, "jobs="),
            syncs: head.map_or(self.syncs, |(.., syncs)| *syncs),
            ..Job::default()
        });
        self.direction = None;
    }

    /// `read: IOPS=12.3k, BW=…`, before fio 3 `read : io=…, bw=…, iops=123, runt=…`.
    fn calls(&mut self, direction: usize, line: &str) {
        // An excerpt may begin below the job's name.
        if self.output.jobs.is_empty() {
            self.output.jobs.push(Job {
                name: "the job".to_owned(),
                iodepth: self.heads.last().and_then(|(_, depth, _)| *depth),
                syncs: self.syncs,
                ..Job::default()
            });
        }
        self.direction = Some(direction);
        let per_s = option(line, "IOPS=")
            .or_else(|| option(line, "iops="))
            .unwrap_or(0.0);
        if let Some(calls) = self.current() {
            calls.per_s = per_s;
        }
    }

    fn current(&mut self) -> Option<&mut Calls> {
        self.output.jobs.last_mut()?.calls.get_mut(self.direction?)
    }

    /// Where a part's figures are kept.
    fn place(&mut self, part: Part) -> Option<&mut Latency> {
        if part == Part::Sync {
            return self.output.jobs.last_mut().map(|job| &mut job.sync);
        }
        let calls = self.current()?;
        Some(match part {
            Part::Slat => &mut calls.slat,
            Part::Clat => &mut calls.clat,
            Part::Lat | Part::Sync => &mut calls.lat,
        })
    }

    fn latency(&mut self, part: Part, ns: f64, line: &str) {
        let (mean, max) = (option(line, "avg="), option(line, "max="));
        if let Some(place) = self.place(part) {
            place.mean_ns = mean.map(|value| value * ns);
            place.max_ns = max.map(|value| value * ns);
        }
    }

    /// `| 99.00th=[ 2212], 99.50th=[ 2573],`
    fn row_of_percentiles(&mut self, line: &str) {
        let Some((part, ns)) = self.percentiles else {
            return;
        };
        let pairs = line.trim_start_matches('|').split("],").filter_map(|pair| {
            let (percent, value) = pair.split_once("th=[")?;
            Some((
                number(percent.trim())?,
                scaled(value.trim_end_matches(']').trim())? * ns,
            ))
        });
        let pairs: Vec<(f64, f64)> = pairs.collect();
        if let Some(place) = self.place(part) {
            place.percentiles.extend(pairs);
        }
    }

    fn end(mut self) -> Output {
        let runtime_ms = self.runtime_ms;
        let disks = self.disks.iter().map(|(name, flows, util)| {
            disk(
                name,
                *flows,
                util.zip(runtime_ms)
                    .map(|(util, ms)| (util / 100.0).min(1.0) * ms),
            )
        });
        self.output.disks = disks.filter(|load| load.number() > 0.0).collect();
        self.output
    }
}

/// `read`, `write` or `trim` in front of a rate.
fn direction(line: &str) -> Option<usize> {
    let (name, rest) = line.split_once(':')?;
    let is_rate = rest.contains("IOPS=") || rest.contains("iops=");
    let names = ["read", "write", "trim"];
    let at = names.iter().position(|n| name.trim() == *n);
    // mixed: unified_rw_reporting.
    at.or((name.trim() == "mixed").then_some(0))
        .filter(|_| is_rate)
}

/// `clat (usec): …` or `clat percentiles (usec):`, and the ns of its unit.
fn part(line: &str) -> Option<(Part, f64)> {
    let name = line.split_whitespace().next()?;
    let (_, part) = PARTS.iter().find(|(n, _)| *n == name)?;
    let unit = line.split_once('(')?.1.split_once(')')?.0;
    let ns = match unit {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    };
    Some((*part, ns))
}

/// The engine behind an option.
fn engine<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(key)?.1.split([',', ' ']).next()
}

/// The number behind an option: `avg= 12.50,`, `max=6381.4k,`, `jobs=4)`.
fn option(line: &str, key: &str) -> Option<f64> {
    let (_, behind) = line.split_once(key)?;
    let word = behind.trim_start().split([',', ' ', ')']).next()?;
    scaled(word)
}

/// A number with fio's k, M, G: powers of 1000.
fn scaled(word: &str) -> Option<f64> {
    let factor = match word.as_bytes().last()? {
        b'k' | b'K' => 1e3,
        b'M' => 1e6,
        b'G' => 1e9,
        _ => return number(word),
    };
    Some(number(&word[..word.len() - 1])? * factor)
}

/// `  sda: ios=8600/2, merge=0/0, ticks=1265202/4, in_queue=1265206, util=99.05%`
fn disk_stats(line: &str) -> Option<DiskStats> {
    let (name, rest) = line.split_once(": ios=")?;
    let pair = |text: &str| {
        let (reads, writes) = text.split([',', ' ']).next()?.split_once('/')?;
        Some((number(reads)?, number(writes)?))
    };
    let (reads, writes) = pair(rest)?;
    let (read_ms, write_ms) = pair(rest.split_once("ticks=")?.1)?;
    let util = rest
        .split_once("util=")
        .and_then(|(_, util)| number(util.split('%').next()?));
    Some((
        name.to_owned(),
        [(reads, read_ms), (writes, write_ms)],
        util,
    ))
}
