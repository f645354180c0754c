// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of fio (`--output-format=json` or `json+`) as cells: jobs of one reporting
//! group ran side by side, each group is a cell.

use crate::cell::{Cell, HostTimes, Seen, State, Stream};
use crate::options::Options;
use blklab_fiostat::{self as fiostat, LatencyHist, PrintedDir, ReadResult, UnifiedRw};
use blklab_types::{Error, Op};
use std::collections::BTreeMap;

/// What a file of measurements comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The loads with what was measured.
    pub cells: Vec<Cell>,
    /// What was left out, and why, in sentences.
    pub left_out: Vec<String>,
}

/// Quantiles that are looked at, of those that fio prints without being asked for others.
const QUANTILES: [f64; 6] = [0.1, 0.5, 0.9, 0.95, 0.99, 0.999];

/// Time from the completion of a command to its process in a kernel, where nothing is said
/// of it: an interrupt and a wake-up.
pub const WAKE_NS: u64 = 5_000;

/// One entry of `jobs`.
struct Entry<'a> {
    name: &'a str,
    group: u64,
    options: Options,
    entry: &'a fiostat::Entry,
    printed: &'a fiostat::Printed,
}

/// Reads what fio wrote. `wake_ns` is what kernel and wake-up add to each command; without
/// it, 5 µs if a kernel was there.
///
/// # Errors
/// If it is not what fio writes.
pub fn parse(name: &str, text: &str, wake_ns: Option<u64>) -> Result<Measured, Error> {
    let read = ReadResult::parse(text).map_err(|e| e.in_file(name))?;
    let result = &read.result;
    let of_blklab = result.blklab.is_some();
    let mut entries = Vec::new();
    for (entry, printed) in result.entries.iter().zip(&read.printed) {
        let options = result.global_options.iter().chain(&entry.info.options);
        entries.push(Entry {
            name: &entry.info.name,
            group: u64::from(entry.info.group_id),
            options: Options(options.cloned().collect()),
            entry,
            printed,
        });
    }
    let process_ns = process_ns(&entries);
    let mut groups: BTreeMap<u64, Vec<Entry<'_>>> = BTreeMap::new();
    for entry in entries {
        groups.entry(entry.group).or_default().push(entry);
    }
    let mut measured = Measured::default();
    for group in groups.values() {
        let host = |e: &Entry<'_>| {
            let direct = of_blklab || e.options.bypasses_kernel();
            let submit_ns = if e.options.bypasses_kernel() {
                0
            } else {
                slat_ns(e) as u64
            };
            HostTimes {
                wake_ns: wake_ns.unwrap_or(if direct { 0 } else { WAKE_NS }),
                reap_ns: process_ns.saturating_sub(submit_ns),
                submit_ns,
            }
        };
        match cell(name, group, &host) {
            Ok(cell) => measured.cells.push(cell),
            Err(why) => measured.left_out.push(why),
        }
    }
    Ok(measured)
}

/// A direction with I/O.
struct Direction<'a> {
    op: Op,
    stat: &'a fiostat::DirStat,
    printed: &'a PrintedDir,
}

/// The directions with I/O, unless they are told as one.
fn directions<'a>(e: &Entry<'a>) -> impl Iterator<Item = Direction<'a>> {
    let own = [
        (Op::Read, fiostat::Ddir::Read),
        (Op::Write, fiostat::Ddir::Write),
    ];
    let (entry, printed) = (e.entry, e.printed);
    let all = own.into_iter().map(move |(op, dir)| Direction {
        op,
        stat: entry.stat.dir(dir),
        printed: &printed.dirs[dir.idx()],
    });
    let apart = entry.info.unified != UnifiedRw::Mixed;
    all.filter(move |d| apart && d.printed.iops > 0.0)
}

/// Mean time of a submission.
fn slat_ns(e: &Entry<'_>) -> f64 {
    let (sum, weight) = directions(e).fold((0.0, 0.0), |(sum, weight), d| {
        let iops = d.printed.iops;
        (sum + d.stat.slat.stat.mean * iops, weight + iops)
    });
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// Processor time of a command: the least that jobs needed, since those that wait sleep and
/// wake up beside.
fn process_ns(entries: &[Entry<'_>]) -> u64 {
    let each = entries.iter().filter(|e| !e.options.bypasses_kernel());
    let each = each.filter_map(|e| {
        let pct = e.printed.usr_cpu + e.printed.sys_cpu;
        let iops: f64 = directions(e).map(|d| d.printed.iops).sum();
        let processes = f64::from(e.options.processes().unwrap_or(1));
        (pct > 0.0 && iops > 0.0).then(|| pct / 100.0 * processes / iops * 1e9)
    });
    let least = each.fold(f64::MAX, f64::min);
    if least < 1e6 { least as u64 } else { 0 }
}

fn cell(
    file: &str,
    group: &[Entry<'_>],
    host: &dyn Fn(&Entry<'_>) -> HostTimes,
) -> Result<Cell, String> {
    let name = group.iter().map(|e| e.name).collect::<Vec<_>>();
    let mut names = name.clone();
    names.dedup();
    let name = names.join("+");
    let left_out = |why: String| format!("{file}: {name}: {why}");
    let mut streams: Vec<Stream> = Vec::new();
    let mut seen: Vec<Seen> = Vec::new();
    let mut of_name: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
    for entry in group {
        if entry.entry.info.error != 0 {
            return Err(left_out("the job ended with an error".to_owned()));
        }
        let stream = entry.options.stream(host(entry)).map_err(left_out)?;
        for d in directions(entry) {
            if !stream.has(d.op) {
                let why = "it has a direction that its rw does not have; jobs of different \
                           kinds need results of their own (no group_reporting)";
                return Err(left_out(why.to_owned()));
            }
        }
        // Without group_reporting each process has an entry of its own.
        let (place, entries) = *of_name
            .entry(entry.name)
            .and_modify(|(_, n)| *n += 1)
            .or_insert((streams.len(), 1));
        if entries == 1 {
            streams.push(stream);
        } else if streams[place] != stream {
            return Err(left_out("jobs of one name differ".to_owned()));
        }
        for d in directions(entry) {
            let op = d.op;
            let quantiles = quantiles(&d).ok_or_else(|| {
                left_out("no percentiles: clat_percentiles must be on".to_owned())
            })?;
            let own = seen.iter_mut().find(|s| s.stream == place && s.op == op);
            match own {
                Some(sum) => add(sum, d.printed.iops, &quantiles, entries),
                None => seen.push(Seen {
                    stream: place,
                    op,
                    per_s: d.printed.iops,
                    quantiles,
                }),
            }
        }
    }
    if seen.is_empty() {
        return Err(left_out("nothing was read or written".to_owned()));
    }
    let state = state_of(&name)
        .or_else(|| state_of(file))
        .unwrap_or_default();
    Ok(Cell {
        name,
        state,
        streams,
        seen,
    })
}

/// What a name says of the drive before.
pub(crate) fn state_of(name: &str) -> Option<State> {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| name.contains(w));
    if says(&["fresh"]) {
        Some(State::Fresh)
    } else if says(&["steady", "used", "precond"]) {
        Some(State::Used)
    } else {
        None
    }
}

/// Another process of the same kind: rates add up, quantiles are averaged as logarithms.
fn add(sum: &mut Seen, iops: f64, quantiles: &[(f64, f64)], entries: u32) {
    sum.per_s += iops;
    let n = f64::from(entries);
    for ((_, us), (_, other)) in sum.quantiles.iter_mut().zip(quantiles) {
        *us = ((us.ln() * (n - 1.0) + other.ln()) / n).exp();
    }
}

/// From the list of percentiles, else from the histogram of json+.
fn quantiles(d: &Direction<'_>) -> Option<Vec<(f64, f64)>> {
    let percentiles = &d.printed.clat_ns;
    let at = |part: f64| {
        let is_it = |(percent, _): &&(f64, f64)| (percent / 100.0 - part).abs() < 1e-6;
        percentiles.iter().find(is_it).map(|(_, ns)| *ns)
    };
    let found = QUANTILES.iter().filter_map(|&part| {
        let ns = at(part).or_else(|| in_bins(&d.stat.clat.hist, part))?;
        (ns > 0.0).then_some((part, ns / 1e3))
    });
    let found: Vec<(f64, f64)> = found.collect();
    (!found.is_empty()).then_some(found)
}

/// The bin at which a part of all values is reached.
fn in_bins(hist: &LatencyHist, part: f64) -> Option<f64> {
    let all: u64 = hist.bins().map(|(_, n)| n).sum();
    let mut below = 0.0;
    let bin = hist.bins().find(|(_, n)| {
        below += *n as f64;
        below >= part * all as f64
    });
    bin.map(|(ns, _)| ns as f64)
}
