// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results in fio's formats, and the texts of the files that jobs ask for.

use crate::disk_stats::DiskStats;
use crate::failures;
use crate::matrix::Cell;
use crate::record::RunRecord;
use crate::run::RunOutput;
use blklab_fio::errno;
use blklab_fiostat::{DiskCounters, DiskUtil, FioResult, FioRun, Format, JobRecord, TerseVersion};
use blklab_target::{JobResult, job_info, log_name};
use blklab_types::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which of fio's formats to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioFormats {
    formats: Vec<Format>,
    terse: TerseVersion,
}

impl FioFormats {
    /// From fio's `--output-format` and `--terse-version`.
    ///
    /// # Errors
    /// If a name or the version does not exist: about `output_format` or
    /// `terse_version`.
    pub fn parse(text: &str, terse_version: u32) -> Result<FioFormats, Error> {
        let formats = Format::parse_list(text)
            .map_err(|e| Error::new(format!("{e}, or table")).about("output_format"))?;
        let terse = TerseVersion::from_number(terse_version)
            .ok_or_else(|| Error::new("there are 2 to 5").about("terse_version"))?;
        Ok(FioFormats { formats, terse })
    }
}

/// The result of a run as fio would report it.
pub fn fio_result(cell: &Cell, run: &RunOutput) -> FioResult {
    let is_on = |j: &&JobResult| reports(j, "stats");
    let jobs = run.jobs.iter().filter(is_on).map(record).collect();
    FioRun {
        version: format!("blklab-{}", env!("CARGO_PKG_VERSION")),
        timestamp_ms: run.epoch_ms + run.end.0 / 1_000_000,
        elapsed_s: run.end.0.div_ceil(1_000_000_000),
        global_options: run.global_options.clone(),
        jobs,
        disk_util: if run.jobs.iter().any(|j| reports(j, "disk_util")) {
            disk_util(run)
        } else {
            Vec::new()
        },
        blklab: Some(json!(RunRecord::new(cell, run))),
    }
    .result()
}

/// Whether a job reports something that is reported unless its option is 0.
fn reports(j: &JobResult, option: &str) -> bool {
    let value = j.job.settings.reporting.get(option);
    value.is_none_or(|value| value.trim() != "0")
}

fn record(j: &JobResult) -> JobRecord {
    let depth = j.job.settings.iodepth;
    let mut info = job_info(&j.job, j.pid, depth);
    let outcome = &j.outcome;
    let survives = &j.job.settings.continue_on_error;
    info.continue_on_error = survives.reads || survives.writes || survives.verify;
    info.errors = outcome.errors;
    info.first_error = outcome.first_error;
    info.first_error_text = match outcome.first_error {
        0 => "Success".to_owned(),
        error => errno::text(error).to_owned(),
    };
    // fio shows the first error of a job that goes on as its error.
    info.error = match outcome.error {
        0 => outcome.first_error,
        error => error,
    };
    info.error_text = failures::verror(j);
    JobRecord {
        info,
        stat: j.stat.clone(),
    }
}

/// The device that the jobs use, then the disks below it if it is an array.
fn disk_util(run: &RunOutput) -> Vec<DiskUtil> {
    let disks = run.disks.iter().map(|d| DiskUtil {
        name: d.name.clone(),
        own: counters(run, &d.stats),
        aggregate: None,
    });
    let array = run.array.iter().map(|a| DiskUtil {
        name: a.name.clone(),
        own: counters(run, &a.stats),
        aggregate: Some(aggregate(run)),
    });
    array.chain(disks).collect()
}

fn counters(run: &RunOutput, d: &DiskStats) -> DiskCounters {
    let ms = |ns: u64| ns / 1_000_000;
    DiskCounters {
        read_ios: d.read.ios,
        write_ios: d.write.ios,
        read_merges: d.read.merges,
        write_merges: d.write.merges,
        read_ticks_ms: ms(d.read.ticks_ns),
        write_ticks_ms: ms(d.write.ticks_ns),
        in_queue_ms: ms(d.read.ticks_ns + d.write.ticks_ns),
        util_percent: 100.0 * d.busy_ns as f64 / run.end.0.max(1) as f64,
    }
}

/// Means over the members of an array, and the largest utilisation.
fn aggregate(run: &RunOutput) -> DiskCounters {
    let all: Vec<DiskCounters> = run.disks.iter().map(|d| counters(run, &d.stats)).collect();
    let mean =
        |f: fn(&DiskCounters) -> u64| all.iter().map(f).sum::<u64>() / (all.len() as u64).max(1);
    DiskCounters {
        read_ios: mean(|d| d.read_ios),
        write_ios: mean(|d| d.write_ios),
        read_merges: mean(|d| d.read_merges),
        write_merges: mean(|d| d.write_merges),
        read_ticks_ms: mean(|d| d.read_ticks_ms),
        write_ticks_ms: mean(|d| d.write_ticks_ms),
        in_queue_ms: mean(|d| d.in_queue_ms),
        util_percent: all.iter().map(|d| d.util_percent).fold(0.0, f64::max),
    }
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

/// Logs and iologs that the jobs asked for: names and texts. Several jobs that
/// name one file share it: logs follow one another in thread order, iologs, as
/// fio appends them, in the order in which the jobs ended. Of what fio itself wrote,
/// all is in thread order.
pub fn job_files(run: &RunOutput) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |name: String, text: &str| files.entry(name).or_default().push_str(text);
    for j in &run.jobs {
        for (kind, text) in j.logs.texts() {
            add(log_name(&j.job, kind), &text);
        }
        for (name, text) in &j.written {
            add(name.clone(), text);
        }
    }
    let mut by_end: Vec<&JobResult> = run.jobs.iter().collect();
    by_end.sort_by_key(|j| j.ended.unwrap_or(run.end));
    for j in by_end {
        if let (Some(name), Some(text)) = (&j.job.settings.write_iolog, &j.iolog) {
            add(name.clone(), text);
        }
    }
    files
}

/// Longest name of a file made from a label.
const LABEL_BYTES_MAX: usize = 100;

/// Names for files of the experiments of a matrix, all different.
pub fn file_labels(cells: &[Cell]) -> Vec<String> {
    let repeated = cells.iter().any(|c| c.repetition > 0);
    let label = |cell: &Cell| {
        let label = file_name(&cell.name());
        let dash = if label.is_empty() { "" } else { "-" };
        if repeated {
            format!("{label}{dash}run{}", cell.repetition + 1)
        } else {
            label
        }
    };
    all_different(cells.iter().map(label))
}

/// A label as the name of a file, or as part of one: letters, digits and a few signs that
/// mean nothing to a shell, and no dot in front.
pub fn file_name(label: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._=+-".contains(c);
    let kept = label.trim_start_matches('.').chars().take(LABEL_BYTES_MAX);
    kept.map(|c| if plain(c) { c } else { '-' }).collect()
}

/// The same names, with their place behind those that are empty or were there before.
pub fn all_different(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (i, mut name) in names.enumerate() {
        if name.is_empty() || all.contains(&name) {
            name = format!("{name}-{}", i + 1);
        }
        all.push(name);
    }
    all
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
