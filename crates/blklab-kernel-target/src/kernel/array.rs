// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays: what mdadm is told.

use super::layer::{BlockDevice, Layer};
use blklab_experiment::{MdLevel, MdSpec};
use blklab_types::{Dev, Error, Level};

/// The number of md's first device.
const MD0: Dev = Dev { major: 9, minor: 0 };

/// What makes an array.
const PROGRAMS: &[(&str, &str)] = &[("mdadm", "mdadm")];

/// An array of all disks, of which these are the paths. It counts as clean: nothing is synchronised during a run.
///
/// # Errors
/// If the disks are too small.
pub(super) fn layer(md: &MdSpec, disks: &[String], disk_sectors: u64) -> Result<Layer, Error> {
    let sectors = md.capacity_sectors(disk_sectors);
    if sectors == 0 {
        let what = format!("md: no room for {md} on disks of {disk_sectors} sectors");
        return Err(Error::new(what).about("md"));
    }
    // Superblocks of this version are at the end of a disk, and what the simulation has.
    let mut command = format!(
        "mdadm --create /dev/md0 --run --quiet --metadata=0.90 --homehost=any --level={} \
         --raid-devices={}",
        md.level_name(),
        md.members,
    );
    if md.level.is_redundant() {
        command += &format!(" --assume-clean --bitmap={}", md.bitmap());
    }
    match (md.chunk_kb(), md.level) {
        (Some(kb), _) => command += &format!(" --chunk={kb}"),
        (None, MdLevel::Linear) => command += " --rounding=64",
        (None, _) => {}
    }
    if let Some(layout) = md.layout() {
        command += &format!(" --layout={layout}");
    }
    for disk in disks {
        command += &format!(" {disk}");
    }
    // Only the superblocks are read again: parity is made of what is read, and nobody
    // compares.
    let kept_from = Level::Raid1.capacity_sectors(md.members, disk_sectors);
    Ok(Layer {
        what: md.to_string(),
        nr_mapped: 0,
        device: BlockDevice {
            name: "md0".to_owned(),
            dev: MD0,
        },
        sectors,
        commands: vec![command],
        programs: PROGRAMS.to_vec(),
        modules: vec![module(md.level)],
        on_filesystem: None,
        kept_from: Some(kept_from),
    })
}

/// The module that drives arrays of a level.
fn module(level: MdLevel) -> &'static str {
    match level {
        MdLevel::Linear => "linear",
        MdLevel::Raid0 => "raid0",
        MdLevel::Raid1 => "raid1",
        MdLevel::Raid10 => "raid10",
        MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 => "raid456",
    }
}
