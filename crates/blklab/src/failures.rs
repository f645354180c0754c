// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors that jobs ended with or survived: in fio's words, and in a line for
//! the table.

use crate::run::RunOutput;
use blklab_fio::errno;
use blklab_fio::run::{Cause, FailedIo, Failure, IoOp};
use blklab_target::JobResult;

/// Most lines about one job.
const LINES_MAX: usize = 20;

/// What fio 3.33 writes to standard error while jobs run.
pub fn messages(run: &RunOutput) -> Vec<String> {
    let mut lines = Vec::new();
    for job in &run.jobs {
        let told = job.failures.iter().take(LINES_MAX);
        lines.extend(told.map(|failure| message(job, failure)));
        if let Some(more) = job.failures.len().checked_sub(LINES_MAX)
            && more > 0
        {
            lines.push(format!("{}: {more} more errors", job.job.name));
        }
    }
    lines
}

fn message(job: &JobResult, failure: &Failure) -> String {
    let name = &job.job.name;
    match failure.cause {
        Cause::Io(io) if io.op == IoOp::Trim => {
            let (line, function) = trim_fails_at(job);
            format!(
                "fio: pid={}, err={}/file:{line}, {}",
                job.pid,
                failure.error,
                told(function, failure.error)
            )
        }
        Cause::Io(io) => format!(
            "fio: io_u error on file {}: {}: {} offset={}, buflen={}",
            file_of(job, &io),
            errno::text(failure.error),
            io.op.name(),
            io.offset,
            io.length
        ),
        Cause::Latency {
            io,
            latency_ns,
            limit_ns,
        } => format!(
            "fio: latency of {latency_ns} nsec exceeds specified max ({limit_ns} nsec): {} {} {} {}",
            file_of(job, &io),
            io.op.name(),
            io.offset,
            io.length
        ),
        Cause::RateMin { wanted, got } => {
            format!("{name}: rate_min={wanted}B/s not met, got {got}B/s")
        }
        Cause::IopsMin { wanted, got } => {
            format!("{name}: rate_iops_min={wanted} not met, got {got} IOPS")
        }
    }
}

fn file_of<'a>(job: &'a JobResult, io: &FailedIo) -> &'a str {
    let file = job.job.files.get(io.file as usize);
    file.map_or("", String::as_str)
}

/// What fio's results say beside the error number: where it arose in fio, and
/// what it means. Empty if there was none.
pub(crate) fn verror(job: &JobResult) -> String {
    let ended = job.outcome.error;
    let error = if ended == 0 {
        job.outcome.first_error
    } else {
        ended
    };
    if error == 0 {
        return String::new();
    }
    let cause = job.failures.iter().rev().find(|f| f.error == error);
    let function = match cause.map(|f| f.cause) {
        Some(Cause::Latency { .. }) => "max latency exceeded",
        Some(Cause::RateMin { .. } | Cause::IopsMin { .. }) => "check_min_rate",
        Some(Cause::Io(io)) if io.op == IoOp::Trim => trim_fails_at(job).1,
        Some(Cause::Io(_)) | None => "io_u error",
    };
    told(function, error)
}

/// The line of fio 3.33, and its function, that notices that a trim has failed.
fn trim_fails_at(job: &JobResult) -> (&'static str, &'static str) {
    match job.job.settings.ioengine.as_str() {
        "mmap" => ("engines/mmap.c:247", "trim"),
        "vsync" => ("engines/sync.c:364", "xfer vsync"),
        _ => ("ioengines.c:399", "td_io_queue"),
    }
}

/// An error as fio's `td_verror` tells it.
fn told(function: &str, error: i32) -> String {
    format!("func={function}, error={}", errno::text(error))
}

/// Whether a job ended with an error: fio then exits with 1.
pub fn any(run: &RunOutput) -> bool {
    run.jobs.iter().any(|job| job.outcome.error != 0)
}

/// A line for each job that met errors.
pub fn lines(run: &RunOutput) -> Vec<String> {
    let failed = run.jobs.iter().filter(|job| job.outcome.errors > 0);
    failed.map(line).collect()
}

fn line(job: &JobResult) -> String {
    let outcome = &job.outcome;
    let name = &job.job.name;
    if outcome.error == 0 {
        return format!(
            "job {name} met {} error{} and went on; the first: err={} ({})",
            outcome.errors,
            if outcome.errors == 1 { "" } else { "s" },
            outcome.first_error,
            errno::text(outcome.first_error)
        );
    }
    let last = job.failures.iter().find(|f| f.error == outcome.error);
    let what = last.map_or(String::new(), |failure| {
        let when = failure.at_ns as f64 / 1e9;
        format!(": {} at {when:.3} s", in_words(job, &failure.cause))
    });
    let meaning = errno::text(outcome.error);
    format!("job {name}: err={} ({meaning}){what}", outcome.error)
}

fn in_words(job: &JobResult, cause: &Cause) -> String {
    let of_io = |io: &FailedIo| {
        format!(
            "{} of {} bytes at offset {} of {}",
            io.op.name(),
            io.length,
            io.offset,
            file_of(job, io)
        )
    };
    match cause {
        Cause::Io(io) => of_io(io),
        Cause::Latency {
            io,
            latency_ns,
            limit_ns,
        } => format!(
            "{} took {} us, more than {} us,",
            of_io(io),
            latency_ns / 1000,
            limit_ns / 1000
        ),
        Cause::RateMin { wanted, got } => {
            format!("rate_min={wanted} B/s not met, got {got} B/s")
        }
        Cause::IopsMin { wanted, got } => {
            format!("rate_iops_min={wanted} not met, got {got} IOPS")
        }
    }
}
