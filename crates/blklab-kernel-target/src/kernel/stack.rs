// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block devices of a machine: disks, and what lies on them.

use super::array;
use crate::disk::{Disk, ENDLESS_SECTORS};
use crate::failed::failed;
use crate::machine::disk_name;
use blklab_device::{Device, DeviceLimits};
use blklab_experiment::Experiment;
use blklab_types::{Dev, Error, SECTOR_BYTES};

/// The major number by which virtio's disks are told of: which they have depends on what
/// else a kernel has.
const DISK_MAJOR: u16 = 254;
/// Minor numbers of a disk of virtio.
const DISK_MINORS: u16 = 16;

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
    /// The device that it is.
    pub(super) device: BlockDevice,
    /// Its length.
    pub(super) sectors: u64,
    /// The commands that make it.
    pub(super) commands: Vec<String>,
    /// Programs that these need, and their packages in Debian.
    pub(super) programs: &'static [(&'static str, &'static str)],
    /// From which sector of the disks on their data are kept; none: nowhere.
    pub(super) kept_from: Option<u64>,
}

/// What a machine has of block devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stack {
    disks: Vec<BlockDevice>,
    disk_sectors: u64,
    /// What lies on them, from below to the top.
    layers: Vec<Layer>,
}

impl Stack {
    /// The stack of an experiment.
    ///
    /// # Errors
    /// If its device or what lies on it is not possible.
    pub(super) fn new(e: &Experiment) -> Result<Stack, Error> {
        let capacity = blklab_sim::build_device(e)?.capacity_sectors();
        let disk_sectors = capacity.unwrap_or(ENDLESS_SECTORS);
        let nr_disks = e.md.map_or(1, |md| md.members);
        let mut stack = Stack {
            disks: (0..nr_disks).map(disk).collect(),
            disk_sectors,
            layers: Vec::new(),
        };
        if let Some(md) = &e.md {
            stack
                .layers
                .push(array::layer(md, &stack.disks, disk_sectors)?);
        }
        Ok(stack)
    }

    /// The device that jobs use, or that a filesystem is on: the top of the stack.
    pub(super) fn top(&self) -> &str {
        let top = self.layers.last().map_or(&self.disks[0], |l| &l.device);
        &top.name
    }

    /// Its path.
    pub(super) fn top_path(&self) -> String {
        format!("/dev/{}", self.top())
    }

    /// Its length.
    pub(super) fn sectors(&self) -> u64 {
        self.layers.last().map_or(self.disk_sectors, |l| l.sectors)
    }

    /// Its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.sectors().saturating_mul(SECTOR_BYTES)
    }

    /// All devices, the one on top first.
    pub(super) fn devices(&self) -> impl Iterator<Item = &BlockDevice> {
        let layers = self.layers.iter().rev().map(|l| &l.device);
        layers.chain(&self.disks)
    }

    /// The disks at the bottom.
    pub(super) fn disks(&self) -> &[BlockDevice] {
        &self.disks
    }

    /// What lies on them, from below to the top.
    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Programs that make it, and their packages in Debian.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.layers.iter().flat_map(|l| l.programs).copied()
    }

    /// Disks that behave like the model.
    ///
    /// # Errors
    /// If there is no memory for their data.
    pub(super) fn modelled(
        &self,
        name: &str,
        model: &dyn Device,
        limits: &DeviceLimits,
    ) -> Result<Vec<Disk>, Error> {
        let kept_from = self.layers.iter().filter_map(|l| l.kept_from).min();
        let disks = self.disks.iter().map(|_| {
            let disk = Disk::modelled(name, model.copy(), limits);
            match kept_from {
                Some(sector) => disk.keeping(sector),
                None => Ok(disk),
            }
        });
        disks.collect()
    }

    /// What a shell runs to make it. It ends the run if something cannot be made.
    pub(super) fn script(&self) -> String {
        let mut s = String::new();
        for layer in &self.layers {
            for command in &layer.commands {
                s.push_str(&format!("{command} || exit 1\n"));
            }
            let (name, sectors) = (&layer.device.name, layer.sectors);
            s.push_str(&format!(
                "[ \"$(cat /sys/block/{name}/size)\" = {sectors} ] || \
                 {{ echo \"{name} has $(cat /sys/block/{name}/size) sectors, not {sectors}\"; \
                 exit 1; }}\n"
            ));
        }
        for device in self.devices() {
            let name = &device.name;
            s.push_str(&format!(
                "echo {name} $(cat /sys/block/{name}/dev) >> {NUMBERS}\n"
            ));
        }
        s
    }

    /// The numbers by which devices are told of, for the numbers that they had.
    ///
    /// # Errors
    /// If the text is not what [`Stack::script`] leaves in [`NUMBERS`].
    pub(super) fn numbers(&self, text: &str) -> Result<Numbers, Error> {
        let mut pairs = Vec::new();
        for (line, device) in text.lines().zip(self.devices()) {
            let number = line.strip_prefix(&device.name).map(str::trim);
            let number = number.and_then(|n| n.split_once(':'));
            let number = number.and_then(|(major, minor)| {
                let major = major.parse().ok()?;
                let minor = minor.parse().ok()?;
                Some(Dev { major, minor })
            });
            let number = number.ok_or_else(|| failed("the numbers of devices are missing"))?;
            pairs.push((number, device.dev));
        }
        if pairs.len() != self.layers.len() + self.disks.len() {
            return Err(failed("the numbers of devices are missing"));
        }
        Ok(Numbers(pairs))
    }
}

/// The file that a machine writes the numbers of its devices to.
pub(super) const NUMBERS: &str = "devices";

/// Numbers that devices had, and by which they are told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers(Vec<(Dev, Dev)>);

impl Numbers {
    /// The number by which a device or a part of one is told of.
    pub(super) fn told(&self, dev: Dev) -> Dev {
        let same = self.0.iter().find(|(had, _)| *had == dev);
        if let Some((_, told)) = same {
            return *told;
        }
        let sibling = self.0.iter().find(|(had, _)| had.major == dev.major);
        let major = sibling.map_or(dev.major, |(_, told)| told.major);
        Dev { major, ..dev }
    }
}

fn disk(i: u32) -> BlockDevice {
    let i = i as u16;
    BlockDevice {
        name: disk_name(usize::from(i)),
        dev: Dev {
            major: DISK_MAJOR,
            minor: i * DISK_MINORS,
        },
    }
}
