// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as fio's formats and as files: each appears under its name when
//! it is whole.

use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_experiment::{ExperimentError, Workload};
use blklab_fiostat::{DiskUtil, FioResult, FioRun, Format, JobRecord, TerseVersion, log_file_name};
use blklab_sim::fio::{FIO_PID, JobResult, job_info};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Which of fio's formats to print.
#[derive(Clone, Debug)]
pub struct FioFormats {
    formats: Vec<Format>,
    terse: TerseVersion,
}

impl FioFormats {
    /// From fio's `--output-format` and `--terse-version`.
    ///
    /// # Errors
    /// If a name or the version does not exist.
    pub fn parse(text: &str, terse_version: u32) -> Result<FioFormats, ExperimentError> {
        let formats = Format::parse_list(text)
            .map_err(|e| ExperimentError::new(format!("--output-format {text}: {e}, or table")))?;
        let terse = TerseVersion::from_number(terse_version).ok_or_else(|| {
            ExperimentError::new(format!("--terse-version {terse_version}: there are 2 to 5"))
        })?;
        Ok(FioFormats { formats, terse })
    }
}

/// Milliseconds from 1970 to midnight of 1 January 2009: results carry virtual
/// time, counted from there, so that a run's text is the same at any hour.
const EPOCH_MS: u64 = 1_230_768_000_000;

/// The result of a run as fio would report it.
pub fn fio_result(cell: &Cell, run: &RunOutput) -> FioResult {
    let jobs = run.jobs.iter().map(record).collect();
    FioRun {
        version: format!("blklab-{}", env!("CARGO_PKG_VERSION")),
        timestamp_ms: EPOCH_MS + run.end.0 / 1_000_000,
        elapsed_s: run.end.0.div_ceil(1_000_000_000),
        global_options: run.global_options.clone(),
        jobs,
        disk_util: disk_util(run),
        blklab: Some(blklab_object(cell, run)),
    }
    .result()
}

fn record(j: &JobResult) -> JobRecord {
    let depth = j.job.settings.iodepth;
    let mut info = job_info(&j.job, FIO_PID + j.job.thread, depth);
    info.error = j.outcome.error;
    info.errors = j.outcome.survived_errors;
    JobRecord {
        info,
        stat: j.stat.clone(),
    }
}

fn disk_util(run: &RunOutput) -> Vec<DiskUtil> {
    let ms = |ns: u128| u64::try_from(ns / 1_000_000).unwrap_or(u64::MAX);
    let devices = run.stats.devices.iter();
    devices
        .map(|d| DiskUtil {
            name: "sda".to_owned(),
            read_ios: d.completed.read.count,
            write_ios: d.completed.write.count,
            read_merges: 0,
            write_merges: d.nr_back_merges + d.nr_front_merges,
            read_ticks_ms: 0,
            write_ticks_ms: 0,
            in_queue_ms: ms(d.phases.q2c.sum()),
            util_percent: 100.0 * d.activity.active_ns as f64 / (run.end.0.max(1)) as f64,
            aggregate: None,
        })
        .collect()
}

/// What blklab adds to fio's JSON.
pub fn blklab_object(cell: &Cell, run: &RunOutput) -> Value {
    let e = &cell.experiment;
    json!({
        "format": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "experiment": e.id,
        "label": cell.name(),
        "repetition": cell.repetition,
        "kernel": e.kernel.to_string(),
        "hz": e.hz.0,
        "scheduler": e.scheduler,
        "tunables": e.tunables.iter().map(|(k, v)| (k.clone(), json!(v)))
            .collect::<serde_json::Map<_, _>>(),
        "patches": e.patches,
        "device": { "name": e.device.name, "params": e.device.params.iter()
            .map(|(k, v)| (k.clone(), json!(v))).collect::<serde_json::Map<_, _>>() },
        "queue_depth": e.queue_depth().unwrap_or(0),
        "seed": e.seed,
        "end_ns": run.end.0,
        "events": run.digest.nr_events(),
        "digest": format!("{:016x}", run.digest.value()),
        "interrupted": run.interrupted,
        "notes": run.notes,
        "trace": run.stats,
    })
}

/// All runs in fio's formats. Several runs as JSON are an array.
pub fn fio_text(runs: &[(&Cell, &RunOutput)], f: &FioFormats) -> String {
    let json_only = f
        .formats
        .iter()
        .all(|x| matches!(x, Format::Json | Format::JsonPlus));
    if runs.len() > 1 && json_only {
        let bins = f.formats.contains(&Format::JsonPlus);
        let all: Vec<Value> = runs
            .iter()
            .map(|(c, r)| fio_result(c, r).to_json(bins))
            .collect();
        return format!("{:#}\n", Value::Array(all));
    }
    let text = runs
        .iter()
        .map(|(c, r)| fio_result(c, r).render(&f.formats, f.terse));
    text.collect::<Vec<_>>().join("\n")
}

/// Logs and iologs that the jobs asked for: names and texts.
pub fn job_files(run: &RunOutput) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, text: String| match files.iter_mut().find(|f| f.0 == name) {
        Some(f) => f.1.push_str(&text),
        None => files.push((name, text)),
    };
    for j in &run.jobs {
        let options = &j.job.settings.reporting;
        let per_job = options.get("per_job_logs").is_none_or(|v| v != "0");
        for (kind, text) in j.logs.texts() {
            let option = match kind.name() {
                "bw" => "write_bw_log",
                "iops" => "write_iops_log",
                "clat_hist" => "write_hist_log",
                _ => "write_lat_log",
            };
            let prefix = options
                .get(option)
                .map_or(j.job.name.as_str(), String::as_str);
            add(
                log_file_name(prefix, kind, per_job.then_some(j.job.thread)),
                text,
            );
        }
        if let (Some(name), Some(text)) = (&j.job.settings.write_iolog, &j.iolog) {
            add(iolog_name(name, j), text.clone());
        }
    }
    files
}

/// fio adds the thread number where several jobs log under one name.
fn iolog_name(name: &str, j: &JobResult) -> String {
    if j.job.thread == 1 {
        name.to_owned()
    } else {
        format!("{name}.{}", j.job.thread - 1)
    }
}

/// A name for files of one experiment of a matrix.
pub fn file_label(cell: &Cell, index: usize) -> String {
    let mut label = cell.name().replace([' ', '/', ',', ':'], "-");
    if label.is_empty() {
        label = format!("{}", index + 1);
    }
    if cell.repetition > 0 {
        label = format!("{label}-run{}", cell.repetition + 1);
    }
    label
}

/// `NAME-SUFFIX.EXT`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(ext) => format!("{stem}-{suffix}.{}", ext.to_string_lossy()),
        None => format!("{stem}-{suffix}"),
    };
    path.with_file_name(name)
}

/// Writes a file under a temporary name and renames it.
///
/// # Errors
/// If it cannot be written: nothing is left under its name.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    let fail = |e: &dyn std::fmt::Display| {
        ExperimentError::new(format!("cannot write {}: {e}", path.display()))
    };
    let mut file = blklab_formats::PartialFile::create(path).map_err(|e| fail(&e))?;
    if let Err(e) = file.write_all(bytes) {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let _ = std::fs::remove_file(partial);
        return Err(fail(&e));
    }
    file.commit().map(drop).map_err(|e| fail(&e))
}

/// Makes the folder for run directories, or says why it cannot be.
///
/// # Errors
/// If the folder cannot be made or written to.
pub fn prepare_run_directory(dir: &Path) -> Result<(), ExperimentError> {
    let fail = |e: std::io::Error| {
        ExperimentError::new(format!("cannot write to the folder {}: {e}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(fail)?;
    let probe = dir.join(".blklab-probe");
    std::fs::write(&probe, b"").map_err(fail)?;
    std::fs::remove_file(&probe).map_err(fail)
}

/// Writes a directory per experiment: what ran, and what came out.
///
/// # Errors
/// If a file cannot be written.
pub fn write_run_directory(
    dir: &Path,
    runs: &[(&Cell, &RunOutput)],
) -> Result<(), ExperimentError> {
    for (i, (cell, run)) in runs.iter().enumerate() {
        let own = run_directory(dir, runs.len(), cell, i);
        std::fs::create_dir_all(&own).map_err(|e| {
            ExperimentError::new(format!("cannot make the folder {}: {e}", own.display()))
        })?;
        write_file(
            &own.join("experiment.toml"),
            experiment_toml(cell).as_bytes(),
        )?;
        if let Workload::Fio { text, .. } = &cell.experiment.workload {
            write_file(&own.join("job.fio"), text.as_bytes())?;
        }
        let result = format!("{:#}\n", fio_result(cell, run).to_json(true));
        write_file(&own.join("result.json"), result.as_bytes())?;
    }
    Ok(())
}

/// Where the files of one experiment go: the folder itself if it is the only
/// one.
pub fn run_directory(dir: &Path, nr_runs: usize, cell: &Cell, index: usize) -> PathBuf {
    if nr_runs == 1 {
        dir.to_path_buf()
    } else {
        dir.join(file_label(cell, index))
    }
}

/// The experiment with everything spelled out; it can be run again.
fn experiment_toml(cell: &Cell) -> String {
    let mut text = format!("# resolved by blklab {}\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&cell.experiment.to_toml("job.fio"));
    text
}
