// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of fio (`--output-format=json` or `json+`) as cells: jobs of one reporting
//! group ran side by side, each group is a cell.

use crate::cell::{Cell, HostTimes, Seen, State, Stream};
use crate::options::Options;
use blklab_types::{Error, Op};
use serde_json::{Map, Value};
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
    job: &'a Map<String, Value>,
}

/// Reads what fio wrote. `wake_ns` is what kernel and wake-up add to each command; without
/// it, 5 µs if a kernel was there.
///
/// # Errors
/// If it is not what fio writes.
pub fn parse(name: &str, text: &str, wake_ns: Option<u64>) -> Result<Measured, Error> {
    let wrong = |what: &str| Error::new(what).in_file(name);
    // fio's own messages come before its result.
    let mut from = 0;
    if !text.starts_with('{') {
        from = match text.find("\n{") {
            Some(at) => at + 1,
            None => {
                return Err(wrong(
                    "no result of fio: expected what fio --output-format=json+ writes",
                ));
            }
        };
    }
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    let before = text[..from].matches('\n').count() as u64;
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(e)) => {
            let what = e.to_string();
            let what = what.split(" at line").next().unwrap_or_default();
            let line = Some(before + e.line() as u64);
            return Err(wrong(&format!("no JSON: {what}")).on_line(line));
        }
        None => {
            return Err(wrong(
                "the file is empty; expected what fio --output-format=json+ writes",
            ));
        }
    };
    let jobs = value.get("jobs").and_then(Value::as_array);
    let Some(jobs) = jobs else {
        return Err(wrong("no result of fio: it has no 'jobs'"));
    };
    let global = texts(value.get("global options"));
    let of_blklab = value.get("blklab").is_some();
    let mut entries = Vec::new();
    for job in jobs {
        let Some(job) = job.as_object() else {
            return Err(wrong("no result of fio: an entry of 'jobs' is no object"));
        };
        let mut options = global.clone();
        options.extend(texts(job.get("job options")));
        entries.push(Entry {
            name: job.get("jobname").and_then(Value::as_str).unwrap_or("?"),
            group: job.get("groupid").and_then(Value::as_u64).unwrap_or(0),
            options: Options(options),
            job,
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
                slat_ns(e.job) as u64
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

/// Options as fio prints them: all of them are texts.
fn texts(options: Option<&Value>) -> BTreeMap<String, String> {
    let all = options.and_then(Value::as_object).into_iter().flatten();
    let text = |v: &Value| match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    all.map(|(k, v)| (k.clone(), text(v))).collect()
}

fn directions(job: &Map<String, Value>) -> impl Iterator<Item = (Op, &Map<String, Value>)> {
    let section = |(op, name): (Op, &str)| Some((op, job.get(name)?.as_object()?));
    let all = [(Op::Read, "read"), (Op::Write, "write")];
    let some = all.into_iter().filter_map(section).collect::<Vec<_>>();
    some.into_iter().filter(|(_, d)| number(d, "iops") > 0.0)
}

fn number(of: &Map<String, Value>, name: &str) -> f64 {
    of.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Mean time of a submission.
fn slat_ns(job: &Map<String, Value>) -> f64 {
    let slats = directions(job).filter_map(|(_, d)| Some((d.get("slat_ns")?.as_object()?, d)));
    let (sum, weight) = slats.fold((0.0, 0.0), |(sum, weight), (slat, d)| {
        let iops = number(d, "iops");
        (sum + number(slat, "mean") * iops, weight + iops)
    });
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// Processor time of a command: the least that jobs needed, since those that wait sleep and
/// wake up beside.
fn process_ns(entries: &[Entry<'_>]) -> u64 {
    let each = entries.iter().filter(|e| !e.options.bypasses_kernel());
    let each = each.filter_map(|e| {
        let pct = number(e.job, "usr_cpu") + number(e.job, "sys_cpu");
        let iops: f64 = directions(e.job).map(|(_, d)| number(d, "iops")).sum();
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
        if number(entry.job, "error") != 0.0 {
            return Err(left_out("the job ended with an error".to_owned()));
        }
        let stream = entry.options.stream(host(entry)).map_err(left_out)?;
        for (op, _) in directions(entry.job) {
            if !stream.has(op) {
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
        for (op, d) in directions(entry.job) {
            let quantiles = quantiles(d).ok_or_else(|| {
                left_out("no percentiles: clat_percentiles must be on".to_owned())
            })?;
            let own = seen.iter_mut().find(|s| s.stream == place && s.op == op);
            match own {
                Some(sum) => add(sum, number(d, "iops"), &quantiles, entries),
                None => seen.push(Seen {
                    stream: place,
                    op,
                    per_s: number(d, "iops"),
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
fn quantiles(direction: &Map<String, Value>) -> Option<Vec<(f64, f64)>> {
    let clat = direction.get("clat_ns")?.as_object()?;
    let pairs = |name: &str| -> Vec<(f64, f64)> {
        let all = clat.get(name).and_then(Value::as_object);
        let all = all.into_iter().flatten();
        all.filter_map(|(k, v)| Some((k.parse().ok()?, v.as_f64()?)))
            .collect()
    };
    let percentiles = pairs("percentile");
    let at = |part: f64| {
        let is_it = |(percent, _): &&(f64, f64)| (percent / 100.0 - part).abs() < 1e-6;
        percentiles.iter().find(is_it).map(|(_, ns)| *ns)
    };
    let mut bins = pairs("bins");
    bins.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = bins.iter().map(|(_, n)| n).sum();
    let in_bins = |part: f64| {
        let mut below = 0.0;
        let bin = bins.iter().find(|(_, n)| {
            below += n;
            below >= part * all
        });
        bin.map(|(ns, _)| *ns)
    };
    let found = QUANTILES.iter().filter_map(|&part| {
        let ns = at(part).or_else(|| in_bins(part))?;
        (ns > 0.0).then_some((part, ns / 1e3))
    });
    let found: Vec<(f64, f64)> = found.collect();
    (!found.is_empty()).then_some(found)
}
