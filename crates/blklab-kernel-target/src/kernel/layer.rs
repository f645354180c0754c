// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stacks are made of: block devices, and those that lie on others.

use super::filesystem::Volume;
use blklab_types::Dev;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// Its name in /dev and /sys/block.
    pub(super) name: String,
    /// Its number, as it is told of.
    pub(super) dev: Dev,
}

/// What lies on other block devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// What it is, in an experiment's words.
    pub(super) what: String,
    /// The device that it is.
    pub(super) device: BlockDevice,
    /// Its length.
    pub(super) sectors: u64,
    /// The commands that make it.
    pub(super) commands: Vec<String>,
    /// Programs that these need, and their packages in Debian.
    pub(super) programs: Vec<(&'static str, &'static str)>,
    /// Modules that drive it.
    pub(super) modules: Vec<&'static str>,
    /// The filesystem that lies between it and what is below.
    pub(super) on_filesystem: Option<Volume>,
    /// Devices of device mapper that there are then.
    pub(super) nr_mapped: usize,
    /// From which sector of the disks on their data are kept; none: nowhere.
    pub(super) kept_from: Option<u64>,
}
