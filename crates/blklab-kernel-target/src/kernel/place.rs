// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the files of jobs lie on: a filesystem, or parts of the disk.

use super::filesystem::{self, Volume};
use super::folders::Folders;
use super::job_text::ReadFile;
use super::parts::Parts;
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_fio::parse::JobFile;
use blklab_fio::range::{Layout, Ranges};
use blklab_target::files::{Files, is_device};
use blklab_types::{Error, SECTOR_BYTES};
use std::collections::BTreeSet;

/// What the files lie on.
#[derive(Debug)]
pub(super) enum Place {
    /// The disk itself.
    Parts(Parts),
    /// A filesystem.
    Volume(Volume, Found),
}

/// What jobs find on a filesystem.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) folders: Folders,
    /// What each job works on.
    ranges: Vec<Ranges>,
    /// Bytes that are laid out before the run.
    laid_out: u64,
    /// Files that logs read.
    pub(super) read: Vec<ReadFile>,
}

impl Place {
    /// Where the files of jobs lie.
    ///
    /// # Errors
    /// If they do not fit, or have names that no file can have.
    pub(super) fn new(e: &Experiment, jobs: &JobFile, disk_sectors: u64) -> Result<Place, Error> {
        let volume = filesystem::volume(e)?.filter(|_| has_files(jobs));
        let Some(volume) = volume else {
            return Ok(Place::Parts(Parts::new(jobs, disk_sectors)?));
        };
        let disk_bytes = disk_sectors.saturating_mul(SECTOR_BYTES);
        let mut files = Files::new(disk_bytes);
        let mut ranges = Vec::with_capacity(jobs.jobs.len());
        let mut laid_out = 0_u64;
        let mut read = Vec::new();
        for job in &jobs.jobs {
            let found = files.find(job)?;
            let grown = found.layouts.iter().map(|(_, growth)| *growth);
            laid_out = grown.fold(laid_out, u64::saturating_add);
            if job.replay.is_some() {
                read.extend(read_files(job, &found.layouts));
            }
            ranges.push(found.ranges);
        }
        let names = jobs.jobs.iter().filter(|job| !job.is_diskless());
        let names: BTreeSet<&String> = names.flat_map(|job| &job.files).collect();
        let sizes = names.iter().map(|name| files.size_bytes(name));
        if sizes.fold(0, u64::saturating_add) > disk_bytes {
            return Err(Error::new(format!(
                "the files of the jobs do not fit the disk, which has {disk_bytes} bytes"
            )));
        }
        let found = Found {
            folders: Folders::new(jobs)?,
            ranges,
            laid_out,
            read,
        };
        Ok(Place::Volume(volume, found))
    }

    /// Whether what is written can be anything.
    pub(super) fn takes_any_contents(&self) -> bool {
        match self {
            Place::Parts(_) => true,
            Place::Volume(volume, _) => volume.takes_any_contents(),
        }
    }

    /// What each job works on.
    pub(super) fn into_ranges(self) -> Vec<Ranges> {
        match self {
            Place::Parts(parts) => parts.ranges,
            Place::Volume(_, found) => found.ranges,
        }
    }

    /// What a reader of the result should know.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Place::Parts(parts) => parts.notes.clone(),
            Place::Volume(volume, found) => {
                let program = volume.program.0;
                let how = format!("{program} {}", volume.make.join(" "));
                let mounted = match volume.mount.join(",") {
                    none if none.is_empty() => "no options".to_owned(),
                    words => words,
                };
                let mut notes = vec![format!(
                    "{} was made by {how} and mounted with {mounted}",
                    volume.name
                )];
                if found.laid_out > 0 {
                    notes.push(format!(
                        "{} MiB of files were laid out before the start, in no time of the disk; \
                         nothing of them is in the cache",
                        found.laid_out >> 20
                    ));
                }
                notes
            }
        }
    }
}

/// The files that a job's log reads, as far as they are not there.
fn read_files(job: &Job, layouts: &[(Layout, u64)]) -> impl Iterator<Item = ReadFile> {
    let read = layouts.iter().filter(|(layout, _)| layout.written);
    read.map(|(layout, _)| ReadFile {
        name: job.files[layout.file as usize].clone(),
        bytes: layout.size_bytes(),
    })
}

/// Whether any job has a file beside the disk itself.
fn has_files(jobs: &JobFile) -> bool {
    let on_disk = jobs.jobs.iter().filter(|job| !job.is_diskless());
    on_disk
        .flat_map(|job| &job.files)
        .any(|name| !is_device(name))
}

/// Bytes that jobs may leave in the page cache: those of their files, and of what they
/// transfer, without what goes past it.
pub(super) fn cached_bytes(jobs: &JobFile, disk_bytes: u64) -> u64 {
    let mut files = Files::new(disk_bytes);
    let mut bytes = 0_u64;
    for job in jobs.jobs.iter().filter(|job| !job.is_diskless()) {
        // What is wrong with it is said when it is rehearsed.
        let Ok(found) = files.find(job) else {
            continue;
        };
        if job.settings.direct {
            continue;
        }
        let sizes = found.ranges.files.iter().map(|file| file.length);
        let sizes = sizes.fold(0, u64::saturating_add);
        let most = match (job.settings.io_size, job.settings.time_based) {
            (0, _) | (_, true) => sizes,
            (bytes, false) => sizes.min(bytes),
        };
        bytes = bytes.saturating_add(most);
    }
    bytes
}
