// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files without a filesystem: parts of the disk, one behind the other as they are laid
//! out by the simulation, under the names of the files.

use blklab_fio::parse::JobFile;
use blklab_fio::range::{FileState, Ranges, find_ranges};
use blklab_target::files::is_device;
use blklab_types::{Error, PAGE_SECTORS, SECTOR_BYTES};
use std::collections::BTreeMap;

/// Where the first part begins.
const FIRST_SECTOR: u64 = 2048;
/// Parts that a disk can have.
const PARTS_MAX: usize = 255;

/// A part of the disk that is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The file's name.
    pub(super) name: String,
    /// First sector.
    pub(super) start: u64,
    /// Sectors.
    pub(super) sectors: u64,
}

/// What jobs work on.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Files, as parts of the disk.
    pub(super) parts: Vec<Part>,
    /// Names under which jobs know the whole disk.
    pub(super) whole: Vec<String>,
    /// What each job works on.
    pub(super) ranges: Vec<Ranges>,
    /// What a reader of the result should know.
    pub(super) notes: Vec<String>,
}

impl Parts {
    /// Lays the files of jobs out on a disk.
    ///
    /// # Errors
    /// If they do not fit, or have names that no file can have.
    pub(super) fn new(jobs: &JobFile, disk_sectors: u64) -> Result<Parts, Error> {
        let mut parts = Parts::default();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        for job in &jobs.jobs {
            let ranges = find_ranges(job, |name| match sizes.get(name) {
                _ if is_device(name) => FileState::Device(disk_sectors * SECTOR_BYTES),
                Some(size) => FileState::Regular(*size),
                None => FileState::Missing,
            })
            .map_err(|e| e.at(&job.place))?;
            for (name, range) in job.files.iter().zip(&ranges.files) {
                check_name(name).map_err(|e| e.at(&job.place))?;
                if is_device(name) {
                    if !parts.whole.contains(name) {
                        parts.whole.push(name.clone());
                    }
                    continue;
                }
                if !sizes.contains_key(name) {
                    order.push(name.clone());
                }
                let size = sizes.entry(name.clone()).or_default();
                *size = (*size).max(range.real_size);
            }
            parts.ranges.push(ranges);
        }
        if order.len() > PARTS_MAX {
            let what = format!(
                "{} files: without a filesystem the target kernel has {PARTS_MAX} at most",
                order.len()
            );
            return Err(Error::not_modelled(what));
        }
        let mut start = FIRST_SECTOR;
        for name in order {
            let sectors = sizes[&name].div_ceil(SECTOR_BYTES);
            let sectors = sectors.checked_next_multiple_of(PAGE_SECTORS);
            let end = sectors.and_then(|n| start.checked_add(n));
            let Some(end) = end.filter(|end| *end <= disk_sectors) else {
                return Err(Error::new(format!(
                    "the files of the jobs do not fit the disk, which has {} bytes",
                    disk_sectors * SECTOR_BYTES
                )));
            };
            let sectors = end - start;
            parts.parts.push(Part {
                name,
                start,
                sectors,
            });
            start = end;
        }
        if !parts.parts.is_empty() {
            parts.notes.push(
                "no filesystem is chosen: the files are parts of the disk, one behind the other"
                    .to_owned(),
            );
        }
        Ok(parts)
    }
}

/// Refuses names that would mean something else to a shell or lead out of the folder of
/// the jobs.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/+=@".contains(c);
    let is_safe = name.chars().all(is_plain) && !name.split('/').any(|part| part == "..");
    if is_safe {
        return Ok(());
    }
    Err(Error::not_modelled(format!(
        "file '{}': the target kernel takes names of letters, digits and ._-/+=@",
        blklab_types::shown(name)
    )))
}
