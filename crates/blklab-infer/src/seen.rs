// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios while the trace is read.

use crate::recorded::Marks;
use blklab_types::{BioFlags, Dev, Op, Pid, Time};

/// A bio while the trace is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) time: Time,
    /// C; [`Time::MAX`] if there was none yet.
    pub(crate) done: Time,
    /// When its submission returned: G or the merge; `time` if neither is known.
    pub(crate) returned: Time,
    pub(crate) sector: u64,
    pub(crate) nr_sectors: u32,
    pub(crate) dev: Dev,
    pub(crate) op: Op,
    pub(crate) flags: BioFlags,
    pub(crate) marks: Marks,
    /// Marks if the plug belongs to the device, as up to 2.6.38.
    pub(crate) device_plug: Marks,
}

/// The bios of a process.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) pid: Pid,
    pub(crate) bios: Vec<Seen>,
}
