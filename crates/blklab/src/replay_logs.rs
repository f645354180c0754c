// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that the jobs of a run replay, kept in its run directory so that it
//! can be run again when they are gone or have changed.

use crate::surroundings::RealSurroundings;
use blklab_experiment::ExperimentError;
use blklab_fio::parse::log_names;
use blklab_formats::PartialFile;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The option that names logs.
const OPTION: &str = "read_iolog";

/// Copies the logs that a job file without includes and variables names into
/// `dir`. Returns the job file with the names of the copies. `job_file` is where
/// it came from.
///
/// # Errors
/// If a log cannot be read or its copy written.
pub(crate) fn keep(dir: &Path, job_file: &str, text: &str) -> Result<String, ExperimentError> {
    let around = RealSurroundings::beside(Path::new(job_file));
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line.split_once('=') {
            Some((option, value)) if option.trim() == OPTION => {
                let copies: Result<Vec<String>, ExperimentError> = log_names(value)
                    .iter()
                    .map(|log| copy(dir, &around.find(log)))
                    .collect();
                out.push_str(&format!("{OPTION}={}", copies?.join(":")));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    Ok(out)
}

/// Copies one log under a name made from its contents: whatever the folder is
/// from which the run is repeated, no other file has that name.
fn copy(dir: &Path, log: &Path) -> Result<String, ExperimentError> {
    let fail = |e: io::Error| {
        ExperimentError::new(format!(
            "cannot copy {} to {}: {e}",
            log.display(),
            dir.display()
        ))
    };
    let name = format!("{:016x}.iolog", digest(log).map_err(fail)?);
    let path = dir.join(&name);
    let mut partial =
        PartialFile::create(&path).map_err(|e| ExperimentError::new(e.to_string()))?;
    File::open(log)
        .and_then(|mut file| io::copy(&mut file, &mut partial))
        .and_then(|_| partial.flush())
        .map_err(fail)?;
    partial
        .commit()
        .map_err(|e| ExperimentError::new(e.to_string()))?;
    Ok(name)
}

/// FNV-1a of a file's contents, 64 bits.
fn digest(log: &Path) -> io::Result<u64> {
    let mut file = File::open(log)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hash);
        }
        for byte in &buffer[..read] {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
