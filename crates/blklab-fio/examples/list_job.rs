// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists what a job file issues: `list_job FILE [LINES_PER_JOB]`.
//!
//! Output: thread, operation, offset, length, file, separated by commas. Files
//! that exist are seen with their sizes; `include` and the environment work.

use blklab_fio::parse::{ParseOptions, Surroundings, parse};
use blklab_fio::range::FileState;
use blklab_fio::workload::{Limits, list};
use blklab_types::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

struct Host;

impl Surroundings for Host {
    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> Result<String, Error> {
        fs::read_to_string(path).map_err(|error| Error::new(error.to_string()))
    }

    fn is_directory(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|data| data.is_dir())
    }

    fn is_device(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|data| !data.is_file())
    }
}

fn state(path: &str) -> FileState {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => FileState::Regular(data.len()),
        Ok(_) => FileState::Unknown,
        Err(_) => FileState::Missing,
    }
}

fn run(path: &str, lines_per_job: Option<u64>) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let file =
        parse(path, &text, &ParseOptions::default(), &Host).map_err(|error| error.to_string())?;
    for note in &file.notes {
        eprintln!("{note}");
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let visit = |line: blklab_fio::workload::Line<'_>| {
        let written = writeln!(
            out,
            "{},{},{},{},{}",
            line.thread,
            line.op.name(),
            line.offset,
            line.length,
            line.file
        );
        if written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    list(&file, Limits { lines_per_job }, state, visit).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: list_job FILE [LINES_PER_JOB]");
        return ExitCode::from(2);
    };
    let lines = arguments.next().and_then(|lines| lines.parse().ok());
    match run(&path, lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
