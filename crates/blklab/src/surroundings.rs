// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file may ask about the world: environment, included files.

use crate::recording;
use blklab_experiment::Experiment;
use blklab_fio::parse::{Recording, Surroundings};
use std::path::{Path, PathBuf};

/// Memory of a machine that does not say.
const MEMORY_BYTES: u64 = 8 << 30;
/// Processors of a machine that does not say.
const CPUS: u32 = 2;

/// The real environment and files; disks and directories are simulated, so
/// every directory is fine and only names in /dev are devices.
#[derive(Clone, Debug)]
pub struct RealSurroundings {
    base: PathBuf,
    memory_bytes: u64,
    cpus: u32,
}

impl RealSurroundings {
    /// Included files are looked for as given, then beside `job_file`.
    pub fn beside(job_file: &Path) -> RealSurroundings {
        RealSurroundings {
            base: job_file.parent().unwrap_or(Path::new("")).to_path_buf(),
            memory_bytes: MEMORY_BYTES,
            cpus: CPUS,
        }
    }

    /// `$mb_memory` and `$ncpus` are those of this experiment's machine.
    #[must_use]
    pub fn on_machine_of(self, e: &Experiment) -> RealSurroundings {
        RealSurroundings {
            memory_bytes: e.vm.memory_bytes.unwrap_or(MEMORY_BYTES),
            cpus: e.vm.cpus.unwrap_or(CPUS),
            ..self
        }
    }

    /// Where a log is that a job names.
    pub(crate) fn find(&self, log: &str) -> PathBuf {
        let beside = self.base.join(log);
        if !Path::new(log).exists() && beside.exists() {
            return beside;
        }
        PathBuf::from(log)
    }
}

impl Surroundings for RealSurroundings {
    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let read = |p: &Path| std::fs::read_to_string(p);
        match read(Path::new(path)) {
            Ok(text) => Ok(text),
            Err(_) if self.base.join(path).exists() => {
                read(&self.base.join(path)).map_err(|e| e.to_string())
            }
            Err(e) => Err(e.to_string()),
        }
    }

    fn recording(&self, path: &str) -> Result<Recording<'_>, String> {
        recording::open(&self.find(path))
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
