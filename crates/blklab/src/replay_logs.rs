// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that the jobs of a run replay, kept in its run directory so that it
//! can be run again when they are gone or have changed.

use crate::outputs::fill_file;
use blklab_fio::parse::log_names;
use blklab_target::JobText;
use blklab_types::Error;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The option that names logs.
const OPTION: &str = "read_iolog";

/// Logs and the names of their copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    logs: BTreeMap<String, PathBuf>,
}

impl Copies {
    /// The value of `option` with the names of copies, if it names logs. They
    /// are made from the contents: whatever the folder is from which the run is
    /// repeated, no other file has that name.
    pub(crate) fn rename(
        &mut self,
        option: &str,
        value: &str,
        text: &JobText,
    ) -> Result<Option<String>, String> {
        if option != OPTION {
            return Ok(None);
        }
        let mut names = Vec::new();
        for log in log_names(value) {
            let path = text.find(&log);
            let digest = digest(&path).map_err(|e| format!("cannot read {log}: {e}"))?;
            let name = format!("{digest:016x}.iolog");
            self.logs.insert(name.clone(), path);
            names.push(name);
        }
        Ok(Some(names.join(":")))
    }

    /// Names of the copies.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.logs.keys().map(Path::new)
    }

    /// Makes the copies.
    ///
    /// # Errors
    /// If a log cannot be read or its copy written.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), Error> {
        self.logs
            .iter()
            .try_for_each(|(name, log)| copy(log, &dir.join(name)))
    }
}

fn copy(log: &Path, to: &Path) -> Result<(), Error> {
    let doing = format!("copy {} to {}", log.display(), to.display());
    fill_file(to, doing, |copy| {
        io::copy(&mut File::open(log)?, copy).map(drop)
    })
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
