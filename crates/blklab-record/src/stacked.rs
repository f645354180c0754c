// SPDX-License-Identifier: MIT OR Apache-2.0
//! What arrays and mapped devices are made of, and how the disks below them are set.

use crate::Disk;
use crate::sysfs::files;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What md says of an array, below `md` of its folder in sysfs.
const MD: [&str; 10] = [
    "array_state",
    "bitmap/location",
    "chunk_size",
    "degraded",
    "layout",
    "level",
    "metadata_version",
    "raid_disks",
    "stripe_cache_size",
    "sync_action",
];

/// What a queue of a disk below says that decides how long its requests wait.
const BELOW: [&str; 8] = [
    "device/queue_depth",
    "queue/max_sectors_kb",
    "queue/nr_requests",
    "queue/rotational",
    "queue/scheduler",
    "queue/wbt_lat_usec",
    "queue/write_cache",
    "queue/zoned",
];

/// The lines about what a disk lies on.
pub(crate) fn stack_of(disk: &Disk) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for one in disk.with_below() {
        let name = &one.name;
        if one.sys.join("md").is_dir() {
            lines.extend(read(&one.sys.join("md"), &MD, &format!("md.{name}.")));
            lines.push((format!("md.{name}.members"), members(&one.sys.join("md"))));
        }
        if one.sys.join("dm").is_dir() {
            let prefix = format!("dm.{name}.");
            let own = read(&one.sys.join("dm"), &["name", "uuid"], &prefix);
            let mapped = own.iter().find(|(key, _)| key.ends_with(".name"));
            let table = mapped.and_then(|(_, mapped)| table(mapped));
            lines.extend(own);
            lines.extend(table.map(|table| (format!("{prefix}table"), table)));
        }
    }
    for below in disk.with_below().into_iter().skip(1) {
        let prefix = format!("below.{}.", below.name);
        lines.extend(read(&below.sys, &BELOW, &prefix));
        for (name, value) in files(&below.sys.join("queue/iosched")) {
            lines.push((format!("{prefix}queue/iosched/{name}"), value));
        }
    }
    lines
}

fn read(folder: &Path, names: &[&str], prefix: &str) -> Vec<(String, String)> {
    let value = |name: &&str| fs::read_to_string(folder.join(name)).ok();
    let line = |name: &&str| Some((format!("{prefix}{name}"), value(name)?.trim().to_owned()));
    names.iter().filter_map(line).collect()
}

/// The members of an array, by their slots: `0:sda1:in_sync`.
fn members(md: &Path) -> String {
    let Ok(entries) = fs::read_dir(md) else {
        return String::new();
    };
    let mut members: Vec<(u32, String)> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(disk) = name.strip_prefix("dev-") else {
            continue;
        };
        let said = |file: &str| {
            let text = fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            text.trim().to_owned()
        };
        let slot = said("slot");
        // A spare has no number.
        let number = slot.parse().unwrap_or(u32::MAX);
        members.push((number, format!("{slot}:{disk}:{}", said("state"))));
    }
    members.sort();
    let members: Vec<String> = members.into_iter().map(|(_, text)| text).collect();
    members.join(" ")
}

/// The table of a mapped device, as `dmsetup` prints it, which shows no keys; none where there is
/// no dmsetup. Lines stand apart by `; `.
fn table(mapped: &str) -> Option<String> {
    let output = Command::new("dmsetup")
        .args(["table", "--", mapped])
        .output();
    let output = output.ok().filter(|o| o.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then(|| text.replace('\n', "; "))
}
