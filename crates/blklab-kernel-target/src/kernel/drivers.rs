// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that are drivers of the kernel itself: its own null_blk and scsi_debug, made
//! with the parameters that the experiment gives the models of them.
//!
//! Source: Documentation/block/null_blk.rst of Linux; `modinfo scsi_debug`.

use super::load::Load;
use blklab_experiment::Experiment;
use blklab_types::{Dev, Error};
use std::fmt::Write as _;

/// Devices that kernels have, by name.
pub(super) const ALL: &[&str] = &["null_blk", "scsi_debug"];

/// A device of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// Commands end after a time, of a timer or at once.
    NullBlk,
    /// A SCSI disk in memory.
    ScsiDebug,
}

impl Driver {
    /// That of an experiment, if its device is one.
    pub(super) fn chosen(e: &Experiment) -> Option<Driver> {
        match e.device.name.as_str() {
            "null_blk" => Some(Driver::NullBlk),
            "scsi_debug" => Some(Driver::ScsiDebug),
            _ => None,
        }
    }

    /// Its name in /dev and /sys/block.
    pub(super) const fn disk(self) -> &'static str {
        match self {
            Driver::NullBlk => "nullb0",
            Driver::ScsiDebug => "sda",
        }
    }

    /// Its number, as it is told of: kernels give null_blk one that was free.
    pub(super) const fn dev(self) -> Dev {
        let major = match self {
            Driver::NullBlk => 252,
            Driver::ScsiDebug => 8,
        };
        Dev { major, minor: 0 }
    }

    /// What loads it.
    ///
    /// # Errors
    /// If a parameter is more than the driver takes.
    pub(super) fn loads(self, e: &Experiment, depth: u32) -> Result<Vec<Load>, Error> {
        match self {
            Driver::NullBlk => Ok(vec![Load::new("null_blk").with("nr_devices", 0)]),
            Driver::ScsiDebug => Ok(vec![Load::new("sd_mod"), scsi_debug(e, depth)?]),
        }
    }

    /// What makes the disk, for a shell, once it is loaded. `put` and `fail` are there.
    ///
    /// # Errors
    /// If a parameter is not possible.
    pub(super) fn script(self, e: &Experiment, depth: u32) -> Result<String, Error> {
        match self {
            Driver::NullBlk => null_blk(e, depth),
            // It is found in the background.
            Driver::ScsiDebug => Ok("for i in $(seq 100); do\n\
                 [ -b /dev/sda ] && break\n\
                 sleep 0.1\n\
                 done\n\
                 [ -b /dev/sda ] || fail 'scsi_debug makes no disk'\n"
                .to_owned()),
        }
    }
}

fn number(e: &Experiment, param: &str) -> Result<Option<u64>, Error> {
    let found = blklab_device::number(&e.device.name, &e.device.params, param);
    found.map_err(blklab_sim::device_refused)
}

/// Its files are the same in all releases, unlike the parameters of the module.
fn null_blk(e: &Experiment, depth: u32) -> Result<String, Error> {
    const FOLDER: &str = "/sys/kernel/config/nullb/nullb0";
    /// The words of `irqmode` in the order of the model's.
    const IRQ_MODES: [u64; 2] = [0, 2];
    let given = |param: &str| Ok::<u64, Error>(number(e, param)?.unwrap_or(0));
    let irq_mode = IRQ_MODES.get(given("irqmode")? as usize).copied();
    let mut files = vec![
        // Multi-queue, which newer releases have alone.
        ("queue_mode", 2),
        ("irqmode", irq_mode.unwrap_or(2)),
        ("completion_nsec", given("completion_nsec")?),
        ("submit_queues", 1),
        ("hw_queue_depth", u64::from(depth)),
        // In MiB.
        ("size", given("gb")? << 10),
        ("memory_backed", given("memory_backed")?),
    ];
    let mbps = given("mbps")?;
    if mbps > 0 {
        files.push(("mbps", mbps));
    }
    files.push(("power", 1));
    let mut s = "mkdir -p /sys/kernel/config\n\
                 mount -t configfs none /sys/kernel/config\n"
        .to_owned();
    let _ = writeln!(s, "mkdir {FOLDER} || fail 'null_blk makes no disk'");
    for (file, value) in files {
        let _ = writeln!(s, "put {FOLDER}/{file} {value}");
    }
    Ok(s)
}

fn scsi_debug(e: &Experiment, depth: u32) -> Result<Load, Error> {
    /// The module leaves out delays from here on.
    const DELAY_MAX: u64 = 1_000_000_000;
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
    Ok(Load::new("scsi_debug")
        .with("ndelay", delay)
        .with("max_queue", u64::from(depth))
        .with("dev_size_mb", size)
        // As in the model, data are not kept; memory would be needed for all of them.
        .with("fake_rw", 1))
}
