// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of fio, and the result they describe.
//!
//! The JSON of a recording holds nearly all there is to know about its run;
//! counts behind percentages are recovered from them, the rest (number of merged
//! jobs, process ids, error texts) is read from the text for people.

use std::fs;
use std::path::PathBuf;

use blklab_fiostat::{
    DepthMap, DirStat, DiskCounters, DiskUtil, Entry, FioResult, IoStat, JobInfo, Latency,
    LatencyHist, LatencyTarget, PercentileOptions, PrioStat, ThreadStat, UnifiedRw, Units,
};
use serde_json::{Map, Value};

/// The parts of one recorded output.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) preamble: String,
    pub(crate) terse: String,
    pub(crate) json: String,
    pub(crate) normal: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fiostat/recorded")
}

/// All recordings, by name.
pub(crate) fn all() -> Vec<Recorded> {
    let entries = fs::read_dir(folder()).expect("testdata/fiostat/recorded exists");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names.iter().map(|name| load(name)).collect()
}

pub(crate) fn load(name: &str) -> Recorded {
    let text = file(name, "out.txt");
    let json_start = text.find("\n{\n").expect("JSON begins") + 1;
    let json_end = text.find("\n}\n").expect("JSON ends") + 3;
    let terse_start = text
        .match_indices('\n')
        .map(|(i, _)| i + 1)
        .find(|&i| matches!(text.as_bytes()[i..i + 2], [b'2'..=b'5', b';']))
        .expect("terse line");
    Recorded {
        name: name.to_string(),
        preamble: text[..terse_start].to_string(),
        terse: text[terse_start..json_start].to_string(),
        json: text[json_start..json_end].to_string(),
        normal: text[json_end..].to_string(),
    }
}

/// A file recorded with a case.
pub(crate) fn file(case: &str, file: &str) -> String {
    let path = folder().join(case).join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

impl Recorded {
    pub(crate) fn tree(&self) -> Value {
        serde_json::from_str(&self.json).expect("valid JSON")
    }

    /// The result that was printed.
    pub(crate) fn result(&self) -> FioResult {
        let tree = self.tree();
        let jobs = tree["jobs"].as_array().expect("jobs");
        let global = &tree["global options"];
        let mut heads = self.normal.lines().filter_map(Head::parse).peekable();
        let mut entries = Vec::new();
        for job in jobs {
            let named = |head: &Head| job["jobname"] == head.name.as_str();
            let head = heads.next_if(named).unwrap_or_default();
            entries.push(entry(job, global, head, &self.normal));
        }
        let mut result = FioResult::from_entries(entries);
        result.version = text(&tree["fio version"]);
        result.timestamp_ms = int(&tree["timestamp_ms"]);
        result.elapsed_s = int(&jobs[0]["elapsed"]);
        result.eta_s = int(&jobs[0]["eta"]);
        result.global_options = options(global);
        let disks = tree["disk_util"].as_array().into_iter().flatten();
        result.disk_util = disks.map(disk).collect();
        result
    }
}

/// What the first line of a job says: `NAME: (groupid=0, jobs=2): err= 0: pid=…`.
#[derive(Default)]
struct Head {
    name: String,
    members: u32,
    pid: u32,
    error_text: String,
}

impl Head {
    fn parse(line: &str) -> Option<Head> {
        let (name, rest) = line.split_once(": (groupid=")?;
        let members = rest.split_once("jobs=")?.1.split(')').next()?;
        let (error, pid) = rest.split_once(": pid=")?;
        let error_text = error
            .split_once(" (")
            .map_or("", |(_, e)| e.trim_end_matches(')'));
        Some(Head {
            name: name.to_string(),
            members: members.parse().ok()?,
            pid: pid.split(':').next()?.parse().ok()?,
            error_text: error_text.to_string(),
        })
    }
}

fn entry(job: &Value, global: &Value, head: Head, normal: &str) -> Entry {
    let option = |name: &str| {
        let own = job["job options"].get(name).or_else(|| global.get(name));
        own.and_then(Value::as_str).map(str::to_string)
    };
    let number = |name: &str, default| option(name).map_or(default, |v| v.parse().expect("number"));
    let first_error = int(&job["first_error"]);
    let error_mark = format!("first_error={first_error}/<");
    let first_error_text = normal
        .split(&error_mark)
        .nth(1)
        .and_then(|s| s.split('>').next());
    let unified = match (job.get("read"), job.get("mixed")) {
        (None, _) => UnifiedRw::Mixed,
        (Some(_), None) => UnifiedRw::None,
        (Some(_), Some(_)) => UnifiedRw::Both,
    };
    Entry {
        members: head.members,
        stat: thread_stat(job, unified),
        info: JobInfo {
            name: text(&job["jobname"]),
            description: job.get("desc").map(text).unwrap_or_default(),
            group_id: int(&job["groupid"]) as u32,
            group_reporting: false,
            unified,
            pid: head.pid,
            options: job_options(job),
            percentiles: percentiles(option("percentile_list"), &number),
            units: Units {
                kb_base: number("kb_base", 1024),
                bits: number("unit_base", 0) == 1,
                significant_figures: number("significant_figures", 4) as usize,
            },
            latency: LatencyTarget {
                depth: int(&job["latency_depth"]) as u32,
                target_ns: int(&job["latency_target"]),
                window_us: int(&job["latency_window"]),
                percentile: float(&job["latency_percentile"]),
            },
            error: int(&job["error"]) as i32,
            error_text: head.error_text,
            continue_on_error: job.get("total_err").is_some(),
            errors: int(&job["total_err"]),
            first_error: first_error as i32,
            first_error_text: first_error_text.unwrap_or_default().to_string(),
        },
    }
}

/// The options of a job. An empty object means that there were some, none of
/// them with a value.
fn job_options(job: &Value) -> Vec<(String, String)> {
    match job.get("job options").and_then(Value::as_object) {
        Some(object) if object.is_empty() => vec![("stonewall".into(), String::new())],
        _ => options(&job["job options"]),
    }
}

fn options(object: &Value) -> Vec<(String, String)> {
    let pairs = object.as_object().into_iter().flatten();
    pairs
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

fn percentiles(list: Option<String>, number: &dyn Fn(&str, u64) -> u64) -> PercentileOptions {
    let mut options = PercentileOptions {
        slat: number("slat_percentiles", 0) == 1,
        clat: number("clat_percentiles", 1) == 1,
        lat: number("lat_percentiles", 0) == 1,
        ..PercentileOptions::default()
    };
    if let Some(list) = list {
        let words = list.split(':');
        let decimals = words
            .clone()
            .map(|w| w.split_once('.').map_or(0, |(_, d)| d.len()));
        options.precision = decimals.max().unwrap_or(0);
        options.list = words.map(|w| w.parse().expect("percentile")).collect();
    }
    options
}

fn thread_stat(job: &Value, unified: UnifiedRw) -> ThreadStat {
    let mut stat = ThreadStat::default();
    let first = if unified == UnifiedRw::Mixed {
        "mixed"
    } else {
        "read"
    };
    for (dir, name) in stat.dirs.iter_mut().zip([first, "write", "trim"]) {
        if let Some(value) = job.get(name) {
            *dir = direction(value);
        }
    }
    if let Some(sync) = job.get("sync") {
        stat.sync = latency(&sync["lat_ns"]);
        stat.sync_ios = int(&sync["total_ios"]);
    }
    let total = stat.total_ios();
    counts(&job["latency_ns"], total, &mut stat.lat_dist.ns);
    counts(&job["latency_us"], total, &mut stat.lat_dist.us);
    counts(&job["latency_ms"], total, &mut stat.lat_dist.ms);
    counts(&job["iodepth_level"], total, &mut stat.depth.0);
    (stat.submit, stat.total_submit) = batches(&job["iodepth_submit"]);
    (stat.complete, stat.total_complete) = batches(&job["iodepth_complete"]);
    stat.job_runtime_ms = int(&job["job_runtime"]);
    let cpu_ms = |percent| (float(percent) * stat.job_runtime_ms as f64 / 100.0).round() as u64;
    stat.usr_ms = cpu_ms(&job["usr_cpu"]);
    stat.sys_ms = cpu_ms(&job["sys_cpu"]);
    stat.ctx = int(&job["ctx"]);
    stat.majf = int(&job["majf"]);
    stat.minf = int(&job["minf"]);
    stat
}

/// Counts that give the percentages of an object; at least 1 where not 0.
fn counts<const N: usize>(percent: &Value, total: u64, out: &mut [u64; N]) {
    for (count, share) in out.iter_mut().zip(object(percent).values().map(float)) {
        let exact = (share / 100.0 * total as f64).round() as u64;
        // Shares below the smallest that is shown were rounded up.
        *count = if share == 0.0 { 0 } else { exact.max(1) };
        if (share == 0.1 || share == 0.01) && exact > 1 {
            *count = (share / 100.0 * total as f64).floor() as u64;
        }
    }
}

/// Batches that give the percentages of an object, of an assumed number.
fn batches(percent: &Value) -> (DepthMap, u64) {
    let mut map = DepthMap::default();
    for (count, share) in map.0.iter_mut().zip(object(percent).values().map(float)) {
        *count = (share * 1e6).round() as u64;
    }
    (map, 100_000_000)
}

fn direction(value: &Value) -> DirStat {
    let prios = value["prios"].as_array().into_iter().flatten();
    let prio = |prio: &Value| PrioStat {
        ioprio: (int(&prio["prioclass"]) << 13 | int(&prio["prio"])) as u16,
        latency: latency(prio.get("clat_ns").unwrap_or(&prio["lat_ns"])),
    };
    DirStat {
        slat: latency(&value["slat_ns"]),
        clat: latency(&value["clat_ns"]),
        lat: latency(&value["lat_ns"]),
        prios: prios.map(prio).collect(),
        bw: series(
            value,
            ["bw_samples", "bw_min", "bw_max", "bw_mean", "bw_dev"],
        ),
        iops: series(
            value,
            [
                "iops_samples",
                "iops_min",
                "iops_max",
                "iops_mean",
                "iops_stddev",
            ],
        ),
        io_bytes: int(&value["io_bytes"]),
        runtime_ms: int(&value["runtime"]),
        total_ios: int(&value["total_ios"]),
        short_ios: int(&value["short_ios"]),
        drop_ios: int(&value["drop_ios"]),
    }
}

fn latency(value: &Value) -> Latency {
    let mut hist = LatencyHist::default();
    for (bin, count) in value.get("bins").map(object).into_iter().flatten() {
        hist.add_many(bin.parse().expect("bin"), int(count));
    }
    let stat = series(value, ["N", "min", "max", "mean", "stddev"]);
    Latency { stat, hist }
}

fn series(value: &Value, [samples, min, max, mean, dev]: [&str; 5]) -> IoStat {
    let samples = int(&value[samples]);
    if samples == 0 {
        return IoStat::default();
    }
    IoStat {
        samples,
        min: int(&value[min]),
        max: int(&value[max]),
        mean: float(&value[mean]),
        s: float(&value[dev]).powi(2) * (samples as f64 - 1.0),
    }
}

fn disk(value: &Value) -> DiskUtil {
    DiskUtil {
        name: text(&value["name"]),
        own: DiskCounters {
            read_ios: int(&value["read_ios"]),
            write_ios: int(&value["write_ios"]),
            read_merges: int(&value["read_merges"]),
            write_merges: int(&value["write_merges"]),
            read_ticks_ms: int(&value["read_ticks"]),
            write_ticks_ms: int(&value["write_ticks"]),
            in_queue_ms: int(&value["in_queue"]),
            util_percent: float(&value["util"]),
        },
        aggregate: None,
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

/// The number, or 0 where the key is missing.
fn int(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        _ => value.as_u64().expect("an integer"),
    }
}

fn float(value: &Value) -> f64 {
    value.as_f64().expect("a float")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_string()
}
