// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's output as JSON (`--output-format=json`, `json+`), with lines of text before and behind it.

use super::{Calls, DEFAULT_ENGINE, Job, Latency, Output, disk, is_synchronous};
use crate::number::{number, sound};
use blklab_types::Error;
use serde_json::{Deserializer, Value};

/// Reads it.
pub(super) fn read(text: &str) -> Result<Output, Error> {
    // fio prints warnings before the object, and what it was told to print beside it behind.
    let begins = text.find('{').unwrap_or(0);
    let value = Deserializer::from_str(&text[begins..])
        .into_iter::<Value>()
        .next();
    let value = match value {
        Some(Ok(value)) => value,
        Some(Err(e)) if e.is_eof() => {
            return Err(Error::new(
                "fio: its JSON ends too early: give the whole output",
            ));
        }
        Some(Err(e)) => return Err(Error::new(format!("fio: no JSON of fio: {e}"))),
        None => return Err(Error::new("fio: no JSON of fio")),
    };
    let global = &value["global options"];
    let jobs = value["jobs"]
        .as_array()
        .or_else(|| value["client_stats"].as_array());
    let jobs: Vec<Job> = jobs
        .into_iter()
        .flatten()
        .map(|job| job_of(job, global))
        .collect();
    let runtime = value["jobs"].as_array().and_then(|jobs| {
        let times = jobs.iter().filter_map(|job| figure(&job["job_runtime"]));
        times.reduce(f64::max)
    });
    let disks = value["disk_util"].as_array().into_iter().flatten();
    let disks = disks.filter_map(|disk| disk_of(disk, runtime));
    Ok(Output {
        jobs,
        disks: disks.filter(|load| load.number() > 0.0).collect(),
    })
}

fn figure(value: &Value) -> Option<f64> {
    sound(value.as_f64()?)
}

fn job_of(job: &Value, global: &Value) -> Job {
    let options = &job["job options"];
    let option = |name: &str| {
        let own = options[name].as_str().or_else(|| global[name].as_str());
        own.and_then(number)
    };
    let has = |name: &str| options[name].is_string() || global[name].is_string();
    let engine = options["ioengine"]
        .as_str()
        .or_else(|| global["ioengine"].as_str());
    let iodepth = if is_synchronous(engine.unwrap_or(DEFAULT_ENGINE)) {
        1.0
    } else {
        option("iodepth").unwrap_or(1.0)
    };
    Job {
        name: job["jobname"].as_str().unwrap_or("the job").to_owned(),
        iodepth: Some(iodepth),
        // Else each is printed.
        nr_jobs: option("numjobs").filter(|_| has("group_reporting")),
        syncs: ["fsync", "fdatasync"]
            .iter()
            .any(|name| option(name).is_some_and(|n| n > 0.0)),
        calls: ["read", "write", "trim"].map(|direction| calls_of(&job[direction])),
        sync: latency_of(&job["sync"]["lat_ns"]),
    }
}

fn calls_of(value: &Value) -> Calls {
    Calls {
        per_s: figure(&value["iops"]).unwrap_or(0.0),
        lat: latency_of(&value["lat_ns"]),
        clat: latency_of(&value["clat_ns"]),
        slat: latency_of(&value["slat_ns"]),
    }
}

fn latency_of(value: &Value) -> Latency {
    let mean_ns = figure(&value["mean"]).filter(|ns| *ns > 0.0);
    let mut percentiles: Vec<(f64, f64)> = Vec::new();
    let pairs = value["percentile"].as_object().into_iter().flatten();
    percentiles.extend(pairs.filter_map(|(percent, ns)| Some((number(percent)?, figure(ns)?))));
    Latency {
        mean_ns,
        max_ns: figure(&value["max"]).filter(|_| mean_ns.is_some()),
        percentiles: if mean_ns.is_some() {
            percentiles
        } else {
            Vec::new()
        },
    }
}

fn disk_of(value: &Value, runtime_ms: Option<f64>) -> Option<crate::load::Load> {
    let get = |name: &str| figure(&value[name]).unwrap_or(0.0);
    let flows = [
        (get("read_ios"), get("read_ticks")),
        (get("write_ios"), get("write_ticks")),
    ];
    let busy = figure(&value["util"]).zip(runtime_ms);
    let busy = busy.map(|(util, ms)| (util / 100.0).min(1.0) * ms);
    Some(disk(value["name"].as_str()?, flows, busy))
}
