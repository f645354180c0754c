// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results that fio printed as JSON (`--output-format=json` or `json+`), read back.
//!
//! Releases 2.1 to 3.42. Up to 2.x latencies are called `clat` and are in µs, amounts
//! are in KiB and the bins of json+ are numbered; from 3.0 on they are called `clat_ns`,
//! amounts are in bytes and bins have the value that they stand for (fio 2.1, 2.21, 3.33,
//! `stat.c`). Keys that are not known are left out.
//!
//! What a result does not print is recovered where it follows: counts from their shares
//! in percent, times of the processor from shares of the run time, the I/Os of a direction,
//! which 2.1 leaves out, from their rate. Where it says no
//! number of samples, those are the I/Os of the direction. Percentiles are those of the
//! bins; `json` without `+` has none, and what it prints is kept in [`Printed`].

use crate::hist::value_of;
use crate::{
    BUCKETS, DepthMap, DirStat, DiskCounters, DiskUtil, Entry, FioResult, IoStat, JobInfo, Latency,
    LatencyHist, LatencyTarget, PercentileOptions, PrioStat, SteadyCriterion, SteadyRate,
    SteadySample, SteadyState, ThreadStat, UnifiedRw, Units,
};
use blklab_types::Error;
use serde_json::{Map, Value};

/// A result with what it prints beside its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResult {
    /// The counters.
    pub result: FioResult,
    /// What is printed of each entry.
    pub printed: Vec<Printed>,
}

/// Numbers as an entry prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// By direction; see [`crate::Ddir::idx`].
    pub dirs: [PrintedDir; 3],
    /// User time of the processor, percent.
    pub usr_cpu: f64,
    /// System time of the processor, percent.
    pub sys_cpu: f64,
}

/// Numbers as a direction prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintedDir {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Percentiles of the submission latency: percent and ns, rising.
    pub slat_ns: Vec<(f64, f64)>,
    /// Percentiles of the completion latency.
    pub clat_ns: Vec<(f64, f64)>,
    /// Percentiles of the total latency.
    pub lat_ns: Vec<(f64, f64)>,
}

/// Number of batches that shares are taken of, where it is not printed.
const BATCHES: u64 = 100_000_000;

/// What a count may be, so that sums over the three directions of all entries fit 64 bits,
/// is this divided by the number of entries.
const COUNTS_MAX: u64 = 1 << 62;

/// Disks whose counters are added, at most.
const DISKS_MAX: u64 = 1 << 16;

/// Most measurements of a steady state: twelve days of seconds.
const WINDOW_MAX: u64 = 1 << 20;

/// Samples of a series of rates whose number is not printed: mean and deviation stay.
const SERIES_SAMPLES: u64 = 2;

impl ReadResult {
    /// Reads what fio wrote: messages may come before the result.
    ///
    /// # Errors
    /// If it is not what fio writes: with the line.
    pub fn parse(text: &str) -> Result<ReadResult, Error> {
        let from = match text {
            _ if text.starts_with('{') || text.trim().is_empty() => 0,
            _ => match text.find("\n{") {
                Some(at) => at + 1,
                None => {
                    return Err(Error::new(
                        "no result of fio: expected what fio --output-format=json+ writes",
                    ));
                }
            },
        };
        let before = text[..from].matches('\n').count() as u64;
        let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => result(&value),
            Some(Err(e)) => {
                let what = e.to_string();
                let what = what.split(" at line").next().unwrap_or_default();
                let line = Some(before + e.line() as u64);
                Err(Error::new(format!("no JSON: {what}")).on_line(line))
            }
            None => Err(Error::new(
                "the file is empty; expected what fio --output-format=json+ writes",
            )),
        }
    }
}

fn result(value: &Value) -> Result<ReadResult, Error> {
    let Some(jobs) = value.get("jobs").and_then(Value::as_array) else {
        return Err(Error::new("no result of fio: it has no 'jobs'"));
    };
    let root = Node::root(value);
    let max = COUNTS_MAX / (jobs.len() as u64).max(1);
    let global_options = options(value.get("global options"));
    let mut entries = Vec::with_capacity(jobs.len());
    let mut printed = Vec::with_capacity(jobs.len());
    for job in jobs {
        if !job.is_object() {
            return Err(Error::new(
                "no result of fio: an entry of 'jobs' is no object",
            ));
        }
        let job = Node {
            value: Some(job),
            path: format!("job '{}'", job["jobname"].as_str().unwrap_or("?")),
            max,
        };
        let (entry, own) = entry(&job, &global_options)?;
        entries.push(entry);
        printed.push(own);
    }
    let first = Node {
        value: jobs.first(),
        path: "jobs".to_owned(),
        max,
    };
    let timestamp_ms = match root.whole("timestamp_ms")? {
        0 => root.whole("timestamp")?.saturating_mul(1000),
        ms => ms,
    };
    let disks = value.get("disk_util").and_then(Value::as_array);
    let disk_util = disks.into_iter().flatten().map(disk);
    Ok(ReadResult {
        result: FioResult {
            version: root.text("fio version"),
            timestamp_ms,
            elapsed_s: first.whole("elapsed")?,
            eta_s: first.whole("eta")?,
            global_options,
            disk_util: disk_util.collect::<Result<_, _>>()?,
            blklab: value.get("blklab").cloned(),
            ..FioResult::from_entries(entries)
        },
        printed,
    })
}

/// An object, or the lack of one, and where it stands.
#[derive(Clone)]
struct Node<'a> {
    value: Option<&'a Value>,
    path: String,
    /// What its counts may be.
    max: u64,
}

impl<'a> Node<'a> {
    fn root(value: &'a Value) -> Node<'a> {
        Node {
            value: Some(value),
            path: String::new(),
            max: COUNTS_MAX,
        }
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.value?.get(key).filter(|v| !v.is_null())
    }

    fn below(&self, key: &str) -> Node<'a> {
        let path = match &*self.path {
            "" => key.to_owned(),
            path => format!("{path}, {key}"),
        };
        Node {
            value: self.get(key),
            path,
            max: self.max,
        }
    }

    /// A number; 0 where there is none.
    fn number(&self, key: &str) -> Result<f64, Error> {
        match self.get(key).map(|v| (v, v.as_f64())) {
            None => Ok(0.0),
            Some((_, Some(number))) => Ok(number),
            Some((other, None)) => Err(self.no_number(key, other)),
        }
    }

    /// A whole number of at least 0; 0 where there is none.
    fn whole(&self, key: &str) -> Result<u64, Error> {
        match self.get(key).map(|v| (v, v.as_u64(), v.as_f64())) {
            None => Ok(0),
            Some((_, Some(number), _)) => self.bounded(key, number),
            // What is negative becomes 0.
            Some((_, None, Some(number))) => self.bounded(key, number as u64),
            Some((other, None, None)) => Err(self.no_number(key, other)),
        }
    }

    /// Refuses a count that is larger than any run makes it.
    fn bounded(&self, key: &str, count: u64) -> Result<u64, Error> {
        if count <= self.max {
            return Ok(count);
        }
        let (place, max) = (self.place(), self.max);
        let what = format!("{place}{key} = {count}: expected a count of at most {max}");
        Err(Error::new(what).about(key))
    }

    fn place(&self) -> String {
        match &*self.path {
            "" => String::new(),
            path => format!("{path}, "),
        }
    }

    fn text(&self, key: &str) -> String {
        let text = self.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    /// Names and numbers of an object.
    fn pairs(&self) -> Result<Vec<(&'a str, f64)>, Error> {
        let all = self.object().into_iter().flatten();
        all.map(|(key, value)| match value.as_f64() {
            Some(number) => Ok((key.as_str(), number)),
            None => Err(self.no_number(key, value)),
        })
        .collect()
    }

    fn object(&self) -> Option<&'a Map<String, Value>> {
        self.value?.as_object()
    }

    fn no_number(&self, key: &str, value: &Value) -> Error {
        let mut found = value.to_string();
        if let Some((end, _)) = found.char_indices().nth(24) {
            found.truncate(end);
            found.push('…');
        }
        let place = self.place();
        Error::new(format!("{place}{key} = {found}: expected a number")).about(key)
    }
}

/// Options as fio prints them: all of them are texts.
fn options(object: Option<&Value>) -> Vec<(String, String)> {
    let pairs = object.and_then(Value::as_object).into_iter().flatten();
    let text = |v: &Value| match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    pairs.map(|(k, v)| (k.clone(), text(v))).collect()
}

fn entry(job: &Node<'_>, global: &[(String, String)]) -> Result<(Entry, Printed), Error> {
    let options = options(job.get("job options"));
    let option = |name: &str| {
        let named = |(key, _): &&(String, String)| key == name;
        let own = options.iter().rev().find(named);
        let any = own.or_else(|| global.iter().rev().find(named));
        any.map(|(_, value)| value.as_str())
    };
    let number = |name: &str, default: u64| {
        let given = option(name).and_then(|v| v.trim().parse().ok());
        given.unwrap_or(default)
    };
    let unified = match (job.has("read"), job.has("mixed")) {
        (false, true) => UnifiedRw::Mixed,
        (true, true) => UnifiedRw::Both,
        (_, false) => UnifiedRw::None,
    };
    let whole = |key: &str| -> Result<i32, Error> { Ok(job.number(key)? as i32) };
    let info = JobInfo {
        name: job.text("jobname"),
        description: job.text("desc"),
        group_id: job.whole("groupid")? as u32,
        unified,
        percentiles: percentiles(option("percentile_list"), &number),
        units: Units {
            kb_base: number("kb_base", 1024),
            bits: number("unit_base", 0) == 1,
            significant_figures: number("significant_figures", 4) as usize,
        },
        latency: LatencyTarget {
            depth: job.whole("latency_depth")? as u32,
            target_ns: job.whole("latency_target")?,
            window_us: job.whole("latency_window")?,
            percentile: job.number("latency_percentile")?,
        },
        error: whole("error")?,
        continue_on_error: job.has("total_err"),
        errors: job.whole("total_err")?,
        first_error: whole("first_error")?,
        options,
        ..JobInfo::default()
    };
    let mut printed = Printed {
        usr_cpu: job.number("usr_cpu")?,
        sys_cpu: job.number("sys_cpu")?,
        ..Printed::default()
    };
    let mut stat = ThreadStat::default();
    let first = if unified == UnifiedRw::Mixed {
        "mixed"
    } else {
        "read"
    };
    let dirs = stat.dirs.iter_mut().zip(&mut printed.dirs);
    for ((own, shown), name) in dirs.zip([first, "write", "trim"]) {
        (*own, *shown) = direction(&job.below(name))?;
    }
    usage(job, &printed, &mut stat)?;
    distributions(job, &mut stat)?;
    stat.steady = steady(&job.below("steadystate"))?;
    let entry = Entry {
        info,
        members: 1,
        stat,
    };
    Ok((entry, printed))
}

fn percentiles(list: Option<&str>, number: &dyn Fn(&str, u64) -> u64) -> PercentileOptions {
    let mut options = PercentileOptions {
        slat: number("slat_percentiles", 0) == 1,
        clat: number("clat_percentiles", 1) == 1,
        lat: number("lat_percentiles", 0) == 1,
        ..PercentileOptions::default()
    };
    if let Some(list) = list {
        let words: Vec<&str> = list.split(':').map(str::trim).collect();
        let decimals = |w: &&str| w.split_once('.').map_or(0, |(_, d)| d.len());
        options.precision = words.iter().map(decimals).max().unwrap_or(0);
        options.list = words.iter().filter_map(|w| w.parse().ok()).collect();
    }
    options
}

fn direction(of: &Node<'_>) -> Result<(DirStat, PrintedDir), Error> {
    let runtime_ms = of.whole("runtime")?;
    let total_ios = match of.get("total_ios") {
        Some(_) => of.whole("total_ios")?,
        // 2.1 prints the rate alone.
        None => {
            let exact = of.number("iops")? * runtime_ms as f64 / 1000.0;
            of.bounded("iops", exact.round() as u64)?
        }
    };
    let (slat, slat_ns) = latency(of, "slat", total_ios)?;
    let (clat, clat_ns) = latency(of, "clat", total_ios)?;
    let (lat, lat_ns) = latency(of, "lat", total_ios)?;
    let mut prios = Vec::new();
    let all = of.get("prios").and_then(Value::as_array);
    for value in all.into_iter().flatten() {
        let prio = Node {
            value: Some(value),
            path: format!("{}, prios", of.path),
            max: of.max,
        };
        let name = if prio.has("clat_ns") { "clat" } else { "lat" };
        prios.push(PrioStat {
            ioprio: ((prio.whole("prioclass")? << 13) | prio.whole("prio")?) as u16,
            latency: latency(&prio, name, 0)?.0,
        });
    }
    // Up to 2.x `io_bytes` has KiB; since 3.0 `io_kbytes` has them, and latencies are in ns.
    let is_new = ["io_kbytes", "slat_ns", "clat_ns", "lat_ns"];
    let in_kib = !is_new.iter().any(|key| of.has(key));
    let amount = of.whole("io_bytes")?;
    let bw_bytes = match of.get("bw_bytes") {
        Some(_) => of.number("bw_bytes")?,
        None => of.number("bw")? * 1024.0,
    };
    let bw = ["bw_samples", "bw_min", "bw_max", "bw_mean", "bw_dev"];
    let iops = [
        "iops_samples",
        "iops_min",
        "iops_max",
        "iops_mean",
        "iops_stddev",
    ];
    let stat = DirStat {
        slat,
        clat,
        lat,
        prios,
        bw: series(of, bw, 1.0, SERIES_SAMPLES)?,
        iops: series(of, iops, 1.0, SERIES_SAMPLES)?,
        io_bytes: if in_kib {
            of.bounded("io_bytes", amount.saturating_mul(1024))?
        } else {
            amount
        },
        runtime_ms,
        total_ios,
        short_ios: of.whole("short_ios")?,
        drop_ios: of.whole("drop_ios")?,
    };
    let printed = PrintedDir {
        iops: of.number("iops")?,
        bw_bytes,
        slat_ns,
        clat_ns,
        lat_ns,
    };
    Ok((stat, printed))
}

/// A latency and its percentiles as they are printed.
fn latency(of: &Node<'_>, name: &str, total_ios: u64) -> Result<(Latency, Vec<(f64, f64)>), Error> {
    let fine = format!("{name}_ns");
    let (own, ns) = if of.has(&fine) {
        (of.below(&fine), 1.0)
    } else {
        (of.below(name), 1000.0)
    };
    let stat = series(&own, ["N", "min", "max", "mean", "stddev"], ns, total_ios)?;
    let mut percentiles = Vec::new();
    for (percent, value) in own.below("percentile").pairs()? {
        if let Ok(percent) = percent.parse() {
            percentiles.push((percent, value * ns));
        }
    }
    percentiles.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
    let hist = bins(&own.below("bins"), ns)?;
    Ok((Latency { stat, hist }, percentiles))
}

fn bins(of: &Node<'_>, ns: f64) -> Result<LatencyHist, Error> {
    let mut hist = LatencyHist::default();
    let mut sum = 0u64;
    let are_numbered = of.has("FIO_IO_U_PLAT_BITS");
    for (bin, count) in of.pairs()? {
        // Constants of the bins stand among them.
        let Ok(bin) = bin.parse::<u64>() else {
            continue;
        };
        let value = match usize::try_from(bin) {
            _ if !are_numbered => bin,
            Ok(place) if place < BUCKETS => value_of(place),
            _ => continue,
        };
        if count > 0.0 {
            let count = count as u64;
            sum = of.bounded("the sum of the bins", sum.saturating_add(count))?;
            hist.add_many((value as f64 * ns) as u64, count);
        }
    }
    Ok(hist)
}

/// A summary; its samples are `assumed` where their number is not printed.
fn series(
    of: &Node<'_>,
    [samples, min, max, mean, dev]: [&str; 5],
    scale: f64,
    assumed: u64,
) -> Result<IoStat, Error> {
    let largest = of.number(max)? * scale;
    let middle = of.number(mean)? * scale;
    let samples = match of.get(samples) {
        Some(_) => of.whole(samples)?,
        None if largest > 0.0 || middle > 0.0 => assumed.max(1),
        None => 0,
    };
    if samples == 0 {
        return Ok(IoStat::default());
    }
    let deviation = of.number(dev)? * scale;
    Ok(IoStat {
        samples,
        min: (of.number(min)? * scale) as u64,
        max: largest as u64,
        mean: middle,
        s: deviation.powi(2) * (samples as f64 - 1.0),
    })
}

/// What was judged of the rate; none if nothing was.
fn steady(of: &Node<'_>) -> Result<Option<SteadyState>, Error> {
    let said = of.text("ss");
    let Some((name, limit)) = said.split_once(':') else {
        return Ok(None);
    };
    let (rate, is_slope) = match name {
        "iops" => (SteadyRate::Iops, false),
        "iops_slope" => (SteadyRate::Iops, true),
        "bw" => (SteadyRate::Bandwidth, false),
        "bw_slope" => (SteadyRate::Bandwidth, true),
        _ => return Err(of.no_number("ss", &Value::from(said.as_str()))),
    };
    let plain = |text: &str| text.trim_end_matches('%').parse::<f64>();
    let limit_value = plain(limit).map_err(|_| of.no_number("ss", &Value::from(said.as_str())))?;
    let seconds = Node {
        max: WINDOW_MAX,
        ..of.clone()
    };
    let criterion = SteadyCriterion {
        rate,
        is_slope,
        limit: limit_value,
        is_percent: limit.ends_with('%'),
        window: seconds.whole("duration")?.max(1) as usize,
    };
    let mut data = of.below("data");
    data.max = COUNTS_MAX / WINDOW_MAX;
    let series = |key: &str| -> Result<Vec<u64>, Error> {
        let all = data.get(key).and_then(Value::as_array);
        let all = all.into_iter().flatten();
        all.map(|v| match v.as_u64() {
            Some(rate) => data.bounded(key, rate),
            None => Err(data.no_number(key, v)),
        })
        .collect()
    };
    let rates = series("iops")?.into_iter().zip(series("bw")?);
    let samples = rates.map(|(iops, bw)| SteadySample { iops, bw });
    let value = of.text("criterion");
    let value = plain(&value).map_err(|_| of.no_number("criterion", &Value::from(&*value)))?;
    Ok(Some(SteadyState::printed(
        criterion,
        samples.collect(),
        value,
        of.whole("attained")? > 0,
    )))
}

/// Syncs, processor and memory.
fn usage(job: &Node<'_>, printed: &Printed, stat: &mut ThreadStat) -> Result<(), Error> {
    let sync = job.below("sync");
    stat.sync_ios = sync.whole("total_ios")?;
    stat.sync = latency(&sync, "lat", stat.sync_ios)?.0;
    stat.job_runtime_ms = match job.get("job_runtime") {
        Some(_) => job.whole("job_runtime")?,
        None => {
            let longest = stat.dirs.iter().map(|d| d.runtime_ms).max();
            longest.unwrap_or(0)
        }
    };
    let cpu_ms = |key: &str, percent: f64| {
        let exact = percent * stat.job_runtime_ms as f64 / 100.0;
        job.bounded(key, exact.round() as u64)
    };
    (stat.usr_ms, stat.sys_ms) = (
        cpu_ms("usr_cpu", printed.usr_cpu)?,
        cpu_ms("sys_cpu", printed.sys_cpu)?,
    );
    stat.ctx = job.whole("ctx")?;
    stat.majf = job.whole("majf")?;
    stat.minf = job.whole("minf")?;
    Ok(())
}

fn distributions(job: &Node<'_>, stat: &mut ThreadStat) -> Result<(), Error> {
    let total = stat.total_ios();
    counts(&job.below("latency_ns"), total, &mut stat.lat_dist.ns)?;
    counts(&job.below("latency_us"), total, &mut stat.lat_dist.us)?;
    counts(&job.below("latency_ms"), total, &mut stat.lat_dist.ms)?;
    counts(&job.below("iodepth_level"), total, &mut stat.depth.0)?;
    (stat.submit, stat.total_submit) = batches(&job.below("iodepth_submit"))?;
    (stat.complete, stat.total_complete) = batches(&job.below("iodepth_complete"))?;
    Ok(())
}

/// Counts that give the percentages of an object; at least 1 where not 0.
fn counts<const N: usize>(of: &Node<'_>, total: u64, out: &mut [u64; N]) -> Result<(), Error> {
    for (count, (name, share)) in out.iter_mut().zip(of.pairs()?) {
        let exact = (share / 100.0 * total as f64).round() as u64;
        // Shares below the smallest that is shown were rounded up.
        *count = if share == 0.0 { 0 } else { exact.max(1) };
        if (share == 0.1 || share == 0.01) && exact > 1 {
            *count = (share / 100.0 * total as f64).floor() as u64;
        }
        // Depths are counted in a ramp, too, which totals leave out: more than a whole.
        *count = of.bounded(name, *count)?;
    }
    Ok(())
}

/// Batches that give the percentages of an object, of an assumed number.
fn batches(of: &Node<'_>) -> Result<(DepthMap, u64), Error> {
    let mut map = DepthMap::default();
    let pairs = of.pairs()?;
    for (count, (_, share)) in map.0.iter_mut().zip(&pairs) {
        *count = ((share * 1e6).round() as u64).min(BATCHES);
    }
    Ok((map, if pairs.is_empty() { 0 } else { BATCHES }))
}

fn disk(value: &Value) -> Result<DiskUtil, Error> {
    let disk = Node {
        value: Some(value),
        path: "disk_util".to_owned(),
        max: COUNTS_MAX / DISKS_MAX,
    };
    let counters = |prefix: &str, write_merges: &str| -> Result<DiskCounters, Error> {
        let whole = |key: &str| disk.whole(&format!("{prefix}{key}"));
        Ok(DiskCounters {
            read_ios: whole("read_ios")?,
            write_ios: whole("write_ios")?,
            read_merges: whole("read_merges")?,
            write_merges: whole(write_merges)?,
            read_ticks_ms: whole("read_ticks")?,
            write_ticks_ms: whole("write_ticks")?,
            in_queue_ms: whole("in_queue")?,
            util_percent: disk.number(&format!("{prefix}util"))?,
        })
    };
    let aggregate = disk.has("aggr_read_ios");
    Ok(DiskUtil {
        name: disk.text("name"),
        own: counters("", "write_merges")?,
        aggregate: aggregate
            .then(|| counters("aggr_", "write_merge"))
            .transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ddir;

    /// As fio 2.1 to 2.21 print it, shortened.
    const OLD: &str = r#"fio: a message
{
  "fio version" : "fio-2.16",
  "timestamp" : 1500000000,
  "jobs" : [{
    "jobname" : "a", "groupid" : 0, "error" : 0,
    "job options" : { "rw" : "randread" },
    "read" : {
      "io_bytes" : 512, "bw" : 256, "iops" : 64.0, "runtime" : 2000, "total_ios" : 128,
      "short_ios" : 0, "drop_ios" : 0,
      "slat" : { "min" : 1, "max" : 9, "mean" : 2.5, "stddev" : 1.5 },
      "clat" : { "min" : 100, "max" : 900, "mean" : 200.5, "stddev" : 10.0,
        "percentile" : { "99.000000" : 880, "50.000000" : 190 },
        "bins" : { "FIO_IO_U_PLAT_BITS" : 6, "FIO_IO_U_PLAT_NR" : 1216, "100" : 3, "192" : 1 } },
      "lat" : { "min" : 110, "max" : 910, "mean" : 210.5, "stddev" : 10.0 },
      "bw_min" : 200, "bw_max" : 300, "bw_agg" : 100.0, "bw_mean" : 250.0, "bw_dev" : 5.0
    },
    "usr_cpu" : 1.0, "sys_cpu" : 2.0, "ctx" : 7, "majf" : 0, "minf" : 3,
    "latency_us" : { "2" : 0.0, "4" : 50.0 }
  }]
}
"#;

    #[test]
    fn old_results_are_in_microseconds_and_kibibytes() {
        let read = ReadResult::parse(OLD).unwrap();
        assert_eq!(read.result.version, "fio-2.16");
        assert_eq!(read.result.timestamp_ms, 1_500_000_000_000);
        let stat = &read.result.entries[0].stat;
        let dir = stat.dir(Ddir::Read);
        assert_eq!((dir.io_bytes, dir.total_ios), (512 << 10, 128));
        assert_eq!((dir.clat.stat.min, dir.clat.stat.max), (100_000, 900_000));
        assert_eq!(dir.clat.stat.samples, 128);
        assert!((dir.clat.stat.stddev() - 10_000.0).abs() < 1e-6);
        let bins: u64 = dir.clat.hist.bins().map(|(_, n)| n).sum();
        assert_eq!(bins, 4);
        assert_eq!(dir.clat.hist.percentiles(&[50.0], 4), [99_840]);
        assert_eq!((dir.bw.mean, dir.bw.stddev()), (250.0, 5.0));
        assert_eq!((stat.usr_ms, stat.sys_ms), (20, 40));
        assert_eq!(stat.lat_dist.us[1], 64);
        let shown = &read.printed[0].dirs[0];
        assert_eq!(shown.clat_ns, [(50.0, 190_000.0), (99.0, 880_000.0)]);
        assert_eq!((shown.iops, shown.bw_bytes), (64.0, 262_144.0));
    }

    #[test]
    fn what_is_no_result_is_refused_with_its_line() {
        let refused = |text: &str| ReadResult::parse(text).unwrap_err().to_string();
        let expected = "expected what fio --output-format=json+ writes";
        assert_eq!(refused("oh"), format!("no result of fio: {expected}"));
        assert_eq!(refused(""), format!("the file is empty; {expected}"));
        assert_eq!(refused("{}"), "no result of fio: it has no 'jobs'");
        let e = ReadResult::parse("hm\n{\n\"jobs\": [}\n").unwrap_err();
        assert_eq!(e.line, Some(3));
        let text = "{\"jobs\": [{\"jobname\": \"a\", \"read\": {\"iops\": \"fast\"}}]}";
        assert_eq!(
            refused(text),
            "job 'a', read, iops = \"fast\": expected a number"
        );
    }

    #[test]
    fn counts_that_no_run_makes_are_refused() {
        let written = |entry: &str| format!("{{\"jobs\": [{{\"jobname\": \"a\", {entry}}}]}}");
        let refused = |entry: &str| ReadResult::parse(&written(entry)).unwrap_err().to_string();
        let max = 1u64 << 62;
        assert_eq!(
            refused("\"read\": {\"total_ios\": 18446744073709551615}"),
            format!(
                "job 'a', read, total_ios = 18446744073709551615: expected a count of at most {max}"
            )
        );
        let bins = "\"bins\": {\"1\": 4e18, \"2\": 4e18}";
        assert!(
            refused(&format!("\"read\": {{\"lat_ns\": {{{bins}}}}}"))
                .contains("the sum of the bins")
        );
        assert!(refused("\"usr_cpu\": 1e300, \"job_runtime\": 1").contains("usr_cpu"));
        // Those that are read can be added.
        let most = "\"read\": {\"io_kbytes\": 1, \"io_bytes\": 2305843009213693952}";
        let two = written(most).replace("}]}", &format!("}}, {{{most}}}]}}"));
        let read = ReadResult::parse(&two).unwrap();
        let mut sum = read.result.entries[0].stat.clone();
        sum.merge(&read.result.entries[1].stat, true);
        assert_eq!(sum.io_bytes(), 1 << 62);
    }

    #[test]
    fn the_oldest_results_say_no_number_of_ios() {
        let text = "{\"jobs\": [{\"read\": {\"io_bytes\": 8, \"iops\": 40, \"runtime\": 500}}]}";
        let read = ReadResult::parse(text).unwrap();
        let dir = read.result.entries[0].stat.dir(Ddir::Read);
        // Without latencies, too, amounts are in KiB.
        assert_eq!((dir.total_ios, dir.io_bytes), (20, 8 << 10));
    }

    #[test]
    fn a_steady_state_comes_back_as_it_was_printed() {
        let criterion = SteadyCriterion {
            rate: SteadyRate::Iops,
            is_slope: false,
            limit: 2.0,
            is_percent: true,
            window: 2,
        };
        let mut state = SteadyState::new(criterion);
        for iops in [50, 100, 101] {
            state.add(SteadySample {
                iops,
                bw: iops * 4096,
            });
        }
        let mut text: Value = serde_json::from_str(&OLD[OLD.find("\n{").unwrap()..]).unwrap();
        let printed = crate::json_report::steady(&state);
        text["jobs"][0]["steadystate"] = printed.clone();
        let read = ReadResult::parse(&text.to_string()).unwrap();
        let again = read.result.entries[0].stat.steady.as_ref().unwrap();
        assert_eq!(crate::json_report::steady(again), printed);
        assert!(again.attained());
    }
}
