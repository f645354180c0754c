// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that are drivers of the kernel itself: its own null_blk and scsi_debug, made
//! with the parameters that the experiment gives the models of them.
//!
//! Source: Documentation/block/null_blk.rst of Linux; `modinfo scsi_debug`.

use super::load::Load;
use crate::build::SIMDISK;
use blklab_experiment::Experiment;
use blklab_types::{Dev, Error};
use std::fmt::Write as _;

/// Devices that kernels have, by name.
pub(super) const ALL: &[&str] = &["null_blk", "scsi_debug"];
/// Devices of images: the same, and our own module.
pub(super) const OF_IMAGES: &[&str] = &["null_blk", "scsi_debug", SIMDISK];

/// A device of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// Commands end after a time, of a timer or at once.
    NullBlk,
    /// A SCSI disk in memory.
    ScsiDebug,
    /// Our own module.
    SimDisk,
}

/// What is wanted of a driver beside what the experiment says of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Disks.
    pub(super) number: u32,
    /// Whether what is written is read again.
    pub(super) keeps_data: bool,
}

impl Driver {
    /// That of an experiment, if its device is one.
    pub(super) fn chosen(e: &Experiment) -> Option<Driver> {
        match e.device.name.as_str() {
            "null_blk" => Some(Driver::NullBlk),
            "scsi_debug" => Some(Driver::ScsiDebug),
            SIMDISK => Some(Driver::SimDisk),
            _ => None,
        }
    }

    /// The name of its disk of a number in /dev and /sys/block.
    pub(super) fn disk(self, i: u32) -> String {
        match self {
            Driver::NullBlk => format!("nullb{i}"),
            Driver::ScsiDebug => format!("sd{}", char::from(b'a' + i as u8)),
            Driver::SimDisk => format!("{SIMDISK}{i}"),
        }
    }

    /// The disk's number, as it is told of: kernels give null_blk one that was free.
    pub(super) fn dev(self, i: u32) -> Dev {
        let (major, minors) = match self {
            Driver::NullBlk => (252, 1),
            Driver::ScsiDebug => (8, 16),
            Driver::SimDisk => (251, 256),
        };
        let minor = minors * i as u16;
        Dev { major, minor }
    }

    /// What loads it.
    ///
    /// # Errors
    /// If a parameter is more than the driver takes.
    pub(super) fn loads(
        self,
        e: &Experiment,
        depth: u32,
        nr_cpus: u32,
        wanted: Wanted,
    ) -> Result<Vec<Load>, Error> {
        match self {
            Driver::NullBlk => {
                check_null_blk(e, nr_cpus)?;
                Ok(vec![Load::new("null_blk").with("nr_devices", 0)])
            }
            Driver::ScsiDebug => Ok(vec![Load::new("sd_mod"), scsi_debug(e, depth, wanted)?]),
            Driver::SimDisk => Ok(vec![simdisk(e, depth, nr_cpus, wanted)?]),
        }
    }

    /// What makes the disks, for a shell, once it is loaded. `put` and `fail` are there.
    ///
    /// # Errors
    /// If a parameter is not possible.
    pub(super) fn script(
        self,
        e: &Experiment,
        depth: u32,
        wanted: Wanted,
    ) -> Result<String, Error> {
        match self {
            Driver::NullBlk => null_blk(e, depth, wanted),
            Driver::SimDisk => Ok(format!(
                "[ -b /dev/{} ] || fail '{SIMDISK} makes no disk'\n",
                self.disk(wanted.number.saturating_sub(1))
            )),
            // They are found in the background.
            Driver::ScsiDebug => {
                let last = self.disk(wanted.number.saturating_sub(1));
                Ok(format!(
                    "for i in $(seq 100); do\n\
                     [ -b /dev/{last} ] && break\n\
                     sleep 0.1\n\
                     done\n\
                     [ -b /dev/{last} ] || fail 'scsi_debug makes no disk'\n"
                ))
            }
        }
    }
}

fn number(e: &Experiment, param: &str) -> Result<Option<u64>, Error> {
    let found = blklab_device::number(&e.device.name, &e.device.params, param);
    found.map_err(blklab_sim::device_refused)
}

/// The parameter that says how many hardware queues there are.
const QUEUES: &str = "submit_queues";

/// The parameter of null_blk that gives them one set of tags.
const SHARED_TAGS: &str = "shared_tag_bitmap";

/// The hardware queues of a device.
///
/// # Errors
/// If there are more than processors: a driver would have fewer.
fn queues(e: &Experiment, nr_cpus: u32) -> Result<u64, Error> {
    let queues = number(e, QUEUES)?.unwrap_or(1);
    if queues <= u64::from(nr_cpus) {
        return Ok(queues);
    }
    let what = format!(
        "{} of the kernel has one hardware queue for each processor at most: {nr_cpus}, not {queues}",
        e.device.name
    );
    Err(Error::not_modelled(what).about(format!("device.{QUEUES}")))
}

/// Our own module.
fn simdisk(e: &Experiment, depth: u32, nr_cpus: u32, wanted: Wanted) -> Result<Load, Error> {
    /// Parameters that it has under the names that the model gives them.
    const SAME: [&str; 8] = [
        "mode",
        "fixed_ns",
        "sector_ns",
        "order",
        "spt",
        "ra",
        "seek_min_ns",
        "seek_var_ns",
    ];
    /// What the kernel does by itself.
    const SCANNED: (&str, u64) = ("scanned", 8);
    if wanted.keeps_data {
        let what = format!("{SIMDISK} of the kernel keeps no data: take null_blk");
        return Err(Error::not_modelled(what).about("device"));
    }
    let (scanned, usual) = SCANNED;
    if number(e, scanned)?.is_some_and(|sectors| sectors != usual) {
        let what = format!("{scanned}: the kernel looks for partitions by itself");
        return Err(Error::not_modelled(what).about(format!("device.{scanned}")));
    }
    let mut load = Load::new(SIMDISK)
        .with("nr_devices", u64::from(wanted.number))
        .with("queue_depth", u64::from(depth))
        .with(QUEUES, queues(e, nr_cpus)?);
    for name in SAME {
        load = load.with(name, number(e, name)?.unwrap_or(0));
    }
    Ok(load)
}

/// Refuses what only the model of it has.
fn check_null_blk(e: &Experiment, nr_cpus: u32) -> Result<(), Error> {
    queues(e, nr_cpus)?;
    const PHASE: &str = "tick_phase_ns";
    if number(e, PHASE)?.unwrap_or(0) == 0 {
        return Ok(());
    }
    let what = format!(
        "null_blk of the kernel has no {PHASE}: its budget is renewed every 20 ms from the moment \
         on at which it is made"
    );
    Err(Error::not_modelled(what).about(format!("device.{PHASE}")))
}

/// Its files are the same in all releases, unlike the parameters of the module.
fn null_blk(e: &Experiment, depth: u32, wanted: Wanted) -> Result<String, Error> {
    const FOLDER: &str = "/sys/kernel/config/nullb";
    /// The words of `irqmode` in the order of the model's.
    const IRQ_MODES: [u64; 2] = [0, 2];
    let given = |param: &str| Ok::<u64, Error>(number(e, param)?.unwrap_or(0));
    let irq_mode = IRQ_MODES.get(given("irqmode")? as usize).copied();
    let mut files = vec![
        // Multi-queue, which newer releases have alone.
        ("queue_mode", 2),
        ("irqmode", irq_mode.unwrap_or(2)),
        ("completion_nsec", given("completion_nsec")?),
        (QUEUES, given(QUEUES)?.max(1)),
        ("hw_queue_depth", u64::from(depth)),
        // In MiB.
        ("size", given("gb")? << 10),
        (
            "memory_backed",
            given("memory_backed")?.max(u64::from(wanted.keeps_data)),
        ),
    ];
    // 5.10 has no file for the latter.
    for param in ["mbps", SHARED_TAGS] {
        let value = given(param)?;
        if value > 0 {
            files.push((param, value));
        }
    }
    files.push(("power", 1));
    let mut s = "mkdir -p /sys/kernel/config\n\
                 mount -t configfs none /sys/kernel/config\n"
        .to_owned();
    for i in 0..wanted.number {
        let folder = format!("{FOLDER}/{}", Driver::NullBlk.disk(i));
        let _ = writeln!(s, "mkdir {folder} || fail 'null_blk makes no disk'");
        for (file, value) in &files {
            let _ = writeln!(s, "put {folder}/{file} {value}");
        }
    }
    Ok(s)
}

fn scsi_debug(e: &Experiment, depth: u32, wanted: Wanted) -> Result<Load, Error> {
    /// The module leaves out delays from here on.
    const DELAY_MAX: u64 = 1_000_000_000;
    /// Data that are kept take their memory from the beginning on.
    const KEPT_MAX_MB: u64 = 1024;
    /// Commands that it takes at once.
    const DEPTH_MAX: u32 = 192;
    let delay = number(e, "ndelay")?.unwrap_or(0);
    if delay >= DELAY_MAX {
        let what = format!("scsi_debug of the kernel delays by less than a second, not {delay} ns");
        return Err(Error::not_modelled(what).about("device.ndelay"));
    }
    if depth > DEPTH_MAX {
        let what = format!("scsi_debug of the kernel takes {DEPTH_MAX} commands, not {depth}");
        return Err(Error::not_modelled(what).about("queue_depth"));
    }
    let size = number(e, "dev_size_mb")?.unwrap_or(0);
    if wanted.keeps_data && (size > KEPT_MAX_MB || wanted.number > 1) {
        let what = format!(
            "scsi_debug of the kernel keeps the data of one disk of at most {KEPT_MAX_MB} MiB: \
             set dev_size_mb, or take null_blk"
        );
        return Err(Error::not_modelled(what).about("device.dev_size_mb"));
    }
    Ok(Load::new("scsi_debug")
        .with("add_host", 1)
        .with("num_tgts", u64::from(wanted.number))
        .with("ndelay", delay)
        .with("max_queue", u64::from(depth))
        .with("dev_size_mb", size)
        // As in the model, data are not kept; memory would be needed for all of them.
        .with("fake_rw", u64::from(!wanted.keeps_data)))
}
