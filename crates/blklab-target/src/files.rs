// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which part of its files each job works on: what any target that runs jobs finds out
//! before it does.

use blklab_fio::job::Job;
use blklab_fio::range::{FileState, Layout, Ranges, find_ranges, layouts};
use blklab_types::Error;
use std::collections::BTreeMap;

/// The files of a run, job by job in thread order: each finds those that jobs before it
/// have laid out.
#[derive(Clone, Debug)]
pub struct Files {
    disk_bytes: u64,
    /// Sizes of the files that jobs have laid out.
    laid_out: BTreeMap<String, u64>,
}

/// What a job finds.
#[derive(Clone, Debug)]
pub struct Found {
    /// The part of each of its files that it works on.
    pub ranges: Ranges,
    /// The files that are laid out for it, and by how many bytes each grows.
    pub layouts: Vec<(Layout, u64)>,
}

/// Whether a name is that of the disk, not of a file on it.
pub fn is_device(name: &str) -> bool {
    name.starts_with("/dev/")
}

impl Files {
    /// No job has made a file yet.
    pub fn new(disk_bytes: u64) -> Files {
        Files {
            disk_bytes,
            laid_out: BTreeMap::new(),
        }
    }

    /// Size of a file before the jobs run; 0 if it is none of those that are laid out.
    pub fn size_bytes(&self, name: &str) -> u64 {
        self.laid_out.get(name).copied().unwrap_or(0)
    }

    /// What the next job finds.
    ///
    /// # Errors
    /// If its files cannot be as it wants them.
    pub fn find(&mut self, job: &Job) -> Result<Found, Error> {
        let state = |name: &str| match self.laid_out.get(name) {
            _ if is_device(name) => FileState::Device(self.disk_bytes),
            _ if job.is_diskless() => FileState::Unknown,
            Some(size) => FileState::Regular(*size),
            None => FileState::Missing,
        };
        let ranges = find_ranges(job, state).map_err(|e| {
            let e = e.what.trim_start_matches(&format!("{}: ", job.name));
            Error::new(format!("job '{}': {e}", job.name)).at(&job.place)
        })?;
        let mut grown = Vec::new();
        if !job.is_diskless() {
            // A file that a job names is there for those behind it, whatever its size.
            for name in job.files.iter().filter(|name| !is_device(name)) {
                self.laid_out.entry(name.clone()).or_insert(0);
            }
            for layout in layouts(job, &ranges) {
                let Some(size) = self.laid_out.get_mut(&job.files[layout.file as usize]) else {
                    continue;
                };
                let growth = layout.size_bytes().saturating_sub(*size);
                *size = layout.size_bytes();
                grown.push((layout, growth));
            }
        }
        Ok(Found {
            ranges,
            layouts: grown,
        })
    }

    /// What all jobs find, in their order.
    ///
    /// # Errors
    /// If the files of one cannot be as it wants them.
    pub fn ranges<'j>(
        &mut self,
        jobs: impl IntoIterator<Item = &'j Job>,
    ) -> Result<Vec<Ranges>, Error> {
        let found = jobs.into_iter().map(|job| Ok(self.find(job)?.ranges));
        found.collect()
    }
}
