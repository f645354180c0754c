// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file may ask about the world: environment, included files.

use crate::recording;
use blklab_experiment::read_named;
use blklab_fio::parse::{Recording, Surroundings};
use blklab_types::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory of a machine that does not say.
const MEMORY_BYTES: u64 = 8 << 30;
/// Processors of a machine that does not say.
const CPUS: u32 = 2;
/// Largest file that a job file includes: 1 MiB.
const INCLUDE_BYTES_MAX: u64 = 1 << 20;

/// The real environment and files; disks and directories are simulated, so
/// every directory is fine and only names in /dev are devices.
#[derive(Debug)]
pub struct RealSurroundings {
    base: PathBuf,
    memory_bytes: u64,
    cpus: u32,
    /// Files that were read.
    read: Mutex<Vec<PathBuf>>,
}

impl RealSurroundings {
    /// Included files are looked for as given, then beside `job_file`.
    pub fn beside(job_file: &Path) -> RealSurroundings {
        RealSurroundings {
            base: job_file.parent().unwrap_or(Path::new("")).to_path_buf(),
            memory_bytes: MEMORY_BYTES,
            cpus: CPUS,
            read: Mutex::default(),
        }
    }

    /// `$mb_memory` and `$ncpus` are those of a machine with so much.
    #[must_use]
    pub fn on_machine(self, memory_bytes: u64, cpus: u32) -> RealSurroundings {
        RealSurroundings {
            memory_bytes,
            cpus,
            ..self
        }
    }

    /// The files that were read so far.
    pub fn files_read(&self) -> Vec<PathBuf> {
        self.files().clone()
    }

    fn files(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a file is that a job file names.
    pub(crate) fn find(&self, name: &str) -> PathBuf {
        let beside = self.base.join(name);
        if !Path::new(name).exists() && beside.exists() {
            return beside;
        }
        PathBuf::from(name)
    }
}

impl Surroundings for RealSurroundings {
    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> Result<String, Error> {
        let file = self.find(path);
        let text = read_named(&file, INCLUDE_BYTES_MAX)?;
        self.files().push(file);
        Ok(text)
    }

    fn recording(&self, path: &str) -> Result<Recording<'_>, Error> {
        let file = self.find(path);
        let recording = recording::open(&file)?;
        self.files().push(file);
        Ok(recording)
    }

    fn is_device(&self, path: &str) -> bool {
        path.starts_with("/dev/")
    }

    fn memory_mib(&self) -> u64 {
        self.memory_bytes >> 20
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }
}
