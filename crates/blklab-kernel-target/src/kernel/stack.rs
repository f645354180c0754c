// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block devices of a machine: disks, and what lies on them.

use super::drivers::{Driver, Wanted};
use super::filesystem::Volume;
use super::late::lateness;
use super::layer::{BlockDevice, Layer};
use super::{array, dm, loops};
use crate::disk::{Disk, ENDLESS_SECTORS};
use crate::failed::failed;
use crate::machine::disk_name;
use blklab_device::{DeviceLimits, interrupted};
use blklab_experiment::{Catalogue, DeviceSpec, Experiment, QueueFacts};
use blklab_types::{Dev, Error, SECTOR_BYTES};

/// The major number by which virtio's disks are told of: which they have depends on what
/// else a kernel has.
const DISK_MAJOR: u16 = 254;
/// Minor numbers of a disk of virtio.
const DISK_MINORS: u16 = 16;

/// A disk at the bottom.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bottom {
    /// The device that it is.
    pub(super) device: BlockDevice,
    /// Its length.
    pub(super) sectors: u64,
    /// The experiment as far as this disk is concerned: its device is this one.
    pub(super) e: Experiment,
    /// Whether it is attached to the machine and behaves like a model, or the kernel makes
    /// it itself.
    pub(super) is_modelled: bool,
    /// From which sector on its data are kept; none: nowhere.
    kept_from: Option<u64>,
}

impl Bottom {
    fn new(number: u32, e: &Experiment) -> Result<Bottom, Error> {
        let capacity = blklab_sim::build_device(e)?.capacity_sectors();
        let number = number as u16;
        Ok(Bottom {
            device: BlockDevice {
                name: disk_name(usize::from(number)),
                dev: Dev {
                    major: DISK_MAJOR,
                    minor: number * DISK_MINORS,
                },
            },
            sectors: capacity.unwrap_or(ENDLESS_SECTORS),
            e: e.clone(),
            is_modelled: true,
            kept_from: None,
        })
    }

    /// The same disk, if a driver of the kernel makes it.
    fn made_by(mut self, driver: Driver, i: u32) -> Bottom {
        self.device = BlockDevice {
            name: driver.disk(i),
            dev: driver.dev(i),
        };
        self.is_modelled = false;
        self
    }

    fn path(&self) -> String {
        format!("/dev/{}", self.device.name)
    }

    /// The disk, which behaves like the model of its device.
    fn modelled(&self, facts: QueueFacts) -> Result<Disk, Error> {
        let e = &self.e;
        let model = interrupted(blklab_sim::build_device(e)?, e.interrupt_latency());
        let limits = blklab_device::limits(&e.device.name, &e.device.params);
        let limits = DeviceLimits {
            max_segments: Some(facts.max_segments),
            ..limits.map_err(blklab_sim::device_refused)?
        };
        let disk = Disk::modelled(&e.device.name, model, &limits);
        let disk = disk.prepared().late(lateness(e));
        match self.kept_from {
            Some(sector) => disk.keeping(sector),
            None => Ok(disk),
        }
    }
}

/// What a machine has of block devices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stack {
    disks: Vec<Bottom>,
    /// What lies on them, from below to the top.
    layers: Vec<Layer>,
}

impl Stack {
    /// The stack of an experiment, whose disks are made by a driver of the kernel or
    /// attached to the machine.
    ///
    /// # Errors
    /// If its device or what lies on it is not possible.
    pub(super) fn new(e: &Experiment, driver: Option<Driver>) -> Result<Stack, Error> {
        e.check_stack()?;
        let mut disks = Vec::new();
        for i in 0..e.nr_disks() {
            let disk = Bottom::new(i, e)?;
            disks.push(match driver {
                Some(driver) => disk.made_by(driver, i),
                None => disk,
            });
        }
        let alike = disks.clone();
        if let Some(name) = e.dm.fast_device() {
            let mut other = e.clone();
            other.device = DeviceSpec {
                name: name.to_owned(),
                params: Vec::new(),
            };
            // Disks of the kernel itself are none of the machine's.
            let number = if driver.is_some() { 0 } else { e.nr_disks() };
            let fast = Bottom::new(number, &other);
            let mut fast = fast.map_err(|e| e.about("dm"))?;
            fast.kept_from = Some(0);
            disks.push(fast);
        }
        let mut stack = Stack {
            disks,
            layers: Vec::new(),
        };
        if let Some(md) = &e.md {
            let below = stack.below(&alike);
            let layer = array::layer(md, &below.paths, below.sectors)?;
            stack.layers.push(layer);
        }
        for of in &e.dm.layers {
            let below = stack.below(&alike);
            let layer = match of.kind.name {
                loops::KIND => loops::layer(of, &below)?,
                _ => dm::layer(of, &below)?,
            };
            stack.layers.push(layer);
        }
        let kept_from = stack.layers.iter().filter_map(|l| l.kept_from).min();
        for disk in stack.disks.iter_mut().take(alike.len()) {
            disk.kept_from = kept_from;
        }
        Ok(stack)
    }

    /// What is wanted of the driver that makes its disks.
    pub(super) fn wanted(&self) -> Wanted {
        let own = self.disks.iter().filter(|d| !d.is_modelled);
        let kept = own.clone().any(|d| d.kept_from.is_some());
        Wanted {
            number: own.count() as u32,
            keeps_data: kept,
        }
    }

    /// What the next device of device mapper is put on: the top of the stack, or the
    /// disks.
    fn below(&self, alike: &[Bottom]) -> dm::Below {
        let fast = self.disks.get(alike.len());
        let is_disk = self.layers.is_empty();
        let paths = if is_disk {
            alike.iter().map(Bottom::path).collect()
        } else {
            vec![self.top_path()]
        };
        dm::Below {
            paths,
            sectors: self.sectors(),
            is_disk,
            fast: fast.map(|d| (d.path(), d.sectors)),
            nr_mapped: self.nr_mapped(),
            nr_loops: self.nr_loops(),
        }
    }

    /// Loop devices.
    fn nr_loops(&self) -> u16 {
        let loops = self.layers.iter().filter(|l| l.what == loops::KIND);
        loops.count() as u16
    }

    /// Modules that drive what lies on its disks.
    pub(super) fn modules(&self) -> impl Iterator<Item = &'static str> {
        self.layers.iter().flat_map(|l| &l.modules).copied()
    }

    /// Filesystems that lie between its devices.
    pub(super) fn filesystems(&self) -> impl Iterator<Item = &Volume> {
        self.layers.iter().filter_map(|l| l.on_filesystem.as_ref())
    }

    /// Devices of device mapper.
    pub(super) fn nr_mapped(&self) -> usize {
        self.layers.last().map_or(0, |l| l.nr_mapped)
    }

    /// The device that jobs use, or that a filesystem is on: the top of the stack.
    pub(super) fn top(&self) -> &str {
        let top = self.layers.last();
        let top = top.map_or(&self.disks[0].device, |l| &l.device);
        &top.name
    }

    /// Its path.
    pub(super) fn top_path(&self) -> String {
        format!("/dev/{}", self.top())
    }

    /// Its length.
    pub(super) fn sectors(&self) -> u64 {
        let top = self.layers.last();
        top.map_or(self.disks[0].sectors, |l| l.sectors)
    }

    /// Its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.sectors().saturating_mul(SECTOR_BYTES)
    }

    /// All devices, the one on top first.
    pub(super) fn devices(&self) -> impl Iterator<Item = &BlockDevice> {
        let layers = self.layers.iter().rev().map(|l| &l.device);
        layers.chain(self.disks.iter().map(|d| &d.device))
    }

    /// The disks at the bottom.
    pub(super) fn disks(&self) -> &[Bottom] {
        &self.disks
    }

    /// What lies on them, from below to the top.
    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Keeps all data of its disks.
    pub(super) fn keep_all(&mut self) {
        for disk in &mut self.disks {
            disk.kept_from = Some(0);
        }
    }

    /// Programs that make it, and their packages in Debian.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.layers.iter().flat_map(|l| &l.programs).copied()
    }

    /// The disks, which behave like the models of their devices.
    ///
    /// # Errors
    /// If there is no memory for their data.
    pub(super) fn modelled(&self, catalogue: &Catalogue) -> Result<Vec<Disk>, Error> {
        let disks = self.disks.iter().filter(|d| d.is_modelled);
        let disks = disks.map(|d| d.modelled(d.e.queue_facts(catalogue)?));
        disks.collect()
    }

    /// What a shell runs to make it. `fail` ends the run if something cannot be made.
    pub(super) fn script(&self) -> String {
        let mut s = String::new();
        for layer in &self.layers {
            let what = &layer.what;
            for command in &layer.commands {
                s.push_str(&format!("{command} || fail '{what} cannot be made'\n"));
            }
            let (name, sectors) = (&layer.device.name, layer.sectors);
            s.push_str(&format!(
                "SIZE=$(cat /sys/block/{name}/size)\n\
                 [ \"$SIZE\" = {sectors} ] || fail \"{what} has $SIZE sectors, not {sectors}\"\n"
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

    /// Makes a part of the top, from 0, and returns its path.
    pub(super) fn part(&self, s: &mut String, i: usize, start: u64, sectors: u64) -> String {
        let top = self.top_path();
        if self.nr_mapped() > 0 {
            // Device mapper's own have no partitions.
            let number = self.nr_mapped() + i;
            let command = dm::create(number, &format!("0 {sectors} linear {top} {start}"));
            s.push_str(&format!("{command} || fail 'no part of {top}'\n"));
            return dm::path(number);
        }
        let number = i + 1;
        s.push_str(&format!(
            "addpart {top} {number} {start} {sectors} || fail 'no part of {top}'\n"
        ));
        let ends_in_digit = top.ends_with(|c: char| c.is_ascii_digit());
        format!("{top}{}{number}", if ends_in_digit { "p" } else { "" })
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
