// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else is known of the machine, as lines of `key=value`: the kernel, the settings
//! of a disk's queue and scheduler, the page cache's, mounts and control groups. Read
//! when recording begins.

use crate::mounts::mounts_of;
use crate::stacked::stack_of;
use crate::sysfs::files;
use crate::{Disk, Roots};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Control groups that are looked at.
const GROUPS_MAX: usize = 1024;

/// Settings of the page cache that decide when writes happen.
const VM: [&str; 6] = [
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_writeback_centisecs",
    "dirty_expire_centisecs",
];

/// Files of control groups that limit or weigh I/O.
const CGROUP: [&str; 5] = [
    "io.max",
    "io.weight",
    "io.bfq.weight",
    "io.latency",
    "io.prio.class",
];

/// Those of them that limit: who is in such a group is written down, and, where io.cost shares
/// the disk out, who is in one that has a weight.
const LIMITS: [&str; 2] = ["io.max", "io.latency"];

/// Whether io.cost controls a device, and how: files of the root group.
const IO_COST: [&str; 2] = ["io.cost.qos", "io.cost.model"];

/// Limits of the first version's groups, which say who is in them, and weights.
const THROTTLE: [&str; 7] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "blkio.weight",
    "blkio.weight_device",
    "blkio.bfq.weight",
];

/// The lines about `disk` and the machine.
pub fn context_of(roots: &Roots, disk: &Disk) -> String {
    let mut lines = Vec::new();
    let mut say = |key: String, value: &str| {
        let value = value.trim();
        // A value is a line; what says nothing is left out.
        if !value.is_empty() && !value.contains('\n') {
            lines.push((key, value.to_owned()));
        }
    };
    let release = fs::read_to_string(roots.proc.join("sys/kernel/osrelease"));
    say("kernel".into(), &release.unwrap_or_default());
    say("device".into(), &disk.name);
    let cpus = fs::read_to_string(roots.sys.join("devices/system/cpu/online"));
    if let Some(n) = cpus.ok().and_then(|text| nr_of(text.trim())) {
        say("cpus".into(), &n.to_string());
    }
    for folder in ["queue", "queue/iosched"] {
        for (name, value) in files(&disk.sys.join(folder)) {
            say(format!("{folder}/{name}"), &value);
        }
    }
    for name in ["device/queue_depth", "device/model"] {
        let value = fs::read_to_string(disk.sys.join(name));
        say(name.into(), &value.unwrap_or_default());
    }
    if let Ok(queues) = fs::read_dir(disk.sys.join("mq")) {
        say("mq.queues".into(), &queues.count().to_string());
    }
    for name in VM {
        let value = fs::read_to_string(roots.proc.join("sys/vm").join(name));
        say(format!("vm.{name}"), &value.unwrap_or_default());
    }
    for (key, value) in mounts_of(roots, disk).into_iter().chain(stack_of(disk)) {
        say(key, &value);
    }
    let root = cgroup_root(roots);
    let mut is_shared_out = false;
    if let Some(root) = &root {
        // Of io.cost, only the root says whether it is on.
        for file in IO_COST {
            let value = fs::read_to_string(root.join(file)).unwrap_or_default();
            let value = of_disk(&value, disk);
            is_shared_out |= value.split_whitespace().any(|word| word == "enable=1");
            say(file.into(), &value);
        }
    }
    let limits = |file: &str, value: &str| {
        let weighs = is_shared_out && file == "io.weight";
        !value.is_empty()
            && (weighs || LIMITS.contains(&file) || file.starts_with("blkio.throttle."))
    };
    let of_version_1 = Some(roots.sys.join("fs/cgroup/blkio")).filter(|root| root.is_dir());
    let hierarchies = [(root, CGROUP.as_slice()), (of_version_1, &THROTTLE)];
    for (root, files) in hierarchies {
        for (group, folder) in root.iter().flat_map(|root| cgroups(root)) {
            let mut is_limited = false;
            for file in files {
                if let Ok(value) = fs::read_to_string(folder.join(file)) {
                    // One line for each device: those of this one.
                    let of_disk = of_disk(&value, disk);
                    is_limited |= limits(file, &of_disk);
                    say(format!("cgroup.{group}.{file}"), &of_disk);
                }
            }
            if is_limited && let Ok(pids) = fs::read_to_string(folder.join("cgroup.procs")) {
                let pids: Vec<&str> = pids.split_whitespace().collect();
                say(format!("cgroup.{group}.processes"), &pids.join(" "));
            }
        }
    }
    let mut text = String::new();
    for (key, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}={value}");
    }
    text
}

/// How many numbers a list like `0-3,5` has.
fn nr_of(list: &str) -> Option<u64> {
    let mut sum = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        sum += last.checked_sub(first)? + 1;
    }
    Some(sum)
}

/// The line of a file of control groups that is about the disk; all of it if it is
/// about none in particular.
fn of_disk(value: &str, disk: &Disk) -> String {
    let numbers = format!("{}:{} ", disk.major, disk.minor);
    let mut lines = value.lines();
    match lines.clone().find(|line| line.starts_with(&numbers)) {
        Some(line) => line.to_owned(),
        None => {
            let is_of_none = |line: &&str| !line.split(' ').next().unwrap_or("").contains(':');
            lines.find(is_of_none).unwrap_or_default().to_owned()
        }
    }
}

/// The folder of the root of the unified hierarchy.
fn cgroup_root(roots: &Roots) -> Option<PathBuf> {
    let places = ["fs/cgroup", "fs/cgroup/unified"].map(|place| roots.sys.join(place));
    places
        .into_iter()
        .find(|place| place.join("cgroup.controllers").is_file())
}

/// Control groups below a root, by name, with their folders.
fn cgroups(root: &Path) -> Vec<(String, PathBuf)> {
    let mut groups = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && groups.len() < GROUPS_MAX {
                let path = entry.path();
                if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                    // A name with = in it could not be told from its value.
                    if !name.contains(['=', '\n']) {
                        groups.push((name.to_owned(), path.clone()));
                    }
                }
                folders.push(path);
            }
        }
    }
    groups.sort_unstable();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(
            (nr_of("0"), nr_of("0-3"), nr_of("0-3,8,10-11")),
            (Some(1), Some(4), Some(7))
        );
        assert_eq!((nr_of(""), nr_of("3-1")), (None, None));
    }
}
