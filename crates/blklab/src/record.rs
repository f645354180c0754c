// SPDX-License-Identifier: MIT OR Apache-2.0
//! What blklab says of a run in `result.json`, written and read by one type.

use crate::counters::CounterSeries;
use crate::job_rows::{JobRow, job_rows};
use crate::matrix::Cell;
use crate::metric::{DISK, DiskNumbers};
use crate::run::RunOutput;
use blklab_experiment::{Experiment, Facts};
use blklab_target::{Pressure, Stall};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The format of the `blklab` object of results.
pub const FORMAT: u32 = 1;

/// The `blklab` object that stands beside fio's in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Format of this object: [`FORMAT`].
    pub format: u32,
    /// The blklab that wrote it.
    pub version: String,
    /// Id of the experiment.
    pub experiment: String,
    /// What varied in the matrix that it belonged to; empty if nothing did.
    pub label: String,
    /// Its place in that matrix, from 0.
    #[serde(default)]
    pub place: u32,
    /// Which repetition it was, from 0.
    pub repetition: u32,
    /// Kernel release.
    pub kernel: String,
    /// Ticks per second.
    pub hz: u32,
    /// I/O scheduler.
    pub scheduler: String,
    /// Tunables of the scheduler that were set.
    pub tunables: Map<String, Value>,
    /// Patches that were on.
    pub patches: Vec<String>,
    /// The disk.
    pub device: DeviceRecord,
    /// The array of such disks, as `raid1:2`.
    pub md: Option<String>,
    /// Devices of device mapper on it, as `thin+crypt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dm: Option<String>,
    /// Commands that the driver hands to the device at most.
    pub queue_depth: u32,
    /// What a request takes of processors, from 5.0 on: `request_ns` without the
    /// scheduler, `scheduler_ns` what that adds, `lock_transfer_ns` what a turn with its
    /// lock takes more after one of another of the `cpus`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub processor_time: Map<String, Value>,
    /// Seed of everything random.
    pub seed: u64,
    /// Virtual time at the end, in ns.
    pub end_ns: u64,
    /// Number of trace events.
    pub events: u64,
    /// Digest of the event stream, 16 hexadecimal digits.
    pub digest: String,
    /// Whether a second run gave the same digest.
    pub verified: bool,
    /// Whether the run was ended from outside.
    pub interrupted: bool,
    /// Read-only files of the scheduler in sysfs at the end.
    pub sysfs: Map<String, Value>,
    /// What control groups came to, by group.
    pub cgroups: Map<String, Value>,
    /// How long the machine's tasks stood still for I/O, where that is counted.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub pressure: Value,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
    /// Metrics of jobs and disks, by the columns of CSV.
    #[serde(default)]
    pub metrics: Value,
    /// Counters of the page cache and of queues over time, of a run that kept them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterSeries>,
    /// Compared with the same experiment on another target, if there is one.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub beside: Value,
    /// Statistics of the event stream, as `blklab trace stats` has them.
    pub trace: Value,
}

/// A disk by its name and the parameters that differ from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name of a law or preset.
    pub name: String,
    /// Parameters.
    pub params: Map<String, Value>,
}

impl RunRecord {
    /// Of a run that has ended.
    pub fn new(cell: &Cell, run: &RunOutput) -> RunRecord {
        let e = &cell.experiment;
        let cgroup = |g: &blklab_target::CgroupUse| {
            let mut told = Map::new();
            if let Some(held) = g.held {
                told.insert("held_bios".into(), json!(held.bios));
                told.insert("longest_hold_ns".into(), json!(held.longest.ns()));
            }
            if let Some(moved) = g.moved {
                for (i, name) in ["read", "write", "discard"].into_iter().enumerate() {
                    told.insert(format!("{name}_bytes"), json!(moved.bytes[i]));
                    told.insert(format!("{name}_ios"), json!(moved.ios[i]));
                }
            }
            if !g.said.is_empty() {
                told.insert("said".into(), json!(g.said));
            }
            if let Some(pressure) = &g.pressure {
                told.insert("pressure".into(), pressure_value(pressure));
            }
            (g.name.clone(), Value::Object(told))
        };
        RunRecord {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: e.id.clone(),
            label: cell.name(),
            place: cell.place,
            repetition: cell.repetition,
            kernel: e.kernel.to_string(),
            hz: e.hz.0,
            scheduler: e.scheduler.clone(),
            tunables: map(e.tunables.iter().map(|(k, v)| (k, json!(v)))),
            patches: e.patches.clone(),
            device: DeviceRecord {
                name: e.device.name.clone(),
                params: map(e.device.params.iter().map(|(k, v)| (k, json!(v)))),
            },
            md: e.md.map(|md| md.to_string()),
            dm: (!e.dm.is_none()).then(|| e.dm.to_string()),
            queue_depth: run.facts.queue_depth().unwrap_or(0),
            processor_time: processor_time(e, &run.facts),
            seed: e.seed,
            end_ns: run.end.0,
            events: run.digest.nr_events(),
            digest: format!("{:016x}", run.digest.value()),
            verified: run.verified,
            interrupted: run.interrupted,
            sysfs: map(run
                .sysfs
                .iter()
                .map(|(name, text)| (name.as_str(), json!(text)))),
            cgroups: run.cgroups.iter().map(cgroup).collect(),
            pressure: run.pressure.as_ref().map_or(Value::Null, pressure_value),
            notes: run.notes.clone(),
            metrics: metrics(run),
            counters: run.counters.clone(),
            beside: json!(run.beside),
            trace: json!(run.stats),
        }
    }
}

/// Lines of the kernel's file by their names; averages in percent.
fn pressure_value(pressure: &Pressure) -> Value {
    let line = |stall: &Stall| {
        let percent = stall
            .percent_hundredths
            .map(|n| json!(f64::from(n) / 100.0));
        let mut told: Map<String, Value> = std::iter::zip(Stall::AVERAGES, percent)
            .map(|(name, percent)| (name.to_owned(), percent))
            .collect();
        told.insert("total_us".into(), json!(stall.total_us));
        told
    };
    json!({ "some": line(&pressure.some), "full": line(&pressure.full) })
}

/// What a request takes of processors, where that is modelled.
fn processor_time(e: &Experiment, facts: &Facts) -> Map<String, Value> {
    let times = [
        ("request_ns", e.request_cost().ns()),
        ("scheduler_ns", facts.sched_cost.ns()),
        ("lock_transfer_ns", e.lock_transfer().ns()),
        ("cpus", e.nr_cpus().into()),
    ];
    let modelled = times.into_iter().filter(|_| !e.kernel.has_single_queue());
    map(modelled.map(|(name, n)| (name, json!(n))))
}

/// Every metric of the jobs and of the disks.
pub(crate) fn metrics(run: &RunOutput) -> Value {
    let disk = DiskNumbers::new(run);
    let of_disk = DISK.iter().map(|m| (m.column(), json!(m.of_disk(&disk))));
    json!({
        "jobs": job_rows(run).iter().map(JobRow::to_json).collect::<Vec<_>>(),
        "disk": map(of_disk),
    })
}

fn map(pairs: impl Iterator<Item = (impl ToString, Value)>) -> Map<String, Value> {
    pairs.map(|(key, value)| (key.to_string(), value)).collect()
}
