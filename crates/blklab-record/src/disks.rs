// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices by name, path or mount point.

use crate::{RecordError, Roots};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// A whole block device: a disk, an array, a mapping; no partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its major number.
    pub major: u32,
    /// Its minor number.
    pub minor: u32,
    /// The kernel's name.
    pub name: String,
    /// Its folder in sysfs, with `queue`.
    pub sys: PathBuf,
    /// The disks that it lies on (`slaves`), and theirs.
    pub below: Vec<Disk>,
}

impl Disk {
    /// The disk and those below it.
    pub fn with_below(&self) -> Vec<&Disk> {
        let mut all = vec![self];
        for below in &self.below {
            all.extend(below.with_below());
        }
        all
    }

    /// As events have it (`MKDEV`, include/linux/kdev_t.h).
    pub(crate) fn number(&self) -> u64 {
        u64::from(self.major) << 20 | u64::from(self.minor)
    }

    /// From its folder in sysfs; a partition's is that of its disk.
    fn at(folder: &Path) -> Option<Disk> {
        Disk::above(folder, 0)
    }

    fn above(folder: &Path, depth: u32) -> Option<Disk> {
        let mut sys = fs::canonicalize(folder).ok()?;
        if sys.join("partition").is_file() {
            sys.pop();
        }
        let numbers = fs::read_to_string(sys.join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        let mut below = Vec::new();
        // Devices lie on others without circles, a few deep.
        if depth < 8
            && let Ok(slaves) = fs::read_dir(sys.join("slaves"))
        {
            let slaves = slaves.filter_map(|slave| Some(slave.ok()?.path()));
            below = slaves
                .filter_map(|path| Disk::above(&path, depth + 1))
                .collect();
            below.sort_by_key(Disk::number);
        }
        Some(Disk {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
            name: sys.file_name()?.to_str()?.to_owned(),
            sys,
            below,
        })
    }
}

/// All disks, by number.
pub fn all_disks(roots: &Roots) -> Vec<Disk> {
    let Ok(entries) = fs::read_dir(roots.sys.join("block")) else {
        return Vec::new();
    };
    let disks = entries.filter_map(|entry| Disk::at(&entry.ok()?.path()));
    let by_number: BTreeMap<u64, Disk> = disks.map(|d| (d.number(), d)).collect();
    by_number.into_values().collect()
}

/// The disk that `text` names: by its name, by the path of a device, or as that which
/// holds a file or folder.
///
/// # Errors
/// One line, if there is none.
pub fn find_disk(roots: &Roots, text: &str) -> Result<Disk, RecordError> {
    if !text.is_empty() && !text.contains('/') {
        // sysfs writes ! for the / of some names.
        let folder = roots.sys.join("class/block").join(text);
        if let Some(disk) = Disk::at(&folder) {
            return Ok(disk);
        }
    }
    let Ok(metadata) = fs::metadata(text) else {
        let disks = all_disks(roots);
        let names: Vec<&str> = disks.iter().map(|d| d.name.as_str()).collect();
        return Err(RecordError::new(format!(
            "{}: no such device, file or folder; the disks are {}",
            blklab_types::shown(text),
            match names.join(", ") {
                none if none.is_empty() => "none".to_owned(),
                names => names,
            }
        )));
    };
    let number = if metadata.file_type().is_block_device() {
        metadata.rdev()
    } else if metadata.file_type().is_char_device() {
        return Err(RecordError::new(format!("{text}: not a block device")));
    } else {
        metadata.dev()
    };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if let Some(disk) = by_number(roots, major, minor) {
        return Ok(disk);
    }
    let source = mount_source(roots, major, minor);
    let disk = source.as_deref().and_then(|source| {
        let number = fs::metadata(source).ok()?.rdev();
        by_number(roots, rustix::fs::major(number), rustix::fs::minor(number))
    });
    disk.ok_or_else(|| {
        RecordError::new(format!(
            "{text}: lies on {}, which is no block device",
            source.unwrap_or_else(|| format!("{major}:{minor}"))
        ))
    })
}

fn by_number(roots: &Roots, major: u32, minor: u32) -> Option<Disk> {
    Disk::at(&roots.sys.join(format!("dev/block/{major}:{minor}")))
}

/// What is mounted with these numbers: filesystems of several devices have numbers of
/// their own (btrfs).
fn mount_source(roots: &Roots, major: u32, minor: u32) -> Option<String> {
    let mounts = fs::read_to_string(roots.proc.join("self/mountinfo")).ok()?;
    let numbers = format!("{major}:{minor}");
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(&numbers))?;
    let (_, rest) = line.split_once(" - ")?;
    rest.split(' ').nth(1).map(str::to_owned)
}
