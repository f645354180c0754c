// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block devices of a machine: disks, and what lies on them.

use crate::disk::ENDLESS_SECTORS;
use crate::machine::disk_name;
use blklab_experiment::Experiment;
use blklab_types::{Dev, Error, SECTOR_BYTES};

/// The major number by which virtio's disks are told of: which they have depends on what
/// else a kernel has.
const DISK_MAJOR: u16 = 254;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// Its name in /dev and /sys/block.
    pub(super) name: String,
    /// Its number, as it is told of.
    pub(super) dev: Dev,
}

/// What a machine has of block devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// All of them, what lies on others before these.
    devices: Vec<BlockDevice>,
    /// Sectors of the first.
    sectors: u64,
}

impl Stack {
    /// The stack of an experiment.
    ///
    /// # Errors
    /// If its device is not possible.
    pub(super) fn new(e: &Experiment) -> Result<Stack, Error> {
        let capacity = blklab_sim::build_device(e)?.capacity_sectors();
        Ok(Stack {
            devices: vec![BlockDevice {
                name: disk_name(0),
                dev: Dev {
                    major: DISK_MAJOR,
                    minor: 0,
                },
            }],
            sectors: capacity.unwrap_or(ENDLESS_SECTORS),
        })
    }

    /// The device that jobs use, or that a filesystem is on: the top of the stack.
    pub(super) fn top(&self) -> &str {
        &self.devices[0].name
    }

    /// Its path.
    pub(super) fn top_path(&self) -> String {
        format!("/dev/{}", self.top())
    }

    /// Its length.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR_BYTES)
    }

    /// All devices, the one on top first.
    pub(super) fn devices(&self) -> &[BlockDevice] {
        &self.devices
    }
}
