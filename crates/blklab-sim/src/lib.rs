// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deterministic simulation: the only place where the models meet.
//!
//! [`Machine`] is a simulated computer with one disk, or several behind an
//! array. Its processes and
//! kernel threads are coroutines that block where the kernel blocks; queue,
//! scheduler and device are state machines that [`Machine`] routes between.

// The coroutine of a job holds those of every filesystem, call by call.
#![recursion_limit = "256"]

mod aio;
mod array;
mod build;
mod catalogue;
mod cgroups;
mod cpu;
mod device;
mod drivers;
mod filesystem;
pub mod fio;
mod host;
mod limits;
mod machine;
mod memory;
mod process;
mod progress;
mod recorded;
pub mod replay;
mod target;
mod throttle;
mod told;
mod truthlog;

use blklab_kernel::Change;
use blklab_target::Failed;
pub use blklab_target::Sinks;
pub use build::{build_machine, devices, spawn_processes};
pub use catalogue::{catalogue, catalogue_with, device_rows, filesystem_rows, scheduler_rows};
pub use cgroups::{cgroup_uses, number_of as cgroup_number};
pub use device::build_device;
pub use filesystem::{check_filesystem, filesystem_of};
pub use limits::{device_refused, queue_limits};
pub use machine::KBLOCKD_PID;
pub use machine::{
    Config, CpuCosts, CpuSharing, Disk, Interrupts, Machine, Unsubmitted, WakeTimes,
};
pub use process::run_process;
pub use target::Sim;
pub use truthlog::{LogLine, TruthLog};

/// What releases changed in what belongs to no other model, by what changed it.
pub const CHANGES: [(&str, &[Change]); 4] = [
    ("drivers", drivers::CHANGES),
    ("processor", cpu::CHANGES),
    ("aio", fio::request_prio::CHANGES),
    ("io_uring", fio::uring::CHANGES),
];

/// Refuses the result of a run that came to a halt.
///
/// # Errors
/// When virtual time stood still.
pub fn check_progress(machine: &Machine) -> Result<(), Failed> {
    if machine.has_stalled() {
        return Err(Failed(format!(
            "virtual time stands still at {} s: a fault in blklab; please report the experiment \
             and the job file",
            machine.now()
        )));
    }
    Ok(())
}
