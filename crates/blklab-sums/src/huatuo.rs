// SPDX-License-Identifier: MIT OR Apache-2.0
//! huatuo's iotracing (github.com/ccfos/huatuo, pkg/types/iotracing.go): bytes and mean
//! latencies by process and file, and tasks that were long in `io_schedule`, with their stacks.

use crate::number::{figures, ns_text};
use crate::reading::{Reading, SINGLE, SUMS, Subject, record};
use blklab_analysis::findings::counted;
use blklab_types::Error;
use serde::Deserialize;

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    process_file_io_stats: Vec<Process>,
    #[serde(default)]
    io_schedule_timeout_stacks: Vec<Stall>,
}

#[derive(Deserialize)]
struct Process {
    pid: u64,
    #[serde(default)]
    comm: String,
    #[serde(default)]
    total_disk_read_bps: u64,
    #[serde(default)]
    total_disk_write_bps: u64,
    #[serde(default)]
    total_files: Vec<OneFile>,
    #[serde(default)]
    total_file_count: u64,
}

#[derive(Deserialize)]
struct OneFile {
    #[serde(default)]
    major: u64,
    #[serde(default)]
    minor: u64,
    #[serde(default)]
    path: String,
    /// Means.
    #[serde(default)]
    q2c_us: u64,
    #[serde(default)]
    d2c_us: u64,
    /// Since 2026.
    #[serde(default)]
    max_q2c_us: u64,
}

#[derive(Deserialize)]
struct Stall {
    pid: u64,
    #[serde(default)]
    comm: String,
    #[serde(default)]
    schedule_latency_us: u64,
    #[serde(default)]
    stack: Vec<String>,
}

/// Functions of a stack that are shown.
const STACK_SHOWN: usize = 6;
const KIB: f64 = 1024.0;

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let report: Report = serde_json::from_str(text)
        .map_err(|e| Error::new(format!("huatuo: no report of iotracing: {e}")))?;
    let mut subjects: Vec<Subject> = report
        .io_schedule_timeout_stacks
        .iter()
        .map(stalled)
        .collect();
    let device = report
        .process_file_io_stats
        .iter()
        .flat_map(|p| &p.total_files);
    let device = device.max_by_key(|file| file.q2c_us.max(file.max_q2c_us));
    let record = record(
        device
            .map(|f| format!("/dev/block/{}:{}", f.major, f.minor))
            .as_deref(),
    );
    subjects.extend(report.process_file_io_stats.iter().map(process));
    if subjects.is_empty() {
        return Err(Error::new(
            "huatuo: the report names no process and no stack: nothing was over its thresholds",
        ));
    }
    Ok(Reading {
        what: "huatuo's iotracing",
        form: SUMS,
        subjects,
        notes: vec![
            "latencies are means of each file; what is before the device is Q2C less D2C"
                .to_owned(),
        ],
        cannot: vec![
            SINGLE,
            "for whom a request waited: the stack of a stalled task says what it waits for, not who \
             has it",
        ],
        record,
    })
}

fn stalled(stall: &Stall) -> Subject {
    let mut subject = Subject::new(format!("{} ({})", stall.comm, stall.pid));
    subject.figure("stall_us", stall.schedule_latency_us as f64);
    let functions = stall.stack.iter().take(STACK_SHOWN).map(String::as_str);
    let functions: Vec<&str> = functions.collect();
    subject.show(
        "stalled",
        format!(
            "{} in io_schedule, called by: {}",
            ns_text(stall.schedule_latency_us as f64 * 1e3),
            functions.join(" < ")
        ),
    );
    subject
}

fn process(process: &Process) -> Subject {
    let mut subject = Subject::new(format!("{} ({})", process.comm, process.pid));
    let (read, write) = (
        process.total_disk_read_bps as f64,
        process.total_disk_write_bps as f64,
    );
    subject.figure("read_bytes_per_s", read);
    subject.figure("write_bytes_per_s", write);
    subject.show(
        "disk",
        format!(
            "{} KiB/s read, {} KiB/s written, {}",
            figures(read / KIB),
            figures(write / KIB),
            counted(process.total_file_count, "files")
        ),
    );
    let slowest = process
        .total_files
        .iter()
        .max_by_key(|f| f.q2c_us.max(f.max_q2c_us));
    if let Some(file) = slowest.filter(|file| file.q2c_us > 0) {
        let before_us = file.q2c_us.saturating_sub(file.d2c_us);
        let percent = 100.0 * before_us as f64 / file.q2c_us as f64;
        let longest = if file.max_q2c_us > 0 {
            format!(", {} the longest", ns_text(file.max_q2c_us as f64 * 1e3))
        } else {
            String::new()
        };
        subject.figure("q2c_mean_us", file.q2c_us as f64);
        subject.figure("d2c_mean_us", file.d2c_us as f64);
        let place = if percent >= 50.0 {
            " (tags, scheduler or limits)"
        } else {
            ""
        };
        subject.show(
            "slowest",
            format!(
                "{}: {} each{longest}; {} % of that before the device{place}",
                file.path,
                ns_text(file.q2c_us as f64 * 1e3),
                figures(percent)
            ),
        );
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_stalls() {
        let text = r#"{"process_file_io_stats":[{"pid":42,"comm":"db","total_disk_read_bps":0,
            "total_disk_write_bps":409600,"total_file_count":1,"total_files":[{"major":8,"minor":0,
            "path":"/data/wal","q2c_us":5000,"d2c_us":500,"max_q2c_us":90000}]}],
            "io_schedule_timeout_stacks":[{"pid":43,"comm":"db","schedule_latency_us":90000,
            "stack":["io_schedule","rq_qos_wait","wbt_wait"]}]}"#;
        let reading = read(text).unwrap();
        assert!(
            reading.subjects[0].shows[0]
                .text
                .contains("io_schedule < rq_qos_wait < wbt_wait")
        );
        let file = &reading.subjects[1].shows[1].text;
        assert!(
            file.contains("5.00 ms each, 90.0 ms the longest; 90 % of that before"),
            "{file}"
        );
        assert!(reading.record.contains("/dev/block/8:0"));
        assert!(read("{}").is_err());
    }
}
