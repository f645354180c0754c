// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a disk is mounted, and what the journals of its filesystems are.

use crate::{Disk, Roots};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Devices that lie on others are looked for so deep.
const DEPTH_MAX: u32 = 8;

/// Options of ext4 that decide what its journal writes and when.
const OF_JOURNAL: [&str; 8] = [
    "data=",
    "commit=",
    "barrier",
    "nobarrier",
    "delalloc",
    "nodelalloc",
    "journal_",
    "max_batch_time=",
];

/// The lines about mounts: `mount` as in `/proc/self/mounts` (`mount.2` and so on if there are
/// more), and `journal.DEVICE.…` of those that have one.
pub(crate) fn mounts_of(roots: &Roots, disk: &Disk) -> Vec<(String, String)> {
    let mut devices = BTreeSet::new();
    above(&disk.sys, &mut devices, 0);
    let mounts = fs::read_to_string(roots.proc.join("self/mounts")).unwrap_or_default();
    let mut lines = Vec::new();
    let mut journals = BTreeSet::new();
    let mounted = mounts.lines().filter_map(|line| {
        let name = device_of(line.split(' ').next()?)?;
        devices.contains(&name).then_some((line, name))
    });
    for (i, (line, name)) in mounted.enumerate() {
        let key = match i {
            0 => "mount".to_owned(),
            i => format!("mount.{}", i + 1),
        };
        lines.push((key, line.to_owned()));
        journals.insert(name);
    }
    for name in journals {
        lines.extend(journal(roots, &name));
    }
    lines
}

/// The names of a device, its partitions, and all that lies on them.
fn above(sys: &Path, devices: &mut BTreeSet<String>, depth: u32) {
    let Some(name) = sys.file_name().and_then(|n| n.to_str()) else {
        return;
    };
    devices.insert(name.to_owned());
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for part in entries(sys) {
        if part.join("partition").is_file() && depth < DEPTH_MAX {
            above(&part, devices, depth + 1);
        }
    }
    for holder in entries(&sys.join("holders")) {
        if let Ok(holder) = fs::canonicalize(holder)
            && depth < DEPTH_MAX
        {
            above(&holder, devices, depth + 1);
        }
    }
}

/// The kernel's name of what is mounted: `/dev/mapper/home` is a link to `/dev/dm-0`.
fn device_of(source: &str) -> Option<String> {
    source.strip_prefix("/dev/")?;
    let path = fs::canonicalize(source).unwrap_or_else(|_| source.into());
    let name = path.strip_prefix("/dev").ok()?.to_str()?;
    // sysfs writes ! for the / of some names.
    Some(name.replace('/', "!"))
}

/// What the kernel says of a filesystem's journal: the mode and the other options that decide what
/// it writes, its thread, where it is and how large a transaction can become.
fn journal(roots: &Roots, device: &str) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut say = |what: &str, value: String| {
        lines.push((format!("journal.{device}.{what}"), value));
    };
    let options = roots.proc.join("fs/ext4").join(device).join("options");
    if let Ok(options) = fs::read_to_string(options) {
        let is_wanted = |line: &&str| OF_JOURNAL.iter().any(|begin| line.starts_with(begin));
        let wanted: Vec<&str> = options.lines().filter(is_wanted).collect();
        say("options", wanted.join(","));
    }
    let task = roots.sys.join("fs/ext4").join(device).join("journal_task");
    if let Ok(task) = fs::read_to_string(task) {
        say("task", task.trim().to_owned());
    }
    // An internal journal is named by its device and inode.
    let logs = fs::read_dir(roots.proc.join("fs/jbd2"));
    for log in logs.into_iter().flatten().flatten() {
        let name = log.file_name().to_string_lossy().into_owned();
        let inode = name.strip_prefix(device).and_then(|n| n.strip_prefix('-'));
        let Some(inode) = inode else { continue };
        say("log", format!("internal, inode {inode}"));
        let info = fs::read_to_string(log.path().join("info")).unwrap_or_default();
        let blocks = info.split("each up to ").nth(1);
        let blocks = blocks.and_then(|rest| rest.split(' ').next());
        if let Some(blocks) = blocks {
            say("transaction_blocks_max", blocks.to_owned());
        }
    }
    lines
}
