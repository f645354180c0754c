// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON tree of a result: keys, their order and types as in fio 3.33.
//!
//! `json+` differs from `json` by the `bins` of each histogram.

use serde_json::{Map, Value, json};

use crate::dist::percent_of;
use crate::result::GroupDir;
use crate::thread_stat::DirStat;
use crate::utc::utc_time_text;
use crate::{
    Ddir, DepthMap, DiskUtil, Entry, FioResult, IoStat, Latency, PercentileOptions, SteadySample,
    SteadyState, ThreadStat, UnifiedRw,
};

/// The whole result.
pub(crate) fn tree(result: &FioResult, with_bins: bool) -> Value {
    let mut root = Map::new();
    root.insert("fio version".into(), json!(result.version));
    root.insert("timestamp".into(), json!(result.timestamp_ms / 1000));
    root.insert("timestamp_ms".into(), json!(result.timestamp_ms));
    root.insert(
        "time".into(),
        json!(utc_time_text(result.timestamp_ms / 1000)),
    );
    insert_options(&mut root, "global options", &result.global_options);
    let jobs = result
        .entries
        .iter()
        .map(|entry| job(result, entry, with_bins));
    root.insert("jobs".into(), jobs.collect());
    if !result.disk_util.is_empty() {
        root.insert(
            "disk_util".into(),
            result.disk_util.iter().map(disk).collect(),
        );
    }
    if let Some(extra) = &result.blklab {
        root.insert("blklab".into(), extra.clone());
    }
    Value::Object(root)
}

fn job(result: &FioResult, entry: &Entry, with_bins: bool) -> Value {
    let (info, stat) = (&entry.info, &entry.stat);
    let latencies = LatencyPrinter {
        options: &info.percentiles,
        list: info.percentiles.sorted(),
        with_bins,
    };
    let group = result.group_of(entry);
    let mut job = Map::new();
    job.insert("jobname".into(), json!(info.name));
    job.insert("groupid".into(), json!(info.group_id));
    job.insert("error".into(), json!(info.error));
    job.insert("eta".into(), json!(result.eta_s));
    job.insert("elapsed".into(), json!(result.elapsed_s));
    insert_options(&mut job, "job options", &info.options);
    if info.unified == UnifiedRw::Mixed {
        // fio leaves out syncs here.
        let mixed = latencies.direction(stat.dir(Ddir::Read), group.dirs[0]);
        job.insert("mixed".into(), mixed);
    } else {
        for dir in Ddir::ALL {
            let own = latencies.direction(stat.dir(dir), group.dirs[dir.idx()]);
            job.insert(dir.name().into(), own);
        }
        job.insert("sync".into(), latencies.sync(stat));
    }
    if info.unified == UnifiedRw::Both {
        let mixed = latencies.direction(stat.mixed().dir(Ddir::Read), group.dirs[0]);
        job.insert("mixed".into(), mixed);
    }
    insert_usage(&mut job, stat);
    insert_distributions(&mut job, stat);
    if info.continue_on_error {
        job.insert("total_err".into(), json!(info.errors));
        job.insert("first_error".into(), json!(info.first_error));
    }
    if info.latency.depth > 0 {
        job.insert("latency_depth".into(), json!(info.latency.depth));
        job.insert("latency_target".into(), json!(info.latency.target_ns));
        job.insert("latency_percentile".into(), json!(info.latency.percentile));
        job.insert("latency_window".into(), json!(info.latency.window_us));
    }
    if !info.description.is_empty() {
        job.insert("desc".into(), json!(info.description));
    }
    if let Some(state) = &stat.steady {
        job.insert("steadystate".into(), steady(state));
    }
    Value::Object(job)
}

pub(crate) fn steady(state: &SteadyState) -> Value {
    let (criterion, mean) = (state.criterion(), state.mean());
    // fio prints these two as floats of single precision, in a text.
    let text = |value: f64| format!("{:.6}{}", value as f32, criterion.sign());
    let series = |rate: fn(SteadySample) -> u64| state.window().map(rate).collect::<Vec<_>>();
    json!({
        "ss": format!("{}:{}", criterion.name(), text(criterion.limit)),
        "duration": criterion.window,
        "attained": u8::from(state.attained()),
        "criterion": text(state.value()),
        "max_deviation": state.deviation(),
        "slope": state.slope(),
        "data": {
            "bw_mean": mean.bw,
            "iops_mean": mean.iops,
            "iops": series(|sample| sample.iops),
            "bw": series(|sample| sample.bw),
        },
    })
}

fn insert_options(parent: &mut Map<String, Value>, key: &str, options: &[(String, String)]) {
    if options.is_empty() {
        return;
    }
    let with_value = options.iter().filter(|(_, value)| !value.is_empty());
    let with_value = with_value.map(|(name, value)| (name.clone(), json!(value)));
    parent.insert(key.into(), with_value.collect());
}

fn insert_usage(job: &mut Map<String, Value>, stat: &ThreadStat) {
    let (usr, sys) = stat.cpu_percent();
    job.insert("job_runtime".into(), json!(stat.job_runtime_ms));
    job.insert("usr_cpu".into(), json!(usr));
    job.insert("sys_cpu".into(), json!(sys));
    job.insert("ctx".into(), json!(stat.ctx));
    job.insert("majf".into(), json!(stat.majf));
    job.insert("minf".into(), json!(stat.minf));
}

fn insert_distributions(job: &mut Map<String, Value>, stat: &ThreadStat) {
    const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    const RANGES: [&str; 12] = [
        "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
    ];
    let total = stat.total_ios();
    let map = |map: &DepthMap, names: &[&str], total| table(names, &map.percent(total));
    job.insert("iodepth_level".into(), map(&stat.depth, &DEPTHS, total));
    job.insert(
        "iodepth_submit".into(),
        map(&stat.submit, &BATCHES, stat.total_submit),
    );
    job.insert(
        "iodepth_complete".into(),
        map(&stat.complete, &BATCHES, stat.total_complete),
    );
    let dist = &stat.lat_dist;
    job.insert(
        "latency_ns".into(),
        table(&RANGES, &percent_of(&dist.ns, total, 0.01)),
    );
    job.insert(
        "latency_us".into(),
        table(&RANGES, &percent_of(&dist.us, total, 0.01)),
    );
    job.insert(
        "latency_ms".into(),
        table(&RANGES, &percent_of(&dist.ms, total, 0.01)),
    );
}

/// Names and values in pairs; names left over are not used.
fn table(names: &[&str], values: &[f64]) -> Value {
    let pairs = names.iter().zip(values);
    pairs
        .map(|(&name, &value)| (name.to_string(), json!(value)))
        .collect()
}

/// Prints what depends on the percentile options of a job.
struct LatencyPrinter<'a> {
    options: &'a PercentileOptions,
    list: Vec<f64>,
    with_bins: bool,
}

impl LatencyPrinter<'_> {
    fn direction(&self, dir: &DirStat, group: Option<GroupDir>) -> Value {
        let mut out = Map::new();
        let iops = match dir.runtime_ms {
            0 => 0.0,
            ms => 1000.0 * dir.total_ios as f64 / ms as f64,
        };
        out.insert("io_bytes".into(), json!(dir.io_bytes));
        out.insert("io_kbytes".into(), json!(dir.io_bytes >> 10));
        out.insert("bw_bytes".into(), json!(dir.bw_bytes()));
        out.insert("bw".into(), json!(dir.bw_bytes() / 1024));
        out.insert("iops".into(), json!(iops));
        out.insert("runtime".into(), json!(dir.runtime_ms));
        out.insert("total_ios".into(), json!(dir.total_ios));
        out.insert("short_ios".into(), json!(dir.short_ios));
        out.insert("drop_ios".into(), json!(dir.drop_ios));
        out.insert("slat_ns".into(), self.latency(&dir.slat, self.options.slat));
        out.insert("clat_ns".into(), self.latency(&dir.clat, self.options.clat));
        out.insert("lat_ns".into(), self.latency(&dir.lat, self.options.lat));
        self.insert_prios(&mut out, dir);
        insert_samples(&mut out, dir, group);
        Value::Object(out)
    }

    fn sync(&self, stat: &ThreadStat) -> Value {
        let lat = self.latency(&stat.sync, self.options.lat || self.options.clat);
        json!({ "total_ios": stat.sync_ios, "lat_ns": lat })
    }

    fn insert_prios(&self, out: &mut Map<String, Value>, dir: &DirStat) {
        let name = self.options.prio_latency();
        let prios = dir.prios_in_use();
        if prios.len() < 2 {
            return;
        }
        let object = |prio: &&crate::PrioStat| {
            let mut out = Map::new();
            out.insert("prioclass".into(), json!(prio.class()));
            out.insert("prio".into(), json!(prio.level()));
            let shown = self.options.lat || self.options.clat;
            out.insert(format!("{name}_ns"), self.latency(&prio.latency, shown));
            Value::Object(out)
        };
        out.insert("prios".into(), prios.iter().map(object).collect());
    }

    fn latency(&self, latency: &Latency, with_percentiles: bool) -> Value {
        let stat = &latency.stat;
        let mut out = Map::new();
        out.insert("min".into(), json!(stat.min_or_zero()));
        out.insert("max".into(), json!(stat.max));
        out.insert("mean".into(), json!(stat.mean));
        out.insert("stddev".into(), json!(stat.stddev()));
        out.insert("N".into(), json!(stat.samples));
        if with_percentiles && stat.samples > 0 {
            let values = latency.hist.percentiles(&self.list, stat.samples);
            let pairs = self.list.iter().zip(values);
            let pairs = pairs.map(|(p, value)| (format!("{p:.6}"), json!(value)));
            out.insert("percentile".into(), pairs.collect());
            if self.with_bins {
                let bins = latency.hist.bins();
                let bins = bins.map(|(value, n)| (value.to_string(), json!(n)));
                out.insert("bins".into(), bins.collect());
            }
        }
        Value::Object(out)
    }
}

fn insert_samples(out: &mut Map<String, Value>, dir: &DirStat, group: Option<GroupDir>) {
    let share = percent_of_group(&dir.bw, group);
    for (name, series) in [("bw", &dir.bw), ("iops", &dir.iops)] {
        out.insert(format!("{name}_min"), json!(series.min_or_zero()));
        out.insert(format!("{name}_max"), json!(series.max));
        if name == "bw" {
            out.insert("bw_agg".into(), json!(share));
        }
        let deviation = if name == "bw" {
            "bw_dev"
        } else {
            "iops_stddev"
        };
        out.insert(format!("{name}_mean"), json!(series.mean));
        out.insert(deviation.into(), json!(series.stddev()));
        out.insert(format!("{name}_samples"), json!(series.samples));
    }
}

/// The mean bandwidth in percent of its group's; 0 without samples.
pub(crate) fn percent_of_group(bw: &IoStat, group: Option<GroupDir>) -> f64 {
    match (bw.samples, group.map_or(0, |g| g.agg)) {
        (0, _) => 0.0,
        // fio cuts the mean to an integer here.
        (_, agg) if agg > 1024 => (bw.mean.trunc() * 100.0 / (agg as f64 / 1024.0)).min(100.0),
        _ => 100.0,
    }
}

fn disk(disk: &DiskUtil) -> Value {
    let own = &disk.own;
    let mut out = json!({
        "name": disk.name,
        "read_ios": own.read_ios,
        "write_ios": own.write_ios,
        "read_merges": own.read_merges,
        "write_merges": own.write_merges,
        "read_ticks": own.read_ticks_ms,
        "write_ticks": own.write_ticks_ms,
        "in_queue": own.in_queue_ms,
        "util": own.util_percent,
    });
    if let Some(agg) = &disk.aggregate {
        out["aggr_read_ios"] = json!(agg.read_ios);
        out["aggr_write_ios"] = json!(agg.write_ios);
        out["aggr_read_merges"] = json!(agg.read_merges);
        out["aggr_write_merge"] = json!(agg.write_merges);
        out["aggr_read_ticks"] = json!(agg.read_ticks_ms);
        out["aggr_write_ticks"] = json!(agg.write_ticks_ms);
        out["aggr_in_queue"] = json!(agg.in_queue_ms);
        out["aggr_util"] = json!(agg.util_percent);
    }
    out
}
